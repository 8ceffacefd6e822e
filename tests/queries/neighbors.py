"""Neighboring tables through the noiseless core: how far every measurement and every rank score really moves.

`check_neighbors` compares, in whole numbers and without any tolerance, what the engine computes for a table and for
each of its neighbors with what the design of the question declares.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import duckdb
import pyarrow as pa
from sqlglot import exp

from cloister.data.engines.base import cast_columns
from cloister.data.engines.duckdb import DuckDBEngine
from cloister.data.table import Table
from cloister.queries import _measurements as measurements
from cloister.queries._cells import Ranked
from cloister.queries._contribution import Contribution
from cloister.queries._exact_core import ExactCore
from cloister.queries._measurements import MeasurementDesign
from cloister.queries._question import Question

_NATIVE = {
    pa.int64(): "bigint",
    pa.float64(): "double",
    pa.bool_(): "boolean",
    pa.string(): "varchar",
    pa.date32(): "date",
    pa.timestamp("us"): "timestamp",
}
_NUMBERS = itertools.count()
_CONNECTIONS: list[duckdb.DuckDBPyConnection] = []


class SensitivityExceeded(AssertionError):  # noqa: N818  # it says what happened
    """Neighbors are farther apart than a design declares."""


def fast_table(rows: pa.Table, *, schema: Any = None, name: str | None = None) -> Table:
    """Return a table in one shared DuckDB, which is much faster to open than a database of its own."""
    if not _CONNECTIONS:
        _CONNECTIONS.append(duckdb.connect(":memory:", config={"threads": 1}))
    connection, name = _CONNECTIONS[0], name or f"rows_{next(_NUMBERS)}"
    _register(rows, name)
    engine = DuckDBEngine(
        lambda sql: connection.sql(sql).to_arrow_table(),
        exp.to_table(name),
        names=rows.column_names,
        native_types=[_NATIVE[field.type] for field in rows.schema],
    )
    return Table(engine, schema=schema)


def _register(rows: pa.Table, name: str) -> None:
    _CONNECTIONS[0].register(name, rows.rename_columns([f"c{place}" for place in range(rows.num_columns)]))


@dataclass(frozen=True)
class Observed:
    """The noiseless numbers of a question on one table."""

    design: MeasurementDesign
    vectors: dict[str, dict[Any, int]]
    ranks: tuple[list[Ranked], ...]


QuestionOf = Callable[[Table], Question]
Designer = Callable[[Question, Contribution], MeasurementDesign]


def observe(
    question_of: QuestionOf, contribution: Contribution, table: Table, designer: Designer = measurements.design
) -> Observed:
    question = question_of(table)
    found = designer(question, contribution)
    return _collect(found, ExactCore(question, contribution, found.reach))


def _collect(found: MeasurementDesign, core: ExactCore) -> Observed:
    vectors: dict[str, dict[Any, int]] = {}
    if found.measurements:
        cells = core.cells(found.components)
        groups = list(zip(*cells.shown, strict=True)) if cells.shown else list(range(cells.size))
        for name, measurement in found.measurements.items():
            exact = measurement.vector(cells)
            vectors[name] = {
                (part, group): int(number)
                for part, row in enumerate(exact)
                for group, number in zip(groups, row, strict=True)
            }
    return Observed(found, vectors, tuple(core.ranks(item.number) for item in found.rankings))


def check_neighbors(
    question_of: QuestionOf,
    contribution: Contribution,
    table: Table,
    neighbors: Iterable[Table],
    *,
    designer: Designer = measurements.design,
) -> int:
    """Raise unless every neighbor is within the declared sensitivities; return how many were compared."""
    first = observe(question_of, contribution, table, designer)
    compared = 0
    for neighbor in neighbors:
        compare(first, observe(question_of, contribution, neighbor, designer))
        compared += 1
    return compared


class _Recording:
    """An engine that remembers the SQL it was asked for."""

    def __init__(self, engine: DuckDBEngine) -> None:
        self._engine = engine
        self.asked: list[tuple[str, pa.Schema]] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(self._engine, name)

    def execute(self, query: exp.Select, schema: pa.Schema) -> pa.Table:
        self.asked.append((query.sql(dialect=self._engine.dialect, identify=True), schema))
        return self.run(*self.asked[-1])

    def run(self, sql: str, schema: pa.Schema) -> pa.Table:
        return cast_columns(self._engine._run(sql), schema)


class _Replaying(ExactCore):
    """A core that runs the same SQL once more, in the same order, without building it again."""

    def replay(self, engine: _Recording) -> _Replaying:
        self._engine_asked, self._left = engine, iter(engine.asked)
        return self

    def _next(self, *_: Any) -> pa.Table:
        return self._engine_asked.run(*next(self._left))

    _plain = _weighted = _nested = _run_distinct = _next

    def _rows(self, looked_at: Any) -> Any:
        return self._question.rows


def check_contents(
    question_of: QuestionOf, contribution: Contribution, rows: pa.Table, neighbors: Iterable[pa.Table]
) -> int:
    """Do as `check_neighbors` for one table whose contents are exchanged: its SQL is the same, and made once."""
    name = f"rows_{next(_NUMBERS)}"
    engine = _Recording(fast_table(rows, name=name).engine)  # type: ignore[arg-type]
    question = question_of(Table(engine))  # type: ignore[arg-type]
    found = measurements.design(question, contribution)
    first = _collect(found, ExactCore(question, contribution, found.reach))
    compared = 0
    for neighbor in neighbors:
        _register(neighbor, name)
        core = _Replaying(question, contribution, found.reach).replay(engine)
        compare(first, _collect(found, core))
        compared += 1
    _CONNECTIONS[0].unregister(name)
    return compared


def compare(first: Observed, second: Observed) -> None:
    """Raise unless two observations are within the sensitivities that the first one's design declares."""
    for name, measurement in first.design.measurements.items():
        one, two = first.vectors[name], second.vectors[name]
        moved = [two.get(place, 0) - one.get(place, 0) for place in one.keys() | two.keys()]
        l1, squared = sum(map(abs, moved)), sum(step**2 for step in moved)
        if l1 > measurement.l1 or squared > measurement.squared_l2:
            raise SensitivityExceeded(
                f"{name}: moved by {l1} (L1) and {squared} (squared L2), declared are {measurement.l1} and "
                f"{measurement.squared_l2}"
            )
    for place, ranking in enumerate(first.design.rankings):
        moved_scores = score_moves(first, second, place)
        if moved_scores > ranking.sensitivity:
            raise SensitivityExceeded(f"ranks moved by {moved_scores}, declared is {ranking.sensitivity}")
    if first.design.selects_keys:
        _compare_chosen_groups(first, second)


