from __future__ import annotations

import json
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
        Controls(min_size=None, max_overlap=0, audit=False, pairs=False, extremes=True, max_sets=5),
        Controls(counts=Rounded(to=5), sums=Ranges(width="0.1"), means=Rounded(to="1/3")),
    ],
)
def test_controls_are_written_and_read(controls: Controls) -> None:
    assert Controls.from_dict(json.loads(json.dumps(controls.to_dict()))) == controls


@pytest.mark.parametrize("bad", [None, {}, [], {"schema": "cloister.inference_controls/2"}])
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
        ({"max_sets": 0}, "at least 1"),
    ],
)
def test_numbers_out_of_range_are_refused(bad: dict[str, Any], message: str) -> None:
    with pytest.raises(ParameterError, match=message):
        Controls(**bad)


@pytest.mark.parametrize("bad", [{"min_size": 2.5}, {"audit": 1}, {"extremes": None}, {"sums": 5}, {"counts": "5"}])
def test_values_of_another_type_are_refused(bad: dict[str, Any]) -> None:
    with pytest.raises(ParameterTypeError):
        Controls(**bad)
