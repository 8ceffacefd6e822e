from __future__ import annotations

import datetime as dt
import json
from typing import Any

import pyarrow as pa
import pytest

from cloister import NoGuarantee, Schema
from cloister.errors import (
    CloisterError,
    MissingBoundsError,
    ParameterError,
    ParameterTypeError,
    QueryRefusedError,
    UnconfirmedSchemaError,
    UnknownColumnError,
    UnsafeQueryError,
)
from cloister.queries.inference_control import ControlledTable, Controls, Ranges, Rounded
from tests.queries.inference_control.controlled import CUT_POINTS, STAFF, TEN, staff, staff_rows, ten, ten_people
from tests.queries.neighbors import fast_table


def test_counts_sums_and_means_are_exact() -> None:
    table = staff()
    women = [row for row in staff_rows().to_pylist() if row["sex"] == "F"]
    paid = [row["salary"] for row in women if row["salary"] is not None]
    assert table.count("sex = 'F'").value == len(women)
    assert table.sum("salary", "sex = 'F'").value == sum(paid)
    assert table.mean("salary", "sex = 'F'").value == sum(paid) / len(paid)
    assert table.sum("bonus", "sex = 'F'").value == sum(row["bonus"] for row in women)


def test_an_answer_promises_nothing_and_says_so() -> None:
    answer = ten().mean("salary", "sex = 'F'")
    assert isinstance(answer.guarantee, NoGuarantee)
    assert not answer.guarantee.holds
    assert "is not differential privacy" in answer.guarantee.explain()
    assert str(answer) == "1,800, no guarantee"
    assert dict(answer.summary())["mean of salary"] == "1,800, no guarantee"
    values = json.loads(json.dumps(answer.to_dict()))
    assert (values["schema"], values["value"], values["notes"]) == ("cloister.controlled_answer/1", 1800, [])


def test_sets_of_one_and_of_nine_of_ten_are_refused() -> None:
    for where in ("id = 8", "id <> 8", "id < 0", "id > 0"):
        for ask in (lambda where: ten().count(where), lambda where: ten().sum("salary", where)):
            with pytest.raises(QueryRefusedError) as refused:
                ask(where)
            assert refused.value.control == "size"
    assert ten().count("id IN (7, 8)").value == 2
    assert ten().count("id < 9").value == 8


def test_a_refusal_tells_no_number_and_nothing_about_which_side_is_too_small() -> None:
    texts = set()
    for where in ("id = 8", "id <> 8", "sex = 'F' AND id > 5"):
        with pytest.raises(QueryRefusedError, match="ask about another group of people") as refused:
            ten().count(where)
        texts.add(str(refused.value))
    assert len(texts) == 1
    assert not any(letter.isdigit() for letter in texts.pop())


def test_groups_show_a_missing_marker_where_a_number_is_not_permitted() -> None:
    table = staff()
    frame = table.sql("SELECT ward, sex, COUNT(*) AS n, AVG(salary) AS pay FROM data GROUP BY ward, sex")
    assert frame.names == ("ward", "sex", "n", "pay")
    assert frame["ward"] == ("north", "north", "north", "south", "south", "south", "east", "east", "east")
    assert frame["n"] == (20, 20, None, 40, 40, None, None, None, None)
    assert frame.suppressed == 10
    assert frame.rows()[2] == {"ward": "north", "sex": "X", "n": None, "pay": None}
    assert str(frame).splitlines()[3].split() == ["north", "X", "suppressed", "suppressed"]
    assert frame.to_arrow()["n"].null_count == 5
    assert dict(frame.summary())["suppressed"] == "10 numbers"
    assert len(frame) == 9
    values = json.loads(json.dumps(frame.to_dict()))
    assert values["columns"][2] == {"name": "n", "is_key": False, "values": list(frame["n"])}


def test_a_second_group_is_suppressed_when_the_first_would_follow_from_it() -> None:
    """Two wards of ten people, one of whom is alone; the total was told before."""
    rows = pa.table({"ward": ["a"] * 9 + ["b"] * 10 + ["c"], "pay": list(range(20)), "all": [1] * 20})
    schema = Schema.from_dict(
        {
            "columns": {
                "ward": {"categories": ["a", "b", "c"], "role": "quasi"},
                "pay": {"kind": "numeric", "bounds": [0, 100], "role": "sensitive"},
            }
        }
    )
    table = ControlledTable(fast_table(rows, schema=schema), controls=Controls(min_size=2))
    table.sum("pay", "ward IN ('b', 'c')")
    frame = table.sql("SELECT ward, SUM(pay) AS pay FROM data GROUP BY ward")
    assert frame["pay"] == (sum(range(9)), None, None)


