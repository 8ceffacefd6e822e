"""Unary encoding: one bit for each value of the domain, each told through a coin of its own; of one value or of a few.

The bit of the sender's value is 1 with probability p, every other bit with q. Symmetric (SUE, the one-time RAPPOR of
Erlingsson, Pihur and Korolova 2014): ``p = 1 - q = exp(epsilon / 2) / (exp(epsilon / 2) + 1)``. Optimized (OUE; Wang,
Blocki, Li and Jha 2017): ``p = 1/2, q = 1 / (exp(epsilon) + 1)``, the smallest variance for rare values.

Privacy: claim epsilon-LDP. Two values differ in two bits, so that the worst report has ratio
``p (1 - q) / (q (1 - p))``; the threshold of q is rounded up, which makes the ratio smaller.

`UnarySet` is for people who may choose several answers. A person picks at most s of d declared answers. Each answer's
bit is told truly with ``exp(b) / (exp(b) + 1)``, where ``b = epsilon / min(2 s, d)`` is the budget of one bit, and
flipped otherwise (the symmetric unary encoding of Erlingsson, Pihur and Korolova 2014, for sets). The number of picks
stays hidden as well.

Privacy of several picks: claim epsilon-LDP for the whole set of picks. Two sets of at most s picks differ in at most
``min(2 s, d)`` bits: s that only the first one has and as many that only the second one has. Each of those changes the
probability of a report by at most ``exp(b)``; the threshold of the truth is rounded down, so that this holds exactly.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Collection, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from itertools import chain
from math import log
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from cloister.core.exact import Number
from cloister.core.random import Words
from cloister.core.validation import check_choice, check_count
from cloister.errors import OutsideDomainError, ParameterError
from cloister.local import _plausibility as plausibility
from cloister.local._output_space import Bits, OutputSpace, Payload
from cloister.local._packed_rows import write_bits
from cloister.local._plausibility import Test
from cloister.local.domain import Answers, Codes
from cloister.local.draws import CERTAIN, Draws, SourceDraws
from cloister.local.estimates import Floats, FrequencyEstimate
from cloister.local.frequency.support import BitProtocol, not_countable
from cloister.local.protocol import lie_threshold, protocols, several_values
from cloister.mechanisms.sampling.coins import packed_bernoulli

__all__ = ["OptimizedUnaryEncoding", "SetEstimate", "SymmetricUnaryEncoding", "UnaryEncoding", "UnarySet", "noisy_bits"]


def noisy_bits(chosen: NDArray[np.bool_], keep: int, flip: int, draws: Draws) -> NDArray[np.uint8]:
    """Return packed bits for rows of bits: one toss for each, in order, with a threshold for ones and one for zeros."""
    thresholds: Words = np.where(chosen.ravel(), np.uint64(keep), np.uint64(flip))
    bits = draws.chances(thresholds, chosen.size).reshape(chosen.shape)
    return np.packbits(bits, axis=1, bitorder="little")


class UnaryEncoding(BitProtocol):
    """One coin for each value; `SymmetricUnaryEncoding` and `OptimizedUnaryEncoding` choose the coins.

    Attributes:
        keep: the threshold of the sender's bit.
        flip: the threshold of every other bit.
    """

    keep: int
    flip: int

    def __init__(self, *, domain: Answers | None = None, epsilon: Number | None = None) -> None:
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
        # One threshold for all bits and one bit rewritten afterwards is far cheaper than a threshold for each bit.
        bits = packed_bernoulli(draws.source, self.flip, len(codes), len(self.domain))
        write_bits(bits, codes, draws.chances(self.keep, len(codes)))
        return np.ascontiguousarray(bits).view(self.output_space.dtype).ravel()

    def score_readings(self, payload: Payload, scores: Floats) -> tuple[Floats, float]:
        """Return an unbiased reading of each sender's score, and the least variance that a reading has."""
        p, q = map(float, self.probabilities)
        bits = np.unpackbits(payload["bits"], axis=1, count=len(scores), bitorder="little")
        # The own bit has a variance of its own and all others share one, so that only the own score makes a difference.
        spread = q * (1 - q) * (scores**2).sum() + (p * (1 - p) - q * (1 - q)) * scores**2
        return np.asarray((bits @ scores - q * scores.sum()) / (p - q)), float(spread.min()) / (p - q) ** 2

    @property
    def likeliest_report(self) -> float:
        """Return the logarithm of the largest probability of any report under any value."""
        p, q = self.probabilities
        return log(max(p, 1 - p)) + (len(self.domain) - 1) * log(max(q, 1 - q))

    def plausibility_tests(self) -> Iterator[Test]:
        """Yield what honest reports are compared with; see `_plausibility`."""
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
    fits_choices = True
    in_browsers = True

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
    fits_choices = True
    in_browsers = True

    def _thresholds(self) -> tuple[int, int]:
        return CERTAIN // 2, lie_threshold(self.epsilon)


