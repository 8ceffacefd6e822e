from __future__ import annotations

import math
from fractions import Fraction

import pytest

from cloister.core import exact
from cloister.local.survey import Statement, total_statement
from cloister.local.survey.levels import format_factor


@pytest.mark.parametrize(("epsilon", "factor"), [("49/10000", "1.01"), ("1/4", "1.29"), (1, "2.72"), (4, "54.6")])
def test_the_sentence_of_the_template(epsilon: object, factor: str) -> None:
    assert str(Statement(Fraction(epsilon))) == (
        f"Whatever you answer, the collector's odds about your true answer can change by at most a factor {factor}."
    )


def test_no_answer_says_so() -> None:
    assert "You do not answer this question" in str(Statement(Fraction(0)))


@pytest.mark.parametrize("epsilon", [0, "1/4", 1, 4, 20, 1000])
def test_nothing_is_ever_called_anonymous(epsilon: object) -> None:
    for statement in (Statement(Fraction(epsilon)), Statement(Fraction(epsilon), several=True)):
        assert "anonym" not in (str(statement) + statement.example() + str(statement.to_dict())).lower()


@pytest.mark.parametrize("prior", [0.01, 0.1, 0.5, 0.9])
@pytest.mark.parametrize("epsilon", [0.25, 1, 4])
def test_odds_change_by_the_factor_and_no_more(prior: float, epsilon: float) -> None:
    low, high = Statement(Fraction(epsilon)).posterior(prior)
    before = prior / (1 - prior)
    assert high / (1 - high) == pytest.approx(before * math.exp(epsilon), rel=1e-9)
    assert low / (1 - low) == pytest.approx(before * math.exp(-epsilon), rel=1e-9)


@pytest.mark.parametrize("prior", [0, 1])
def test_certainty_stays_certainty(prior: int) -> None:
    assert Statement(Fraction(1)).posterior(prior) == (prior, prior)


def test_answers_of_one_person_add_up() -> None:
    total = total_statement([Fraction(1), Fraction(1, 4), Fraction(0)])
    assert total.epsilon == Fraction(5, 4)
    assert "all your true answers together" in str(total)
    assert "3.50" in str(total)


def test_example_in_words() -> None:
    assert Statement(Fraction(4)).example("0.5") == (
        "Somebody who gave your true answer a chance of 50% before may give it between 1.7% and 99% afterwards."
    )
    assert "above 99.99%" in Statement(Fraction(20)).example("0.5")
    assert "below 0.01%" in Statement(Fraction(20)).example("0.5")


@pytest.mark.parametrize(
    ("factor", "words"),
    [(1.0, "1.00"), (99.91, "100"), (1234.5, "1,240"), (999.5, "1,000"), (1e16, "above a million billions")],
)
def test_factors_have_three_digits(factor: float, words: str) -> None:
    assert format_factor(factor) == words


def test_a_stated_bound_is_true() -> None:
    for step in range(1, 400):
        epsilon = Fraction(step, 53)
        stated = Fraction(str(Statement(epsilon)).split()[-1].rstrip(".").replace(",", ""))
        assert not exact.is_at_most_exp(stated, epsilon)
        assert exact.is_at_most_exp(stated * Fraction(99, 100), epsilon), "and hardly above what it has to be"


def test_a_factor_that_was_meant_is_printed_as_meant() -> None:
    assert format_factor(exact.float_above(exact.exp_bounds(exact.log_bounds(Fraction(3))[1])[1])) == "3.00"


def test_a_huge_epsilon_still_prints() -> None:
    assert "above a million billions" in str(Statement(Fraction(1000)))
    assert Statement(Fraction(1000)).to_dict()["odds_factor"] == 1e300
