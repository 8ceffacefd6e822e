"""Extremes: the largest or smallest value of a group is the value of one person.

A maximum needs no attack where it is answered: it *is* somebody's value, and often everybody knows whose. Where it is
refused, counts find it all the same: whether anybody lies above a threshold is a question of yes or no, and each answer
halves the range that is left. Showing a range in place of a number makes the value coarser, not secret.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from cloister.attacks.interfaces.query_interface import (
    Guess,
    Interface,
    InterfaceDetails,
    Knowledge,
    Numbers,
    Refusal,
)
from cloister.attacks.result import AttackResult
from cloister.core import validation
from cloister.core.exact import Number
from cloister.errors import BudgetExceededError

__all__ = ["extremes", "extremes_by_counting"]

_MITIGATION = (
    "do not answer MIN and MAX; a noisy quantile says as much about the group",
    "let counts with conditions on the same column carry noise, under one budget for all questions",
)


def extremes(
    ask: Callable[[Any], Any],
    *,
    questions: Sequence[Any],
    truth: Numbers,
    tolerance: object = 0.5,
    bounds: object = None,
    guess: Guess = None,
    refusal: Refusal = BudgetExceededError,
    confidence: Number = 0.95,
) -> AttackResult[InterfaceDetails]:
    """Return how often the extreme of a group gives its owner's value away.

    Args:
        ask: the interface: returns the largest (or the smallest) value of a group. Of a range, the middle is taken.
        questions: the groups to ask about.
        truth: the value of the person at the end of each group; used for scoring only.
        tolerance: an estimate that is nearer to the truth than this counts as knowing it.
        bounds: (lower, upper) of what is possible, where this is public.
        guess: what to say without any answer, for all groups or for each; the baseline. By default the baseline is the
            best single guess in hindsight, and a group without an answer is a miss.
        refusal: the errors by which the interface refuses; others are raised.
        confidence: the confidence of the interval of the success.

    >>> pay = {"board": [40_000, 85_000], "shop": [20_000, 22_000]}
    >>> extremes(lambda group: max(pay[group]), questions=list(pay), truth=[85_000, 22_000]).success
    1.0
    """
    known = Knowledge.of(truth, targets=len(questions), tolerance=tolerance, guess=guess, bounds=bounds)
    interface = Interface(ask=ask, refusal=refusal)
    answers = [interface.number(question) for question in questions]
    estimates = np.array([np.nan if answer is None else answer for answer in answers], dtype=np.float64)
    return AttackResult(
        attack="extremes",
        assumption="asks for the largest or smallest value of a group, and knows whose it is",
        mitigation=_MITIGATION,
        **known.score(estimates, [interface], confidence=confidence),
    )


def extremes_by_counting(
    ask: Callable[[Any], Any],
    *,
    questions: Sequence[Any],
    truth: Numbers,
    bounds: object,
    tolerance: object = 0.5,
    steps: int | None = None,
    guess: Guess = None,
    refusal: Refusal = BudgetExceededError,
    confidence: Number = 0.95,
) -> AttackResult[InterfaceDetails]:
    """Return how often the largest value of a group is found by asking how many lie above a threshold.

    Args:
        ask: the interface: returns for (group, threshold) how many rows of the group lie above the threshold. Half a
            row or more counts as somebody.
        questions: the groups to ask about.
        truth: the largest value of each group; used for scoring only.
        bounds: (lower, upper) of what is possible, which is public; where the search starts.
        tolerance: an estimate that is nearer to the truth than this counts as knowing it.
        steps: how many questions to spend on each group; by default until the range is narrower than the tolerance.
        guess: what to say without any answer, for all groups or for each; the baseline.
        refusal: the errors by which the interface refuses, which ends the search in a group; others are raised.
        confidence: the confidence of the interval of the success.

    >>> pay = {"board": [40_000, 85_000], "shop": [20_000, 22_000]}
    >>> def above(question: tuple[str, float]) -> int:
    ...     group, threshold = question
    ...     return sum(salary > threshold for salary in pay[group])
    >>> result = extremes_by_counting(above, questions=list(pay), truth=[85_000, 22_000], bounds=(0, 100_000))
    >>> result.success, result.queries
    (1.0, 36)
    """
    known = Knowledge.of(truth, targets=len(questions), tolerance=tolerance, guess=guess, bounds=bounds)
    low, high = (float(limit) for limit in validation.check_bounds(bounds))
    enough = int(np.ceil(np.log2(max((high - low) / known.tolerance, 2))))
    rounds = enough if steps is None else validation.check_count(steps, name="steps", at_least=1)
    interface = Interface(ask=ask, refusal=refusal)
    estimates = np.array([_search(interface, question, low, high, rounds) for question in questions], dtype=np.float64)
    return AttackResult(
        attack="extremes by counting",
        assumption="asks how many lie above a threshold, and halves the range again and again",
        mitigation=_MITIGATION,
        **known.score(estimates, [interface], confidence=confidence),
    )


def _search(interface: Interface, question: Any, low: float, high: float, rounds: int) -> float:
    """Return the middle of the range that is left, NaN if nothing was answered."""
    for step in range(rounds):
        middle = (low + high) / 2
        count = interface.number((question, middle))
        if count is None:
            return (low + high) / 2 if step else np.nan
        low, high = (middle, high) if count >= 0.5 else (low, middle)
    return (low + high) / 2
