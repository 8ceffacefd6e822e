from __future__ import annotations

import functools
import itertools
import json
import statistics
from collections import Counter
from dataclasses import replace
from typing import Any

import pandas as pd
import pyarrow as pa
import pytest

import cloister as cl
from cloister.attacks import Published, census_reconstruction
from cloister.attacks.interfaces.census_reconstruction import Program
from cloister.core.random import SeededRandomSource
from cloister.errors import CloisterError, ParameterError, ParameterTypeError, QueryRefusedError
from cloister.queries.inference_control import ControlledTable, Controls

PEOPLE = [
    {"age": 3, "sex": "F"},
    {"age": 5, "sex": "F"},
    {"age": 9, "sex": "M"},
    {"age": 1, "sex": "M"},
    {"age": 1, "sex": "M"},
]
CATEGORIES = {"sex": ("F", "M")}
BOUNDS = (0, 9)
GROUPS: list[dict[str, Any]] = [{}, {"sex": "F"}, {"sex": "M"}]


def statistics_of(people: list[dict[str, Any]], where: dict[str, Any]) -> Published:
    ages = [person["age"] for person in people if all(person[name] == value for name, value in where.items())]
    mean = round(statistics.mean(ages), 1)
    return Published(where=where, count=len(ages), mean=mean, median=statistics.median(ages))


def attacked(published: list[Published], **parameters: Any) -> Any:
    given = {"truth": PEOPLE, "number": "age", "bounds": BOUNDS, "categories": CATEGORIES, **parameters}
    return census_reconstruction(published, **given)


@functools.cache
def ages_told(ages: tuple[int, ...]) -> Published:
    """Return what is told of some people: many tables have the same ones."""
    return statistics_of([{"age": age} for age in ages], {})


def agrees(table: tuple[tuple[str, int], ...], item: Published) -> bool:
    wanted = dict(item.where).get("sex", "FM")
    ages = tuple(sorted(age for sex, age in table if sex in wanted))
    return bool(ages) and replace(ages_told(ages), where=item.where) == item


def all_tables(published: list[Published]) -> list[Counter[tuple[str, int]]]:
    """Return every table that agrees, by trying all."""
    kinds = list(itertools.product("FM", range(10)))
    tables = itertools.combinations_with_replacement(kinds, len(PEOPLE))
    return [Counter(table) for table in tables if all(agrees(table, item) for item in published)]


@pytest.mark.parametrize("groups", [GROUPS, GROUPS[1:], GROUPS[2:]], ids=["all", "by-sex", "men"])
def test_it_finds_as_many_tables_as_trying_all_does(groups: list[dict[str, Any]]) -> None:
    published = [statistics_of(PEOPLE, where) for where in groups]
    tables = all_tables(published)
    result = attacked(published, cap=100)
    assert result.is_complete == (len(tables) <= 100)
    assert result.solutions == min(len(tables), 100)
    common = tables[0]
    for table in tables[1:]:
        common &= table
    assert result.certain == pytest.approx(sum(common.values()) / len(PEOPLE))


def test_what_is_certain_does_not_depend_on_the_cap() -> None:
    published = [Published(where={"sex": "F"}, count=2, mean=4), statistics_of(PEOPLE, {"sex": "M"})]
    few, many = attacked(published, cap=1), attacked(published, cap=100)
    assert (few.solutions, few.is_complete) == (1, False)
    assert (many.solutions, many.is_complete) == (5, True)
    assert few.certain == many.certain == 0.6
    assert "At least 1 tables agree" in few.verdict


def test_suppressed_numbers_leave_many_tables() -> None:
    result = attacked([Published(count=5, mean=3.8), Published(where={"sex": "F"}, mean=4)], cap=3)
    assert not result.is_complete
    assert result.certain == 0
    assert result.queries == 3


def test_noisy_numbers_within_one_epsilon_leave_the_nearest_table() -> None:
    schema = cl.Schema.from_dict(
        {"columns": {"age": {"kind": "numeric", "bounds": [0, 9]}, "sex": {"categories": ["F", "M"]}}}
    )
    table = cl.open_table(pa.Table.from_pylist(PEOPLE), schema=schema)
    private = cl.PrivateTable(table, budget=cl.Budget(epsilon=1))
    price: dict[str, Any] = {"epsilon": "1/9", "random_state": SeededRandomSource(1)}
    published = []
    for where in GROUPS:
        condition = f"sex = '{where['sex']}'" if where else None
        count = private.count(where=condition, **price).value
        mean, median = (ask("age", where=condition, **price).value for ask in (private.mean, private.median))
        published.append(Published(where=where, count=count, mean=mean, median=median))
    result = attacked(published)
    assert private.remaining.amount == 0
    assert result.solutions == 0
    assert result.certain == 0
    assert not result.succeeded
    assert "No table agrees" in result.verdict


