"""The worst privacy loss of Gaussian noise on a Poisson sample, on a grid.

Each unit enters the sample with probability q, and the noise is mu-Gaussian private on the sample. Removing a unit is
dominated by the pair (1-q) N(0,1) + q N(mu,1) against N(0,1), adding one by the same pair the other way round, and
domination survives composition for each of the two by itself (Zhu, Dong and Wang 2022, theorem 11). Neither is
symmetric: the loss at y is ``ln(1 - q + q exp(mu y - mu**2/2))`` for the first pair, and minus that for the second.
A larger q or mu dominates a smaller one, so both are rounded up.

The density is integrated with three Gauss-Legendre nodes between the points where the loss crosses a grid point, and
at least 64 times in each unit of y. What lies above the last point is an unbounded loss; what lies below the
first one is charged as a loss at it.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from cloister.accounting.accountants.grid import LARGEST_TRANSFORM, Pile, split, too_fine
from cloister.accounting.events import Event, GaussianEvent, SubsampledEvent
from cloister.core import exact

__all__ = ["SampledGaussian", "sampled_gaussian", "sampled_pile"]

Floats = NDArray[np.float64]

_REACH = 12.0
_BELOW = math.exp(-72)
_PARTS = 64
_LARGEST_MU = 30.0
_STEEP = 30.0


class SampledGaussian(NamedTuple):
    """Gaussian noise on a Poisson sample: the rate, and the Gaussian parameter, both rounded up."""

    rate: float
    mu: float

    def variance(self) -> float:
        """Return roughly the variance of the loss."""
        square = self.mu**2
        return min(self.rate**2 * math.expm1(min(square, 50.0)), square)

    def loss(self, places: Floats) -> Floats:
        """Return the loss of the first pair at places y."""
        tilts = self.mu * places - self.mu**2 / 2
        small = np.log1p(self.rate * np.expm1(np.minimum(tilts, _STEEP)))
        steep = np.maximum(tilts, _STEEP) + math.log(self.rate)
        return np.asarray(
            np.where(tilts < _STEEP, small, steep + np.log1p((1 - self.rate) / self.rate * np.exp(-np.abs(tilts))))
        )

    def crossings(self, losses: Floats) -> Floats:
        """Return the places y at which the loss of the first pair has given values, without values never reached."""
        excess = np.expm1(losses) / self.rate + 1
        return np.asarray((np.log(excess[excess > 0]) + self.mu**2 / 2) / self.mu)

    def farthest(self, log_tail: float) -> float:
        """Return a place y that the first distribution exceeds with at most a probability."""
        return self.mu + math.sqrt(-2 * log_tail)


def sampled_gaussian(event: Event) -> SampledGaussian | None:
    """Return the pair of an event, or None if it is not Gaussian noise on a sample."""
    if not isinstance(event, SubsampledEvent) or not isinstance(event.event, GaussianEvent):
        return None
    mu = exact.float_above(exact.sqrt_bounds(1 / event.event.squared_multiplier)[1])
    return SampledGaussian(min(1.0, exact.float_above(event.rate)), mu)


def sampled_pile(
    pair: SampledGaussian, *, removed: bool, count: int, width: float, log_tail: float
) -> tuple[Pile, float]:
    """Return the loss on a grid when a unit is removed (or added), and the probability of a loss above the grid.

    Args:
        pair: the noise.
        removed: which of the two pairs is meant.
        count: how many such losses are added up.
        width: the width of the grid.
        log_tail: the logarithm of the probability that may be left out in all of them together.
    """
    if pair.mu > _LARGEST_MU:
        raise too_fine()
    log_one = min(log_tail - math.log(count), -1.0)
    top = pair.farthest(log_one) if removed else _REACH
    nodes, shares = _nodes(pair, -_REACH, top, width)
    density = np.exp(-(nodes**2) / 2)
    if removed:
        density = (1 - pair.rate) * density + pair.rate * np.exp(-((nodes - pair.mu) ** 2) / 2)
    losses = pair.loss(nodes)
    masses = density * shares / math.sqrt(2 * math.pi)
    pile = split(losses if removed else -losses, masses, count=count, width=width)
    pile.probabilities[0] += _BELOW
    if not removed:
        pile.probabilities[-1] += _BELOW
        return pile, 0.0
    return pile, math.exp(log_one) * count


def _nodes(pair: SampledGaussian, low: float, high: float, width: float) -> tuple[Floats, Floats]:
    """Return places at which to take the density, and how much of the line each stands for."""
    ends = pair.loss(np.array([low, high]))
    first, last = math.floor(ends[0] / width), math.ceil(ends[1] / width)
    if last - first > LARGEST_TRANSFORM // 2:
        raise too_fine()
    crossings = pair.crossings(np.arange(first, last + 1) * width)
    parts = math.ceil((high - low) * _PARTS * max(1.0, pair.mu))
    borders = np.concatenate([crossings, np.linspace(low, high, parts + 1)])
    borders = np.unique(np.clip(borders, low, high))
    inside, weights = np.polynomial.legendre.leggauss(3)
    halves = np.diff(borders)[:, None] / 2
    places = (borders[:-1, None] + halves) + halves * inside
    return places.ravel(), (halves * weights).ravel()
