"""What the reports say about each feature and the class together, and the probabilities of naive Bayes from that.

A table holds for each value x and class c the number of reports that support it. With f the share of people with
(x, c), a report supports it with probability ``low + gain f``; people being asked independently, the count follows a
binomial law of that probability, whatever the protocol. Unbiased shares, their variances, and the class shares pooled
from all tables with weights of inverse variance follow. Where bits were told about a feature, its shares follow from
the bits and the class shares; they are given as the table of joint reports that would be as exact.

The probabilities follow in two ways. `project_probabilities` is the plain one: unbiased shares, projected to the
simplex, a small public constant added, each class divided by its sum. Where noise is large it believes in differences
between classes that are noise only.

`posterior` knows the noise. Within one feature, the probability theta of value x in class c has a Beta prior around the
value's share among all people, of concentration A: A small for features whose classes differ much, A large where they
hardly differ. The number of reports that support (x, c) is binomial with probability ``low + gain P(c) theta``, so its
likelihood is known exactly. Posterior means are computed for several A and averaged by how well each A explains the
whole table (an empirical-Bayes choice per feature). Nothing is tuned on data: the concentrations 1, 10, 100 and 1000
are fixed. Noise thus shrinks every feature to exactly the degree to which its reports do not speak.

Both are post-processing of reports and cost nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from cloister.core.lazy_imports import late_module
from cloister.core.postprocessing import project_to_simplex
from cloister.local.frequency.support import SupportProtocol
from cloister.local.naive_bayes._design import DesignReports
from cloister.local.naive_bayes._questions import BitQuestion, ClassQuestion, JointQuestion

__all__ = [
    "Floats",
    "JointTable",
    "class_shares",
    "class_tables",
    "feature_tables",
    "is_telling",
    "posterior",
    "project_probabilities",
]


special = late_module("scipy.special")


Floats: TypeAlias = NDArray[np.float64]
_CHANCE = 0.01


@dataclass(frozen=True, eq=False)
class JointTable:
    """Supporting reports by value (rows) and class (columns).

    Attributes:
        counts: how many reports support each cell.
        reports: how many there are.
        low: how often a report supports a cell that nobody is in.
        gain: by how much more often it supports its sender's cell.
    """

    counts: NDArray[np.int64]
    reports: int
    low: float
    gain: float

    @property
    def shares(self) -> Floats:
        """Return the unbiased estimate of each cell's share."""
        return np.asarray((self.counts / max(self.reports, 1) - self.low) / self.gain)

    @property
    def variance(self) -> float:
        """Return the variance of an estimated share when all cells are equally frequent; infinite without reports."""
        if not self.reports:
            return np.inf
        support = self.low + self.gain / self.counts.size
        return support * (1 - support) / (self.gain**2 * self.reports)


def feature_tables(reports: DesignReports, sizes: Sequence[int], shares: Floats) -> list[JointTable]:
    """Return the table of each feature.

    Args:
        reports: to all questions.
        sizes: how many values each feature has.
        shares: of the classes.
    """
    tables: dict[int, JointTable] = {}
    classes, bits = len(shares), dict[tuple[int, bool], JointTable]()
    columns: dict[int, list[NDArray[np.int64]]] = {place: [] for place in range(len(sizes))}
    for question, rows in zip(reports.design.questions, reports.rows, strict=True):
        if isinstance(question, JointQuestion):
            counts = question.protocol.support_counts(rows)
            for axis, place in enumerate(question.places):
                # So many codes hold the same value and class, and each of them is supported by chance.
                together = question.coding.size // (sizes[place] * classes)
                tables[place] = _table(question.coding.table(counts, axis), len(rows), question.protocol, together)
        elif isinstance(question, ClassQuestion):
            columns[question.place].append(question.protocol.support_counts(rows)[1:])
            # The questions about the classes of a feature follow each other: with the last one its table is whole.
            if len(columns[question.place]) == classes:
                found = np.stack(columns[question.place], axis=1)
                tables[question.place] = _table(found, len(rows), question.protocol, 1)
        elif isinstance(question, BitQuestion):
            found = question.protocol.support_counts(rows)[None, :]
            bits[question.place, question.differs] = _table(found, len(rows), question.protocol, 1)
            # The feature alone is asked before, so that both bits are there.
            if question.differs:
                tables[question.place] = _from_bits(bits[question.place, False], bits[question.place, True], shares)
    return [tables[place] for place in range(len(sizes))]


