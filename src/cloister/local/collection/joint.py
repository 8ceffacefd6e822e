"""The table of two attributes that every person reported, from reports that were drawn independently.

With S(u) whether a report of the first attribute supports u, ``(S(u) - q) / (p - q)`` is expected to be 1 for people
who have u and 0 for the others; likewise for the second. Given a person, the two reports are independent, so the
product of both is expected to be 1 for those who have the pair, and its sum over all people estimates the pair's count
without bias (the product form of the inverted matrix of Warner 1965; for several attributes Domingo-Ferrer and
Soria-Comas 2020). With ``a1 = 1 + p (1 - p) / (p - q)**2`` the second moment of the first factor for people who have u,
``a0 = q (1 - q) / (p - q)**2`` for the others, and b1, b0 alike, the count has the variance
``n11 (a1 b1 - 1) + n10 a1 b0 + n01 a0 b1 + n00 a0 b0``. Its factors multiply: pairs take many more people than shares.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import singledispatch
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cloister.core.guarantees import LocalDP
from cloister.errors import ParameterError
from cloister.local.estimates import Floats, FrequencyEstimate, enough
from cloister.local.frequency.direct import DirectEncoding
from cloister.local.frequency.hashing import OptimizedLocalHashing
from cloister.local.frequency.histogram import ThresholdHistogramEncoding
from cloister.local.frequency.randomized_response import RandomizedResponse
from cloister.local.frequency.subset import SubsetSelection
from cloister.local.frequency.support import SupportProtocol
from cloister.local.frequency.unary import UnaryEncoding
from cloister.local.kernels.affine_hashing import hash_codes
from cloister.local.output_space import Payload
from cloister.local.protocol import Protocol
from cloister.local.reports import Reports

__all__ = ["joint_table", "supporters"]

_MOST_PAIRS = 10_000


@singledispatch
def supporters(_protocol: Protocol, _payload: Payload, _code: int, /) -> NDArray[np.bool_]:
    """Return which reports support a value.

    Raises:
        ParameterError: if that is not known of single reports of this protocol.
    """
    raise _not_countable()


@supporters.register
def _(_protocol: DirectEncoding, payload: Payload, code: int) -> NDArray[np.bool_]:
    return np.asarray(payload["y"] == code)


@supporters.register(UnaryEncoding)
@supporters.register(SubsetSelection)
def _(_protocol: SupportProtocol, payload: Payload, code: int) -> NDArray[np.bool_]:
    return np.asarray(payload["bits"][:, code >> 3] >> (code & 7) & 1, dtype=np.bool_)


@supporters.register
def _(protocol: OptimizedLocalHashing, payload: Payload, code: int) -> NDArray[np.bool_]:
    a, b = payload["a"].astype(np.int64), payload["b"].astype(np.int64)
    hashed = hash_codes(a, b, np.full(len(payload), code), protocol.prime, protocol.buckets)
    return np.asarray(hashed == payload["y"])


@supporters.register
def _(protocol: ThresholdHistogramEncoding, payload: Payload, code: int) -> NDArray[np.bool_]:
    return np.asarray(payload["cells"][:, code] > protocol.step)


@supporters.register
def _(_protocol: RandomizedResponse, payload: Payload, code: int) -> NDArray[np.bool_]:
    return np.asarray(payload["y"] == code)


def joint_table(first: Reports, second: Reports, *, guarantee: LocalDP) -> FrequencyEstimate:
    """Return how many people have each pair of values.

    Args:
        first: the reports of one attribute.
        second: the reports of the same people, in the same order, of another.
        guarantee: what the estimate carries.

    Raises:
        ParameterError: if reports do not support values of a domain, or there are too many pairs.
        TooFewReportsError: if nobody reported.
    """
    one, other, n = _Side.of(first), _Side.of(second), enough(len(first))
    if len(one.values) * len(other.values) > _MOST_PAIRS:
        raise ParameterError(
            f"The table has more than {_MOST_PAIRS:,} pairs.", fix="ask about coarser values, such as groups of ages."
        )
    together = np.array([other.counts(one.support(code)) for code in range(len(one.values))])
    rows, columns = one.counts(), other.counts()
    lies = one.q[:, None] * columns + other.q * rows[:, None] - n * one.q[:, None] * other.q
    counts = (together - lies) / ((one.p - one.q)[:, None] * (other.p - other.q))
    pairs: tuple[Any, ...] = tuple(product(one.values, other.values))
    return FrequencyEstimate(
        domain=pairs,
        raw_counts=counts.ravel(),
        raw_errors=np.sqrt(_variances(counts, one, other, n)).ravel(),
        reports=n,
        protocol=f"{one.reports.protocol.name} and {other.reports.protocol.name}",
        guarantee=guarantee,
    )


@dataclass(frozen=True)
class _Side:
    """The reports of one attribute, its values, and how often its reports support each of them: truly, and not."""

    reports: Reports
    values: tuple[Any, ...]
    p: Floats
    q: Floats

    @classmethod
    def of(cls, reports: Reports) -> _Side:
        protocol = reports.protocol
        if not isinstance(protocol, SupportProtocol | RandomizedResponse):
            raise _not_countable()
        p, q = map(float, protocol.probabilities)
        size = len(protocol.domain)
        if isinstance(protocol, RandomizedResponse):
            return cls(reports, protocol.domain.values, np.array([1 - q, p]), np.array([1 - p, q]))
        return cls(reports, protocol.domain.values, np.full(size, p), np.full(size, q))

    def support(self, code: int) -> NDArray[np.bool_]:
        return supporters(self.reports.protocol, self.reports.payload, code)

    def counts(self, chosen: Any = slice(None)) -> NDArray[np.int64]:  # whatever chooses rows
        """Return how many of the chosen reports support each value."""
        protocol, payload = self.reports.protocol, self.reports.payload[chosen]
        if isinstance(protocol, SupportProtocol):
            return protocol.support_counts(payload)
        return np.bincount(payload["y"], minlength=len(self.values))

    def singles(self, people: int) -> Floats:
        """Return the estimated number of people with each value, within what is possible."""
        return np.clip((self.counts() - people * self.q) / (self.p - self.q), 0, people)

    def moments(self) -> tuple[Floats, Floats]:
        """Return the second moment of a report's reading for people who have the value, and for the others."""
        gap = (self.p - self.q) ** 2
        return 1 + self.p * (1 - self.p) / gap, self.q * (1 - self.q) / gap


def _variances(pairs: Floats, first: _Side, second: _Side, people: int) -> Floats:
    """Return the variance of each count, for the people who seem to have the pair, one of its values, or neither."""
    own, other = first.singles(people)[:, None], second.singles(people)
    both = np.clip(pairs, 0, np.minimum(own, other))
    neither = np.maximum(people - own - other + both, 0)
    a, a0 = (moment[:, None] for moment in first.moments())
    b, b0 = second.moments()
    return np.asarray(both * (a * b - 1) + (own - both) * a * b0 + (other - both) * a0 * b + neither * a0 * b0)


def _not_countable() -> ParameterError:
    return ParameterError(
        "A table of pairs needs reports that support values of a domain.",
        fix="ask both attributes with DirectEncoding, a unary encoding, OptimizedLocalHashing or SubsetSelection.",
    )
