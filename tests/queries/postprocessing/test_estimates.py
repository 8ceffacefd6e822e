from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, strategies as st

from cloister.errors import CloisterError
from cloister.mechanisms import DiscreteLaplace, Laplace
from cloister.queries.postprocessing import CombinedAnswer, combine

positive = st.floats(1e-3, 1e6)


def test_the_published_variances() -> None:
    """Laplace noise at epsilon 0.1 and 0.2: variances 200 and 50; the plain average has 62.5, one at 0.3 has 22.2."""
    found = combine([1010, 1000], [200, 50])
    assert (found.value, found.variance) == (1002.0, 40.0)
    assert found.weights == (0.2, 0.8)
    assert (200 + 50) / 4 == 62.5
    assert Laplace(sensitivity=1, epsilon=0.3).standard_deviation ** 2 == pytest.approx(200 / 9)
    assert str(found) == "1,002, standard deviation 6.32"


@given(st.lists(positive, min_size=1, max_size=8), st.data())
def test_no_other_weights_give_a_smaller_variance(variances: list[float], data: Any) -> None:
    found = combine([0.0] * len(variances), variances)
    assert sum(found.weights) == pytest.approx(1)
    other = np.array(data.draw(st.lists(positive, min_size=len(variances), max_size=len(variances))))
    other /= other.sum()
    assert found.variance <= (other**2 * variances).sum() * (1 + 1e-9)
    assert found.variance == pytest.approx((np.array(found.weights) ** 2 * variances).sum())


def test_answers_state_their_own_noise() -> None:
    rough, fine = DiscreteLaplace(sensitivity=1, epsilon=0.1), DiscreteLaplace(sensitivity=1, epsilon=1)
    answers = [rough.release(6460), fine.release(6460)]
    found = combine(answers)
    assert found == combine(
        [answer.value for answer in answers], [item.standard_deviation**2 for item in (rough, fine)]
    )
    again = combine([found, answers[0]])
    assert isinstance(again, CombinedAnswer)
    assert again.variance < found.variance


def test_an_exact_answer_is_taken_alone() -> None:
    found = combine([5.0, 9.0, 7.0], [1.0, 0.0, 0.0])
    assert (found.value, found.variance, found.weights) == (8.0, 0.0, (0.0, 0.5, 0.5))


def test_the_margin_holds_for_any_noise() -> None:
    found = combine([0.0], [4.0])
    assert found.standard_deviation == 2.0
    assert found.margin(0.75) == 4.0
    with pytest.raises(CloisterError, match="confidence=0.95"):
        found.margin(1)


@pytest.mark.statistical
def test_the_stated_variance_is_that_of_the_combination() -> None:
    """The squared error averages to 40 with a standard error known from the fourth moments of Laplace noise."""
    draws = 20_000
    rough, fine = (Laplace(sensitivity=1, epsilon=epsilon, dimensions=draws) for epsilon in ("0.1", "0.2"))
    zeros = np.zeros(draws)
    found = 0.2 * np.asarray(rough.release(zeros).value) + 0.8 * np.asarray(fine.release(zeros).value)
    squares = found**2
    # A Laplace number of scale b has the fourth moment 24 b**4; here both terms have variance and scale of their own.
    fourth = 24 * (2**4 + 4**4) + 6 * 8 * 32
    error = math.sqrt((fourth - 40**2) / draws)
    assert abs(squares.mean() - 40) < 6.2 * error
    assert abs(squares.mean() - 62.5) > 6.2 * error


@pytest.mark.parametrize(
    ("answers", "variances", "fix"),
    [
        ([1.0, 2.0], [1.0], "one for each answer"),
        ([1.0, 2.0], None, "one for each answer"),
        (5, [1.0], "in a list"),
        ([1.0], "1", "in a list"),
        ([1.0], [-1.0], "one number"),
        ([], [], "at least one number"),
        ([[1.0], [2.0]], [1.0, 1.0], "list of numbers"),
    ],
)
def test_odd_input_is_refused_with_a_fix(answers: Any, variances: Any, fix: str) -> None:
    with pytest.raises(CloisterError, match=fix):
        combine(answers, variances)
