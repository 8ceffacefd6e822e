from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from cloister.queries.postprocessing import combine, mean_from_histogram, posterior_mean
from cloister.testing import check_golden, load_goldens
from tests.queries.test_ranks import median_intervals

FOLDER = Path(__file__).parents[1] / "golden" / "queries"


def _combined_variance(*, variances: list[float]) -> float:
    return combine([0.0] * len(variances), variances).variance


def _posterior_mean(**inputs: Any) -> list[float]:
    return posterior_mean(**inputs).tolist()  # type: ignore[no-any-return]


FUNCTIONS = {
    "combined_variance": _combined_variance,
    "mean_from_histogram": mean_from_histogram,
    "median_interval_probabilities": median_intervals,
    "posterior_mean": _posterior_mean,
}


@pytest.mark.parametrize("golden", load_goldens(FOLDER), ids=str)
def test_worked_examples(golden: Any) -> None:
    check_golden(golden, FUNCTIONS[golden.name])
