from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, strategies as st
from scipy import optimize

from cloister.core.random import random_source
from cloister.errors import ParameterError
from cloister.mechanisms.transitions import (
    draw_codes,
    estimate_shares,
    estimate_yes_share,
    invert_shares,
    most_likely_shares,
    response_matrix,
)
from tests.mechanisms.transitions.strategies import MATRIX, matrices

shares3 = st.tuples(*[st.integers(0, 20)] * 3).filter(lambda counts: sum(counts) > 0)
SINGULAR = [[0.5, 0.5], [0.5, 0.5]]
SKEWED = [["0.9", "0.1"], ["0.4", "0.6"]]


@given(matrices(), shares3)
def test_the_estimators_undo_the_matrix(matrix: Any, counts: tuple[int, ...]) -> None:
    transition = np.array(matrix, dtype=float)
    if np.linalg.cond(transition) > 1e4:
        return
    prior = np.array(counts) / sum(counts)
    assert estimate_shares(prior @ transition, matrix=matrix) == pytest.approx(prior, abs=1e-8)
    assert most_likely_shares(prior @ transition, matrix=matrix).shares == pytest.approx(prior, abs=1e-5)


def test_the_inverse_of_the_matrix_itself_would_be_wrong() -> None:
    wrong = np.linalg.solve(np.array(SKEWED, dtype=float), [0.55, 0.45])
    assert wrong == pytest.approx([0.57, 0.37])
    assert invert_shares([55, 45], matrix=SKEWED).shares == pytest.approx([0.3, 0.7])


def test_inverted_shares_may_be_negative_and_add_up() -> None:
    found = invert_shares([95, 5], matrix=SKEWED)
    assert found.shares == pytest.approx([1.1, -0.1])
    assert found.reports == 100
    assert found.condition_number == pytest.approx(np.linalg.cond(np.array(SKEWED, dtype=float)))


@given(st.tuples(*[st.integers(0, 1000)] * 4).filter(any), st.fractions("1/2", 5, max_denominator=10))
def test_the_noise_is_that_of_the_support_formula(counts: tuple[int, ...], epsilon: Any) -> None:
    matrix = response_matrix(4, epsilon=epsilon)
    p, q, n = float(matrix[0][0]), float(matrix[0][1]), sum(counts)
    found = invert_shares(counts, matrix=matrix)
    assert found.shares == pytest.approx((np.array(counts) - n * q) / (p - q) / n, abs=1e-9)
    # Var(count) = (n_v p (1 - p) + (n - n_v) q (1 - q)) / (p - q)**2, at the estimated n_v.
    variances = (found.shares * p * (1 - p) + (1 - found.shares) * q * (1 - q)) / (p - q) ** 2 / n
    assert np.diag(found.noise_covariance) == pytest.approx(variances, rel=1e-6, abs=1e-9)


def test_standard_errors_are_roots_of_the_covariance() -> None:
    found = invert_shares([55, 45], matrix=SKEWED)
    # The inverse of the transpose is [[1.2, -0.8], [-0.2, 1.8]], and o has the variance 0.55 * 0.45 / 100.
    assert found.standard_errors == pytest.approx([2 * math.sqrt(0.55 * 0.45 / 100)] * 2)
    assert found.covariance == pytest.approx(0.0099 * np.array([[1, -1], [-1, 1]]))


@pytest.mark.statistical
def test_inverted_shares_are_as_far_off_as_they_say() -> None:
    counts, repetitions = np.array([500, 300, 200]), 400
    codes = np.repeat(np.arange(3), counts)
    drawn = draw_codes(np.tile(codes, repetitions), MATRIX, random_source(None)).reshape(repetitions, -1)
    reports = np.stack([(drawn == code).sum(axis=1) for code in range(3)], axis=1)
    found = np.stack([invert_shares(row, matrix=MATRIX).shares for row in reports])
    expected = counts @ np.array(MATRIX, dtype=float)
    deviations = np.sqrt(np.diag(invert_shares(np.rint(expected), matrix=MATRIX).noise_covariance))
    # The mean of 400 is normal to well within the margin of 6.2 deviations, which are 1e-9.
    assert (np.abs(found.mean(axis=0) - counts / 1000) < 6.2 * deviations / 20).all()
    # A chi-square with 400 degrees leaves 0.64 .. 1.48 with probability 1e-9.
    ratio = found.var(axis=0) / deviations**2
    assert ((ratio > 0.6) & (ratio < 1.5)).all()
    # The wrong inverse is seen.
    wrong = np.linalg.solve(np.array(MATRIX, dtype=float), reports.mean(axis=0) / 1000)
    assert (np.abs(wrong - counts / 1000) > 6.2 * deviations / 20).any()


def _plain_steps(observed: Any, matrix: Any, rounds: int) -> Any:
    """Repeat the textbook step of expectation-maximization."""
    transition = np.array(matrix, dtype=float)
    shares = np.full(len(transition), 1 / len(transition))
    for _ in range(rounds):
        shares = shares * (transition @ (observed / (shares @ transition)))
    return shares


