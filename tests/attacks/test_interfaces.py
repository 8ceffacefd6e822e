from __future__ import annotations

import json
import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import pyarrow as pa
import pytest

import cloister as cl
from cloister.attacks import averaging, differencing, value_of_newcomer
from cloister.errors import BudgetExceededError, ParameterError, ParameterTypeError
from cloister.mechanisms import DiscreteLaplace, Laplace

SALARIES = {f"e-{i}": 30_000 + (i * 7_919) % 60_000 for i in range(100)}
SICK = {name: int(i % 10 == 0) for i, name in enumerate(SALARIES)}


def total(without: str | None) -> int:
    return sum(salary for name, salary in SALARIES.items() if name != without)


def mean(without: str | None) -> float:
    return total(without) / size(without)


def size(without: str | None) -> int:
    return len(SALARIES) - (without is not None)


def sick(without: str | None) -> int:
    return sum(value for name, value in SICK.items() if name != without)


EVERYBODY_AND_OTHERS = [(None, name) for name in SALARIES]
SALARY = list(SALARIES.values())


def out_of_budget() -> BudgetExceededError:
    return BudgetExceededError(requested=Fraction(1), remaining=Fraction(0))


# differencing ---------------------------------------------------------------------------------------------------------


def test_the_newcomer_of_the_book_earns_156_000() -> None:
    assert value_of_newcomer(before=(100, 55_000), after=(101, 56_000)) == 156_000
    noisy = value_of_newcomer(before=(100.1, 55_000.10), after=(101.2, 55_999.90))
    assert noisy == pytest.approx(155_979.90, abs=0.005)


def test_ms_rich_is_found_in_a_mean_of_eleven() -> None:
    salaries = [1000, 2000, 3000, 2000, 1000, 6000, 2000, 10_000, 2000, 4000]
    before, after = sum(salaries) / 10, (sum(salaries) + 100_000) / 11
    assert (before, round(after, 3)) == (3300, 12_090.909)
    assert value_of_newcomer(before=(10, before), after=(11, after)) == pytest.approx(100_000)


def test_exact_sums_give_everybody_away() -> None:
    result = differencing(total, questions=EVERYBODY_AND_OTHERS, truth=SALARY)
    assert result.success == 1
    assert result.baseline < 0.05
    assert result.succeeded
    assert result.interval == pytest.approx((0.9638, 1), abs=1e-4)
    assert (result.trials, result.queries, result.refused, result.typical_error) == (100, 200, 0, 0)
    assert result.estimates == tuple(SALARY)


def test_exact_means_and_counts_give_everybody_away() -> None:
    result = differencing(mean, count=size, questions=EVERYBODY_AND_OTHERS, truth=SALARY)
    assert result.success == 1
    assert result.queries == 400


@pytest.mark.statistical
def test_private_sums_give_nobody_away() -> None:
    mechanism = Laplace(sensitivity=100_000, epsilon=Fraction(1, 10))
    result = differencing(
        lambda without: mechanism.release(total(without)),
        questions=EVERYBODY_AND_OTHERS,
        truth=SALARY,
        tolerance=1_000,
        guess=50_000,
    )
    assert result.success < 0.2
    assert result.typical_error > 100_000


@pytest.mark.statistical
def test_private_counts_say_little_about_a_yes_or_no() -> None:
    mechanism = DiscreteLaplace(sensitivity=1, epsilon=Fraction(1, 10))
    exact = differencing(sick, questions=EVERYBODY_AND_OTHERS, truth=list(SICK.values()), choices=(0, 1))
    private = differencing(
        lambda without: mechanism.release(sick(without)),
        questions=EVERYBODY_AND_OTHERS,
        truth=list(SICK.values()),
        choices=(0, 1),
    )
    assert (exact.success, exact.baseline) == (1, 0.9)
    assert set(private.estimates) <= {0, 1}
    assert not private.succeeded


def test_a_refused_question_leaves_the_attacker_with_a_guess() -> None:
    def closed(_: Any) -> Any:
        raise out_of_budget()

    guessing = differencing(closed, questions=EVERYBODY_AND_OTHERS, truth=SALARY, guess=30_000)
    silent = differencing(closed, questions=EVERYBODY_AND_OTHERS, truth=SALARY)
    assert guessing.success == guessing.baseline == 0.01
    assert silent.success == 0
    assert math.isnan(silent.typical_error)
    assert "refused 200 of 200 questions" in silent.verdict
    assert silent.to_dict()["typical_error"] is None


