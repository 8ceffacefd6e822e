from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from cloister.queries.choices import RandomDictator
from cloister.queries.graphs import edge_epsilon
from cloister.queries.postprocessing import combine, mean_from_histogram, posterior_mean
from cloister.testing import check_golden, load_goldens
from tests.queries.inference_control.controlled import ten
from tests.queries.test_ranks import median_intervals
from tests.queries.test_sized_mean import scale_of

FOLDER = Path(__file__).parents[1] / "golden" / "queries"


def _combined_variance(*, variances: list[float]) -> float:
    return combine([0.0] * len(variances), variances).variance


def _dictator_epsilon(*, phantom: float) -> float:
    return float(RandomDictator(alternatives=("a", "b"), phantom=phantom).epsilon)  # type: ignore[arg-type]


def _edge_epsilon(**probabilities: float) -> float:
    return float(edge_epsilon(**probabilities))  # type: ignore[arg-type]


def _posterior_mean(**inputs: Any) -> list[float]:
    return posterior_mean(**inputs).tolist()  # type: ignore[no-any-return]


def _mean_scale(**inputs: Any) -> float:
    return float(scale_of(**inputs))


def _tracker(*, target: str, padding: str, audit: bool) -> dict[str, Any]:
    table = ten(audit=audit)
    sides = (padding, f"NOT ({padding})")
    conditions = (*sides, *(f"({target}) OR ({side})" for side in sides))
    sums = [table.sum("salary", where).value for where in conditions]
    return {"sums": sums, "target": sums[2] + sums[3] - sums[0] - sums[1]}


FUNCTIONS = {
    "combined_variance": _combined_variance,
    "mean_from_histogram": mean_from_histogram,
    "median_interval_probabilities": median_intervals,
    "noise_graph_epsilon": _edge_epsilon,
    "posterior_mean": _posterior_mean,
    "random_dictatorship_epsilon": _dictator_epsilon,
    "salaries_mean_calibrations": _mean_scale,
    "tracker_of_ten_salaries": _tracker,
}


@pytest.mark.parametrize("golden", load_goldens(FOLDER), ids=str)
def test_worked_examples(golden: Any) -> None:
    check_golden(golden, FUNCTIONS[golden.name])
