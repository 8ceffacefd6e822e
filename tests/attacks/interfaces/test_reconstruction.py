from __future__ import annotations

import json
import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, strategies as st

import cloister as cl
from cloister.attacks import reconstruction
from cloister.attacks.interfaces.reconstruction import least_squares, linear_program
from cloister.core.random import SeededRandomSource, SystemRandomSource, bits
from cloister.errors import BudgetExceededError, ParameterError, ParameterTypeError, QueryRefusedError
from cloister.queries.inference_control import ControlledTable, Controls
from tests.support.asked_tables import random_conditions, secret_table

METHODS = ("least_squares", "linear_program")


def secret_of(people: int, seed: int = 1) -> np.ndarray[Any, np.dtype[np.int64]]:
    return bits(SeededRandomSource(seed), people).astype(np.int64)


def exactly(secret: Any) -> Callable[[Any], Any]:
    return lambda positions: secret[positions].sum()


@pytest.mark.parametrize("method", METHODS)
def test_exact_answers_give_all_of_500_secrets_away(method: str) -> None:
    secret = secret_of(500)
    result = reconstruction(
        exactly(secret), truth=secret, queries=1000, method=method, random_state=SeededRandomSource(2)
    )
    assert result.success == 1
    assert result.succeeded
    assert result.baseline < 0.6
    assert result.misfit < 1e-6
    assert (result.queries, result.trials, result.refused) == (1000, 500, 0)


@pytest.mark.audit
@pytest.mark.slow
@pytest.mark.statistical
def test_a_private_table_with_epsilon_1_in_total_gives_little_away() -> None:
    # Guessing gets half of 1,000 bits, give or take 1.6 points: 60% is more than six standard deviations away.
    shares, queries = [], 600
    for seed in (1, 2):
        secret, source = secret_of(500, seed), SystemRandomSource()
        private = cl.PrivateTable(secret_table(secret), budget=cl.Budget(epsilon=1))
        members, conditions = random_conditions(500, queries, source)
        result = reconstruction(
            lambda where, private=private: private.sum("sick", where=where, epsilon=Fraction(1, queries)),
            truth=secret,
            members=members,
            questions=conditions,
        )
        exact = reconstruction(exactly(secret), truth=secret, members=members)
        assert exact.success >= 0.95
        assert (result.queries, result.refused) == (queries, 0)
        assert private.remaining.amount == 0
        shares.append(result.success)
    assert np.mean(shares) <= 0.6


def test_inference_control_that_audits_sums_still_gives_bits_away() -> None:
    secret = secret_of(40)
    members, conditions = random_conditions(40, 60, SeededRandomSource(3))
    table = ControlledTable(secret_table(secret), controls=Controls(min_size=5))
    result = reconstruction(
        lambda where: table.sum("sick", where),
        truth=secret,
        members=members,
        questions=conditions,
        method="linear_program",
        refusal=QueryRefusedError,
    )
    assert result.refused >= 20
    assert result.success >= 0.95


@pytest.mark.parametrize("method", METHODS)
def test_noise_that_ignores_the_number_of_questions_is_averaged_away(method: str) -> None:
    secret, source = secret_of(64), SeededRandomSource(5)

    def ask(positions: Any) -> float:
        return float(secret[positions].sum()) + 6 * (int(source.words(1)[0]) / 2**64 - 0.5)

    few = reconstruction(ask, truth=secret, queries=128, method=method, random_state=source)
    many = reconstruction(ask, truth=secret, queries=2000, method=method, random_state=source)
    assert many.success > few.success
    assert many.success > 0.95
    assert many.misfit == pytest.approx(math.sqrt(3), abs=0.3)


def test_the_linear_program_needs_fewer_answers_than_people() -> None:
    secret = secret_of(100)
    given_by = [
        reconstruction(exactly(secret), truth=secret, queries=70, method=method, random_state=SeededRandomSource(7))
        for method in METHODS
    ]
    assert given_by[1].success == 1
    assert given_by[1].success > given_by[0].success


