"""What a query asks: the question, its keys with their public values, and its canonical text."""

from __future__ import annotations

import datetime as dt
import time
from fractions import Fraction

import pyarrow as pa
import pytest

from cloister.data.columns import Column
from cloister.data.schema import Schema
from cloister.data.sources import open_table
from cloister.data.values import StorageType
from cloister.errors import MissingBoundsError, ParameterError, UnconfirmedSchemaError, UnsafeQueryError
from cloister.queries._aggregates import (
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
from cloister.queries._query_plan import plan
from cloister.queries._question import GroupKey
from cloister.queries.catalog import Catalog
from cloister.queries.payment import check_price
from cloister.queries.sql import compile_sql


def only_key(catalog: Catalog, text: str) -> GroupKey:
    (key,) = compile_sql(f"SELECT COUNT(*) FROM data GROUP BY {text}", catalog).question.keys
    return key


def aggregate(catalog: Catalog, text: str) -> object:
    (found,) = compile_sql(f"SELECT {text} FROM data", catalog).question.aggregates
    return found


@pytest.mark.parametrize(
    ("text", "kind", "facts"),
    [
        ("COUNT(*)", CountRows, {}),
        ("COUNT(1)", CountRows, {}),
        ("COUNT(income)", CountNotNull, {"label": "income"}),
        ("COUNT_IF(age > 5)", CountNotNull, {}),
        ("COUNT(*) FILTER (WHERE age > 5)", CountNotNull, {"label": "rows"}),
        ("COUNT(age) FILTER (WHERE age > 5)", CountNotNull, {"label": "age"}),
        ("COUNT(DISTINCT sex)", CountDistinct, {"label": "sex"}),
        ("COUNT(DISTINCT sex) FILTER (WHERE age > 5)", CountDistinct, {"label": "sex"}),
        ("SUM(age)", Total, {}),
        ("SUM(1)", Total, {}),
        ("SUM(age) FILTER (WHERE sex = 'F')", Total, {}),
        ("AVG(age)", Mean, {}),
        ("VARIANCE(age)", Variance, {"sample": True}),
        ("VAR_SAMP(age)", Variance, {"sample": True}),
        ("VAR_POP(age)", Variance, {"sample": False}),
        ("STDDEV(age)", StandardDeviation, {"sample": True}),
        ("STDDEV_SAMP(age)", StandardDeviation, {"sample": True}),
        ("STDDEV_POP(age)", StandardDeviation, {"sample": False}),
        ("MIN(age)", Extreme, {"largest": False}),
        ("MAX(age)", Extreme, {"largest": True}),
        ("MEDIAN(age)", Quantile, {"q": Fraction(1, 2)}),
        ("QUANTILE(age, 0.9)", Quantile, {"q": Fraction(9, 10)}),
        ("QUANTILE_CONT(age, 0.1)", Quantile, {"q": Fraction(1, 10)}),
        ("PERCENTILE_CONT(0.25) WITHIN GROUP (ORDER BY age)", Quantile, {"q": Fraction(1, 4)}),
        ("PERCENTILE_CONT(0.25) WITHIN GROUP (ORDER BY age DESC)", Quantile, {"q": Fraction(3, 4)}),
        ("PERCENTILE_DISC(0.25) WITHIN GROUP (ORDER BY age)", Quantile, {"q": Fraction(1, 4)}),
    ],
)
def test_aggregates(rows: Catalog, text: str, kind: type, facts: dict[str, object]) -> None:
    found = aggregate(rows, text)
    assert type(found) is kind
    assert {name: getattr(found, name) for name in facts} == facts


def test_a_person_is_counted_as_a_unit(persons: Catalog) -> None:
    assert aggregate(persons, "COUNT(DISTINCT patient_id)") == CountUnits()
    query = "SELECT COUNT(DISTINCT sex) FROM (SELECT patient_id, MIN(age) AS sex FROM data GROUP BY 1) AS x"
    (found,) = compile_sql(query, persons).question.aggregates
    assert isinstance(found, CountDistinct)


def test_rows_know_their_person(rows: Catalog, persons: Catalog) -> None:
    assert compile_sql("SELECT COUNT(*) FROM data", rows).question.rows.person is None
    question = compile_sql("SELECT COUNT(*) FROM data", persons).question
    assert question.rows.person is not None
    assert question.rows.rows_per_person is None


def rows_per_person(catalog: Catalog, source: str) -> int | None:
    return compile_sql(f"SELECT COUNT(*) FROM {source}", catalog).question.rows.rows_per_person


def test_rows_per_person_are_known_after_grouping(persons: Catalog) -> None:
    each = "(SELECT patient_id, COUNT(*) AS n FROM data GROUP BY patient_id)"
    assert rows_per_person(persons, f"{each} AS x") == 1
    labelled = "(SELECT patient_id, MIN(age) AS a FROM data GROUP BY patient_id) AS x JOIN coded ON x.a = coded.code"
    public = Catalog(private=persons.private, person="patient_id", public={"coded": pa.table({"code": [1, 2]})})
    assert rows_per_person(public, labelled) == 1
    assert rows_per_person(persons, f"{each} AS x JOIN {each} AS y ON x.patient_id = y.patient_id") == 1
    assert rows_per_person(persons, f"{each} AS x JOIN data ON x.patient_id = data.patient_id") is None
    assert rows_per_person(persons, "(SELECT patient_id, sex FROM data GROUP BY 1, 2) AS x") is None
    assert rows_per_person(persons, "(SELECT DISTINCT patient_id FROM data) AS x") == 1
    assert rows_per_person(persons, "(SELECT patient_id FROM data) AS x") is None


@pytest.mark.parametrize(
    ("text", "values", "labels"),
    [
        ("sex", ("F", "M", "X"), None),
        ("smoker", (False, True), None),
        ("age > 50", (False, True), None),
        ("FLOOR(age / 50) * 50", (0, 1, 2), (0, 50, 100)),
        ("ROUND(age, -2)", (0, 1), (0, 100)),
        ("WIDTH_BUCKET(age, 0, 110, 2)", (1, 2, 3), None),
        ("WIDTH_BUCKET(age, 50, 100, 1)", (0, 1, 2), None),
        ("LEAST(age, 2)", (0, 1, 2), None),
        ('CLAMP("Mixed Name", 1, 2)', (1, 2), None),
        ("CASE WHEN age < 5 THEN 0.5 WHEN age < 9 THEN 7 ELSE 0.5 END", (1, 14), (0.5, 7)),
        ("CASE WHEN age < 5 THEN 'b' ELSE 'a' END", ("b", "a"), None),
        ("CASE WHEN age < 5 THEN sex ELSE 'other' END", ("F", "M", "X", "other"), None),
        ("COALESCE(sex, 'unknown')", ("F", "M", "X", "unknown"), None),
        ("NULLIF(sex, 'X')", ("F", "M", "X"), None),
        ("LEFT(sex, 1)", ("F", "M", "X"), None),
        ("LENGTH(sex)", (1,), None),
        ("YEAR(day)", (2019, 2020, 2021), None),
        ("MONTH(seen)", tuple(range(1, 13)), None),
        ("QUARTER(seen)", (1, 2, 3, 4), None),
        ("COALESCE(smoker, FALSE)", (False, True), None),
        (
            "DATE_TRUNC('year', day)",
            (2019, 2020, 2021),
            (dt.date(2019, 1, 1), dt.date(2020, 1, 1), dt.date(2021, 1, 1)),
        ),
        ("note", None, None),
        ("weight", None, None),
        ("day", None, None),
        ("YEAR(seen)", None, None),
        ("income + 1", None, None),
        ("LENGTH(note)", None, None),
        ("CASE WHEN age < 5 THEN note ELSE 'other' END", None, None),
        ("CASE WHEN age < 5 THEN day ELSE '2020-01-01' END", None, None),
        ("CAST(seen AS DATE)", None, None),
        ("COALESCE(day, DATE '2020-01-01')", None, None),
    ],
)
def test_keys_have_their_public_values(
    rows: Catalog, text: str, values: tuple[object, ...] | None, labels: tuple[object, ...] | None
) -> None:
    key = only_key(rows, text)
    assert key.values == values
    assert key.labels == labels


def test_months_are_listed_from_the_first_to_the_last(rows: Catalog) -> None:
    key = only_key(rows, "DATE_TRUNC('quarter', day)")
    assert key.shown is not None
    assert key.shown[:2] == (dt.date(2019, 1, 1), dt.date(2019, 4, 1))
    assert key.shown[-1] == dt.date(2021, 10, 1)
    assert len(only_key(rows, "DATE_TRUNC('month', day)").values or ()) == 34


def test_unlisted_numbers_are_shown_as_they_are(rows: Catalog) -> None:
    assert only_key(rows, "income / 3").type is StorageType.REAL
    assert only_key(rows, "(age * 1000 + income) * 1024").type is StorageType.INTEGER


def test_public_tables_may_hold_any_plain_type(rows: Catalog) -> None:
    public = pa.table(
        {
            "age": [1, 2],
            "at": pa.array([dt.datetime(2020, 1, 1), None], pa.timestamp("ms")),
            "yes": [True, None],
            "far": [float("inf"), 1.0],
            "kind": pa.array(["a", "b"]).dictionary_encode(),
            "bad": ["\0", "x"],
        }
    )
    catalog = Catalog(private=rows.private, public={"p": public})
    text = compile_sql("SELECT COUNT(at), COUNT(yes), COUNT(far), COUNT(kind) FROM data JOIN p USING (age)", catalog)
    source = text.question.rows.source.sql()
    assert "('1', '2020-01-01 00:00:00', 'true', 'Infinity', 'a')" in source
    with pytest.raises(MissingBoundsError, match="far"):
        compile_sql("SELECT SUM(far) FROM data JOIN p USING (age)", catalog)
    with pytest.raises(UnsafeQueryError, match="leave out NUL"):
        compile_sql("SELECT COUNT(bad) FROM data JOIN p USING (age)", catalog)


def test_tables_without_a_schema_can_be_asked_with_limits_in_the_query() -> None:
    catalog = Catalog(private={"data": open_table(pa.table({"a": [1], "d": [dt.date(2020, 1, 1)]}))})
    assert compile_sql("SELECT SUM(CLAMP(a, 0, 5)) FROM data", catalog).question.aggregates
    with pytest.raises(MissingBoundsError, match="CLAMP"):
        compile_sql("SELECT SUM(a) FROM data", catalog)
    number = compile_sql("SELECT SUM(YEAR(d)) FROM data", catalog).question.aggregates[0].of  # type: ignore[union-attr]
    assert number.bounds == (1, 9999)


def test_guessed_facts_are_not_used() -> None:
    schema = Schema([Column(name="a", kind="nominal", categories=["x"], guessed=frozenset({"categories"}))])
    catalog = Catalog(private={"data": open_table(pa.table({"a": ["x"]}), schema=schema)})
    with pytest.raises(UnconfirmedSchemaError, match="confirm"):
        compile_sql("SELECT a, COUNT(*) FROM data GROUP BY a", catalog)


def test_public_columns_have_the_domain_of_their_table(persons: Catalog) -> None:
    query = "SELECT {}, COUNT(*) FROM data JOIN cities ON data.note = cities.note GROUP BY 1"
    domains = {
        name: compile_sql(query.format(name), persons).question.keys[0].values
        for name in ("region", "level", "flat", "opened", "YEAR(opened)", "LEAST(share, 1) > 0")
    }
    assert domains == {
        "region": ("north", "south", "west"),
        "level": (1, 2),
        "flat": (3,),
        "opened": (dt.date(2000, 1, 1), dt.date(2001, 1, 1)),
        "YEAR(opened)": (2000, 2001),
        "LEAST(share, 1) > 0": (False, True),
    }
    query = "SELECT SUM(share), SUM(flat), SUM(level) FROM data JOIN cities ON data.note = cities.note"
    bounds = [total.of.bounds for total in compile_sql(query, persons).question.aggregates]  # type: ignore[union-attr]
    assert bounds == [(Fraction(1, 2), 2), (3, 4), (1, 2)]


@pytest.mark.parametrize(
    "query",
    [
        "select  Sex, count(*)  AS n from DATA where AGE > 5 group by SEX",
        'SELECT "sex" AS other, COUNT(*) m FROM data AS d WHERE d.age > 5.0 GROUP BY d."sex" -- said so',
        "SELECT sex, COUNT(*) FROM (SELECT * FROM data) AS x WHERE (age) > 5 GROUP BY 1",
        "WITH t AS (SELECT sex AS s, age AS a FROM data) SELECT s, COUNT(*) FROM t WHERE a > 5 GROUP BY s;",
    ],
)
def test_the_same_meaning_has_the_same_canonical_text(rows: Catalog, query: str) -> None:
    first = compile_sql("SELECT sex, COUNT(*) FROM data WHERE age > 5 GROUP BY sex", rows)
    assert compile_sql(query, rows).canonical == first.canonical


def test_spelling_does_not_change_the_name_of_a_computed_key(rows: Catalog) -> None:
    first, second = (
        compile_sql(f"SELECT COUNT(*) FROM data AS d GROUP BY {text}", rows).question.canonical()
        for text in ("FLOOR(age/10)*10", 'floor(d."age" / 10) * 10')
    )
    assert first == second


@pytest.mark.parametrize(
    "query",
    [
        "SELECT sex, COUNT(*) FROM data WHERE age >= 5 GROUP BY sex",
        "SELECT sex, COUNT(age) FROM data WHERE age > 5 GROUP BY sex",
        "SELECT sex, COUNT(*) FROM data WHERE age > 5 GROUP BY sex LIMIT 1",
        "SELECT sex, COUNT(*) FROM data WHERE age > 5 GROUP BY sex ORDER BY sex",
        "SELECT COUNT(*) FROM data WHERE age > 5",
    ],
)
def test_another_meaning_has_another_canonical_text(rows: Catalog, query: str) -> None:
    first = compile_sql("SELECT sex, COUNT(*) FROM data WHERE age > 5 GROUP BY sex", rows)
    assert compile_sql(query, rows).canonical != first.canonical


def test_typical_queries_compile_fast(rows: Catalog) -> None:
    query = (
        "SELECT sex, COUNT(*) AS n, AVG(age) AS age, SUM(income) / COUNT(*) AS m FROM data WHERE age > 20 "
        "GROUP BY sex HAVING n > 5 ORDER BY n DESC LIMIT 5"
    )
    compile_sql(query, rows)
    start = time.process_time()
    for _ in range(20):
        compile_sql(query, rows)
    assert (time.process_time() - start) / 20 < 0.05


def test_many_declared_categories_are_public() -> None:
    codes = [f"c{number}" for number in range(100_001)]
    schema = Schema([Column(name="code", categories=codes), Column(name="n", kind="numeric", bounds=(0, 9))])
    table = open_table(pa.table({"code": ["c7"], "n": [3]}), schema=schema)
    catalog = Catalog(private={"data": table})
    key = compile_sql("SELECT code, COUNT(*) AS n FROM data GROUP BY code", catalog).question.keys[0]
    assert key.values == tuple(codes)


@pytest.mark.parametrize(("steps", "is_public"), [(999_999, True), (1_000_000, False)])
def test_a_range_of_numbers_is_public_if_an_answer_can_show_it(steps: int, is_public: bool) -> None:
    table = open_table(pa.table({"n": [3]}))
    sql = f"SELECT CLAMP(n, 0, {steps}) / 2 AS half, COUNT(*) AS c FROM data GROUP BY half"
    question = compile_sql(sql, Catalog(private={"data": table})).question
    assert (question.keys[0].values is not None) == is_public
    if is_public:
        assert (question.keys[0].labels or ())[:3] == (0, 0.5, 1)
        return
    with pytest.raises(ParameterError, match="at most 1,000,000: categories"):
        plan(question, Contribution(), check_price(epsilon=1))
