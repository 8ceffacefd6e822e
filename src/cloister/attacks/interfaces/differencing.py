"""Differencing: ask about everybody, ask about everybody but one, subtract.

Two sums that differ in one person give that person's value away; two means do the same once the counts are known. It
works on every interface that answers exactly, whatever it hides. Differential privacy is the answer to it: the two
noisy answers differ by the value plus noise that is as large as the largest value possible.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from cloister.attacks.interfaces.asking import Interface, Refusal
from cloister.attacks.interfaces.scoring import Guess, InterfaceAttackResult, Knowledge, Numbers
from cloister.errors import BudgetExceededError

__all__ = ["differencing", "value_of_newcomer"]


def value_of_newcomer(*, before: tuple[float, float], after: tuple[float, float]) -> float:
    """Return the value of the one who joined, from (count, mean) before and after; counts are rounded.

    >>> value_of_newcomer(before=(100, 55_000), after=(101, 56_000))
    156000
    >>> round(value_of_newcomer(before=(100.1, 55_000.10), after=(101.2, 55_999.90)), 2)
    155979.9
    """
    return round(after[0]) * after[1] - round(before[0]) * before[1]


def differencing(
    ask: Callable[[Any], Any],
    *,
    questions: Sequence[tuple[Any, Any]],
    truth: Numbers,
    count: Callable[[Any], Any] | None = None,
    tolerance: object = 0.5,
    choices: Sequence[object] | None = None,
    bounds: object = None,
    guess: Guess = None,
    refusal: Refusal = BudgetExceededError,
    confidence: object = 0.95,
) -> InterfaceAttackResult:
    """Return how often one person's value follows from two answers.

    Args:
        ask: the interface: returns the sum (or the count, or with ``count=`` the mean) for a question.
        questions: for every target, a question about all and the same question without the target.
        truth: the target's true value, for every target; used for scoring only.
        count: a second interface that returns how many rows a question is about; ``ask`` then gives means.
        tolerance: an estimate that is nearer to the truth than this counts as knowing it.
        choices: the values that are possible, where this is public: the nearest one is taken.
        bounds: (lower, upper) of what is possible, where this is public.
        guess: what to say without any answer, for all targets or for each; the baseline. By default the baseline is
            the best single guess in hindsight, and a target without answers is a miss.
        refusal: the errors by which the interface refuses; others are raised.
        confidence: the confidence of the interval of the success.

    >>> salaries = {"ann": 52_000, "bob": 61_000, "joe": 70_000}
    >>> def total(without):
    ...     return sum(salary for name, salary in salaries.items() if name != without)
    >>> print(differencing(total, questions=[(None, name) for name in salaries], truth=list(salaries.values())))
    differencing: success 100% (95% interval 29.24% to 100%), baseline 33.33%
    """
    known = Knowledge.of(
        truth, targets=len(questions), tolerance=tolerance, guess=guess, choices=choices, bounds=bounds
    )
    answers = Interface(ask=ask, refusal=refusal)
    counts = None if count is None else Interface(ask=count, refusal=refusal)
    estimates = np.array([_estimate(answers, counts, pair) for pair in questions], dtype=np.float64)
    return InterfaceAttackResult(
        attack="differencing",
        assumption="asks about everybody and about everybody but one person, and subtracts",
        mitigation=("answer with noise that hides one person, under one budget for all questions",),
        **known.score(estimates, [answers] if counts is None else [answers, counts], confidence=confidence),
    )


def _estimate(answers: Interface, counts: Interface | None, pair: tuple[Any, Any]) -> float:
    """Return what the two answers say about the one who is missing from the second, NaN if one is refused."""
    numbers = [answers.number(question) for question in pair]
    everybody, others = (np.nan if number is None else number for number in numbers)
    if counts is None:
        return everybody - others
    sizes = [counts.number(question) for question in pair]
    if sizes[0] is None or sizes[1] is None:
        return np.nan
    return value_of_newcomer(before=(sizes[1], others), after=(sizes[0], everybody))
