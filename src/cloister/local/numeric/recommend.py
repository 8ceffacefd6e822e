"""Which protocol for a mean: the worst variance of each, and how many reports a wanted error takes.

In [-1, 1] the worst variances for one number are ``8 / epsilon**2`` (noise), ``B**2`` (Duchi's bit),
``4 s / (3 (s - 1)**2)`` (piecewise), and at most the smaller of the last two (hybrid). One bit beats noise below
epsilon 2.3242, the piecewise point beats one bit above 1.2898.

The worst variance is that of the noise, and decides how well the mean of the reporting people is known. Margins also
hold the differences between people, see `base`, so `NumericRecommendation.respondents` counts those too.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from cloister.core.validation import check_count
from cloister.local.numeric.base import MeanProtocol
from cloister.local.numeric.duchi import Duchi
from cloister.local.numeric.duchi_vector import MOST_DIMENSIONS, DuchiVector
from cloister.local.numeric.hybrid import Hybrid
from cloister.local.numeric.laplace import LaplaceVector, LocalLaplace
from cloister.local.numeric.piecewise import Piecewise
from cloister.local.numeric.piecewise_vector import PiecewiseVector
from cloister.local.numeric.vectors import VectorProtocol
from cloister.local.output_space import Bits, Field, Integers
from cloister.local.protocol import check_local_epsilon

__all__ = ["NumericRecommendation", "recommend_numeric"]

_SCALAR: tuple[type[MeanProtocol], ...] = (Duchi, Piecewise, LocalLaplace, Hybrid)
_VECTOR: tuple[type[VectorProtocol], ...] = (DuchiVector, PiecewiseVector, LaplaceVector)
_REASONS = {
    "duchi": "one bit has the smallest worst error at this epsilon.",
    "piecewise": "a point near the number has the smallest worst error at this epsilon.",
    "hybrid": "the mixture of one bit and a point has the smallest worst error at this epsilon.",
    "local_laplace": "noise has the smallest worst error at this epsilon.",
    "duchi_vector": "one bit for each number has the smallest worst error at this epsilon.",
    "piecewise_vector": "points near a few of the numbers have the smallest worst error at this epsilon.",
    "laplace_vector": "noise on all numbers has the smallest worst error at this epsilon.",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class NumericRecommendation:
    """A protocol for a mean or several, and why.

    Attributes:
        protocol: the class to use; call it with ``bounds=`` and ``epsilon=``.
        epsilon: what one report costs.
        dimensions: how many numbers a person has.
        variance: the worst variance of a mean times the number of reports, in bounds of [-1, 1].
        bits: the length of a report.
        reason: one sentence.
        alternatives: (name, variance, bits) of the protocols that were compared.
    """

    protocol: type[MeanProtocol] | type[VectorProtocol]
    epsilon: Fraction
    dimensions: int
    variance: float
    bits: int
    reason: str
    alternatives: tuple[tuple[str, float, int], ...]

    def open(self, bounds: object) -> MeanProtocol | VectorProtocol:
        """Return the protocol for bounds: a pair, or with several numbers a list of pairs."""
        return self.protocol(bounds=bounds, epsilon=self.epsilon)

    def respondents(self, margin: object, *, bounds: object = (-1, 1), confidence: object = 0.95) -> int:
        """Return how many reports bring the margin of a mean down to a half-width, whatever people's numbers are.

        Args:
            margin: the half-width, in the unit of the bounds.
            bounds: a pair, which all numbers share.
            confidence: of the interval.

        >>> recommend_numeric(1).respondents(1, bounds=(0, 100))
        50794
        """
        protocol = self.open(bounds if self.dimensions == 1 else [bounds] * self.dimensions)
        return protocol.respondents(margin, confidence=confidence)

    def __str__(self) -> str:
        return f"{self.protocol.__name__}: {self.reason}"

    def to_dict(self) -> dict[str, Any]:
        """Return JSON-ready values."""
        return {
            "schema": "cloister.local_numeric_recommendation/1",
            "protocol": self.protocol.name,
            "epsilon": float(self.epsilon),
            "dimensions": self.dimensions,
            "variance": self.variance,
            "bits": self.bits,
            "reason": self.reason,
            "alternatives": [
                {"protocol": name, "variance": variance, "bits": bits} for name, variance, bits in self.alternatives
            ],
        }


def recommend_numeric(epsilon: object, *, dimensions: object = 1) -> NumericRecommendation:
    """Return the protocol with the smallest worst variance of a mean; of equally good ones the simplest.

    Args:
        epsilon: what one report may cost.
        dimensions: how many numbers a person has.

    >>> recommend_numeric(0.5).protocol.__name__, recommend_numeric(1).protocol.__name__
    ('Duchi', 'Hybrid')
    """
    loss, count = check_local_epsilon(epsilon), check_count(dimensions, name="dimensions", at_least=1)
    compared = [(kind, *_measured(kind, loss, count)) for kind in _kinds(count)]
    smallest = min(variance for _, variance, _ in compared)
    chosen, variance, bits = next(each for each in compared if each[1] <= smallest * (1 + 1e-9))
    return NumericRecommendation(
        protocol=chosen,
        epsilon=loss,
        dimensions=count,
        variance=variance,
        bits=bits,
        reason=_REASONS[chosen.name],
        alternatives=tuple((kind.name, variance, bits) for kind, variance, bits in compared),
    )


def _kinds(dimensions: int) -> tuple[type[MeanProtocol] | type[VectorProtocol], ...]:
    if dimensions == 1:
        return _SCALAR
    return _VECTOR if dimensions <= MOST_DIMENSIONS else _VECTOR[1:]


def _measured(kind: type[MeanProtocol] | type[VectorProtocol], epsilon: Fraction, dimensions: int) -> tuple[float, int]:
    """Return the worst variance and the length of a report."""
    protocol = kind(bounds=(-1, 1) if dimensions == 1 else [(-1, 1)] * dimensions, epsilon=epsilon)
    variance = protocol.variance()
    bits = sum(map(_bits, protocol.output_space.fields))
    return variance if isinstance(variance, float) else float(variance.max()), bits


def _bits(field: Field) -> int:
    if isinstance(field, Bits):
        return field.length
    return (field.length if isinstance(field, Integers) else 1) * (field.high - field.low).bit_length()
