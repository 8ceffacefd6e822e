"""Frequent values of a huge domain, such as words, addresses or 32-bit codes, found without a list of candidates.

The prefix extending method (PEM; Wang, Li and Jha 2021): people fall into groups by a coin that does not depend on
their value, and a person of group i tells, by local hashing at the whole epsilon, the first bits of the value only,
the more the later the group. The collector counts all short prefixes with the first group, keeps the most frequent,
extends each by all endings, counts these with the next group, and so on to whole values. Everybody reports once.

A value is listed if its support in the last group is higher than chance explains: a value that nobody has is supported
by each report with one known probability, so that its support is binomial, and the bound holds for all candidates of
the last step together. The candidates come from other people's reports, so that this is a fair test. The promise needs
one exception: prefixes of more than 30 bits are folded to 31 bits (`_bit_strings`), and a candidate that shares its
number with a frequent value is listed with that value's count. For c candidates and v frequent values of w 16-bit
words that happens with a probability below ``c v (w - 1) / 2**31``, as long as nobody chooses values to collide: the
public point is known, and a person who makes reports up can do worse anyway (`poisoning`).

Privacy: claim epsilon-LDP. Group and hash function are drawn without looking at the value; given both, one bucket is
told by direct encoding, of ratio ``p (g - 1) / (1 - p) <= exp(epsilon)``.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from fractions import Fraction
from functools import partial
from math import log, sqrt
from statistics import NormalDist
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from cloister.core.exact import Number
from cloister.core.result import Result
from cloister.core.validation import check_count, check_probability
from cloister.core.wordings import percent
from cloister.data.columns import Category
from cloister.errors import ParameterError, TooFewReportsError
from cloister.local import _plausibility as plausibility
from cloister.local._affine_hashing import LARGEST_PRIME, candidate_counts, hash_codes, prime_for, support_probabilities
from cloister.local._bit_strings import EXACT_BITS, BitStrings, fold_point, pack_bits, prefix_codes
from cloister.local._output_space import Integer, OutputSpace, Payload
from cloister.local._plausibility import Test
from cloister.local.draws import CERTAIN, Draws
from cloister.local.estimates import ByValue, Floats, enough, z_of
from cloister.local.frequency.hashing import best_buckets, check_buckets
from cloister.local.frequency.randomized_response import lie_or_tell, truth_ratio
from cloister.local.frequency.support import is_one
from cloister.local.protocol import Protocol, lie_threshold, protocols

if TYPE_CHECKING:
    from cloister.plotting import Figure

__all__ = ["FrequentValues", "HeavyHitters"]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class FrequentValues(Result):
    """Values that stand out from the noise, the most frequent first.

    Attributes:
        values: what was found; a value that is not listed may still be there, below the threshold.
        raw_counts: an estimate for each.
        raw_errors: its standard error.
        reports: the number of reports.
        protocol: the name of the protocol.
        threshold: the estimated count from which a value is listed.
        false_alarm: the probability that a value which nobody has is listed at all.
    """

    schema: ClassVar[str] = "cloister.frequent_values/1"

    values: tuple[Category, ...]
    raw_counts: Floats = field(repr=False)
    raw_errors: Floats = field(repr=False)
    reports: int
    protocol: str
    threshold: float
    false_alarm: float
    notes: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(self.values)

    @property
    def counts(self) -> ByValue:
        """Return the estimated number of people with each value."""
        return self._by_value(self.raw_counts)

    @property
    def frequencies(self) -> ByValue:
        """Return the estimated share of each value."""
        return self._by_value(self.raw_counts / self.reports)

    @property
    def standard_errors(self) -> ByValue:
        """Return the standard error of each count."""
        return self._by_value(self.raw_errors)

    def intervals(self, confidence: Number = 0.95) -> dict[Category, tuple[float, float]]:
        """Return (low, high) for each count; a little too high for values near the threshold."""
        half = z_of(confidence) * self.raw_errors
        low, high = (self.raw_counts - half).tolist(), (self.raw_counts + half).tolist()
        return dict(zip(self.values, zip(low, high, strict=True), strict=True))

    def __str__(self) -> str:
        return (
            f"{len(self)} values above {percent(self.threshold / self.reports)} of {self.reports:,} reports "
            f"(chance of any false one {self.false_alarm:g}), {self.guarantee.brief()}"
        )

    def summary(self) -> tuple[tuple[str, str], ...]:
        """Return a small table of (name, text) rows for a person."""
        half = z_of(0.95) * self.raw_errors
        lines = tuple(
            (str(value), f"{count:,.0f} ± {margin:,.0f} (95%)")
            for value, count, margin in zip(self.values, self.raw_counts, half, strict=True)
        )
        kept = f"counts from {self.threshold:,.0f}; a false value is listed with probability {self.false_alarm:g}"
        rest = (("listed", kept), ("promise", self.guarantee.explain()))
        return (*lines, *rest, *(("note", note) for note in self.notes))

    def plot(self, *, title: str = "Frequent values") -> Figure:
        """Return bars of the shares with their 95% margins."""
        from cloister.plotting import bars_with_errors

        shares = 100 * self.raw_counts / self.reports
        margins = 100 * z_of(0.95) * self.raw_errors / self.reports
        subtitle = f"{self.reports:,} reports; bars show 95% margins; {self.guarantee.brief()}"
        return bars_with_errors(
            list(self.values), shares.tolist(), margins.tolist(), title=title, x="", y="percent", subtitle=subtitle
        )

    def _by_value(self, numbers: Iterable[Any]) -> ByValue:
        return ByValue(zip(self.values, map(float, numbers), strict=True))

    def _fields(self) -> dict[str, Any]:
        rows = zip(self.values, self.raw_counts.tolist(), self.raw_errors.tolist(), strict=True)
        return {
            "protocol": self.protocol,
            "reports": self.reports,
            "threshold": self.threshold,
            "false_alarm": self.false_alarm,
            "values": [
                {"value": value, "count": count, "share": count / self.reports, "standard_error": error}
                for value, count, error in rows
            ],
            "notes": list(self.notes),
        }


_FALSE_ALARM = Fraction(1, 100)


@protocols.register("heavy_hitters")
class HeavyHitters(Protocol):
    """Find the frequent values of a huge domain from one report per person (PEM).

    Args:
        kind: what values are: ``"integer"``, ``"bits"`` or ``"text"``.
        size: how long they are at most: bits, or for text bytes.
        epsilon: what one report costs.
        most: how many prefixes are kept at each step; values beyond that many are missed.
        candidates: how many prefixes are counted at a step, at most; more make fewer groups and take longer.
        buckets: the number of hash values; by default the one of smallest variance.
        key: a public name of the collection; it chooses how long prefixes are folded.

    Attributes:
        lengths: how many bits each group tells.

    >>> search = HeavyHitters(kind="integer", size=32, epsilon=2)
    >>> search.lengths
    (11, 17, 22, 27, 32)
    """

    name = "heavy_hitters"

    def __init__(
        self,
        *,
        kind: str = "text",
        size: object,
        epsilon: Number,
        most: int = 32,
        candidates: int = 2048,
        buckets: int | None = None,
        key: str = "",
    ) -> None:
        super().__init__(epsilon=epsilon)
        self.values = BitStrings.of(kind, size)
        self.most, self.candidates = check_count(most, name="most", at_least=1), _check_candidates(candidates, most)
        self._chosen, self.key = buckets, str(key)
        self.buckets = best_buckets(self.epsilon) if buckets is None else check_buckets(buckets)
        self.lengths = _plan(self.values.bits, self.most, self.candidates)
        self.prime = _prime(self.values.bits, self.buckets)
        self.truth = CERTAIN - lie_threshold(self.epsilon, self.buckets - 1)
        self._points = [fold_point(self.prime, self.key, length) for length in self.lengths]
        last = self.prime - 1
        self.output_space = OutputSpace(
            (
                Integer("group", 0, len(self.lengths) - 1),
                Integer("a", 0, last),
                Integer("b", 0, last),
                Integer("y", 0, self.buckets - 1),
            )
        )
        self._check_epsilon()

    @property
    def probabilities(self) -> tuple[Fraction, Fraction]:
        """Return (p, q): how often a report supports its sender's prefix, and any other of the same length."""
        return support_probabilities(self.prime, self.buckets, self.truth)

    @property
    def likelihood_ratio(self) -> Fraction:
        """Return the ratio of telling a bucket truly and as a lie."""
        return truth_ratio(self.truth, self.buckets)

    def encode(self, values: Any) -> tuple[NDArray[Any], bool]:  # one value or many
        """Return a row of bytes for each value, and whether it was a single value."""
        single = is_one(values)
        return self.values.encode([values] if single else values), single

    def perturb(self, codes: NDArray[Any], draws: Draws) -> Payload:
        """Return reports: the group, the function's two numbers, a toss whether to tell its bucket, the lie's step."""
        count = len(codes)
        groups = draws.below(len(self.lengths), count)
        a, b = draws.below(self.prime, count), draws.below(self.prime, count)
        numbers = np.empty(count, dtype=np.int64)
        for group in range(len(self.lengths)):
            members = groups == group
            numbers[members] = self._numbers(codes[members], group)
        hashed = hash_codes(a, b, numbers, self.prime, self.buckets)
        return self.output_space.rows(group=groups, a=a, b=b, y=lie_or_tell(hashed, self.buckets, self.truth, draws))

    def estimate(self, reports: Any, *, false_alarm: object = _FALSE_ALARM) -> FrequentValues:  # any reports
        """Return the frequent values with their counts.

        Args:
            reports: what devices sent.
            false_alarm: the probability that a value which nobody has is listed at all.

        Raises:
            ForeignReportError: if reports were made with another protocol.
            MalformedReportError: if a report is not one that this protocol can make.
            TooFewReportsError: if a group has none.
        """
        found, rate = self.read(reports), _check_false_alarm(false_alarm)
        self._check_groups(found.payload)
        step = self._search(found.payload)
        listed = step.supports >= step.least(float(self.probabilities[1]), float(rate))
        counts, errors = self._counts(step, len(found))
        order = np.flatnonzero(listed)[np.argsort(-counts[listed], kind="stable")]
        return FrequentValues(
            values=tuple(step.values[place] for place in order),
            raw_counts=counts[order],
            raw_errors=errors[order],
            reports=len(found),
            protocol=self.name,
            threshold=self._scale_support(
                step.least(float(self.probabilities[1]), float(rate)), step.reports, len(found)
            ),
            false_alarm=float(rate),
            notes=self._notes(len(step.values), int(listed.sum())),
            guarantee=self.guarantee_of(found),
        )

    def detectable(self, people: int, *, false_alarm: object = _FALSE_ALARM, power: object = "0.95") -> float:
        """Return the share that a value needs to be listed about as often as ``power``, before anybody is asked.

        >>> round(HeavyHitters(kind="integer", size=32, epsilon=2).detectable(1_000_000), 4)
        0.0115
        """
        group = enough(people) / len(self.lengths)
        p, q = map(float, self.probabilities)
        rate, chance = float(_check_false_alarm(false_alarm)), float(check_probability(power, name="power"))
        z = NormalDist().inv_cdf(1 - rate / self.candidates) + NormalDist().inv_cdf(chance)
        return z * sqrt(q * (1 - q) / group) / (p - q)

    def _numbers(self, rows: NDArray[Any], group: int) -> NDArray[np.int64]:
        return prefix_codes(rows, self.lengths[group], prime=self.prime, point=self._points[group])

    def _check_groups(self, payload: Payload) -> None:
        groups = np.bincount(payload["group"], minlength=len(self.lengths))
        if not groups.all():
            raise TooFewReportsError(
                f"One of {len(groups)} groups of people has no report, of {len(payload):,} in all.",
                fix="collect more reports first; detectable(people) says which shares can be found with how many.",
            )

    def _search(self, payload: Payload) -> _Step:
        """Extend prefixes group by group; return the supports of the whole values of the last step."""
        # The first step is split in the middle only so that its codes, too, are sums from two short lists.
        half = self.lengths[0] // 2
        kept, length = _all_bits(half), half
        for group, longer in enumerate(self.lengths):
            endings = _all_bits(longer - length)
            part = payload[payload["group"] == group]
            supports = self._supports(part, kept, endings, group).ravel()
            extended = np.hstack([np.repeat(kept, len(endings), axis=0), np.tile(endings, (len(kept), 1))])
            if group < len(self.lengths) - 1:
                # Every group decides once and is not looked at again, so that the last one tests fairly what the others
                # proposed.
                best = np.argsort(-supports, kind="stable")[: self.most]
                kept, length = extended[np.sort(best)], longer
        return _Step.of(self.values.decode(extended), supports, len(part))

    def _supports(
        self, part: Payload, kept: NDArray[np.uint8], endings: NDArray[np.uint8], group: int
    ) -> NDArray[np.int64]:
        a, b, y = (part[name].astype(np.int64) for name in ("a", "b", "y"))
        before, after = kept.shape[1], endings.shape[1]
        # Prefix and ending each get zeros at the other's place: numbers of disjoint bits add up.
        starts = pack_bits(np.pad(kept, ((0, 0), (0, after))))
        ends = pack_bits(np.pad(endings, ((0, 0), (before, 0))))
        return candidate_counts(
            a, b, y, self._numbers(starts, group), self._numbers(ends, group), prime=self.prime, buckets=self.buckets
        )

    def _counts(self, step: _Step, people: int) -> tuple[Floats, Floats]:
        """Return counts among all people and their errors: noise, and who happens to be in the last group."""
        p, q = map(float, self.probabilities)
        # Nobody but the last group told whole values; groups are drawn by coin, so that its shares stand for everybody.
        shares = (step.supports / step.reports - q) / (p - q)
        likely = np.clip(shares, 0, 1)
        noise = (likely * p * (1 - p) + (1 - likely) * q * (1 - q)) / (p - q) ** 2
        # Counts are about all reporters, of whom the last group is a sample without replacement.
        chance = likely * (1 - likely) * (1 - step.reports / people)
        return people * shares, people * np.sqrt((noise + chance) / step.reports)

    def _scale_support(self, support: int, reports: int, people: int) -> float:
        p, q = map(float, self.probabilities)
        return people * (support / reports - q) / (p - q)

    def _notes(self, candidates: int, found: int) -> tuple[str, ...]:
        notes = ["Listed because they stood out: counts near the threshold tend to be too high."]
        words = -(-self.values.bits // 16)
        if self.values.bits > EXACT_BITS:
            chance = candidates * max(1, found) * (words - 1) / self.prime
            notes.append(
                f"Long values are folded: with probability below {chance:.1g} a listed value is not there, "
                "but shares its fold with one that is."
            )
        return tuple(notes)

    def _domain_record(self) -> dict[str, Any]:
        return {}

    def _domain_words(self) -> str:
        unit = "bytes" if self.values.kind == "text" else "bits"
        return f"{self.values.kind} of {self.values.size} {unit}"

    @property
    def likeliest_report(self) -> float:
        """Return the logarithm of the largest probability of any report under any value."""
        # Function and group are uniform and independent of the value, so only the bucket has a likelihood of its own.
        return log(self.truth / CERTAIN) - 2 * log(self.prime) - log(len(self.lengths))

    def plausibility_tests(self) -> Iterator[Test]:
        """Yield what honest reports are compared with; see `_plausibility`."""
        groups = np.full(len(self.lengths), 1 / len(self.lengths))
        yield partial(plausibility.shares, field="group", law=groups, name="groups")
        yield partial(plausibility.functions, self)

    def poisoning_gains(self) -> tuple[float, float]:
        """Return by how much one report can raise, and lower, an estimated count."""
        p, q = map(float, self.probabilities)
        groups = len(self.lengths)
        # One report counts in its group only, and each group stands for all people: its weight grows by their number.
        return groups * (1 - q) / (p - q), groups * q / (p - q)

    @property
    def values_raised(self) -> int:
        """Return how many values one report can raise together."""
        return self.candidates

    def _options(self) -> dict[str, Any]:
        chosen = {} if self._chosen is None else {"buckets": self._chosen}
        shape = {"kind": self.values.kind, "size": self.values.size, "most": self.most, "candidates": self.candidates}
        return {**shape, "key": self.key, **chosen}

    def _params(self) -> dict[str, Any]:
        return {
            "prime": self.prime,
            "buckets": self.buckets,
            "truth": str(self.truth),
            "lengths": list(self.lengths),
            "points": self._points,
        }


@dataclass(frozen=True)
class _Step:
    """The candidates of the last step: whole values, how many reports support each, and of how many."""

    values: list[Any]
    supports: NDArray[np.int64]
    reports: int

    @classmethod
    def of(cls, values: list[Any], supports: NDArray[np.int64], reports: int) -> _Step:
        """Leave out the bits that no value has."""
        # Bits that are no text cannot be anybody's value, and must not cost the others a part of the rate.
        possible = [place for place, value in enumerate(values) if value is not None]
        return cls([values[place] for place in possible], supports[possible], reports)

    def least(self, q: float, false_alarm: float) -> int:
        """Return the least support that an absent value reaches with probability at most the rate per candidate."""
        from scipy.special import betainc

        # The rate is shared by all candidates; the tail falls with the support, so that halving finds the least one.
        rate, low, high = false_alarm / max(1, len(self.values)), 0, self.reports + 1
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (low, middle) if betainc(middle, self.reports - middle + 1, q) <= rate else (middle, high)
        return high


def _plan(bits: int, most: int, candidates: int) -> tuple[int, ...]:
    """Return prefix lengths: first as long as all can be counted, then as even steps as the kept prefixes allow."""
    first = min(bits, candidates.bit_length() - 1)
    # Each kept prefix is extended by all endings of a step, and together they must not be more than can be counted.
    step = max(1, (candidates // most).bit_length() - 1)
    more = -(-(bits - first) // step)
    return tuple(first + -(-(bits - first) * place // max(1, more)) for place in range(more + 1))


def _prime(bits: int, buckets: int) -> int:
    return prime_for(2**bits, buckets) if bits <= EXACT_BITS else LARGEST_PRIME


def _all_bits(length: int) -> NDArray[np.uint8]:
    """Return all strings of a length, in order, one row each."""
    return (np.arange(2**length)[:, None] >> np.arange(length - 1, -1, -1) & 1).astype(np.uint8)


def _check_candidates(candidates: int, most: int) -> int:
    least = 2 * most
    if not least <= check_count(candidates, name="candidates", at_least=2) <= 2**20:
        raise ParameterError(
            "The number of candidates at a step does not suit.", fix=f"use candidates between {least} and {2**20}."
        )
    return candidates


def _check_false_alarm(false_alarm: object) -> Fraction:
    rate = check_probability(false_alarm, name="false_alarm")
    if not 0 < rate < 1:
        raise ParameterError("false_alarm must be above 0 and below 1.", fix="use for example false_alarm=0.01.")
    return rate
