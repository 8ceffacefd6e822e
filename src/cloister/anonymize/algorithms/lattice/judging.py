"""Which classes of a node must be suppressed, and which of those are suppressed at every finer node too.

A class that fails k-anonymity fails it in every part, so its rows are lost below as well. That is not so for models on
shares (entropy, t-closeness): a class with one value too frequent can have parts without it. Bounds on finer nodes
therefore count the rows of hereditary checks only.

Suppression changes the table that t-closeness and beta-likeness compare with. Classes that fail are taken out and the
rest is compared again, until all that remain hold.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cloister.anonymize.algorithms.lattice.deficits import deficits
from cloister.anonymize.algorithms.lattice.grouping import Keys, counted
from cloister.anonymize.algorithms.lattice.nodes import Node
from cloister.anonymize.cells import Cells
from cloister.anonymize.models import Check, Classes, all_hold, classes_of_cells
from cloister.anonymize.partition import whole
from cloister.anonymize.regions import Regions
from cloister.core.guarantees import KAnonymity


@dataclass(frozen=True, slots=True)
class Judgment:
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
        cells: Cells,
        checks: tuple[Check, ...],
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

    def judge(self, keys: Keys, node: Node) -> Judgment:
        """Return which classes of a node fail."""
        sizes = counted(keys.values, self._weights, size=keys.size)
        small = sizes < self._k
        if self._rows_only or self._rows(small, keys) > self._allowed:
            return Judgment(keys, sizes, small, small)
        keys = keys.numbered()
        sizes = counted(keys.values, self._weights, size=keys.size)
        return self._judge_all(keys, sizes, node)

    def _judge_all(self, keys: Keys, sizes: NDArray[np.float64], node: Node) -> Judgment:
        classes = self._classes(keys, node)
        doomed = (sizes < self._k) | ~all_hold(self._hereditary, classes)
        failing = doomed | ~all_hold(self._fixed, classes)
        while self._comparing and not failing.all():
            found = self._differing(keys, failing)
            if not found.any():
                break
            failing = failing | found
        return Judgment(keys, sizes, failing, doomed, self._least(classes, failing & ~doomed))

    def _least(self, classes: Classes, failing: NDArray[np.bool_]) -> int:
        """Return how many rows of failing classes must be suppressed, whatever they are split into."""
        rest = [check for check in (*self._fixed, *self._comparing) if check.is_monotone]
        if not rest or not self._allowed or not failing.any():
            return 0
        released = self._cells.total - self._allowed
        lacking = np.max([deficits(check, classes, released=released) for check in rest], axis=0)
        return int(lacking[failing].sum())

    def _differing(self, keys: Keys, failing: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """Return the classes that differ too much from the rows of all that do not fail."""
        number = np.where(failing, -1, np.cumsum(~failing) - 1)
        groups = number[keys.values][self._cells.record_cells]
        records = np.flatnonzero(groups >= 0)
        classes = Classes(
            cells=self._cells,
            records=records,
            groups=groups[records],
            counts=self._cells.record_weights[records],
            size=int((~failing).sum()),
        )
        found = np.zeros_like(failing)
        found[~failing] = ~all_hold(self._comparing, classes)
        return found

    def _classes(self, keys: Keys, node: Node) -> Classes:
        cells = self._cells
        return Classes(
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

    def _compares(self, check: Check) -> bool:
        return check.needs_overall and self._overall is None


def _counts_rows(check: Check) -> bool:
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
        self, cells: Cells, checks: tuple[Check, ...], *, k: int, overall: Mapping[str, NDArray[np.int64]]
    ) -> None:
        self._cells, self._checks, self._k, self._overall = cells, checks, k, overall
        self._weights = cells.weights.astype(np.float64)
        self._rows_only = all(map(_counts_rows, checks))

    def holds(self, groups: NDArray[np.int64], size: int) -> NDArray[np.bool_]:
        """Return which classes hold; cells with a negative number are in none, and a class without cells fails."""
        kept = np.flatnonzero(groups >= 0)
        large = counted(groups[kept], self._weights[kept], size=size) >= max(self._k, 1)
        if self._rows_only or not large.any():
            return large
        number = np.append(np.where(large, np.cumsum(large) - 1, -1), -1)
        classes = classes_of_cells(self._cells, number[groups], int(large.sum()), overall=self._overall)
        large[large] = all_hold(self._checks, classes)
        return large
