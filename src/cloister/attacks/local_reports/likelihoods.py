"""How likely a local report is under each value that its sender may have, from the probabilities of the devices.

Of most protocols a report supports some values, and is likelier under each of these by one known ratio. What does not
depend on the value is left out: only differences between values matter to whoever guesses.
"""

from __future__ import annotations

import math
from functools import singledispatch

import numpy as np
from numpy.typing import NDArray

from cloister.attacks.confidence import Floats
from cloister.errors import ParameterTypeError
from cloister.local.frequency.direct import DirectEncoding
from cloister.local.frequency.hadamard import HadamardResponse
from cloister.local.frequency.hashing import OptimizedLocalHashing
from cloister.local.frequency.histogram import STEPS, SummationHistogramEncoding, ThresholdHistogramEncoding
from cloister.local.frequency.pram import Pram
from cloister.local.frequency.randomized_response import RandomizedResponse
from cloister.local.frequency.rappor import Rappor
from cloister.local.frequency.subset import SubsetSelection
from cloister.local.frequency.support import SupportProtocol
from cloister.local.frequency.unary import UnaryEncoding
from cloister.local.kernels.affine_hashing import hash_codes
from cloister.local.kernels.hadamard import parities
from cloister.local.output_space import Payload
from cloister.local.protocol import Protocol

__all__ = ["log_likelihoods"]


@singledispatch
def log_likelihoods(_protocol: Protocol, _payload: Payload, /) -> Floats:
    """Return for each report and value the logarithm of the probability, up to a number for each report.

    Raises:
        ParameterTypeError: if the protocol is not one for a value of a public domain.
    """
    raise ParameterTypeError(
        "This attack is for reports of one value of a public domain.",
        fix="give a protocol such as DirectEncoding, OptimizedUnaryEncoding or OptimizedLocalHashing.",
    )


@log_likelihoods.register
def _(protocol: DirectEncoding, payload: Payload) -> Floats:
    return _by_support(protocol, payload["y"].astype(np.int64)[:, None] == _codes(protocol))


@log_likelihoods.register(UnaryEncoding)
@log_likelihoods.register(SubsetSelection)
def _(protocol: UnaryEncoding | SubsetSelection, payload: Payload) -> Floats:
    bits = np.unpackbits(payload["bits"], axis=1, count=len(protocol.domain), bitorder="little")
    return _by_support(protocol, bits.astype(np.bool_))


@log_likelihoods.register
def _(protocol: OptimizedLocalHashing, payload: Payload) -> Floats:
    a, b, y = (payload[name].astype(np.int64)[:, None] for name in ("a", "b", "y"))
    return _by_support(protocol, hash_codes(a, b, _codes(protocol), protocol.prime, protocol.buckets) == y)


@log_likelihoods.register
def _(protocol: HadamardResponse, payload: Payload) -> Floats:
    return _by_support(protocol, parities(payload["y"].astype(np.int64)[:, None], _codes(protocol)) == 0)


@log_likelihoods.register(SummationHistogramEncoding)
@log_likelihoods.register(ThresholdHistogramEncoding)
def _(protocol: SummationHistogramEncoding | ThresholdHistogramEncoding, payload: Payload) -> Floats:
    cells = payload["cells"].astype(np.float64)
    return np.asarray((np.abs(cells) - np.abs(cells - STEPS)) / float(protocol.scale), dtype=np.float64)


@log_likelihoods.register
def _(protocol: RandomizedResponse, payload: Payload) -> Floats:
    p, q = map(float, protocol.probabilities)
    law = np.log(np.array([[1 - q, q], [1 - p, p]]))
    return np.asarray(law[:, payload["y"].astype(np.int64)].T, dtype=np.float64)


@log_likelihoods.register
def _(protocol: Pram, payload: Payload) -> Floats:
    law = np.array([[float(entry) for entry in row] for row in protocol.matrix])
    with np.errstate(divide="ignore"):
        return np.asarray(np.log(law)[:, payload["y"].astype(np.int64)].T, dtype=np.float64)


@log_likelihoods.register
def _(protocol: Rappor, payload: Payload) -> Floats:
    own, other = map(float, protocol.probabilities)
    bits = np.unpackbits(payload["bits"], axis=1, count=protocol.bits, bitorder="little")
    gains = np.where(bits == 1, math.log(own / other), math.log((1 - own) / (1 - other)))
    found = np.empty((len(payload), len(protocol.domain)))
    for cohort in np.unique(payload["cohort"]).tolist():
        rows = payload["cohort"] == cohort
        found[rows] = gains[rows] @ protocol.filters[cohort].T
    return found


def _codes(protocol: SupportProtocol) -> NDArray[np.int64]:
    return np.arange(len(protocol.domain), dtype=np.int64)[None, :]


def _by_support(protocol: SupportProtocol, supports: NDArray[np.bool_]) -> Floats:
    return np.asarray(supports * math.log(protocol.likelihood_ratio), dtype=np.float64)
