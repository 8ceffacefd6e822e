"""An attacker who cuts a confidential column ever finer, and watches answers and refusals alike."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import pyarrow as pa
import pytest

from cloister import Schema
from cloister.errors import CloisterError, ParameterError, QueryRefusedError, UnknownColumnError, UnsafeQueryError
from cloister.queries.inference_control import ControlledTable, Controls, MemoryHistory
from tests.queries.neighbors import fast_table

PLACES = {
    "columns": {
        "team": {"categories": ["red", "blue"], "role": "quasi"},
        "office": {"categories": ["north", "south"], "role": "quasi"},
        "salary": {"kind": "numeric", "bounds": [0, 8191], "role": "sensitive"},
    }
}
SIZE = 64
LOWEST, HIGHEST = 0, 8192


def salary_of(number: int) -> int:
    """Return the salary of a person, different for everybody."""
    return 1000 + number * 1009 % 6007


def places_table(salaries: list[int] | None = None, **options: Any) -> ControlledTable:
    """Return people of two teams in two offices."""
    rows = {
        "team": ["red" if number % 2 else "blue" for number in range(SIZE)],
        "office": ["north" if number % 4 < 2 else "south" for number in range(SIZE)],
        "salary": [salary_of(number) for number in range(SIZE)] if salaries is None else salaries,
    }
    return ControlledTable(fast_table(pa.table(rows), schema=Schema.from_dict(PLACES)), **options)


def seen(table: ControlledTable, where: str) -> Any:
    """Return whatever an attacker sees: a number, or the control that refused."""
    try:
        return table.count(where).value
    except QueryRefusedError as refused:
        return refused.control
    except CloisterError as refused:
        return type(refused).__name__


def found_values(ask: Callable[[int], Any]) -> set[int]:
    """Return where what is seen changes as the cut moves: each is somebody's exact value."""
    found = set()
    grid = range(LOWEST, HIGHEST + 1, 512)
    views = [ask(cut) for cut in grid]
    for low, high, before, after in zip(grid, grid[1:], views, views[1:], strict=False):
        if before == after:
            continue
        under, over = low, high
        while over - under > 1:
            middle = (under + over) // 2
            under, over = (middle, over) if ask(middle) == before else (under, middle)
        found.add(under)
    return found


def found_in(table: ControlledTable, group: str) -> set[int]:
    """Return the exact values that cutting finds in a group."""
    return found_values(lambda cut: seen(table, f"salary >= {cut} AND {group}"))


def test_no_exact_salary_is_found_by_cutting() -> None:
    """With the controls as they are by default; each group is asked about by an organization of its own."""
    team, office = (found_in(places_table(), group) for group in ("team = 'red'", "office = 'north'"))
    named = {number for number in range(SIZE) if salary_of(number) in team & office}
    assert (named, team & {salary_of(number) for number in range(SIZE)}) == (set(), set())


def test_cut_points_are_all_that_cutting_finds() -> None:
    controls = Controls(cut_points={"salary": (3072, 5120)})
    for group in ("team = 'red'", "office = 'north'"):
        changes = found_in(places_table(controls=controls), group)
        assert {salary_of(number) for number in range(SIZE)} & changes == set()
        assert all(change in (3071, 3072, 5119, 5120) for change in changes)


WORKED = Schema.from_dict(
    {
        "columns": {
            "sex": {"categories": ["F", "M"], "role": "quasi"},
            "salary": {"kind": "numeric", "bounds": [0, 100_000], "role": "sensitive"},
            "change": {"kind": "numeric", "bounds": [-10, 10], "role": "sensitive"},
            "hired": {"kind": "datetime", "bounds": ["2020-01-01", "2026-12-31"], "role": "sensitive"},
            "illness": {"categories": ["none", "flu", "cancer"], "role": "sensitive"},
            "insured": {"categories": [True, False], "role": "sensitive"},
            "remark": {"kind": "text", "role": "sensitive"},
        }
    }
)
WORKED_CUTS = {
    "salary": (2000, 5000),
    "change": (-2.5, 0),
    "hired": ("2021-01-01",),
    "illness": ("flu", "none"),
    "insured": (True, False),
    "remark": ("ill",),
}


