"""How often a class is expected in the sample: mixtures of intensities on a grid, fitted to the classes seen.

A class of the population that holds F people is drawn f times when each person is sampled with probability ``rate``.
F is a Poisson count around an intensity; ``log_means`` are the logarithms of the expected *sample* counts on the grid.
A mixture says how likely each point of the grid is, per group of alike classes, up to a factor. Everything that is
asked about the population is a ratio of two sums over the grid, so that the factor does not matter.

Two families are fitted to the classes that are in the sample (zero-truncated likelihoods).

*Log-normal regression*: the logarithm of an intensity is normal around a line in what a log-linear model expects of
the class, with a spread that may change along the line. A product of many shares is nearly log-normal, which is why
combinations of attributes look like this (Skinner and Holmes 1998 put such a term into a log-linear model).

*Gamma*: intensities follow the measure x^(shape-1) exp(-decay x) with a shape above -1. This is Engen's extended
negative binomial law of counts; with a negative shape it is what the Pitman process leads to (Hoshino 2001).

The fit is Newton's method for a smooth function of a few bounded parameters. For two to four parameters this takes a
tenth of the time of a general optimizer, and its curvature is wanted anyway.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from cloister.core.lazy_imports import late_module

special = late_module("scipy.special")

LARGEST = 30
"""Larger sample counts are one category: they tell nothing about unique people."""

Array: TypeAlias = NDArray[np.float64]

_LOG_MEANS: Array = np.linspace(np.log(1e-9), np.log(1e3), 184)
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(24)


@dataclass(frozen=True, slots=True, eq=False)
class IntensityGrid:
    """The grid and the probabilities of every sample count at each of its points."""

    log_means: Array
    means: Array
    counts: Array
    """Row f - 1 is the probability of the count f = 1 .. LARGEST; the last row that of more."""
    present: Array
    """The probability that a class is in the sample at all."""

    @classmethod
    def standard(cls) -> IntensityGrid:
        """Return the grid that serves every table."""
        means = np.exp(_LOG_MEANS)
        sizes = np.arange(1, LARGEST + 1)[:, None]
        exact = np.exp(sizes * _LOG_MEANS - means - special.gammaln(sizes + 1))
        # The incomplete gamma function is the probability of a Poisson count above LARGEST.
        return cls(_LOG_MEANS, means, np.vstack([exact, special.gammainc(LARGEST + 1, means)]), -np.expm1(-means))

    def unique_in_population(self, rate: float) -> Array:
        """Return the probability of being drawn once and being alone in the population."""
        return self.means * np.exp(-self.means / rate)

    def inverse_population(self, rate: float) -> Array:
        """Return the mean of 1 / F for each sample count (rows) at each point, F the count in the population.

        F is f plus a Poisson count with mean m of people who were not drawn, and 1 / (f + X) has the mean of
        t^(f-1) exp(-m (1 - t)) over t between 0 and 1.
        """
        unseen = self.means * (1 - rate) / rate
        # The substitution t = 1 - u^2 puts more nodes where the exponential is concentrated when m is large.
        u = (_NODES + 1) / 2
        sizes = np.arange(1, LARGEST + 1)
        powers = (1 - u**2) ** (sizes[:, None] - 1) * u * _WEIGHTS
        exact = powers @ np.exp(-np.outer(u**2, np.minimum(unseen, 500.0)))
        # Where very many people were not drawn their number hardly varies, and the mean of the inverse is the inverse
        # of the mean.
        return np.where(unseen > 500, 1 / (sizes[:, None] + unseen), exact)


_MOST_STEPS = 60
_LARGEST_DAMPING = 1e9


def minimize(
    loss: Callable[[Array], tuple[float, Array]], start: Array, *, bounds: Sequence[tuple[float, float]]
) -> tuple[Array, float]:
    """Return where a loss is least and its value there, from a start inside the bounds.

    Each step solves the damped Newton equations of the parameters that do not press against a bound; a step that does
    not improve is tried again with more damping (Levenberg 1944, Marquardt 1963).
    """
    low, high = np.array(bounds).T
    at = np.clip(start, low, high)
    value, gradient = loss(at)
    damping = 1e-3
    for _ in range(_MOST_STEPS):
        matrix = _positive(_forward_curvature(loss, at, gradient))
        # A parameter at its bound that wants to go beyond it would only block the others.
        free = ~(((at <= low) & (gradient > 0)) | ((at >= high) & (gradient < 0)))
        before = value
        while damping < _LARGEST_DAMPING:
            step = np.zeros(len(at))
            inside = matrix[np.ix_(free, free)] + damping * np.diag(np.diag(matrix)[free])
            step[free] = np.linalg.solve(inside, -gradient[free])
            # A long step leaves the region where the quadratic means anything.
            trial = np.clip(at + np.clip(step, -2.0, 2.0), low, high)
            trial_value, trial_gradient = loss(trial)
            if trial_value <= value:
                at, value, gradient = trial, trial_value, trial_gradient
                damping /= 10
                break
            damping *= 10
        if not free.any() or before - value <= 1e-9 * abs(value):
            break
    return at, value


def _forward_curvature(loss: Callable[[Array], tuple[float, Array]], at: Array, gradient: Array) -> Array:
    """Return second derivatives from one more gradient per parameter: good enough for a step."""
    steps = np.diag(1e-5 * np.maximum(1.0, np.abs(at)))
    matrix = np.array([(loss(at + step)[1] - gradient) / step.sum() for step in steps])
    symmetric: Array = (matrix + matrix.T) / 2
    return symmetric


def curvature(gradient: Callable[[Array], Array], at: Array) -> Array:
    """Return the matrix of second derivatives, from differences of the gradient."""
    steps = np.diag(1e-4 * np.maximum(1.0, np.abs(at)))
    rows = [(gradient(at + step) - gradient(at - step)) / (2 * step.sum()) for step in steps]
    matrix = np.array(rows)
    symmetric: Array = (matrix + matrix.T) / 2
    return symmetric


def _positive(matrix: Array) -> Array:
    """Return the matrix with its eigenvalues made positive, so that a step goes downwards."""
    values, vectors = np.linalg.eigh(matrix)
    floor = 1e-8 * max(float(np.abs(values).max()), 1e-12)
    positive: Array = (vectors * np.maximum(np.abs(values), floor)) @ vectors.T
    return positive


_TINY = 1e-300
_SMALLEST_DEVIATION = 0.12
"""A narrower law would fall between the points of the grid."""
_SMALLEST_SPREAD = float(np.log(_SMALLEST_DEVIATION))
_LINE_BOUNDS = ((-16.0, 8.0), (_SMALLEST_SPREAD, 2.0), (-3.0, 12.0), (-1.0, 1.0))
_LINE_STARTS = np.array([[-2.0, 0.3, 0.8, 0.0], [-3.0, -1.5, 2.0, 0.4]])
"""Small samples can have two peaks: a wide law around a weak line, and a narrow one around a strong line."""
_GAMMA_STARTS = np.array([[0.2, -1.0]])
_GAMMA_BOUNDS = ((-0.995, 20.0), (-12.0, 12.0))


@dataclass(frozen=True, slots=True, eq=False)
class FittedMixture:
    """A fitted family: how likely each grid point is, for each group of classes."""

    name: str
    parameters: Array
    weights: Callable[[Array], Array]
    log_likelihood: float
    gradient: Callable[[Array], Array]

    def criterion(self, classes: int) -> float:
        """Return Schwarz's criterion (BIC): smaller is better."""
        return -2 * self.log_likelihood + len(self.parameters) * float(np.log(classes))

    def covariance(self) -> Array:
        """Return the inverse of the information; a direction that the data say nothing about counts as known."""
        values, vectors = np.linalg.eigh(curvature(self.gradient, self.parameters))
        kept = np.where(values > 1e-6 * values.max(), values, np.inf)
        covariance: Array = (vectors / kept) @ vectors.T
        return covariance


