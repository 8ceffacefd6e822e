"""Losses that are neither Laplace-like nor Gaussian: those of noise on Poisson samples, and on a coarse lattice.

**Poisson samples.** Each unit enters the sample with probability q, and a pair (P, Q) dominates what is done with the
sample, whichever way round. Removing a unit is then dominated by the pair (1-q) Q + q P against Q, adding one by P
against (1-q) P + q Q, and domination survives composition for each of the two by itself (Zhu, Dong and Wang 2022,
theorem 11). A loss L of the pair (P, Q) becomes ``ln(1 - q + q exp(L))`` in the first and ``-ln(1 - q + q exp(-L))`` in
the second. A larger q dominates a smaller one, since some answers can be replaced by draws from Q (or P); so q is
rounded up.

`SampledGaussian` has P = N(mu, 1) and Q = N(0, 1); a larger mu dominates a smaller one. The density is integrated with
three Gauss-Legendre nodes between the points where the loss crosses a grid point, and at least 64 times in each unit of
y. What lies above the last point is an unbounded loss; what lies below the first one is charged as a loss at it.

`SampledLaplace` has the pair of the Laplace-like release on the sample, which has finitely many losses: nothing is
integrated or cut off.

**A coarse lattice.** `LatticeGaussian` is discrete Gaussian noise on whole numbers, of which neighbors are one apart in
one place: the loss at y is ``(2 y + 1) / (2 s)``, with a probability proportional to ``exp(-y**2 / (2 s))``. A value of
y or more has a probability of at most ``exp(-y**2 / (2 s))``, since the noise is subgaussian (Canonne, Kamath and
Steinke 2020); beyond the last y that is looked at, the loss counts as unbounded. Wider lattice noise is accounted for
as Gaussian noise.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from cloister.accounting.accountants._dominating_pairs import LaplaceLike, atoms, laplace_like
from cloister.accounting.accountants._loss_grid import LARGEST_TRANSFORM, Pile, split, too_fine
from cloister.accounting.accountants.closed_form import SMALLEST_SQUARED_SIGMA
from cloister.accounting.events import (
    DiscreteGaussianEvent,
    DiscreteLaplaceEvent,
    Event,
    GaussianEvent,
    LaplaceEvent,
    PureEvent,
    SubsampledEvent,
)
from cloister.core import exact

Floats = NDArray[np.float64]

_REACH = 12.0
_BELOW = math.exp(-72)
_PARTS = 64
_LARGEST_MU = 30.0
_SMALLEST_VARIANCE = Fraction(1, 900)
_LONGEST = 24.0
"""A Gaussian loss reaches so many deviations at most."""

_STEPS = 1024
_RAREST, _SMALLEST_LOSS = 1e-12, 1e-12
"""Samples that are rarer, or lose less, are accounted for by their amplified epsilon, which is near enough."""


class SampledGaussian(NamedTuple):
    """Gaussian noise on a Poisson sample: the rate, and the Gaussian parameter, both rounded up."""

    rate: float
    mu: float

    @property
    def is_symmetric(self) -> bool:
        """Return whether both neighbors lose alike."""
        return False

    def variance(self) -> float:
        """Return roughly the variance of the loss."""
        square = self.mu**2
        return min(self.rate**2 * math.expm1(min(square, 50.0)), square)

    def span(self) -> float:
        """Return roughly how far the losses are apart."""
        return self.mu * (self.mu / 2 + _LONGEST)

    def step(self) -> float:
        """Return a loss of which all others are multiples, or 0 if there is none."""
        return 0.0

    def largest(self) -> float:
        """Return the largest loss that is possible."""
        return math.inf

    def loss(self, places: Floats) -> Floats:
        """Return the loss of the first pair at places y."""
        return _sample_loss(self.mu * places - self.mu**2 / 2, self.rate)

    def crossings(self, losses: Floats) -> Floats:
        """Return the places y at which the loss of the first pair has given values, without values never reached."""
        excess = np.expm1(losses) / self.rate + 1
        return np.asarray((np.log(excess[excess > 0]) + self.mu**2 / 2) / self.mu)

    def farthest(self, log_tail: float) -> float:
        """Return a place y that the first distribution exceeds with at most a probability."""
        return self.mu + math.sqrt(-2 * log_tail)

    def pile(self, *, removed: bool, count: int, width: float, log_tail: float) -> tuple[Pile, float]:
        """Return the loss on a grid when a unit is removed (or added), and the probability of a loss above the grid.

        Args:
            removed: which of the two pairs is meant.
            count: how many such losses are added up.
            width: the width of the grid.
            log_tail: the logarithm of the probability that may be left out in all of them together.
        """
        if self.mu > _LARGEST_MU:
            raise too_fine()
        # By the union bound each of the losses may leave out one part in count.
        log_one = min(log_tail - math.log(count), -1.0)
        top = self.farthest(log_one) if removed else _REACH
        nodes, shares = _nodes(self, -_REACH, top, width)
        density = np.exp(-(nodes**2) / 2)
        if removed:
            density = (1 - self.rate) * density + self.rate * np.exp(-((nodes - self.mu) ** 2) / 2)
        losses = self.loss(nodes)
        masses = density * shares / math.sqrt(2 * math.pi)
        pile = split(losses if removed else -losses, masses, count=count, width=width)
        pile.probabilities[0] += _BELOW
        # For an added unit losses are bounded and largest at low places: their mass goes to the last point.
        if not removed:
            pile.probabilities[-1] += _BELOW
            return pile, 0.0
        return pile, math.exp(log_one) * count


class SampledLaplace(NamedTuple):
    """A Laplace-like release on a Poisson sample: the rate, rounded up, and the pair of the release."""

    rate: float
    pair: LaplaceLike

    @property
    def is_symmetric(self) -> bool:
        """Return whether both neighbors lose alike."""
        return False

    def variance(self) -> float:
        """Return roughly the variance of the loss."""
        losses, probabilities = self._removed()
        return float(losses**2 @ probabilities)

    def span(self) -> float:
        """Return how far the losses are apart."""
        return float(np.ptp(self._removed()[0]))

    def step(self) -> float:
        """Return a loss of which all others are multiples, or 0 if there is none."""
        return 0.0

    def largest(self) -> float:
        """Return the largest loss that is possible, which is one of a unit that is removed."""
        return float(self._removed()[0].max()) * (1 + 1e-14)

    def pile(self, *, removed: bool, count: int, width: float, log_tail: float) -> tuple[Pile, float]:  # noqa: ARG002  # nothing is left out
        """Return the loss on a grid when a unit is removed (or added); nothing is above the grid."""
        losses, probabilities = self._removed() if removed else self._added()
        if np.ptp(losses) / width > LARGEST_TRANSFORM:
            raise too_fine()
        return split(losses, probabilities, count=count, width=width), 0.0

    def _removed(self) -> tuple[Floats, Floats]:
        losses, ours = atoms(self.pair)
        # The pair is symmetric: the other distribution has the same probabilities in the opposite order.
        return _sample_loss(losses, self.rate), (1 - self.rate) * ours[::-1] + self.rate * ours

    def _added(self) -> tuple[Floats, Floats]:
        losses, ours = atoms(self.pair)
        return -_sample_loss(-losses, self.rate), ours


class LatticeGaussian(NamedTuple):
    """Discrete Gaussian noise on whole numbers, between neighbors one apart: its variance parameter, rounded down."""

    squared_sigma: float

    @property
    def is_symmetric(self) -> bool:
        """Return whether both neighbors lose alike."""
        return True

    def variance(self) -> float:
        """Return roughly the variance of the loss."""
        return 1 / self.squared_sigma

    def span(self) -> float:
        """Return roughly how far the losses are apart."""
        return 1 / self.squared_sigma + _LONGEST / math.sqrt(self.squared_sigma)

    def step(self) -> float:
        """Return a loss of which all others are multiples."""
        return 1 / (2 * self.squared_sigma)

    def largest(self) -> float:
        """Return the largest loss that is possible."""
        return math.inf

    def pile(self, *, removed: bool, count: int, width: float, log_tail: float) -> tuple[Pile, float]:  # noqa: ARG002  # both are alike
        """Return the loss on a grid, and the probability of a loss above the grid."""
        log_one = min(log_tail - math.log(count), -1.0)
        reach = math.ceil(math.sqrt(-2 * log_one * self.squared_sigma)) + 1
        places = np.arange(-reach, reach + 1.0)
        if (2 * reach + 1) / self.squared_sigma / width > LARGEST_TRANSFORM:
            raise too_fine()
        weights = np.exp(-(places**2) / (2 * self.squared_sigma))
        # The sum leaves the far tails out, so that each probability is at least the true one.
        pile = split((2 * places + 1) / (2 * self.squared_sigma), weights / weights.sum(), count=count, width=width)
        return pile, math.exp(log_one) * count


Noise: TypeAlias = SampledGaussian | SampledLaplace | LatticeGaussian
"""A release whose loss is known by a distribution of its own."""


def noise_of(event: Event) -> Noise | None:
    """Return the noise of an event whose loss is found here, or None."""
    match event:
        case SubsampledEvent(rate=rate, event=GaussianEvent(squared_multiplier=squared)):
            mu = exact.float_above(exact.sqrt_bounds(1 / squared)[1])
            return SampledGaussian(min(1.0, exact.float_above(rate)), mu)
        case SubsampledEvent(rate=rate, event=PureEvent() | LaplaceEvent() | DiscreteLaplaceEvent() as inner):
            pair = laplace_like(inner)[0].with_steps_near(_STEPS)
            chance = min(1.0, exact.float_above(rate))
            return SampledLaplace(chance, pair) if chance >= _RAREST and pair.epsilon >= _SMALLEST_LOSS else None
        case DiscreteGaussianEvent(squared_sigma=squared, squared_sensitivity=1) if (
            _SMALLEST_VARIANCE <= squared < SMALLEST_SQUARED_SIGMA
        ):
            return LatticeGaussian(exact.float_below(squared))
        case _:
            return None


def _sample_loss(losses: Floats, rate: float) -> Floats:
    """Return ``ln(1 - rate + rate exp(loss))``, also where the rate is near 0 or 1."""
    if rate == 1:
        return losses
    return np.logaddexp(math.log1p(-rate), losses + math.log(rate))


def _nodes(pair: SampledGaussian, low: float, high: float, width: float) -> tuple[Floats, Floats]:
    """Return places at which to take the density, and how much of the line each stands for."""
    ends = pair.loss(np.array([low, high]))
    first, last = math.floor(ends[0] / width), math.ceil(ends[1] / width)
    if last - first > LARGEST_TRANSFORM // 2:
        raise too_fine()
    crossings = pair.crossings(np.arange(first, last + 1) * width)
    parts = math.ceil((high - low) * _PARTS * max(1.0, pair.mu))
    borders = np.concatenate([crossings, np.linspace(low, high, parts + 1)])
    # Between two borders the loss stays in one cell of the grid, so that the nodes see a smooth density.
    borders = np.unique(np.clip(borders, low, high))
    inside, weights = np.polynomial.legendre.leggauss(3)
    halves = np.diff(borders)[:, None] / 2
    places = (borders[:-1, None] + halves) + halves * inside
    return places.ravel(), (halves * weights).ravel()