def test_answers_that_say_nothing_find_nothing() -> None:
    secret = secret_of(200)
    source = SeededRandomSource(8)
    result = reconstruction(lambda _: int(source.words(1)[0] % 1000), truth=secret, random_state=source)
    assert not result.succeeded
    assert abs(result.success - 0.5) < 0.15
    assert "no more than guessing" in result.verdict


def test_other_values_than_bits_can_be_reconstructed() -> None:
    grades = np.array([1, 3, 2, 5, 4, 1, 2, 3])
    result = reconstruction(exactly(grades), truth=grades, choices=(1, 2, 3, 4, 5), random_state=SeededRandomSource(1))
    assert result.success == 1
    assert result.estimates == tuple(map(float, grades))


def test_a_closed_interface_leaves_a_guess() -> None:
    def closed(_: Any) -> Any:
        raise BudgetExceededError(requested=Fraction(1), remaining=Fraction(0))

    secret = secret_of(20)
    result = reconstruction(closed, truth=secret, queries=10, guess=0)
    assert result.success == result.baseline == pytest.approx(1 - secret.mean())
    assert result.refused == 10
    assert math.isnan(result.misfit)
    assert result.worst == ()
    assert result.to_dict()["misfit"] is None
    assert "10 were refused" in result.verdict


def test_nothing_about_a_person_is_in_the_report() -> None:
    secret = secret_of(30)
    result = reconstruction(exactly(secret), truth=secret)
    assert len(result.worst) == 10
    text = json.dumps(result.to_dict(), allow_nan=False) + repr(result) + str(result.summary()) + result.verdict
    assert "worst" not in text
    assert "estimates" not in text
    assert dict(result.summary())["solved by"] == "least squares"
    assert result.plot().title.startswith("How often")
    text = result.report().to_markdown()
    assert "reconstruction" in text
    assert "least squares" in text
    assert "0 of 150 questions" in text


@given(st.lists(st.integers(0, 1), min_size=2, max_size=12))
def test_both_methods_solve_exact_systems_of_full_rank(values: list[int]) -> None:
    secret = np.array(values, dtype=np.float64)
    sets = np.vstack([np.eye(len(values), dtype=bool), ~np.eye(len(values), dtype=bool)])
    for solve in (least_squares, linear_program):
        assert solve(sets, sets @ secret, bounds=(0, 1)) == pytest.approx(secret, abs=1e-6)


@pytest.mark.parametrize(
    ("parameters", "fix"),
    [
        ({"truth": []}, "at least one"),
        ({"truth": [0, math.nan]}, "finite"),
        ({"queries": 0}, "queries=1"),
        ({"method": "least_square"}, "use one of least_squares, linear_program"),
        ({"choices": (1,)}, "choices="),
        ({"choices": ()}, "choices="),
        ({"members": [[1, 0, 1]]}, "shape"),
        ({"members": [[1, 2]]}, "shape"),
        ({"members": [[1, 0]], "queries": 3}, "one of the two"),
        ({"questions": ["TRUE"]}, "members="),
        ({"members": [[1, 0]], "questions": ["TRUE", "FALSE"]}, "one row for every question"),
        ({"guess": [1, 2, 3]}, "one guess"),
        ({"confidence": 1.5}, "confidence"),
    ],
    ids=lambda value: value if isinstance(value, str) else "-".join(value),
)
def test_bad_input_is_refused_with_a_fix(parameters: dict[str, Any], fix: str) -> None:
    with pytest.raises(ParameterError, match=fix):
        reconstruction(lambda _: 1, **{"truth": [0, 1], **parameters})


def test_an_answer_that_is_no_number_is_refused() -> None:
    with pytest.raises(ParameterTypeError, match="one number"):
        reconstruction(lambda _: "many", truth=[0, 1])
