"""The probability of the likeliest report of each protocol: how surprising it is that two reports are the same."""

from __future__ import annotations

from functools import singledispatch
from math import inf, lgamma, log, tanh

from cloister.local.draws import CERTAIN
from cloister.local.frequency.direct import DirectEncoding
from cloister.local.frequency.hadamard import HadamardResponse
from cloister.local.frequency.hashing import OptimizedLocalHashing
from cloister.local.frequency.histogram import SummationHistogramEncoding, ThresholdHistogramEncoding
from cloister.local.frequency.rappor import Rappor
from cloister.local.frequency.subset import SubsetSelection
from cloister.local.frequency.unary import UnaryEncoding
from cloister.local.heavy_hitters import HeavyHitters
from cloister.local.protocol import Protocol

__all__ = ["likeliest_row"]


@singledispatch
def likeliest_row(_protocol: Protocol, /) -> float:
    """Return the logarithm of the largest probability of any report under any value; 0 where that is not known."""
    return 0.0


@likeliest_row.register
def _(protocol: DirectEncoding) -> float:
    return log(max(protocol.probabilities))


@likeliest_row.register
def _(protocol: HadamardResponse) -> float:
    return log(2 * protocol.probabilities[0] / protocol.order)


@likeliest_row.register
def _(protocol: UnaryEncoding) -> float:
    p, q = protocol.probabilities
    return log(max(p, 1 - p)) + (len(protocol.domain) - 1) * log(max(q, 1 - q))


@likeliest_row.register
def _(protocol: OptimizedLocalHashing) -> float:
    return log(protocol.truth / CERTAIN) - 2 * log(protocol.prime)


@likeliest_row.register
def _(protocol: HeavyHitters) -> float:
    return log(protocol.truth / CERTAIN) - 2 * log(protocol.prime) - log(len(protocol.lengths))


@likeliest_row.register
def _(protocol: SubsetSelection) -> float:
    p, size, places = protocol.probabilities[0], len(protocol.domain), protocol.size
    with_own = log(p) - _log_choose(size - 1, places - 1)
    without = log(1 - p) - _log_choose(size - 1, places)
    return max(with_own, without)


@likeliest_row.register
def _(protocol: Rappor) -> float:
    own, other = protocol.probabilities
    told, untold = log(max(own, 1 - own)), log(max(other, 1 - other))
    ones = protocol.filters.sum(axis=2)
    likeliest = max(
        (int(count) * told + (protocol.bits - int(count)) * untold for count in {*ones.ravel()}), default=-inf
    )
    return likeliest - log(protocol.cohorts)


@likeliest_row.register(SummationHistogramEncoding)
@likeliest_row.register(ThresholdHistogramEncoding)
def _(protocol: SummationHistogramEncoding | ThresholdHistogramEncoding) -> float:
    return len(protocol.domain) * log(tanh(1 / (2 * float(protocol.scale))))


def _log_choose(count: int, chosen: int) -> float:
    return lgamma(count + 1) - lgamma(chosen + 1) - lgamma(count - chosen + 1)
