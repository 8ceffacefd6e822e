"""What the reports say about each feature and the class together, before it is made consistent.

A table holds for each value x and class c the number of reports that support it. With f the share of people with
(x, c), a report supports it with probability ``low + gain f``; people being asked independently, the count follows a
binomial law of that probability, whatever the protocol. Unbiased shares, their variances, and the class shares pooled
from all tables with weights of inverse variance follow. Where bits were told about a feature, its shares follow from
the bits and the class shares; they are given as the table of joint reports that would be as exact.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from cloister.core._late import late_module
from cloister.core.simplex import project_to_simplex
from cloister.local.frequency.direct import DirectEncoding
from cloister.local.frequency.support import SupportProtocol
from cloister.local.naive_bayes.design import DesignReports
from cloister.local.naive_bayes.questions import BitQuestion, ClassQuestion, JointQuestion

special = late_module("scipy.special")

__all__ = ["Floats", "JointTable", "class_shares", "class_tables", "feature_tables", "is_telling"]

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
                together = question.coding.size // (sizes[place] * classes)
                tables[place] = _table(question.coding.table(counts, axis), len(rows), question.protocol, together)
        elif isinstance(question, ClassQuestion):
            columns[question.place].append(question.protocol.support_counts(rows)[1:])
            if len(columns[question.place]) == classes:
                found = np.stack(columns[question.place], axis=1)
                tables[question.place] = _table(found, len(rows), question.protocol, 1)
        elif isinstance(question, BitQuestion):
            found = question.protocol.support_counts(rows)[None, :]
            bits[question.place, question.differs] = _table(found, len(rows), question.protocol, 1)
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
            if isinstance(question.protocol, DirectEncoding):
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
    weights = np.array([1 / (table.variance * len(table.counts)) for table in found])
    sums = np.array([table.shares.sum(axis=0) for table in found])
    pooled = weights @ sums / weights.sum()
    equal = pooled.mean()
    observed, noise = float(((pooled - equal) ** 2).sum()), (len(pooled) - 1) / weights.sum()
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
    gain = np.sqrt(3 / ((first_variance + both_variance) * max(reports, 1)))
    low = (1 - gain) / 4
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