@given(shares3)
def test_the_most_likely_shares_are_where_plain_steps_lead(counts: tuple[int, ...]) -> None:
    matrix = [["0.8", "0.1", "0.1"], ["0.2", "0.7", "0.1"], ["0.1", "0.1", "0.8"]]
    observed = np.array(counts) / sum(counts)
    found = most_likely_shares(counts, matrix=matrix)
    assert found.is_converged
    assert found.caution == ""
    plain = _plain_steps(observed, matrix, 2000)
    assert found.shares == pytest.approx(plain, abs=2e-3)
    used = observed > 0
    score = lambda shares: observed[used] @ np.log((shares @ np.array(matrix, dtype=float))[used])  # noqa: E731
    assert score(found.shares) >= score(plain) - 1e-9
    assert score(found.shares) <= score(plain) + 1e-4


@given(matrices(size=4), st.tuples(*[st.integers(0, 50)] * 4).filter(any))
def test_the_gap_certifies_that_nothing_is_more_likely(matrix: Any, counts: tuple[int, ...]) -> None:
    transition, observed = np.array(matrix, dtype=float), np.array(counts) / sum(counts)
    found = most_likely_shares(counts, matrix=matrix)
    assert found.is_converged
    assert (found.shares >= 0).all()
    assert found.shares.sum() == pytest.approx(1)
    used = observed > 0
    score = lambda shares: observed[used] @ np.log((shares @ transition)[used])  # noqa: E731
    for corner in np.eye(4):
        for step in (1e-3, 0.1, 1.0):
            assert score((1 - step) * found.shares + step * corner) <= score(found.shares) + 1e-8


def test_rare_categories_at_a_small_epsilon_converge() -> None:
    true = [3770, 9, 4099, 4066, 994, 1370, 2002, 3295, 149, 4140, 649, 3650, 928, 1597]
    matrix = response_matrix(14, epsilon="1/10")
    drawn = draw_codes(np.repeat(np.arange(14), true), matrix, random_source(None))
    found = most_likely_shares(np.bincount(drawn, minlength=14), matrix=matrix)
    assert found.gap <= 1e-9
    assert found.rounds < 100


def test_a_matrix_without_an_inverse_still_has_likely_shares() -> None:
    found = most_likely_shares([3, 1], matrix=SINGULAR)
    assert found.is_converged
    assert found.shares.tolist() == [0.5, 0.5]


def test_a_search_that_ends_early_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    def give_up(*_: Any) -> Any:
        raise RuntimeError

    monkeypatch.setattr(optimize, "nnls", give_up)
    found = most_likely_shares([95, 5], matrix=SKEWED, most_rounds=1)
    assert not found.is_converged
    assert found.rounds == 1
    assert "not reached in 1 rounds" in found.caution
    # Without Newton's steps the plain ones arrive too, only later.
    slow = most_likely_shares([95, 5], matrix=SKEWED)
    assert slow.is_converged
    assert slow.rounds > 5
    assert slow.shares == pytest.approx([1, 0], abs=1e-6)


def test_a_newton_step_that_leads_nowhere_is_not_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(optimize, "nnls", lambda *_: (np.array([0.0, 1.0]), 0.0))
    found = most_likely_shares([95, 5], matrix=SKEWED)
    assert found.is_converged
    assert found.shares == pytest.approx([1, 0], abs=1e-6)


def test_a_newton_step_that_rules_reports_out_is_shortened(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(optimize, "nnls", lambda *_: (np.array([1.0, 0.0]), 0.0))
    found = most_likely_shares([1, 3], matrix=[[1, 0], ["1/2", "1/2"]])
    assert found.is_converged
    assert found.shares == pytest.approx([0, 1], abs=1e-6)


@pytest.mark.parametrize(
    ("make", "fix"),
    [
        (lambda: estimate_shares([1, 2], matrix=MATRIX), "count every category"),
        (lambda: estimate_shares([0, 0, 0], matrix=MATRIX), "count every category"),
        (lambda: estimate_shares([1, -2, 3], matrix=MATRIX), "count every category"),
        (lambda: estimate_shares([1, math.nan, 3], matrix=MATRIX), "count every category"),
        (lambda: estimate_shares([1, math.inf, 3], matrix=MATRIX), "count every category"),
        (lambda: estimate_shares([1, 2], matrix=SINGULAR), "most_likely_shares"),
        (lambda: invert_shares([1, 2], matrix=SINGULAR), "most_likely_shares"),
        (lambda: invert_shares([0.5, 0.5], matrix=SKEWED), "numbers of reports"),
        (lambda: most_likely_shares([1, 2], matrix=[[1, 0], [1, 0]]), "matrix of the release"),
        (lambda: most_likely_shares([1, 2], matrix=SKEWED, tolerance=0), "positive tolerance"),
        (lambda: most_likely_shares([1, 2], matrix=SKEWED, most_rounds=0), "most_rounds=1"),
        (lambda: estimate_yes_share(0.5, truth=0, second=0.5), "truth above 0"),
    ],
)
def test_what_cannot_be_estimated_is_refused(make: Any, fix: str) -> None:
    with pytest.raises(ParameterError, match=fix):
        make()
