"""An interface as the attacker sees it, and whether the attacker was right about what it hides.

A question goes in; a number, or a refusal, comes out. Where the interface shows a range, the attacker takes its middle.
`Knowledge` is the only place where an attack on an interface looks at the truth.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from cloister.attacks.auditing.features import plain
from cloister.attacks.details import HELD, AttackDetails, Row, fact, or_none
from cloister.attacks.result import AttackResult
from cloister.core import exact, validation
from cloister.core.confidence import Floats, binomial_interval
from cloister.core.exact import Number
from cloister.data.bins import BinInterval
from cloister.errors import ParameterError, ParameterTypeError

__all__ = ["Interface", "InterfaceDetails", "Knowledge", "QuestionTally", "Refusal"]


Refusal: TypeAlias = "type[Exception] | tuple[type[Exception], ...]"


class QuestionTally(Protocol):
    """A tally of questions, and of refusals among them."""

    queries: int
    refused: int


@dataclass(slots=True, kw_only=True)
class Interface:
    """A function to ask, with a tally of what was asked and what was refused."""

    ask: Callable[[Any], Any]
    refusal: Refusal
    queries: int = 0
    refused: int = 0

    def number(self, question: Any) -> float | None:
        """Return the answer as a number, None if the interface refuses or has none."""
        self.queries += 1
        try:
            answer = plain(self.ask(question))
        except self.refusal:
            self.refused += 1
            return None
        if isinstance(answer, BinInterval):
            answer = _middle(answer)
        return None if answer is None or _is_nan(answer) else _float(answer)


def _is_nan(answer: Any) -> bool:
    return isinstance(answer, float) and math.isnan(answer)


def _middle(answer: BinInterval) -> Any:
    """Return the middle of a range, or its one end."""
    ends = [end for end in (answer.low, answer.high) if math.isfinite(end)]
    return sum(ends) / len(ends) if ends else None


def _float(answer: Any) -> float:
    try:
        return float(exact.number(answer, name="the answer"))
    except (ParameterError, ParameterTypeError):
        raise ParameterTypeError(
            "An answer of the interface is not a number.",
            fix="pass a function that returns one number, or a result with a value, for a question.",
        ) from None


Numbers: TypeAlias = "Sequence[object] | NDArray[Any]"
Guess: TypeAlias = "object | Sequence[object] | None"


@dataclass(frozen=True, slots=True, kw_only=True)
class InterfaceDetails(AttackDetails):
    """What an attack on a query interface knows.

    Attributes:
        refused: how many questions the interface refused to answer.
        typical_error: the median distance of the attacker's estimates from the truth, NaN if there are none.
        estimates: what the attacker came up with for each target, NaN where there was no answer; custodian only.
    """

    refused: int
    typical_error: float = field(metadata=fact(write=or_none))
    estimates: tuple[float, ...] = field(repr=False, metadata=HELD)

    def remark(self, result: AttackResult, /) -> str:
        """Return how many questions were refused, if any."""
        if not self.refused:
            return ""
        return f" The interface refused {self.refused:,} of {result.queries:,} questions."

    def tell(self, result: AttackResult, /) -> Iterator[Row]:
        """Return how many questions were refused, and how far off estimates are."""
        yield "refused", f"{self.refused:,} of {result.queries:,} questions"
        yield "typical error", f"{self.typical_error:.6g}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Knowledge:
    """The truth about each target, what is public about it, and how near counts as knowing it."""

    truth: Floats
    tolerance: float
    guesses: Floats | None
    choices: Floats | None
    bounds: tuple[float, float] | None

    @classmethod
    def of(
        cls,
        truth: Numbers,
        *,
        targets: int,
        tolerance: object,
        guess: Guess,
        choices: Sequence[object] | None = None,
        bounds: object = None,
    ) -> Knowledge:
        """Return checked knowledge about so many targets."""
        values = _numbers(truth, name="truth")
        if not targets or len(values) != targets:
            raise ParameterError(
                f"There are {targets} questions and {len(values)} true values.",
                fix="give one true value for every target, at least one.",
            )
        limits = None if bounds is None else validation.check_bounds(bounds)
        return cls(
            truth=values,
            tolerance=float(validation.check_positive(tolerance, name="tolerance")),
            guesses=None if guess is None else _guesses(guess, targets),
            choices=None if choices is None else _choices(choices),
            bounds=None if limits is None else (float(limits[0]), float(limits[1])),
        )

    def sharpen(self, estimates: Floats) -> Floats:
        """Return estimates moved to what is publicly possible, and guesses where there is no estimate."""
        if self.bounds is not None:
            estimates = np.clip(estimates, *self.bounds)
        if self.choices is not None:
            nearest = np.abs(estimates[:, None] - self.choices).argmin(axis=1)
            estimates = np.where(np.isnan(estimates), np.nan, self.choices[nearest])
        return estimates if self.guesses is None else np.where(np.isnan(estimates), self.guesses, estimates)

    def hits(self, estimates: Floats) -> int:
        """Return how many estimates are nearer to the truth than the tolerance."""
        return int((np.abs(estimates - self.truth) < self.tolerance).sum())

    @property
    def baseline(self) -> float:
        """Return the share that the guesses get right; without guesses, that of the best single one in hindsight."""
        if self.guesses is not None:
            return self.hits(self.guesses) / len(self.truth)
        if self.choices is not None:
            return max(self.hits(np.full(len(self.truth), choice)) for choice in self.choices) / len(self.truth)
        ordered = np.sort(self.truth)
        ends = np.searchsorted(ordered, ordered + 2 * self.tolerance, side="left")
        return float((ends - np.arange(len(ordered))).max()) / len(ordered)

    def score(
        self,
        estimates: Floats,
        asked: Sequence[QuestionTally],
        *,
        confidence: Number,
        details: Callable[..., InterfaceDetails] = InterfaceDetails,
    ) -> dict[str, Any]:
        """Return what every attack on an interface reports: the fields of its result, and its details among them."""
        level = float(validation.check_confidence(confidence))
        final = self.sharpen(estimates)
        hits, trials = self.hits(final), len(self.truth)
        errors = np.abs(estimates - self.truth)
        return {
            "success": hits / trials,
            "baseline": self.baseline,
            "interval": binomial_interval(hits, trials, confidence=level),
            "confidence": level,
            "trials": trials,
            "queries": sum(interface.queries for interface in asked),
            "details": details(
                refused=sum(interface.refused for interface in asked),
                typical_error=float(np.median(errors[~np.isnan(errors)])) if not np.isnan(errors).all() else np.nan,
                estimates=tuple(final.tolist()),
            ),
        }


def _numbers(values: Numbers, *, name: str) -> Floats:
    return np.array([float(exact.number(value, name=f"each of {name}")) for value in values], dtype=np.float64)


def _choices(choices: Sequence[object]) -> Floats:
    values = _numbers(choices, name="choices")
    if not len(values):
        raise ParameterError("There are no choices.", fix="list the values that are possible, or leave choices out.")
    return values


def _guesses(guess: Any, targets: int) -> Floats:
    if not hasattr(guess, "__len__"):
        return np.full(targets, float(exact.number(guess, name="guess")))
    values = _numbers(guess, name="guess")
    if len(values) != targets:
        raise ParameterError(
            f"There are {targets} questions and {len(values)} guesses.", fix="give one guess, or one for every target."
        )
    return values
