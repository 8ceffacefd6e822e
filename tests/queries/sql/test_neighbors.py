"""Random SQL on random neighbors: no answer vector moves farther than its declared sensitivity."""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, reject, settings, strategies as st

from cloister import Column, Schema
from cloister.core.guarantees import Adjacency
from cloister.errors import UnsafeQueryError
from cloister.queries._contribution import Contribution
from cloister.queries._question import Question
from cloister.queries.catalog import Catalog
from cloister.queries.sql import compile_sql
from tests.queries.neighbors import SensitivityExceeded, check_neighbors, fast_table
from tests.support.thoroughness import examples

pytestmark = pytest.mark.no_cover  # tracing would double their time; quicker tests reach the same lines

EXAMPLES = examples(96, usual=16)
"""Of each of the eight tests below."""

DATA = pa.schema(
    [
        ("pid", pa.int64()),
        ("age", pa.int64()),
        ("x", pa.float64()),
        ("sex", pa.string()),
        ("flag", pa.bool_()),
        ("day", pa.date32()),
        ("note", pa.string()),
    ]
)
LABS = pa.schema([("pid", pa.int64()), ("value", pa.int64())])
SCHEMA = Schema(
    [
        Column(name="pid", role="identifier"),
        Column(name="age", kind="numeric", bounds=(0, 7)),
        Column(name="x", kind="numeric", bounds=(-2, 3.5)),
        Column(name="sex", categories=["F", "M"]),
        Column(name="flag"),
        Column(name="day", kind="datetime", bounds=("2020-01-01", "2023-12-31")),
        Column(name="note"),
    ]
)
LAB_SCHEMA = Schema([Column(name="pid", role="identifier"), Column(name="value", kind="numeric", bounds=(-5, 5))])
CODES = pa.table({"sex": ["F", "M", "X"], "weight": [1, 2, 10]})

persons = st.one_of(st.none(), st.integers(1, 3))
rows = st.fixed_dictionaries(
    {
        "pid": persons,
        "age": st.one_of(st.none(), st.integers(-3, 12), st.sampled_from([-(2**63), 2**63 - 1])),
        "x": st.one_of(
            st.none(), st.floats(-4, 4), st.sampled_from([float("nan"), float("inf"), float("-inf"), 1e300, -0.0])
        ),
        "sex": st.sampled_from(["F", "M", "X", None]),
        "flag": st.sampled_from([True, False, None]),
        "day": st.one_of(st.none(), st.dates(dt.date(2019, 1, 1), dt.date(2024, 12, 31))),
        "note": st.sampled_from(["a", "b", "c", "", None]),
    }
)
lab_rows = st.fixed_dictionaries({"pid": persons, "value": st.one_of(st.none(), st.integers(-9, 9))})


# SQL -----------------------------------------------------------------------------------------------------------------

numbers = st.recursive(
    st.sampled_from(["age", "x", "1", "0.25"]),
    lambda inner: st.one_of(
        st.builds("({} + {})".format, inner, inner),
        st.builds("({} - {})".format, inner, inner),
        st.builds("({} * {})".format, inner, st.sampled_from(["2", "-0.5", "3", "1e30", "1e-30"])),
        st.builds("MOD({}, {})".format, inner, st.sampled_from(["2", "0.5", "1e30"])),
        st.builds("FLOOR({} / 2)".format, inner),
        st.builds("ROUND({}, 1)".format, inner),
        st.builds("ABS({})".format, inner),
        st.builds("GREATEST({}, 1)".format, inner),
        st.builds("LEAST({}, 2)".format, inner),
        st.builds("COALESCE({}, 0)".format, inner),
        st.builds("CASE WHEN sex = 'F' THEN {} ELSE {} END".format, inner, inner),
        st.builds("CASE WHEN age > 3 THEN {} END".format, inner),
    ),
    max_leaves=3,
).filter(lambda text: "age" in text or "x" in text)

conditions = st.recursive(
    st.sampled_from(
        [
            "age > 3",
            "x <= 0.5",
            "sex = 'F'",
            "sex IN ('F', 'X')",
            "x IS NULL",
            "flag",
            "age BETWEEN 1 AND 5",
            "note LIKE 'a%'",
            "YEAR(day) = 2021",
            "age * 2 > x + 1",
        ]
    ),
    lambda inner: st.one_of(
        st.builds("NOT ({})".format, inner),
        st.builds("({} AND {})".format, inner, inner),
        st.builds("({} OR {})".format, inner, inner),
    ),
    max_leaves=3,
)