def test_a_refused_count_leaves_no_estimate() -> None:
    def only_everybody(without: str | None) -> int:
        if without is not None:
            raise out_of_budget()
        return size(without)

    result = differencing(mean, count=only_everybody, questions=EVERYBODY_AND_OTHERS, truth=SALARY)
    assert (result.success, result.refused) == (0, 100)


def test_estimates_stay_within_public_bounds() -> None:
    result = differencing(lambda without: 5, questions=EVERYBODY_AND_OTHERS, truth=SALARY, bounds=(20_000, 90_000))
    assert set(result.estimates) == {20_000}


@pytest.mark.parametrize("nothing", [None, math.nan])
def test_an_empty_answer_is_no_answer(nothing: Any) -> None:
    result = differencing(lambda without: nothing, questions=EVERYBODY_AND_OTHERS, truth=SALARY, choices=(0, 1))
    assert result.success == 0
    assert result.refused == 0


def test_other_errors_are_not_taken_for_refusals() -> None:
    def broken(_: Any) -> Any:
        raise KeyError("salary")

    with pytest.raises(KeyError):
        differencing(broken, questions=[(None, "e-1")], truth=[5])
    assert differencing(broken, questions=[(None, "e-1")], truth=[5], refusal=KeyError).refused == 2


def test_the_report_never_says_what_was_learned_about_somebody() -> None:
    result = differencing(total, questions=EVERYBODY_AND_OTHERS, truth=SALARY)
    assert str(SALARY[7]) not in json.dumps(result.to_dict(), allow_nan=False) + repr(result) + str(result.summary())
    assert dict(result.summary())["refused"] == "0 of 200 questions"


def test_a_guess_for_each_target_is_a_baseline() -> None:
    result = differencing(total, questions=EVERYBODY_AND_OTHERS, truth=SALARY, guess=[*SALARY[:25], *[0] * 75])
    assert result.baseline == 0.25


def test_without_a_guess_the_baseline_is_the_best_one_in_hindsight() -> None:
    result = differencing(
        lambda without: 0, questions=[(None, i) for i in range(5)], truth=[1, 2, 3, 10, 20], tolerance=1.5
    )
    assert result.baseline == 0.6


# averaging ------------------------------------------------------------------------------------------------------------

COUNTS = list(range(100, 140))


def noisy() -> Callable[[int], Any]:
    return DiscreteLaplace(sensitivity=1, epsilon=Fraction(1, 10)).release


@pytest.mark.statistical
def test_the_error_of_fresh_answers_falls_with_the_root_of_their_number() -> None:
    result = averaging(noisy(), questions=COUNTS, truth=COUNTS, repeats=100, tolerance=6)
    errors = dict(result.errors)
    assert list(errors) == [1, 2, 4, 8, 16, 32, 64, 100]
    # The standard deviation 14.1 of one answer becomes 1.41; 40 squared errors of it add up to 8 to 110 times 2.
    assert 0.4 < errors[100] / 1.414 < 1.7
    assert result.success > 0.9
    assert result.succeeded
    assert "Repeating works" in result.verdict


@pytest.mark.statistical
def test_a_cache_of_answers_leaves_nothing_to_average() -> None:
    ask, known = noisy(), dict[int, Any]()
    result = averaging(
        lambda count: known[count] if count in known else known.setdefault(count, ask(count)),
        questions=COUNTS,
        truth=COUNTS,
        tolerance=2,
    )
    assert result.success == result.control
    assert len({error for _, error in result.errors}) == 1
    assert result.unchanged == 40
    assert not result.succeeded
    assert "40 of 40 questions were answered the same every time" in result.verdict


def test_fresh_answers_run_out_of_budget() -> None:
    left = [50]
    fresh = noisy()

    def paid(count: int) -> Any:
        if not left[0]:
            raise out_of_budget()
        left[0] -= 1
        return fresh(count)

    result = averaging(paid, questions=COUNTS, truth=COUNTS, repeats=30, tolerance=2)
    assert result.refused == 39
    assert result.queries == 50 + 39
    assert result.success <= 2 / 40
    assert [answers for answers, _ in result.errors] == [1, 2, 4, 8, 16, 30]
    assert "refused 39 of 89 questions" in result.verdict


