"""The exact core on every engine equals the plain-Python reference."""

from __future__ import annotations

import datetime as dt
import math
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from cloister.core.guarantees import Adjacency
from cloister.data.sources import open_table
from cloister.data.table import Table
from cloister.queries._contribution import Contribution
from cloister.queries._exact_core import ExactCore
from cloister.queries._measurements import ROWS
from tests.queries.cases import BOOLEAN, DATE, INTEGER, REAL, TEXT, TIMESTAMP, Case, check
from tests.support import engine_tables
from tests.support.conditions import conditions
from tests.support.reference import Columns
from tests.support.thoroughness import examples, on_engines


@dataclass(frozen=True)
class Engine:
    open: engine_tables.Opener
    examples: int
    tables: list[tuple[pa.Table, Table]] = field(default_factory=list)

    def held(self, rows: pa.Table) -> Table:
        """Return a table that is opened once for all cases with these rows."""
        for known, table in self.tables:
            if known.equals(rows):
                return table
        self.tables.append((rows, self.open(rows)))
        return self.tables[-1][1]


@pytest.fixture(scope="module")
def engine(any_engine: engine_tables.NamedOpener) -> Engine:
    tried = {"duckdb": examples(40, usual=12), "postgres": examples(12, usual=6), "spark": examples(3, usual=2)}
    return Engine(any_engine.open, tried.get(any_engine.name, tried["duckdb"]))


NAN, INF = math.nan, math.inf
PEOPLE: Columns = {
    "who": (TEXT, ["ann", "ann", "ann", "bob", "bob", "bob", "bob", None, "cy", "dee", "dee", "ann"]),
    "g": (TEXT, ["a", "a", "b", "a", "b", "c", None, "a", "b", "other", "a", "a"]),
    "h": (INTEGER, [1, 2, 1, 1, 2, 1, 2, 1, None, 2, 1, 1]),
    "x": (INTEGER, [3, -5, 12, 7, None, 0, 1, 4, 10, 2, 9, 3]),
    "when": (DATE, [dt.date(2020, 1, day) for day in (5, 3, 1, 9, 8, 7, 6, 2, 2, 2, 1, 4)]),
}
BY_GROUP = {"g": ["a", "b", "c", "z"]}
BY_BOTH = {"g": ["a", "b", "c"], "h": [1, 2, 3]}
ODD_REALS: Columns = {
    "who": (INTEGER, [1, 1, 1, 1, 2, 2, 3, 3, None]),
    "g": (REAL, [0.0, -0.0, 1.5, NAN, INF, -INF, None, 1.5, 1.5]),
    "x": (REAL, [NAN, INF, -INF, None, 0.1, -7.25, 3.0, 1e300, 2.0]),
}
EMPTY: Columns = {"who": (TEXT, []), "g": (TEXT, []), "x": (INTEGER, [])}
ALL_NULL: Columns = {"who": (TEXT, ["a", "a", None]), "g": (TEXT, [None] * 3), "x": (INTEGER, [None] * 3)}
WIDE: Columns = {
    "who": (INTEGER, [1, 1, 1, 2, 3]),
    "g": (BOOLEAN, [True, True, False, None, True]),
    "x": (INTEGER, [2**62, -(2**62), 12345678901234567, 2**61 + 1, -3]),
}
MANY = {"where": ("h = 1 AND x IS NOT NULL", lambda row: row["h"] == 1 and row["x"] is not None)}

