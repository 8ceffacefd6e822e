"""From noisy counts back to shares by expectation maximization, how far those can be off, and how many bins they tell.

Given counts of outputs and the probability of every output under every input, the likeliest shares of the inputs are
the limit of ``x <- x * A' (o / A x) / n`` (Dempster, Laird and Rubin 1977; for local reports Li et al. 2020, "EM"). The
likelihood is concave, which gives a certificate: no shares have a log-likelihood above the present one plus
``n (max_i (A' (o / A x))_i / n - 1)``. With many inputs the likeliest shares are ragged; averaging each share with its
neighbors after every step (weights 1, 2, 1; "EMS") gives smooth shares at the price of some bias.

Both limits are reached by extrapolated steps (SQUAREM, Varadhan and Roland 2008).

Margins come from a parametric bootstrap (Efron and Tibshirani 1993): counts that the fitted shares lead to are drawn
again and again, each time with the noise of devices and of who took part, and shares are fitted to each. How far these
lie from the fitted shares, squared and averaged, holds both the noise and the bias of the fit for people who look like
the fitted ones. Draws are the same for the same reports, so that an estimate is.

The number of bins is a public rule: the 95% margin of a share then is about a third of what equal shares would be. On
a bell, a long tail and two peaks the published window has such margins with about ``eps sqrt(n) / 16`` bins.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cloister.core.lazy_imports import late_module
from cloister.core.random import SeededRandomSource, integers_below
from cloister.local.numeric._bounds import Floats

__all__ = [
    "GAP",
    "MARGINS_ARE",
    "MOST_SHOWN",
    "MOST_STEPS",
    "TRIES",
    "DeconvolutionFit",
    "bins_for",
    "distinct_bins",
    "draw_counts",
    "fit_many",
    "fit_shares",
    "refit_shares",
]


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
class DeconvolutionFit:
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


def fit_shares(counts: NDArray[np.int64], law: Floats, *, smooth: bool, most: int = MOST_STEPS) -> DeconvolutionFit:
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
        # Smoothing leaves the likelihood's ascent, so that a smoothed fit never closes the gap: it ends where it stands
        # still.
        converged = move <= _MOVE if smooth else gap <= GAP
        steps += 1
        if converged or steps >= most:
            # The gap was worked out for the shares before the step; a smoothed fit has to end with its smoothing.
            return DeconvolutionFit(once if smooth else shares, steps, gap, move, converged)
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
        # Outputs that never came have no part in the likelihood, and could divide zero by zero.
        seen = counts.reshape(len(counts), -1).any(axis=1)
        self.counts, self.law = counts[seen].astype(np.float64), law[seen]
        self.total = self.counts.sum(axis=0)
        self.finish: Callable[[Floats], Floats] = _smooth_shares if smooth else _keep_shares
        self.smooth = smooth

    def improve(self, shares: Floats) -> tuple[Floats, float]:
        """Return better shares, and by how much the log-likelihood of the given ones can be beaten."""
        gains = self.law.T @ (self.counts / (self.law @ shares)) / self.total
        # The likelihood is concave, so that its steepest slope on the simplex bounds what any other shares could add.
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
        # Shares must not be negative: the reach shrinks until they are not, in the end to a plain step.
        while reach > 1 and (start + 2 * reach * first + reach**2 * bend).min() < 0:
            reach = (reach + 1) / 2 if reach > _REACH else 1.0
        far = np.maximum(start + 2 * reach * first + reach**2 * bend, 0)
        leapt = self.improve(far / far.sum())[0]
        # An extrapolation can overshoot. With smoothing the likelihood is not what is climbed, and so has no say.
        if self.smooth or self.log_likelihood(leapt) >= self.log_likelihood(twice):
            return leapt
        return twice

    def leap_many(self, start: Floats, once: Floats) -> Floats:
        """Return what `leap` does for each column; where shares would be negative it is a plain step."""
        twice = self.improve(once)[0]
        first = once - start
        bend = twice - once - first
        length = np.linalg.norm(bend, axis=0)
        # A column that no longer bends takes a plain step, in place of dividing by zero.
        reach = np.maximum(np.linalg.norm(first, axis=0) / np.where(length > 0, length, np.inf), 1)
        for _ in range(_HALVINGS):
            reach = np.where((start + 2 * reach * first + reach**2 * bend).min(axis=0) < 0, (reach + 1) / 2, reach)
        far = np.maximum(start + 2 * reach * first + reach**2 * bend, 0)
        leapt = self.improve(far / far.sum(axis=0))[0]
        if self.smooth:
            return leapt
        return np.where(self.log_likelihood(leapt) >= self.log_likelihood(twice), leapt, twice)


def _keep_shares(shares: Floats) -> Floats:
    return shares


def _smooth_shares(shares: Floats) -> Floats:
    """Return shares averaged with their neighbors, the two ends with their only one."""
    averaged = 2 * shares
    averaged[1:] += shares[:-1]
    averaged[:-1] += shares[1:]
    # An end has one neighbor: weights of two and one out of three, on the common scale of four.
    averaged[0] *= 4 / 3
    averaged[-1] *= 4 / 3
    return np.asarray(averaged / averaged.sum(axis=0))


special = late_module("scipy.special")


TRIES = 40
"""How often shares are fitted anew unless told otherwise: deviations are then known to about a ninth."""

MOST_SHOWN = 32
"""The largest number of bins that the public rule gives."""

MARGINS_ARE = (
    "margins come from fitting simulated reports anew: in trials they held for about nine shares in ten, for fewer "
    "where the truth has peaks or ends that the fit smooths away"
)
"""What an estimate says about its margins."""

_REPORTS_PER_BIN = 16
_STEPS = tuple(map(Fraction, ("1", "2", "2.5", "3", "4", "5")))
_SEED = 1979


def distinct_bins(reports: int, epsilon: Fraction) -> float:
    """Return how many bins so many reports can tell apart; below 1.5 they tell nothing of a distribution."""
    return float(epsilon) * math.sqrt(reports) / _REPORTS_PER_BIN


def bins_for(reports: int, epsilon: Fraction, width: Fraction) -> int:
    """Return the number of bins to show: what can be told apart, with round ends where that is near.

    >>> bins_for(20_000, Fraction(1), Fraction(100)), bins_for(500, Fraction(1), Fraction(100))
    (10, 2)
    """
    wanted = distinct_bins(reports, epsilon)
    most = min(max(math.floor(1.2 * wanted), 2), MOST_SHOWN)
    power = Fraction(10) ** math.floor(math.log10(width / most))
    counts = (width / (power * scale * step) for scale in (1, 10) for step in _STEPS)
    whole = max((int(count) for count in counts if count.denominator == 1 and count <= most), default=0)
    return whole if whole >= max(2, 0.6 * min(wanted, MOST_SHOWN)) else min(max(round(wanted), 2), MOST_SHOWN)


def draw_counts(expected: Floats, tries: int) -> NDArray[np.float64]:
    """Return Poisson counts with expected values (rows), in columns; the same ones every time."""
    # The same draws every time, so that the same reports always have the same margins: nobody is protected by them.
    words = integers_below(SeededRandomSource(_SEED), 2**53, expected.size * tries).reshape(expected.size, tries)
    means = np.broadcast_to(np.maximum(expected, 1e-9)[:, None], words.shape)
    # The inverse of the Poisson law is a real number whose ceiling is the count; half a step keeps it off 0 and 1.
    return np.asarray(np.maximum(np.ceil(np.nan_to_num(special.pdtrik((words + 0.5) / 2**53, means))), 0))


def refit_shares(fit: DeconvolutionFit, law: Floats, *, reports: int, smooth: bool, tries: int) -> Floats:
    """Return shares fitted to counts that are drawn from the fitted shares: one row for each try."""
    counts = draw_counts(reports * (law @ fit.shares), tries)
    counts[0] += counts.sum(axis=0) == 0  # a try without any report
    return fit_many(counts, law, fit.shares, smooth=smooth).T