public_keys = st.sampled_from(
    [
        "sex",
        "flag",
        "FLOOR(age / 2)",
        "CASE WHEN age > 3 THEN 'old' ELSE 'young' END",
        "YEAR(day)",
        "COALESCE(sex, 'F')",
    ]
)
sources = st.sampled_from(
    [
        "data",
        "(SELECT * FROM data WHERE age < 6) AS t",
        "(SELECT pid, age + 1 AS age, x, sex, flag, day, note FROM data) AS t",
    ]
)


@st.composite
def aggregates(draw: Any, *, is_person: bool, in_chosen_groups: bool) -> str:
    kinds = ["COUNT(*)", "COUNT({})", "SUM({})", "AVG({})", "VAR_POP({})", "STDDEV({})"]
    if is_person:
        kinds.append("COUNT(DISTINCT pid)")
    if not in_chosen_groups:
        kinds += ["MIN({})", "MAX({})", "MEDIAN({})", "QUANTILE({}, 0.9)", "COUNT(DISTINCT note)"]
    made = draw(st.sampled_from(kinds)).format(draw(numbers))
    if "QUANTILE" not in made and draw(st.integers(0, 3)) == 0:
        made += f" FILTER (WHERE {draw(conditions)})"
    return str(made)


@st.composite
def queries(draw: Any, *, is_person: bool, chosen: bool = False) -> str:
    parts = aggregates(is_person=is_person, in_chosen_groups=chosen)
    wanted = draw(st.lists(parts, min_size=1, max_size=3, unique=True))
    keys = ["note"] if chosen else draw(st.lists(public_keys, max_size=2, unique=True))
    selected = ", ".join([*keys, *(f"{part} AS a{number}" for number, part in enumerate(wanted))])
    query = f"SELECT {selected} FROM {draw(sources)}"
    if draw(st.booleans()):
        query += f" WHERE {draw(conditions)}"
    return query + (f" GROUP BY {', '.join(keys)}" if keys else "")


PERSON_SOURCES = (
    "SELECT AVG(LEAST(n, 3)) AS a, COUNT(*) AS c FROM (SELECT pid, COUNT(*) AS n FROM data GROUP BY pid) AS p",
    "SELECT SUM(top) AS a FROM (SELECT pid, MAX(x) AS top, MIN(age) AS low FROM data GROUP BY pid) AS p WHERE low > 1",
    "SELECT sex, COUNT(*) AS c FROM (SELECT pid, sex, COUNT(*) AS n FROM data GROUP BY pid, sex) AS p GROUP BY sex",
    "SELECT MEDIAN(m) AS a FROM (SELECT pid, AVG(age) AS m FROM data GROUP BY pid HAVING COUNT(*) > 1) AS p",
    "SELECT d.sex, SUM(l.value) AS s, COUNT(*) AS c FROM data AS d JOIN labs AS l ON d.pid = l.pid GROUP BY d.sex",
    "SELECT AVG(l.value + d.age) AS s FROM data AS d LEFT JOIN labs AS l ON d.pid = l.pid WHERE d.flag",
    "SELECT COUNT(DISTINCT d.pid) AS u FROM data AS d JOIN labs AS l USING (pid)",
)
PUBLIC_JOINS = (
    "SELECT SUM(weight) AS s, COUNT(*) AS n FROM data JOIN codes ON data.sex = codes.sex",
    "SELECT codes.weight, AVG(x) AS m FROM data LEFT JOIN codes ON data.sex = codes.sex GROUP BY codes.weight",
    "SELECT SUM(weight * age) AS s FROM data LEFT JOIN codes USING (sex) WHERE weight > 1 OR age > 2",
)


