from __future__ import annotations

import re
from dataclasses import replace
from datetime import UTC, datetime

import pyarrow as pa
import pytest
from sqlglot import exp

import cloister as cl
from cloister.data.columns import Column
from cloister.data.schema import Schema
from cloister.data.table import Table
from cloister.errors import ForbiddenError, PolicyError, UnknownColumnError, UnsafeQueryError
from cloister.hub.domain._column_uses import CONDITIONS, query_operation, query_uses
from cloister.hub.domain._row_predicates import RowPredicate
from cloister.hub.domain.decisions import Constraints, RequestContext, decide
from cloister.hub.domain.operations import PolicyOperation
from cloister.hub.domain.policy import (
    ALL_USES,
    ColumnRule,
    ColumnRules,
    Member,
    Members,
    Mode,
    Policy,
    PolicyRole,
    PolicyRule,
    RuleEffect,
    Use,
)
from cloister.hub.domain.roles import AccessSubject
from cloister.hub.domain.terms import NEUTRAL, PurposeSet, UsageTerms
from cloister.hub.domain.views import (
    ColumnRights,
    View,
    check_policy,
    check_query,
    restrict_schema,
    view_of,
)
from cloister.queries.catalog import Catalog
from cloister.queries.sql import compile_sql
from cloister.queries.sql._functions import FullResolver

NAMES = ("person", "age", "sex", "branch", "salary")
F, G, M = Use.FILTER, Use.GROUP_BY, Use.MEASURE
SCHEMA = Schema(
    [
        Column(name="person", kind="text", role="identifier"),
        Column(name="age", kind="numeric", bounds=(0, 110)),
        Column(name="sex", kind="nominal", categories=["F", "M"]),
        Column(name="branch", kind="nominal", categories=["north", "south"]),
        Column(name="salary", kind="numeric", bounds=(0, 100_000)),
    ]
)
ROWS = pa.table(
    {
        "person": [f"p{place}" for place in range(40)],
        "age": [20 + place for place in range(40)],
        "sex": ["F", "M"] * 20,
        "branch": ["north"] * 10 + ["south"] * 30,
        "salary": [1000 * place for place in range(40)],
    }
)
TABLE: Table = cl.open_table(ROWS, schema=SCHEMA)
EMPTY: Table = cl.open_table(ROWS.slice(0, 0), schema=SCHEMA)


def uses(sql: str, **options: object) -> set[tuple[str, Use]]:
    return {(used.column, used.use) for used in query_uses(sql, {"data": NAMES}, **options)}  # type: ignore[arg-type]