def worked(size: int = 80, **controls: Any) -> ControlledTable:
    """Return people with many confidential columns."""
    numbers = range(size)
    rows = {
        "sex": ["FM"[number % 2] for number in numbers],
        "salary": [number % 7 * 1000 + number for number in numbers],
        "change": [number % 9 - 4.5 for number in numbers],
        "hired": pa.array([18_300 + number * 9 for number in numbers], pa.int32()).cast(pa.date32()),
        "illness": ["flu" if number % 3 else "none" for number in numbers],
        "insured": [number % 5 > 1 for number in numbers],
        "remark": ["ill" if number % 4 else "well" for number in numbers],
    }
    return ControlledTable(fast_table(pa.table(rows), schema=WORKED), controls=Controls(**controls))


@pytest.fixture(scope="module")
def tables() -> list[ControlledTable]:
    """Return two tables with the same public facts and other rows."""
    return [worked(size, cut_points=WORKED_CUTS) for size in (80, 20)]


@pytest.mark.parametrize(
    "where",
    [
        "salary >= 2000",
        "2000 <= salary AND NOT (salary >= 5000)",
        "sex = 'F' AND (salary < 2000 OR 5000 <= salary)",
        "change < -2.5 OR change >= 0",
        "change >= 0.0",
        "hired < '2021-01-01'",
        "hired >= DATE '2021-01-01'",
        "illness = 'flu'",
        "illness IN ('flu', 'none') AND salary >= 2000",
        "NOT ('flu' <> illness)",
        "insured = TRUE",
        "remark <> 'ill'",
        "salary IS NOT NULL AND salary >= 2000",
        "salary >= 2000 OR illness = 'flu'",
    ],
)
def test_conditions_at_cut_points_are_understood(where: str, tables: list[ControlledTable]) -> None:
    assert isinstance(seen(tables[0], where), int) or seen(tables[0], where) in ("size", "audit")


@pytest.mark.parametrize(
    "where",
    [
        "salary >= 2001",
        "salary > 2000",
        "salary <= 2000",
        "salary = 2000",
        "salary <> 2000",
        "salary >= 2000.5",
        "salary BETWEEN 2000 AND 5000",
        "salary IN (2000, 5000)",
        "salary + 1 >= 2000",
        "salary * 2 >= 2000",
        "ABS(salary) >= 2000",
        "COALESCE(salary, 0) >= 2000",
        "FLOOR(salary / 1000) >= 2",
        "MOD(salary, 2) = 0",
        "salary >= change",
        "salary = salary",
        "NULL >= salary",
        "CASE WHEN salary >= 2000 THEN TRUE ELSE FALSE END",
        "CASE WHEN salary >= 2001 THEN 1 ELSE 0 END = 1",
        "(salary >= 2000) = (illness = 'flu')",
        "sex = 'F' AND (salary >= 2000 OR salary >= 2001)",
        "sex = 'F' AND NOT salary < 2001",
        "hired < '2021-01-02'",
        "YEAR(hired) >= 2021",
        "illness = 'cancer'",
        "illness >= 'flu'",
        "illness LIKE 'f%'",
        "LENGTH(illness) = 3",
        "SUBSTRING(remark, 1, 1) = 'i'",
        "remark = 'well'",
    ],
)
def test_conditions_elsewhere_are_refused_without_a_look_at_the_rows(where: str, tables: list[ControlledTable]) -> None:
    for aggregate in ("COUNT(*)", "AVG(salary)"):
        texts = set()
        for table in tables:
            with pytest.raises(CloisterError) as refused:
                table.sql(f"SELECT {aggregate} FROM data WHERE {where}")
            assert not isinstance(refused.value, QueryRefusedError)
            texts.add(str(refused.value))
        assert len(texts) == 1


def test_a_refused_cut_says_which_there_are() -> None:
    fixes = {}
    for where in ("salary > 2000", "illness = 'cancer'"):
        with pytest.raises(UnsafeQueryError, match="elsewhere than at public cut points") as refused:
            worked(cut_points=WORKED_CUTS).count(where)
        fixes[where] = refused.value.fix
    assert "by < and >=, with one of 2000, 5000;" in fixes["salary > 2000"]
    assert "by = and <>, with one of 'flu', 'none';" in fixes["illness = 'cancer'"]
    with pytest.raises(UnsafeQueryError, match="1, 2, 3, 4, 5, 6, 7, 8, 9, 10, ...;"):
        worked(cut_points={"salary": range(1, 30)}).count("salary >= 40")


@pytest.mark.parametrize("where", ["salary >= 2000", "salary IS NULL", "illness = 'flu'", "salary < 0"])
def test_without_cut_points_confidential_columns_are_in_no_condition(where: str) -> None:
    with pytest.raises(UnsafeQueryError, match="ask the data owner to declare public cut points of"):
        worked().mean("salary", f"sex = 'F' AND {where}")