CASES = {
    "rows": Case(data=PEOPLE),
    "rows in groups": Case(data=PEOPLE, by=BY_GROUP),
    "rows in two keys": Case(data=PEOPLE, by=BY_BOTH),
    "rows in private groups": Case(data=PEOPLE, by={"g": None}),
    "rows in mixed groups": Case(data=PEOPLE, by={"g": None, "h": [1]}),
    "rows under replace": Case(data=PEOPLE, by=BY_GROUP, adjacency="replace"),
    "rows where": Case(data=PEOPLE, by=BY_GROUP, **MANY),
    "persons by weight": Case(data=PEOPLE, person="who", limit=2),
    "persons by weight in groups": Case(data=PEOPLE, person="who", limit=2, by=BY_GROUP),
    "persons by weight where": Case(data=PEOPLE, person="who", limit=1, by=BY_GROUP, **MANY),
    "persons with a limit per group": Case(data=PEOPLE, person="who", limit=3, per_group=1, by=BY_GROUP),
    "persons with a limit on groups": Case(data=PEOPLE, person="who", limit=3, groups=2, by=BY_BOTH),
    "persons with all limits": Case(data=PEOPLE, person="who", limit=3, per_group=2, groups=1, by=BY_GROUP),
    "persons in private groups": Case(data=PEOPLE, person="who", limit=2, groups=1, by={"g": None}),
    "persons in two private groups": Case(data=PEOPLE, person="who", limit=3, per_group=1, by={"g": None, "h": None}),
    "persons in mixed groups": Case(data=PEOPLE, person="who", limit=2, by={"g": None, "h": [2, 1]}),
    "persons with a high limit": Case(data=PEOPLE, person="who", limit=1000, by=BY_GROUP),
    "persons truncated": Case(data=PEOPLE, person="who", limit=2, bounding="truncate", by=BY_GROUP),
    "persons truncated in order": Case(
        data=PEOPLE, person="who", limit=2, bounding="truncate", order="when", by=BY_GROUP
    ),
    "persons truncated in private groups": Case(
        data=PEOPLE, person="who", limit=2, bounding="truncate", by={"g": None}
    ),
    "persons truncated where": Case(data=PEOPLE, person="who", limit=1, bounding="truncate", **MANY),
    "persons sampled": Case(data=PEOPLE, person="who", limit=2, bounding="sample", by=BY_GROUP),
    "persons sampled in private groups": Case(data=PEOPLE, person="who", limit=2, bounding="sample", by={"g": None}),
    "odd reals": Case(data=ODD_REALS, bounds=(-5, 5), by={"g": [0.0, 1.5, INF, 2.0]}),
    "odd reals of persons": Case(data=ODD_REALS, person="who", limit=2, bounds=(-5, 5), by={"g": [0.0, 1.5, INF]}),
    "odd reals in private groups": Case(data=ODD_REALS, bounds=(-5, 5), by={"g": None}),
    "coarse steps": Case(data=ODD_REALS, bounds=(-5, 5), granularity=Fraction(1, 2)),
    "negative bounds": Case(data=PEOPLE, person="who", limit=2, bounds=(-4, -2), by=BY_GROUP),
    "no rows": Case(data=EMPTY, by=BY_GROUP),
    "no rows, no groups": Case(data=EMPTY, person="who", limit=2),
    "no rows in private groups": Case(data=EMPTY, person="who", limit=2, by={"g": None}),
    "nothing but nulls": Case(data=ALL_NULL, by={"g": ["a"]}),
    "nothing but nulls of persons": Case(data=ALL_NULL, person="who", limit=1, by={"g": ["a"]}),
    "wide numbers": Case(data=WIDE, bounds=(-(2**40), 2**40), granularity=Fraction(2**12), by={"g": [False, True]}),
    "wide numbers of persons": Case(
        data=WIDE, person="who", limit=2, bounds=(-(2**40), 2**40), granularity=Fraction(2**12), by={"g": [True, False]}
    ),
    "wide numbers with a limit per group": Case(
        data=WIDE,
        person="who",
        limit=2,
        per_group=1,
        bounds=(-(2**40), 2**40),
        granularity=Fraction(2**12),
        by={"g": [True, False]},
    ),
    "dates and times": Case(
        data={
            "who": (DATE, [dt.date(1990, 1, 1), dt.date(1990, 1, 1), dt.date(1991, 1, 1), None]),
            "d": (DATE, [dt.date(2020, 2, 29), None, dt.date(2020, 2, 29), dt.date(1, 1, 1)]),
            "t": (TIMESTAMP, [dt.datetime(2020, 1, 1, 12, 30), dt.datetime(2020, 1, 1), None, dt.datetime(2020, 1, 1)]),
            "x": (INTEGER, [1, 2, 3, 4]),
        },
        person="who",
        limit=1,
        by={"d": [dt.date(2020, 2, 29), dt.date(1, 1, 1)]},
    ),
    "times": Case(
        data={
            "t": (TIMESTAMP, [dt.datetime(2020, 1, 1, 12, 30), dt.datetime(2020, 1, 1), None, dt.datetime(2020, 1, 1)]),
            "x": (INTEGER, [1, 2, 3, 4]),
        },
        by={"t": None},
    ),
    "one row for each person, some about nobody": Case(
        data={
            "who": (TEXT, ["a", "b", None, "c"]),
            "g": (TEXT, ["a", "b", "a", "a"]),
            "x": (INTEGER, [1, 2, 3, 4]),
        },
        person="who",
        limit=3,
        rows_per_person=1,
        by=BY_GROUP,
    ),
}


ON_SPARK = (
    "persons with all limits",
    "persons in two private groups",
    "persons truncated in order",
    "persons sampled",
    "no rows in private groups",
    "wide numbers with a limit per group",
)
"""One of each way through the core; the others differ in what they ask, not in what Spark must do."""
ON_POSTGRES = (
    *ON_SPARK,
    "rows in two keys",
    "rows in mixed groups",
    "rows where",
    "persons with a limit on groups",
    "persons truncated where",
    "odd reals of persons",
    "odd reals in private groups",
    "nothing but nulls of persons",
    "dates and times",
    "times",
)
"""Those, and one of each type and kind of condition; DuckDB is asked all."""


def on_every_engine() -> list[Any]:
    """Return pairs of an engine and a case, of which some wait for the audit on all engines but DuckDB."""
    pairs = on_engines(CASES, spark=ON_SPARK)
    return [
        pytest.param(*pair.values, marks=[*pair.marks, pytest.mark.audit])
        if pair.values[0] == "postgres" and pair.values[1] not in ON_POSTGRES
        else pair
        for pair in pairs
    ]


