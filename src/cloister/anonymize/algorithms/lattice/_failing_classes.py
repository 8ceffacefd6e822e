"""Which classes of a node must be suppressed, and how many rows are lost at every finer node too.

A class that fails k-anonymity fails it in every part, so its rows are lost below as well. That is not so for models on
shares (entropy, t-closeness): a class with one value too frequent can have parts without it. Bounds on finer nodes
therefore count the rows of hereditary checks only.

Suppression changes the table that t-closeness and beta-likeness compare with. Classes that fail are taken out and the
rest is compared again, until all that remain hold.

How many rows of a class must be suppressed at least, whatever finer classes it is split into: a model on shares is not
hereditary, parts of a failing class may hold. But parts that hold would hold together as well (the model is monotone),
so what is left of the class after suppression is a set of its rows that holds. If a value can have at most a share
``cap`` of such a set, and the class has ``count`` of ``size`` rows with it, at least
``(count - cap * size) / (1 - cap)`` rows must go, because suppressing rows with the value is the quickest way.

The caps: 1/l for frequency l-diversity and alpha for (alpha,k)-anonymity. A set with m values, the most frequent with a
share p, has an entropy of at most h(p) + (1 - p) log(m - 1), h being the binary entropy. In a t-close class a share
exceeds that of the released table by at most t for the variational distance, by sqrt(t / 2) for the divergence
(Pinsker), and by t over the least distance of two values for an earth mover's distance; in a beta-like class by a
factor of 1 + beta. The released table has no more rows with a value than the whole table. For recursive
(c,l)-diversity the most frequent value must fall below c times the tail, which suppression cannot lengthen.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from cloister.anonymize._partition import whole
from cloister.anonymize.algorithms.lattice.nodes import Keys, Node, sum_weights
from cloister.anonymize.cells import CodedCells
from cloister.anonymize.models import EquivalenceClasses, Histogram, ModelCheck, all_hold, classes_of_cells
from cloister.anonymize.regions import Regions
from cloister.core.guarantees import AlphaKAnonymity, BetaLikeness, KAnonymity, LDiversity, TCloseness

Floats: TypeAlias = NDArray[np.float64]

_SLACK = 1e-9
"""Caps are rounded up by this much, far more than the rounding of floats and of the checks themselves."""

_BISECTIONS = 60


def deficits(check: ModelCheck, classes: EquivalenceClasses, *, released: int) -> NDArray[np.int64]:
    """Return a lower bound on the rows of each class that every finer release suppresses.

    Args:
        check: a monotone check.
        classes: the classes of the whole table.
        released: the least number of rows that a release has.
    """
    lacking = np.zeros(classes.size)
    if getattr(check, "attribute", None) is not None and released > 0:
        histogram = classes.histogram(check.model.attribute)
        lacking = _lacking(check.model, histogram, released, classes)
    # A bound that is too high could rule the best node out, so that rounding errors are taken off before it is
    # rounded up.
    return np.ceil(np.maximum(lacking * (1 - _SLACK) - _SLACK, 0)).astype(np.int64)


def _lacking(model: object, histogram: Histogram, released: int, classes: EquivalenceClasses) -> Floats:
    if isinstance(model, LDiversity) and model.variant == "recursive" and model.c is not None:
        return histogram.largest - float(model.c) * _tails(histogram, int(model.l))
    caps = _caps(model, histogram, released, classes) + _SLACK
    over = histogram.counts - caps * histogram.sizes[histogram.classes]
    needed = np.divide(over, 1 - caps, out=np.zeros_like(over), where=(over > 0) & (caps < 1))
    # One value that is too frequent is enough, so that the largest need counts.
    return np.maximum.reduceat(needed, histogram.starts) if len(histogram.sizes) else needed


def _caps(model: object, histogram: Histogram, released: int, classes: EquivalenceClasses) -> Floats:
    """Return the greatest share that each line's value can have in what is left of its class."""
    # At most all rows with a value are released, and never fewer rows than stated.
    highest = histogram.overall[histogram.values] / released
    match model:
        case AlphaKAnonymity():
            return np.full_like(highest, float(model.alpha))
        case LDiversity(variant="frequency"):
            return np.full_like(highest, float(1 / model.l))
        case LDiversity(variant="entropy"):
            return _entropy_caps(histogram.distinct, float(model.l))[histogram.classes]
        case BetaLikeness():
            return highest * float(1 + model.beta)
        case TCloseness():
            return highest + _excess(model, histogram, classes)
    return np.ones_like(highest)


