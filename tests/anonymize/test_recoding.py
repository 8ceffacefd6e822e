"""Rows recoded in their engine are what the classes show, on every engine and for every way of recoding."""

from __future__ import annotations

import datetime as dt
from collections import Counter
from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from cloister.anonymize._partition import SUPPRESSED, Partition, verify, whole
from cloister.anonymize._recoding import recode_table
from cloister.anonymize.cells import CodedCells, read_cells
from cloister.anonymize.regions import Regions, Values
from cloister.data.columns import Column
from cloister.data.hierarchy import Hierarchy
from cloister.data.schema import Schema
from cloister.data.table import Table
from cloister.errors import DataError
from tests.anonymize.tables import full_domain
from tests.support.engine_tables import NamedOpener
from tests.support.members import gather
from tests.support.thoroughness import on_engines

CITY = 'ci"ty'
SCHEMA = Schema(
    [
        Column(name="id", role="identifier", subject=True),
        Column(name="age", kind="numeric", hierarchy=Hierarchy.intervals((20, 59), widths=[10, 20])),
        Column(name=CITY, hierarchy=Hierarchy.taxonomy({"north": ["o'ne", "two"], "south": ["three"]})),
        Column(name="weight", kind="numeric"),
        Column(name="born", kind="datetime"),
        Column(name="disease", role="sensitive"),
        Column(name="note", role="insensitive"),
    ]
)
QUASI = ["age", CITY, "weight", "born"]


def people(count: int = 60) -> pa.Table:
    def scattered(size: int, seed: int) -> list[int]:
        return [(number * 7919 + seed) ** 3 % 104729 % size for number in range(count)]

    ages = [None if number == 3 else 20 + number % 5 for number in scattered(6, 1)]
    return pa.table(
        {
            "id": pa.array([f"p{number}" for number in range(count)]),
            "age": pa.array(ages, pa.int64()),
            CITY: pa.array([["o'ne", "two", "three", None][number] for number in scattered(4, 18)]),
            "weight": pa.array([[0.1, 0.3, None][number] for number in scattered(3, 27)], pa.float64()),
            "born": pa.array([dt.date(1980, 1, 1 + int(day)) for day in scattered(2, 51)]),
            "disease": pa.array([["flu", "cold", None][number] for number in scattered(3, 66)]),
            "note": pa.array([f"n{number % 4}" for number in range(count)]),
        }
    )


def cells_of(table: Table) -> CodedCells:
    return read_cells(table, SCHEMA, quasi=QUASI, sensitive=["disease"])


def expected(rows: pa.Table, regions: Regions) -> Counter[tuple[Any, ...]]:
    """Deal the rows out one by one, in plain Python."""
    partition = regions.partition
    cells = partition.cells
    labels = [regions.labels(place) for place in range(len(QUASI))]
    shown: Counter[tuple[Any, ...]] = Counter()
    left = {}
    for record, group, count in zip(partition.records, partition.groups, partition.counts, strict=True):
        left.setdefault(int(record), []).append([int(group), int(count)])
    codes = [dict(zip(s.values, s.codes, strict=True)) for s in cells.sources]
    index = {
        (*cells.codes[cell], value[0]): record
        for record, (cell, value) in enumerate(zip(cells.record_cells, cells.record_values, strict=True))
    }
    for row in rows.to_pylist():
        key = tuple(codes[place][row[name]] for place, name in enumerate([*QUASI, "disease"]))
        deal = left[index[key]]
        deal[0][1] -= 1
        group = deal[0][0]
        if not deal[0][1]:
            deal.pop(0)
        if group != SUPPRESSED:
            exact = partition.levels or ()
            cells_shown = [
                row[name] if exact and exact[place] == 0 else labels[place][group] for place, name in enumerate(QUASI)
            ]
            shown[(*cells_shown, row["disease"])] += 1
    return shown


def released(table: Table, regions: Regions) -> Counter[tuple[Any, ...]]:
    columns = recode_table(table, regions, drop=["id"], schema=None).to_arrow()
    assert columns.column_names == ["age", CITY, "weight", "born", "disease", "note"]
    rows = columns.select([*QUASI, "disease"]).to_pylist()
    return Counter(tuple(row.values()) for row in rows)


_OPENED: dict[tuple[str, int], tuple[pa.Table, Table, CodedCells]] = {}


def opened(engine: NamedOpener, count: int = 60) -> tuple[pa.Table, Table, CodedCells]:
    """Return rows, the same rows in an engine, and their cells: made once, since nobody changes them."""
    key = (engine.name, count)
    if key not in _OPENED:
        rows = people(count)
        table = engine.open(rows)
        _OPENED[key] = rows, table, cells_of(table)
    return _OPENED[key]