def test_a_rare_diagnosis_does_not_follow_from_the_others() -> None:
    rows = pa.table({"sex": ["F"] * 40 + ["M"] * 40, "illness": (["none"] * 26 + ["flu"] * 13 + ["cancer"]) * 2})
    schema = Schema([STAFF["sex"], STAFF["illness"]])
    query = "SELECT illness, COUNT(*) AS n FROM data WHERE sex = 'F' GROUP BY illness"
    for audit, shown in ((False, (26, 13, None)), (True, (26, None, None))):
        controls = Controls(audit=audit, cut_points={"illness": CUT_POINTS["illness"]})
        table = ControlledTable(fast_table(rows, schema=schema), controls=controls)
        assert table.sql(query)["n"] == shown


def test_real_numbers_can_be_groups() -> None:
    schema = Schema.from_dict(
        {"columns": {"dose": {"kind": "numeric", "categories": [0.5, 0.0], "role": "quasi"}, "x": {"role": "quasi"}}}
    )
    rows = pa.table({"dose": [-0.0] * 15 + [0.5] * 12 + [0.0] * 3 + [None] * 10, "x": ["a"] * 40})
    table = ControlledTable(fast_table(rows, schema=schema))
    assert table.sql("SELECT dose, COUNT(*) AS n FROM data GROUP BY dose")["n"] == (12, 18)


def test_a_question_about_all_rows_leaves_out_none() -> None:
    with pytest.raises(QueryRefusedError):
        staff().count()


def test_conditions_on_confidential_columns_stand_alone() -> None:
    table = staff()
    truth = [row for row in staff_rows().to_pylist() if row["sex"] == "M" and row["illness"] == "flu"]
    assert table.count("sex = 'M' AND illness = 'flu'").value == len(truth)
    frame = table.sql("SELECT illness, COUNT(*) AS n FROM data WHERE (ward = 'south' AND (sex = 'M')) GROUP BY illness")
    assert frame["n"] == (20, 20, None)
    rich = sum(row["sex"] == "F" and (row["salary"] or 0) >= 1500 for row in staff_rows().to_pylist())
    assert table.sql("SELECT COUNT(*) FROM data d WHERE d.salary >= 1500 AND d.sex = 'F'").cells == ((rich,),)
    for where in ("sex = 'F' OR salary >= 1500", "NOT (sex = 'F' AND salary >= 1500)", "number < salary"):
        with pytest.raises(UnsafeQueryError, match="with AND, each on its own"):
            table.count(where)


def test_a_rare_condition_is_suppressed_in_all_of_its_groups() -> None:
    frame = staff().sql("SELECT sex, COUNT(*) AS n FROM data WHERE illness = 'cancer' GROUP BY sex")
    assert frame["n"] == (None, None, None)


def test_missing_values_are_left_out() -> None:
    table = staff()
    present = [row for row in staff_rows().to_pylist() if row["sex"] == "F" and row["salary"] is not None]
    assert table.sql("SELECT COUNT(salary) AS n FROM data WHERE sex = 'F'")["n"] == (len(present),)


def test_dates_and_patterns_in_conditions_and_expressions_as_groups() -> None:
    early = sum(row["hired"] < dt.date(2020, 3, 1) for row in staff_rows().to_pylist())
    assert 10 < early < 110
    assert staff().count("hired < '2020-03-01'").value == early
    assert staff().count("number BETWEEN 10 AND 30 AND ward LIKE 's%'").value == 14
    by_age = staff().sql("SELECT number >= 40 AS old, COUNT(*) AS n FROM data GROUP BY number >= 40")
    assert by_age.rows() == [{"old": False, "n": 40}, {"old": True, "n": 80}]


def test_nobody_can_be_looked_up() -> None:
    table = staff()
    with pytest.raises(UnsafeQueryError, match="would show single rows"):
        table.sql("SELECT salary FROM data WHERE number = 8")
    for query in (
        "SELECT AVG(salary) FROM data WHERE name = 'person 8'",
        "SELECT COUNT(name) FROM data WHERE sex = 'F'",
        "SELECT COUNT(*) FROM data WHERE sex = 'F' OR name = 'person 8'",
    ):
        with pytest.raises(UnsafeQueryError, match="who cannot be looked up"):
            table.sql(query)


