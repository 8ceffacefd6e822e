from __future__ import annotations

import json
from typing import Any

import pytest

from cloister.attacks import trajectory_uniqueness
from cloister.core.random import SeededRandomSource, integers_below
from cloister.errors import ParameterError


def walks(people: int, steps: int, places: int) -> tuple[list[int], list[tuple[int, int]]]:
    source = SeededRandomSource(1)
    where = integers_below(source, places, people * steps).reshape(people, steps)
    whose = [person for person in range(people) for _ in range(steps)]
    return whose, [(step, int(where[person, step])) for person in range(people) for step in range(steps)]


def test_more_points_single_out_more_people() -> None:
    whose, points = walks(people=200, steps=24, places=10)
    shares = [
        trajectory_uniqueness(whose, points=points, known=known, random_state=SeededRandomSource(2)).success
        for known in (1, 2, 3, 4)
    ]
    assert shares == sorted(shares)
    assert shares[0] == 0
    # Each of 199 others shares k points with probability 0.1 ** k.
    assert shares[1] == pytest.approx((1 - 0.1**2) ** 199, abs=0.06)
    assert shares[3] > 0.95


def test_equal_trajectories_hide_each_other() -> None:
    whose = [person for person in range(10) for _ in range(5)]
    result = trajectory_uniqueness(whose, points=list(range(5)) * 10, known=4, trials=100)
    assert result.success == 0
    assert not result.succeeded
    assert result.typical_candidates == 10


def test_coarser_points_single_out_fewer() -> None:
    whose, points = walks(people=200, steps=24, places=10)
    coarse = [(step // 6, place // 5) for step, place in points]
    fine = trajectory_uniqueness(whose, points=points, known=3, random_state=SeededRandomSource(3))
    rough = trajectory_uniqueness(whose, points=coarse, known=3, random_state=SeededRandomSource(3))
    assert rough.success < fine.success


def test_the_report_names_nobody() -> None:
    result = trajectory_uniqueness(["ann", "ann", "bob"], points=["home", "gym", "bar"], known=1, trials=200)
    assert result.success == 1
    assert {place for place, _ in result.worst} == {0, 1}
    text = json.dumps(result.to_dict()) + repr(result) + result.verdict
    assert "worst" not in text
    assert result.to_dict()["points"] == 1
    assert dict(result.summary())["points known"] == "1"
    assert "typical candidates" in result.report().to_markdown()


@pytest.mark.parametrize(
    ("parameters", "fix"),
    [
        ({"people": []}, "leave missing values out"),
        ({"points": [1]}, "one person and one point"),
        ({"points": [None, 1]}, "leave missing values out"),
        ({"known": 0}, "known=1"),
        ({"known": 5}, "lower known="),
        ({"trials": 0}, "trials=1"),
    ],
    ids=["nobody", "lengths", "missing", "no-points", "too-many", "no-trials"],
)
def test_bad_input_is_refused_with_a_fix(parameters: dict[str, Any], fix: str) -> None:
    given = {"people": [1, 2], "points": [1, 2], **parameters}
    with pytest.raises(ParameterError, match=fix):
        trajectory_uniqueness(given.pop("people"), **given)
