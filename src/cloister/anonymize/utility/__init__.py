"""What a released table is still good for, beside its original."""

from __future__ import annotations

from cloister.anonymize.comparison import Comparison, compared
from cloister.anonymize.utility.losses import Losses
from cloister.anonymize.utility.measuring import Utility, measure_utility
from cloister.anonymize.utility.microaggregation import SquaredError
from cloister.anonymize.utility.queries import QueryErrors

__all__ = ["Comparison", "Losses", "QueryErrors", "SquaredError", "Utility", "compared", "measure_utility"]