def class_tables(reports: DesignReports, *, alone: bool = False) -> list[JointTable]:
    """Return a table for each joint question, or only for the one that asks for the class alone.

    Reports by direct encoding support one code, so that those of a class add up to a table of a single row.
    """
    tables = []
    for question, rows in zip(reports.design.questions, reports.rows, strict=True):
        if isinstance(question, JointQuestion) and not (alone and question.places):
            counts, together = question.protocol.support_counts(rows).reshape(-1, question.coding.classes), 1
            if question.protocol.values_raised == 1:
                # Such a report supports one code, so that supports of a class add up to a count of people.
                counts, together = counts.sum(axis=0, keepdims=True), len(counts)
            tables.append(_table(counts, len(rows), question.protocol, together))
    return tables


def class_shares(tables: Sequence[JointTable], *, shrunk: bool) -> Floats:
    """Return the share of each class from all tables: weighted by their precision, then projected to shares.

    Without any report, all shares are equal. The sum of a column has the variance of a cell times the number of rows,
    about. Shrunk shares are drawn towards equal ones as far as their noise demands (the positive part of James and
    Stein's rule).
    """
    found = [table for table in tables if table.reports]
    if not found:
        classes = tables[0].counts.shape[1]
        return np.full(classes, 1 / classes)
    # A table's column sums have the variance of as many cells: tables of fine features weigh less.
    weights = np.array([1 / (table.variance * len(table.counts)) for table in found])
    sums = np.array([table.shares.sum(axis=0) for table in found])
    pooled = weights @ sums / weights.sum()
    equal = pooled.mean()
    observed, noise = float(((pooled - equal) ** 2).sum()), (len(pooled) - 1) / weights.sum()
    # More noise than difference means that nothing is left of the difference, and never that its sign turns.
    kept = max(0.0, 1 - noise / observed) if shrunk and observed else 1.0
    return project_to_simplex(equal + kept * (pooled - equal))


def is_telling(tables: Sequence[JointTable], classes: Floats) -> bool:
    """Return whether any difference between classes is larger than noise explains: a test of independence, about.

    Shares of independent values and classes are products; what is left of a table after all small changes of the two
    factors are taken out is noise then. Its squares, in variances, are summed over all features and compared with the
    chi-square law of as many free cells.

    Args:
        tables: of the features.
        classes: the share of each class.
    """
    found = [table for table in tables if table.reports]
    apart = sum(_distance(table, classes) for table in found)
    free = sum((table.counts.shape[0] - 1) * (table.counts.shape[1] - 1) for table in found)
    return bool(found) and bool(special.chdtrc(free, apart) < _CHANCE)


def _distance(table: JointTable, classes: Floats) -> float:
    values = project_to_simplex(table.shares.sum(axis=1))
    # What rows and columns explain by themselves is projected out; under independence the rest is noise.
    left = _without(values) @ table.shares @ _without(classes)
    return float((left**2).sum() / table.variance)


def _without(direction: Floats) -> Floats:
    """Return the projection that takes a direction out."""
    return np.asarray(np.eye(len(direction)) - np.outer(direction, direction) / (direction @ direction))


def _from_bits(feature: JointTable, differing: JointTable, shares: Floats) -> JointTable:
    """Return the table of a feature and a class of two values each, from the feature and from where they differ.

    With contrasts a of the feature, b of the class and c of their agreement, a share is ``(1 ± a ± b ± c) / 4``.
    """
    reports = feature.reports + differing.reports
    signs = np.array([1.0, -1.0])
    (first, first_variance), (both, both_variance) = (_contrast(table) for table in (feature, differing))
    cells = 1 + first * signs[:, None] + (shares[0] - shares[1]) * signs + both * np.outer(signs, signs)
    # The table is given the one gain at which reports of the whole code would be as exact as these bits.
    gain = np.sqrt(3 / ((first_variance + both_variance) * max(reports, 1)))
    low = (1 - gain) / 4
    # Shares outside of what counts can be are cut: the likelihood later needs counts between nothing and all.
    counts = np.clip(np.rint(reports * (low + gain * cells / 4)), 0, reports).astype(np.int64)
    return JointTable(counts, reports, float(low), float(gain))


def _contrast(table: JointTable) -> tuple[float, float]:
    """Return the difference of two shares and its variance; without reports, none and the largest there can be."""
    if not table.reports:
        return 0.0, 1.0
    return float(table.shares[0, 0] - table.shares[0, 1]), 4 * table.variance


def _table(counts: NDArray[np.int64], reports: int, protocol: SupportProtocol, together: int) -> JointTable:
    p, q = map(float, protocol.probabilities)
    return JointTable(counts, reports, q * together, p - q)