def test_one_answer_each_is_its_own_control() -> None:
    result = averaging(lambda count: count, questions=COUNTS, truth=COUNTS, repeats=1)
    assert result.success == result.control == 1
    assert result.unchanged == 0
    assert result.errors == ((1, 0.0),)


def test_no_answers_have_no_error() -> None:
    result = averaging(lambda count: None, questions=COUNTS, truth=COUNTS, repeats=5)
    assert result.errors == ()
    found = result.to_dict()
    assert found["schema"] == "cloister.attack/1"
    assert found["errors"] == []


def test_the_chart_compares_with_fresh_noise() -> None:
    text = json.dumps(averaging(noisy(), questions=COUNTS[:3], truth=COUNTS[:3], repeats=4).plot().to_dict())
    assert "fresh noise" in text
    assert averaging(lambda count: count, questions=COUNTS, truth=COUNTS, repeats=2).plot().title.startswith("Error")


# a private table ------------------------------------------------------------------------------------------------------


@pytest.fixture
def private() -> cl.PrivateTable:
    schema = cl.Schema.from_dict(
        {"columns": {"id": {"role": "identifier"}, "salary": {"kind": "numeric", "bounds": [0, 100_000]}}}
    )
    rows = pa.table({"id": list(SALARIES), "salary": SALARY})
    return cl.PrivateTable(cl.open_table(rows, schema=schema), budget=cl.Budget(epsilon=4))


@pytest.mark.statistical
def test_a_private_table_gives_nobody_away_and_stops_when_its_budget_ends(private: cl.PrivateTable) -> None:
    questions = [("TRUE", f"id <> '{name}'") for name in list(SALARIES)[:50]]
    result = differencing(
        lambda where: private.sum("salary", where=where, epsilon="0.1"),
        questions=questions,
        truth=SALARY[:50],
        tolerance=1_000,
        bounds=(0, 100_000),
    )
    assert result.success < 0.5
    assert (result.queries, result.refused) == (100, 11)
    assert private.remaining.amount == 0


@pytest.mark.statistical
def test_a_private_table_repeats_its_answers_for_nothing_and_sells_fresh_ones(private: cl.PrivateTable) -> None:
    questions = [f"salary > {30_000 + 1_000 * i}" for i in range(10)]
    truth = [sum(salary > 30_000 + 1_000 * i for salary in SALARY) for i in range(10)]

    def ask(where: str) -> Any:
        return private.count(where=where, epsilon="0.1")

    repeated = averaging(ask, questions=questions, truth=truth, repeats=20)
    assert repeated.unchanged == 10
    assert repeated.success == repeated.control
    assert private.remaining.amount == 3
    fresh = averaging(
        lambda where: private.count(where=where, epsilon="0.1", fresh=True), questions=questions, truth=truth
    )
    assert fresh.queries - fresh.refused == 30
    assert fresh.refused == 10


# bad input ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("parameters", "fix"),
    [
        ({"truth": [1]}, "one true value for every target"),
        ({"questions": [], "truth": []}, "at least one"),
        ({"guess": [1, 2, 3]}, "one guess, or one for every target"),
        ({"tolerance": 0}, "positive tolerance"),
        ({"repeats": 0}, "repeats=1"),
        ({"confidence": 2}, "confidence=0.95"),
        ({"truth": [1, math.nan]}, "finite"),
    ],
)
def test_bad_parameters_are_refused_with_a_fix(parameters: Any, fix: str) -> None:
    with pytest.raises(ParameterError, match=fix):
        averaging(lambda question: 1, **{"questions": [1, 2], "truth": [1, 2], **parameters})


def test_choices_may_not_be_empty() -> None:
    with pytest.raises(ParameterError, match="the values that are possible"):
        differencing(total, questions=[(None, "e-1")], truth=[5], choices=())


def test_a_guess_between_two_whole_numbers_is_right_about_neither() -> None:
    assert averaging(lambda question: 0.5, questions=[1, 2], truth=[0, 1], repeats=1).success == 0


def test_an_answer_is_one_number() -> None:
    with pytest.raises(ParameterTypeError, match="returns one number") as caught:
        averaging(lambda question: "many secrets", questions=[1], truth=[1])
    assert "secrets" not in str(caught.value)
    assert caught.value.__suppress_context__
