"""Privacy models of released tables, each in a module that is entered here, and the counts that they look at."""

from cloister.anonymize.models import class_sizes, closeness, diversity
from cloister.anonymize.models.base import (
    ModelCheck,
    PrivacyModel,
    all_hold,
    all_hold_together,
    check_of,
    privacy_models,
)
from cloister.anonymize.models.equivalence_classes import (
    EquivalenceClasses,
    Histogram,
    classes_of,
    classes_of_cells,
    overall_counts,
)
from cloister.anonymize.models.settings import model_from, parse_model, settings_of

__all__ = [
    "EquivalenceClasses",
    "Histogram",
    "ModelCheck",
    "PrivacyModel",
    "all_hold",
    "all_hold_together",
    "check_of",
    "class_sizes",
    "classes_of",
    "classes_of_cells",
    "closeness",
    "diversity",
    "model_from",
    "overall_counts",
    "parse_model",
    "privacy_models",
    "settings_of",
]