QUERIES: list[tuple[str, set[tuple[str, Use]]]] = [
    ("SELECT COUNT(*) FROM data", set()),
    ("SELECT AVG(salary) FROM data", {("salary", M)}),
    ('SELECT AVG(d."salary") FROM data AS d', {("salary", M)}),
    ("SELECT AVG(SALARY) FROM data", {("salary", M)}),
    ("SELECT COUNT(*) FROM data WHERE age > 50 AND NOT sex = 'F'", {("age", F), ("sex", F)}),
    ("SELECT sex, AVG(age) FROM data GROUP BY sex", {("sex", G), ("age", M)}),
    ("SELECT sex AS s, COUNT(*) FROM data GROUP BY 1", {("sex", G)}),
    ("SELECT sex AS s, COUNT(*) FROM data GROUP BY s", {("sex", G)}),
    ("SELECT COUNT(*) FROM data GROUP BY CASE WHEN age > 50 THEN 1 ELSE 0 END", {("age", G), ("age", F)}),
    ("SELECT COUNT(*) FILTER (WHERE salary > 9) FROM data", {("salary", F)}),
    ("SELECT AVG(age) FILTER (WHERE sex = 'F') FROM data", {("age", M), ("sex", F)}),
    ("SELECT COUNT_IF(salary > 9) FROM data", {("salary", F)}),
    ("SELECT SUM(CASE WHEN sex = 'F' THEN age ELSE salary END) FROM data", {("sex", F), ("age", M), ("salary", M)}),
    ("SELECT SUM(CASE sex WHEN 'F' THEN 1 ELSE 0 END) FROM data", {("sex", F)}),
    ("SELECT SUM(IF(salary > 9, 1, 0)) FROM data", {("salary", F)}),
    ("SELECT COUNT(DISTINCT branch) FROM data", {("branch", M)}),
    ("SELECT COUNT(salary) FROM data", {("salary", M)}),
    ("SELECT QUANTILE(age, 0.5) FROM data", {("age", M)}),
    ("SELECT PERCENTILE_CONT(0.5) WITHIN GROUP (ORDER BY age) FROM data", {("age", M)}),
    ("SELECT AVG(LEAST(salary, 10) + age) FROM data", {("salary", M), ("age", M)}),
    ("SELECT AVG(x) FROM (SELECT salary AS x FROM data) AS t", {("salary", M)}),
    ("SELECT COUNT(*) FROM (SELECT salary AS x FROM data) AS t WHERE x > 5", {("salary", F)}),
    (
        "SELECT COUNT(*) FROM (SELECT salary > 5 AS rich FROM data) AS t GROUP BY rich",
        {("salary", F), ("salary", G)},
    ),
    (
        "WITH t AS (SELECT salary + age AS x FROM data) SELECT x, COUNT(*) FROM t GROUP BY x",
        {("salary", G), ("age", G)},
    ),
    ("WITH t AS (SELECT * FROM data) SELECT AVG(salary) FROM t", {("salary", M)}),
    ("WITH a AS (SELECT salary AS x FROM data), b AS (SELECT x AS y FROM a) SELECT MAX(y) FROM b", {("salary", M)}),
    (
        "SELECT AVG(LEAST(n, 5)) FROM (SELECT person, SUM(salary) AS n FROM data GROUP BY person) AS t WHERE n > 2",
        {("person", G), ("salary", M), ("salary", F)},
    ),
    (
        "SELECT COUNT(*) FROM (SELECT person FROM data GROUP BY person HAVING MAX(age) > 9) AS t",
        {("person", G), ("age", M), ("age", F)},
    ),
    ("SELECT COUNT(*) FROM (SELECT DISTINCT person, sex FROM data) AS t", {("person", G), ("sex", G)}),
    (
        "SELECT COUNT(*) FROM data AS a JOIN data AS b ON a.person = b.person WHERE b.age > 3",
        {("person", F), ("age", F)},
    ),
    ("SELECT COUNT(*) FROM data AS a JOIN data AS b USING (person)", {("person", F)}),
    (
        "SELECT sex, COUNT(*) AS n FROM data GROUP BY sex HAVING AVG(age) > 3 ORDER BY MAX(salary), n",
        {("sex", G), ("age", M), ("salary", M)},
    ),
    ("SELECT CASE WHEN AVG(age) > 50 THEN 1 ELSE 0 END AS old FROM data", {("age", M)}),
    ("SELECT CASE WHEN sex = 'F' THEN 1 ELSE 0 END, COUNT(*) FROM data GROUP BY sex", {("sex", G)}),
]


@pytest.mark.parametrize(("sql", "expected"), QUERIES)
def test_every_use_of_a_column_is_found(sql: str, expected: set[tuple[str, Use]]) -> None:
    assert uses(sql) == expected


@pytest.mark.parametrize("sql", [sql for sql, _ in QUERIES if "JOIN" not in sql])
def test_the_columns_are_those_that_the_compiled_query_reads(sql: str) -> None:
    compiled = compile_sql(sql, Catalog(private={"data": EMPTY}, person="person"))
    text = re.sub(r'"cloister_rows"\([^)]*\)', "", compiled.question.canonical())
    read = {NAMES[int(place)] for place in re.findall(r'"c(\d+)"', text)}
    assert read | {"person"} == {column for column, _ in uses(sql)} | {"person"}


