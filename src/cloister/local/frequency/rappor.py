"""RAPPOR: a noisy Bloom filter that is kept for good, reported each time through a second noise.

Erlingsson, Pihur and Korolova (2014). A device hashes its value into a Bloom filter with the functions of its cohort.
*Permanent* noise turns every bit at random with probability ``f / 2``; the result is kept and used for that value
forever. Each report tells every kept bit through *instantaneous* noise: a 1 as 1 with probability q, a 0 as 1 with p.
The collector averages out what is instantaneous, never what is permanent.

Privacy: claim epsilon-LDP for the whole series of reports of one value, however long:
``epsilon = 2 h ln((1 - f/2) / (f/2))``, since two filters differ in at most 2 h bits and reports are made from the kept
bits alone. One report by itself costs less, `Rappor.one_report_epsilon`. A person whose value changes pays epsilon for
each different value, and that a change happened may show. The cohort is drawn without looking at the value.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from fractions import Fraction
from functools import cached_property, partial
from math import ceil, log
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cloister.core import exact
from cloister.core.exact import Number
from cloister.core.guarantees import SEEDED_RANDOMNESS, Caveat, LocalDP
from cloister.core.random import RandomState, caveats_of, random_source
from cloister.core.validation import check_count, check_probability
from cloister.errors import ParameterError, ParameterTypeError, UnsafeMechanismError
from cloister.local import _plausibility as plausibility
from cloister.local._affine_hashing import bloom_filters, hash_functions, prime_for
from cloister.local._output_space import Bits, Integer, OutputSpace, Payload
from cloister.local._packed_rows import column_counts
from cloister.local._plausibility import Test
from cloister.local.domain import Answers, Codes, Domain
from cloister.local.draws import CERTAIN, Draws, SourceDraws
from cloister.local.estimates import Floats, FrequencyEstimate, enough
from cloister.local.frequency._rappor_regression import CohortBits, Decoding, bit_gains, decode, plan_variances
from cloister.local.frequency.support import FrequencyProtocol
from cloister.local.frequency.unary import noisy_bits
from cloister.local.protocol import FOLLOWED, lie_threshold, protocols
from cloister.local.reports import LocalReport
from cloister.mechanisms.sampling.coins import packed_bernoulli

__all__ = ["Rappor", "RapporDevice"]

_UNIT = "series of reports of one value"
_MOST_VALUES = 2048
_MOST_CELLS = 2**28
_MOST_FUNCTIONS = 2**16
"""Hash functions of all cohorts together: they are all written into the public record."""

_BITS = 128
_CELLS_PER_VALUE = 8
"""Bits over all cohorts for each candidate: least squares then loses an eighth of its accuracy to collisions."""


@protocols.register("rappor")
class Rappor(FrequencyProtocol):
    """Reports of one value that may be repeated for ever: permanent and instantaneous noise on a Bloom filter.

    `randomize` makes one report for each of many people. A person who reports more than once uses a `device`, which
    keeps its permanent bits; fresh permanent bits each time would add up.

    Args:
        domain: the public candidates.
        epsilon: what all reports of one value cost together.
        bits: the length k of the filter; by default one bit per value, at most 128.
        hashes: the number h of hash functions; 1 is the most accurate for a given epsilon.
        cohorts: the number m of groups with hash functions of their own; by default as many as keep collisions cheap.
        noise: f, in place of epsilon: how often a permanent bit is a fair coin.
        one_if_set: q, how often a permanent 1 is told as 1.
        one_if_clear: p, how often a permanent 0 is told as 1.

    Attributes:
        flip: the threshold ``f / 2`` of permanent noise; the other two thresholds are ``set_threshold`` and
            ``clear_threshold``.

    >>> protocol = Rappor(domain=["a", "b", "c"], noise=0.5, one_if_clear=0.5, one_if_set=0.75)
    >>> round(float(protocol.epsilon), 4), round(float(protocol.one_report_epsilon), 4)
    (2.1972, 0.5371)
    """

    name = "rappor"

    def __init__(
        self,
        *,
        domain: Answers,
        epsilon: Number | None = None,
        bits: int | None = None,
        hashes: int = 1,
        cohorts: int | None = None,
        noise: object = None,
        one_if_set: object = "3/4",
        one_if_clear: object = "1/2",
    ) -> None:
        declared = Domain.of(domain)
        self.hashes = check_count(hashes, name="hashes", at_least=1)
        self._noise = None if noise is None else _check_noise(noise)
        super().__init__(domain=declared, epsilon=self._cost(epsilon))
        self._sizes = (bits, cohorts)
        self.bits, self.cohorts = self._shape(bits, cohorts)
        self.prime = prime_for(len(declared), self.bits)
        self.flip = _flip_of(self._noise) if self._noise else lie_threshold(self.epsilon / (2 * self.hashes))
        self._told = _check_coins(one_if_set, one_if_clear)
        # These coins may be rounded either way, since the promise rests on the permanent bits alone.
        self.set_threshold, self.clear_threshold = (round(chance * CERTAIN) for chance in self._told)
        self.output_space = OutputSpace((Integer("cohort", 0, self.cohorts - 1), Bits("bits", self.bits)))
        self._check_distinct()
        self._check_epsilon()

    @property
    def likelihood_ratio(self) -> Fraction:
        """Return ``((1 - f/2) / (f/2)) ** (2 h)``: of all reports of one value together."""
        return Fraction(CERTAIN - self.flip, self.flip) ** (2 * self.hashes)

    @property
    def probabilities(self) -> tuple[Fraction, Fraction]:
        """Return (q*, p*): how often a bit of the value's own filter is told as 1 in one report, and any other bit."""
        turned = Fraction(self.flip, CERTAIN)
        if_set, if_clear = Fraction(self.set_threshold, CERTAIN), Fraction(self.clear_threshold, CERTAIN)
        return (1 - turned) * if_set + turned * if_clear, turned * if_set + (1 - turned) * if_clear

    @property
    def one_report_ratio(self) -> Fraction:
        """Return the likelihood ratio of a single report: ``(q* (1 - p*) / (p* (1 - q*))) ** h``."""
        own, other = self.probabilities
        return (own * (1 - other) / (other * (1 - own))) ** self.hashes

    @property
    def one_report_epsilon(self) -> Fraction:
        """Return what a single report costs somebody who never reports again, rounded up."""
        return exact.log_bounds(self.one_report_ratio)[1]

    @property
    def guarantee(self) -> LocalDP:
        """Return what all reports of one value together promise to their sender."""
        return LocalDP(epsilon=self.epsilon, unit=_UNIT, assumptions=(FOLLOWED,))

    @cached_property
    def filters(self) -> NDArray[np.bool_]:
        """Return the true filters, by cohort, value and bit; public."""
        return bloom_filters(self._functions, len(self.domain), bits=self.bits, prime=self.prime)

    def device(self, *, random_state: RandomState = None) -> RapporDevice:
        """Return a new device with a cohort of its own, which keeps permanent bits."""
        cohort = SourceDraws(random_source(random_state)).below(self.cohorts, 1)
        return RapporDevice(self, int(cohort[0]), {})

    def open_device(self, record: Mapping[str, Any]) -> RapporDevice:
        """Return the device that `RapporDevice.to_dict` wrote down.

        Raises:
            ParameterTypeError: if the record is not of a device of this protocol.
        """
        return RapporDevice.read(self, record)

    def perturb(self, codes: Codes, draws: Draws) -> Payload:
        """Return reports: the cohort, then permanent noise for each bit, then instantaneous noise for each bit."""
        cohorts = draws.below(self.cohorts, len(codes))
        kept = self.permanent(codes, cohorts, draws)
        return self.output_space.rows(cohort=cohorts, bits=self.instantaneous(kept, draws))

    def permanent(self, codes: Codes, cohorts: NDArray[np.int64], draws: Draws) -> NDArray[np.bool_]:
        """Return permanent bits, one row for each code: one toss for each bit, whether to turn it."""
        true = self.filters[cohorts, codes]
        return true ^ draws.chances(self.flip, true.size).reshape(true.shape)

    def instantaneous(self, kept: NDArray[np.bool_], draws: Draws) -> NDArray[np.uint8]:
        """Return packed bits to report for rows of permanent bits: one toss for each bit."""
        return noisy_bits(kept, self.set_threshold, self.clear_threshold, draws)

    def perturb_many(self, codes: Codes, draws: SourceDraws) -> Payload:
        """Return reports by the same law with packed tosses."""
        cohorts = draws.below(self.cohorts, len(codes))
        packed = np.packbits(self.filters, axis=2, bitorder="little")
        turned, if_set, if_clear = (
            packed_bernoulli(draws.source, threshold, len(codes), self.bits)
            for threshold in (self.flip, self.set_threshold, self.clear_threshold)
        )
        kept = packed[cohorts, codes] ^ turned
        # Both tosses are drawn for every bit and the kept bit chooses: no value decides how many words are taken.
        return self.output_space.rows(cohort=cohorts, bits=(kept & if_set) | (~kept & if_clear))

    def estimate(self, reports: Any) -> FrequencyEstimate:  # whatever holds reports
        """Return how many people have each value, by least squares; see `FrequencyProtocol.estimate`.

        The counts are unbiased and may be negative; `non_negative` fits counts that are not.

        Raises:
            TooFewReportsError: if some cohorts sent none and the others do not tell all values apart.
        """
        found = self.read(reports)
        n, decoded = enough(len(found)), self._decoded(found.payload)
        return self._estimated(n * decoded.shares, n**2 * decoded.variances, n, self.guarantee_of(found))

    def non_negative(self, reports: Any) -> FrequencyEstimate:  # whatever holds reports
        """Return the counts, none negative, that fit the reports best; their errors are those of `estimate`."""
        raw = self.estimate(reports)
        shares = self._decoded(self.read(reports).payload).non_negative()
        return raw.mended(raw.reports * shares, "non_negative")

    def counted(self, payload: Payload) -> CohortBits:
        """Return how often each bit is told as 1 in each cohort."""
        order = np.argsort(payload["cohort"], kind="stable")
        reports = np.bincount(payload["cohort"], minlength=self.cohorts)
        parts = np.split(payload["bits"][order], np.cumsum(reports)[:-1])
        ones = np.array([column_counts(part, self.bits) for part in parts])
        own, other = map(float, self.probabilities)
        return CohortBits(reports, ones, own, other)

    def variance(self, frequency: object = 0) -> float:
        """Return the largest variance, over the values, of an estimated share times the number of reports.

        The value has the given share and the others share the rest equally; all cohorts are of one size.
        """
        share = float(check_probability(frequency, name="frequency"))
        own, other = map(float, self.probabilities)
        return float(plan_variances(self.filters, share, one_if_set=own, one_if_clear=other).max())

    @cached_property
    def _functions(self) -> NDArray[np.int64]:
        return hash_functions(
            len(self.domain), bits=self.bits, hashes=self.hashes, cohorts=self.cohorts, prime=self.prime
        )

    def _decoded(self, payload: Payload) -> Decoding:
        return decode(self.filters, self.counted(payload))

    def _cost(self, epsilon: Number | None) -> Number | None:
        if self._noise is None:
            if epsilon is None:
                raise ParameterError("RAPPOR needs epsilon, or its noise f.", fix="write epsilon=1, or noise=0.5.")
            return epsilon
        flip = _flip_of(self._noise)
        cost = exact.log_bounds(Fraction(CERTAIN - flip, flip) ** (2 * self.hashes))[1]
        if epsilon is not None and exact.number(epsilon, name="epsilon") != cost:
            raise ParameterError("The noise has another epsilon.", fix="leave epsilon out: it follows from the noise.")
        return cost

    def _shape(self, bits: int | None, cohorts: int | None) -> tuple[int, int]:
        size = len(self.domain)
        if size > _MOST_VALUES:
            raise ParameterError(
                f"RAPPOR decodes at most {_MOST_VALUES} candidates.",
                fix="use OptimizedLocalHashing or HeavyHitters for more.",
            )
        width = min(size, _BITS) if bits is None else check_count(bits, name="bits", at_least=2)
        if width < 2 * self.hashes:
            raise ParameterError("The filter is too short for its hashes.", fix=f"use bits >= {2 * self.hashes}.")
        enough_cohorts = 1 if self.hashes == 1 and width >= size else ceil(_CELLS_PER_VALUE * size / width)
        groups = enough_cohorts if cohorts is None else check_count(cohorts, name="cohorts", at_least=1)
        if groups * size * width > _MOST_CELLS or groups * self.hashes > _MOST_FUNCTIONS:
            raise ParameterError(
                "The filters of all cohorts are too large.", fix="use fewer bits, cohorts or hashes, or leave them out."
            )
        return width, groups

    def _check_distinct(self) -> None:
        """Refuse candidates that have one filter in every cohort, and fewer bits than candidates."""
        by_value = np.packbits(self.filters, axis=2).transpose(1, 0, 2).reshape(len(self.domain), -1)
        if self.bits * self.cohorts < len(self.domain) or len(np.unique(by_value, axis=0)) < len(self.domain):
            raise ParameterError(
                "Some candidates cannot be told apart: they have the same bits.", fix="use more bits or cohorts."
            )

    def log_likelihoods(self, payload: Payload) -> Floats:
        """Return for each report and value the logarithm of the probability, up to a number for each report."""
        own, other = map(float, self.probabilities)
        bits = np.unpackbits(payload["bits"], axis=1, count=self.bits, bitorder="little")
        gains = np.where(bits == 1, log(own / other), log((1 - own) / (1 - other)))
        found = np.empty((len(payload), len(self.domain)))
        for cohort in np.unique(payload["cohort"]).tolist():
            rows = payload["cohort"] == cohort
            # Against an empty filter a value differs in its own bits only, so that one product gives a cohort's
            # likelihoods.
            found[rows] = gains[rows] @ self.filters[cohort].T
        return found

    @property
    def likeliest_report(self) -> float:
        """Return the logarithm of the largest probability of any report under any value."""
        own, other = self.probabilities
        told, untold = log(max(own, 1 - own)), log(max(other, 1 - other))
        ones = {int(count) for count in self.filters.sum(axis=2).ravel()}
        return max(count * told + (self.bits - count) * untold for count in ones) - log(self.cohorts)

    def plausibility_tests(self) -> Iterator[Test]:
        """Yield what honest reports are compared with; see `_plausibility`."""
        p, q = map(float, self.probabilities)
        weights = self.filters.sum(axis=2)
        cohorts = np.full(self.cohorts, 1 / self.cohorts)
        yield partial(plausibility.shares, field="cohort", law=cohorts, name="cohorts")
        yield partial(plausibility.bits_by_cohort, self)
        # Where hashes of a value collide its filter has fewer ones, and no law holds whatever people's values are.
        if weights.min() == weights.max():
            yield partial(plausibility.number_of_ones, law=plausibility.ones_law(self.bits, int(weights.max()), p, q))
        # Several hashes let one value set two bits, and how often pairs meet would then depend on people's values.
        if self.hashes == 1:
            yield partial(plausibility.pairs, size=self.bits, p=p, q=q, neither=q * q, one=p * q)

    def poisoning_gains(self) -> tuple[float, float]:
        """Return by how much one report can raise, and lower, an estimated count."""
        own, other = map(float, self.probabilities)
        if_one, if_zero = (1 - other) / (own - other), -other / (own - other)
        best = worst = 0.0
        for gains in bit_gains(self.filters):
            # A bit may raise a value when told as 1 or when told as 0: whoever attacks takes the better one, bit by
            # bit.
            values = gains * if_one, gains * if_zero
            best = max(best, float(np.maximum(*values).sum(axis=0).max()))
            worst = min(worst, float(np.minimum(*values).sum(axis=0).min()))
        return best, -worst

    def _options(self) -> dict[str, Any]:
        sizes = dict(zip(("bits", "cohorts"), self._sizes, strict=True))
        given = {name: size for name, size in sizes.items() if size is not None}
        coins = dict(zip(("one_if_set", "one_if_clear"), map(exact.text, self._told), strict=True))
        noise = {} if self._noise is None else {"noise": exact.text(self._noise)}
        return {"hashes": self.hashes, **given, **coins, **noise}

    def _params(self) -> dict[str, Any]:
        return {
            "flip": str(self.flip),
            "set": str(self.set_threshold),
            "clear": str(self.clear_threshold),
            "prime": self.prime,
            "functions": self._functions.tolist(),
        }


