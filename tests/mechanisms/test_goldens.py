from __future__ import annotations

import math
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cloister.accounting.conversions import gaussian_multiplier
from cloister.mechanisms import Select, Staircase, approximate_laplace_scale, truncated_laplace_scale
from cloister.mechanisms.transitions import (
    best_truth,
    estimate_shares,
    estimate_yes_share,
    feasible,
    invert_shares,
    matrix_epsilon,
    most_likely_shares,
    response_matrix,
    two_coin_matrix,
)
from cloister.testing import check_golden, load_goldens

FOLDER = Path(__file__).parents[1] / "golden" / "mechanisms"


def _selection(*, scores: list[int], epsilon: float) -> Any:
    mechanism = Select(candidates=tuple(range(len(scores))), score_sensitivity=1, epsilon=epsilon)
    return mechanism.probabilities(scores).tolist()


def _staircase_mean(*, epsilon: float) -> float:
    """Sum the law of the mechanism's own lattice, stair by stair."""
    mechanism = Staircase(sensitivity=1, epsilon=epsilon)
    steps, high = mechanism.steps_apart, mechanism.high_steps
    places = np.arange(steps, dtype=float)
    weights = np.where(places < high, 1.0, np.exp(-epsilon))
    stairs = np.arange(200, dtype=float)
    falling = np.exp(-epsilon * stairs)
    total = 2 * weights.sum() * falling.sum() - weights[0]
    mean = 2 * (weights.sum() * (falling * stairs).sum() * steps + (weights * places).sum() * falling.sum())
    return float(mean / total / steps)


def _diagonal(*, categories: int, epsilon: object) -> list[float]:
    first = response_matrix(categories, epsilon=epsilon)[0]
    assert sum(first) == 1
    assert len(set(first[1:])) == 1
    return [float(first[0]), float(first[1])]


def _told(*, share: str, truth: str, second: str) -> Fraction:
    matrix = two_coin_matrix(truth=truth, second=second)
    return (1 - Fraction(share)) * matrix[0][1] + Fraction(share) * matrix[1][1]


def _epsilon(*, matrix: Any) -> float:
    epsilon = matrix_epsilon(matrix)
    return math.inf if epsilon is None else float(epsilon)


def _three_estimates(*, counts: list[int], matrix: Any) -> dict[str, Any]:
    return {
        "inverse": invert_shares(counts, matrix=matrix).shares,
        "projected": estimate_shares(counts, matrix=matrix),
        "likely": most_likely_shares(counts, matrix=matrix).shares,
    }


FUNCTIONS: dict[str, Any] = {
    "approximate_laplace_scale": approximate_laplace_scale,
    "corrected_shares": _three_estimates,
    "feasible_two_by_two": feasible,
    "gaussian_multiplier": gaussian_multiplier,
    "matrix_epsilon": _epsilon,
    "response_matrix": _diagonal,
    "response_matrix_of_one": _diagonal,
    "selection_probabilities": _selection,
    "staircase_mean_absolute_value": _staircase_mean,
    "told_yes": _told,
    "truncated_laplace_scale": truncated_laplace_scale,
    "two_by_two_corner": best_truth,
    "yes_share": estimate_yes_share,
}


@pytest.mark.parametrize("golden", load_goldens(FOLDER), ids=str)
def test_worked_examples(golden: Any) -> None:
    check_golden(golden, FUNCTIONS[golden.name])