def test_columns_of_public_tables_are_free() -> None:
    sql = "SELECT r.region, AVG(age) FROM data JOIN regions AS r ON branch = r.branch WHERE size > 3 GROUP BY r.region"
    assert uses(sql, public=["regions"]) == {("branch", F), ("age", M)}
    with pytest.raises(UnsafeQueryError, match="select from one of data"):
        uses(sql)


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT COUNT(*) FROM data WHERE age IN (SELECT age FROM data)",
        "SELECT COUNT(*) FROM (SELECT age FROM data UNION ALL SELECT salary FROM data) AS t",
        "SELECT SUM(ROW_NUMBER() OVER (ORDER BY salary)) FROM data",
        "SELECT COUNT(data.*) FROM data",
        "SELECT COUNT(*) FROM read_csv('x')",
    ],
)
def test_what_cannot_be_followed_is_refused(sql: str) -> None:
    with pytest.raises(UnsafeQueryError):
        uses(sql)


def test_unknown_names_are_refused() -> None:
    for sql in ("SELECT AVG(wage) FROM data", "SELECT AVG(x.age) FROM data", "SELECT COUNT(*) FROM data GROUP BY wage"):
        with pytest.raises(UnknownColumnError):
            uses(sql)


def test_a_long_chain_of_conditions_is_followed() -> None:
    chain = " OR ".join(["age > 1 AND sex = 'F'", *["salary > 1"] * 3_000])
    assert uses(f"SELECT COUNT(*) FROM data WHERE {chain}") == {("age", F), ("sex", F), ("salary", F)}


def test_a_condition_selects_rows() -> None:
    assert uses("SELECT COUNT(*) FROM data WHERE age > 5 OR salary IS NULL") == {("age", F), ("salary", F)}


@pytest.mark.parametrize(
    ("sql", "operation"),
    [
        ("SELECT COUNT(*) FROM data WHERE age > 5", PolicyOperation.QUERY_COUNT),
        (
            "SELECT sex, COUNT(*) FILTER (WHERE age > 3), COUNT_IF(age > 5) FROM data GROUP BY sex",
            PolicyOperation.QUERY_COUNT,
        ),
        ("SELECT COUNT(DISTINCT branch) FROM data", PolicyOperation.QUERY_AGGREGATE),
        ("SELECT COUNT(*), AVG(age) FROM data", PolicyOperation.QUERY_AGGREGATE),
        (
            "SELECT COUNT(*) FROM (SELECT person, SUM(age) AS a FROM data GROUP BY person) AS t",
            PolicyOperation.QUERY_AGGREGATE,
        ),
        ("SELECT COUNT(*) FROM data HAVING MEDIAN(age) > 4", PolicyOperation.QUERY_AGGREGATE),
    ],
)
def test_counting_is_told_from_aggregating(sql: str, operation: PolicyOperation) -> None:
    assert query_operation(sql) is operation


# Rights --------------------------------------------------------------------------------------------------------------

RULES = ColumnRules(
    named=(
        ("age", ColumnRule(uses=ALL_USES)),
        ("sex", ColumnRule(uses=frozenset({F, G}))),
        ("salary", ColumnRule(uses=frozenset({M}), terms=replace(NEUTRAL, purposes=PurposeSet.of("research")))),
        ("branch", ColumnRule(uses=frozenset({Use.VISIBLE}))),
    )
)


def rights(purpose: str | None = "research") -> ColumnRights:
    return ColumnRights.of(Constraints(mode=Mode.DP, columns=RULES, purpose=purpose), NAMES)


def test_columns_exist_by_rule_and_purpose() -> None:
    assert rights().names == ("age", "sex", "branch", "salary")
    assert rights("teaching").names == ("age", "sex", "branch")
    assert restrict_schema(SCHEMA, rights()).names == ("age", "sex", "branch", "salary")
    with pytest.raises(ForbiddenError, match="access to columns"):
        restrict_schema(SCHEMA, ColumnRights(()))


def test_uses_are_checked() -> None:
    check_query("SELECT sex, AVG(salary) FROM data WHERE age > 3 GROUP BY sex", {"data": rights()})
    for sql in (
        "SELECT COUNT(*) FROM data WHERE salary > 3",
        "SELECT AVG(sex) FROM data",
        "SELECT COUNT(branch) FROM data",
    ):
        with pytest.raises(ForbiddenError, match="ask the owner for more"):
            check_query(sql, {"data": rights()})
    with pytest.raises(ForbiddenError, match="you may not select rows by it"):
        check_query("SELECT COUNT(*) FROM data WHERE salary > 3", {"data": rights()})