class RapporDevice:
    """What one person's device keeps: a cohort, and for each value ever told its permanent bits.

    Keep it on the device, and across restarts (`to_dict`, `Rappor.open_device`): with new permanent bits for an old
    value the promise would be spent again.

    >>> device = Rappor(domain=["a", "b"], epsilon=1).device()
    >>> len([device.report("a") for _ in range(5)])
    5
    >>> float(device.epsilon)
    1.0
    """

    def __init__(
        self, protocol: Rappor, cohort: int, kept: dict[int, NDArray[np.bool_]], caveats: tuple[Caveat, ...] = ()
    ) -> None:
        self.protocol = protocol
        self._cohort = cohort
        self._kept = kept
        self._caveats = caveats

    @classmethod
    def read(cls, protocol: Rappor, record: Mapping[str, Any]) -> RapporDevice:
        """Return the device of a record; see `Rappor.open_device`."""
        try:
            same = record["protocol"] == protocol.fingerprint
            rows = protocol.output_space.parse([[record["cohort"], bits] for bits in record["kept"].values()] or [])
            cohort = check_count(record["cohort"], name="cohort")
            codes = [int(code) for code in record["kept"]]
            caveats = () if record.get("secure", True) is True else (SEEDED_RANDOMNESS,)
        except (KeyError, TypeError, ValueError, AttributeError):
            raise _not_a_device() from None
        if not same or cohort >= protocol.cohorts or not set(codes) <= set(range(len(protocol.domain))):
            raise _not_a_device()
        bits = np.unpackbits(rows["bits"], axis=1, count=protocol.bits, bitorder="little").astype(np.bool_)
        return cls(protocol, cohort, dict(zip(codes, bits, strict=True)), caveats)

    @property
    def epsilon(self) -> Fraction:
        """Return what this person has spent: the protocol's epsilon for each different value told so far."""
        return self.protocol.epsilon * len(self._kept)

    def report(self, value: object, *, random_state: RandomState = None) -> LocalReport:
        """Return a report of a value, made from the permanent bits that are kept for it.

        What was once made with predictable randomness taints all later reports of the device.

        Raises:
            OutsideDomainError: if the value is missing or not in the public domain.
        """
        code = self.protocol.domain.code(value)
        source = random_source(random_state)
        draws, cohort = SourceDraws(source), np.array([self._cohort])
        # Bits that were predictable once are replayed for ever, so that the mark stays whatever is drawn later.
        self._caveats = self._caveats or caveats_of(source)
        if code not in self._kept:
            self._kept[code] = self.protocol.permanent(np.array([code]), cohort, draws)[0]
        told = self.protocol.instantaneous(self._kept[code][None], draws)
        return LocalReport(self.protocol, self.protocol.output_space.rows(cohort=cohort, bits=told), self._caveats)

    def to_dict(self) -> dict[str, Any]:
        """Return the device's memory as JSON-ready values; it tells which values were reported and must stay there."""
        show = Bits("bits", self.protocol.bits).show
        kept = {str(code): show(np.packbits(bits, bitorder="little")) for code, bits in self._kept.items()}
        return {
            "schema": "cloister.rappor_device/1",
            "protocol": self.protocol.fingerprint,
            "cohort": self._cohort,
            "kept": kept,
            **({"secure": False} if self._caveats else {}),
        }

    def __repr__(self) -> str:
        return f"{type(self).__name__}(of {self.protocol!r})"


def _flip_of(noise: Fraction) -> int:
    # More bits turned is more privacy.
    return ceil(noise / 2 * CERTAIN)


def _check_noise(noise: object) -> Fraction:
    value = check_probability(noise, name="noise")
    if value == 0:
        raise UnsafeMechanismError(
            "Without permanent noise the reports of one value give it away in the end: epsilon is infinite.",
            fix="use noise above 0, such as 0.5, or give epsilon.",
        )
    return value


def _check_coins(one_if_set: object, one_if_clear: object) -> tuple[Fraction, Fraction]:
    coins = check_probability(one_if_set, name="one_if_set"), check_probability(one_if_clear, name="one_if_clear")
    if not 0 < round(coins[1] * CERTAIN) < round(coins[0] * CERTAIN) < CERTAIN:
        raise ParameterError(
            "A 1 must be told as 1 more often than a 0, and neither always nor never.",
            fix="use 0 < one_if_clear < one_if_set < 1, such as 1/2 and 3/4.",
        )
    return coins


def _not_a_device() -> ParameterTypeError:
    return ParameterTypeError(
        "This is not the memory of a device of this protocol.", fix="give what RapporDevice.to_dict returned."
    )
