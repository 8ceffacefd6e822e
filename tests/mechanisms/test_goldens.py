from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cloister.accounting.gaussian import gaussian_multiplier
from cloister.mechanisms import Select, Staircase, approximate_laplace_scale, truncated_laplace_scale
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


FUNCTIONS = {
    "approximate_laplace_scale": approximate_laplace_scale,
    "gaussian_multiplier": gaussian_multiplier,
    "selection_probabilities": _selection,
    "staircase_mean_absolute_value": _staircase_mean,
    "truncated_laplace_scale": truncated_laplace_scale,
}


@pytest.mark.parametrize("golden", load_goldens(FOLDER), ids=str)
def test_worked_examples(golden: Any) -> None:
    check_golden(golden, FUNCTIONS[golden.name])
