"""What a search minimizes, in a form that also bounds the loss of nodes not yet looked at.

Two families. An additive loss sums a cost over rows and quasi-identifiers that depends on the leaf and its level alone
(`AdditiveMeasure`): the cost of a node without suppression is known in advance, and rows that must be suppressed add to
it. A loss of classes depends on how many rows are together (`ClassMeasure`). A suppressed row never costs less than a
released one, or bounds would be wrong.

References: LM (Iyengar 2002), precision (Sweeney 2002), discernibility (Bayardo and Agrawal 2005), average class size
(LeFevre, DeWitt and Ramakrishnan 2006), non-uniform entropy (Gionis and Tassa 2009).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from math import inf
from typing import Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from cloister.anonymize.algorithms.lattice.nodes import Node, sum_weights
from cloister.anonymize.attributes import CodedAttribute
from cloister.anonymize.cells import CodedCells

Floats: TypeAlias = NDArray[np.float64]
Parts: TypeAlias = Sequence[Floats]


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeEffect:
    """What a node does to the table.

    Attributes:
        node: the levels.
        sizes: the rows of each class.
        failing: the classes that are suppressed.
        suppressed: the rows that are suppressed.
        suppressed_cells: the cells that are suppressed.
        doomed: the rows that are suppressed at every finer node too.
        doomed_cells: their cells.
        least: how many other rows at least are suppressed at every finer node.
    """

    node: Node
    sizes: Floats
    failing: NDArray[np.bool_]
    suppressed: int
    suppressed_cells: NDArray[np.int64]
    doomed: int
    doomed_cells: NDArray[np.int64]
    least: int = 0


class NodeMeasure(Protocol):
    """A loss, made ready for one table."""

    @property
    def floors(self) -> Parts:
        """Return numbers per quasi-identifier and level whose sum is a lower bound on the loss of a node."""
        ...

    def loss(self, effect: NodeEffect) -> float:
        """Return the loss of a node."""
        ...

    def finer(self, effect: NodeEffect) -> Parts | None:
        """Return what can be added to the floors for every finer node."""
        ...

    def coarser(self, effect: NodeEffect) -> float:
        """Return a lower bound on the loss of every coarser node."""
        ...


class AdditiveMeasure:
    """A sum over rows and quasi-identifiers of costs that depend on the leaf and its level.

    Args:
        cells: the table.
        released: per quasi-identifier the cost of a released leaf (column) at a level (row).
        suppressed: the same for a suppressed leaf; never less.
    """

    def __init__(self, cells: CodedCells, released: Parts, suppressed: Parts) -> None:
        self._columns = np.ascontiguousarray(cells.codes.T)
        self._weights = cells.weights.astype(np.float64)
        # Never negative: a suppressed row costs at least as much, or bounds on finer nodes would be wrong.
        self._more = [(lost - kept) / cells.total for kept, lost in zip(released, suppressed, strict=True)]
        everything = self._leaf_rows(slice(None))
        self._floors = [kept @ rows / cells.total for kept, rows in zip(released, everything, strict=True)]
        # Which further rows finer nodes suppress is not known: the cheapest leaf that occurs bounds the cost of each.
        self._least = [more[:, rows > 0].min(axis=1) for more, rows in zip(self._more, everything, strict=True)]

    @property
    def floors(self) -> Parts:
        """Return the cost of each level when all rows are released."""
        return self._floors

    def loss(self, effect: NodeEffect) -> float:
        """Return the cost of a node per row."""
        total = sum(float(floor[level]) for floor, level in zip(self._floors, effect.node, strict=True))
        if not effect.suppressed:
            return total
        parts = self._extra(effect.suppressed_cells)
        return total + sum(float(part[level]) for part, level in zip(parts, effect.node, strict=True))

    def finer(self, effect: NodeEffect) -> Parts | None:
        """Return what the rows that finer nodes suppress cost more than released ones."""
        if not effect.doomed and not effect.least:
            return None
        parts = zip(self._extra(effect.doomed_cells), self._least, strict=True)
        return [part + effect.least * least for part, least in parts]

    def coarser(self, effect: NodeEffect) -> float:  # noqa: ARG002 - the floors say as much
        """Return no bound."""
        return -inf

    def _extra(self, cells: NDArray[np.int64]) -> list[Floats]:
        return [more @ rows for more, rows in zip(self._more, self._leaf_rows(cells), strict=True)]

    def _leaf_rows(self, cells: NDArray[np.int64] | slice) -> list[Floats]:
        """Return the rows of each leaf of each quasi-identifier in some cells."""
        weights = self._weights[cells]
        pairs = zip(self._columns, self._more, strict=True)
        return [sum_weights(column[cells], weights, size=more.shape[1]) for column, more in pairs]


@dataclass(frozen=True, slots=True, kw_only=True)
class ClassMeasure:
    """A function of the sizes of classes and of the number of suppressed rows."""

    floors: Parts
    of_classes: Callable[[Floats, int], float]
    least_finer: Callable[[int], float]
    least_coarser: Callable[[Floats], float]

    def loss(self, effect: NodeEffect) -> float:
        """Return the loss of a node."""
        return self.of_classes(effect.sizes[(effect.sizes > 0) & ~effect.failing], effect.suppressed)

    def finer(self, effect: NodeEffect) -> Parts | None:
        """Return a bound from the rows that finer nodes suppress."""
        # The search adds one number for each attribute: the bound stands at the first one, and the others have zeros.
        first = np.full_like(self.floors[0], self.least_finer(effect.doomed + effect.least))
        return [first, *self.floors[1:]]

    def coarser(self, effect: NodeEffect) -> float:
        """Return a bound from the classes, which coarser nodes can only merge."""
        return self.least_coarser(effect.sizes[effect.sizes > 0])


NodeLoss: TypeAlias = Callable[[CodedCells], NodeMeasure]


def loss_metric(cells: CodedCells) -> NodeMeasure:
    """Return LM: the share of the leaves that a cell of the release leaves open, 1 when suppressed ("NCP")."""
    return AdditiveMeasure(cells, _open_shares(cells), _everything(cells))


def precision(cells: CodedCells) -> NodeMeasure:
    """Return the levels climbed as a share of the height, 1 when suppressed (1 - precision)."""
    return AdditiveMeasure(cells, _climbed_shares(cells), _everything(cells))


def entropy(cells: CodedCells) -> NodeMeasure:
    """Return the share of each column's entropy that is no longer told, averaged over columns by their weights."""
    released = _missing_bits(cells)
    return AdditiveMeasure(cells, released, [np.broadcast_to(part[-1], part.shape) for part in released])


