"""Two families of class intensities, fitted to the classes that are in the sample (zero-truncated likelihoods).

*Log-normal regression*: the logarithm of an intensity is normal around a line in what a log-linear model expects of
the class, with a spread that may change along the line. A product of many shares is nearly log-normal, which is why
combinations of attributes look like this (Skinner and Holmes 1998 put such a term into a log-linear model).

*Gamma*: intensities follow the measure x^(shape-1) exp(-decay x) with a shape above -1. This is Engen's extended
negative binomial law of counts; with a negative shape it is what the Pitman process leads to (Hoshino 2001).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from cloister.anonymize.risk.population.intensities import Array, IntensityGrid
from cloister.anonymize.risk.population.newton import curvature, minimize

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
        density = _scaled(-0.5 * places(parameters)[0] ** 2)
        return np.broadcast_to(density, (len(table), density.shape[1]))

    def loss(parameters: Array) -> tuple[float, Array]:
        z, deviation = places(parameters)
        density = _scaled(-0.5 * z**2)
        value, by_point = _loss_by_point(grid, counted, density)
        by_middle = (by_point * (z / deviation)).sum(axis=1)
        by_spread = (by_point * z**2).sum(axis=1) * (deviation[:, 0] > _SMALLEST_DEVIATION)
        full = np.array([by_middle.sum(), by_spread.sum(), by_middle @ line, by_spread @ line])
        return value, full[:used]

    name = "log-normal" if expected is None else "log-linear with log-normal spread"
    return _fitted(name, loss, weights, _LINE_STARTS[: used // 2, :used], _LINE_BOUNDS[:used])


def fit_gamma(grid: IntensityGrid, table: Array) -> FittedMixture:
    """Fit the gamma family to all groups together."""
    together = table.sum(axis=0, keepdims=True)

    def exponent(parameters: Array) -> Array:
        shape, decay = parameters
        return np.asarray(shape * grid.log_means - np.exp(decay) * grid.means)[None, :]

    def weights(parameters: Array) -> Array:
        return np.broadcast_to(_scaled(exponent(parameters)), (len(table), len(grid.means)))

    def loss(parameters: Array) -> tuple[float, Array]:
        value, by_point = _loss_by_point(grid, together, _scaled(exponent(parameters)))
        by_decay = -np.exp(parameters[1]) * grid.means
        return value, np.array([(by_point * grid.log_means).sum(), (by_point * by_decay).sum()])

    return _fitted("gamma", loss, weights, _GAMMA_STARTS, _GAMMA_BOUNDS)


def _scaled(exponent: Array) -> Array:
    return np.asarray(np.exp(exponent - exponent.max(axis=1, keepdims=True)))


def _loss_by_point(grid: IntensityGrid, table: Array, density: Array) -> tuple[float, Array]:
    """Return the negative log-likelihood and its derivative by the logarithm of each weight."""
    counts = density @ grid.counts.T + _TINY
    present = density @ grid.present + _TINY
    totals = table.sum(axis=1)
    value = float((totals * np.log(present)).sum() - (table * np.log(counts)).sum())
    slope = (totals / present)[:, None] * grid.present - (table / counts) @ grid.counts
    return value, density * slope


def _fitted(
    name: str,
    loss: Callable[[Array], tuple[float, Array]],
    weights: Callable[[Array], Array],
    starts: Array,
    bounds: tuple[tuple[float, float], ...],
) -> FittedMixture:
    parameters, value = min((minimize(loss, start, bounds=bounds) for start in starts), key=lambda found: found[1])
    return FittedMixture(name, parameters, weights, -value, lambda at: loss(at)[1])
