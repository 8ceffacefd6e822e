"""Differences: ask about everybody, ask about everybody but one, subtract; for answers, and for models.

*Differencing.* Two sums that differ in one person give that person's value away; two means do the same once the counts
are known. It works on every interface that answers exactly, whatever it hides. Differential privacy is the answer to
it: the two noisy answers differ by the value plus noise that is as large as the largest value possible.

*Model difference.* The coefficients of a least-squares line solve ``G b = X'y``, where ``G = X'X`` has only the
features. Whoever knows the features of everybody, say the ages, turns two published lines back into two sums ``X'y``
and subtracts: what is left is the newcomer's value times the newcomer's features. An outlier shows even without
arithmetic, because the line moves visibly. Only noise in the fit that hides one person takes this away.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cloister.attacks.details import HELD, Row, fact, or_none
from cloister.attacks.interfaces.query_interface import (
    Guess,
    Interface,
    InterfaceDetails,
    Knowledge,
    Numbers,
    Refusal,
)
from cloister.attacks.result import AttackResult
from cloister.core.confidence import Floats
from cloister.core.exact import Number
from cloister.errors import BudgetExceededError, ParameterError, ParameterTypeError

__all__ = ["ModelDifferenceDetails", "differencing", "model_difference", "value_of_newcomer"]


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
    confidence: Number = 0.95,
) -> AttackResult[InterfaceDetails]:
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
    >>> def total(without: str | None) -> int:
    ...     return sum(salary for name, salary in salaries.items() if name != without)
    >>> print(differencing(total, questions=[(None, name) for name in salaries], truth=list(salaries.values())))
    differencing: success 100% (95% interval 29.2% to 100%), baseline 33.3%
    """
    known = Knowledge.of(
        truth, targets=len(questions), tolerance=tolerance, guess=guess, choices=choices, bounds=bounds
    )
    answers = Interface(ask=ask, refusal=refusal)
    counts = None if count is None else Interface(ask=count, refusal=refusal)
    estimates = np.array([_estimate(answers, counts, pair) for pair in questions], dtype=np.float64)
    return AttackResult(
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


_SHOWN = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelDifferenceDetails(InterfaceDetails):
    """What comparing models with and without a person found.

    Attributes:
        largest_influence: the most that leaving out one person moves any prediction, in units of the target.
        typical_influence: the same for the person in the middle.
        shifts: for each target, how far each coefficient moves, the intercept first; custodian only.
    """

    largest_influence: float = field(metadata=fact(write=or_none))
    typical_influence: float = field(metadata=fact(write=or_none))
    shifts: tuple[tuple[float, ...], ...] = field(repr=False, metadata=HELD)

    def tell(self, result: AttackResult, /) -> Iterator[Row]:
        """Return the rows of every interface, and the influence of one person."""
        most, typical = f"{self.largest_influence:.4g}", f"{self.typical_influence:.4g}"
        yield from InterfaceDetails.tell(self, result)
        yield "influence of one person", f"moves a prediction by up to {most}, typically {typical}"


def model_difference(
    fit: Callable[[NDArray[np.int64]], Any],
    *,
    features: Any,
    truth: Numbers,
    targets: Sequence[int] | None = None,
    tolerance: object = 0.5,
    bounds: object = None,
    guess: Guess = None,
    refusal: Refusal = BudgetExceededError,
    confidence: Number = 0.95,
) -> AttackResult[ModelDifferenceDetails]:
    """Return how often a person's value follows from a regression with and without the person.

    Args:
        fit: the interface: returns the coefficients, the intercept first, of the regression over the rows at some
            positions.
        features: the features of everybody, which the attacker knows: one row for each person.
        truth: the confidential value of every target; used for scoring only.
        targets: the positions of the people to attack; by default everybody, in order.
        tolerance: an estimate that is nearer to the truth than this counts as knowing it.
        bounds: (lower, upper) of what is possible, where this is public.
        guess: what to say without any model, for all targets or for each; the baseline. By default the baseline is the
            best single guess in hindsight, and a target without models is a miss.
        refusal: the errors by which the interface refuses; others are raised.
        confidence: the confidence of the interval of the success.

    >>> age, pay = np.array([30, 40, 50, 60, 70]), np.array([21, 25, 24, 30, 95])
    >>> def line(rows: NDArray[np.int64]) -> tuple[float, float]:
    ...     slope, intercept = np.polyfit(age[rows], pay[rows], deg=1)
    ...     return intercept, slope
    >>> result = model_difference(line, features=age, truth=pay)
    >>> result.success, round(result.largest_influence, 1)
    (1.0, 38.1)
    """
    design = _design(features)
    chosen = _targets(targets, len(design))
    known = Knowledge.of(truth, targets=len(chosen), tolerance=tolerance, guess=guess, bounds=bounds)
    models = _Models(fit=fit, refusal=refusal, width=design.shape[1])
    everybody = np.arange(len(design))
    whole = models.coefficients(everybody)
    others = np.array([models.coefficients(np.delete(everybody, target)) for target in chosen])
    influence = np.abs(design @ (whole - others).T).max(axis=0)
    details = partial(
        ModelDifferenceDetails,
        largest_influence=float(np.nan if np.isnan(influence).all() else np.nanmax(influence)),
        typical_influence=float(np.nan if np.isnan(influence).all() else np.nanmedian(influence)),
        shifts=tuple(map(tuple, (whole - others).tolist())),
    )
    return AttackResult(
        attack="model difference",
        assumption="sees a regression with and without one person, and knows everybody's features",
        mitigation=("train with noise that hides one person", "do not publish models of nearly the same people"),
        worst=_most_influential(chosen, influence),
        **known.score(_values(design, chosen, whole, others), [models], confidence=confidence, details=details),
    )


@dataclass(slots=True, kw_only=True)
class _Models:
    """A function that fits, with a tally like that of an interface."""

    fit: Callable[[NDArray[np.int64]], Any]
    refusal: Refusal
    width: int
    queries: int = 0
    refused: int = 0

    def coefficients(self, rows: NDArray[np.int64]) -> Floats:
        """Return the coefficients, NaN if the model is refused."""
        self.queries += 1
        try:
            found = self.fit(rows)
        except self.refusal:
            self.refused += 1
            return np.full(self.width, np.nan)
        try:
            numbers = np.asarray(found, dtype=np.float64).reshape(-1)
        except (TypeError, ValueError):
            numbers = np.zeros(0)
        if len(numbers) != self.width:
            raise ParameterTypeError(
                f"A model is not a list of {self.width} numbers.",
                fix="return the intercept and one coefficient for each feature.",
            )
        return numbers


def _values(design: Floats, chosen: NDArray[np.int64], whole: Floats, others: Floats) -> Floats:
    """Return the values that explain the shifts: X'y of both models is known up to the value of the target."""
    gram, rows = design.T @ design, design[chosen]
    # The products of the others are those of everybody less the target's own.
    without = others @ gram - rows * (rows * others).sum(axis=1, keepdims=True)
    moments = whole @ gram - without
    # What is left is the value times the target's features, and least squares takes the value out of it.
    return np.asarray((moments * rows).sum(axis=1) / (rows**2).sum(axis=1), dtype=np.float64)


def _design(features: Any) -> Floats:
    try:
        table = np.asarray(features, dtype=np.float64)
    except (TypeError, ValueError):
        table = np.full((1, 1), np.nan)
    if table.ndim == 1:
        table = table[:, None]
    if table.ndim != 2 or len(table) < 2 or not np.isfinite(table).all():
        raise ParameterError(
            "The features are no table of finite numbers about two people or more.",
            fix="give one row of numbers for each person, without missing values.",
        )
    return np.hstack([np.ones((len(table), 1)), table])


def _targets(targets: Sequence[int] | None, people: int) -> NDArray[np.int64]:
    chosen = np.arange(people) if targets is None else np.asarray(targets)
    if not len(chosen) or chosen.dtype.kind not in "iu" or chosen.min() < 0 or chosen.max() >= people:
        raise ParameterError("The targets are not positions of people.", fix=f"give positions from 0 to {people - 1}.")
    return chosen.astype(np.int64)


def _most_influential(chosen: NDArray[np.int64], influence: Floats) -> tuple[tuple[int, float], ...]:
    order = np.argsort(-influence, kind="stable")[:_SHOWN]
    return tuple((int(chosen[place]), float(influence[place])) for place in order if not np.isnan(influence[place]))
