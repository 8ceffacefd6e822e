"""Gaussian differential privacy: any number of Gaussian releases is one Gaussian release, exactly.

Releases with noise multipliers m_1, m_2, ... are together mu-Gaussian private with ``mu**2 = sum 1/m_i**2``
(Dong, Roth and Su 2022, corollary 2), and the curve of a Gaussian is known in closed form.

Discrete Gaussian noise of variance s on a lattice is, up to a factor of 1 +- 1e-34 per coordinate, what one gets by
adding continuous Gaussian noise of variance s - 4 and then rounding at random with a discrete Gaussian of variance 4
around the result (the normalizer of a discrete Gaussian of variance t is constant up to 2 exp(-2 pi**2 t), which for
t = 4 is about 1e-34). Rounding is post-processing, so the loss is at most that of a Gaussian with squared multiplier
``(s - 4) / sensitivity**2``. The factor is charged to epsilon as 1e-33 for each coordinate that may differ, of
which there are at most ``sensitivity**2`` since they differ by whole steps. Below s = 64 the detour costs too much and
the event is refused here; the zero-concentrated and Rényi accountants know it exactly.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from fractions import Fraction

from cloister.accounting.accountants.base import Events, supported
from cloister.accounting.conversions import float_delta, gaussian_delta, gaussian_epsilon
from cloister.accounting.events import DiscreteGaussianEvent, Event, GaussianEvent
from cloister.accounting.sums import sum_above
from cloister.core import exact, validation
from cloister.errors import AccountingError

__all__ = ["GaussianAccountant", "combined_mu", "lattice_slack"]

SMALLEST_SQUARED_SIGMA = 64
_ROUNDING_VARIANCE = 4
_SLACK = Fraction(1, 10**33)
_LARGEST_SQUARED_MU = 10**12


class GaussianAccountant:
    """Composes Gaussian releases without any loss.

    >>> from cloister.accounting.events import GaussianEvent, RepeatedEvent
    >>> events = RepeatedEvent(event=GaussianEvent(squared_multiplier=100), count=100)
    >>> round(float(GaussianAccountant().epsilon(events, delta=1e-5)), 4)
    4.3772
    """

    name = "gaussian"

    def supports(self, event: Event) -> bool:
        """Return whether the event is Gaussian noise, or discrete Gaussian noise that is wide enough."""
        return squared_mu(event) is not None

    def epsilon(self, events: Events, *, delta: object) -> Fraction:
        """Return epsilon at a delta above 0."""
        wanted = float_delta(validation.check_delta(delta, allow_zero=False))
        counts = supported(self, events)
        slack = lattice_slack(counts)
        found = gaussian_epsilon(combined_mu(counts), delta=wanted * (1 - 2 * float(slack)))
        return exact.upper(found) + slack if found else slack

    def delta(self, events: Events, *, epsilon: object) -> Fraction:
        """Return delta at an epsilon."""
        wanted = validation.check_epsilon(epsilon, allow_zero=True)
        counts = supported(self, events)
        slack = lattice_slack(counts)
        found = gaussian_delta(combined_mu(counts), epsilon=exact.float_below(max(Fraction(0), wanted - slack)))
        return min(Fraction(1), exact.upper(found) * (1 + slack)) if found else Fraction(0)


def squared_mu(event: Event) -> Fraction | None:
    """Return the squared Gaussian parameter of an event, or None if it has none."""
    match event:
        case GaussianEvent(squared_multiplier=squared):
            return 1 / squared
        case DiscreteGaussianEvent(squared_sigma=squared, squared_sensitivity=distance) if (
            squared >= SMALLEST_SQUARED_SIGMA
        ):
            return distance / (squared - _ROUNDING_VARIANCE)
        case _:
            return None


def combined_mu(counts: Mapping[Event, int]) -> float:
    """Return the Gaussian parameter of all Gaussian events of a tally together, rounded up."""
    squares = (count * square for event, count in counts.items() if (square := squared_mu(event)) is not None)
    total = sum_above(squares)
    if total > _LARGEST_SQUARED_MU:
        raise AccountingError(
            "These Gaussian releases have hardly any noise: nothing useful can be promised about them.",
            fix="use a larger noise multiplier, or fewer releases.",
        )
    return exact.float_above(exact.sqrt_bounds(total)[1])


def lattice_slack(counts: Mapping[Event, int]) -> Fraction:
    """Return what the detour from discrete to continuous Gaussian noise adds to epsilon."""
    coordinates = sum(
        math.ceil(event.squared_sensitivity) * count
        for event, count in counts.items()
        if isinstance(event, DiscreteGaussianEvent)
    )
    return coordinates * _SLACK
