"""Tables of two attributes from reports that were drawn independently."""

from __future__ import annotations

import functools
import json
from typing import Any

import numpy as np
import pytest

from cloister.errors import ParameterError, UnknownColumnError
from cloister.local import (
    DirectEncoding,
    Duchi,
    HadamardResponse,
    OptimizedLocalHashing,
    OptimizedUnaryEncoding,
    RandomizedResponse,
    SeveralAttributes,
    SubsetSelection,
    ThresholdHistogramEncoding,
)
from tests.support.thoroughness import audited

KINDS = [DirectEncoding, OptimizedUnaryEncoding, OptimizedLocalHashing, SubsetSelection, ThresholdHistogramEncoding]
TABLE = np.array([[500, 0, 100], [50, 250, 100]])
CODES = np.repeat(np.indices(TABLE.shape).reshape(2, -1), TABLE.ravel(), axis=1)


@pytest.mark.parametrize("kind", KINDS)
def test_supporters_are_the_supporting_reports(kind: Any) -> None:
    protocol = kind(domain=11, epsilon=1)
    payload = protocol.randomize(list(range(11)) * 20).payload
    found = [int(protocol.supporters(payload, code).sum()) for code in range(11)]
    assert found == protocol.support_counts(payload).tolist()


def made(first: Any, second: Any, method: str = "all", epsilon: float = 2) -> SeveralAttributes:
    asked = {"a": functools.partial(first, domain=2), "b": functools.partial(second, domain=["x", "y", "z"])}
    return SeveralAttributes(asked, epsilon=epsilon, method=method)


@pytest.mark.statistical
@pytest.mark.parametrize(
    ("first", "second"),
    audited(
        [
            (DirectEncoding, DirectEncoding),
            (OptimizedUnaryEncoding, SubsetSelection),
            (RandomizedResponse, DirectEncoding),
        ],
        but=[(RandomizedResponse, DirectEncoding)],
    ),
)
@pytest.mark.parametrize("method", ["all", "split"])
def test_pairs_are_unbiased_with_the_stated_errors(first: Any, second: Any, method: str) -> None:
    people, tries = made(first, second, method, 4), 200
    table = {"a": CODES[0], "b": np.array(["x", "y", "z"])[CODES[1]]}
    found = [people.joint(people.randomize(table), "a", "b") for _ in range(tries)]
    counts = np.array([each.raw_counts for each in found])
    stated = np.sqrt(np.mean([each.raw_errors**2 for each in found], axis=0))
    assert (np.abs(counts.mean(axis=0) - TABLE.ravel()) < 6.5 * stated / np.sqrt(tries)).all()
    scatter = counts.std(axis=0, ddof=1) / stated
    assert (scatter > 0.65).all()
    assert (scatter < 1.4).all()


def test_margins_of_the_table_are_the_single_estimates() -> None:
    people = made(DirectEncoding, DirectEncoding)
    reports = people.randomize({"a": CODES[0], "b": np.array(["x", "y", "z"])[CODES[1]]})
    pairs, single = people.joint(reports.to_json_lines(), "a", "b"), people.estimate(reports)
    grid = pairs.raw_counts.reshape(2, 3)
    assert grid.sum(axis=1) == pytest.approx(single["a"].raw_counts)
    assert grid.sum(axis=0) == pytest.approx(single["b"].raw_counts)
    turned = people.joint(reports, "b", "a").raw_counts.reshape(3, 2).transpose()
    assert turned == pytest.approx(grid)
    assert pairs.counts[1, "y"] == pytest.approx(grid[1, 1])  # type: ignore[index]  # a pair
    assert pairs.guarantee == people.guarantee
    assert pairs.reports == 1000


def test_unequal_coins_of_randomized_response_are_undone() -> None:
    coins = RandomizedResponse(domain=["no", "yes"], truth="0.8", second="0.9")
    asked = {"a": coins, "b": functools.partial(DirectEncoding, domain=["x", "y"])}
    people = SeveralAttributes(asked, epsilon=coins.epsilon, method="all")
    found = people.joint(people.randomize({"a": ["no", "yes"] * 5000, "b": ["x", "y"] * 5000}), "a", "b")
    off = np.abs(found.raw_counts - [5000, 0, 0, 5000]) / found.raw_errors
    assert (off < 6.5).all()
    assert (found.raw_errors < 300).all()


def test_the_table_can_be_printed_stored_mended_and_drawn() -> None:
    people = made(DirectEncoding, DirectEncoding)
    found = people.joint(people.randomize({"a": [0, 1] * 200, "b": ["x", "z"] * 200}), "a", "b")
    assert "6 values from 400 reports" in str(found)
    assert len(json.loads(json.dumps(found.to_dict()))["values"]) == 6
    assert sum(found.consistent().counts.values()) == pytest.approx(400)
    assert found.summary()
    assert found.plot().to_dict()


def test_tables_that_cannot_be_told_are_refused() -> None:
    for method in ("sample_one", "fake_data"):
        people = SeveralAttributes({"a": 2, "b": 2}, epsilon=1, method=method)
        with pytest.raises(ParameterError, match="split"):
            people.joint(people.randomize({"a": [0], "b": [1]}), "a", "b")
    people = made(DirectEncoding, HadamardResponse)
    reports = people.randomize({"a": [0], "b": ["x"]})
    with pytest.raises(UnknownColumnError):
        people.joint(reports, "a", "c")
    with pytest.raises(ParameterError, match="twice"):
        people.joint(reports, "a", "a")
    with pytest.raises(ParameterError, match="support values"):
        people.joint(reports, "b", "a")
    assert len(people.joint(reports, "a", "b").raw_counts) == 6
    mixed = SeveralAttributes({"a": 2, "b": functools.partial(Duchi, bounds=(0, 1))}, epsilon=1, method="all")
    with pytest.raises(ParameterError, match="support values"):
        mixed.joint(mixed.randomize({"a": [0], "b": [1]}), "a", "b")
    large = SeveralAttributes({"a": 200, "b": 200}, epsilon=1, method="all", protocol=DirectEncoding)
    with pytest.raises(ParameterError, match="pairs"):
        large.joint(large.randomize({"a": [0], "b": [1]}), "a", "b")
