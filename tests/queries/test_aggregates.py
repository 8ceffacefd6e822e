"""Laws of the family of aggregates: every registered one obeys them, under each unit of privacy, in groups or not."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import cloister as cl
from cloister.core.guarantees import Adjacency
from cloister.data.table import Table
from cloister.errors import InternalError, ParameterError
from cloister.queries import _measurements as measurements
from cloister.queries._aggregates import Aggregate, AggregateKind, AggregateOperand, Mean, Total, aggregates
from cloister.queries._aggregates.base import register, sql_functions
from cloister.queries._contribution import Contribution
from cloister.queries._question import QueryRows, Question
from cloister.queries.catalog import column_key, column_number, present_value
from tests.queries.neighbors import (
    SensitivityExceeded,
    check_contents,
    check_neighbors,
    fast_table,
    with_rows,
    without_rows,
)
from tests.support.thoroughness import examples

REFERENCE = Path(__file__).parents[2] / "docs" / "reference" / "queries.md"
KINDS = list(aggregates)
ARROW = pa.schema([("who", pa.string()), ("g", pa.string()), ("x", pa.float64())])
UNITS = {
    "row": Contribution(),
    "replaced row": Contribution(adjacency=Adjacency.REPLACE),
    "person": Contribution(adjacency=Adjacency.USER, unit="who", limit=2),
    "person, some groups": Contribution(adjacency=Adjacency.USER, unit="who", limit=2, per_group=1, groups=1),
}
BOUNDS = (-3, 7)
REPLACED = examples(5, usual=3)
"""How many of the rows are replaced, each by every new one."""


def row(who: str, g: str | None, x: float | None) -> dict[str, Any]:
    return {"who": who, "g": g, "x": x}


ROWS = [row("ann", "a", 7.0), row("ann", "b", -3.0), row("bob", "a", None), row("cy", "b", 2.0), row("cy", "b", 6.5)]
NEW = [row("eve", g, x) for g in ("a", "b", None) for x in (-3.0, 2.0, 7.0, -99.0, math.inf, math.nan, None)]


def table_of(rows: list[dict[str, Any]]) -> pa.Table:
    return pa.Table.from_pylist(rows, schema=ARROW)


def make(kind: str, table: Table) -> Aggregate:
    found = aggregates.get(kind)
    if found.operand is AggregateOperand.ROWS:
        return found.make()
    if found.operand is AggregateOperand.VALUE:
        return found.make(present_value(table, "x"), "x")
    number = column_number(table, "x", bounds=BOUNDS, is_squared=found.is_squared)
    return found.make(number, *found.examples)


def asking(kind: str, by: tuple[str, ...], *, person: bool) -> Callable[[Table], Question]:
    def build(table: Table) -> Question:
        who = present_value(table, "who") if person else None
        rows = QueryRows(engine=table.engine, source=table.engine.source(), person=who)
        keys = tuple(column_key(table, name, values=["a", "b"]) for name in by)
        return Question(rows=rows, aggregates=(make(kind, table),), keys=keys)

    return build


def neighbors_of(contribution: Contribution) -> list[pa.Table]:
    rows = table_of(ROWS)
    if contribution.is_person:
        fewer = [
            without_rows(rows, [place for place, one in enumerate(ROWS) if one["who"] == who]) for who in ("ann", "cy")
        ]
        return fewer + [with_rows(rows, more) for more in ([NEW[0]] * 3, NEW[:4], [NEW[2], NEW[9]], NEW)]
    gone = [without_rows(rows, [place]) for place in range(len(ROWS))]
    if contribution.adjacency is Adjacency.REPLACE:
        # The first ones are the largest, the least and the missing number, in both groups.
        return [with_rows(fewer, [one]) for fewer in gone[:REPLACED] for one in NEW]
    return gone + [with_rows(rows, [one]) for one in NEW]


@pytest.mark.parametrize("by", [(), ("g",)], ids=["whole", "groups"])
@pytest.mark.parametrize("unit", UNITS)
@pytest.mark.parametrize("kind", KINDS)
def test_no_neighbor_is_farther_away_than_declared(kind: str, unit: str, by: tuple[str, ...]) -> None:
    contribution = UNITS[unit]
    others = neighbors_of(contribution)
    build = asking(kind, by, person=contribution.is_person)
    assert check_contents(build, contribution, table_of(ROWS), others) == len(others)


@pytest.mark.parametrize("kind", KINDS)
def test_half_of_what_is_declared_would_be_too_little(kind: str) -> None:
    def halved(question: Question, contribution: Contribution) -> measurements.MeasurementDesign:
        found = measurements.design(question, contribution)
        less = {
            name: replace(item, l1=(item.l1 - 1) // 2, squared_l2=(item.squared_l2 - 1) // 4)
            for name, item in found.measurements.items()
        }
        rankings = tuple(replace(item, sensitivity=item.sensitivity / 2) for item in found.rankings)
        return replace(found, measurements=less, rankings=rankings)

    others = [fast_table(rows) for rows in neighbors_of(Contribution())]
    with pytest.raises(SensitivityExceeded):
        check_neighbors(
            asking(kind, (), person=False), Contribution(), fast_table(table_of(ROWS)), others, designer=halved
        )


@pytest.mark.parametrize("by", [[], ["g"]], ids=["whole", "groups"])
@pytest.mark.parametrize("kind", KINDS)
def test_an_answer_is_paid_once_and_told_again(kind: str, by: list[str]) -> None:
    g, x = cl.Column(name="g", categories=("a", "b")), cl.Column(name="x", kind="numeric", bounds=BOUNDS)
    table = cl.open_table(table_of(ROWS).drop_columns(["who"]), schema=cl.Schema([g, x]))
    private = cl.PrivateTable(table, budget=cl.Budget(epsilon=1))
    found = aggregates.get(kind)
    measure = (kind, *(() if found.operand is AggregateOperand.ROWS else ("x",)), *found.examples)
    first, again = (private.aggregate({"m": measure}, by=by, epsilon="0.5") for _ in range(2))
    assert private.remaining == cl.Budget(epsilon="0.5")
    assert first.guarantee.brief() == again.guarantee.brief() == "epsilon = 0.5 per row"
    one, other = first.column("m"), again.column("m")
    assert one.values.tolist() == other.values.tolist()
    assert len(one.values) == (2 if by else 1)
    # Either there is a half-width, or words say what is known of the error.
    assert (one.margins() >= 0).all() or getattr(one.error, "words", "")


@pytest.mark.parametrize("kind", KINDS)
def test_every_aggregate_is_in_the_reference(kind: str) -> None:
    line = re.search(rf"^\| `{kind}` \| (.*)$", REFERENCE.read_text("utf-8"), re.MULTILINE)
    assert line is not None, f"docs/reference/queries.md has no row for {kind}"
    # The parser knows some functions under names of its own.
    for function in aggregates.get(kind).sql:
        assert not function.isupper() or f"`{function}(" in line[1]


def test_numbers_and_kinds_are_told_apart() -> None:
    table = fast_table(table_of(ROWS))
    texts = {kind: make(kind, table).canonical() for kind in KINDS}
    different = set(texts.values())
    # A median is a quantile like others; here it is another one.
    assert len(different) == len(KINDS)
    wide = Mean(column_number(table, "x", bounds=(0, 1)))
    assert wide.canonical() != texts["mean"]
    assert Total(wide.of).canonical().removeprefix("Total") == wide.canonical().removeprefix("Mean")


def test_two_aggregates_share_no_name() -> None:
    before = set(sql_functions), set(aggregates)
    with pytest.raises(InternalError, match='"Avg" in SQL'):
        register("middle", AggregateKind(make=Mean, sql={"Avg": Mean}))
    with pytest.raises(InternalError, match='called "mean"'):
        register("mean", AggregateKind(make=Mean))
    with pytest.raises(InternalError, match='called "mean"'):
        register("mean", AggregateKind(make=Mean, sql={"MIDDLE": Mean}))
    assert (set(sql_functions), set(aggregates)) == before


def _mean_of(factor: int) -> type[Aggregate]:
    """Return a class of a name that another one has, and that means something else."""

    class Scaled(Mean):
        def answer(self, noisy: Any) -> Any:
            raise NotImplementedError(factor)

    return Scaled


def test_two_aggregates_are_not_given_each_others_stored_answers() -> None:
    register("half", AggregateKind(make=_mean_of(2)))
    with pytest.raises(InternalError, match='stored as "Scaled"'):
        register("third", AggregateKind(make=_mean_of(3)))
    assert "third" not in aggregates

    class Mean2(Mean):
        key = "Mean"

    number = column_number(fast_table(table_of(ROWS)), "x", bounds=BOUNDS)
    assert Mean(number).canonical().startswith("Mean(")
    assert Mean2(number).canonical() != Mean(number).canonical()


@pytest.mark.parametrize(
    "measure", ["", (), ("mean",), ("count", "x"), ("mean", "x", 1), ("quantile", "x"), ("avg", "x")]
)
def test_measures_that_are_not_understood_are_refused(measure: Any) -> None:
    private = cl.PrivateTable(fast_table(table_of(ROWS)), budget=cl.Budget(epsilon=1), unit="row")
    with pytest.raises(ParameterError) as caught:
        private.aggregate({"m": measure}, bounds={"x": BOUNDS}, epsilon=1)
    assert "sum, mean, variance, std, min, max, median, quantile" in caught.value.fix