# Neighbors -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Rows:
    """The rows of both private tables."""

    data: list[dict[str, Any]]
    labs: list[dict[str, Any]]

    def catalog(self, person: str | None) -> Catalog:
        data = fast_table(pa.Table.from_pylist(self.data, schema=DATA), schema=SCHEMA)
        labs = fast_table(pa.Table.from_pylist(self.labs, schema=LABS), schema=LAB_SCHEMA)
        return Catalog(private={"data": data, "labs": labs}, person=person, public={"codes": CODES})

    def without_row(self) -> Rows:
        """Rows come in any order, so that the first one may stand for any."""
        return Rows(self.data[1:], self.labs)

    def replaced(self, other: dict[str, Any]) -> Rows:
        return Rows([other, *self.data[1:]], self.labs)

    def without_person(self) -> Rows:
        person = next((row["pid"] for row in (*self.data, *self.labs) if row["pid"] is not None), None)
        if person is None:
            reject()
        return Rows(*([row for row in table if row["pid"] != person] for table in (self.data, self.labs)))


tables = st.builds(Rows, st.lists(rows, min_size=1, max_size=8), st.lists(lab_rows, max_size=4))
limits = st.builds(
    Contribution,
    adjacency=st.just(Adjacency.USER),
    unit=st.just("pid"),
    limit=st.integers(1, 4),
    per_group=st.one_of(st.none(), st.integers(1, 3)),
    groups=st.one_of(st.none(), st.integers(1, 3)),
)
bounded = st.builds(
    Contribution,
    adjacency=st.just(Adjacency.USER),
    unit=st.just("pid"),
    limit=st.integers(1, 4),
    bounding=st.sampled_from(["truncate", "sample"]),
)
suite = settings(max_examples=EXAMPLES, deadline=None, suppress_health_check=list(HealthCheck))


def check(sql: str, contribution: Contribution, first: Rows, second: Rows) -> None:
    person = "pid" if contribution.is_person else None

    def question(catalog: Any) -> Question:
        try:
            return compile_sql(sql, catalog).question
        except UnsafeQueryError:
            reject()

    check_neighbors(question, contribution, first.catalog(person), [second.catalog(person)])


@pytest.mark.slow
@suite
@given(queries(is_person=False), tables)
def test_one_row_more_or_less(sql: str, table: Rows) -> None:
    check(sql, Contribution(), table, table.without_row())


@pytest.mark.slow
@suite
@given(queries(is_person=False), tables, rows)
def test_one_row_replaced(sql: str, table: Rows, other: dict[str, Any]) -> None:
    check(sql, Contribution(adjacency=Adjacency.REPLACE), table, table.replaced(other))


@pytest.mark.slow
@suite
@given(queries(is_person=False, chosen=True), tables)
def test_one_row_in_groups_that_are_chosen(sql: str, table: Rows) -> None:
    check(sql, Contribution(), table, table.without_row())


@pytest.mark.slow
@suite
@given(queries(is_person=True), tables, limits)
def test_one_person_more_or_less(sql: str, table: Rows, contribution: Contribution) -> None:
    check(sql, contribution, table, table.without_person())


@pytest.mark.slow
@suite
@given(queries(is_person=True), tables, bounded)
def test_one_person_whose_rows_are_dropped(sql: str, table: Rows, contribution: Contribution) -> None:
    check(sql, contribution, table, table.without_person())


@pytest.mark.slow
@suite
@given(queries(is_person=True, chosen=True), tables, limits)
def test_one_person_in_groups_that_are_chosen(sql: str, table: Rows, contribution: Contribution) -> None:
    check(sql, contribution, table, table.without_person())


@pytest.mark.slow
@suite
@given(st.sampled_from(PERSON_SOURCES), tables, limits)
def test_values_of_persons_and_joins_on_persons(sql: str, table: Rows, contribution: Contribution) -> None:
    check(sql, contribution, table, table.without_person())


@pytest.mark.slow
@suite
@given(st.sampled_from(PUBLIC_JOINS), tables)
def test_joins_with_public_tables(sql: str, table: Rows) -> None:
    check(sql, Contribution(), table, table.without_row())


def test_the_suite_sees_a_missing_limit() -> None:
    """Rows that are not weighted are farther apart than the limit says."""
    visits = {"pid": 1, "age": 5, "x": 1.0, "sex": "F", "flag": True, "day": None, "note": "a"}
    table = Rows([visits] * 6, [])
    with pytest.raises(SensitivityExceeded):
        check_neighbors(
            lambda catalog: compile_sql("SELECT COUNT(*) FROM data", catalog).question,  # type: ignore[attr-defined]
            Contribution(),
            table.catalog(None),  # type: ignore[arg-type]
            [Rows([], []).catalog(None)],  # type: ignore[list-item]
        )
