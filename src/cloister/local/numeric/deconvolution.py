"""From noisy counts back to shares: expectation maximization, with or without smoothing.

Given counts of outputs and the probability of every output under every input, the likeliest shares of the inputs are
the limit of ``x <- x * A' (o / A x) / n`` (Dempster, Laird and Rubin 1977; for local reports Li et al. 2020, "EM"). The
likelihood is concave, which gives a certificate: no shares have a log-likelihood above the present one plus
``n (max_i (A' (o / A x))_i / n - 1)``. With many inputs the likeliest shares are ragged; averaging each share with its
neighbors after every step (weights 1, 2, 1; "EMS") gives smooth shares at the price of some bias.

Both limits are reached by extrapolated steps (SQUAREM, Varadhan and Roland 2008).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cloister.local.numeric.grid import Floats

__all__ = ["GAP", "MOST_STEPS", "Fit", "fit_many", "fit_shares"]

GAP = 0.5
"""The log-likelihood that is at most missing when the likeliest shares count as found."""

MOST_STEPS = 20_000
LEAPS = 50
"""How many extrapolated steps shares of many counts get; they begin near their ends."""

_MOVE = 1e-8
_NEAR = 1e-5
_REACH = 1.1
_HALVINGS = 4


@dataclass(frozen=True)
class Fit:
    """Fitted shares.

    Attributes:
        shares: they are not negative and add up to 1.
        steps: how many times the shares were improved.
        gap: how much more log-likelihood other shares can have, at most.
        move: how much the last plain step changed a share, at most.
        converged: whether the gap (likeliest shares) or the move (smooth shares) is small enough.
    """

    shares: Floats
    steps: int
    gap: float
    move: float
    converged: bool


def fit_shares(counts: NDArray[np.int64], law: Floats, *, smooth: bool, most: int = MOST_STEPS) -> Fit:
    """Return the shares of the inputs.

    Args:
        counts: how often each output came.
        law: the probability of each output (row) under each input (column).
        smooth: whether to average neighboring shares after every step.
        most: after how many steps to give up.
    """
    problem = _Problem(counts, law, smooth=smooth)
    shares, steps = np.full(law.shape[1], 1 / law.shape[1]), 0
    while True:
        once, gap = problem.improve(shares)
        move = float(np.abs(once - shares).max())
        converged = move <= _MOVE if smooth else gap <= GAP
        steps += 1
        if converged or steps >= most:
            return Fit(once if smooth else shares, steps, gap, move, converged)
        shares = problem.leap(shares, once)
        steps += 2


def fit_many(counts: NDArray[Any], law: Floats, start: Floats, *, smooth: bool, leaps: int = LEAPS) -> Floats:
    """Return the shares of the inputs for many counts at once, one column for each, from shares that are near.

    Args:
        counts: how often each output (row) came in each of many tries (column).
        law: the probability of each output (row) under each input (column).
        start: shares to begin with.
        smooth: whether to average neighboring shares after every step.
        leaps: how many extrapolated steps to take at most.
    """
    problem = _Problem(counts, law, smooth=smooth)
    shares = np.repeat(start[:, None], counts.shape[1], axis=1)
    for _ in range(leaps):
        once, gap = problem.improve(shares)
        if (np.abs(once - shares).max() <= _NEAR / len(start)) if smooth else gap <= GAP:
            return once
        shares = problem.leap_many(shares, once)
    return shares


class _Problem:
    def __init__(self, counts: NDArray[np.int64], law: Floats, *, smooth: bool) -> None:
        seen = counts.reshape(len(counts), -1).any(axis=1)
        self.counts, self.law = counts[seen].astype(np.float64), law[seen]
        self.total = self.counts.sum(axis=0)
        self.finish: Callable[[Floats], Floats] = _smoothed if smooth else _unchanged
        self.smooth = smooth

    def improve(self, shares: Floats) -> tuple[Floats, float]:
        """Return better shares, and by how much the log-likelihood of the given ones can be beaten."""
        gains = self.law.T @ (self.counts / (self.law @ shares)) / self.total
        return self.finish(shares * gains), float((self.total * (gains.max(axis=0) - 1)).max())

    def log_likelihood(self, shares: Floats) -> Floats:
        return np.asarray((self.counts * np.log(self.law @ shares)).sum(axis=0))

    def leap(self, start: Floats, once: Floats) -> Floats:
        """Return shares from two plain steps and an extrapolation of them, unless that is worse."""
        twice = self.improve(once)[0]
        first = once - start
        bend = twice - once - first
        length = float(np.linalg.norm(bend))
        reach = max(1.0, float(np.linalg.norm(first)) / length) if length else 1.0
        while reach > 1 and (start + 2 * reach * first + reach**2 * bend).min() < 0:
            reach = (reach + 1) / 2 if reach > _REACH else 1.0
        far = np.maximum(start + 2 * reach * first + reach**2 * bend, 0)
        leapt = self.improve(far / far.sum())[0]
        if self.smooth or self.log_likelihood(leapt) >= self.log_likelihood(twice):
            return leapt
        return twice

    def leap_many(self, start: Floats, once: Floats) -> Floats:
        """Return what `leap` does for each column; where shares would be negative it is a plain step."""
        twice = self.improve(once)[0]
        first = once - start
        bend = twice - once - first
        length = np.linalg.norm(bend, axis=0)
        reach = np.maximum(np.linalg.norm(first, axis=0) / np.where(length > 0, length, np.inf), 1)
        for _ in range(_HALVINGS):
            reach = np.where((start + 2 * reach * first + reach**2 * bend).min(axis=0) < 0, (reach + 1) / 2, reach)
        far = np.maximum(start + 2 * reach * first + reach**2 * bend, 0)
        leapt = self.improve(far / far.sum(axis=0))[0]
        if self.smooth:
            return leapt
        return np.where(self.log_likelihood(leapt) >= self.log_likelihood(twice), leapt, twice)


def _unchanged(shares: Floats) -> Floats:
    return shares


def _smoothed(shares: Floats) -> Floats:
    """Return shares averaged with their neighbors, the two ends with their only one."""
    averaged = 2 * shares
    averaged[1:] += shares[:-1]
    averaged[:-1] += shares[1:]
    averaged[0] *= 4 / 3
    averaged[-1] *= 4 / 3
    return np.asarray(averaged / averaged.sum(axis=0))
