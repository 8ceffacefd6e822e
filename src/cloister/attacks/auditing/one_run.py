"""A lower bound on epsilon from a single run: many canaries at once instead of many runs with one.

Each of m canaries is put into the data or left out by a fair coin of its own. After one run the auditor guesses for
some of them, the most certain ones, whether they were in. If the run is epsilon-differentially private for adding or
removing one row, the number of right guesses among r is, whatever the guesses, no more likely to be large than that of
r coins that come up right with probability ``exp(epsilon) / (1 + exp(epsilon))``; with (epsilon, delta) a term of the
order of ``m * delta`` is added. The largest epsilon under which so many right guesses would be a surprise is the lower
bound (Steinke, Nasr and Jagielski 2023, theorem 5.2).

How many guesses are made is decided before the truth is looked at. Where several numbers of guesses are tried, each
has its share of the error, so that the stated confidence holds for the best of them.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy import special

from cloister.attacks.details import AttackDetails, Row
from cloister.attacks.result import AttackResult
from cloister.core import validation
from cloister.core.confidence import binomial_interval
from cloister.core.exact import Number
from cloister.core.random import SeededRandomSource, permutation
from cloister.core.wordings import percent
from cloister.errors import ParameterError, PrivacyRefutedError

__all__ = ["OneRunDetails", "audit_one_run", "epsilon_lower_bound", "surprise"]

_SHARES = (0.05, 0.2, 0.5, 1.0)
"""Which shares of the canaries are guessed, unless a caller says so."""
_LARGEST = 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class OneRunDetails(AttackDetails):
    """A lower bound on epsilon from one run; the attacker guesses which canaries were in the data.

    The success is the share of right guesses among those made, of which ``limit`` is the most that is to be expected
    if the claim is true.

    Attributes:
        canaries: how many canaries there were.
        guesses: how many were guessed to be in, and how many to be out.
        correct: how many guesses were right.
        epsilon_lower: epsilon is at least this, with the stated confidence.
        epsilon: the claim; None if nothing is claimed.
        delta: the delta that the bound is for.
        limit: the success that the claim allows on average.
    """

    schema: ClassVar[str] = "cloister.one_run_audit/1"
    further: ClassVar[tuple[str, ...]] = ("outcome",)

    canaries: int
    guesses: tuple[int, int]
    correct: int
    epsilon_lower: float
    epsilon: Fraction | None = None
    delta: Fraction = Fraction(0)
    limit: float | None = None

    @property
    def refuted(self) -> bool:
        """Return whether the claim is contradicted, at the stated confidence."""
        return self.epsilon is not None and self.epsilon_lower > self.epsilon

    @property
    def outcome(self) -> str:
        """Return "refuted", "not refuted", or "no claim" where only a bound was asked for."""
        if self.epsilon is None:
            return "no claim"
        return "refuted" if self.refuted else "not refuted"

    def judge(self, result: AttackResult, /) -> bool:
        """Return whether the claim is refuted; without a claim, whether the guesses are better than chance."""
        return self.refuted if self.epsilon is not None else result.interval[0] > result.baseline

    def conclude(self, result: AttackResult, /) -> str:
        """Return the bound, beside the claim if there is one."""
        shown = f"one run with {self.canaries:,} canaries shows at least epsilon {self.epsilon_lower:.4g}"
        sure = f"with {percent(result.confidence)} confidence"
        if self.epsilon is None:
            return f"{shown[0].upper()}{shown[1:]}, {sure}."
        claim = f"epsilon = {float(self.epsilon):g}" + (f", delta = {float(self.delta):g}" if self.delta else "")
        if self.refuted:
            return f"Not private as claimed: {claim} is promised, and {shown}, {sure}."
        return f"Not refuted: {claim} is promised, and {shown}, {sure}. That is no proof: other canaries may show more."

    def compare(self, result: AttackResult, /) -> dict[str, float]:
        """Return the success beside guessing and the most that the claim allows."""
        most = {} if self.limit is None else {"most that the claim allows": self.limit}
        return {"this attack": result.success, "guessing": result.baseline, **most}

    def tell(self, _: AttackResult, /) -> Iterator[Row]:
        """Return what was guessed, and what follows from it."""
        made = f"{self.guesses[0]:,} in, {self.guesses[1]:,} out, {self.correct:,} right, of {self.canaries:,} canaries"
        yield "guesses", made
        yield "epsilon", f"at least {self.epsilon_lower:.4g} at delta {float(self.delta):g}"

    def refute(self, result: AttackResult, /) -> PrivacyRefutedError | None:
        """Return the error of a refuted claim."""
        if not self.refuted:
            return None
        return PrivacyRefutedError(
            result.verdict, fix=f"claim epsilon >= {self.epsilon_lower:.4g} at least, or correct the algorithm."
        )


def audit_one_run(
    included: Any,
    scores: Any,
    *,
    epsilon: Number | None = None,
    delta: Number = 0,
    guesses: tuple[int, int] | Sequence[tuple[int, int]] | None = None,
    confidence: Number = 0.95,
) -> AttackResult[OneRunDetails]:
    """Return a lower bound on epsilon from canaries of which each was in the data by a fair coin of its own.

    Args:
        included: whether each canary was in. The coins must be fair, independent, and unknown to whatever made the
            scores.
        scores: one number per canary, larger if the output looks more as if it had been in. Only their order counts.
        epsilon: the claim, for adding or removing one row; without it, only the bound is given.
        delta: the claim.
        guesses: how many of the highest scores are guessed to be in and how many of the lowest to be out; or a list of
            such pairs, of which the best counts. Without it 5%, 20%, 50% and all, half of them on each side. Must be
            chosen without looking at ``included``.
        confidence: the probability that the bound is not above the true epsilon.

    Raises:
        ParameterError: if lengths differ, a score is not a number, or there are more guesses than canaries.

    >>> inside = [True] * 60 + [False] * 60
    >>> found = audit_one_run(inside, [1.0] * 60 + [0.0] * 60, guesses=(60, 60))
    >>> f"{found.correct} of {sum(found.guesses)} right: epsilon is at least {found.epsilon_lower:.2f}"
    '120 of 120 right: epsilon is at least 3.68'
    """
    inside, seen = _check_scores(included, scores)
    claim = None if epsilon is None else validation.check_epsilon(epsilon, allow_zero=True)
    slack, level = validation.check_delta(delta), float(validation.check_confidence(confidence))
    pairs = _pairs(guesses, len(inside))
    right = [_right(inside, seen, pair) for pair in pairs]
    error = (1 - level) / len(pairs)
    bounds = [
        epsilon_lower_bound(correct, sum(pair), canaries=len(inside), delta=float(slack), error=error)
        for correct, pair in zip(right, pairs, strict=True)
    ]
    best = int(np.argmax(bounds))
    made, correct = sum(pairs[best]), right[best]
    return AttackResult(
        attack="audit in one run",
        assumption="knows the canaries but not which of them were in the data, and sees the output of one run",
        success=correct / made,
        baseline=0.5,
        interval=binomial_interval(correct, made, confidence=1 - error),
        confidence=level,
        trials=made,
        queries=1,
        mitigation=("correct the sensitivity, the contribution bound or the noise",)
        if _is_above(bounds, claim)
        else (),
        details=OneRunDetails(
            canaries=len(inside),
            guesses=pairs[best],
            correct=correct,
            epsilon_lower=bounds[best],
            epsilon=claim,
            delta=slack,
            limit=None if claim is None else 1 / (1 + math.exp(-min(float(claim), 700.0))),
        ),
    )


def epsilon_lower_bound(correct: int, guesses: int, *, canaries: int, delta: float = 0.0, error: float = 0.05) -> float:
    """Return the largest epsilon under which so many right guesses have a probability of at most ``error``, at least 0.

    >>> round(epsilon_lower_bound(100, 100, canaries=1000), 3)
    3.493
    """
    if surprise(correct, guesses, epsilon=0.0, canaries=canaries, delta=delta) > error:
        return 0.0
    low, high = 0.0, _LARGEST
    for _ in range(60):
        middle = (low + high) / 2
        if surprise(correct, guesses, epsilon=middle, canaries=canaries, delta=delta) <= error:
            low = middle
        else:
            high = middle
    # The lower end was found to be a surprise, and is on the safe side.
    return low


def surprise(correct: int, guesses: int, *, epsilon: float, canaries: int, delta: float = 0.0) -> float:
    """Return the most that the probability of so many right guesses or more can be under (epsilon, delta)."""
    chance = 1 / (1 + math.exp(-epsilon))
    tail = _tail(np.array([correct]), guesses, chance)[0]
    if not delta:
        return float(tail)
    back = np.arange(1, max(correct, 1) + 1)
    steepest = ((_tail(correct - back, guesses, chance) - tail) / back).max()
    return float(min(1.0, tail + 2 * canaries * delta * steepest))


def _tail(least: NDArray[Any], trials: int, chance: float) -> NDArray[np.float64]:
    """Return the probability that a binomial number is at least so large."""
    inside = np.clip(least, 1, trials)
    found = special.betainc(inside, trials - inside + 1.0, chance)
    return np.asarray(np.where(least <= 0, 1.0, np.where(least > trials, 0.0, found)))


def _check_scores(included: Any, scores: Any) -> tuple[NDArray[np.bool_], NDArray[np.float64]]:
    inside = np.asarray(included)
    try:
        seen = np.asarray(scores, dtype=np.float64)
    except (TypeError, ValueError):
        raise ParameterError("The scores are not numbers.", fix="give one number per canary.") from None
    if inside.ndim != 1 or seen.shape != inside.shape or not len(inside):
        raise ParameterError(
            "There is not one score for each canary.", fix="give two lists of the same length, one item per canary."
        )
    if inside.dtype != np.bool_ and not np.isin(inside, (0, 1)).all():
        raise ParameterError("included is neither true nor false somewhere.", fix="give True or False per canary.")
    if np.isnan(seen).any():
        raise ParameterError("A score is not a number.", fix="give every canary a score; 0 says nothing.")
    return inside.astype(np.bool_), seen


def _pairs(guesses: Any, canaries: int) -> list[tuple[int, int]]:
    if guesses is None:
        halves = sorted({max(1, round(share * canaries / 2)) for share in _SHARES})
        found = [(half, min(half, canaries - half)) for half in halves if half <= canaries]
    else:
        listed = [guesses] if isinstance(guesses, tuple) else list(guesses)
        found = [_pair(item) for item in listed]
    if not found or any(sum(pair) > canaries or not sum(pair) for pair in found):
        raise ParameterError(
            f"There are {canaries} canaries, and more guesses than that, or none.",
            fix="make at least one guess, and at most one per canary.",
        )
    return found


def _pair(item: Any) -> tuple[int, int]:
    if not isinstance(item, tuple | list) or len(item) != 2:
        raise ParameterError("guesses are not pairs.", fix="write guesses=(100, 100): so many in, so many out.")
    first, second = (validation.check_count(part, name="guesses") for part in item)
    return first, second


def _right(inside: NDArray[np.bool_], scores: NDArray[np.float64], pair: tuple[int, int]) -> int:
    """Return how many guesses are right.

    Ties are broken by an order that has nothing to do with the coins, also where the canaries are listed by them.
    """
    mixed = permutation(SeededRandomSource(len(scores)), len(scores))
    order = mixed[np.argsort(-scores[mixed], kind="stable")]
    in_, out = pair
    return int(inside[order[:in_]].sum() + (~inside[order[len(order) - out :]]).sum())


def _is_above(bounds: list[float], claim: Fraction | None) -> bool:
    return claim is not None and max(bounds) > claim
