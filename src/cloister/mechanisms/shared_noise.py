"""Gaussian noise that several parties make together, so that nobody knows all of it.

Each of ``shares`` parties adds discrete Gaussian noise to its own whole numbers before they are added up in secret.
Each share is so large that the shares of any ``honest`` of them are enough, whatever the others do or tell.

Privacy: claim (epsilon, delta)-DP of the sum towards anyone who knows the other shares, for whole numbers that
neighbors move by ``squared_sensitivity`` in squared L2. A sum of k discrete Gaussians of variance t is no discrete
Gaussian.
Adding one of variance b to one of variance a gives, at x, ``exp(-x**2 / (2 (a + b)))`` times the sum over whole y of
``exp(-(y - c)**2 / (2 s))`` with s = a b / (a + b) and a c that depends on x. By Poisson summation that sum is
constant up to a factor between 1 - h and 1 + h with ``h = 2 exp(-2 pi**2 s) + ...``, so that the probabilities differ
from those of the discrete Gaussian of variance a + b by a factor of at most (1 + h) / (1 - h). Here t >= 8, s >= 4 and
h < 1.1e-34; the factors of k - 1 additions and of d coordinates multiply. (Kairouz, Liu and Steinke 2021 bound the same
sums, with the same exponents, for concentrated privacy.) Towards neighbors the factor counts twice: with k d <= 1e16 it
takes less than 1e-17 of epsilon, and multiplies delta by less than 1 + 1e-17. The discrete Gaussian of variance k t
dominates continuous noise of variance k t - 4 (see `cloister.mechanisms.gaussian`), which takes another 1e-15 of
epsilon at most. Noise is calibrated to epsilon - 2e-15 and (1 - 1e-12) delta, which pays for all of that.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Self

from numpy.typing import NDArray

from cloister.accounting.events import GaussianEvent
from cloister.accounting.gaussian import gaussian_multiplier
from cloister.core import validation
from cloister.core.random import RandomSource
from cloister.errors import ParameterError
from cloister.mechanisms.sampling.discrete_gaussian import discrete_gaussian

__all__ = ["SharedGaussian"]

_SMOOTHING = 4
_LEAST_SHARE = 8
_SLACK = Fraction(2, 10**15)
_LESS_DELTA = 1 - Fraction(1, 10**12)
_SMALLEST_EPSILON = Fraction(1, 10**9)
_FINE = 2**40
_MOST = 10**16
_TAIL = 16
"""In standard deviations. Sums of discrete Gaussians are subgaussian: beyond lies less than 2 exp(-128)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SharedGaussian:
    """Discrete Gaussian noise in shares.

    Attributes:
        squared_share: the variance parameter of each share, in squared steps.
        shares: how many parties add one.
        honest: how many of them are enough.
        event: what the noise of those is for the accountants.

    >>> noise = SharedGaussian.calibrated(
    ...     epsilon=1, delta=1e-6, squared_sensitivity=10**6, dimensions=10, shares=3, colluding=1
    ... )
    >>> noise.honest, round(noise.deviation / 1000, 1)
    (2, 5.2)
    """

    squared_share: int
    shares: int
    honest: int
    event: GaussianEvent

    @classmethod
    def calibrated(
        cls,
        *,
        epsilon: object,
        delta: object,
        squared_sensitivity: int,
        dimensions: int,
        shares: int,
        colluding: int,
    ) -> Self:
        """Return the least noise for an (epsilon, delta) that ``colluding`` parties cannot take away.

        Raises:
            ParameterError: if a number is out of range, or everybody colludes.
        """
        loss = validation.check_epsilon(epsilon)
        slack = validation.check_delta(delta, allow_zero=False)
        if loss < _SMALLEST_EPSILON:
            raise ParameterError("epsilon is too small for Gaussian noise.", fix="use epsilon of at least 1e-9.")
        honest = shares - colluding
        if honest < 1 or colluding < 0:
            raise ParameterError(
                f"Of {shares} parties, {colluding} cannot collude: somebody's noise has to stay secret.",
                fix=f"assume at most {max(shares - 1, 0)} that collude.",
            )
        if honest * dimensions > _MOST:
            raise ParameterError("There are too many shares of too many numbers.", fix="release fewer numbers.")
        squared = gaussian_multiplier(loss - _SLACK, slack * _LESS_DELTA) ** 2
        squared_multiplier = Fraction(math.ceil(squared * _FINE), _FINE)
        whole = math.ceil(squared_sensitivity * squared_multiplier) + _SMOOTHING
        return cls(
            squared_share=max(_LEAST_SHARE, -(-whole // honest)),
            shares=shares,
            honest=honest,
            event=GaussianEvent(squared_multiplier=squared_multiplier),
        )

    @property
    def deviation(self) -> float:
        """Return the standard deviation of all shares together, in steps."""
        return math.sqrt(self.shares * self.squared_share)

    @property
    def largest(self) -> int:
        """Return what all shares together stay below, but for a probability under 2 exp(-128)."""
        return _TAIL * (math.isqrt(self.shares * self.squared_share) + 1)

    def draw(self, source: RandomSource, count: int) -> NDArray[Any]:
        """Return one party's share of the noise for so many numbers."""
        return discrete_gaussian(Fraction(self.squared_share)).draw(source, count)
