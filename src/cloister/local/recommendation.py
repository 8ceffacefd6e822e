"""Which protocol to use: public rules for frequencies and for means, with the reasons and the reports they take.

For frequencies the size of the domain and epsilon decide.

For means the worst variance does. In [-1, 1] the worst variances for one number are ``8 / epsilon**2`` (noise),
``B**2`` (Duchi's bit), ``4 s / (3 (s - 1)**2)`` (piecewise), and at most the smaller of the last two (hybrid). One bit
beats noise below epsilon 2.3242, the piecewise point beats one bit above 1.2898.

The worst variance is that of the noise, and decides how well the mean of the reporting people is known. Margins also
hold the differences between people, see `numeric.base`, so `NumericRecommendation.respondents` counts those too.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import ceil, exp
from typing import Any

from cloister.core.exact import Number
from cloister.core.validation import check_count, check_positive
from cloister.local._output_space import Bits, Field, Integers
from cloister.local.domain import Answers, Domain
from cloister.local.estimates import z_of
from cloister.local.frequency.hadamard import HadamardResponse
from cloister.local.frequency.hashing import OptimizedLocalHashing
from cloister.local.frequency.randomized_response import DirectEncoding, RandomizedResponse
from cloister.local.frequency.support import FrequencyProtocol
from cloister.local.frequency.unary import OptimizedUnaryEncoding
from cloister.local.numeric.base import MeanProtocol, VectorProtocol
from cloister.local.numeric.duchi import MOST_DIMENSIONS, Duchi, DuchiVector
from cloister.local.numeric.hybrid import Hybrid
from cloister.local.numeric.laplace import LaplaceVector, LocalLaplace
from cloister.local.numeric.piecewise import Piecewise, PiecewiseVector
from cloister.local.protocol import check_local_epsilon

__all__ = ["NumericRecommendation", "Recommendation", "recommend", "recommend_numeric"]


_MOST_BITS = 1024
_MANY_VALUES = 2**16


@dataclass(frozen=True, slots=True, kw_only=True)
class Recommendation:
    """A protocol for a domain size and an epsilon, and why.

    Attributes:
        protocol: the class to use; call it with ``domain=`` and ``epsilon=``.
        domain_size: the number of values.
        epsilon: what one report costs.
        variance: of an estimated share of a rare value, times the number of reports.
        bits: the length of a report.
        reason: one sentence.
        alternatives: (name, variance, bits) of the protocols that were compared.
    """

    protocol: type[FrequencyProtocol]
    domain_size: int
    epsilon: float
    variance: float
    bits: int
    reason: str
    alternatives: tuple[tuple[str, float, int], ...]

    def open(self, domain: Answers) -> FrequencyProtocol:
        """Return the protocol for a domain of that size."""
        return self.protocol(domain=Domain.of(domain), epsilon=self.epsilon)

    def respondents(self, margin: float, *, confidence: Number = 0.95) -> int:
        """Return how many reports bring the margin of a rare value's share down to a half-width.

        >>> recommend(14, 1).respondents(0.02)
        35368
        """
        half_width = float(check_positive(margin, name="margin"))
        return ceil(z_of(confidence) ** 2 * self.variance / half_width**2)

    def __str__(self) -> str:
        return f"{self.protocol.__name__}: {self.reason}"

    def to_dict(self) -> dict[str, Any]:
        """Return JSON-ready values."""
        return {
            "schema": "cloister.local_recommendation/1",
            "protocol": self.protocol.name,
            "domain_size": self.domain_size,
            "epsilon": self.epsilon,
            "variance": self.variance,
            "bits": self.bits,
            "reason": self.reason,
            "alternatives": [
                {"protocol": name, "variance": variance, "bits": bits} for name, variance, bits in self.alternatives
            ],
        }


def recommend(domain_size: int, epsilon: Number, *, most_bits: int = _MOST_BITS) -> Recommendation:
    """Return the protocol that a domain size and an epsilon call for.

    Direct encoding while ``domain_size < 3 exp(epsilon) + 2`` (randomized response for two values), optimized unary
    encoding while its report of one bit per value is short enough, optimized local hashing beyond, and Hadamard
    response where the domain is so large that counting hashes would take too long and epsilon is small enough that it
    costs little accuracy.

    Args:
        domain_size: the number of public values.
        epsilon: what one report may cost.
        most_bits: how long a report may be.

    >>> recommend(14, 1).protocol.__name__, recommend(14, 4).protocol.__name__
    ('OptimizedUnaryEncoding', 'DirectEncoding')
    """
    size, loss = check_count(domain_size, name="domain_size", at_least=2), float(check_local_epsilon(epsilon))
    compared = {
        kind: (variance, bits)
        for kind, variance, bits in _compare_protocols(size, loss)
        if kind is not RandomizedResponse or size == 2
    }
    chosen, reason = _choose_protocol(size, loss, most_bits)
    return Recommendation(
        protocol=chosen,
        domain_size=size,
        epsilon=loss,
        variance=compared[chosen][0],
        bits=compared[chosen][1],
        reason=reason,
        alternatives=tuple((kind.name, variance, bits) for kind, (variance, bits) in compared.items()),
    )


def _choose_protocol(size: int, epsilon: float, most_bits: int) -> tuple[type[FrequencyProtocol], str]:
    if size == 2:
        return RandomizedResponse, "there are two answers."
    if size < 3 * exp(epsilon) + 2:
        return DirectEncoding, "there are few values for this epsilon, so that telling the truth often is best."
    if size <= most_bits:
        return OptimizedUnaryEncoding, "the smallest error at this size, with one bit for each value."
    if size > _MANY_VALUES and epsilon <= 1:
        return HadamardResponse, "the domain is very large; estimates take one fast transform."
    return OptimizedLocalHashing, "the error of unary encoding with a report of three small numbers."


def _compare_protocols(size: int, epsilon: float) -> list[tuple[type[FrequencyProtocol], float, int]]:
    growth = exp(epsilon)
    digits = (size - 1).bit_length()
    optimized = 4 * growth / (growth - 1) ** 2
    # The number of buckets depends on epsilon alone, so that the smallest domain tells it.
    hashed = OptimizedLocalHashing(domain=2, epsilon=epsilon).buckets
    return [
        (RandomizedResponse, growth / (growth - 1) ** 2, 1),
        (DirectEncoding, (size - 2 + growth) / (growth - 1) ** 2, digits),
        (OptimizedUnaryEncoding, optimized, size),
        (OptimizedLocalHashing, optimized, 2 * digits + hashed.bit_length()),
        (HadamardResponse, ((growth + 1) / (growth - 1)) ** 2, digits + 1),
    ]


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

    def respondents(self, margin: object, *, bounds: object = (-1, 1), confidence: Number = 0.95) -> int:
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


def recommend_numeric(epsilon: Number, *, dimensions: object = 1) -> NumericRecommendation:
    """Return the protocol with the smallest worst variance of a mean; of equally good ones the simplest.

    Args:
        epsilon: what one report may cost.
        dimensions: how many numbers a person has.

    >>> recommend_numeric(0.5).protocol.__name__, recommend_numeric(1).protocol.__name__
    ('Duchi', 'Hybrid')
    """
    loss, count = check_local_epsilon(epsilon), check_count(dimensions, name="dimensions", at_least=1)
    compared = [(kind, *_measure_protocol(kind, loss, count)) for kind in _kinds(count)]
    smallest = min(variance for _, variance, _ in compared)
    # Variances that differ by rounding only are equal, and the list begins with the simplest.
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


def _measure_protocol(
    kind: type[MeanProtocol] | type[VectorProtocol], epsilon: Fraction, dimensions: int
) -> tuple[float, int]:
    """Return the worst variance and the length of a report."""
    protocol = kind(bounds=(-1, 1) if dimensions == 1 else [(-1, 1)] * dimensions, epsilon=epsilon)
    variance = protocol.variance()
    bits = sum(map(_bit_length, protocol.output_space.fields))
    return variance if isinstance(variance, float) else float(variance.max()), bits


def _bit_length(field: Field) -> int:
    if isinstance(field, Bits):
        return field.length
    return (field.length if isinstance(field, Integers) else 1) * (field.high - field.low).bit_length()
