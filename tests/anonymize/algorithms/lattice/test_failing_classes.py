from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings, strategies as st

from cloister.anonymize.algorithms.lattice._failing_classes import deficits
from cloister.anonymize.models import EquivalenceClasses, check_of
from cloister.core.guarantees import AlphaKAnonymity, BetaLikeness, KAnonymity, LDiversity, TCloseness
from tests.support.lattices import Row, SmallTable
from tests.support.thoroughness import examples

SHARES: tuple[Any, ...] = (
    AlphaKAnonymity("s", alpha=Fraction(1, 2), k=1),
    LDiversity("s", l=Fraction(3, 2), kind="frequency"),
    LDiversity("s", l=2, kind="frequency"),
    LDiversity("s", l=Fraction(3, 2), kind="entropy"),
    LDiversity("s", l=2, kind="entropy"),
    LDiversity("s", l=2, kind="recursive", c=Fraction(3, 2)),
    LDiversity("s", l=3, kind="recursive", c=2),
    TCloseness("s", t=Fraction(1, 5)),
    TCloseness("s", t=Fraction(1, 10), kind="kl"),
    TCloseness("s", t=Fraction(1, 10), kind="ordered"),
    TCloseness("s", t=Fraction(1, 10), kind="hierarchical"),
    BetaLikeness("s", beta=Fraction(1, 2)),
    BetaLikeness("s", beta=1, kind="enhanced"),
)


def two_classes(one: tuple[int, ...], other: tuple[int, ...]) -> EquivalenceClasses:
    """Return the classes of a table in which sensitive values occur as often as stated."""
    rows: list[Row] = []
    for place, counts in enumerate((one, other)):
        rows += [((place,), value, 0) for value, count in enumerate(counts) for _ in range(count)]
    cells = SmallTable(trees=(((0, 1), (0, 0)),), weights=(1.0,), rows=tuple(rows)).cells()
    groups = np.unique(cells.codes[cells.record_cells, 0], return_inverse=True)[1]
    return EquivalenceClasses(
        cells=cells,
        records=np.arange(len(cells.record_weights)),
        groups=groups,
        counts=cells.record_weights,
        size=int(groups.max()) + 1,
    )


COUNTS = st.tuples(*(st.integers(0, 6) for _ in range(3)))


@pytest.mark.parametrize("model", SHARES, ids=str)
@settings(max_examples=examples(100, usual=30))
@given(part=COUNTS, lost=COUNTS, other=COUNTS)
def test_no_part_of_a_class_that_holds_is_larger_than_the_deficit_allows(
    model: Any, part: tuple[int, ...], lost: tuple[int, ...], other: tuple[int, ...]
) -> None:
    assume(sum(part) > 0)
    check = check_of(model)
    whole = tuple(np.add(part, lost).tolist())
    lacking = deficits(check, two_classes(whole, other), released=sum(part) + sum(other))[0]
    assert lacking <= sum(lost) or not check.holds(two_classes(part, other))[0]


@pytest.mark.parametrize(
    ("model", "lacking"),
    [
        (LDiversity("s", l=2, kind="frequency"), 4),
        (LDiversity("s", l=2, kind="entropy"), 4),
        (LDiversity("s", l=2, kind="recursive", c=2), 3),
        (AlphaKAnonymity("s", alpha=Fraction(2, 3), k=2), 3),
        (TCloseness("s", t=Fraction(1, 10)), 4),
        (KAnonymity(k=50), 0),
        (LDiversity("s", l=2), 0),
    ],
)
def test_a_class_of_five_and_one_lacks_rows(model: Any, lacking: int) -> None:
    assert deficits(check_of(model), two_classes((5, 1, 0), (4, 8, 0)), released=18)[0] == lacking


def test_nothing_is_said_when_everything_may_be_suppressed() -> None:
    check = check_of(LDiversity("s", l=2, kind="frequency"))
    assert deficits(check, two_classes((5, 1, 0), (0, 1, 0)), released=0).tolist() == [0, 0]