def test_a_hidden_column_is_refused_in_the_words_for_one_that_does_not_exist() -> None:
    for sql in (
        "SELECT AVG({}) FROM data",
        "SELECT COUNT(*) FROM data WHERE {} > 3",
        "SELECT COUNT(*) FROM data GROUP BY {}",
    ):
        said = []
        for name in ("salary", "wealth"):
            with pytest.raises(UnknownColumnError) as caught:
                check_query(sql.format(name), {"data": rights("teaching")})
            said.append(str(caught.value).replace(name, "it"))
        assert said[0] == said[1]
        assert "salary" not in said[0]


def test_a_single_column_can_be_checked() -> None:
    rights().check("age", Use.MEASURE)
    with pytest.raises(UnknownColumnError, match="age, sex, branch"):
        rights("teaching").check("salary", Use.MEASURE)


def test_rules_of_policy_and_role_are_both_kept() -> None:
    role = ColumnRules(named=(("age", ColumnRule(uses=frozenset({M}))),), others=ColumnRule(uses=ALL_USES))
    both = RULES & role
    assert both.of("age").uses == {Use.VISIBLE, M}
    assert both.of("sex").uses == {Use.VISIBLE, F, G}
    assert not both.of("person").is_visible


# Views ---------------------------------------------------------------------------------------------------------------


def member(name: str, *, sees: ColumnRules, rows: str | None = None) -> PolicyRole:
    everything = PolicyRule(
        effect=RuleEffect.ALLOW, operations=frozenset({PolicyOperation.QUERY_COUNT, PolicyOperation.QUERY_AGGREGATE})
    )
    return PolicyRole(
        name=name,
        members=Members(users=(Member(user_id=name),)),
        rules=(everything,),
        columns=sees,
        rows=None if rows is None else RowPredicate(rows),
    )


ALL = ColumnRules(others=ColumnRule(uses=ALL_USES))
POLICY = Policy(
    object_id="staff",
    terms=UsageTerms(purposes=PurposeSet.of("research")),
    columns=ALL,
    roles=(
        member("manager", sees=ALL),
        member(
            "user",
            sees=ColumnRules(named=(("salary", ColumnRule()), ("branch", ColumnRule())), others=ALL.others),
            rows="branch = :branch",
        ),
    ),
)


def view(name: str, **attributes: str) -> View:
    subject = AccessSubject(user_id=name, name=name, attributes=attributes)
    context = RequestContext(now=datetime(2026, 1, 1, tzinfo=UTC), purpose="research")
    decision = decide(POLICY, subject, PolicyOperation.QUERY_AGGREGATE, context)
    assert decision.constraints is not None
    return view_of(decision.constraints, SCHEMA, unit="person")


def asked(name: str, sql: str, **attributes: str) -> float:
    seen = view(name, **attributes)
    private = cl.PrivateTable(seen.apply(TABLE), budget=cl.Budget(epsilon=10**9), unit="person", max_rows_per_unit=1)
    check_query(sql, {"data": seen.rights})
    return float(private.sql(sql, epsilon=10**6).to_pandas().iloc[0, 0])


def test_a_manager_averages_salaries_and_a_user_does_not_know_of_them() -> None:
    assert asked("manager", "SELECT AVG(salary) AS s FROM data") == pytest.approx(19_500, abs=1)
    said = []
    for column in ("salary", "wealth"):
        with pytest.raises(UnknownColumnError) as caught:
            cl.PrivateTable(view("user", branch="north").apply(EMPTY), budget=cl.Budget(epsilon=1)).sql(
                f"SELECT AVG({column}) FROM data", epsilon=1
            )
        said.append(str(caught.value).replace(column, "it"))
    assert said[0] == said[1]


