"""How often a class is expected in the sample, as a distribution on a grid.

A class of the population that holds F people is drawn f times when each person is sampled with probability ``rate``.
F is a Poisson count around an intensity; ``log_means`` are the logarithms of the expected *sample* counts on the grid.
A `Mixture` says how likely each point of the grid is, per group of alike classes, up to a factor. Everything that is
asked about the population is a ratio of two sums over the grid, so that the factor does not matter.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from cloister.core._late import late_module

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
        return np.where(unseen > 500, 1 / (sizes[:, None] + unseen), exact)
