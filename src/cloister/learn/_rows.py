"""Rows to learn from: distinct ones with how often they occur, as whole numbers, multiplied without rounding.

Floating point must not decide how far neighbors are apart. Features are put on a grid of whole numbers once, each cell
by itself; matrix products of whole numbers are exact in 64-bit floats, in whatever order they are added, as long as
every sum stays below 2**53. `cloister.core.whole_rows` takes care of that.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cloister.core.whole_rows import Floats, exact_product, limit_norms, whole_steps

__all__ = [
    "CompactRows",
    "Floats",
    "Pairs",
    "Parts",
    "WeightedRows",
    "exact_product",
    "limit_norms",
    "product_apart",
    "whole_steps",
]

Parts = tuple[NDArray[Any], ...]
"""One array per feature: its numbers, or the positions of its values (see `Encoding.parts`)."""


@dataclass(frozen=True, slots=True, eq=False)
class WeightedRows:
    """Encoded rows: features, target and how often each row occurs. Protected."""

    features: Floats
    target: NDArray[Any] | None
    weights: NDArray[np.int64]

    def __repr__(self) -> str:
        return f"Rows(features={self.features.shape[1]})"


@dataclass(frozen=True, slots=True, eq=False)
class Pairs:
    """How often each value of a feature comes with each class, feature by feature. Protected.

    A table has a row per class and a column per declared value; a row without a declared value is in none of them.
    """

    tables: tuple[NDArray[np.int64], ...]

    def __repr__(self) -> str:
        return f"Pairs(features={len(self.tables)})"

    @classmethod
    def of(cls, rows: WeightedRows, *, sizes: Sequence[int], classes: int) -> Pairs:
        """Return the pairs of rows whose features are codes, the number of values for what has none."""
        tables = []
        for place, size in enumerate(sizes):
            cells = np.asarray(rows.target) * (size + 1) + rows.features[:, place].astype(np.int64)
            pairs = np.zeros(classes * (size + 1), dtype=np.int64)
            np.add.at(pairs, cells, rows.weights)
            tables.append(pairs.reshape(classes, size + 1)[:, :size])
        return cls(tuple(tables))


@dataclass(frozen=True, slots=True, eq=False)
class CompactRows:
    """Encoded rows in which a category is one position instead of many columns, and how often each occurs. Protected.

    A position after the last one is for rows without a declared value.
    """

    parts: Parts
    weights: NDArray[np.int64]

    def __repr__(self) -> str:
        return f"Coded(features={len(self.parts)})"


def product_apart(rows: Floats, columns: Floats) -> Floats:
    """Return ``rows @ columns``, each row rounded as it would be alone.

    A matrix product adds up in an order that depends on how many rows there are. Here columns are added one by one, so
    that what follows learns from rows that do not change in the last bit when another one comes or goes.
    """
    total = np.zeros((len(rows), columns.shape[1]))
    for place, column in enumerate(columns):
        total += rows[:, place, None] * column
    return total
