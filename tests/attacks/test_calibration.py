from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
from hypothesis import given, strategies as st

from cloister.attacks import calibration_of, coverage_of
from cloister.errors import ParameterError

CLAIMS = st.lists(st.tuples(st.floats(0, 1), st.booleans()), min_size=1, max_size=60)


@given(claims=CLAIMS, bins=st.integers(1, 12))
def test_the_score_in_bins_is_calibration_and_refinement(claims: Any, bins: int) -> None:
    claimed, came_true = zip(*claims, strict=True)
    found = calibration_of(claimed, came_true, bins=bins)
    assert found.brier_quantized == pytest.approx(found.calibration + found.refinement, abs=1e-12)
    assert abs(found.brier - found.brier_quantized) <= 1.5 / bins
    assert sum(item.count for item in found.bins) == len(claims)
    for item in found.bins:
        assert item.interval[0] <= item.observed <= item.interval[1]


def test_an_honest_forecaster_is_told_from_a_boaster() -> None:
    came_true = np.arange(1000) % 4 != 0
    honest, boasting = (calibration_of(np.full(1000, claim), came_true) for claim in (0.75, 0.99))
    assert honest.calibration == pytest.approx(0, abs=1e-12)
    assert honest.expected_error == pytest.approx(0, abs=1e-12)
    assert boasting.calibration == pytest.approx(0.04)
    assert boasting.expected_error == pytest.approx(0.24)
    assert honest.refinement == boasting.refinement == pytest.approx(0.1875)
    assert honest.brier < boasting.brier


def test_certainty_belongs_to_the_last_bin() -> None:
    found = calibration_of([1, 1, 0], [True, True, False])
    assert [(item.center, item.count) for item in found.bins] == [(0.05, 1), (0.95, 2)]
    json.dumps(found.to_dict())


def test_who_speaks_only_when_sure_says_less() -> None:
    found = coverage_of([0.99, 0.8, 0.6, 0.3], [1, 1, 0, 0], thresholds=(0, 0.7, 1))
    assert found == ((0.0, 1.0, 0.5), (0.7, 0.5, 1.0), (1.0, 0.0, None))


@pytest.mark.parametrize(
    ("claimed", "came_true", "fix"),
    [
        ([], [], "one outcome for every claim"),
        ([0.5], [1, 0], "one outcome for every claim"),
        ([1.5], [1], "from 0 to 1"),
        ([float("nan")], [1], "from 0 to 1"),
        ([0.5], [0.5], "True or False"),
        (["much"], [1], "numbers from 0 to 1"),
    ],
    ids=["none", "lengths", "above", "nan", "half", "words"],
)
def test_claims_that_make_no_sense_are_refused(claimed: Any, came_true: Any, fix: str) -> None:
    with pytest.raises(ParameterError, match=fix):
        calibration_of(claimed, came_true)