def fit_lognormal(grid: IntensityGrid, table: Array, expected: Array | None = None) -> FittedMixture:
    """Fit the log-normal family.

    Args:
        grid: the grid of intensities.
        table: how many classes each group (row) has with each count (column).
        expected: the standardized expectation of each group; None for a family without a line.
    """
    line = np.zeros(1) if expected is None else expected
    used = 2 if expected is None else 4
    counted = table.sum(axis=0, keepdims=True) if expected is None else table

    def places(parameters: Array) -> tuple[Array, Array]:
        middle, spread, slope, change = np.concatenate([parameters, np.zeros(4 - used)])
        deviation = np.maximum(np.exp(spread + change * line), _SMALLEST_DEVIATION)[:, None]
        return (grid.log_means - (middle + slope * line)[:, None]) / deviation, deviation

    def weights(parameters: Array) -> Array:
        density = _normalize_exponents(-0.5 * places(parameters)[0] ** 2)
        return np.broadcast_to(density, (len(table), density.shape[1]))

    def loss(parameters: Array) -> tuple[float, Array]:
        z, deviation = places(parameters)
        density = _normalize_exponents(-0.5 * z**2)
        value, by_point = _loss_by_point(grid, counted, density)
        by_middle = (by_point * (z / deviation)).sum(axis=1)
        # At the smallest deviation the law does not change with the parameter.
        by_spread = (by_point * z**2).sum(axis=1) * (deviation[:, 0] > _SMALLEST_DEVIATION)
        full = np.array([by_middle.sum(), by_spread.sum(), by_middle @ line, by_spread @ line])
        return value, full[:used]

    name = "log-normal" if expected is None else "log-linear with log-normal spread"
    return _fit_family(name, loss, weights, _LINE_STARTS[: used // 2, :used], _LINE_BOUNDS[:used])


def fit_gamma(grid: IntensityGrid, table: Array) -> FittedMixture:
    """Fit the gamma family to all groups together."""
    together = table.sum(axis=0, keepdims=True)

    def exponent(parameters: Array) -> Array:
        shape, decay = parameters
        return np.asarray(shape * grid.log_means - np.exp(decay) * grid.means)[None, :]

    def weights(parameters: Array) -> Array:
        return np.broadcast_to(_normalize_exponents(exponent(parameters)), (len(table), len(grid.means)))

    def loss(parameters: Array) -> tuple[float, Array]:
        value, by_point = _loss_by_point(grid, together, _normalize_exponents(exponent(parameters)))
        by_decay = -np.exp(parameters[1]) * grid.means
        return value, np.array([(by_point * grid.log_means).sum(), (by_point * by_decay).sum()])

    return _fit_family("gamma", loss, weights, _GAMMA_STARTS, _GAMMA_BOUNDS)


def _normalize_exponents(exponent: Array) -> Array:
    return np.asarray(np.exp(exponent - exponent.max(axis=1, keepdims=True)))


def _loss_by_point(grid: IntensityGrid, table: Array, density: Array) -> tuple[float, Array]:
    """Return the negative log-likelihood and its derivative by the logarithm of each weight."""
    # Far away from all classes both sums are zero in doubles, and would have no logarithm.
    counts = density @ grid.counts.T + _TINY
    present = density @ grid.present + _TINY
    totals = table.sum(axis=1)
    value = float((totals * np.log(present)).sum() - (table * np.log(counts)).sum())
    slope = (totals / present)[:, None] * grid.present - (table / counts) @ grid.counts
    return value, density * slope


def _fit_family(
    name: str,
    loss: Callable[[Array], tuple[float, Array]],
    weights: Callable[[Array], Array],
    starts: Array,
    bounds: tuple[tuple[float, float], ...],
) -> FittedMixture:
    parameters, value = min((minimize(loss, start, bounds=bounds) for start in starts), key=lambda found: found[1])
    return FittedMixture(name, parameters, weights, -value, lambda at: loss(at)[1])
