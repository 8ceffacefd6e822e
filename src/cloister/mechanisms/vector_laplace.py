"""Noise for a short vector under pure differential privacy, from its L2 sensitivity.

``Pr[z]`` is proportional to ``exp(-epsilon * norm(z) / sensitivity)``, norm being Euclidean (Chaudhuri, Monteleoni and
Sarwate 2011 in the continuous form). Independent Laplace noise of scale sensitivity / epsilon with the *L2*
sensitivity is only sqrt(d) * epsilon private and is not offered.

The noise is drawn exactly on the lattice: independent discrete Laplace numbers of scale sqrt(d) * sensitivity / epsilon
are accepted with ``exp(sum abs(z) / scale - epsilon * norm(z) / sensitivity)``, at most 1 since the L1 norm is at most
sqrt(d) times the L2 norm. Acceptance falls with d, hence the limit of 12 coordinates.

Privacy: claim epsilon-DP. After rounding, neighbors are at most s steps apart in L2 and the triangle inequality bounds
the ratio of weights by exp(epsilon).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cloister.core import exact, validation
from cloister.core.construction import construct
from cloister.core.exact import Number
from cloister.core.guarantees import Adjacency
from cloister.core.random import RandomSource
from cloister.errors import ParameterError
from cloister.mechanisms.base import PurePromise, mechanisms
from cloister.mechanisms.lattice import RealNoise, steps_apart_l2
from cloister.mechanisms.sampling.coins import toss_exponentials
from cloister.mechanisms.sampling.discrete_noise import Sampler, discrete_laplace
from cloister.mechanisms.sampling.inversion import FixedPointInterval

MOST_DIMENSIONS = 12


class _EuclideanLaplace:
    """Samples whole vectors, given back one after the other as a flat array."""

    def __init__(self, rate: Fraction, dimensions: int) -> None:
        self._rate, self._dimensions = rate, dimensions
        # A rational slightly above sqrt(d) keeps the acceptance probability below 1.
        self._scale = exact.sqrt_bounds(Fraction(dimensions), digits=20)[1] / rate
        self._proposal = discrete_laplace(self._scale)

    def draw(self, source: RandomSource, count: int) -> NDArray[Any]:
        """Return ``count`` coordinates, a multiple of the dimensions."""
        wanted, kept = count // self._dimensions, np.zeros((0, self._dimensions), dtype=np.int64)
        while len(kept) < wanted:
            kept = np.concatenate([kept, self._propose(source, 2 * (wanted - len(kept)) + 16)])
        return kept[:wanted].ravel()

    def _propose(self, source: RandomSource, count: int) -> NDArray[np.int64]:
        vectors = self._proposal.draw(source, count * self._dimensions).reshape(count, self._dimensions)
        # In doubles squares cannot wrap around, and both terms keep a relative error near 2**-52.
        reals = vectors.astype(np.float64)
        euclidean = np.sqrt((reals * reals).sum(axis=1))
        gammas = euclidean * float(self._rate) - np.abs(reals).sum(axis=1) / float(self._scale)

        def exactly(index: int, bits: int) -> FixedPointInterval:
            vector = [int(item) for item in vectors[index]]
            norm = exact.sqrt_bounds(Fraction(sum(item * item for item in vector)), digits=bits)
            flat = sum(map(abs, vector)) / self._scale
            # The exponent is not negative: the scale was rounded up for that, and a bound of it may be cut at zero.
            low, high = (max(Fraction(0), end * self._rate - flat) for end in norm)
            # A larger exponent gives the smaller probability, so that the ends change places.
            return FixedPointInterval(
                FixedPointInterval.exp_of_minus(high, bits).low, FixedPointInterval.exp_of_minus(low, bits).high, bits
            )

        return vectors[toss_exponentials(source, np.maximum(gammas, 0.0), exactly)]


@lru_cache(maxsize=64)
def euclidean_laplace(rate: Fraction, dimensions: int) -> _EuclideanLaplace:
    """Return the sampler of vectors with weights exp(-rate * norm)."""
    return _EuclideanLaplace(rate, dimensions)


@mechanisms.register("vector_laplace")
@dataclass(frozen=True, slots=True, kw_only=True)
class VectorLaplace(PurePromise, RealNoise):
    """Noise of random direction for a vector of at most 12 numbers, from its L2 sensitivity."""

    epsilon: Fraction

    def __init__(
        self,
        *,
        sensitivity: Number,
        epsilon: Number,
        adjacency: Adjacency | str = Adjacency.ADD_REMOVE,
        unit: str = "row",
        dimensions: int = 1,
        granularity: Number | None = None,
    ) -> None:
        construct(
            self,
            sensitivity=sensitivity,
            adjacency=adjacency,
            unit=unit,
            dimensions=dimensions,
            granularity=granularity,
            epsilon=epsilon,
        )

    def __post_init__(self) -> None:
        RealNoise.__post_init__(self)
        object.__setattr__(self, "epsilon", validation.check_epsilon(self.epsilon))
        if self.dimensions > MOST_DIMENSIONS:
            raise ParameterError(
                f"Exact noise of this kind is limited to {MOST_DIMENSIONS} coordinates.",
                fix="use Gaussian (epsilon, delta) with the L2 sensitivity, or Laplace with the L1 sensitivity.",
            )
        self._choose_granularity(self.sensitivity / self.epsilon)

    @property
    def rate(self) -> Fraction:
        """Return epsilon per lattice step."""
        return self.epsilon / steps_apart_l2(self.sensitivity, self.lattice.granularity, self.dimensions)

    @property
    def standard_deviation(self) -> float:
        """Return the standard deviation of the noise on one coordinate, sqrt(d + 1) times the scale."""
        return math.sqrt(self.dimensions + 1) * float(self.lattice.granularity / self.rate)

    def margin(self, confidence: Number = 0.95) -> float:
        """Return a half-width that covers the whole error vector, and so each coordinate, with a probability.

        The length of the noise has the gamma law of shape d.
        """
        from scipy.special import gammainccinv

        outside = 1 - float(validation.check_confidence(confidence))
        length = float(gammainccinv(self.dimensions, outside)) / float(self.rate)
        return (length + math.sqrt(self.dimensions)) * float(self.lattice.granularity)

    def _sampler(self) -> Sampler:
        return euclidean_laplace(self.rate, self.dimensions)
