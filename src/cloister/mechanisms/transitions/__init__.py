"""Transition matrices: each category is reported as another one with a known probability.

`matrices` makes them and prices them, `draws` draws reports and turns matrices into integer thresholds for devices, and
`recovery` estimates the true shares from reports.
"""

from cloister.core.postprocessing import clip, norm_sub, project_to_simplex
from cloister.mechanisms.transitions.draws import Thresholds, draw_codes, pick_codes, quantize, quantized_matrix
from cloister.mechanisms.transitions.matrices import (
    Matrix,
    best_truth,
    check_matrix,
    feasible,
    largest_ratio,
    matrix_epsilon,
    ordinal_matrix,
    response_matrix,
    two_by_two_matrix,
    two_coin_matrix,
)
from cloister.mechanisms.transitions.recovery import (
    InvertedShares,
    LikelyShares,
    estimate_shares,
    estimate_yes_share,
    invert_shares,
    most_likely_shares,
)

__all__ = [
    "InvertedShares",
    "LikelyShares",
    "Matrix",
    "Thresholds",
    "best_truth",
    "check_matrix",
    "clip",
    "draw_codes",
    "estimate_shares",
    "estimate_yes_share",
    "feasible",
    "invert_shares",
    "largest_ratio",
    "matrix_epsilon",
    "most_likely_shares",
    "norm_sub",
    "ordinal_matrix",
    "pick_codes",
    "project_to_simplex",
    "quantize",
    "quantized_matrix",
    "response_matrix",
    "two_by_two_matrix",
    "two_coin_matrix",
]