@pytest.mark.parametrize(
    ("query", "fix"),
    [
        ("SELECT MAX(salary) FROM data", r"ask for AVG\(salary\)"),
        ("SELECT MIN(salary) FROM data WHERE sex = 'F'", "noisy quantile"),
        ("SELECT MEDIAN(salary) FROM data", "PrivateTable answers more"),
        ("SELECT STDDEV(salary) FROM data", "PrivateTable answers more"),
        ("SELECT COUNT(DISTINCT ward) FROM data", "PrivateTable answers more"),
        ("SELECT COUNT(*) FILTER (WHERE number = 8) FROM data", "PrivateTable answers more"),
        ("SELECT SUM(CASE WHEN number = 8 THEN salary ELSE 0 END) FROM data", "put conditions in WHERE"),
        ("SELECT SUM(salary * 2) FROM data", "put conditions in WHERE"),
        ("SELECT SUM(CLAMP(salary, 0, 50)) FROM data", "put conditions in WHERE"),
        ("SELECT SUM(number) FROM data", 'confidential=\\("number",\\)'),
        ("SELECT SUM(salary) / COUNT(*) AS x FROM data", "compute it from the answer"),
        ("SELECT sex, COUNT(*) AS n FROM data GROUP BY sex HAVING COUNT(*) > 5", "sort or filter the answer"),
        ("SELECT sex, COUNT(*) AS n FROM data GROUP BY sex ORDER BY n", "sort or filter the answer"),
        ("SELECT sex, COUNT(*) AS n FROM data GROUP BY sex LIMIT 1", "sort or filter the answer"),
        ("SELECT note, COUNT(*) AS n FROM data GROUP BY note", "state its categories"),
        ("SELECT COUNT(*) FROM (SELECT * FROM data) AS d", "select FROM data alone"),
        ("WITH d AS (SELECT * FROM data) SELECT COUNT(*) FROM d", "select FROM data alone"),
        ("SELECT COUNT(*) FROM data a JOIN data b ON a.number = b.number", "select FROM data alone"),
        ("SELECT COUNT(*) FROM data; SELECT COUNT(*) FROM data", "one query at a time"),
        ("DELETE FROM data", "SELECT"),
        ("SELECT COUNT(*) FROM other", "select from one of data"),
    ],
)
def test_what_is_not_answered_says_what_is(query: str, fix: str) -> None:
    with pytest.raises(UnsafeQueryError, match=fix) as refused:
        staff().sql(query)
    assert not isinstance(refused.value, QueryRefusedError)


def test_too_many_groups_are_refused() -> None:
    with pytest.raises(ParameterError, match="group by fewer columns"):
        staff().sql("SELECT number, ward, COUNT(*) AS n FROM data GROUP BY number, ward")


@pytest.mark.parametrize("bad", ["", "not sql at all (", 5, None])
def test_queries_are_sql(bad: Any) -> None:
    with pytest.raises((ParameterError, ParameterTypeError)):
        staff().sql(bad)


def test_bad_columns_and_conditions() -> None:
    table = staff()
    with pytest.raises(UnknownColumnError, match='Did you mean "salary"'):
        table.sum("salry")
    with pytest.raises(UnknownColumnError):
        table.count("position = 3")
    with pytest.raises(ParameterTypeError):
        table.count(5)  # type: ignore[arg-type]
    with pytest.raises(CloisterError):
        table.sum("illness", "sex = 'F'")
    with pytest.raises(ParameterError, match="no column"):
        table.sql("SELECT COUNT(*) AS n FROM data WHERE sex = 'F'")["m"]


def test_extremes_are_answered_when_the_owner_wants_them() -> None:
    frame = ten(extremes=True).sql("SELECT MIN(salary) AS low, MAX(salary) AS high FROM data WHERE sex = 'M'")
    assert (frame["low"], frame["high"]) == ((2000,), (10000,))


def test_numbers_can_be_rounded_or_shown_as_ranges() -> None:
    table = ten(counts=Rounded(to=3), sums=Rounded(to=5000), means=Ranges(width=1000))
    frame = table.sql("SELECT sex, COUNT(*) AS n, SUM(salary) AS s, AVG(salary) AS m FROM data GROUP BY sex")
    assert (frame["n"], frame["s"]) == ((6, 6), (10000, 25000))
    assert [str(shown) for shown in frame["m"]] == ["[1000, 2000)", "[4000, 5000)"]
    assert frame.to_arrow()["m"].to_pylist() == ["[1000, 2000)", "[4000, 5000)"]
    assert any("can be combined" in note for note in frame.notes)
    assert str(ten(means=Ranges(width=1000)).mean("salary", "sex = 'F'")) == "[1000, 2000), no guarantee"


def test_a_mean_of_nothing_is_missing() -> None:
    rows = pa.table({"sex": ["F"] * 4 + ["M"] * 4, "salary": pa.array([None] * 4 + [1] * 4, pa.int64()), "id": [1] * 8})
    table = ControlledTable(fast_table(rows, schema=TEN), controls=Controls(min_size=None))
    frame = table.sql("SELECT sex, AVG(salary) AS m, SUM(salary) AS s FROM data GROUP BY sex")
    assert (frame["m"], frame["s"]) == ((None, 1), (0, 4))


