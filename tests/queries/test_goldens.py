from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from cloister.testing import check_golden, load_goldens
from tests.queries.test_ranks import median_intervals

FOLDER = Path(__file__).parents[1] / "golden" / "queries"

FUNCTIONS = {
    "median_interval_probabilities": median_intervals,
}


@pytest.mark.parametrize("golden", load_goldens(FOLDER), ids=str)
def test_worked_examples(golden: Any) -> None:
    check_golden(golden, FUNCTIONS[golden.name])
