from __future__ import annotations

import datetime as dt
import json
import math
from dataclasses import FrozenInstanceError, replace
from typing import Any

import pytest

from cloister.errors import ParameterError, ParameterTypeError
from cloister.queries.inference_control import Controls, Ranges, Rounded


def test_the_defaults_are_the_careful_ones() -> None:
    controls = Controls()
    assert (controls.min_size, controls.audit, controls.pairs, controls.extremes) == (10, True, True, False)
    assert controls.max_overlap is None
    assert controls.fewest_questions is None


def test_controls_do_not_change() -> None:
    with pytest.raises(FrozenInstanceError):
        Controls().min_size = 2  # type: ignore[misc]
    assert replace(Controls(), min_size=5).min_size == 5


def test_controls_tell_what_overlap_control_costs_an_attacker() -> None:
    assert Controls(max_overlap=1).fewest_questions == 10
    assert Controls(min_size=None, max_overlap=1).fewest_questions is None


@pytest.mark.parametrize(
    "controls",
    [
        Controls(),
        Controls(min_size=None, max_overlap=0, audit=False, pairs=False, extremes=True, max_questions=5),
        Controls(cut_points={"pay": (1, -2.5), "sick": [True], "hired": [dt.date(2020, 1, 31), "2021-01-31"]}),
        Controls(counts=Rounded(to=5), sums=Ranges(width="0.1"), means=Rounded(to="1/3")),
    ],
)
def test_controls_are_written_and_read(controls: Controls) -> None:
    assert Controls.from_dict(json.loads(json.dumps(controls.to_dict()))) == controls


@pytest.mark.parametrize("bad", [None, {}, [], {"schema": "cloister.inference_controls/3"}])
def test_other_values_are_no_controls(bad: Any) -> None:
    with pytest.raises(ParameterError, match=r"to_dict\(\) returned"):
        Controls.from_dict(bad)


def test_unknown_controls_are_not_ignored() -> None:
    with pytest.raises(ParameterError, match="not inference controls"):
        Controls.from_dict({**Controls().to_dict(), "noise": 1})


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        ({"min_size": 1}, "at least 2"),
        ({"max_overlap": -1}, "at least 0"),
        ({"max_questions": 0}, "at least 1"),
        ({"cut_points": {"pay": [math.nan]}}, "write a number such as 2000"),
    ],
)
def test_numbers_out_of_range_are_refused(bad: dict[str, Any], message: str) -> None:
    with pytest.raises(ParameterError, match=message):
        Controls(**bad)


@pytest.mark.parametrize(
    "bad",
    [
        {"min_size": 2.5},
        {"audit": 1},
        {"extremes": None},
        {"sums": 5},
        {"counts": "5"},
        {"cut_points": None},
        {"cut_points": {1: [2]}},
        {"cut_points": {"pay": 5}},
        {"cut_points": {"pay": "5"}},
        {"cut_points": {"pay": [None]}},
    ],
)
def test_values_of_another_type_are_refused(bad: dict[str, Any]) -> None:
    with pytest.raises(ParameterTypeError):
        Controls(**bad)


def test_controls_of_an_earlier_version_are_read_without_cut_points() -> None:
    earlier = {"schema": "cloister.inference_controls/1", "min_size": 5, "max_sets": 7}
    assert Controls.from_dict(earlier) == Controls(min_size=5, max_questions=7)


def test_controls_of_some_columns_have_their_cut_points_alone() -> None:
    controls = Controls(cut_points={"pay": (2, 1, 2), "age": (30,)})
    assert controls.cut_points == {"pay": (2, 1), "age": (30,)}
    assert controls.about(["pay", "name"]) == Controls(cut_points={"pay": (2, 1)})
    assert isinstance(hash(controls), int)
    with pytest.raises(TypeError):
        controls.cut_points["pay"] = (3,)  # type: ignore[index]
