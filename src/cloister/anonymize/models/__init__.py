"""Privacy models of released tables: the counts they look at, and the checks."""

from cloister.anonymize.models.checks import ModelCheck, all_hold, all_hold_together, check_of
from cloister.anonymize.models.equivalence_classes import (
    EquivalenceClasses,
    Histogram,
    classes_of,
    classes_of_cells,
    overall_counts,
)
from cloister.anonymize.models.settings import model_from, settings_of

__all__ = [
    "EquivalenceClasses",
    "Histogram",
    "ModelCheck",
    "all_hold",
    "all_hold_together",
    "check_of",
    "classes_of",
    "classes_of_cells",
    "model_from",
    "overall_counts",
    "settings_of",
]
