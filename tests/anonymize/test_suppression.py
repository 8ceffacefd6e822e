"""The last word on every outcome, whatever an algorithm hands over."""

from __future__ import annotations

import numpy as np
import pytest

import cloister as cl
from cloister.anonymize._partition import SUPPRESSED, Partition, whole
from cloister.anonymize._suppression import merge_alike, suppress_failing
from cloister.anonymize.models import check_of, classes_of
from cloister.anonymize.regions import Values
from cloister.errors import InternalError, UnsatisfiableError
from tests.anonymize.tables import cells_of, full_domain

CELLS = cells_of({"a": [1, 1, 2, 2, 3, 3, 3], "s": ["x", "y", "x", "y", "x", "x", "x"]}, quasi=["a"], sensitive=["s"])
K2, L2 = check_of(cl.KAnonymity(k=2)), check_of(cl.LDiversity("s", l=2))
T = check_of(cl.TCloseness("s", t="0.3"))


def test_failing_classes_are_suppressed_and_the_others_numbered_again() -> None:
    partition = suppress_failing(full_domain(CELLS, (0,)), [K2, L2], values=Values.HIERARCHY, allowed=3)
    assert partition.suppressed == 3
    assert sorted(set(partition.groups.tolist())) == [SUPPRESSED, 0, 1]


def test_more_than_the_limit_is_refused_with_the_models_that_fail() -> None:
    with pytest.raises(UnsatisfiableError, match=r"satisfies l = 2 \(s\) per row within") as caught:
        suppress_failing(full_domain(CELLS, (0,)), [K2, L2], values=Values.HIERARCHY, allowed=2)
    assert "raise suppression_limit" in caught.value.fix


def test_nothing_left_is_refused() -> None:
    nothing = whole(CELLS, np.full(3, SUPPRESSED))
    with pytest.raises(UnsatisfiableError, match="satisfies the models within"):
        suppress_failing(nothing, [K2, L2], values=Values.HIERARCHY, allowed=7)
    with pytest.raises(UnsatisfiableError, match="satisfies k = 9 per row within"):
        suppress_failing(nothing, [check_of(cl.KAnonymity(k=9))], values=Values.HIERARCHY, allowed=7)


def test_closeness_is_checked_again_after_suppression() -> None:
    """Without the class of six the table is less like the class of four, which must go as well."""
    values = ["x"] * 20 + ["x", "x", "y", "y"] + ["y"] * 6
    cells = cells_of({"a": [1] * 20 + [2] * 4 + [3] * 6, "s": values}, quasi=["a"], sensitive=["s"])
    start = full_domain(cells, (0,))
    assert T.holds(classes_of(start)).tolist() == [True, True, False]
    assert suppress_failing(start, [T], values=Values.HIERARCHY, allowed=10).suppressed == 10
    with pytest.raises(UnsatisfiableError):
        suppress_failing(start, [T], values=Values.HIERARCHY, allowed=9)


def test_lost_rows_are_noticed() -> None:
    good = full_domain(CELLS, (0,))
    lost = Partition(cells=CELLS, records=good.records, groups=good.groups, counts=np.ones_like(good.counts))
    with pytest.raises(InternalError):
        suppress_failing(lost, [K2], values=Values.HIERARCHY, allowed=7)


@pytest.mark.parametrize("values", list(Values))
def test_classes_that_show_the_same_are_one(values: Values) -> None:
    numbers = cells_of(
        {"a": [1, 3, 1, 3, 2]},
        [cl.Column(name="a", kind="numeric")],
        quasi=["a"],
    )
    twice = Partition(
        cells=numbers,
        records=np.array([0, 0, 1, 2, 2]),
        groups=np.array([0, 1, SUPPRESSED, 0, 1]),
        counts=np.array([1, 1, 1, 1, 1]),
    )
    found = merge_alike(twice, values)
    assert found.size == 1
    assert found.suppressed == 1


def test_full_domain_classes_are_different_already() -> None:
    partition = full_domain(CELLS, (0,))
    assert merge_alike(partition, Values.HIERARCHY) is partition
