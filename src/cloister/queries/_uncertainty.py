"""Margins of error: half-widths of noisy answers at a confidence, from the public law of the noise.

A margin covers the noise (and rounding), not what clamping or a limit on contributions changed; notes say so. The
laws are those of `cloister.mechanisms.step_noise`, so that a mechanism and a question with the same noise state the
same margin. Sums of independent noises on different lattices are convolved on a grid, rounding outward. The interval
of a ratio is Fieller's (1954): all ratios that the noise does not exclude.

The noise of a measurement is exact, on whole steps; its law says what it is when a step is worth something.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from statistics import NormalDist
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from cloister.core import validation
from cloister.core.exact import Number
from cloister.mechanisms.step_noise import (
    GaussianSteps,
    LaplaceSteps,
    gaussian_half_width,
    gaussian_standard_deviation,
    laplace_half_width,
    laplace_standard_deviation,
    sum_half_width,
)

__all__ = [
    "Exactly",
    "GaussianNoise",
    "LaplaceNoise",
    "Linear",
    "MomentsUncertainty",
    "Noise",
    "RatioUncertainty",
    "Uncertainty",
    "Unknown",
]


Floats = NDArray[np.float64]

_POINTS = 2**13
_REACH = 30.0
_RATIOS = 33
_ROUNDING = 12**-0.5
"""The standard deviation of what rounding to whole numbers changes."""


class Uncertainty(Protocol):
    """The error of a column of answers."""

    def margins(self, confidence: Number = 0.95) -> Floats:
        """Return the half-width for each answer; infinite where nothing is known, NaN where it has no meaning."""
        ...

    def deviations(self) -> Floats:
        """Return the standard deviation of each answer, to first order; NaN where it is not known."""
        ...

    def take(self, rows: NDArray[np.int64]) -> Uncertainty:
        """Return the error of some of the answers, in an order."""
        ...


@dataclass(frozen=True, slots=True)
class Noise:
    """One independent noise: Laplace with a scale, or Gaussian with a sigma.

    ``step`` is the distance of the points of its lattice; 0 stands for continuous noise.
    """

    kind: str
    scale: float
    step: float = 0.0

    def times(self, coefficient: float) -> Noise:
        """Return the noise multiplied by a number."""
        return Noise(self.kind, abs(coefficient) * self.scale, abs(coefficient) * self.step)

    @property
    def deviation(self) -> float:
        """Return the standard deviation."""
        if not self.step:
            return self.scale * math.sqrt(2) if self.kind == "laplace" else self.scale
        if self.kind == "laplace":
            return laplace_standard_deviation(self.in_steps) * self.step
        return gaussian_standard_deviation(self.in_steps**2) * self.step

    @property
    def in_steps(self) -> Fraction:
        """Return the scale or sigma in steps of the lattice."""
        return Fraction(self.scale) / Fraction(self.step)

    def cumulative(self, points: NDArray[Any]) -> Floats:
        """Return the distribution function of the continuous noise."""
        if self.kind == "gaussian":
            from scipy.special import ndtr

            return np.asarray(ndtr(points / self.scale))
        tail = np.exp(-np.abs(points) / self.scale) / 2
        return np.asarray(np.where(points < 0, tail, 1 - tail))

    def half_width(self, confidence: float) -> float:
        """Return what covers this noise alone with a probability: a whole number of steps."""
        if self.step:
            if self.kind == "gaussian":
                return gaussian_half_width(self.in_steps**2, confidence) * self.step
            return laplace_half_width(self.in_steps, confidence) * self.step
        if self.kind == "gaussian":
            return self.scale * -NormalDist().inv_cdf((1 - confidence) / 2)
        return -self.scale * math.log1p(-confidence)


@lru_cache(maxsize=4096)
def half_width(noises: tuple[Noise, ...], confidence: float) -> float:
    """Return what covers the sum of independent noises with a probability."""
    parts = tuple(noise for noise in noises if noise.scale > 0)
    if len(parts) <= 1:
        return parts[0].half_width(confidence) if parts else 0.0
    # On one common lattice the law of the sum is computed point by point, without a grid, where that is not too
    # much work.
    if parts[0].step and len({noise.step for noise in parts}) == 1:
        steps = sum_half_width([(noise.kind, float(noise.in_steps)) for noise in parts], confidence)
        if steps is not None:
            return steps * parts[0].step
    deviation = math.sqrt(sum(noise.deviation**2 for noise in parts))
    # Where one noise is practically all, a grid over its spread would not resolve the others, so that widths
    # are added instead.
    if max(noise.deviation for noise in parts) > 0.9999 * deviation:
        return sum(noise.half_width(confidence if noise.deviation > deviation / 2 else 0.9) for noise in parts)
    step = 2 * _REACH * deviation / _POINTS
    edges = (np.arange(_POINTS + 1) - _POINTS / 2 - 0.5) * step
    spectrum: Any = 1.0
    for noise in parts:
        spectrum = spectrum * np.fft.rfft(np.fft.ifftshift(np.diff(noise.cumulative(edges))))
    masses = np.fft.fftshift(np.fft.irfft(spectrum, _POINTS))
    center = _POINTS // 2
    # The law of the sum is symmetric: either side holds the same mass.
    inside = masses[center] + 2 * np.cumsum(masses[center + 1 :])
    # Putting a noise on the grid moves it by less than a cell, and its own lattice by less than a step; the
    # width grows by all of them, never shrinks.
    return float((np.searchsorted(inside, confidence) + 1 + len(parts)) * step) + sum(noise.step for noise in parts)


@dataclass(frozen=True, slots=True)
class Linear:
    """A sum of noises, the same for every answer.

    ``rounding`` is added for answers that were rounded. Where ``is_whole``, the exact answers are whole numbers, and
    noisy ones were rounded to such: noise of less than m and a half then moves an answer by m at most.
    """

    noises: tuple[Noise, ...]
    size: int
    rounding: float = 0.0
    is_whole: bool = False

    def margins(self, confidence: Number = 0.95) -> Floats:
        """Return the half-width for each answer."""
        inside = float(validation.check_confidence(confidence))
        width = half_width(self.noises, inside)
        return np.full(self.size, math.floor(width + 0.5) if self.is_whole else width + self.rounding)

    def deviations(self) -> Floats:
        """Return the standard deviation of the noise, and of rounding where exact answers are whole numbers."""
        return np.full(self.size, math.hypot(deviation(self.noises), _ROUNDING * self.is_whole))

    def take(self, rows: NDArray[np.int64]) -> Linear:
        """Return the error of some of the answers."""
        return Linear(self.noises, len(rows), self.rounding, self.is_whole)


@dataclass(frozen=True, slots=True, eq=False)
class RatioUncertainty:
    """A noisy total over a noisy count, both per group, the ratio being within ``reach`` of zero."""

    total: tuple[Noise, ...]
    count: tuple[Noise, ...]
    totals: Floats
    counts: Floats
    reach: float

    def margins(self, confidence: Number = 0.95) -> Floats:
        """Return how far the farthest ratio that the noise allows is from the one shown."""
        inside = float(validation.check_confidence(confidence))
        shown = ratio(self.totals, self.counts, self.reach)
        low, high = (self._end(shown, sign, inside) for sign in (-1, 1))
        return np.maximum(high - shown, shown - low)

    def deviations(self) -> Floats:
        """Return the standard deviation of each ratio, to first order."""
        shown = ratio(self.totals, self.counts, self.reach)
        spread = np.hypot(deviation(self.total), shown * deviation(self.count))
        return np.where(self.counts > 1, spread / np.maximum(self.counts, 1), self.reach)

    def take(self, rows: NDArray[np.int64]) -> RatioUncertainty:
        """Return the error of some of the answers."""
        return RatioUncertainty(self.total, self.count, self.totals[rows], self.counts[rows], self.reach)

    def _end(self, shown: Floats, sign: int, inside: float) -> Floats:
        """Return the ratio t at which abs(total - t * count) reaches the half-width of that noise."""
        grid, widths = self._widths(inside)
        end = shown.copy()
        # The half-width depends on the very ratio that is sought, which is found by substituting it again and
        # again.
        for _ in range(12):
            width = np.interp(np.abs(end), grid, widths)
            with np.errstate(divide="ignore", invalid="ignore"):
                moved = (self.totals + sign * width) / self.counts
            end = np.where(self.counts > 0, np.clip(moved, -self.reach, self.reach), sign * self.reach)
        # A count that could be noise alone excludes no ratio.
        unsure = self.counts <= half_width(self.count, inside)
        return np.where(unsure, sign * self.reach, end)

    def _widths(self, inside: float) -> tuple[Floats, Floats]:
        grid = np.linspace(0, self.reach, _RATIOS)
        widths = [half_width((*self.total, *(noise.times(t) for noise in self.count)), inside) for t in grid]
        return grid, np.array(widths)


@dataclass(frozen=True, slots=True, eq=False)
class MomentsUncertainty:
    """A variance or standard deviation from noisy count, total and squares: the worst within joint half-widths."""

    noises: tuple[tuple[Noise, ...], tuple[Noise, ...], tuple[Noise, ...]]
    counts: Floats
    totals: Floats
    squares: Floats
    largest: float
    sample: bool
    root: bool

    def margins(self, confidence: Number = 0.95) -> Floats:
        """Return how far the farthest value within the half-widths is from the one shown."""
        # By the union bound all three half-widths hold together with the stated confidence.
        outside = (1 - float(validation.check_confidence(confidence))) / 3
        count, total, square = (half_width(noises, 1 - outside) for noises in self.noises)
        shown = self.values(self.counts, self.totals, self.squares)
        # Only the square of the total matters, so its ends are those nearest to zero and farthest from it.
        nearest = np.sign(self.totals) * np.maximum(np.abs(self.totals) - total, 0)
        farthest = np.sign(self.totals) * (np.abs(self.totals) + total)
        fewest, most = self.counts - count, self.counts + count
        ends = []
        for totals in (nearest, self.totals, farthest):
            for squares in (self.squares - square, self.squares + square):
                # Squares / count - (total / count)**2 turns, as a function of the count, at 2 * total**2 /
                # squares: besides the ends, the only place of an extreme.
                with np.errstate(divide="ignore", invalid="ignore"):
                    turning = np.clip(np.nan_to_num(2 * totals**2 / squares), fewest, most)
                ends += [self.values(counts, totals, squares) for counts in (fewest, turning, most)]
        away = np.maximum(np.max(ends, axis=0) - shown, shown - np.min(ends, axis=0))
        worst = math.sqrt(self._most) if self.root else self._most
        # Where fewer than two rows are possible, nothing but the public range is known.
        return np.where(self.counts - count < 2, np.maximum(worst - shown, shown), away)

    @property
    def _most(self) -> float:
        """Return the largest variance: of two values at the ends, that of a sample is twice that of a population."""
        return 2 * self.largest if self.sample else self.largest

    def deviations(self) -> Floats:
        """Return NaN for each answer: the margin is a bound, not a multiple of a deviation."""
        return np.full(len(self.counts), np.nan)

    def take(self, rows: NDArray[np.int64]) -> MomentsUncertainty:
        """Return the error of some of the answers."""
        counts, totals, squares = (part[rows] for part in (self.counts, self.totals, self.squares))
        return MomentsUncertainty(self.noises, counts, totals, squares, self.largest, self.sample, self.root)

    def values(self, counts: Floats, totals: Floats, squares: Floats) -> Floats:
        """Return the variance or deviation that these moments give, within its public range."""
        with np.errstate(divide="ignore", invalid="ignore"):
            variance = np.clip(np.nan_to_num(squares / counts - (totals / counts) ** 2), 0, self.largest)
            if self.sample:
                variance = np.nan_to_num(variance * counts / (counts - 1))
        inside = np.where(counts >= 2, np.clip(variance, 0, self._most), self.largest / 2)
        return np.asarray(np.sqrt(inside) if self.root else inside)


@dataclass(frozen=True, slots=True)
class Exactly:
    """No error, such as that of a public number."""

    size: int

    def margins(self, confidence: Number = 0.95) -> Floats:
        """Return zeros."""
        validation.check_confidence(confidence)
        return np.zeros(self.size)

    def deviations(self) -> Floats:
        """Return zeros."""
        return np.zeros(self.size)

    def take(self, rows: NDArray[np.int64]) -> Exactly:
        """Return the error of some of the answers."""
        return Exactly(len(rows))


@dataclass(frozen=True, slots=True)
class Unknown:
    """An error that has no half-width in the unit of the answer, but can be said in words."""

    size: int
    words: str = ""

    def margins(self, confidence: Number = 0.95) -> Floats:
        """Return NaN for each answer."""
        validation.check_confidence(confidence)
        return np.full(self.size, np.nan)

    def deviations(self) -> Floats:
        """Return NaN for each answer."""
        return np.full(self.size, np.nan)

    def take(self, rows: NDArray[np.int64]) -> Unknown:
        """Return the error of some of the answers."""
        return Unknown(len(rows), self.words)


def ratio(totals: Floats, counts: Floats, reach: float) -> Floats:
    """Return total over count within the reach; 0 where the count is below 1."""
    with np.errstate(divide="ignore", invalid="ignore"):
        quotient = totals / counts
    return np.where(counts < 1, 0.0, np.clip(np.nan_to_num(quotient), -reach, reach))


def deviation(noises: tuple[Noise, ...]) -> float:
    """Return the standard deviation of a sum of independent noises."""
    return math.sqrt(sum(noise.deviation**2 for noise in noises))


@dataclass(frozen=True, slots=True)
class LaplaceNoise(LaplaceSteps):
    """Discrete Laplace noise on whole numbers."""

    def law(self, unit: Fraction) -> Noise:
        """Return the law of the noise when a step is worth ``unit``."""
        return Noise("laplace", float(self.scale * unit), float(unit))


@dataclass(frozen=True, slots=True)
class GaussianNoise(GaussianSteps):
    """Discrete Gaussian noise on whole numbers, or on a finer lattice."""

    def law(self, unit: Fraction) -> Noise:
        """Return the law of the noise when a step is worth ``unit``."""
        return Noise("gaussian", math.sqrt(self.squared_sigma) * float(unit), float(unit / self.refinement))
