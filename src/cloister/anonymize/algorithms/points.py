"""Cells as points with distances, so that similar rows can be found.

The squared distance of two cells is a sum over quasi-identifiers, each times its weight: the squared difference of
standardized values of an ordered attribute (a missing value has the mean, and differs by one more); the squared LM loss
of the lowest common node of two leaves of a hierarchy; or else 0 for equal and 1 for different values. The center of a
set of rows has means of ordered attributes and most frequent values of the others.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from cloister.anonymize.attributes import Attribute
from cloister.anonymize.cells import Cells

__all__ = ["Points", "points_of"]

Floats: TypeAlias = NDArray[np.float64]
Counts: TypeAlias = NDArray[np.int64]
Center: TypeAlias = "tuple[Floats, Counts]"


@dataclass(frozen=True, eq=False, kw_only=True)
class Points:
    """Points, one per cell.

    Attributes:
        numbers: standardized coordinates (one row per coordinate), scaled by the weights of their attributes.
        codes: leaf codes of the unordered attributes (one row per attribute).
        names: those attributes.
    """

    numbers: Floats
    codes: Counts
    names: tuple[Attribute, ...]
    tables: tuple[dict[int, Floats], ...] = field(repr=False)

    def __len__(self) -> int:
        return int(self.numbers.shape[1])

    def take(self, chosen: Counts) -> Points:
        """Return some of the points."""
        return Points(
            numbers=np.ascontiguousarray(self.numbers[:, chosen]),
            codes=np.ascontiguousarray(self.codes[:, chosen]),
            names=self.names,
            tables=self.tables,
        )

    def at(self, place: int) -> Center:
        """Return one point as a center."""
        return self.numbers[:, place], self.codes[:, place]

    def center(self, rows: Counts) -> Center:
        """Return the center of the points, each as often as it has rows; of equally frequent values the first."""
        means = np.einsum("ij,j->i", self.numbers, rows.astype(np.float64)) / rows.sum()
        modes = [np.bincount(codes, weights=rows).argmax() for codes in self.codes]
        return means, np.array(modes, dtype=np.int64)

    def distances(self, center: Center) -> Floats:
        """Return the squared distance of every point from a center."""
        numbers, modes = center
        total = np.zeros(len(self))
        for coordinate, number in zip(self.numbers, numbers, strict=True):
            total += (coordinate - number) ** 2
        for place, (codes, mode) in enumerate(zip(self.codes, modes, strict=True)):
            total += self._from(place, int(mode)).take(codes)
        return total

    def _from(self, place: int, leaf: int) -> Floats:
        """Return the squared distance of every leaf of an attribute from one leaf."""
        table = self.tables[place]
        if leaf not in table:
            table[leaf] = _leaf_distances(self.names[place], leaf)
        return table[leaf]


def points_of(cells: Cells) -> Points:
    """Return the cells as points."""
    numbers = [line for place, item in enumerate(cells.attributes) for line in _coordinates(item, cells, place)]
    unordered = [place for place, item in enumerate(cells.attributes) if not item.is_ordered]
    return Points(
        numbers=np.array(numbers, dtype=np.float64).reshape(len(numbers), len(cells)),
        codes=np.ascontiguousarray(cells.codes[:, unordered].T, dtype=np.int64),
        names=tuple(cells.attributes[place] for place in unordered),
        tables=tuple({} for _ in unordered),
    )


def _coordinates(attribute: Attribute, cells: Cells, place: int) -> list[Floats]:
    """Return the coordinates of an ordered attribute: its standardized values, and whether they are missing."""
    if attribute.positions is None:
        return []
    values = attribute.positions[cells.codes[:, place]]
    known = ~np.isnan(values)
    scale = float(np.sqrt(attribute.weight))
    rows = cells.weights[known]
    mean = np.average(values[known], weights=rows) if known.any() else 0.0
    deviation = np.sqrt(np.average((values[known] - mean) ** 2, weights=rows)) if known.any() else 0.0
    standardized = np.where(known, values - mean, 0.0) / (deviation or 1.0)
    return [standardized * scale] if known.all() else [standardized * scale, ~known * scale]


def _leaf_distances(attribute: Attribute, leaf: int) -> Floats:
    if not attribute.has_hierarchy:
        return np.asarray((np.arange(len(attribute.leaves)) != leaf) * attribute.weight)
    level = np.sum([codes != codes[leaf] for codes in attribute.ancestors], axis=0)
    return np.asarray(attribute.leaf_losses[level, leaf] ** 2 * attribute.weight)
