"""Unary encoding: one bit for each value of the domain, each told through a coin of its own.

The bit of the sender's value is 1 with probability p, every other bit with q. Symmetric (SUE, the one-time RAPPOR of
Erlingsson, Pihur and Korolova 2014): ``p = 1 - q = exp(epsilon / 2) / (exp(epsilon / 2) + 1)``. Optimized (OUE; Wang,
Blocki, Li and Jha 2017): ``p = 1/2, q = 1 / (exp(epsilon) + 1)``, the smallest variance for rare values.

Privacy: claim epsilon-LDP. Two values differ in two bits, so that the worst report has ratio
``p (1 - q) / (q (1 - p))``; the threshold of q is rounded up, which makes the ratio smaller.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from fractions import Fraction
from functools import partial
from math import log
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cloister.core.random import Words
from cloister.local import plausibility
from cloister.local.domain import Codes
from cloister.local.draws import CERTAIN, Draws, SourceDraws
from cloister.local.estimates import Floats
from cloister.local.frequency.support import SupportProtocol
from cloister.local.kernels.column_counts import column_counts
from cloister.local.kernels.packed_rows import write_bits
from cloister.local.output_space import Bits, OutputSpace, Payload
from cloister.local.plausibility import Test
from cloister.local.protocol import lie_threshold, protocols
from cloister.mechanisms.sampling.packed_bits import packed_bernoulli

__all__ = ["OptimizedUnaryEncoding", "SymmetricUnaryEncoding", "UnaryEncoding", "noisy_bits"]


def noisy_bits(chosen: NDArray[np.bool_], keep: int, flip: int, draws: Draws) -> NDArray[np.uint8]:
    """Return packed bits for rows of bits: one toss for each, in order, with a threshold for ones and one for zeros."""
    thresholds: Words = np.where(chosen.ravel(), np.uint64(keep), np.uint64(flip))
    bits = draws.chances(thresholds, chosen.size).reshape(chosen.shape)
    return np.packbits(bits, axis=1, bitorder="little")


class UnaryEncoding(SupportProtocol):
    """One coin for each value; `SymmetricUnaryEncoding` and `OptimizedUnaryEncoding` choose the coins.

    Attributes:
        keep: the threshold of the sender's bit.
        flip: the threshold of every other bit.
    """

    keep: int
    flip: int

    def __init__(self, *, domain: object = None, epsilon: object = None) -> None:
        super().__init__(domain=domain, epsilon=epsilon)
        self.keep, self.flip = self._thresholds()
        self.output_space = OutputSpace((Bits("bits", len(self.domain)),))
        self._check_epsilon()

    @abstractmethod
    def _thresholds(self) -> tuple[int, int]:
        """Return the thresholds of the sender's bit and of every other bit."""

    @property
    def probabilities(self) -> tuple[Fraction, Fraction]:
        """Return (p, q): how often the sender's bit is 1, and any other bit."""
        return Fraction(self.keep, CERTAIN), Fraction(self.flip, CERTAIN)

    @property
    def likelihood_ratio(self) -> Fraction:
        """Return ``p (1 - q) / (q (1 - p))``."""
        p, q = self.probabilities
        return p * (1 - q) / (q * (1 - p))

    def perturb(self, codes: Codes, draws: Draws) -> Payload:
        """Return reports: one toss for each value, in domain order."""
        chosen = codes[:, None] == np.arange(len(self.domain))
        return self.output_space.rows(bits=noisy_bits(chosen, self.keep, self.flip, draws))

    def perturb_many(self, codes: Codes, draws: SourceDraws) -> Payload:
        """Return reports with packed tosses: all bits as others' first, then the sender's own bit anew."""
        bits = packed_bernoulli(draws.source, self.flip, len(codes), len(self.domain))
        write_bits(bits, codes, draws.chances(self.keep, len(codes)))
        return np.ascontiguousarray(bits).view(self.output_space.dtype).ravel()

    def support_counts(self, payload: Payload) -> NDArray[np.int64]:
        """Return how often each bit is 1."""
        return column_counts(payload["bits"], len(self.domain))

    def log_likelihoods(self, payload: Payload) -> Floats:
        """Return for each report and value the logarithm of the probability, up to a number for each report."""
        bits = np.unpackbits(payload["bits"], axis=1, count=len(self.domain), bitorder="little")
        return self._by_support(bits.astype(np.bool_))

    @property
    def likeliest_report(self) -> float:
        """Return the logarithm of the largest probability of any report under any value."""
        p, q = self.probabilities
        return log(max(p, 1 - p)) + (len(self.domain) - 1) * log(max(q, 1 - q))

    def plausibility_tests(self) -> Iterator[Test]:
        """Yield what honest reports are compared with; see `plausibility`."""
        p, q = map(float, self.probabilities)
        size = len(self.domain)
        yield partial(plausibility.supports, self)
        yield partial(plausibility.number_of_ones, law=plausibility.ones_law(size, 1, p, q))
        yield partial(plausibility.pairs, size=size, p=p, q=q, neither=q * q, one=p * q)

    def _params(self) -> dict[str, Any]:
        return {"keep": str(self.keep), "flip": str(self.flip)}


@protocols.register("symmetric_unary_encoding")
class SymmetricUnaryEncoding(UnaryEncoding):
    """One bit per value, ones and zeros kept equally often (SUE, one-time RAPPOR).

    >>> protocol = SymmetricUnaryEncoding(domain=["red", "green", "blue"], epsilon=1)
    >>> len(protocol.randomize("red").y)
    3
    """

    name = "symmetric_unary_encoding"

    def _thresholds(self) -> tuple[int, int]:
        flip = lie_threshold(self.epsilon / 2)
        return CERTAIN - flip, flip


@protocols.register("optimized_unary_encoding")
class OptimizedUnaryEncoding(UnaryEncoding):
    """One bit per value, the sender's bit a fair coin: the smallest variance of unary encodings (OUE).

    >>> protocol = OptimizedUnaryEncoding(domain=["a", "b", "c"], epsilon=1.0)
    >>> estimate = protocol.estimate(protocol.randomize(["a", "b", "b", "c"] * 1000))
    >>> sorted(estimate.frequencies) == ["a", "b", "c"]
    True
    """

    name = "optimized_unary_encoding"

    def _thresholds(self) -> tuple[int, int]:
        return CERTAIN // 2, lie_threshold(self.epsilon)
