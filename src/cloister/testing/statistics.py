"""Statistical assertions: false alarms are rare enough to mean a bug, and wrong scales would have been noticed.

All of them are binned chi-square tests (Pearson 1900), also for continuous laws: with 50,000 samples and about 26
bins, a scale wrong by 5% is seen with a probability above 0.99 at a false-alarm rate of 1e-9, where a
Kolmogorov-Smirnov test is blind. Bins come from the law, not from the sample, hold at least 20 expected samples each,
and become finer in the tails. The rate is that of the chi-square approximation.

Never retry such an assertion, never loosen it, never fix a seed to make it pass. And test the test: `check_scale` also
demands that the same sample refutes a scale 10% too small and one 10% too large.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from itertools import combinations
from typing import TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import special

from cloister.core import validation
from cloister.errors import ParameterError, StatisticalError
from cloister.testing.distributions import Cdf, Distribution, Floats

__all__ = [
    "FALSE_ALARM",
    "SAMPLES",
    "ChiSquareFit",
    "check_distribution",
    "check_independent",
    "check_same_distribution",
    "check_scale",
    "fit",
    "fit_two",
]

FALSE_ALARM = 1e-9
"""The false-alarm rate of one assertion."""

SAMPLES = 50_000
"""How many samples an assertion uses unless told otherwise."""

LEAST_EXPECTED = 20
"""How many samples each bin is expected to hold, at least."""

_OFF_LATTICE = 1e-6
"""How far from a point of its lattice a value may lie by rounding, in steps."""

_MIDDLE_BINS = 20
_TAIL_STEP = 4
_MOST_PAIRS = 45

Integers: TypeAlias = NDArray[np.int64]


@dataclass(frozen=True, slots=True, kw_only=True)
class ChiSquareFit:
    """The outcome of a chi-square test; ``impossible`` says that a sample has probability zero under the law."""

    statistic: float
    degrees: int
    p_value: float
    impossible: bool = False

    def __str__(self) -> str:
        if self.impossible:
            return "a value of probability zero was drawn"
        return f"chi-square {self.statistic:.1f} with {self.degrees} degrees of freedom, p = {self.p_value:.2g}"


_IMPOSSIBLE = ChiSquareFit(statistic=math.inf, degrees=1, p_value=0.0, impossible=True)


def fit(sample: ArrayLike, law: Distribution) -> ChiSquareFit:
    """Return the chi-square test of a sample against a law."""
    values = _check_sample(sample)
    if law.lattice is not None and _leaves_lattice(values, law.lattice):
        return _IMPOSSIBLE
    expected, observed = (
        _finite_bins(values, law) if law.cdf is None else _line_bins(values.astype(np.float64), law.cdf, law.lattice)
    )
    # One value that cannot occur refutes a law, however few there are.
    if observed[expected <= 0].any():
        return _IMPOSSIBLE
    expected, observed = _merge_small(expected, observed)
    if len(expected) < 2:
        raise _too_small("law")
    return _chi_square(float(((observed - expected) ** 2 / expected).sum()), len(expected) - 1)


def check_distribution(
    sample: ArrayLike, law: Distribution, *, false_alarm: float = FALSE_ALARM, what: str = "The sample"
) -> None:
    """Raise unless a sample follows a law.

    Raises:
        StatisticalError: if a true sample would look so odd with a probability below ``false_alarm``.
    """
    outcome = fit(sample, law)
    if outcome.p_value < false_alarm:
        raise StatisticalError(
            f"{what} does not follow the stated law: {outcome}.",
            fix="check the scale and the sampler; do not retry, loosen the test or fix a seed.",
        )


def check_scale(
    draw: Callable[[int], ArrayLike],
    law_at_scale: Callable[[float], Distribution],
    *,
    scale: float,
    size: int = SAMPLES,
    false_alarm: float = FALSE_ALARM,
    what: str = "The sample",
) -> None:
    """Raise unless a sample follows the law at a scale *and* refutes 0.9 and 1.1 times that scale.

    Args:
        draw: returns as many samples as it is asked for.
        law_at_scale: returns the law at a scale.
        scale: the scale that is right.
        size: how many samples to draw.
        false_alarm: the rate of false alarms of each of the three tests.
        what: the subject of the error's sentence.

    Raises:
        StatisticalError: if the right scale is refuted, or if a wrong one is not.
    """
    sample = draw(validation.check_count(size, name="size", at_least=2))
    check_distribution(sample, law_at_scale(scale), false_alarm=false_alarm, what=what)
    for factor in (0.9, 1.1):
        outcome = fit(sample, law_at_scale(scale * factor))
        if outcome.p_value >= false_alarm:
            raise StatisticalError(
                f"This test cannot tell the scale from {factor} times the scale ({outcome}): it would miss a bug.",
                fix="draw more samples, or use a law that depends on the scale.",
            )


def fit_two(first: ArrayLike, second: ArrayLike) -> ChiSquareFit:
    """Return the chi-square test of two samples having one law, on bins of the pooled sample.

    Raises:
        ParameterError: if a sample is too small, or all values are the same, so that nothing can be tested.
    """
    one, two = _check_sample(first), _check_sample(second)
    codes = _codes(np.concatenate([one, two]), bins=_MIDDLE_BINS, least=2 * LEAST_EXPECTED)
    size = int(codes.max()) + 1
    left = np.bincount(codes[: len(one)], minlength=size).astype(np.float64)
    right = np.bincount(codes[len(one) :], minlength=size).astype(np.float64)
    if size < 2 or min(len(one), len(two)) < 2 * LEAST_EXPECTED:
        raise _too_small("samples")
    # Weighted so that samples of different sizes are compared by their shares.
    weight = np.sqrt(len(two) / len(one))
    return _chi_square(float(((weight * left - right / weight) ** 2 / (left + right)).sum()), size - 1)


def check_same_distribution(
    first: ArrayLike, second: ArrayLike, *, false_alarm: float = FALSE_ALARM, what: str = "The samples"
) -> None:
    """Raise unless two samples may come from one law.

    Raises:
        StatisticalError: if two samples of one law would differ so much with a probability below ``false_alarm``.
    """
    outcome = fit_two(first, second)
    if outcome.p_value < false_alarm:
        raise StatisticalError(f"{what} follow different laws: {outcome}.", fix="check what makes the two differ.")


def check_independent(sample: ArrayLike, *, false_alarm: float = FALSE_ALARM, what: str = "The noise") -> None:
    """Raise unless the columns of an (n, k) sample look independent in pairs and none of them is constant.

    This finds one scalar draw added to a whole vector: differences of coordinates would then be exact.

    Raises:
        StatisticalError: if two coordinates depend on each other, or one has no noise at all.
        ParameterError: if a column has too few values, or too few different ones, for two bins.
    """
    table = np.asarray(sample, dtype=np.float64)
    if table.ndim != 2 or table.shape[1] < 2:
        raise ParameterError(
            "Independence needs one row per draw and at least two columns.", fix="give an array of shape (n, k)."
        )
    # Two bins of so many values each are expected to share at least LEAST_EXPECTED where they are independent.
    least = math.sqrt(LEAST_EXPECTED * len(table))
    codes = [_codes(table[:, column], bins=4, least=least) for column in range(table.shape[1])]
    for column in range(table.shape[1]):
        if np.ptp(table[:, column]) == 0:
            raise StatisticalError(f"{what} is missing in coordinate {column}.", fix="draw noise for every coordinate.")
    if any(not code.any() for code in codes):
        raise _too_small("columns")
    pairs = list(combinations(range(len(codes)), 2))
    # All pairs of many coordinates would take too long; noise that is shared shows between neighbors, too.
    if len(pairs) > _MOST_PAIRS:
        pairs = [(column, column + 1) for column in range(len(codes) - 1)]
    for left, right in pairs:
        outcome = _contingency(codes[left], codes[right])
        # By the union bound the pairs share the false-alarm rate.
        if outcome.p_value < false_alarm / len(pairs):
            raise StatisticalError(
                f"{what} is not independent between coordinates {left} and {right}: {outcome}.",
                fix="draw one independent value per coordinate.",
            )


def _too_small(what: str) -> ParameterError:
    has = "has" if what == "law" else "have"
    return ParameterError(
        f"The {what} {has} fewer than two bins of 20 expected samples: nothing can be tested.",
        fix="draw more samples, or compare a law that is not constant.",
    )


def _check_sample(sample: ArrayLike) -> NDArray[np.generic]:
    values = np.asarray(sample)
    if values.ndim != 1 or not values.size:
        raise ParameterError("A sample is one row of values.", fix="give a one-dimensional array that is not empty.")
    if np.issubdtype(values.dtype, np.inexact) and not np.isfinite(values).all():
        raise StatisticalError("The sample holds NaN or infinities.", fix="check the sampler.")
    return values


def _leaves_lattice(values: NDArray[np.generic], lattice: float) -> bool:
    """Return whether a value lies between the points of a lattice, where its law has no probability at all.

    Bins would count such values as their neighbors, so that a finer lattice would be refuted by chance only.
    """
    steps = values.astype(np.float64) / lattice
    return bool((np.abs(steps - np.round(steps)) > _OFF_LATTICE).any())


def _finite_bins(values: NDArray[np.generic], law: Distribution) -> tuple[Floats, Floats]:
    """Return expected and observed counts per value, with a last bin of probability zero for all other values."""
    known = dict(law.probabilities or {})
    seen, counts = np.unique(values, return_counts=True)
    observed = dict(zip(seen.tolist(), counts.tolist(), strict=True))
    expected = [len(values) * probability for probability in known.values()]
    inside = [observed.get(value, 0) for value in known]
    return np.array([*expected, 0.0]), np.array([*inside, len(values) - sum(inside)], dtype=np.float64)


def _line_bins(values: Floats, cdf: Cdf, lattice: float | None) -> tuple[Floats, Floats]:
    """Return expected and observed counts in intervals (a, b] whose ends come from the law."""
    edges = np.unique(_quantiles(cdf, _levels(len(values)), lattice))
    expected = len(values) * np.diff(np.concatenate(([0.0], cdf(edges), [1.0])))
    bins = np.searchsorted(edges, values, side="left")
    return expected, np.bincount(bins, minlength=len(edges) + 1).astype(np.float64)


def _levels(size: int) -> Floats:
    """Return the cumulative probabilities at which bins end: equal in the middle, ever smaller in the tails."""
    middle = max(2, min(_MIDDLE_BINS, size // LEAST_EXPECTED))
    levels = list(np.arange(1, middle) / middle)
    tail = 1 / middle / _TAIL_STEP
    # A tail bin has three quarters of what is left, and must still hold enough samples.
    while tail * size * (1 - 1 / _TAIL_STEP) >= LEAST_EXPECTED:
        levels += [tail, 1 - tail]
        tail /= _TAIL_STEP
    return np.sort(np.array(levels))


def _quantiles(cdf: Cdf, levels: Floats, lattice: float | None) -> Floats:
    """Return, for each level, nearly the smallest point at which a cdf reaches it, by bisection."""
    low, high = np.full(len(levels), -1.0), np.full(len(levels), 1.0)
    # Doubling finds ends beyond the levels for any scale, without knowing the law.
    for _ in range(1000):
        below, above = cdf(low) > levels, cdf(high) < levels
        if not (below.any() or above.any()):
            break
        low, high = np.where(below, 2 * low, low), np.where(above, 2 * high, high)
    for _ in range(80):
        middle = (low + high) / 2
        reached = cdf(middle) >= levels
        low, high = np.where(reached, low, middle), np.where(reached, middle, high)
    # On a lattice bisection ends within rounding of a point, which is meant.
    return high if lattice is None else np.round(high / lattice) * lattice


def _merge_small(expected: Floats, observed: Floats) -> tuple[Floats, Floats]:
    """Join bins with few expected samples to their neighbors."""
    codes = _groups(expected, least=LEAST_EXPECTED)
    return _sums(codes, expected), _sums(codes, observed)


def _sums(codes: Integers, weights: Floats) -> Floats:
    return np.asarray(np.bincount(codes, weights=weights), dtype=np.float64)


def _groups(weights: Floats, *, least: float) -> Integers:
    """Return the number of the group of each bin, neighbors being joined until a group weighs enough."""
    groups, total, group = [], 0.0, 0
    for weight in weights:
        if total >= least:
            group, total = group + 1, 0.0
        groups.append(group)
        total += weight
    codes = np.array(groups, dtype=np.int64)
    # What is left at the end is too light for a group of its own.
    if total < least and group > 0:
        codes[codes == group] = group - 1
    return codes


def _codes(values: NDArray[np.generic], *, bins: int, least: float) -> Integers:
    """Return the number of the bin of each value: about ``bins`` of them, none with fewer than ``least`` values."""
    _, codes, counts = np.unique(values, return_inverse=True, return_counts=True)
    weights = counts.astype(np.float64)
    groups = _groups(weights, least=max(least, len(values) / bins if len(counts) > bins else 0))
    if not groups.any():  # one value outweighs all others
        groups = _groups(weights, least=least)
    return np.asarray(groups[codes], dtype=np.int64)


def _contingency(left: Integers, right: Integers) -> ChiSquareFit:
    rows, columns = int(left.max()) + 1, int(right.max()) + 1
    observed = np.bincount(left * columns + right, minlength=rows * columns).reshape(rows, columns)
    expected = np.outer(observed.sum(axis=1), observed.sum(axis=0)) / len(left)
    degrees = max(1, (rows - 1) * (columns - 1))
    return _chi_square(float(((observed - expected) ** 2 / expected).sum()), degrees)


def _chi_square(statistic: float, degrees: int) -> ChiSquareFit:
    return ChiSquareFit(statistic=statistic, degrees=degrees, p_value=float(special.chdtrc(degrees, statistic)))