@pytest.mark.parametrize(("any_engine", "name"), on_every_engine(), indirect=["any_engine"])
def test_the_core_equals_the_reference(engine: Engine, name: str) -> None:
    check(CASES[name], engine.held)


TEXTS = st.sampled_from(["a", "b", "c", "other", "", None])
SMALL = st.one_of(st.none(), st.integers(-3, 13))


@st.composite
def cases(draw: st.DrawFn) -> Case:
    length = draw(st.integers(0, 12))

    def column(items: st.SearchStrategy[Any]) -> list[Any]:
        return draw(st.lists(items, min_size=length, max_size=length))

    data: Columns = {
        "who": (TEXT, column(st.sampled_from(["ann", "bob", "cy", None]))),
        "g": (TEXT, column(TEXTS)),
        "h": (INTEGER, column(st.sampled_from([1, 2, None]))),
        "x": (INTEGER, column(SMALL)),
    }
    literals = {TEXT: st.sampled_from(["a", "b", ""]), INTEGER: st.integers(-2, 5)}
    by: dict[str, Any] = {}
    if draw(st.booleans()):
        by["g"] = draw(st.sampled_from([["a", "b", ""], None]))
    if draw(st.booleans()):
        by["h"] = draw(st.sampled_from([[1, 2], None]))
    case = Case(data=data, by=by, bounds=draw(st.sampled_from([(0, 10), (-5, 4), (2, 3)])))
    if draw(st.booleans()):
        case = replace(case, where=draw(conditions(data, literals)))
    if not draw(st.integers(0, 3)):
        return case
    bounding = draw(st.sampled_from(["weight", "weight", "weight", "truncate", "sample"]))
    more = {"order": draw(st.sampled_from([None, "h"]))} if bounding == "truncate" else {}
    if bounding == "weight":
        limits = st.one_of(st.none(), st.integers(1, 3))
        more = {"per_group": draw(limits), "groups": draw(limits)}
    return replace(case, person="who", limit=draw(st.integers(1, 5)), bounding=bounding, **more)


def test_random_cores_equal_the_reference(engine: Engine) -> None:
    @settings(max_examples=engine.examples, suppress_health_check=list(HealthCheck))
    @given(cases())
    def run(case: Case) -> None:
        check(case, engine.open)

    run()


# Properties of the limits --------------------------------------------------------------------------------------------


def _counts(rows: pa.Table, contribution: Contribution, person: str = "who") -> int:
    table = open_table(rows)
    question = Case(data={}, person=person).question(table)
    reach = contribution.reach(question)
    return int(ExactCore(question, contribution, reach).cells([ROWS]).numbers[ROWS][0])


def test_a_person_with_very_many_rows_weighs_at_most_the_limit() -> None:
    import duckdb

    limit = 10
    contribution = Contribution(adjacency=Adjacency.USER, unit="who", limit=limit)
    for rows in (limit, 11, 65_536, limit * 65_536, limit * 65_536 + 1, 1_000_000):
        held = duckdb.sql(f"SELECT 'ann' AS who FROM range({rows})").to_arrow_table()
        expected = rows * (65_536 * limit // max(rows, limit))
        assert _counts(held, contribution) == expected <= 65_536 * limit


def test_a_sample_depends_on_the_persons_own_rows_alone() -> None:
    data = PEOPLE
    case = Case(data=data, person="who", limit=2, bounding="sample", by={"g": ["a", "b", "c", "other"]})
    table = engine_tables.open_in_duckdb(engine_tables.arrow_table(data))

    def kept(rows: Columns) -> np.ndarray[Any, Any]:
        opened = engine_tables.open_in_duckdb(engine_tables.arrow_table(rows))
        question, contribution = case.question(opened), case.contribution(opened)
        return ExactCore(question, contribution, contribution.reach(question)).cells([ROWS]).numbers[ROWS]

    def only(*people: str) -> Columns:
        places = [place for place, who in enumerate(data["who"][1]) if who in people]
        return {name: (kind, [values[place] for place in places]) for name, (kind, values) in data.items()}

    alone = {who: kept(only(who)) for who in ("ann", "bob", "cy", "dee")}
    assert all(counts.sum() <= 2 for counts in alone.values())
    together = kept(only(*alone))
    assert (together == sum(alone.values())).all()
    assert (kept(data) == together).all()  # rows about nobody do not count, and nothing is random
    assert table.count() == 12


def test_one_negative_zero_does_not_move_a_group() -> None:
    """Two zeros are equal; which of them stands for their group is up to a single row."""
    for first in (0.0, -0.0):
        data: Columns = {"g": (REAL, [first, 0.0, 0.0, 1.0]), "x": (INTEGER, [1, 1, 1, 1])}
        check(Case(data=data, by={"g": [0.0, 1.0]}), engine_tables.open_in_duckdb)
        table = engine_tables.open_in_duckdb(engine_tables.arrow_table(data))
        case = Case(data=data, by={"g": None})
        question, contribution = case.question(table), case.contribution(table)
        cells = ExactCore(question, contribution, contribution.reach(question)).cells([ROWS])
        assert [str(item) for item in cells.shown[0]] == ["0.0", "1.0"]