def _excess(model: TCloseness, histogram: Histogram, classes: EquivalenceClasses) -> float:
    t, attribute = float(model.t), classes.cells.sensitive[classes.cells.place_of(model.attribute)].attribute
    match model.variant:
        case "kl":
            return float(np.sqrt(t / 2))
        case "ordered":
            # Neighbors are 1 / (m - 1) apart, the least distance of two values in order.
            return t * max(int((histogram.overall > 0).sum()) - 1, 1)
        case "hierarchical":
            return t * max(attribute.height, 1)
    return t


def _entropy_caps(values: NDArray[np.int64], least: float) -> Floats:
    """Return, for sets of so many values, the greatest share of one value with entropy log(least)."""
    low, high, rest = 1 / values, np.ones(len(values)), np.log(np.maximum(values - 1, 1))
    for _ in range(_BISECTIONS):
        middle = (low + high) / 2
        is_enough = _binary_entropy(middle) + (1 - middle) * rest >= np.log(least)
        low, high = np.where(is_enough, middle, low), np.where(is_enough, high, middle)
    # The upper end of the bisection, so that no cap is too low.
    return np.where(values < least, 0.0, high)


def _binary_entropy(share: Floats) -> Floats:
    inside = np.clip(share, 1e-300, 1 - 1e-16)
    return np.asarray(-inside * np.log(inside) - (1 - inside) * np.log1p(-inside))


def _tails(histogram: Histogram, place: int) -> Floats:
    """Return the rows of the values of each class from a place on, most frequent first."""
    order = np.lexsort((-histogram.counts, histogram.classes))
    rank = np.arange(len(order)) - histogram.starts[histogram.classes]
    return histogram.add(np.where(rank >= place - 1, histogram.counts[order], 0).astype(np.float64))


@dataclass(frozen=True, slots=True)
class NodeJudgment:
    """The classes of a node.

    Attributes:
        keys: the class of each cell.
        sizes: the rows of each class.
        failing: the classes to suppress; one without rows may be among them.
        doomed: those of them of which every part fails; the same array when all are.
        least: a lower bound on the rows that are suppressed at every finer node, beside those of doomed classes.
    """

    keys: Keys
    sizes: NDArray[np.float64]
    failing: NDArray[np.bool_]
    doomed: NDArray[np.bool_]
    least: int = 0


