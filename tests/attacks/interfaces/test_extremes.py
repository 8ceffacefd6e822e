from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, strategies as st

import cloister as cl
from cloister.attacks import extremes, extremes_by_counting
from cloister.core.random import SeededRandomSource
from cloister.errors import ParameterError, UnsafeQueryError
from cloister.queries.inference_control import ControlledTable, Controls, Ranges
from tests.support.asked_tables import salary_table

SALARIES = [1000, 2000, 3000, 2000, 1000, 6000, 2000, 10_000, 2000, 4000]
GROUPS = ["sex = 'F'", "sex = 'M'"]
LARGEST = [3000, 10_000]
BOUNDS = (0, 20_000)
MAX = "SELECT MAX(salary) AS top FROM data WHERE "


def controlled(**controls: Any) -> ControlledTable:
    return ControlledTable(salary_table(SALARIES, women=5), controls=Controls(min_size=2, **controls))


def maximum(table: ControlledTable, where: str) -> Any:
    return table.sql(MAX + where)["top"][0]


def test_a_maximum_is_somebodys_value() -> None:
    table = controlled(extremes=True, audit=False)
    result = extremes(lambda where: maximum(table, where), questions=GROUPS, truth=LARGEST)
    assert result.success == 1
    assert result.estimates == (3000, 10_000)


def test_a_range_says_roughly_who_earns_what() -> None:
    table = controlled(extremes=True, audit=False, means=Ranges(width=5000))
    result = extremes(lambda where: maximum(table, where), questions=GROUPS, truth=LARGEST, tolerance=3000)
    assert result.success == 1


def test_inference_control_refuses_extremes() -> None:
    table = controlled()
    result = extremes(
        lambda where: maximum(table, where), questions=GROUPS, truth=LARGEST, refusal=(UnsafeQueryError, ValueError)
    )
    assert (result.success, result.refused) == (0, 2)


def test_a_private_maximum_is_nobodys_value() -> None:
    private = cl.PrivateTable(salary_table(SALARIES, women=5), budget=cl.Budget(epsilon=1))
    source = SeededRandomSource(1)
    result = extremes(
        lambda where: private.max("salary", where=where, epsilon="0.5", random_state=source),
        questions=GROUPS,
        truth=LARGEST,
        tolerance=1,
    )
    assert (result.success, result.refused) == (0, 0)
    assert private.remaining.amount == 0


def test_counts_find_a_maximum_that_is_never_answered() -> None:
    def count(question: tuple[str, float]) -> int:
        where, threshold = question
        group = SALARIES[:5] if "F" in where else SALARIES[5:]
        return sum(salary > threshold for salary in group)

    result = extremes_by_counting(count, questions=GROUPS, truth=LARGEST, bounds=BOUNDS)
    assert result.success == 1
    assert result.queries == 32
    few = extremes_by_counting(count, questions=GROUPS, truth=LARGEST, bounds=BOUNDS, steps=3)
    assert (few.success, few.queries) == (0, 6)
    assert few.typical_error < 20_000 / 2**3


def test_inference_control_refuses_counts_above_any_threshold() -> None:
    table = controlled()
    result = extremes_by_counting(
        lambda question: table.count(f"{question[0]} AND salary > {question[1]}"),
        questions=GROUPS,
        truth=LARGEST,
        bounds=BOUNDS,
        refusal=UnsafeQueryError,
    )
    assert result.success == 0
    assert result.refused == 2


def test_private_counts_find_no_maximum() -> None:
    private = cl.PrivateTable(salary_table(SALARIES, women=5), budget=cl.Budget(epsilon=1))
    source = SeededRandomSource(1)
    result = extremes_by_counting(
        lambda question: private.count(
            where=f"{question[0]} AND salary > {question[1]}", epsilon="1/32", random_state=source
        ),
        questions=GROUPS,
        truth=LARGEST,
        bounds=BOUNDS,
    )
    assert (result.queries, result.refused) == (32, 0)
    assert result.success == 0
    assert private.remaining.amount == 0


@given(st.lists(st.integers(0, 1000), min_size=1, max_size=30))
def test_counting_always_finds_the_largest_value(values: list[int]) -> None:
    result = extremes_by_counting(
        lambda question: sum(value > question[1] for value in values),
        questions=["all"],
        truth=[max(values)],
        bounds=(0, 1000),
    )
    assert result.success == 1


def test_bad_input_is_refused_with_a_fix() -> None:
    with pytest.raises(ParameterError, match="at least one"):
        extremes(lambda _: 1, questions=[], truth=[])
    with pytest.raises(ParameterError, match="smaller number first"):
        extremes_by_counting(lambda _: 1, questions=["x"], truth=[1], bounds=(2, 1))
    with pytest.raises(ParameterError, match="steps=1"):
        extremes_by_counting(lambda _: 1, questions=["x"], truth=[1], bounds=(0, 1), steps=0)
