"""The sanitization primitives: steps that prepare a table for release, and the recipe that repeats them.

Each operation is a frozen value with `apply` (a table in, a table out) and `run`, which also says what was done. Alone
they promise nothing: the anonymization models and differential privacy do. Operations bring the rows into memory.
"""

from __future__ import annotations

from cloister.anonymize.operations.base import Operation, OperationOutcome, StepLog, operations
from cloister.anonymize.operations.generalization import BottomCode, Generalize, Round, TopCode
from cloister.anonymize.operations.model_replacement import ReplaceByModel, fit_marginal
from cloister.anonymize.operations.noise import AddNoise, reconstruct_distribution
from cloister.anonymize.operations.pram import PostRandomize, invariant_matrix
from cloister.anonymize.operations.pseudonyms import Pseudonymize, RandomTokens, ShiftDates, reveal
from cloister.anonymize.operations.recipe import Prepared, Recipe
from cloister.anonymize.operations.secret import Secret
from cloister.anonymize.operations.suppression import DropColumn, SuppressCells, SuppressRecords
from cloister.anonymize.operations.swapping import Swap, SwapRecords
from cloister.mechanisms.transitions import (
    estimate_shares,
    estimate_yes_share,
    matrix_epsilon,
    project_to_simplex,
    response_matrix,
    two_coin_matrix,
)

__all__ = [
    "AddNoise",
    "BottomCode",
    "DropColumn",
    "Generalize",
    "Operation",
    "OperationOutcome",
    "PostRandomize",
    "Prepared",
    "Pseudonymize",
    "RandomTokens",
    "Recipe",
    "ReplaceByModel",
    "Round",
    "Secret",
    "ShiftDates",
    "StepLog",
    "SuppressCells",
    "SuppressRecords",
    "Swap",
    "SwapRecords",
    "TopCode",
    "estimate_shares",
    "estimate_yes_share",
    "fit_marginal",
    "invariant_matrix",
    "matrix_epsilon",
    "operations",
    "project_to_simplex",
    "reconstruct_distribution",
    "response_matrix",
    "reveal",
    "two_coin_matrix",
]
