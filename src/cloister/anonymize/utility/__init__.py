"""What a released table is still good for, beside its original."""

from __future__ import annotations

from cloister.anonymize.comparison import Comparison, compare_cells
from cloister.anonymize.utility.losses import Losses, SquaredError
from cloister.anonymize.utility.measures import QueryErrors, ReleaseUtility, measure_utility

__all__ = ["Comparison", "Losses", "QueryErrors", "ReleaseUtility", "SquaredError", "compare_cells", "measure_utility"]