def score_moves(first: Observed, second: Observed, place: int) -> Fraction:
    """Return the largest move of any score in each group, summed over the groups, for the worst of several offsets."""
    ranked = first.design.rankings[place].target
    scale = first.design.reach.scale
    if not ranked.is_extreme:
        targets = [(ranked.fraction, Fraction(0))]
    elif ranked.fraction == 1:
        targets = [(Fraction(1), Fraction(-offset * scale)) for offset in (0, 1, 3)]
    else:
        targets = [(Fraction(0), Fraction(offset * scale)) for offset in (0, 1, 3)]
    low, high = ranked.number.low, ranked.number.high
    return max(
        sum(
            (_largest_move(one, two, low, high, target) for one, two in zip(*_pair(first, second, place), strict=True)),
            Fraction(0),
        )
        for target in targets
    )


def _pair(first: Observed, second: Observed, place: int) -> tuple[list[Ranked], list[Ranked]]:
    return first.ranks[place], second.ranks[place]


def _largest_move(one: Ranked, two: Ranked, low: int, high: int, target: tuple[Fraction, Fraction]) -> Fraction:
    used = {int(position) for item in (one, two) for position in item.positions}
    points = {point for position in used for point in (position - 1, position, position + 1)} | {low, high}
    inside = [point for point in points if low <= point <= high]
    return max(abs(_score(one, point, target) - _score(two, point, target)) for point in inside)


def _score(ranked: Ranked, point: int, target: tuple[Fraction, Fraction]) -> Fraction:
    pairs = [(int(at), int(weight)) for at, weight in zip(ranked.positions, ranked.weights, strict=True)]
    wanted = target[0] * sum(weight for _, weight in pairs) + target[1]
    below = sum(weight for at, weight in pairs if at < point)
    upto = sum(weight for at, weight in pairs if at <= point)
    return -max(Fraction(0), below - wanted, wanted - upto)


def _compare_chosen_groups(first: Observed, second: Observed) -> None:
    """Raise if a unit is alone in more groups than it may be, or weighs more than one unit there."""
    name = "units" if "units" in first.vectors else "rows"
    one, two = first.vectors[name], second.vectors[name]
    alone = one.keys() ^ two.keys()
    heaviest = max((abs({**one, **two}[place]) for place in alone), default=0)
    if len(alone) > first.design.reach.groups or heaviest > first.design.reach.scale:
        raise SensitivityExceeded(f"a unit is alone in {len(alone)} groups, with a weight of {heaviest}")


def without_rows(rows: pa.Table, places: Sequence[int]) -> pa.Table:
    kept = [place for place in range(rows.num_rows) if place not in set(places)]
    return rows.take(pa.array(kept, pa.int64()))


def with_rows(rows: pa.Table, more: Sequence[dict[str, Any]]) -> pa.Table:
    return pa.concat_tables([rows, pa.Table.from_pylist(list(more), schema=rows.schema)])
