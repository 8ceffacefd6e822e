from __future__ import annotations

from collections import Counter
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from cloister.data.persons import rows_of_persons
from cloister.data.sources import open_table
from cloister.data.table import Table
from cloister.errors import UnknownColumnError
from tests.support.engine_tables import NamedOpener
from tests.support.thoroughness import examples

ROWS = st.lists(
    st.tuples(
        st.sampled_from(["ada", "bob", "eve", None]),
        st.one_of(st.none(), st.integers(0, 3)),
        st.one_of(st.none(), st.sampled_from(["x", "y", ""])),
    ),
    max_size=12,
)


def arrow(rows: list[Any]) -> pa.Table:
    people, numbers, texts = zip(*rows, strict=True) if rows else ((), (), ())
    columns = [pa.array(people, pa.string()), pa.array(numbers, pa.int64()), pa.array(texts, pa.string())]
    return pa.table(columns, names=["person", "number", "text"])


def kept(table: Table, limit: int) -> Counter[Any]:
    few = rows_of_persons(table, unit="person", columns=["number", "text"], limit=limit)
    assert few.columns == ("number", "text")
    listing = few.to_arrow()
    return Counter(zip(*(listing[name].to_pylist() for name in few.columns), strict=True))


def per_person(rows: list[Any], limit: int) -> int:
    people = Counter(person for person, _, _ in rows if person is not None)
    return sum(min(limit, count) for count in people.values())


@settings(suppress_health_check=[HealthCheck.too_slow], max_examples=examples(25, usual=12))
@given(ROWS, st.integers(1, 3), st.sampled_from(["ada", "bob", "eve"]))
def test_tables_without_a_person_differ_in_at_most_so_many_rows(rows: list[Any], limit: int, gone: str) -> None:
    whole = kept(open_table(arrow(rows)), limit)
    fewer = kept(open_table(arrow([row for row in rows if row[0] != gone])), limit)
    assert (fewer - whole).total() == 0
    assert (whole - fewer).total() <= limit
    assert whole.total() == per_person(rows, limit)


@settings(suppress_health_check=[HealthCheck.too_slow], max_examples=examples(20, usual=10))
@given(ROWS, st.integers(1, 3), st.randoms(use_true_random=False))
def test_the_order_of_rows_does_not_matter(rows: list[Any], limit: int, random: Any) -> None:
    shuffled = random.sample(rows, len(rows))
    assert kept(open_table(arrow(rows)), limit) == kept(open_table(arrow(shuffled)), limit)


def test_every_engine_keeps_a_function_of_the_persons_own_rows(any_engine: NamedOpener) -> None:
    rows = [("ada", n % 4, "xy"[n % 2]) for n in range(7)] + [("bob", 1, None), (None, 2, "x"), ("eve", None, "y")]
    whole = kept(any_engine.open(arrow(rows)), 2)
    backwards = kept(any_engine.open(arrow(rows[::-1])), 2)
    without = kept(any_engine.open(arrow(rows[7:])), 2)
    assert whole == backwards
    assert whole.total() == 4
    assert (whole - without).total() == 2
    assert (without - whole).total() == 0


def test_markers_of_missing_values_name_nobody() -> None:
    table = open_table(arrow([("?", 1, "x"), ("ada", 2, "y")]), missing=("?",))
    assert kept(table, 1) == Counter({(2, "y"): 1})


@pytest.mark.parametrize("wrong", [{"unit": "persom"}, {"columns": ["number", "texts"]}])
def test_unknown_columns_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(UnknownColumnError):
        rows_of_persons(open_table(arrow([])), **{"unit": "person", "columns": ["number"], "limit": 1, **wrong})