def test_answers_beside_noisy_ones_say_so() -> None:
    table = ControlledTable(ten_people(), controls=Controls(min_size=2), beside_private=True)
    assert "does not cover these numbers" in table.count("sex = 'F'").notes[0]
    assert ("note", table.count("sex = 'F'").notes[0]) in table.count("sex = 'F'").summary()


def test_columns_can_be_called_confidential() -> None:
    table = staff(confidential=["number"])
    assert table.confidential == {"salary", "bonus", "illness", "number"}
    assert table.mean("number", "sex = 'F'").value == 60
    with pytest.raises(UnsafeQueryError, match="each on its own"):
        table.count("number = 8 OR sex = 'F'")


def test_identifiers_stay_hidden_when_they_are_called_confidential() -> None:
    schema = TEN.with_role("id", "identifier")
    table = ControlledTable(ten_people().with_schema(schema), controls=Controls(min_size=2), confidential=("id",))
    with pytest.raises(UnsafeQueryError, match="who cannot be looked up"):
        table.sum("id", "sex = 'F'")


def test_large_sums_are_exact() -> None:
    largest = 2**52
    schema = Schema.from_dict(
        {
            "columns": {
                "sex": {"categories": ["F", "M"], "role": "quasi"},
                "x": {"kind": "numeric", "bounds": [-largest, largest], "role": "sensitive"},
            }
        }
    )
    rows = pa.table({"sex": ["F", "M"] * 3000, "x": [largest, -largest + 8192] * 3000})
    table = ControlledTable(fast_table(rows, schema=schema))
    assert table.sum("x", "sex = 'F'").value == 3000 * largest
    assert table.sum("x", "sex = 'M'").value == 3000 * (8192 - largest)


def test_opening_needs_a_schema_that_says_what_is_confidential() -> None:
    with pytest.raises(ParameterError, match="role sensitive"):
        ControlledTable(ten_people().with_schema(None))
    with pytest.raises(ParameterTypeError, match="open_table"):
        ControlledTable("data.csv")  # type: ignore[arg-type]
    with pytest.raises(UnconfirmedSchemaError, match="role"):
        ControlledTable(ten_people().with_schema(Schema.from_dict({"columns": {"id": {}, "salary": {}}})))
    with pytest.raises(ParameterTypeError, match=r"Controls\(\)"):
        ControlledTable(ten_people(), controls={"min_size": 2})  # type: ignore[arg-type]
    with pytest.raises(UnknownColumnError):
        ControlledTable(ten_people(), confidential=["wage"])
    with pytest.raises(ParameterTypeError, match="confidential"):
        ControlledTable(ten_people(), confidential="salary")


def test_a_table_that_is_too_small_is_refused_without_a_number() -> None:
    with pytest.raises(ParameterError, match="lower min_size") as refused:
        ControlledTable(ten_people())
    assert not any(letter.isdigit() for letter in str(refused.value))


def test_a_person_has_one_row() -> None:
    schema = Schema.from_dict(
        {
            "columns": {
                "id": {"role": "identifier", "subject": True},
                "salary": {"kind": "numeric", "bounds": [0, 9], "role": "sensitive"},
            }
        }
    )
    controls = Controls(min_size=2)
    once = pa.table({"id": list(range(8)), "salary": [1] * 8})
    assert "id" in repr(ControlledTable(fast_table(once, schema=schema), controls=controls))
    for ids in ([1, 1, 2, 3, 4, 5, 6, 7], [None, 1, 2, 3, 4, 5, 6, 7]):
        twice = pa.table({"id": pa.array(ids, pa.int64()), "salary": [1] * 8})
        with pytest.raises(ParameterError, match="one row for each person first"):
            ControlledTable(fast_table(twice, schema=schema), controls=controls)


def test_bounds_are_needed_as_elsewhere() -> None:
    schema = Schema.from_dict(
        {"columns": {"sex": {"role": "quasi"}, "salary": {"kind": "numeric", "role": "sensitive"}}}
    )
    table = ControlledTable(ten_people().with_schema(schema), controls=Controls(min_size=2))
    with pytest.raises(MissingBoundsError):
        table.sum("salary", "sex = 'F'")


def test_a_column_called_position_is_no_other_column() -> None:
    schema = Schema.from_dict(
        {
            "columns": {
                "position": {"categories": ["F", "M"], "role": "quasi"},
                "salary": {"kind": "numeric", "bounds": [0, 9], "role": "sensitive"},
            }
        }
    )
    rows = pa.table({"position": ["F", "M"] * 10, "salary": [1] * 20})
    assert ControlledTable(fast_table(rows, schema=schema)).sum("salary", "position = 'F'").value == 10


def test_nothing_of_the_rows_is_printed() -> None:
    assert repr(staff()) == f"ControlledTable({', '.join(STAFF.names)})"
