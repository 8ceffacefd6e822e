"""On the noiseless core no neighbor is farther away than declared: exactly, for thousands of random neighbors."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from cloister.core.guarantees import Adjacency
from cloister.data.engines.predicates import resolve_condition
from cloister.data.table import Table
from cloister.queries import _measurements as measurements
from cloister.queries._aggregates import (
    Aggregate,
    CountDistinct,
    CountNotNull,
    CountRows,
    CountUnits,
    Extreme,
    Mean,
    Quantile,
    StandardDeviation,
    Total,
    Variance,
)
from cloister.queries._contribution import Contribution
from cloister.queries._exact_core import ExactCore
from cloister.queries._measurements import MeasurementDesign
from cloister.queries._question import FixedPointNumber, QueryRows, Question
from cloister.queries.catalog import column_key, column_number, present_value
from tests.queries.cases import INTEGER, REAL, TEXT
from tests.queries.neighbors import (
    SensitivityExceeded,
    check_contents,
    check_neighbors,
    fast_table,
    observe,
    score_moves,
    with_rows,
    without_rows,
)
from tests.support.conditions import conditions
from tests.support.thoroughness import examples

pytestmark = pytest.mark.no_cover  # tracing would double their time; quicker tests reach the same lines

TABLES, NEIGHBORS = examples(60, usual=8), 10
"""For each of four units of privacy: 320 neighbors in every run of the tests, 2,400 in an audit."""

SCHEMA = pa.schema(
    [("who", pa.string()), ("g", pa.string()), ("h", pa.int64()), ("x", pa.int64()), ("y", pa.float64())]
)
PEOPLE = st.sampled_from(["ann", "bob", "cy", None])
ROW = st.fixed_dictionaries(
    {
        "who": PEOPLE,
        "g": st.sampled_from(["a", "b", "c", None]),
        "h": st.sampled_from([1, 2, None]),
        "x": st.one_of(st.none(), st.integers(-6, 12)),
        "y": st.sampled_from([None, -9.0, -1.5, -0.0, 0.0, 0.25, 3.0, float("inf"), float("nan")]),
    }
)
BOUNDS = [(0, 10), (-5, 4), (2, 3), (-4, -2)]
TYPES = {"who": (TEXT, []), "g": (TEXT, []), "h": (INTEGER, []), "x": (INTEGER, []), "y": (REAL, [])}
LITERALS = {TEXT: st.sampled_from(["a", "b"]), INTEGER: st.integers(-2, 5), REAL: st.sampled_from([0.0, 1.5])}

Builder = Callable[[Table], Question]


def aggregate(kind: str, table: Table, bounds: tuple[int, int]) -> Aggregate:
    def number(name: str) -> FixedPointNumber:
        return column_number(table, name, bounds=bounds)

    made: dict[str, Callable[[], Aggregate]] = {
        "rows": CountRows,
        "units": CountUnits,
        "present": lambda: CountNotNull(present_value(table, "y"), "y"),
        "different texts": lambda: CountDistinct(present_value(table, "g"), "g"),
        "different numbers": lambda: CountDistinct(present_value(table, "x"), "x"),
        "total": lambda: Total(number("x")),
        "total of reals": lambda: Total(number("y")),
        "mean": lambda: Mean(number("x")),
        "mean of reals": lambda: Mean(number("y")),
        "variance": lambda: Variance(number("x")),
        "deviation": lambda: StandardDeviation(number("y"), sample=False),
        "median": lambda: Quantile(number("x"), Fraction(1, 2)),
        "ninth decile": lambda: Quantile(number("y"), Fraction(9, 10)),
        "minimum": lambda: Extreme(number("x"), largest=False),
        "maximum": lambda: Extreme(number("x"), largest=True),
    }
    return made[kind]()


ALWAYS = ["rows", "units", "present", "total", "total of reals", "mean", "mean of reals", "variance", "deviation"]
PUBLIC_ONLY = ["different texts", "different numbers", "median", "ninth decile", "minimum", "maximum"]


@st.composite
def questions(draw: st.DrawFn, *, person: bool, chooses: bool) -> Builder:
    domains = {"g": draw(st.sampled_from([["a", "b", "z"], None])) if chooses else ["a", "b", "z"], "h": [1, 2]}
    by = draw(st.sampled_from([(), ("g",), ("h",), ("g", "h"), ("g",)]))
    is_private = any(domains[name] is None for name in by)
    kinds = draw(st.lists(st.sampled_from(ALWAYS + ([] if is_private else PUBLIC_ONLY)), min_size=1, max_size=4))
    bounds = draw(st.sampled_from(BOUNDS))
    where = draw(st.one_of(st.none(), conditions(TYPES, LITERALS)))

    def build(table: Table) -> Question:
        return Question(
            rows=QueryRows(
                engine=table.engine,
                source=table.engine.source(),
                condition=None if where is None else resolve_condition(where[0], table.engine),
                person=present_value(table, "who") if person else None,
            ),
            aggregates=tuple(aggregate(kind, table, bounds) for kind in kinds),
            keys=tuple(column_key(table, name, values=domains[name]) for name in by),
        )

    return build


@st.composite
def limits(draw: st.DrawFn, bounding: str) -> Contribution:
    more: dict[str, Any] = {}
    if bounding == "weight":
        optional = st.one_of(st.none(), st.integers(1, 3))
        more = {"per_group": draw(optional), "groups": draw(optional)}
    return Contribution(adjacency=Adjacency.USER, unit="who", limit=draw(st.integers(1, 4)), bounding=bounding, **more)


def tables() -> st.SearchStrategy[pa.Table]:
    return st.lists(ROW, max_size=10).map(lambda rows: pa.Table.from_pylist(rows, schema=SCHEMA))


def check_some(build: Builder, contribution: Contribution, rows: pa.Table, others: list[pa.Table]) -> None:
    assert check_contents(build, contribution, rows, others) == NEIGHBORS


def suite(test: Callable[..., None]) -> Callable[..., None]:
    return settings(max_examples=TABLES, suppress_health_check=list(HealthCheck))(test)


@suite
@given(st.data())
def test_rows_that_come_or_go(data: st.DataObject) -> None:
    build = data.draw(questions(person=False, chooses=True))
    rows = data.draw(tables())
    places = data.draw(st.lists(st.integers(0, max(rows.num_rows - 1, 0)), max_size=4)) if rows.num_rows else []
    more = data.draw(st.lists(ROW, min_size=NEIGHBORS - len(places), max_size=NEIGHBORS - len(places)))
    others = [without_rows(rows, [place]) for place in places] + [with_rows(rows, [row]) for row in more]
    check_some(build, Contribution(), rows, others)


@suite
@given(st.data())
def test_rows_that_are_replaced(data: st.DataObject) -> None:
    build = data.draw(questions(person=False, chooses=False))
    rows = data.draw(tables().filter(lambda found: found.num_rows))
    more = data.draw(st.lists(ROW, min_size=NEIGHBORS, max_size=NEIGHBORS))
    places = data.draw(st.lists(st.integers(0, rows.num_rows - 1), min_size=NEIGHBORS, max_size=NEIGHBORS))
    others = [with_rows(without_rows(rows, [place]), [row]) for place, row in zip(places, more, strict=True)]
    check_some(build, Contribution(adjacency=Adjacency.REPLACE), rows, others)


def persons_neighbors(data: st.DataObject, rows: pa.Table) -> list[pa.Table]:
    """Return the table without each person, and with a new person who has any number of rows."""
    names = rows.column("who").to_pylist()
    present = sorted({name for name in names if name is not None})
    fewer = [without_rows(rows, [place for place, who in enumerate(names) if who == name]) for name in present]
    own = st.lists(ROW.map(lambda row: {**row, "who": "eve"}), min_size=1, max_size=8)
    count = NEIGHBORS - len(fewer)
    more = data.draw(st.lists(own, min_size=count, max_size=count))
    return fewer + [with_rows(rows, found) for found in more]


@suite
@given(st.data())
def test_persons_that_come_or_go_by_weight(data: st.DataObject) -> None:
    build = data.draw(questions(person=True, chooses=True))
    rows = data.draw(tables())
    check_some(build, data.draw(limits("weight")), rows, persons_neighbors(data, rows))


@suite
@given(st.data())
def test_persons_that_come_or_go_with_rows_dropped(data: st.DataObject) -> None:
    build = data.draw(questions(person=True, chooses=True))
    rows = data.draw(tables())
    contribution = data.draw(limits(data.draw(st.sampled_from(["truncate", "sample"]))))
    check_some(build, contribution, rows, persons_neighbors(data, rows))


@settings(max_examples=examples(25, usual=6), suppress_health_check=list(HealthCheck))
@given(st.data())
def test_scores_of_choices_move_by_one_and_in_one_direction(data: st.DataObject) -> None:
    rows = data.draw(tables())
    for person, others in ((True, persons_neighbors(data, rows)), (False, [with_rows(rows, [data.draw(ROW)])])):
        contribution = Contribution(adjacency=Adjacency.USER, unit="who") if person else Contribution()

        def scores(found: pa.Table, person: bool = person, contribution: Contribution = contribution) -> Any:
            table = fast_table(found)
            where = present_value(table, "who") if person else None
            question = Question(
                rows=QueryRows(engine=table.engine, source=table.engine.source(), person=where),
                aggregates=(CountRows(),),
                keys=(column_key(table, "g", values=["a", "b", "c"]),),
            )
            return ExactCore(question, contribution, contribution.reach(question)).units()

        first = scores(rows)
        for other in others:
            moved = scores(other) - first
            assert abs(moved).max() <= 1
            assert (moved >= 0).all() or (moved <= 0).all()


# The suite can fail --------------------------------------------------------------------------------------------------

PERSON = Contribution(adjacency=Adjacency.USER, unit="who", limit=2)


def table_of(*rows: dict[str, Any]) -> pa.Table:
    return pa.Table.from_pylist(list(rows), schema=SCHEMA)


def row(**values: Any) -> dict[str, Any]:
    return {name: values.get(name) for name in SCHEMA.names}


def asking(*kinds: str, bounds: tuple[int, int] = (0, 10), by: tuple[str, ...] = (), **options: Any) -> Builder:
    def build(table: Table) -> Question:
        return Question(
            rows=QueryRows(
                engine=table.engine,
                source=table.engine.source(),
                person=present_value(table, "who") if options.get("person") else None,
            ),
            aggregates=tuple(aggregate(kind, table, bounds) for kind in kinds),
            keys=tuple(column_key(table, name, values=options.get("values", ["a", "b"])) for name in by),
        )

    return build


def declaring(
    change: Callable[[MeasurementDesign], MeasurementDesign],
) -> Callable[[Question, Contribution], MeasurementDesign]:
    return lambda question, contribution: change(measurements.design(question, contribution))


def smaller(numerator: int, denominator: int) -> Callable[[MeasurementDesign], MeasurementDesign]:
    def change(found: MeasurementDesign) -> MeasurementDesign:
        shrunk = {
            name: replace(
                item, l1=item.l1 * numerator // denominator, squared_l2=item.squared_l2 * numerator // denominator
            )
            for name, item in found.measurements.items()
        }
        rankings = tuple(
            replace(item, sensitivity=item.sensitivity * numerator / denominator) for item in found.rankings
        )
        return replace(found, measurements=shrunk, rankings=rankings)

    return change


def unweighted(found: MeasurementDesign) -> MeasurementDesign:
    """Return what a core would declare that counts whole rows and forgets to weight them."""
    scale = found.reach.scale
    whole = {
        name: replace(item, l1=item.l1 // scale, squared_l2=item.squared_l2 // scale**2)
        for name, item in found.measurements.items()
    }
    return replace(found, measurements=whole, reach=replace(found.reach, is_weighted=False, scale=1))


EVE = [row(who="eve", g="a", x=10), row(who="eve", g="a", x=10), row(who="eve", g="b", x=10)]
BROKEN = {
    "a limit that is off by one": (asking("rows", person=True), PERSON, [], EVE, smaller(1, 2)),
    "no weighting": (asking("rows", "total", person=True), PERSON, [], [*EVE, *EVE], unweighted),
    "sums declared too small": (asking("total", person=True), PERSON, [], EVE, smaller(3, 4)),
    "persons counted once for all groups": (
        asking("units", by=("g",), person=True),
        PERSON,
        [],
        EVE,
        smaller(1, 2),
    ),
    "different values declared too few": (asking("different texts", person=True), PERSON, [], EVE, smaller(1, 2)),
    "ranks declared too small": (asking("maximum", person=True), PERSON, [], EVE, smaller(3, 4)),
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_wrong_sensitivity_of_persons_is_found(name: str) -> None:
    build, contribution, rows, more, change = BROKEN[name]
    first, second = fast_table(table_of(*rows)), fast_table(table_of(*rows, *more))
    assert check_neighbors(build, contribution, first, [second]) == 1
    with pytest.raises(SensitivityExceeded):
        check_neighbors(build, contribution, first, [second], designer=declaring(change))


REPLACE = Contribution(adjacency=Adjacency.REPLACE)


def with_declared(l1: int, squared: int) -> Callable[[MeasurementDesign], MeasurementDesign]:
    def change(found: MeasurementDesign) -> MeasurementDesign:
        shrunk = {name: replace(item, l1=l1, squared_l2=squared) for name, item in found.measurements.items()}
        return replace(found, measurements=shrunk)

    return change


REPLACED = {
    "a forgotten factor 2 in a histogram": (asking("rows", by=("g",)), row(g="a"), row(g="b"), (1, 1)),
    "a forgotten factor 2 in squares": (asking("rows", by=("g",)), row(g="a"), row(g="b"), (2, 1)),
    "a missing value that was not thought of": (asking("total", bounds=(2, 3)), row(x=3), row(), (1, 1)),
    "a value that moves inside of one group": (
        asking("total", bounds=(-5, 5), by=("g",)),
        row(g="a", x=-5),
        row(g="a", x=5),
        (10, 50),
    ),
    "rows split by a missing value": (asking("rows", "present"), row(y=1.0), row(), (1, 1)),
}


@pytest.mark.parametrize("name", REPLACED)
def test_a_wrong_sensitivity_under_replace_is_found(name: str) -> None:
    build, before, after, declared = REPLACED[name]
    first, second = fast_table(table_of(before)), fast_table(table_of(after))
    assert check_neighbors(build, REPLACE, first, [second]) == 1
    with pytest.raises(SensitivityExceeded):
        check_neighbors(build, REPLACE, first, [second], designer=declaring(with_declared(*declared)))


def test_exchanged_contents_are_compared_as_tables_are() -> None:
    """A person with two rows more than the limit declares is seen by the fast way as well."""
    few = replace(PERSON, limit=1)
    for build in (asking("rows", "units", by=("g",), person=True), asking("different texts", "median", person=True)):
        assert check_contents(build, few, table_of(), [table_of(*EVE), table_of(*EVE[:1])]) == 2
    two_people = table_of(*EVE, *({**item, "who": "bob"} for item in EVE))
    with pytest.raises(SensitivityExceeded):
        check_contents(asking("rows", person=True), few, table_of(), [two_people])
    with pytest.raises(SensitivityExceeded):
        check_contents(asking("median"), Contribution(), table_of(row(x=1)), [table_of(*[row(x=9)] * 3)])


def test_groups_that_are_not_kept_to_a_number_are_found() -> None:
    build = asking("units", by=("g",), values=None, person=True)
    first, second = fast_table(table_of()), fast_table(table_of(row(who="eve", g="a"), row(who="eve", g="b")))
    assert check_neighbors(build, PERSON, first, [second]) == 1
    few = replace(PERSON, groups=1)
    assert check_neighbors(build, few, first, [second]) == 1

    def not_kept(question: Question, contribution: Contribution) -> MeasurementDesign:
        found = measurements.design(question, contribution)
        return replace(measurements.design(question, few), reach=replace(found.reach, groups=2))

    with pytest.raises(SensitivityExceeded, match="units"):
        check_neighbors(build, PERSON, first, [second], designer=not_kept)


# Declared sensitivities are attained, so that no noise is wasted -----------------------------------------------------

ATTAINED = {
    "rows": (asking("rows"), Contribution(), [], [row()], "rows"),
    "rows in groups": (asking("rows", by=("g",)), REPLACE, [row(g="a")], [row(g="b")], "rows"),
    "totals": (asking("total", bounds=(-5, 4)), Contribution(), [], [row(x=-5)], "total"),
    "replaced totals": (asking("total", bounds=(-5, 4)), REPLACE, [row(x=-5)], [row(x=4)], "total"),
    "totals of a person": (asking("total", bounds=(0, 10), person=True), PERSON, [], EVE[:2], "total"),
    "rows of a person": (asking("rows", person=True), PERSON, [], EVE[:2], "rows"),
    "a person in groups": (asking("units", by=("g",), person=True), PERSON, [], EVE, "units"),
    "different values": (asking("different texts", person=True), PERSON, [], EVE, "distinct"),
}


@pytest.mark.parametrize("name", ATTAINED)
def test_declared_sensitivities_are_attained(name: str) -> None:
    build, contribution, before, after, prefix = ATTAINED[name]
    first = observe(build, contribution, fast_table(table_of(*before)))
    second = observe(build, contribution, fast_table(table_of(*after)))
    place = next(item for item in first.vectors if item.startswith(prefix))
    moved = sum(abs(second.vectors[place][at] - first.vectors[place][at]) for at in first.vectors[place])
    assert moved == first.design.measurements[place].l1


@pytest.mark.parametrize("kind", ["median", "minimum", "maximum"])
def test_declared_sensitivities_of_ranks_are_attained(kind: str) -> None:
    build = asking(kind, person=True)
    rows = [row(who=f"person {number}", x=5) for number in range(9)]
    first = observe(build, PERSON, fast_table(table_of(*rows)))
    worst = max(
        score_moves(first, observe(build, PERSON, fast_table(table_of(*rows, *[row(who="eve", x=x)] * 2))), 0)
        for x in (0, 10)
    )
    assert worst == first.design.rankings[0].sensitivity