def height(cells: CodedCells) -> NodeMeasure:
    """Return the sum of the levels, plus the share of suppressed rows to choose between nodes of the same height."""
    released = _climbed_levels(cells)
    return AdditiveMeasure(cells, released, [part + 1 / len(released) for part in released])


def discernibility(cells: CodedCells) -> NodeMeasure:
    """Return the sum over rows of the size of their class, which is the whole table for a suppressed row."""
    total = cells.total
    return ClassMeasure(
        floors=_zeros(cells),
        of_classes=lambda sizes, suppressed: float(sizes @ sizes) + total * suppressed,
        # A suppressed row costs the whole table, and every other one at least itself.
        least_finer=lambda doomed: float(total * doomed + total - doomed),
        least_coarser=lambda sizes: float(sizes @ sizes),
    )


def average_class_size(cells: CodedCells) -> NodeMeasure:
    """Return the rows of the table, suppressed ones included, per released class."""
    average = partial(_average, cells.total)
    return ClassMeasure(
        floors=_zeros(cells),
        of_classes=lambda sizes, suppressed: average(sizes),  # noqa: ARG005 - suppressed rows are in the total
        least_finer=lambda doomed: 0.0,  # noqa: ARG005
        least_coarser=average,
    )


LOSSES: dict[str, NodeLoss] = {
    "ncp": loss_metric,
    "precision": precision,
    "entropy": entropy,
    "height": height,
    "discernibility": discernibility,
    "average_class_size": average_class_size,
}


def leaf_costs(loss: str, cells: CodedCells) -> Parts:
    """Return, per quasi-identifier, what a leaf (column) costs at a level (row); LM for a loss of classes."""
    return {"precision": _climbed_shares, "entropy": _missing_bits, "height": _climbed_levels}.get(loss, _open_shares)(
        cells
    )


def _open_shares(cells: CodedCells) -> list[Floats]:
    return [share * item.leaf_losses for share, item in _weigh_attributes(cells)]


def _climbed_shares(cells: CodedCells) -> list[Floats]:
    pairs = zip(_weigh_attributes(cells), _climbed_levels(cells), strict=True)
    return [share * levels / max(item.height, 1) for (share, item), levels in pairs]


def _climbed_levels(cells: CodedCells) -> list[Floats]:
    return [np.outer(np.arange(item.height + 1.0), np.ones(len(item.leaves))) for item in cells.attributes]


def _missing_bits(cells: CodedCells) -> list[Floats]:
    return [share * _bits(cells, place) for place, (share, _) in enumerate(_weigh_attributes(cells))]


def _bits(cells: CodedCells, place: int) -> Floats:
    """Return the bits that are missing to tell a leaf from others of its node, as a share of the column's entropy."""
    item = cells.attributes[place]
    rows = sum_weights(cells.codes[:, place], cells.weights.astype(np.float64), size=len(item.leaves))
    together = np.stack([np.bincount(codes, weights=rows)[codes] for codes in item.ancestors])
    # A leaf without rows is alone in its node, and no bits are missing.
    bits = np.log2(np.divide(together, rows, out=np.ones_like(together), where=rows > 0))
    return np.asarray(bits / (float(bits[-1] @ rows) / cells.total or 1.0))


def _everything(cells: CodedCells) -> list[Floats]:
    return [np.full((item.height + 1, len(item.leaves)), share) for share, item in _weigh_attributes(cells)]


def _weigh_attributes(cells: CodedCells) -> list[tuple[float, CodedAttribute]]:
    return list(zip(cells.weights_of_attributes.tolist(), cells.attributes, strict=True))


def _zeros(cells: CodedCells) -> Parts:
    return [np.zeros(item.height + 1) for item in cells.attributes]


def _average(total: int, sizes: Floats) -> float:
    return total / max(len(sizes), 1)
