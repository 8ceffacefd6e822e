"""How many people are unique in the population that a table is a sample of.

Each family of `_intensity_mixtures` is fitted to the classes in the table; the one with the best Schwarz criterion is
used. For a class that occurs once, the fitted intensities say how likely it is that nobody else in the population is
like it: P(F = 1 | f = 1) = E[x exp(-x)] / E[x exp(-rate x)], x the class's intensity in the population (Skinner and
Shlomo 2008 for known x). Summed over the sample uniques and divided by the sampling rate, this estimates the number of
people who are unique in the population.

What a log-linear model expects of each class comes from the shares of single values and of pairs. The model is the tree
of the strongest pairs (Chow and Liu 1968), the simplest log-linear model with interactions. A class does not count
towards its own expectation: otherwise classes that were drawn by chance would seem likely.

Not promised: the interval covers chance in sampling and fitting, not a family that is wrong, nor a sample that was not
drawn at random. No sample can refute that all its unseen people are alone; a table in which nobody is like anybody else
says nothing, and the whole range is returned.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cloister.anonymize.risk._intensity_mixtures import (
    LARGEST,
    Array,
    FittedMixture,
    IntensityGrid,
    fit_gamma,
    fit_lognormal,
)
from cloister.core.lazy_imports import late_module
from cloister.core.validation import check_confidence, check_count
from cloister.errors import ParameterError

__all__ = ["PopulationRisk", "estimate_population"]


_LARGEST_PAIR = 2**22
_HALF = 0.5
_SHRINKAGE = 2.0


def expected_logarithms(codes: NDArray[np.integer], counts: NDArray[np.int64]) -> Array:
    """Return the logarithm of each class's expected share.

    Args:
        codes: the value codes of each class, one column per attribute, from 0.
        counts: how many rows each class has.
    """
    total = float(counts.sum())
    columns = [_compact(codes[:, place]) for place in range(codes.shape[1])]
    sums = [np.bincount(column, weights=counts)[column].astype(np.float64) for column in columns]
    # Half a row keeps a value that nobody else has from having no logarithm.
    others = [np.maximum(own - counts, 0) + _HALF for own in sums]
    result = np.zeros(len(counts))
    for own in others:
        result += np.log(own / total)
    for first, second in _strongest_tree(columns, sums, counts):
        together = np.maximum(_pair_sums(columns[first], columns[second], counts) - counts, 0)
        independent = others[first] * others[second] / total
        # Pairs that were seen rarely say little, and are pulled towards independence.
        result += np.log((together + _SHRINKAGE) / (independent + _SHRINKAGE))
    return result


def _strongest_tree(
    columns: list[NDArray[np.int64]], sums: list[Array], counts: NDArray[np.int64]
) -> list[tuple[int, int]]:
    """Return the pairs of the tree with the largest mutual information, those without any left out."""
    pairs = list(itertools.combinations(range(len(columns)), 2))
    strength = {(a, b): _information(columns[a], columns[b], sums[a], sums[b], counts) for a, b in pairs}
    group = list(range(len(columns)))
    chosen = []
    # Kruskal's way: the strongest pair that does not close a circle, again and again.
    for first, second in sorted(pairs, key=strength.__getitem__, reverse=True):
        if strength[first, second] > 0 and group[first] != group[second]:
            chosen.append((first, second))
            old, new = group[first], group[second]
            group = [new if item == old else item for item in group]
    return chosen


def _information(
    first: NDArray[np.int64],
    second: NDArray[np.int64],
    first_sums: Array,
    second_sums: Array,
    counts: NDArray[np.int64],
) -> float:
    """Return the mutual information of two columns, less what chance alone would show (Miller 1955)."""
    total = float(counts.sum())
    together = _pair_sums(first, second, counts)
    observed = float((counts * np.log(together * total / (first_sums * second_sums))).sum()) / total
    freedom = min(float(first.max()) * float(second.max()), float(len(counts)))
    return observed - freedom / (2 * total)


def _pair_sums(first: NDArray[np.int64], second: NDArray[np.int64], counts: NDArray[np.int64]) -> Array:
    width = int(second.max()) + 1
    key = first * width + second
    if (int(first.max()) + 1) * width > _LARGEST_PAIR:
        key = _compact(key)
    return np.asarray(np.bincount(key, weights=counts)[key])


def _compact(column: NDArray[np.integer]) -> NDArray[np.int64]:
    """Return codes without gaps where gaps would cost memory."""
    column = column.astype(np.int64) - int(column.min())
    if int(column.max()) < max(2 * len(column), 2**16):
        return column
    return np.unique(column, return_inverse=True)[1].astype(np.int64)


special = late_module("scipy.special")


_GROUPS = 24
_FEWEST_REPEATED = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class PopulationRisk:
    """What a sample tells about the population behind it.

    Attributes:
        population: the number of people in the population.
        sample: the number of rows in the table.
        uniqueness: the estimated share of the population's people who are unique in it.
        interval: an interval for the uniqueness, given that the family is right.
        confidence: the confidence of the interval.
        unique_matches: the estimated share of the table's unique rows that are unique in the population too.
        journalist: the estimated chance, averaged over rows, that a link to a person of the population is right.
        model: the family that fitted best.
    """

    population: int
    sample: int
    uniqueness: float
    interval: tuple[float, float]
    confidence: float
    unique_matches: float
    journalist: float
    model: str

    def to_dict(self) -> dict[str, Any]:
        """Return JSON-ready values."""
        return {
            "population": self.population,
            "sample": self.sample,
            "uniqueness": self.uniqueness,
            "interval": list(self.interval),
            "confidence": self.confidence,
            "unique_matches": self.unique_matches,
            "journalist": self.journalist,
            "model": self.model,
        }


def estimate_population(
    counts: NDArray[np.int64],
    *,
    population: int,
    codes: NDArray[np.integer] | None = None,
    confidence: float = 0.95,
) -> PopulationRisk:
    """Estimate the uniqueness of a population from the classes of a sample of it.

    Args:
        counts: the number of rows in each class.
        population: how many people the population has.
        codes: the value codes of each class, one column per quasi-identifier; without them the estimate rests on
            the counts alone and is much less certain.
        confidence: the confidence of the interval.

    Raises:
        ParameterError: if the population is smaller than the sample, or the confidence is not between 0 and 1.
    """
    counts = np.asarray(counts, dtype=np.int64)
    sample = int(counts.sum())
    population = check_count(population, name="population")
    confidence = float(check_confidence(confidence))
    if population < sample or not sample:
        raise ParameterError(
            "The population is smaller than the table, or the table is empty.",
            fix="give the number of people that the table was drawn from, such as population=1_000_000.",
        )
    if population == sample:
        return _whole_population(counts, confidence=confidence)
    unique, repeated = int((counts == 1).sum()), int((counts > 1).sum())
    if unique == 0 or repeated < _FEWEST_REPEATED:
        return _cautious_estimate(counts, population=population, confidence=confidence)
    return _fit(counts, codes, population=population, confidence=confidence)


def _whole_population(counts: NDArray[np.int64], *, confidence: float) -> PopulationRisk:
    """The table is the population."""
    sample, unique = int(counts.sum()), int((counts == 1).sum())
    share = unique / sample
    return PopulationRisk(
        population=sample,
        sample=sample,
        uniqueness=share,
        interval=(share, share),
        confidence=confidence,
        unique_matches=float(unique > 0),
        journalist=len(counts) / sample,
        model="census",
    )


def _cautious_estimate(counts: NDArray[np.int64], *, population: int, confidence: float) -> PopulationRisk:
    """No row is unique, or nearly all are: what a sample without a model says, on the side of caution."""
    sample = int(counts.sum())
    share = int((counts == 1).sum()) / sample
    low, high = 0.0, max(share, _largest_unseen(sample / population, confidence) / population)
    return PopulationRisk(
        population=population,
        sample=sample,
        uniqueness=share,
        interval=(low, min(1.0, high)),
        confidence=confidence,
        unique_matches=float(share > 0),
        journalist=len(counts) / sample,
        model="none",
    )


def _largest_unseen(rate: float, confidence: float) -> float:
    """Return how many unique people there may be although none was drawn."""
    # With so many unique people the chance that none of them was drawn is 1 - confidence.
    return float(np.log1p(-confidence) / np.log1p(-rate))


def _fit(
    counts: NDArray[np.int64], codes: NDArray[np.integer] | None, *, population: int, confidence: float
) -> PopulationRisk:
    rate = float(counts.sum()) / population
    grid = IntensityGrid.standard()
    table, expected = _group_classes(counts, codes)
    fitted = _best(grid, table, expected)
    estimator = _Estimator(grid, table, fitted, rate)
    unique, error = estimator.unique_people()
    sample_share = float((counts == 1).sum()) / float(counts.sum())
    reach = float(special.ndtri((1 + confidence) / 2)) * error
    # Also a perfect fit cannot rule out unique people of whom none was drawn.
    ends = (max(0.0, unique - reach), max(unique + reach, _largest_unseen(rate, confidence)))
    return PopulationRisk(
        population=population,
        sample=int(counts.sum()),
        # Whoever is unique in the population is unique in every sample, so that the share cannot be larger.
        uniqueness=min(unique / population, sample_share),
        interval=(min(ends[0] / population, sample_share), min(ends[1] / population, 1.0)),
        confidence=confidence,
        unique_matches=unique * rate / float((counts == 1).sum()),
        journalist=estimator.journalist(counts),
        model=fitted.name,
    )


def _group_classes(counts: NDArray[np.int64], codes: NDArray[np.integer] | None) -> tuple[Array, Array | None]:
    """Return how many classes of each group have each count, and the standardized expectation of each group."""
    sizes = np.minimum(counts, LARGEST + 1) - 1
    if codes is None or codes.shape[1] == 0:
        return np.bincount(sizes, minlength=LARGEST + 1).astype(np.float64)[None, :], None
    expected = expected_logarithms(codes, counts)
    # Where the model expects the same of all classes, it tells nothing.
    if float(np.ptp(expected)) < 1e-9:
        return _group_classes(counts, None)
    # Groups of equal size: each has enough classes for the shape of its counts to show.
    ends = np.quantile(expected, np.linspace(0, 1, _GROUPS + 1)[1:-1])
    group = np.searchsorted(ends, expected)
    table = np.bincount(group * (LARGEST + 1) + sizes, minlength=_GROUPS * (LARGEST + 1))
    table = table.reshape(_GROUPS, LARGEST + 1).astype(np.float64)
    kept = table.sum(axis=1) > 0
    means = np.bincount(group, weights=expected, minlength=_GROUPS)[kept] / table.sum(axis=1)[kept]
    return table[kept], (means - expected.mean()) / expected.std()


def _best(grid: IntensityGrid, table: Array, expected: Array | None) -> FittedMixture:
    """Return the family with the best Schwarz criterion."""
    families = [fit_gamma(grid, table), fit_lognormal(grid, table)]
    if expected is not None and len(table) > 1:
        families.append(fit_lognormal(grid, table, expected))
    classes = int(table.sum())
    return min(families, key=lambda family: family.criterion(classes))


@dataclass(frozen=True, slots=True, eq=False)
class _Estimator:
    grid: IntensityGrid
    table: Array
    fitted: FittedMixture
    rate: float

    def _alone(self, parameters: Array) -> Array:
        """Return, per group, the chance that a sample unique is unique in the population."""
        weights = self.fitted.weights(parameters)
        once = weights @ self.grid.counts[0]
        return np.asarray((weights @ self.grid.unique_in_population(self.rate)) / once)

    def _total(self, parameters: Array) -> float:
        return float(self.table[:, 0] @ self._alone(parameters)) / self.rate

    def unique_people(self) -> tuple[float, float]:
        """Return the estimated number of unique people and its standard error.

        A class that is drawn once adds p / rate to the estimate and is one person with chance p / rate; the mean square
        of the difference is p^2 / rate^2 - 2 p^2 / rate + p / rate per sample unique. Fitting adds to that.
        """
        alone = self._alone(self.fitted.parameters)
        once = self.table[:, 0]
        drawn = once @ (alone**2 * (1 / self.rate**2 - 2 / self.rate) + alone / self.rate)
        slope = self._slope()
        # The delta method: the covariance of the parameters, carried through the slope of the estimate.
        fitting = slope @ self.fitted.covariance() @ slope
        variance = max(float(drawn), 0.0) + max(float(fitting), 0.0)
        return self._total(self.fitted.parameters), float(np.sqrt(variance))

    def _slope(self) -> Array:
        parameters = self.fitted.parameters
        steps = 1e-4 * np.maximum(1.0, np.abs(parameters))
        shifts = np.diag(steps)
        return np.array(
            [
                (self._total(parameters + shift) - self._total(parameters - shift)) / (2 * step)
                for shift, step in zip(shifts, steps, strict=True)
            ]
        )

    def journalist(self, counts: NDArray[np.int64]) -> float:
        """Return the mean of 1 / F over the rows of the table."""
        weights = self.fitted.weights(self.fitted.parameters)
        likely = self.grid.counts[:LARGEST]
        inverse = (weights @ (likely * self.grid.inverse_population(self.rate)).T) / (weights @ likely.T)
        small = float((self.table[:, :LARGEST] * inverse * np.arange(1, LARGEST + 1)).sum())
        # A large class has about f / rate people, so that its f rows add the rate.
        large = float((counts > LARGEST).sum()) * self.rate
        return (small + large) / float(counts.sum())