@pytest.mark.parametrize(
    ("key", "is_permitted"),
    [
        ("insured", True),
        ("illness", False),
        ("salary >= 2000", True),
        ("salary >= 2001", False),
        ("illness = 'flu'", True),
        ("CASE WHEN salary >= 2001 THEN 'rich' ELSE 'poor' END", False),
        ("YEAR(hired)", False),
    ],
)
def test_groups_are_cut_where_conditions_may(key: str, is_permitted: bool) -> None:
    table = worked(cut_points=WORKED_CUTS)
    query = f"SELECT {key} AS part, COUNT(*) AS n, AVG(salary) AS pay FROM data GROUP BY {key}"
    if is_permitted:
        assert len(table.sql(query)) == 2
        return
    with pytest.raises(UnsafeQueryError):
        table.sql(query)
    with pytest.raises(UnsafeQueryError):
        worked().sql(query)


def test_what_is_seen_does_not_depend_on_where_in_its_class_a_value_is() -> None:
    """All decisions and all counts are the same for other salaries of the same classes; only sums differ."""
    cuts = (3000, 5000, 5100, 6500)
    salaries = [salary_of(number) for number in range(SIZE)]
    edges = (0, *cuts, HIGHEST)
    others = [low + high - 1 - salary for salary in salaries for low, high in pairwise(edges) if low <= salary < high]
    assert sum(first != other for first, other in zip(salaries, others, strict=True)) > 50
    views = []
    for values in (salaries, others):
        table = places_table(values, controls=Controls(cut_points={"salary": cuts}))
        groups = ["team = 'red'", "office = 'north'", "team = 'red' OR office = 'north'", "team = 'blue'"]
        conditions = [f"({group}) AND salary {sign} {cut}" for group in groups for sign in ("<", ">=") for cut in cuts]
        view = []
        for where in [*groups, *conditions]:
            view.append(seen(table, where))
            try:
                table.mean("salary", where)
                view.append("told")
            except QueryRefusedError as refused:
                view.append(refused.control)
        views.append(view)
    assert views[0] == views[1]
    assert {"told", "size", "audit"} <= set(views[0])


def test_refused_and_repeated_questions_count() -> None:
    table = worked(max_questions=6)
    assert table.sql("SELECT sex, COUNT(*) AS n FROM data GROUP BY sex")["n"] == (40, 40)
    for _ in range(2):
        assert table.count("sex = 'F'").value == 40
        assert seen(table, "sex = 'X'") == "size"
    for where in ("sex = 'F'", "sex = 'M'"):
        with pytest.raises(QueryRefusedError, match="as many numbers as it may") as refused:
            table.count(where)
        assert refused.value.control == "history"


def test_a_question_for_more_numbers_than_are_left_tells_none_of_them() -> None:
    table = worked(max_questions=3)
    with pytest.raises(QueryRefusedError):
        table.sql("SELECT sex, COUNT(*) AS n, AVG(salary) AS pay FROM data GROUP BY sex")
    assert table.count("sex = 'F'").value == 40


def test_what_was_refused_is_recorded() -> None:
    table = worked(cut_points={"salary": (2000,), "illness": ("cancer",)})
    assert seen(table, "sex = 'X'") == "size"
    assert seen(table, "sex = 'F' AND illness = 'cancer'") == "size"
    assert isinstance(table.history, MemoryHistory)
    stored = table.history.to_dict()
    assert [item["kinds"] for item in stored["sets"]] == [["refused"], ["known"]]
    assert stored["asked"] == 2
    again = MemoryHistory.from_dict(stored)
    assert again.to_dict() == stored
    earlier = {**stored, "schema": "cloister.inference_history/1"}
    del earlier["asked"]
    assert MemoryHistory.from_dict(earlier).to_dict()["asked"] == 2


def test_cut_points_are_of_confidential_columns() -> None:
    with pytest.raises(UnknownColumnError, match='Did you mean "salary"'):
        worked(cut_points={"salry": (1,)})
    with pytest.raises(ParameterError, match="drop its cut points"):
        worked(cut_points={"sex": ("F",)})
    for bad in ({"salary": ("many",)}, {"illness": (5,)}, {"hired": ("soon",)}):
        with pytest.raises(CloisterError):
            worked(cut_points=bad)
