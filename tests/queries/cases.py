"""Questions about small tables, as SQL for an engine and as rows for the reference."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import product
from typing import Any

from sqlglot import exp

from cloister.core.guarantees import Adjacency
from cloister.data.engines.predicates import resolve_condition
from cloister.data.table import Table
from cloister.data.values import StorageType
from cloister.queries._aggregates import CountRows
from cloister.queries._cells import Component, ExactCells
from cloister.queries._contribution import Contribution, Reach
from cloister.queries._exact_core import ExactCore
from cloister.queries._measurements import ROWS, UNITS
from cloister.queries._question import FixedPointNumber, QueryRows, Question
from cloister.queries.catalog import column_key, column_number, present_value
from tests.queries.reference import Group, Reference, Row, steps_of
from tests.support.conditions import Condition
from tests.support.engine_tables import Opener, arrow_table
from tests.support.reference import Columns, clean

INTEGER, REAL, BOOLEAN = StorageType.INTEGER, StorageType.REAL, StorageType.BOOLEAN
TEXT, DATE, TIMESTAMP = StorageType.TEXT, StorageType.DATE, StorageType.TIMESTAMP


@dataclass(frozen=True, kw_only=True)
class Case:
    """A table and a question: a number ``x``, groups ``by``, a unit of privacy and its limits."""

    data: Columns
    person: str | None = None
    limit: int = 1
    per_group: int | None = None
    groups: int | None = None
    bounding: str = "weight"
    order: str | None = None
    adjacency: str = "add_remove"
    by: Mapping[str, Sequence[Any] | None] = field(default_factory=dict)
    number: str = "x"
    bounds: tuple[Any, Any] = (0, 10)
    granularity: Fraction | None = None
    where: Condition | None = None
    rows_per_person: int | None = None

    def contribution(self, table: Table) -> Contribution:
        return Contribution(
            adjacency=Adjacency.USER if self.person else Adjacency(self.adjacency),
            unit=self.person or "row",
            limit=self.limit,
            per_group=self.per_group,
            groups=self.groups,
            bounding=self.bounding,
            order=None if self.order is None else present_value(table, self.order),
            ordered=table.engine.source(),
        )

    def question(self, table: Table) -> Question:
        engine = table.engine
        condition: exp.Expression | None = None if self.where is None else resolve_condition(self.where[0], engine)
        rows = QueryRows(
            engine=engine,
            source=engine.source(),
            condition=condition,
            person=None if self.person is None else present_value(table, self.person),
            rows_per_person=self.rows_per_person,
        )
        keys = tuple(column_key(table, name, values=values) for name, values in self.by.items())
        return Question(rows=rows, aggregates=(CountRows(),), keys=keys)

    def of(self, table: Table) -> FixedPointNumber:
        return column_number(table, self.number, bounds=self.bounds, granularity=self.granularity)

    def reference(self, table: Table, reach: Reach) -> Reference:
        names = list(self.data)
        length = len(next(iter(self.data.values()))[1])
        kept = []
        for place in range(length):
            row = {name: clean(self.data[name][1][place]) for name in names}
            if self.where is None or self.where[1](row) is True:
                kept.append(row)
        unit = self.of(table).unit
        rows = [
            Row(
                person=None if self.person is None else row[self.person],
                group=tuple(row[name] for name in self.by),
                steps=steps_of(row[self.number], bounds=self.bounds, unit=unit),
                value=row[self.number],
                order=None if self.order is None else row[self.order],
            )
            for row in kept
        ]
        return Reference(
            rows=rows,
            contribution=self.contribution(table),
            reach=reach,
            by_person=self.person is not None,
            chooses_groups=any(values is None for values in self.by.values()),
        )


def check(case: Case, open_rows: Opener) -> None:
    """Compare everything that the exact core computes with the reference."""
    table = open_rows(arrow_table(case.data))
    question, contribution, number = case.question(table), case.contribution(table), case.of(table)
    reach = contribution.reach(question, largest=max(number.high - number.low, 1) ** 2)
    core, expected = ExactCore(question, contribution, reach), case.reference(table, reach)
    center = number.center
    parts = {
        "rows": ROWS,
        "present": Component.of_number("present", number),
        "total": Component.of_number("total", number),
        "centered": Component.of_number("total", number, center),
        "square": Component.of_number("square", number, center),
    }
    for with_units in (False, True) if case.person else (False,):
        wanted = [*parts.values(), *([UNITS] if with_units else [])]
        cells = core.cells(wanted)
        want = {
            "rows": expected.counts(with_units=with_units),
            "present": expected.present(with_units=with_units),
            "total": expected.totals(0, 1, with_units=with_units),
            "centered": expected.totals(center, 1, with_units=with_units),
            "square": expected.totals(center, 2, with_units=with_units),
        }
        for name, part in parts.items():
            assert tabulated(case, cells, part) == shown(case, want[name], expected), name
        if with_units:
            assert tabulated(case, cells, UNITS) == shown(case, expected.unit_counts(), expected)
    if not expected.chooses_groups:
        _check_public(case, core, expected, number)


def _check_public(case: Case, core: ExactCore, expected: Reference, number: FixedPointNumber) -> None:
    groups = public_groups(case)
    ranked = core.ranks(number)
    found = [dict(zip(item.positions.tolist(), item.weights.tolist(), strict=True)) for item in ranked]
    ranks = expected.ranks()
    assert found == [ranks.get(group, {}) for group in groups]
    units = expected.units()
    assert core.units().tolist() == [units.get(group, 0) for group in groups]
    value = Component.of_value("distinct", present_value_of(case, core))
    assert tabulated(case, core.cells([value]), value) == shown(case, expected.distinct(), expected)


def present_value_of(case: Case, core: ExactCore) -> exp.Expression:
    table = Table(core._engine)
    return present_value(table, case.number)


def public_groups(case: Case) -> list[Group]:
    return list(product(*(values or () for values in case.by.values())))


def tabulated(case: Case, cells: ExactCells, part: Component) -> dict[Group, int]:
    numbers = [int(number) for number in cells.numbers[part]]
    groups = list(zip(*cells.shown, strict=True)) if cells.shown else public_groups(case)
    assert cells.size == len(groups) == len(numbers)
    return dict(zip(groups, numbers, strict=True))


def shown(case: Case, numbers: dict[Group, int], expected: Reference) -> dict[Group, int]:
    """Return the numbers of the groups that an answer has: all public ones, or those that occur and have all keys."""
    if not expected.chooses_groups:
        return {group: numbers.get(group, 0) for group in public_groups(case)}
    occurring = expected.unit_counts() if expected.by_person else expected.counts()
    return {
        group: numbers.get(group, 0)
        for group in occurring
        if all(
            item is not None and (values is None or item in values)
            for item, values in zip(group, case.by.values(), strict=True)
        )
    }
