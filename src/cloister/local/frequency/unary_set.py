"""Unary encoding of a few picks: one coin for each declared answer, for people who may choose several.

A person picks at most s of d declared answers. Each answer's bit is told truly with
``exp(b) / (exp(b) + 1)``, where ``b = epsilon / min(2 s, d)`` is the budget of one bit, and flipped otherwise (the
symmetric unary encoding of Erlingsson, Pihur and Korolova 2014, for sets). The number of picks stays hidden as well.

Privacy: claim epsilon-LDP for the whole set of picks. Two sets of at most s picks differ in at most ``min(2 s, d)``
bits: s that only the first one has and as many that only the second one has. Each of those changes the probability of a
report by at most ``exp(b)``; the threshold of the truth is rounded down, so that this holds exactly.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from itertools import chain
from math import log
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from cloister.core.validation import check_choice, check_count
from cloister.errors import OutsideDomainError, ParameterError
from cloister.local import plausibility
from cloister.local.draws import CERTAIN, Draws, SourceDraws
from cloister.local.estimates import Floats, FrequencyEstimate
from cloister.local.frequency.support import SupportProtocol
from cloister.local.frequency.unary import noisy_bits
from cloister.local.kernels.column_counts import column_counts
from cloister.local.output_space import Bits, OutputSpace, Payload
from cloister.local.plausibility import Test
from cloister.local.protocol import lie_threshold, protocols, several_values
from cloister.mechanisms.sampling.packed_bits import packed_bernoulli

__all__ = ["SetEstimate", "UnarySet"]

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
class UnarySet(SupportProtocol):
    """Tell for each declared answer whether it was picked, each time truly with a known probability.

    Args:
        domain: the declared answers.
        epsilon: what a report costs its sender, whatever was picked.
        most: how many answers a person may pick.

    One person's value is a set or a list of picks, perhaps empty; many people's are a list of those.

    >>> protocol = UnarySet(domain=["bus", "bike", "car", "train"], epsilon=2, most=2)
    >>> report = protocol.randomize({"bus", "bike"})
    >>> estimate = protocol.estimate(protocol.randomize([["bus"]] * 600 + [["bike", "bus"]] * 400))
    >>> list(estimate.counts)
    ['bus', 'bike', 'car', 'train']
    """

    name = "unary_set"

    def __init__(self, *, domain: object, epsilon: object, most: int) -> None:
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

    def support_counts(self, payload: Payload) -> NDArray[np.int64]:
        """Return for each answer the number of reports that have its bit."""
        return column_counts(payload["bits"], len(self.domain))

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
        """Yield what honest reports are compared with; see `plausibility`."""
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
