"""Trackers: forbidden questions about one person, put together from allowed ones about many.

An interface that refuses questions about fewer than k rows, or about all but fewer than k, still answers a question
that is wide enough. A *general tracker* is any condition T that holds for 2k rows at least and fails for as many:
``q(C) = q(C or T) + q(C or not T) - q(T) - q(not T)``, whatever C is. An *individual tracker* splits what is known
about one person into two parts: ``q(A and B) = q(A) - q(A and not B)``. (Denning, Denning and Schwartz, "The tracker: a
threat to statistical database security", 1979.) A limit on the size of a question is thus no protection on its own.
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
from cloister.core.exact import Number
from cloister.errors import BudgetExceededError, ParameterError, ParameterTypeError

__all__ = ["individual_tracker", "tracker"]

_MITIGATION = (
    "check a question together with all that were answered before, not its size alone",
    "answer with noise that hides one person, under one budget for all questions",
)


def tracker(
    ask: Callable[[str], Any],
    *,
    targets: Sequence[str],
    through: str | Sequence[str],
    truth: Numbers,
    tolerance: object = 0.5,
    choices: Sequence[object] | None = None,
    bounds: object = None,
    guess: Guess = None,
    refusal: Refusal = BudgetExceededError,
    confidence: Number = 0.95,
) -> AttackResult[InterfaceDetails]:
    """Return how often the sum or count over a forbidden condition follows through a general tracker.

    Args:
        ask: the interface: returns the sum, or the count, over the rows that meet a condition in SQL.
        targets: conditions that single somebody out, and are refused when asked directly.
        through: a condition that about half of the rows meet, or several to try in turn. Every row must either meet it
            or not: rows for which it is unknown, because a value is missing, are counted wrongly.
        truth: the exact answer for every target; used for scoring only.
        tolerance: an estimate that is nearer to the truth than this counts as knowing it.
        choices: the values that are possible, where this is public: the nearest one is taken.
        bounds: (lower, upper) of what is possible, where this is public.
        guess: what to say without any answer, for all targets or for each; the baseline. By default the baseline is
            the best single guess in hindsight, and a target without answers is a miss.
        refusal: the errors by which the interface refuses; others are raised.
        confidence: the confidence of the interval of the success.

    >>> salaries = {"F": 9_000, "NOT (F)": 24_000, "(id = 8) OR (F)": 19_000, "(id = 8) OR NOT (F)": 24_000}
    >>> result = tracker(lambda where: salaries[where], targets=["id = 8"], through="F", truth=[10_000])
    >>> result.success, result.queries
    (1.0, 4)
    """
    known = Knowledge.of(truth, targets=len(targets), tolerance=tolerance, guess=guess, choices=choices, bounds=bounds)
    paths = _conditions([through] if isinstance(through, str) else through, name="through")
    interface = _Remembering(Interface(ask=ask, refusal=refusal))
    estimates = [_through_any(interface, target, paths) for target in _conditions(targets, name="targets")]
    return AttackResult(
        attack="general tracker",
        assumption="may ask only about many rows at a time, and adds and subtracts such answers",
        mitigation=_MITIGATION,
        **known.score(np.array(estimates, dtype=np.float64), [interface.interface], confidence=confidence),
    )


def individual_tracker(
    ask: Callable[[str], Any],
    *,
    targets: Sequence[tuple[str, str]],
    truth: Numbers,
    tolerance: object = 0.5,
    choices: Sequence[object] | None = None,
    bounds: object = None,
    guess: Guess = None,
    refusal: Refusal = BudgetExceededError,
    confidence: Number = 0.95,
) -> AttackResult[InterfaceDetails]:
    """Return how often a person's value follows from a wide condition, and the same without the person.

    Args:
        ask: the interface: returns the sum, or the count, over the rows that meet a condition in SQL.
        targets: for each person two conditions A and B that only this person meets both; A alone must be wide enough to
            be answered, and stay so without the person.
        truth: the exact answer for every target; used for scoring only.
        tolerance: an estimate that is nearer to the truth than this counts as knowing it.
        choices: the values that are possible, where this is public: the nearest one is taken.
        bounds: (lower, upper) of what is possible, where this is public.
        guess: what to say without any answer, for all targets or for each; the baseline.
        refusal: the errors by which the interface refuses; others are raised.
        confidence: the confidence of the interval of the success.

    >>> counts = {"(sex = 'F')": 12, "(sex = 'F') AND NOT (age > 90)": 11}
    >>> individual_tracker(counts.get, targets=[("sex = 'F'", "age > 90")], truth=[1]).success
    1.0
    """
    known = Knowledge.of(truth, targets=len(targets), tolerance=tolerance, guess=guess, choices=choices, bounds=bounds)
    interface = _Remembering(Interface(ask=ask, refusal=refusal))
    estimates = []
    for pair in targets:
        wide, narrow = _pair(pair)
        estimates.append(interface.number(f"({wide})") - interface.number(f"({wide}) AND NOT ({narrow})"))
    return AttackResult(
        attack="individual tracker",
        assumption="knows two facts that together hold for one person only, and subtracts two allowed answers",
        mitigation=_MITIGATION,
        **known.score(np.array(estimates, dtype=np.float64), [interface.interface], confidence=confidence),
    )


class _Remembering:
    """An interface that is asked each question once; NaN stands for a refusal."""

    def __init__(self, interface: Interface) -> None:
        self.interface = interface
        self._known: dict[str, float] = {}

    def number(self, question: str) -> float:
        if question not in self._known:
            answer = self.interface.number(question)
            self._known[question] = np.nan if answer is None else answer
        return self._known[question]


def _through_any(interface: _Remembering, target: str, paths: Sequence[str]) -> float:
    """Return the answer through the first tracker of which all four questions are answered."""
    for path in paths:
        everybody = interface.number(path) + interface.number(f"NOT ({path})")
        if np.isnan(everybody):
            continue
        with_either = interface.number(f"({target}) OR ({path})") + interface.number(f"({target}) OR NOT ({path})")
        if not np.isnan(with_either):
            return with_either - everybody
    return np.nan


def _conditions(conditions: Any, *, name: str) -> Sequence[str]:
    if isinstance(conditions, str) or not all(isinstance(condition, str) for condition in conditions):
        raise ParameterTypeError(
            f"{name} is not a list of conditions.", fix=f"write for example {name}=[\"sex = 'F'\"]."
        )
    if not conditions:
        raise ParameterError(f"{name} has no condition.", fix=f"write for example {name}=[\"sex = 'F'\"].")
    return list(conditions)


def _pair(pair: Any) -> tuple[str, str]:
    if isinstance(pair, str) or len(pair) != 2 or not all(isinstance(part, str) for part in pair):
        raise ParameterTypeError(
            "A target of an individual tracker is not a pair of conditions.",
            fix='write for example targets=[("sex = \'F\'", "age > 90")].',
        )
    return pair[0], pair[1]
