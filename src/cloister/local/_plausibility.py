"""Plausibility: whether reports look like the work of honest devices, for any true values that people may have.

Each test compares a count with a law that holds *whatever people's values are*, or with a bound on it, so that odd but
true data never raise an alarm. A count of honest reports with probabilities between ``low`` and ``high`` lies
between two binomials (each is a sum of independent tosses), and the tails of those are exact. Covariances of two
bits have mean zero for honest reports, and Bernstein's inequality bounds them. Many comparisons are paid for by
Bonferroni. So the stated rate of false alarms is a bound, not an approximation.

For numbers: a bit of Duchi's has a probability between those at the two bounds, and a cell of a sliding window one
between those outside and inside of the window. A number with noise is above any threshold more often the larger it was:
the share of reports above lies between that of everybody at the lower bound and that of everybody at the upper one.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import lgamma
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from cloister.local._output_space import Payload
from cloister.local._packed_rows import column_counts
from cloister.local.draws import CERTAIN
from cloister.local.estimates import Floats

if TYPE_CHECKING:
    from cloister.local.frequency.hashing import OptimizedLocalHashing
    from cloister.local.frequency.rappor import Rappor
    from cloister.local.frequency.support import SupportProtocol
    from cloister.local.heavy_hitters import HeavyHitters
    from cloister.local.numeric._window import Window
    from cloister.local.numeric.duchi import Bit
    from cloister.local.protocol import Protocol

__all__ = [
    "PlausibilityFinding",
    "Test",
    "bits",
    "bits_between",
    "bits_by_cohort",
    "cells",
    "cells_between",
    "cells_of_numbers",
    "corners",
    "equal_parts",
    "findings_of",
    "functions",
    "noise",
    "noise_reach",
    "number_of_ones",
    "ones_between",
    "ones_law",
    "outside",
    "pairs",
    "parts",
    "shares",
    "supports",
    "symbols",
    "which_numbers",
]


_BINS = 64
_COARSE = 16
_COLUMNS = 64
_CHUNK = 2**16
_MULTIPLIER = 0x9E3779B97F4A7C15
"""The golden ratio in 64 bits: it spreads fingerprints of rows."""

_ONES = np.unpackbits(np.arange(256, dtype=np.uint8)[:, None], axis=1).sum(axis=1).astype(np.int64)


@dataclass(frozen=True)
class PlausibilityFinding:
    """The outcome of one test.

    Attributes:
        name: what was tested.
        problem: one sentence, in case of an alarm.
        chance: a bound on the probability that honest reports look at least so odd.
    """

    name: str
    problem: str
    chance: float

    def to_dict(self) -> dict[str, Any]:
        """Return JSON-ready values."""
        return {"test": self.name, "problem": self.problem, "chance": self.chance}


Test = Callable[[Payload], PlausibilityFinding]


def findings_of(protocol: Protocol, payload: Payload) -> tuple[PlausibilityFinding, ...]:
    """Return the outcome of every test of a protocol, and of the one for reports that are the same."""
    found = [test(payload) for test in protocol.plausibility_tests()]
    return (*found, duplicates(payload, likeliest=protocol.likeliest_report))


def supports(protocol: SupportProtocol, payload: Payload) -> PlausibilityFinding:
    """Compare how many reports support each value with nobody and with everybody having it."""
    p, q = map(float, protocol.probabilities)
    counts = protocol.support_counts(payload)
    chance, place = outside(counts, len(payload), q, p)
    problem = (
        f"{int(counts[place]):,} of {len(payload):,} reports support one answer; if nobody has it about "
        f"{q * len(payload):,.0f} do, if everybody has it about {p * len(payload):,.0f}."
    )
    return PlausibilityFinding("supports", problem, chance)


def bits_by_cohort(protocol: Rappor, payload: Payload) -> PlausibilityFinding:
    """Compare how often each bit of the filters is set, cohort by cohort, with nobody and with everybody setting it."""
    counted = protocol.counted(payload)
    chance, _ = outside(counted.ones, counted.reports[:, None], counted.one_if_clear, counted.one_if_set)
    return PlausibilityFinding(
        "supports", "A bit of the filter is set more or less often than any people's values explain.", chance
    )


def symbols(payload: Payload, *, low: Floats, high: Floats, field: str = "y") -> PlausibilityFinding:
    """Compare how often each report was sent with the least and the largest probability that it may have."""
    counts = np.bincount(payload[field], minlength=len(low))
    chance, place = outside(counts, len(payload), low, high)
    problem = (
        f"One report was sent {int(counts[place]):,} times; honest devices send it between about "
        f"{low[place] * len(payload):,.0f} and {high[place] * len(payload):,.0f} times, whatever people's values are."
    )
    return PlausibilityFinding("symbols", problem, chance)


def shares(payload: Payload, *, field: str, law: Floats, name: str) -> PlausibilityFinding:
    """Compare how often each value of a public field was drawn with its law, which no value changes."""
    counts = np.bincount(payload[field], minlength=len(law))
    chance, place = outside(counts, len(payload), law, law)
    problem = (
        f"One of the {name} has {int(counts[place]):,} reports, of about {law[place] * len(payload):,.0f} expected."
    )
    return PlausibilityFinding(name, problem, chance)


def functions(protocol: OptimizedLocalHashing | HeavyHitters, payload: Payload) -> PlausibilityFinding:
    """Test that functions are drawn uniformly, and that the told bucket does not depend on the function's slope."""
    prime, n = protocol.prime, len(payload)
    a, b, y = (payload[name].astype(np.int64) for name in ("a", "b", "y"))
    # Whoever wants to raise chosen answers picks slope and bucket together, which honest devices cannot.
    told = _bucket_law(protocol)
    slopes, fine = equal_parts(prime, _BINS), equal_parts(prime, _COARSE)
    joint = np.bincount(a * _COARSE // prime * len(told) + y, minlength=_COARSE * len(told))
    chances = [
        outside(np.bincount(a * _BINS // prime, minlength=_BINS), n, slopes, slopes)[0],
        outside(np.bincount(b * _BINS // prime, minlength=_BINS), n, slopes, slopes)[0],
        outside(joint, n, *2 * (np.outer(fine, told).ravel(),))[0],
        # A slope of zero hashes every value alike, so that one report supports the whole domain: it is watched by
        # itself.
        outside(np.array([(a == 0).sum()]), n, 1 / prime, 1 / prime)[0],
    ]
    problem = "The hash functions are not drawn as devices draw them: some kinds come too often or too seldom."
    return PlausibilityFinding("functions", problem, min(1.0, len(chances) * min(chances)))


def _bucket_law(protocol: OptimizedLocalHashing | HeavyHitters) -> Floats:
    """Return the law of the told bucket, the same for every value and slope."""
    small, larger = divmod(protocol.prime, protocol.buckets)
    # The offset b is uniform: a value falls into a bucket in proportion to its residues, whatever the slope is.
    hashed = (small + (np.arange(protocol.buckets) < larger)) / protocol.prime
    truth = protocol.truth / CERTAIN
    return np.asarray(hashed * truth + (1 - hashed) * (1 - truth) / (protocol.buckets - 1))


def equal_parts(prime: int, parts: int) -> Floats:
    """Return the share of each of so many parts of the integers below a number, as even as integers allow."""
    # The integers with a * parts // prime == k begin at the ceiling of k * prime / parts.
    edges = -(-np.arange(parts + 1) * prime // parts)
    return np.asarray(np.diff(edges) / prime)


def _counts_of_ones(payload: Payload, size: int) -> NDArray[np.int64]:
    """Return how many reports have each number of ones."""
    ones = np.concatenate(
        [_ONES[payload["bits"][start : start + _CHUNK]].sum(axis=1) for start in range(0, len(payload), _CHUNK)]
    )
    return np.bincount(ones, minlength=size)


def ones_between(payload: Payload, *, fewest: Floats, most: Floats) -> PlausibilityFinding:
    """Compare how many reports have at least so many ones with those of people who pick nothing, or all they may."""
    # Another pick never makes ones rarer, so that tails, unlike single counts, lie between the two extremes.
    observed = _counts_of_ones(payload, len(most))[::-1].cumsum()[::-1][1:]
    low, high = (np.minimum(law[::-1].cumsum()[::-1][1:], 1.0) for law in (fewest, most))
    chance, place = outside(observed, len(payload), low, high)
    problem = (
        f"{int(observed[place]):,} reports have at least {place + 1:,} ones; honest devices send between about "
        f"{low[place] * len(payload):,.0f} and {high[place] * len(payload):,.0f} such, whatever people picked."
    )
    return PlausibilityFinding("ones", problem, chance)


def number_of_ones(payload: Payload, *, law: Floats) -> PlausibilityFinding:
    """Compare how many reports have each number of ones, at least it and at most it, with the exact law."""
    counts = _counts_of_ones(payload, len(law))
    observed = np.concatenate([counts, counts.cumsum(), counts[::-1].cumsum()])
    # Sums of rounded probabilities may pass one by a hair, which no tail accepts.
    expected = np.minimum(np.concatenate([law, law.cumsum(), law[::-1].cumsum()]), 1.0)
    chance, place = outside(observed, len(payload), expected, expected)
    problem = (
        f"The number of ones per report does not follow its law: {int(observed[place]):,} reports in one range of it, "
        f"where {expected[place] * len(payload):,.1f} are expected."
    )
    return PlausibilityFinding("ones", problem, chance)


def ones_law(size: int, own: int, p: float, q: float) -> Floats:
    """Return the law of the number of ones among so many bits of which some are the sender's own."""
    return np.convolve(_binomial(own, p), _binomial(size - own, q))


def _binomial(count: int, p: float) -> Floats:
    from scipy.special import gammaln, xlog1py, xlogy

    k = np.arange(count + 1)
    # In logarithms, as binomial coefficients leave the floats beyond a thousand bits.
    return np.asarray(
        np.exp(gammaln(count + 1) - gammaln(k + 1) - gammaln(count - k + 1) + xlogy(k, p) + xlog1py(count - k, -p))
    )


def pairs(payload: Payload, *, size: int, p: float, q: float, neither: float, one: float) -> PlausibilityFinding:
    """Compare how often two bits are set together with what their own frequencies imply.

    Given the sender's value, two bits are both set with probability ``one`` if one of them is its own and ``neither``
    if not. So ``B C - neither - k (B + C - 2 q)`` with ``k = (one - neither) / (p - q)`` has mean zero.
    """
    slope = (one - neither) / (p - q)
    both, counts = _together(payload, size)
    sums = both - len(payload) * neither - slope * (counts[:, None] + counts - 2 * q * len(payload))
    # A bit with itself is no pair.
    np.fill_diagonal(sums, 0)
    variance, most = _pair_moments(p, q, neither, one)
    worst = float(np.abs(sums).max())
    # Every pair is paid for, in both directions, and not the chosen columns alone: the reports chose those.
    comparisons = size * (size - 1)
    bound = comparisons * np.exp(-(worst**2) / (2 * (len(payload) * variance + most * worst / 3)))
    problem = "Some answers are supported together by the same reports far more or less often than by chance."
    return PlausibilityFinding("pairs", problem, float(min(1.0, bound)))


def _pair_moments(p: float, q: float, neither: float, one: float) -> tuple[float, float]:
    """Return the largest variance of a report's term, and its largest absolute value."""
    slope = (one - neither) / (p - q)
    terms = np.array([both - neither - slope * (first + both - 2 * q) for first, both in ((0, 0), (1, 0), (1, 1))])
    # These are all cases of two bits: neither set, exactly one, both.
    none = np.array([1 - 2 * q + neither, 2 * (q - neither), neither])
    own = np.array([1 - p - q + one, p + q - 2 * one, one])
    # The worse of the two kinds of senders bounds the variance, whoever holds which value.
    return float(max(none @ terms**2, own @ terms**2)), float(np.abs(terms).max())


def _together(payload: Payload, size: int) -> tuple[Floats, Floats]:
    """Return how often pairs of bits are set together, of the bits that are set most often, and how often each is."""
    counts = column_counts(payload["bits"], size)
    # All pairs of a large domain are too many, and whoever raises answers together also makes them frequent.
    chosen = np.sort(np.argsort(-counts, kind="stable")[:_COLUMNS])
    both = np.zeros((len(chosen), len(chosen)))
    for start in range(0, len(payload), _CHUNK):
        packed = np.ascontiguousarray(payload["bits"][start : start + _CHUNK].T)
        # A chunk has at most 2**16 ones in a column, which 32-bit floats add exactly and multiply fastest.
        bits = (packed[chosen >> 3] >> (chosen & 7).astype(np.uint8)[:, None] & 1).astype(np.float32)
        both += bits @ bits.T
    return both, counts[chosen].astype(np.float64)


def noise_reach(payload: Payload, *, scale: float, most: int) -> PlausibilityFinding:
    """Bound how far noise reaches: a cell between 0 and a number of steps plus discrete Laplace noise."""
    cells = payload["cells"]
    distance = max(int(cells.max()) - most, -int(cells.min()), 0)
    decay = float(np.exp(-1 / scale))
    # Either side of the noise reaches so far with probability decay**distance / (1 + decay), and any cell may be the
    # one.
    bound = 2 * cells.size * decay**distance / (1 + decay)
    problem = "A report holds a number further out than noise reaches."
    return PlausibilityFinding("cells", problem, float(min(1.0, bound)))


def duplicates(payload: Payload, *, likeliest: float) -> PlausibilityFinding:
    """Bound the chance that any row comes so often: ``C(n, c) P**(c - 1)`` for the likeliest row's probability P."""
    n, copies = len(payload), _most_copies(payload)
    # Any c of the n rows may be the equal ones: the first of them is free, each further one has to hit it.
    bound = lgamma(n + 1) - lgamma(copies + 1) - lgamma(n - copies + 1) + (copies - 1) * likeliest
    problem = f"{copies:,} reports are the same, where so many hardly ever agree by chance."
    return PlausibilityFinding("duplicates", problem, float(np.exp(min(0.0, bound))) if copies > 1 else 1.0)


def _most_copies(payload: Payload) -> int:
    """Return how often the most frequent row comes; rows are compared only where their fingerprints agree."""
    width = payload.dtype.itemsize
    padded = np.zeros((len(payload), -(-width // 8) * 8), dtype=np.uint8)
    padded[:, :width] = np.ascontiguousarray(payload).view(np.uint8).reshape(len(payload), width)
    words = padded.view(np.uint64)
    prints = words[:, 0].copy()
    for column in words.T[1:]:
        prints *= np.uint64(_MULTIPLIER)
        prints ^= prints >> np.uint64(29)
        prints += column
    _, places, counts = np.unique(prints, return_inverse=True, return_counts=True)
    repeated = words[counts[places] > 1]
    return int(np.unique(repeated, axis=0, return_counts=True)[1].max()) if len(repeated) else 1


def outside(counts: ArrayLike, n: ArrayLike, low: ArrayLike, high: ArrayLike) -> tuple[float, int]:
    """Return a bound on the chance of the oddest of some counts, and where it is.

    Args:
        counts: how often things happened.
        n: out of how many reports.
        low: the least probability that an honest report may have, for each.
        high: the largest.
    """
    from scipy.special import betainc

    observed, total, least, largest = np.broadcast_arrays(*map(np.asarray, (counts, n, low, high)))
    # Tails of binomials are incomplete beta functions: exact where sums over many reports would lose digits.
    above = np.where(observed > 0, betainc(np.maximum(observed, 1), total - observed + 1, largest), 1.0)
    below = np.where(observed < total, betainc(np.maximum(total - observed, 1), observed + 1, 1 - least), 1.0)
    chances = np.minimum(above, below).ravel()
    place = int(np.argmin(chances))
    # Two tails for each count are paid for, since the oddest of them was picked after looking.
    return float(min(1.0, 2 * chances.size * chances[place])), place


_NUMBER_BINS = 64
_SCALES = 12
"""How many scales beyond the bounds thresholds for noisy numbers are set: 3 reports in a million are beyond."""


def bits_between(bit: Bit) -> tuple[Floats, Floats]:
    """Return the least and the largest probability of a 0 and of a 1."""
    low, high = bit.low / CERTAIN, bit.high / CERTAIN
    return np.array([1 - high, low]), np.array([1 - low, high])


def cells_between(window: Window) -> tuple[Floats, Floats]:
    """Return the least and the largest probability of each of equal ranges of cells."""
    sizes = np.rint(equal_parts(window.cells, _NUMBER_BINS) * window.cells)
    inside, far = float(window.inside) / window.width, float(1 - window.inside) / window.steps
    # At most one window's width of cells can be inside at once, wherever people's numbers are.
    within = np.minimum(sizes, window.width)
    return sizes * min(inside, far), np.minimum(within * max(inside, far) + (sizes - within) * min(inside, far), 1.0)


def parts(payload: Payload, *, share: float) -> PlausibilityFinding:
    """Compare how often the public coin chose a point with its law."""
    points = int((payload["part"] == 1).sum())
    chance, _ = outside([points], len(payload), share, share)
    problem = f"{points:,} reports are points rather than bits, of about {share * len(payload):,.0f} expected."
    return PlausibilityFinding("parts", problem, chance)


def bits(payload: Payload, *, low: Floats, high: Floats, part: int | None = None) -> PlausibilityFinding:
    """Compare how often each bit was sent with everybody at either bound."""
    return _compare_counts(np.bincount(_select_part(payload, part), minlength=2), len(payload), low, high, name="bits")


def cells(payload: Payload, *, count: int, low: Floats, high: Floats, part: int | None = None) -> PlausibilityFinding:
    """Compare how many reports are in each of equal ranges of cells with windows beside and around it."""
    counts = np.bincount(_select_part(payload, part) * _NUMBER_BINS // count, minlength=_NUMBER_BINS)
    return _compare_counts(counts, len(payload), low, high, name="cells")


def cells_of_numbers(payload: Payload, *, window: Window) -> PlausibilityFinding:
    """Compare the cells of several reported numbers, place by place in the report."""
    low, high = cells_between(window)
    bins = payload["y"].astype(np.int64) * _NUMBER_BINS // window.cells + _NUMBER_BINS * np.arange(
        payload["y"].shape[1]
    )
    counts = np.bincount(bins.ravel(), minlength=_NUMBER_BINS * payload["y"].shape[1])
    repeats = payload["y"].shape[1]
    return _compare_counts(counts, len(payload), np.tile(low, repeats), np.tile(high, repeats), name="cells")


def which_numbers(payload: Payload, *, dimensions: int, share: float) -> PlausibilityFinding:
    """Compare how often each number is spoken about, which does not depend on what anybody's numbers are."""
    counts = np.bincount(payload["numbers"].ravel(), minlength=dimensions)
    same = np.full(dimensions, share)
    return _compare_counts(counts, len(payload), same, same, name="numbers")


def corners(payload: Payload, *, dimensions: int, size: float) -> PlausibilityFinding:
    """Compare how often each bit is set: with ``(1 + x / size) / 2`` for a number x in [-1, 1]."""
    ones = np.unpackbits(payload["y"], axis=1, count=dimensions, bitorder="little").sum(axis=0, dtype=np.int64)
    low, high = (np.full(dimensions, (1 + end / size) / 2) for end in (-1, 1))
    return _compare_counts(ones, len(payload), low, high, name="bits")


def noise(payload: Payload, *, scale: float, ends: tuple[int, int]) -> PlausibilityFinding:
    """Compare how many reports are at or above each of some thresholds with what either end would give."""
    told = payload["y"].reshape(len(payload), -1).astype(np.float64)
    beyond = _SCALES * scale
    # Thresholds are set from public bounds and the scale alone, so that no report chooses what it is compared with.
    thresholds = np.unique(np.rint(np.linspace(ends[0] - beyond, ends[1] + beyond, _NUMBER_BINS)))
    counts = np.array([(told >= threshold).sum(axis=0) for threshold in thresholds])
    low, high = (np.broadcast_to(_reaches(thresholds - end, scale)[:, None], counts.shape) for end in ends)
    return _compare_counts(counts.ravel(), len(payload), low.ravel(), high.ravel(), name="noise")


def _reaches(distance: Floats, scale: float) -> Floats:
    """Return how often discrete Laplace noise is at least a whole number."""
    with_one = 1 + np.exp(-1 / scale)
    above, below = np.exp(-np.maximum(distance, 0) / scale), np.exp(-np.maximum(1 - distance, 0) / scale)
    return np.asarray(np.where(distance > 0, above / with_one, 1 - below / with_one))


def _select_part(payload: Payload, part: int | None) -> NDArray[np.int64]:
    rows = payload if part is None else payload[payload["part"] == part]
    return np.asarray(rows["y"].astype(np.int64))


def _compare_counts(counts: NDArray[np.int64], n: int, low: Floats, high: Floats, *, name: str) -> PlausibilityFinding:
    chance, place = outside(counts, n, low, high)
    problem = (
        f"{int(counts[place]):,} reports say much the same; honest devices send between about {low[place] * n:,.0f} "
        f"and {high[place] * n:,.0f} such, whatever people's numbers are."
    )
    return PlausibilityFinding(name, problem, chance)