def test_inference_control_answers_too_little_about_a_block() -> None:
    columns = {
        "age": {"kind": "numeric", "bounds": [0, 9], "role": "sensitive"},
        "sex": {"categories": ["F", "M"], "role": "quasi"},
    }
    table = ControlledTable(
        cl.open_table(pa.Table.from_pylist(PEOPLE), schema=cl.Schema.from_dict({"columns": columns})),
        controls=Controls(min_size=2),
    )
    published = []
    for where in GROUPS[1:]:
        condition = f"sex = '{where['sex']}'"
        try:
            mean = table.mean("age", condition).value
        except QueryRefusedError:
            mean = None
        published.append(Published(where=where, count=table.count(condition).value, mean=mean))
    assert [item.mean is None for item in published] == [True, False]
    result = attacked(published, cap=2)
    assert not result.is_complete
    assert result.certain == 0


def test_contradictions_are_met_by_the_nearest_table() -> None:
    result = attacked([Published(count=5, mean=3.8, median=3), Published(where={"sex": "F"}, count=9, mean=0)])
    assert result.solutions == 0
    assert result.certain == 0
    assert "No table agrees" in result.verdict


def test_frames_and_tables_are_people_too() -> None:
    published = [statistics_of(PEOPLE, where) for where in GROUPS]
    frame = pd.DataFrame(PEOPLE)
    assert attacked(published, truth=frame).success == attacked(published, truth=pa.Table.from_pylist(PEOPLE)).success


def test_a_tolerance_counts_the_nearly_right() -> None:
    published = [Published(count=5, mean=3.8)]
    assert attacked(published, tolerance=9, cap=1).baseline == 0.6
    assert attacked(published, tolerance=9, cap=1).success >= attacked(published, cap=1).success


def test_a_search_without_time_claims_nothing() -> None:
    result = attacked([statistics_of(PEOPLE, where) for where in GROUPS], seconds="0.000001")
    assert (result.solutions, result.is_complete, result.certain, result.success) == (0, False, 0, 0)
    assert "took too long" in result.verdict
    assert not result.succeeded


def test_a_search_that_runs_out_of_time_keeps_what_it_found(monkeypatch: pytest.MonkeyPatch) -> None:
    solve, calls = Program.solve, itertools.count()

    def slow(program: Program, **options: Any) -> Any:
        if next(calls):
            raise TimeoutError
        return solve(program, **options)

    monkeypatch.setattr(Program, "solve", slow)
    result = attacked([Published(count=5, mean=3.8)])
    assert (result.solutions, result.is_complete, result.certain) == (1, False, 0)


def test_the_report_names_nobody() -> None:
    result = attacked([statistics_of(PEOPLE, where) for where in GROUPS])
    text = json.dumps(result.to_dict()) + repr(result) + result.verdict + str(result.summary())
    assert "worst" not in text
    assert dict(result.summary())["tables that agree"] == str(result.solutions)
    assert "people who follow for certain" in result.report().to_markdown()


@pytest.mark.parametrize(
    ("parameters", "error", "fix"),
    [
        ({"truth": []}, ParameterError, "one small block"),
        ({"truth": PEOPLE * 3}, ParameterError, "one small block"),
        ({"truth": 5}, ParameterTypeError, "list of dictionaries"),
        ({"truth": [{"age": 3}]}, ParameterError, "its bounds and the categories"),
        ({"truth": [{"age": 30, "sex": "F"}]}, ParameterError, "its bounds and the categories"),
        ({"truth": [{"age": None, "sex": "F"}]}, ParameterError, "its bounds and the categories"),
        ({"number": "height"}, ParameterError, "its bounds and the categories"),
        ({"categories": {"sex": ()}}, ParameterError, "each possible value once"),
        ({"categories": {"sex": "FF"}}, ParameterError, "each possible value once"),
        ({"bounds": (0, 10_000)}, ParameterError, "narrower bounds"),
        ({"cap": 0}, ParameterError, "cap=1"),
        ({"published": [Published(where={"race": "B"}, count=1)]}, ParameterError, "in categories"),
        ({"published": [Published(count="many")]}, ParameterError, "finite number"),
    ],
    ids=[
        "nobody",
        "too-many",
        "no-table",
        "no-column",
        "outside",
        "missing",
        "unknown-number",
        "no-values",
        "twice",
        "wide",
        "cap",
        "group",
        "count",
    ],
)
def test_bad_input_is_refused_with_a_fix(parameters: dict[str, Any], error: type[CloisterError], fix: str) -> None:
    published = parameters.pop("published", [Published(count=5)])
    with pytest.raises(error, match=fix):
        attacked(published, **parameters)
