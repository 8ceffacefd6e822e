"""How far local estimates are off: their variance against theory, and how often 95% intervals cover the truth.

The same people are asked many times. Squared errors, each divided by the variance that theory gives, are averaged over
values and repetitions; with some 20,000 of them chance moves the average by one percent. Theory is
`benchmarks.local_theory`, not what the protocol says of itself; the intervals are the protocol's own. Intervals of
counts are about the people who were asked. Those of means are about everybody whom they stand for: each repetition
draws people anew, and theory adds the variance between people.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np

import cloister as cl
from benchmarks import local_theory as theory
from cloister.core.random import SystemRandomSource, integers_below

TITLE = "Local estimates: variance against theory and coverage of 95% intervals, epsilon 1"
EPSILON = 1.0
VALUES = 16
SQUARES = 20_000
BATCH = 200_000
CLOSE, COVERED = (0.95, 1.05), (94.0, 96.0)
MATRIX = [
    [Fraction(percent, 100) for percent in row]
    for row in ((45, 21, 18, 16), (20, 46, 16, 18), (25, 25, 34, 16), (19, 23, 17, 41))
]
"""Not symmetric, so that an estimate by the inverse of the matrix, in place of its transpose, would be off."""
BLOOM: dict[str, int] = {"bits": 8, "hashes": 2, "cohorts": 6}


@dataclass(frozen=True, kw_only=True)
class Case:
    """A protocol: its class and options, what theory says of it, how many people one repetition asks, and what."""

    protocol: str
    law: Callable[[np.ndarray, float], np.ndarray]
    users: int = 4000
    values: int = VALUES
    options: Mapping[str, Any] = field(default_factory=dict)
    note: str = ""
    answers: Callable[[np.ndarray], Any] = np.asarray

    def people(self) -> np.ndarray:
        """Return everybody's value: half of the people share one, the others spread over the rest."""
        users = np.arange(self.users)
        return np.where(users % 2 == 0, 0, 1 + users // 2 % (self.values - 1))

    def make(self) -> Any:
        """Return the protocol."""
        return getattr(cl.local, self.protocol)(domain=list(range(self.values)), epsilon=EPSILON, **self.options)


def _bloom(counts: np.ndarray, epsilon: float) -> np.ndarray:
    protocol = cl.local.Rappor(domain=list(range(len(counts))), epsilon=epsilon, **BLOOM)
    return theory.bloom(counts, epsilon, filters=protocol.filters.astype(np.float64), hashes=BLOOM["hashes"])


FREQUENCIES = (
    Case(protocol="RandomizedResponse", law=theory.direct, values=2, users=2000),
    Case(protocol="DirectEncoding", law=theory.direct),
    Case(protocol="SummationHistogramEncoding", law=theory.summation, users=500),
    Case(protocol="ThresholdHistogramEncoding", law=theory.threshold, users=1000),
    Case(protocol="SymmetricUnaryEncoding", law=theory.symmetric_unary),
    Case(protocol="OptimizedUnaryEncoding", law=theory.optimized_unary),
    Case(protocol="OptimizedLocalHashing", law=theory.local_hashing),
    Case(protocol="HadamardResponse", law=theory.hadamard),
    Case(protocol="SubsetSelection", law=theory.subset_selection),
    Case(
        protocol="Pram",
        law=lambda counts, _: theory.transition(counts, np.array(MATRIX, dtype=np.float64)),
        values=len(MATRIX),
        options={"matrix": MATRIX},
    ),
    Case(
        protocol="UnarySet",
        law=lambda counts, epsilon: theory.symmetric_unary(counts, epsilon / 2),
        users=2000,
        options={"most": 2},
        answers=lambda people: people[:, None].tolist(),
    ),
    Case(protocol="Rappor", law=theory.rappor),
    Case(protocol="Rappor", law=_bloom, options=BLOOM, note=", Bloom filters"),
)
MEANS = {
    "LocalLaplace": theory.laplace,
    "Duchi": theory.duchi,
    "Piecewise": theory.piecewise,
    "Hybrid": theory.hybrid,
}
MEAN_USERS = 1000
POPULATION = np.linspace(-0.8, 1, 1001)


def main(squares: int = SQUARES) -> list[dict[str, Any]]:
    """Return the ratio of variances and the coverage of each protocol."""
    rows = []
    for case in FREQUENCIES:
        rows += judged(case.protocol + case.note, *frequencies(case, squares))
    for name, law in MEANS.items():
        rows += judged(f"{name}, mean", *means(name, law, squares))
    return rows


def frequencies(case: Case, squares: int) -> tuple[float, float]:
    """Return the ratio of the variance of counts to theory, and the percentage of intervals that cover."""
    people, protocol = case.people(), case.make()
    truth = np.bincount(people, minlength=case.values)
    repetitions = -(-squares // (case.values - 1))
    found = list(_estimates(protocol, lambda count: case.answers(np.tile(people, count)), case.users, repetitions))
    errors = np.array([np.asarray(estimate.counts) for estimate in found]) - truth
    intervals = np.array([list(estimate.intervals(0.95).values()) for estimate in found])
    return _ratio(errors, case.law(truth, EPSILON)), _coverage(intervals, truth)


def means(name: str, law: Callable[[np.ndarray, float], np.ndarray], squares: int) -> tuple[float, float]:
    """Return the same for the mean of numbers within -1 and 1."""
    source = SystemRandomSource()
    protocol = getattr(cl.local, name)(bounds=(-1, 1), epsilon=EPSILON)

    def drawn(count: int) -> np.ndarray:
        return POPULATION[integers_below(source, len(POPULATION), count * MEAN_USERS)]

    found = list(_estimates(protocol, drawn, MEAN_USERS, squares))
    truth, variance = POPULATION.mean(), (law(POPULATION, EPSILON).mean() + POPULATION.var()) / MEAN_USERS
    errors = np.array([estimate.value for estimate in found]) - truth
    intervals = np.array([estimate.interval(0.95) for estimate in found])
    return _ratio(errors, variance), _coverage(intervals, truth)


def judged(name: str, ratio: float, coverage: float) -> list[dict[str, Any]]:
    """Return both rows of a protocol."""
    return [
        _row(f"{name}: variance / theory", ratio, CLOSE, unit=""),
        _row(f"{name}: coverage", coverage, COVERED, unit="%"),
    ]


def _row(name: str, ours: float, target: tuple[float, float], *, unit: str) -> dict[str, Any]:
    low, high = target
    print(f"  {name}: {ours:.4g}", flush=True)
    return {"name": name, "ours": ours, "unit": unit, "target": f"{low:g} to {high:g}", "met": low <= ours <= high}


def _estimates(protocol: Any, people: Callable[[int], np.ndarray], users: int, repetitions: int) -> Iterator[Any]:
    """Give an estimate for each repetition; the reports of several are made in one call."""
    together = max(1, BATCH // users)
    for first in range(0, repetitions, together):
        count = min(together, repetitions - first)
        reports = protocol.randomize(people(count))
        for place in range(count):
            yield protocol.estimate(reports[place * users : (place + 1) * users])


def _ratio(errors: np.ndarray, variances: Any) -> float:
    return float(np.mean(errors**2 / variances))


def _coverage(intervals: np.ndarray, truth: Any) -> float:
    return float(100 * np.mean((intervals[..., 0] <= truth) & (truth <= intervals[..., 1])))
