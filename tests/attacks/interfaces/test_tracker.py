from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, strategies as st

import cloister as cl
from cloister.attacks import individual_tracker, tracker
from cloister.errors import ParameterError, ParameterTypeError, QueryRefusedError
from cloister.queries.inference_control import ControlledTable, Controls
from tests.support.asked_tables import salary_table

SALARIES = [1000, 2000, 3000, 2000, 1000, 6000, 2000, 10_000, 2000, 4000]
PEOPLE = range(1, 11)
EVERYBODY = [f"id = {number}" for number in PEOPLE]
BY_SEX = [("sex = 'F'" if number <= 5 else "sex = 'M'", f"id = {number}") for number in PEOPLE]


def controlled(**controls: Any) -> Callable[[str], Any]:
    table = ControlledTable(salary_table(SALARIES, women=5), controls=Controls(min_size=2, **controls))
    return lambda where: table.sum("salary", where)


def attacked(ask: Callable[[str], Any], **parameters: Any) -> Any:
    given_by = {"targets": EVERYBODY, "through": "sex = 'F'", "truth": SALARIES, "refusal": QueryRefusedError}
    return tracker(ask, **{**given_by, **parameters})


def test_a_limit_on_the_size_of_a_question_protects_nobody() -> None:
    result = attacked(controlled(audit=False))
    assert result.success == 1
    assert result.succeeded
    assert (result.queries, result.refused) == (22, 0)


def test_an_individual_tracker_needs_two_questions() -> None:
    result = individual_tracker(controlled(audit=False), targets=BY_SEX, truth=SALARIES, refusal=QueryRefusedError)
    assert result.success == 1
    assert result.queries == 12


def test_an_audit_stops_both_trackers() -> None:
    general = attacked(controlled(audit=True))
    individual = individual_tracker(controlled(audit=True), targets=BY_SEX, truth=SALARIES, refusal=QueryRefusedError)
    assert general.success == individual.success == 0
    assert general.refused >= 10
    assert "refused" in general.verdict


@pytest.mark.statistical
def test_a_private_table_hides_everybody_within_one_epsilon() -> None:
    private = cl.PrivateTable(salary_table(SALARIES, women=5), budget=cl.Budget(epsilon=1))
    result = attacked(
        lambda where: private.sum("salary", where=where, epsilon="1/22"), tolerance=500, refusal=ValueError
    )
    # Four answers with Laplace noise of scale 440,000 each: within 500 with a chance below 1 in 1,000 for each person.
    assert result.success <= 0.6
    assert result.typical_error > 1_000
    assert (result.queries, result.refused) == (22, 0)


def test_a_tracker_that_is_refused_is_replaced_by_the_next() -> None:
    result = attacked(controlled(audit=False), through=["id = 1", "sex = 'M'", "sex = 'F'"])
    assert result.success == 1
    assert result.refused == 1 + 1


def test_without_a_tracker_nothing_is_found() -> None:
    result = attacked(controlled(audit=False), through="id = 1")
    assert result.success == 0


@given(
    values=st.lists(st.integers(0, 1000), min_size=4, max_size=20),
    chosen=st.sets(st.integers(0, 19)),
    target=st.integers(0, 3),
)
def test_the_formula_holds_for_every_table_and_tracker(values: list[int], chosen: set[int], target: int) -> None:
    def ask(where: str) -> int:
        conditions = {
            "T": lambda place: place in chosen,
            "NOT (T)": lambda place: place not in chosen,
            "(C) OR (T)": lambda place: place == target or place in chosen,
            "(C) OR NOT (T)": lambda place: place == target or place not in chosen,
        }
        meets = conditions[where]
        return sum(value for place, value in enumerate(values) if meets(place))

    assert tracker(ask, targets=["C"], through="T", truth=[values[target]]).success == 1


@pytest.mark.parametrize(
    ("parameters", "error", "fix"),
    [
        ({"targets": "id = 1", "truth": [1] * 6}, ParameterTypeError, "targets="),
        ({"targets": [1], "truth": [1]}, ParameterTypeError, "targets="),
        ({"targets": [], "truth": []}, ParameterError, "at least one"),
        ({"through": []}, ParameterError, "through="),
        ({"truth": [1]}, ParameterError, "one true value"),
    ],
    ids=["text", "numbers", "empty", "no-tracker", "lengths"],
)
def test_bad_input_is_refused_with_a_fix(parameters: dict[str, Any], error: type[Exception], fix: str) -> None:
    with pytest.raises(error, match=fix):
        attacked(lambda _: 1, **parameters)


def test_an_individual_tracker_is_a_pair() -> None:
    with pytest.raises(ParameterTypeError, match="targets="):
        individual_tracker(lambda _: 1, targets=["id = 1"], truth=[1])  # type: ignore[list-item]
