"""Copies that the gate must see where rows are not somebody's own, columns are few, or numbers are extreme."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import cloister as cl
from cloister.attacks.gating._row_keys import RESOLUTIONS, read_pair
from tests.attacks.gating.crowds import DP, screen, stands, wide


@pytest.mark.parametrize("resolution", RESOLUTIONS)
def test_copies_of_the_largest_numbers_are_told_from_others(resolution: str) -> None:
    ends = [-1.7e308, *(place * 1e307 for place in range(-9, 10)), 1.7e308] * 3
    original, moved = (cl.open_table(pa.table({"x": values})) for values in (ends, ends[::-1]))
    pair = read_pair(original, moved, ["x"], resolution=resolution)
    assert pair.original[:, 0].tolist() == pair.released[::-1, 0].tolist()
    assert len(set(pair.original[:, 0].tolist())) == 21


@pytest.mark.parametrize("times", [2, 3])
def test_copies_of_rows_that_everybody_has_several_times_are_refused(times: int) -> None:
    frame = wide()
    found = screen(frame, original=pd.concat([frame] * times), kind="synthetic table", guarantee=DP)
    assert stands(found)["copies"] == "broken"
    assert f"Of the rows that occur {times} times, 600 of 600 are in the release" in found.verdict
    honest = screen(wide(600, 90_000), original=pd.concat([frame] * times), kind="synthetic table", guarantee=DP)
    assert stands(honest)["copies"] == "held"


def test_near_copies_of_two_columns_are_refused_and_strangers_are_not() -> None:
    names = ["latitude", "salary"]
    frame, jitter = wide()[names], 1e-5
    near = frame.assign(latitude=frame["latitude"] + jitter * np.resize([1, -1], len(frame)))
    assert stands(screen(near, original=frame, kind="synthetic table", guarantee=DP))["nearest rows"] == "broken"
    honest = screen(wide(600, 90_000)[names], original=frame, kind="synthetic table", guarantee=DP)
    assert stands(honest)["nearest rows"] == "held"