def test_rows_are_selected_by_the_attribute_before_anything_else() -> None:
    sql = "SELECT COUNT(*) AS n FROM data"
    assert asked("manager", sql) == pytest.approx(40, abs=1e-3)
    assert asked("user", sql, branch="north") == pytest.approx(10, abs=1e-3)
    assert asked("user", sql, branch="south") == pytest.approx(30, abs=1e-3)
    assert asked("user", sql, branch="x' OR '1'='1") == pytest.approx(0, abs=1e-3)


def test_views_have_fingerprints_of_their_own_and_know_whether_they_are_whole() -> None:
    views = [view("manager"), view("user", branch="north"), view("user", branch="south")]
    assert len({item.fingerprint for item in views}) == 3
    assert [item.is_whole for item in views] == [True, False, False]
    assert view("user", branch="north") == views[1]


def test_columns_alone_can_be_narrowed() -> None:
    narrow = View(ColumnRights((("age", ALL_USES),))).apply(TABLE)
    assert (narrow.columns, narrow.count()) == (("age",), 40)


def test_a_view_of_everything_is_the_table_itself() -> None:
    assert view("manager").apply(TABLE).engine is TABLE.engine


def test_a_hidden_column_is_not_in_the_view_but_the_unit_is() -> None:
    shown = view("user", branch="north").apply(EMPTY)
    assert shown.columns == ("person", "age", "sex")
    assert shown.schema.names == ("person", "age", "sex")
    hidden = ColumnRights(tuple(item for item in view("manager").rights.uses if item[0] != "person"))
    assert View(hidden, kept="person").apply(EMPTY).schema.names == ("age", "sex", "branch", "salary")
    assert "person" in View(hidden, kept="person").apply(EMPTY).columns


def test_a_view_keeps_the_caveat_of_types_read_from_the_rows(tmp_path) -> None:  # type: ignore[no-untyped-def]
    path = tmp_path / "rows.csv"
    path.write_text("age,branch\n1,north\n2,south\n")
    table = cl.open_table(path)
    narrowed = View(ColumnRights((("age", ALL_USES),)), rows=(RowPredicate("branch = 'north'"),)).apply(table)
    assert narrowed.engine.sniffed == table.engine.sniffed != frozenset()


def test_a_policy_is_checked_against_the_table() -> None:
    check_policy(POLICY, EMPTY)
    wrong = replace(POLICY, columns=ColumnRules(named=(("wealth", ColumnRule()),)))
    with pytest.raises(PolicyError, match='columns: the table has no column "wealth"'):
        check_policy(wrong, EMPTY)
    for rows in ("region = :region", "age = :age", "branch = CAST(:branch AS BIGINT)"):
        with pytest.raises(PolicyError, match="rows: "):
            check_policy(replace(POLICY, rows=RowPredicate(rows)), EMPTY)
    check_policy(replace(POLICY, rows=RowPredicate("age = CAST(:age AS BIGINT)")), EMPTY)


def test_a_condition_that_does_not_fit_names_no_hidden_column() -> None:
    broken = View(view("user", branch="north").rights, rows=(RowPredicate("region = 'x'"),))
    with pytest.raises(PolicyError) as caught:
        broken.apply(EMPTY)
    assert "region" not in str(caught.value)


def test_a_stored_answer_of_one_view_is_not_given_to_another() -> None:
    ledger = cl.open_ledger("memory:")
    answers = []
    for branch in ("north", "south"):
        seen = view("user", branch=branch)
        private = cl.PrivateTable(
            seen.apply(TABLE),
            dataset="staff",
            budget=cl.Budget(epsilon=10**9),
            ledger=ledger,
            version=seen.fingerprint,
        )
        answers.append(private.count(epsilon=10**6).value)
    assert answers == pytest.approx([10, 30], abs=1e-3)


def test_every_condition_that_a_query_accepts_selects_rows() -> None:
    """Whatever queries learn to accept as a condition: a column that may only be measured is not selected by."""
    accepted = FullResolver({})._truths
    assert {exp.And, exp.Or, exp.Not, exp.In, exp.Between, exp.Is, exp.Like, exp.EQ, exp.GTE} <= set(accepted)
    others = {kind for kind in accepted if not issubclass(kind, CONDITIONS)}
    assert others == {exp.Paren, exp.Column, exp.Boolean}
