from __future__ import annotations

import math
import tempfile
from datetime import date, datetime
from fractions import Fraction
from pathlib import Path
from typing import Any

from hypothesis import assume, given, settings, strategies as st

from cloister.data.columns import BOUNDED, FACTS, Column, Kind, Missing, Role
from cloister.data.hierarchy import Hierarchy
from cloister.data.schema import Schema

texts = st.text(max_size=12)
numbers = st.fractions() | st.floats(allow_nan=False, allow_infinity=False).map(lambda x: Fraction(repr(x)))
odd_texts = texts | st.sampled_from(
    ["yes", "no", "null", "~", "01", "1e5", "2020-01-01", "true", "1_000", "=", "<<", "0x1"]
)


@st.composite
def bounds(draw: st.DrawFn, kind: Kind) -> Any:
    ends: st.SearchStrategy[Any] = st.dates() | st.datetimes() if kind is Kind.DATETIME else numbers
    first, last = draw(ends), draw(ends)
    assume(isinstance(first, datetime) == isinstance(last, datetime))
    assume(first != last)
    return (min(first, last), max(first, last))


@st.composite
def categories(draw: st.DrawFn) -> tuple[Any, ...]:
    item = draw(
        st.sampled_from([odd_texts, st.integers(), st.booleans(), st.floats(allow_nan=False, allow_infinity=False)])
    )
    return tuple(draw(st.lists(item, min_size=1, max_size=5, unique=True)))


@st.composite
def taxonomies(draw: st.DrawFn) -> Hierarchy:
    """Random trees: names are made unique by their place, leaves are arbitrary text."""
    leaves = draw(st.lists(st.text(max_size=4), min_size=1, max_size=12, unique=True))
    height = draw(st.integers(0, 3))
    size = len(leaves)
    columns = [list(range(size))]
    for _ in range(height):
        merge = draw(st.lists(st.integers(0, size // 2), min_size=size, max_size=size))
        columns.append([merge[code] for code in columns[-1]])
    prefix = draw(st.sampled_from(["group ", "a;b\n", 'say "', "\r"]))
    rows = [
        [leaves[row], *(f"{prefix}{level}/{column[row]}" for level, column in enumerate(columns[1:], start=1))]
        for row in range(size)
    ]
    assume(not {name for row in rows for name in row[1:]} & set(leaves))
    assume("*" not in leaves)
    return Hierarchy.from_levels(rows)


@st.composite
def columns(draw: st.DrawFn, name: str) -> Column:
    kind = draw(st.sampled_from(list(Kind)))
    return Column(
        name=name,
        role=draw(st.sampled_from(list(Role))),
        kind=kind,
        bounds=draw(st.none() | bounds(kind)) if kind in BOUNDED else None,
        categories=draw(st.none() | categories()),
        hierarchy=draw(st.none() | taxonomies()),
        weight=draw(st.fractions(min_value=Fraction(1, 10**6))),
        missing=draw(st.sampled_from(list(Missing))),
        guessed=draw(st.frozensets(st.sampled_from(FACTS))),
        evidence=draw(texts),
    )


schemas = st.lists(odd_texts.filter(bool), min_size=1, max_size=4, unique=True).flatmap(
    lambda names: st.tuples(*(columns(name) for name in names)).map(Schema)
)


@settings(max_examples=40)
@given(schemas)
def test_a_schema_survives_its_file(schema: Schema) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "schema.yaml"
        schema.write(path)
        again = Schema.read(path)
    assert again == schema
    assert types_of(again) == types_of(schema)


def types_of(schema: Schema) -> list[list[type]]:
    return [[type(value) for value in column.categories or ()] for column in schema.values()]


@settings(max_examples=40)
@given(schemas)
def test_a_schema_survives_its_plain_values(schema: Schema) -> None:
    assert Schema.from_dict(schema.to_dict()) == schema


@settings(max_examples=40)
@given(schemas)
def test_confirming_twice_is_confirming_once(schema: Schema) -> None:
    once = schema.confirm()
    assert once.confirm() == once
    once.require_confirmed()
    assert once.names == schema.names


@given(taxonomies())
def test_a_hierarchy_survives_its_text(hierarchy: Hierarchy) -> None:
    assert Hierarchy.parse(hierarchy.to_csv_text()) == hierarchy
    assert Hierarchy.from_levels(hierarchy.rows()) == hierarchy


@given(taxonomies())
def test_each_level_is_coarser_and_generalizing_again_changes_nothing(hierarchy: Hierarchy) -> None:
    for level in range(hierarchy.height):
        here, above = hierarchy.codes_at(level), hierarchy.codes_at(level + 1)
        assert len(set(zip(here.tolist(), above.tolist(), strict=True))) == len(hierarchy.levels[level])
        assert len(hierarchy.levels[level + 1]) <= len(hierarchy.levels[level])
    assert list(hierarchy.generalize(hierarchy.leaves, level=0)) == list(hierarchy.leaves)
    for level, names in enumerate(hierarchy.levels):
        for name in names:
            below = hierarchy.leaves_under(name)
            assert below
            if level < hierarchy.height and name not in hierarchy.levels[level + 1]:
                assert set(hierarchy.generalize(list(below), level=level)) == {name}


@given(taxonomies(), st.data())
def test_laws_of_the_lowest_common_ancestor(hierarchy: Hierarchy, data: st.DataObject) -> None:
    leaf = st.sampled_from(hierarchy.leaves)
    some = data.draw(st.lists(leaf, min_size=1, max_size=5))
    more = data.draw(st.lists(leaf, min_size=1, max_size=5))
    node = hierarchy.lowest_common_ancestor(some)
    assert set(hierarchy.generalize(some, level=node.level)) == {node.label}
    if node.level:
        assert len(set(hierarchy.generalize(some, level=node.level - 1))) > 1
    assert hierarchy.lowest_common_ancestor(some[::-1]) == node
    assert hierarchy.lowest_common_ancestor(some + some) == node
    assert hierarchy.lowest_common_ancestor([some[0]]).level == 0
    both = hierarchy.lowest_common_ancestor(some + more)
    assert both.level >= max(node.level, hierarchy.lowest_common_ancestor(more).level)
    assert set(some) <= set(hierarchy.leaves_under(both.label))


@given(st.integers(-50, 50), st.integers(0, 60), st.integers(1, 7), st.lists(st.integers(2, 3), max_size=2), st.data())
def test_every_value_lies_in_its_intervals(
    low: int, count: int, width: int, factors: list[int], data: st.DataObject
) -> None:
    widths = [width * math.prod(factors[:place]) for place in range(len(factors) + 1)]
    origin = data.draw(st.integers(-10, 10))
    hierarchy = Hierarchy.intervals((low, low + count), widths=widths, origin=origin)
    value = data.draw(st.integers(low, low + count))
    for level, size in enumerate(widths, start=1):
        first = origin + (value - origin) // size * size
        assert hierarchy.generalize(value, level=level) == f"[{first}, {first + size})"
    assert not hierarchy.covers(low - 1)
    assert not hierarchy.covers(low + count + 1)


@given(st.dates(date(1600, 1, 1), date(2300, 1, 1)))
def test_dates_agree_with_the_calendar(day: date) -> None:
    hierarchy = Hierarchy.dates(day, day)
    quarter = (day.month + 2) // 3
    assert hierarchy.rows()[0][1:5] == (
        f"{day:%Y-%m}",
        f"{day.year}-Q{quarter}",
        str(day.year),
        f"{day.year // 10}0s",
    )