_CONCENTRATIONS = (1.0, 10.0, 100.0, 1000.0)
_CELLS = 64
_DEVIATIONS = 8
_LEAST_CLASS = 0.01
_LEAST_PROBABILITY = 1e-6
_TINY = 1e-300


def project_probabilities(table: JointTable, *, smoothing: float) -> Floats:
    """Return P(value | class), values in rows: projected shares plus a constant, divided by each class's sum."""
    shares = np.full(table.counts.shape, 1 / table.counts.size)
    if table.reports:
        shares = project_to_simplex(table.shares.ravel()).reshape(shares.shape) + smoothing
    totals = shares.sum(axis=0)
    return np.where(totals > 0, shares / np.where(totals > 0, totals, 1), 1 / len(shares))


def posterior(table: JointTable, classes: Floats) -> Floats:
    """Return P(value | class), values in rows: posterior means under priors around the shares of the values.

    Args:
        table: the supporting reports of one feature.
        classes: the share of each class.
    """
    if not table.reports:
        return np.full(table.counts.shape, 1 / len(table.counts))
    # A class that seems empty would divide by zero, and nothing could then be learned about it.
    weights = np.maximum(classes, _LEAST_CLASS)
    weights = weights / weights.sum()
    edges = _edges(table, weights)
    found = [_means(table, weights, _value_shares(table), concentration, edges) for concentration in _CONCENTRATIONS]
    evidence = np.array([logarithm for _, logarithm in found])
    # The largest evidence is taken off first: exponentials of these logarithms would vanish one and all.
    belief = np.exp(evidence - evidence.max())
    means = np.tensordot(belief / belief.sum(), np.array([mean for mean, _ in found]), axes=1)
    means = np.maximum(means, _LEAST_PROBABILITY)
    return np.asarray(means / means.sum(axis=0))


def _value_shares(table: JointTable) -> Floats:
    """Return the share of each value, with one more observation of each than the reports are worth."""
    rows, columns = table.counts.shape
    shares = project_to_simplex(table.shares.sum(axis=1))
    # So many people, asked without noise, would know the shares as exactly as the noisy reports do.
    worth = (1 / rows) * (1 - 1 / rows) / (columns * table.variance)
    return np.asarray((shares * worth + 1) / (worth + rows))


def _edges(table: JointTable, weights: Floats) -> Floats:
    """Return for each cell the ends of small intervals of theta that hold all of the likelihood that matters."""
    middle = np.clip(table.shares / weights, 0, 1)
    support = table.low + table.gain * weights * middle
    spread = np.sqrt(np.maximum(support * (1 - support), 1 / table.reports) / table.reports)
    # Beyond eight deviations the likelihood is nothing, so that all cells of the grid lie where it matters.
    reach = _DEVIATIONS * spread / (table.gain * weights)
    low, high = np.maximum(middle - reach, 0), np.minimum(middle + reach, 1)
    return np.asarray(low[..., None] + (high - low)[..., None] * np.linspace(0, 1, _CELLS + 1))


def _means(
    table: JointTable, weights: Floats, center: Floats, concentration: float, edges: Floats
) -> tuple[Floats, float]:
    """Return the posterior mean of each cell under one concentration, and the logarithm of the evidence for it."""
    first = concentration * center[:, None, None]
    second = concentration - first
    # The prior's mass and mean of each small interval are exact, so that a prior with a pole at its end is no problem.
    mass = np.diff(special.betainc(first, second, edges), axis=-1)
    moment = np.diff(special.betainc(first + 1, second, edges), axis=-1) * first / concentration
    inside = (edges[..., 1:] + edges[..., :-1]) / 2
    thetas = np.where(mass > _TINY, moment / np.maximum(mass, _TINY), inside)
    # Rounding may put the mean of a tiny mass outside of its own interval.
    thetas = np.clip(thetas, edges[..., :-1], edges[..., 1:])
    support = np.clip(table.low + table.gain * weights[:, None] * thetas, _TINY, 1 - 1e-16)
    counts = table.counts[..., None]
    # Binomial in logarithms; log1p keeps the digits where the support is small.
    logarithm = counts * np.log(support) + (table.reports - counts) * np.log1p(-support)
    peak = logarithm.max(axis=-1, keepdims=True)
    joint = np.exp(logarithm - peak) * np.maximum(mass, _TINY)
    total = joint.sum(axis=-1)
    # The peak is put back into the evidence, which is compared between concentrations.
    return (joint * thetas).sum(axis=-1) / total, float((np.log(total) + peak[..., 0]).sum())
