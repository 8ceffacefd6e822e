"""Composition of privacy loss distributions, for Laplace-like and Gaussian releases in any mixture, sampled or not.

Every event is replaced by its dominating pair (`_dominating_pairs`), put on a common grid (`_loss_grid`), and the
distribution of the total loss is found by Fourier transform. Each step rounds towards a larger loss: see the modules
for the reasons. Workloads with more than `MOST_GROUPS` different events are first thinned out: epsilons are rounded up
to the next of a few values, less than a hundredth apart for most workloads. All Gaussian events together are one.
Noise on a Poisson sample loses differently when a unit is removed than when one is added (`_noise_losses`): both are
composed, each with all other events, and the larger answer counts.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from fractions import Fraction
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from cloister.accounting.accountants._dominating_pairs import LaplaceLike, laplace_like
from cloister.accounting.accountants._loss_grid import (
    Pile,
    Tilted,
    cumulants,
    gaussian_pile,
    laplace_pile,
    tilt_sum,
    too_fine,
)
from cloister.accounting.accountants._noise_losses import Noise, noise_of
from cloister.accounting.accountants.base import Events, check_supported, has_approx_loss
from cloister.accounting.accountants.closed_form import combine_mu, lattice_slack, squared_mu
from cloister.accounting.conversions import delta_too_small
from cloister.accounting.events import Event
from cloister.core import exact, validation
from cloister.core.exact import Number, sum_above

__all__ = ["NumericalAccountant"]


MOST_GROUPS = 64
MOST_BUCKETS = 200
_MOST_EVENTS = 10**9
_SMALLEST_DELTA = 1e-100
_FINEST_STEPS = 1024
_COARSE_STEPS = 64
_FEWEST_CELLS = 2**13
_WEAKER = (0, 18, 36, 54)
_NEGLIGIBLE = 1e-5
_REACH = 11.0
_SMALLEST_LOSS = 1e-50
_TYPICAL_DELTA = 1e-6
_FINE, _COARSE = 1e-4, 1e-3
_MOST_CELLS = 2**18
"""The loss of one noise is spread over so many cells at most."""

Floats = NDArray[np.float64]


class _Workload(NamedTuple):
    pairs: dict[LaplaceLike, int]
    mu: float
    unbounded: Fraction
    slack: Fraction
    noises: dict[Noise, int]

    @property
    def is_empty(self) -> bool:
        """Return whether nothing can be lost."""
        return not self.pairs and self.mu == 0 and not self.noises

    @property
    def directions(self) -> tuple[bool, ...]:
        """Return the neighbors to look at: a unit removed, and one added where that is not the same."""
        return (True,) if all(noise.is_symmetric for noise in self.noises) else (True, False)

    def most(self) -> float:
        """Return the largest loss of the Laplace-like events together."""
        # fsum adds without rounding; what the products lost by rounding is given back.
        return math.fsum(count * pair.epsilon for pair, count in self.pairs.items()) * (1 + 1e-15)

    def bound(self) -> float:
        """Return the largest loss of all events together."""
        largest = math.fsum(count * noise.largest() for noise, count in self.noises.items()) * (1 + 1e-15)
        return math.inf if self.mu else self.most() + largest

    def sizes(self) -> tuple[Floats, Floats, Floats, Floats]:
        """Return counts, epsilons, and roughly the means and variances of the losses: Laplace, noises, Gaussian."""
        epsilons = np.array([pair.epsilon for pair in self.pairs])
        counts = np.array([float(count) for count in (*self.pairs.values(), *self.noises.values())])
        means = epsilons * np.tanh(epsilons / 2)
        # cosh overflows for large epsilons, whose variance is zero to all digits by then.
        variances = (epsilons / np.cosh(np.minimum(epsilons, 600) / 2)) ** 2
        spreads = np.array([noise.variance() for noise in self.noises])
        epsilons = np.append(epsilons, np.sqrt(spreads))
        means, variances = np.append(means, spreads / 2), np.append(variances, spreads)
        if self.mu == 0:
            return counts, epsilons, means, variances
        square = self.mu**2
        return (
            np.append(counts, 1),
            np.append(epsilons, self.mu),
            np.append(means, square / 2),
            np.append(variances, square),
        )


class _Curve(NamedTuple):
    """What is needed to choose a tilt: the grid, the piles, and their cumulants."""

    piles: list[Pile]
    width: float
    unbounded: float
    tilts: Floats
    cumulants: Floats

    def most(self) -> float:
        """Return the largest loss that is possible."""
        return self.width * sum(pile.repeats * (pile.first + len(pile.probabilities) - 1) for pile in self.piles)

    def top(self, tail: float) -> float:
        """Return a loss that is exceeded with at most the probability ``tail``."""
        # Chernoff's bound holds for every tilt, so that the smallest may be taken.
        return min(float(np.min((self.cumulants - math.log(tail)) / self.tilts)), self.most())

    def epsilon_at(self, delta: float) -> float:
        """Return an epsilon at which delta is not exceeded: the best that the tilts tried give, all being valid."""
        # exp(t loss) bounds the part of a loss in delta with the constant t**t / (1 + t)**(1 + t); this only chooses
        # a tilt.
        odds = self.tilts * np.log(self.tilts) - (1 + self.tilts) * np.log1p(self.tilts)
        best = int(np.argmin((self.cumulants + odds - math.log(delta)) / self.tilts))
        tail = _NEGLIGIBLE * delta
        return min(_smallest_epsilon(self._around(tilt, delta), delta) for tilt in self._tilts_near(best, tail))

    def delta_at(self, epsilon: float) -> float:
        """Return a delta that is not exceeded at an epsilon."""
        exponents = self.cumulants - self.tilts * epsilon
        best = int(np.argmin(exponents))
        guess = min(0.0, float(exponents[best])) - math.log1p(self.tilts[best]) - 3
        tail = _NEGLIGIBLE * math.exp(max(guess, math.log(_SMALLEST_DELTA)))
        found = [self._tilt(tilt, tail, reach=_REACH, lowest=epsilon) for tilt in self._tilts_near(best, tail)]
        return min(tilted.delta(epsilon) for tilted in found)

    def _tilts_near(self, best: int, tail: float) -> list[int]:
        """Return the places of tilts to try: near the largest possible loss the best one may be far too strong."""
        weaker = _WEAKER if self.top(tail) >= self.most() else _WEAKER[:1]
        return sorted({max(best - less, 0) for less in weaker})

    def _around(self, best: int, delta: float) -> Tilted:
        """Return the tilted distribution on a window that holds the epsilon at a delta."""
        reach = _REACH
        found = self._tilt(best, _NEGLIGIBLE * delta, reach=reach, lowest=math.inf)
        # The epsilon that is looked for lies below the window, so the window has to reach further down.
        while found.bottom > 0 and found.delta(found.bottom * found.width) <= delta:
            reach *= 4
            found = self._tilt(best, _NEGLIGIBLE * delta, reach=reach, lowest=math.inf)
        return found

    def _tilt(self, best: int, tail: float, *, reach: float, lowest: float) -> Tilted:
        return tilt_sum(
            self.piles,
            tilt=float(self.tilts[best]),
            top=self.top(tail),
            tail=tail,
            width=self.width,
            reach=reach,
            lowest=lowest,
        )


class NumericalAccountant:
    """The tightest of cloister's own accountants for pure, Laplace, discrete Laplace and mixed releases.

    >>> from cloister.accounting.events import LaplaceEvent
    >>> round(float(NumericalAccountant().epsilon([LaplaceEvent(noise_multiplier=10)] * 100, delta=1e-6)), 4)
    4.6927
    """

    name = "numerical"

    def supports(self, event: Event) -> bool:
        """Return whether the event is Laplace-like, Gaussian, either of them on a sample, or on a lattice."""
        return has_approx_loss(event) or squared_mu(event) is not None or noise_of(event) is not None

    def epsilon(self, events: Events, *, delta: Number) -> Fraction:
        """Return epsilon at a delta of at least 1e-100."""
        wanted = validation.check_delta(delta, allow_zero=False)
        workload = _workload(check_supported(self, events))
        if wanted <= workload.unbounded:
            raise delta_too_small(workload.unbounded)
        # A factor between lattice and continuous noise counts in both directions, and is taken off first.
        left = exact.float_below(wanted - workload.unbounded) * (1 - 2 * float(workload.slack))
        if left < _SMALLEST_DELTA:
            raise delta_too_small(workload.unbounded + Fraction(_SMALLEST_DELTA))
        if workload.is_empty:
            return Fraction(0)
        curves = [_curve(workload, tail=_NEGLIGIBLE * left, removed=removed) for removed in workload.directions]
        # Losses that the grid leaves out at its top count fully as delta.
        found = max(curve.epsilon_at(left - curve.unbounded) for curve in curves)
        return exact.upper(found) + workload.slack if found else workload.slack

    def delta(self, events: Events, *, epsilon: Number) -> Fraction:
        """Return delta at an epsilon."""
        wanted = validation.check_epsilon(epsilon, allow_zero=True)
        workload = _workload(check_supported(self, events))
        start = exact.float_below(max(Fraction(0), wanted - workload.slack))
        if workload.is_empty or start >= workload.bound():
            return min(Fraction(1), workload.unbounded)
        curves = [_curve(workload, tail=_SMALLEST_DELTA, removed=removed) for removed in workload.directions]
        found = max(curve.delta_at(start) + curve.unbounded for curve in curves)
        return min(Fraction(1), exact.upper(found) * (1 + workload.slack) + workload.unbounded)


def _workload(counts: Mapping[Event, int]) -> _Workload:
    pairs: dict[LaplaceLike, int] = {}
    noises: dict[Noise, int] = {}
    unbounded: list[Fraction] = []
    found = {event: noise for event in counts if (noise := noise_of(event)) is not None}
    if len(set(found.values())) > MOST_GROUPS:
        # Too many different ones to transform each: samples that have an epsilon of their own are taken by that.
        found = {event: noise for event, noise in found.items() if not has_approx_loss(event)}
    for event, count in counts.items():
        if event in found:
            noises[found[event]] = noises.get(found[event], 0) + count
        elif has_approx_loss(event):
            pair, chance = laplace_like(event)
            if chance:
                unbounded.append(count * chance)
            if pair.epsilon:
                # A larger loss dominates a smaller one, and this keeps the grid within the range of doubles.
                pair = pair._replace(epsilon=max(pair.epsilon, _SMALLEST_LOSS))
                pairs[pair] = pairs.get(pair, 0) + count
    if sum(pairs.values()) + sum(noises.values()) > _MOST_EVENTS or len(noises) > MOST_GROUPS:
        raise too_fine()
    mu = combine_mu(counts)
    mu = max(mu, _SMALLEST_LOSS) if mu else mu
    if len(pairs) > MOST_GROUPS:
        return _Workload(_thin_pairs(pairs), mu, sum_above(unbounded), lattice_slack(counts), noises)
    fine: dict[LaplaceLike, int] = {}
    for pair, count in pairs.items():
        near = pair.with_steps_near(_FINEST_STEPS)
        fine[near] = fine.get(near, 0) + count
    return _Workload(fine, mu, sum_above(unbounded), lattice_slack(counts), noises)


def _thin_pairs(pairs: Mapping[LaplaceLike, int]) -> dict[LaplaceLike, int]:
    """Return fewer pairs that dominate the given ones: epsilons rounded up to the largest of their bucket."""
    near = [pair.with_steps_near(_COARSE_STEPS) for pair in pairs]
    epsilons = np.array([pair.epsilon for pair in near])
    steps = np.array([pair.steps for pair in near])
    counts = np.array(list(pairs.values()))
    logs = np.log(epsilons / epsilons.min())
    ratio = 1e-3
    while True:
        # There are at most _COARSE_STEPS steps, so that bucket and steps fit into one key.
        keys = np.floor(logs / ratio).astype(np.int64) * (_COARSE_STEPS + 1) + steps
        names, places = np.unique(keys, return_inverse=True)
        if len(names) <= MOST_BUCKETS:
            break
        ratio *= 1.25
    # The largest epsilon of a bucket stands for all of it, which dominates each.
    largest = np.zeros(len(names))
    np.maximum.at(largest, places, epsilons)
    totals = np.zeros(len(names), dtype=np.int64)
    np.add.at(totals, places, counts)
    kinds = (names % (_COARSE_STEPS + 1)).tolist()
    rows = zip(largest.tolist(), kinds, totals.tolist(), strict=True)
    return {LaplaceLike(epsilon, kind): total for epsilon, kind, total in rows}


def _curve(workload: _Workload, *, tail: float, removed: bool) -> _Curve:
    width = _width(workload)
    piles = [laplace_pile(pair, count=count, width=width) for pair, count in workload.pairs.items()]
    unbounded = 0.0
    if workload.mu:
        # A mu far below the grid would take very many cells; a larger one dominates it.
        pile, unbounded = gaussian_pile(max(workload.mu, width / 1000), width=width, log_tail=math.log(tail))
        piles.append(pile)
    for noise, count in workload.noises.items():
        pile, above = noise.pile(removed=removed, count=count, width=width, log_tail=math.log(tail))
        piles.append(pile)
        unbounded += above
    counts, _, means, _ = workload.sizes()
    # The variance of a total loss is about twice its mean, which sets the scale of useful tilts; all tilts are valid.
    spread = math.sqrt(2 * float(counts @ means))
    tilts = np.geomspace(1e-3, 1e4, 141) / spread
    return _Curve(piles, width, unbounded, tilts, cumulants(piles, tilts=tilts, width=width))


def _width(workload: _Workload) -> float:
    """Return a grid width whose splitting adds only a little to epsilon, with the main event on grid points.

    It depends on the workload alone, so that epsilon at a delta and delta at that epsilon are read from one curve.
    """
    counts, epsilons, means, variances = workload.sizes()
    deviations = math.sqrt(2 * math.log(1 / _TYPICAL_DELTA))
    mean, variance = float(counts @ means), float(counts @ variances)
    allowed = (_FINE if len(counts) <= 8 else _COARSE) * (mean + deviations * math.sqrt(variance))
    # Splitting moves the sum by less than one width per event, which matters where events are few.
    reach = workload.most() + workload.mu**2 / 2 + 2 * deviations * workload.mu
    for noise, count in workload.noises.items():
        reach += count * noise.variance() / 2 + 2 * deviations * math.sqrt(count * noise.variance())
    width = min(float(epsilons.max()), reach / _FEWEST_CELLS)
    least = max((noise.span() for noise in workload.noises), default=0.0) / _MOST_CELLS
    while width > least:
        # Splitting adds at most width**2 / 4 to the variance of a loss, and less where a loss is smaller than a
        # width.
        added = float(counts @ np.minimum(epsilons * width, width * width / 4))
        if added / 2 + deviations * (math.sqrt(variance + added) - math.sqrt(variance)) <= allowed:
            break
        width /= 1.2
    main = int(np.argmax(counts * epsilons**2))
    place = main - len(workload.pairs)
    if 0 <= place < len(workload.noises):
        width, step = max(width, least), list(workload.noises)[place].step()
        # Losses of a sample lie anywhere, so that no width puts them on grid points.
        return step / math.ceil(step / width) if step else width
    parts = math.ceil(float(epsilons[main]) / width)
    steps = [pair.steps for pair in workload.pairs] + [1] * (len(workload.noises) + 1)
    # With whole parts to each of its steps, the main event falls on grid points and is not split at all.
    if steps[main] < parts:
        parts = -(-parts // steps[main]) * steps[main]
    return float(epsilons[main]) / parts


def _smallest_epsilon(tilted: Tilted, delta: float) -> float:
    """Return an epsilon at which delta is not exceeded, close to the smallest one."""
    low = max(0.0, tilted.bottom * tilted.width)
    if tilted.delta(0.0) <= delta:
        return 0.0
    high = (tilted.bottom + len(tilted.probabilities)) * tilted.width
    # Only high is returned, where delta was found not to be exceeded: stopping early is safe.
    for _ in range(45):
        middle = (low + high) / 2
        low, high = (low, middle) if tilted.delta(middle) <= delta else (middle, high)
    return high