FULL_DOMAIN = [
    (levels, suppress)
    for levels in [(0, 0, 0, 0), (1, 1, 0, 1), (2, 2, 1, 1), (3, 0, 1, 0)]
    for suppress in (False, True)
]
ON_SPARK = [((1, 1, 0, 1), False), ((3, 0, 1, 0), True)]
"""With and without suppressed rows, each beside columns that stay as they are; the others take a second each."""
ON_ENGINES = [*on_engines(FULL_DOMAIN, spark=ON_SPARK), *product(gather("data", "OPENERS"), FULL_DOMAIN)]


@pytest.mark.parametrize(("any_engine", "case"), ON_ENGINES, indirect=["any_engine"], ids=str)
def test_full_domain_recoding_joins_names(any_engine: NamedOpener, case: tuple[tuple[int, ...], bool]) -> None:
    rows, table, cells = opened(any_engine)
    levels, suppress = case
    partition = full_domain(cells, levels)
    if suppress:
        partition = partition.without(np.arange(partition.size) % 3 == 0)
    regions = Regions(partition=partition)
    assert released(table, regions) == expected(rows, regions)


@pytest.mark.parametrize("values", list(Values))
def test_classes_of_whole_cells_show_what_they_show(any_engine: NamedOpener, values: Values) -> None:
    rows, table, cells = opened(any_engine)
    groups = np.arange(len(cells)) % 5 - 1
    regions = Regions(partition=whole(cells, groups), values=values)
    assert released(table, regions) == expected(rows, regions)


def test_rows_of_one_record_go_to_several_classes(any_engine: NamedOpener) -> None:
    rows, table, cells = opened(any_engine, 200)
    base = whole(cells, np.arange(len(cells)) % 4)
    large = np.flatnonzero(cells.record_weights >= 3)
    assert len(large) > 3
    counts = base.counts.copy()
    counts[large] -= 2
    partition = Partition(
        cells=cells,
        records=np.concatenate([base.records, large, large]),
        groups=np.concatenate([base.groups, np.full(len(large), 4), np.full(len(large), SUPPRESSED)]),
        counts=np.concatenate([counts, np.ones(2 * len(large), dtype=np.int64)]),
    )
    verify(partition)
    regions = Regions(partition=partition)
    first = released(table, regions)
    assert first == expected(rows, regions)
    assert first == released(table, regions)


def test_the_order_of_rows_says_nothing_about_the_order_they_came_in() -> None:
    from cloister.data.sources import open_table

    rows = people()
    shuffled = rows.take([(7 * number) % 60 for number in range(60)])
    results = []
    for source in (rows, shuffled):
        table = open_table(source)
        regions = Regions(partition=full_domain(cells_of(table), (2, 1, 1, 1)))
        results.append(recode_table(table, regions, drop=["id"], schema=None).to_arrow())
    assert results[0].equals(results[1])


def test_keys_beyond_64_bits_are_split(any_engine: NamedOpener) -> None:
    rows, table, cells = opened(any_engine)
    wide = replace(cells, sources=tuple(replace(source, size=2**30) for source in cells.sources))
    regions = Regions(partition=whole(wide, np.arange(len(cells)) % 7 - 1))
    assert released(table, regions) == expected(rows, regions)


def test_a_relation_of_somebody_else_is_copied_first() -> None:
    import duckdb

    from cloister.data.sources import open_table

    rows = people()
    connection = duckdb.connect()
    connection.register("people", rows)
    table = open_table(connection.table("people"))
    regions = Regions(partition=full_domain(cells_of(table), (1, 1, 1, 1)))
    assert released(table, regions) == expected(rows, regions)


@pytest.mark.postgres
@pytest.mark.slow
def test_a_released_table_can_be_stored_in_its_database(postgres_server: str) -> None:
    from cloister.data.engines._postgres import PostgresEngine
    from cloister.data.sources import open_table
    from tests.support.engine_tables import postgres_opener

    table = postgres_opener(postgres_server)(people())
    regions = Regions(partition=full_domain(cells_of(table), (1, 1, 1, 1)))
    derived = recode_table(table, regions, drop=["id"], schema=None)
    assert isinstance(derived.engine, PostgresEngine)
    derived.engine.store("released_people")
    again = open_table(postgres_server, name="released_people")
    assert again.frequencies(["age", CITY]).equals(derived.frequencies(["age", CITY]))
    with pytest.raises(DataError, match="choose a name that is not taken"):
        derived.engine.store("released_people")