_NO_LISTS = (str, bytes, Mapping)
"""Collections that are not picks: the letters of a text, and the names of what may be true or false."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SetEstimate(FrequencyEstimate):
    """How many people picked each answer. A person may have picked several, so the counts need not add up."""

    schema: ClassVar[str] = "cloister.local_picks/1"

    def consistent(self, method: str = "clip") -> SetEstimate:
        """Return counts between 0 and the number of reports.

        Args:
            method: ``"clip"``; there is no sum that picks have to keep.
        """
        check_choice(method, name="method", allowed=("clip",))
        return self.mended(np.clip(self.raw_counts, 0, self.reports), method)


@protocols.register("unary_set")
class UnarySet(BitProtocol):
    """Tell for each declared answer whether it was picked, each time truly with a known probability.

    Args:
        domain: the declared answers.
        epsilon: what a report costs its sender, whatever was picked.
        most: how many answers a person may pick.

    One person's value is a set or a list of picks, perhaps empty; many people's are a list of those.

    >>> protocol = UnarySet(domain=["bus", "bike", "car", "train"], epsilon=2, most=2)
    >>> len(protocol.randomize({"bus", "bike"}))
    1
    >>> estimate = protocol.estimate(protocol.randomize([["bus"]] * 600 + [["bike", "bus"]] * 400))
    >>> list(estimate.counts)
    ['bus', 'bike', 'car', 'train']
    """

    name = "unary_set"
    in_browsers = True

    def __init__(self, *, domain: Answers, epsilon: Number, most: int) -> None:
        super().__init__(domain=domain, epsilon=epsilon)
        self.most = check_count(most, name="most", at_least=1)
        if self.most > len(self.domain):
            raise ParameterError(
                f"Nobody can pick {self.most} of {len(self.domain)} answers.",
                fix=f"use most={len(self.domain)} or less.",
            )
        self.flip = lie_threshold(self.epsilon / self.differing)
        self.keep = CERTAIN - self.flip
        self.output_space = OutputSpace((Bits("bits", len(self.domain)),))
        self._check_epsilon()

    @property
    def differing(self) -> int:
        """Return in how many bits the picks of two people can differ."""
        return min(2 * self.most, len(self.domain))

    @property
    def probabilities(self) -> tuple[Fraction, Fraction]:
        """Return (p, q): how often a picked answer's bit is set, and that of another one."""
        return Fraction(self.keep, CERTAIN), Fraction(self.flip, CERTAIN)

    @property
    def likelihood_ratio(self) -> Fraction:
        """Return the ratio of one bit for as many bits as can differ."""
        return Fraction(self.keep, self.flip) ** self.differing

    def encode(self, values: Any) -> tuple[NDArray[Any], bool]:  # one person's picks or many people's
        """Return a row of true and false for each person, and whether it was a single person."""
        single = _is_one(values)
        people = [values] if single else values
        if not all(isinstance(picks, Collection) and not isinstance(picks, _NO_LISTS) for picks in people):
            raise OutsideDomainError("Somebody's picks are not a list.", fix="give a set or a list for everybody.")
        sizes = np.fromiter(map(len, people), dtype=np.int64, count=len(people))
        codes = self.domain.codes(list(chain.from_iterable(people))) if sizes.any() else np.empty(0, np.int64)
        picked = np.zeros((len(people), len(self.domain)), dtype=np.bool_)
        picked[np.repeat(np.arange(len(people)), sizes), codes] = True
        # An answer named twice sets one bit only, so that the number of bits gives it away.
        if (picked.sum(axis=1) != sizes).any() or (sizes > self.most).any():
            raise OutsideDomainError(
                "Somebody picked an answer twice, or too many answers.",
                fix=f"let everybody pick at most {self.most}, each answer once.",
            )
        return picked, single

    def perturb(self, codes: NDArray[np.bool_], draws: Draws) -> Payload:
        """Return reports: one toss for each answer, in the order of the domain."""
        return self.output_space.rows(bits=noisy_bits(codes, self.keep, self.flip, draws))

    def perturb_many(self, codes: NDArray[np.bool_], draws: SourceDraws) -> Payload:
        """Return the same with packed tosses: which bits are told wrongly is decided for all alike."""
        wrong = packed_bernoulli(draws.source, self.flip, len(codes), len(self.domain))
        return self.output_space.rows(bits=np.packbits(codes, axis=1, bitorder="little") ^ wrong)

    def supporters(self, payload: Payload, code: int) -> NDArray[np.bool_]:  # noqa: ARG002  # as that of all protocols
        """Refuse: a person may have several values, and a table of pairs is about one of each."""
        raise not_countable()

    def estimate(self, reports: Any) -> SetEstimate:  # whatever holds reports
        """Return how many people picked each answer; see `FrequencyProtocol.estimate`."""
        found = super().estimate(reports)
        return SetEstimate(
            domain=found.domain,
            raw_counts=found.raw_counts,
            raw_errors=found.raw_errors,
            reports=found.reports,
            protocol=found.protocol,
            guarantee=found.guarantee,
        )

    def log_likelihoods(self, payload: Payload) -> Floats:  # noqa: ARG002  # as that of all protocols
        """Raise: a person may have picked several values, so that none of them alone has a likelihood."""
        raise several_values()

    @property
    def likeliest_report(self) -> float:
        """Return the logarithm of the largest probability of any report under any value."""
        return len(self.domain) * log(max(self.probabilities))

    def plausibility_tests(self) -> Iterator[Test]:
        """Yield what honest reports are compared with; see `_plausibility`."""
        p, q = map(float, self.probabilities)
        fewest, most = (plausibility.ones_law(len(self.domain), own, p, q) for own in (0, self.most))
        yield partial(plausibility.supports, self)
        yield partial(plausibility.ones_between, fewest=fewest, most=most)

    def _options(self) -> dict[str, Any]:
        return {"most": self.most}

    def _params(self) -> dict[str, Any]:
        return {"keep": str(self.keep), "flip": str(self.flip), "most": self.most}


def _is_one(values: Any) -> bool:  # one person's picks or many people's
    """Return whether these are one person's picks: a set, or a list without lists inside."""
    if isinstance(values, Set):
        return True
    if isinstance(values, str | bytes) or not isinstance(values, Sequence | np.ndarray):
        raise OutsideDomainError("The picks are not a list.", fix="give the picked answers as a set or a list.")
    return not len(values) or not isinstance(values[0], Collection) or isinstance(values[0], str | bytes)
