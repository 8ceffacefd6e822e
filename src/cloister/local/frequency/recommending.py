"""Which frequency protocol to use: a public rule on the size of the domain and epsilon, with the reasons."""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil, exp
from typing import Any

from cloister.core.validation import check_count, check_positive
from cloister.local.domain import Domain
from cloister.local.estimates import z_of
from cloister.local.frequency.direct import DirectEncoding
from cloister.local.frequency.hadamard import HadamardResponse
from cloister.local.frequency.hashing import OptimizedLocalHashing
from cloister.local.frequency.randomized_response import RandomizedResponse
from cloister.local.frequency.support import FrequencyProtocol
from cloister.local.frequency.unary import OptimizedUnaryEncoding
from cloister.local.protocol import check_local_epsilon

__all__ = ["Recommendation", "recommend"]

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

    def open(self, domain: object) -> FrequencyProtocol:
        """Return the protocol for a domain of that size."""
        return self.protocol(domain=Domain.of(domain), epsilon=self.epsilon)

    def respondents(self, margin: float, *, confidence: object = 0.95) -> int:
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


def recommend(domain_size: int, epsilon: object, *, most_bits: int = _MOST_BITS) -> Recommendation:
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
        for kind, variance, bits in _compared(size, loss)
        if kind is not RandomizedResponse or size == 2
    }
    chosen, reason = _chosen(size, loss, most_bits)
    return Recommendation(
        protocol=chosen,
        domain_size=size,
        epsilon=loss,
        variance=compared[chosen][0],
        bits=compared[chosen][1],
        reason=reason,
        alternatives=tuple((kind.name, variance, bits) for kind, (variance, bits) in compared.items()),
    )


def _chosen(size: int, epsilon: float, most_bits: int) -> tuple[type[FrequencyProtocol], str]:
    if size == 2:
        return RandomizedResponse, "there are two answers."
    if size < 3 * exp(epsilon) + 2:
        return DirectEncoding, "there are few values for this epsilon, so that telling the truth often is best."
    if size <= most_bits:
        return OptimizedUnaryEncoding, "the smallest error at this size, with one bit for each value."
    if size > _MANY_VALUES and epsilon <= 1:
        return HadamardResponse, "the domain is very large; estimates take one fast transform."
    return OptimizedLocalHashing, "the error of unary encoding with a report of three small numbers."


def _compared(size: int, epsilon: float) -> list[tuple[type[FrequencyProtocol], float, int]]:
    growth = exp(epsilon)
    digits = (size - 1).bit_length()
    optimized = 4 * growth / (growth - 1) ** 2
    hashed = OptimizedLocalHashing(domain=2, epsilon=epsilon).buckets
    return [
        (RandomizedResponse, growth / (growth - 1) ** 2, 1),
        (DirectEncoding, (size - 2 + growth) / (growth - 1) ** 2, digits),
        (OptimizedUnaryEncoding, optimized, size),
        (OptimizedLocalHashing, optimized, 2 * digits + hashed.bit_length()),
        (HadamardResponse, ((growth + 1) / (growth - 1)) ** 2, digits + 1),
    ]
