from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, strategies as st

from cloister.attacks.auditing.exact_check import check_exactly
from cloister.core import exact
from cloister.core.random import SeededRandomSource
from cloister.errors import ParameterError, ParameterTypeError, UnsafeMechanismError
from cloister.mechanisms import BinaryRandomizedResponse, Mechanism, randomized_response_epsilon, refusals
from cloister.testing import distributions, statistics

inner = st.fractions(min_value=Fraction(1, 100), max_value=Fraction(99, 100), max_denominator=100)


def _law(response: BinaryRandomizedResponse) -> Any:
    return lambda true: {told: response.transition()[told, true] for told in (0, 1)}


@given(inner, inner)
def test_the_stated_epsilon_is_the_tight_one(truth: Fraction, second: Fraction) -> None:
    response = BinaryRandomizedResponse(truth=truth, second=second)
    check_exactly(_law(response), [(0, 1)], epsilon=response.epsilon).verify()
    assert check_exactly(_law(response), [(0, 1)], epsilon=response.epsilon * Fraction(999, 1000)).refuted


@given(st.fractions(min_value=Fraction(1, 100), max_value=40, max_denominator=100))
def test_the_best_response_for_an_epsilon(epsilon: Fraction) -> None:
    response = BinaryRandomizedResponse.for_epsilon(epsilon)
    assert epsilon * (1 - Fraction(1, 10**20)) <= response.epsilon <= epsilon
    told_true = response.transition()[1, 1]
    low, high = exact.exp_bounds(epsilon)
    assert float(told_true) == pytest.approx(float(low / (1 + high)), rel=1e-12)


@pytest.mark.statistical
def test_answers_follow_the_law() -> None:
    response = BinaryRandomizedResponse(truth=0.5, second=0.75)
    assert isinstance(response, Mechanism)
    for true in (0, 1):
        answers = response.release(np.full(50_000, true)).value
        law = {told: float(p) for told, p in _law(response)(true).items()}
        statistics.check_distribution(answers, distributions.categorical(law))
        other = {told: float(p) for told, p in _law(response)(1 - true).items()}
        assert statistics.fit(answers, distributions.categorical(other)).p_value < 1e-9


def test_the_estimate_is_unbiased() -> None:
    response = BinaryRandomizedResponse(truth=0.5, second=0.25)
    told = 0.3 * float(response.transition()[1, 1]) + 0.7 * float(response.transition()[1, 0])
    assert response.estimate_share(told) == pytest.approx(0.3)


def test_one_bit_and_its_margin() -> None:
    response = BinaryRandomizedResponse.for_epsilon(5)
    answer = response.release(True)
    assert answer.value in (0, 1)
    assert answer.margin(0.95) == 0
    assert answer.margin(0.999) == 1
    assert response.standard_deviation == 0.5
    assert not response.release(False, random_state=SeededRandomSource(1)).guarantee.holds


@pytest.mark.parametrize("bad", [2, 0.5, "yes", [0, 3]])
def test_only_bits_are_answered(bad: object) -> None:
    with pytest.raises(ParameterTypeError, match="True or False"):
        BinaryRandomizedResponse.for_epsilon(1).release(bad)


@pytest.mark.parametrize(("truth", "second"), [(1, 0.5), (0.5, 1), (0.5, 0)])
def test_certain_proof_is_refused(truth: float, second: float) -> None:
    assert randomized_response_epsilon(truth, second) is None
    with pytest.raises(UnsafeMechanismError, match="strictly between 0 and 1"):
        BinaryRandomizedResponse(truth=truth, second=second)


def test_never_telling_the_truth_costs_nothing() -> None:
    assert randomized_response_epsilon(0, 1) == 0
    assert BinaryRandomizedResponse(truth=0).epsilon == 0


def test_extreme_parameters_are_refused() -> None:
    with pytest.raises(UnsafeMechanismError, match="epsilon <= 50"):
        BinaryRandomizedResponse.for_epsilon(51)
    with pytest.raises(ParameterError, match="finite"):
        BinaryRandomizedResponse(truth=math.nan)


@pytest.mark.parametrize(
    ("method", "instead"),
    [
        (refusals.wishart, "Gaussian"),
        (refusals.redraw_laplace, "TruncatedLaplace"),
        (refusals.forced_response, "BinaryRandomizedResponse"),
        (refusals.floating_point_laplace, "lattice"),
    ],
)
def test_what_is_not_private_is_refused_with_the_reason(method: Any, instead: str) -> None:
    with pytest.raises(UnsafeMechanismError, match=instead):
        method(np.eye(2), epsilon=1)