class Judge:
    """Applies checks to the classes of nodes.

    Args:
        cells: the table.
        checks: what every released class must satisfy.
        k: the least number of rows of a class that satisfies all checks.
        allowed: the rows that may be suppressed.
        overall: the counts of sensitive values to compare with; those of the released rows by default.
    """

    def __init__(
        self,
        cells: CodedCells,
        checks: tuple[ModelCheck, ...],
        *,
        k: int,
        allowed: int,
        overall: Mapping[str, NDArray[np.int64]] | None = None,
    ) -> None:
        self._cells, self._k, self._allowed, self._overall = cells, k, allowed, overall
        self._weights = cells.weights.astype(np.float64)
        rest = [check for check in checks if not _counts_rows(check)]
        self._hereditary = [check for check in rest if check.is_hereditary]
        self._fixed = [check for check in rest if not check.is_hereditary and not self._compares(check)]
        self._comparing = [check for check in rest if self._compares(check)]
        self._rows_only = not rest
        self.is_monotone = all(check.is_monotone for check in checks)

    def judge(self, keys: Keys, node: Node) -> NodeJudgment:
        """Return which classes of a node fail."""
        sizes = sum_weights(keys.values, self._weights, size=keys.size)
        # Most nodes fail by the size of classes alone: then no model has to be asked.
        small = sizes < self._k
        if self._rows_only or self._rows(small, keys) > self._allowed:
            return NodeJudgment(keys, sizes, small, small)
        # Models need classes numbered without gaps.
        keys = keys.renumber()
        sizes = sum_weights(keys.values, self._weights, size=keys.size)
        return self._judge_all(keys, sizes, node)

    def _judge_all(self, keys: Keys, sizes: NDArray[np.float64], node: Node) -> NodeJudgment:
        classes = self._classes(keys, node)
        doomed = (sizes < self._k) | ~all_hold(self._hereditary, classes)
        failing = doomed | ~all_hold(self._fixed, classes)
        # Suppression changes the table that is compared with: it goes on until no further class differs.
        while self._comparing and not failing.all():
            found = self._differing(keys, failing)
            if not found.any():
                break
            failing = failing | found
        return NodeJudgment(keys, sizes, failing, doomed, self._least(classes, failing & ~doomed))

    def _least(self, classes: EquivalenceClasses, failing: NDArray[np.bool_]) -> int:
        """Return how many rows of failing classes must be suppressed, whatever they are split into."""
        rest = [check for check in (*self._fixed, *self._comparing) if check.is_monotone]
        if not rest or not self._allowed or not failing.any():
            return 0
        released = self._cells.total - self._allowed
        # Each check says how many rows must go at least; the strictest of them counts, and not their sum.
        lacking = np.max([deficits(check, classes, released=released) for check in rest], axis=0)
        return int(lacking[failing].sum())

    def _differing(self, keys: Keys, failing: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """Return the classes that differ too much from the rows of all that do not fail."""
        number = np.where(failing, -1, np.cumsum(~failing) - 1)
        groups = number[keys.values][self._cells.record_cells]
        records = np.flatnonzero(groups >= 0)
        classes = EquivalenceClasses(
            cells=self._cells,
            records=records,
            groups=groups[records],
            counts=self._cells.record_weights[records],
            size=int((~failing).sum()),
        )
        found = np.zeros_like(failing)
        found[~failing] = ~all_hold(self._comparing, classes)
        return found

    def _classes(self, keys: Keys, node: Node) -> EquivalenceClasses:
        cells = self._cells
        return EquivalenceClasses(
            cells=cells,
            records=np.arange(len(cells.record_weights)),
            groups=keys.values[cells.record_cells],
            counts=cells.record_weights,
            size=keys.size,
            overall=self._overall or {},
            fitting=lambda: Regions(partition=whole(cells, keys.values, levels=node)).population(),
        )

    def _rows(self, classes: NDArray[np.bool_], keys: Keys) -> float:
        return float(self._weights[classes[keys.values]].sum())

    def _compares(self, check: ModelCheck) -> bool:
        return check.needs_overall and self._overall is None


def _counts_rows(check: ModelCheck) -> bool:
    return isinstance(check.model, KAnonymity) and check.model.unit == "row"


class ClassChecker:
    """Tells which classes of whole cells hold, wherever they come from.

    Args:
        cells: the table.
        checks: what every class must satisfy.
        k: the least number of rows of a class that satisfies all checks.
        overall: the counts of sensitive values in the released table.
    """

    def __init__(
        self, cells: CodedCells, checks: tuple[ModelCheck, ...], *, k: int, overall: Mapping[str, NDArray[np.int64]]
    ) -> None:
        self._cells, self._checks, self._k, self._overall = cells, checks, k, overall
        self._weights = cells.weights.astype(np.float64)
        self._rows_only = all(map(_counts_rows, checks))

    def holds(self, groups: NDArray[np.int64], size: int) -> NDArray[np.bool_]:
        """Return which classes hold; cells with a negative number are in none, and a class without cells fails."""
        kept = np.flatnonzero(groups >= 0)
        large = sum_weights(groups[kept], self._weights[kept], size=size) >= max(self._k, 1)
        if self._rows_only or not large.any():
            return large
        # Cells in no class have the number -1, and pick the entry appended at the end.
        number = np.append(np.where(large, np.cumsum(large) - 1, -1), -1)
        classes = classes_of_cells(self._cells, number[groups], int(large.sum()), overall=self._overall)
        large[large] = all_hold(self._checks, classes)
        return large
