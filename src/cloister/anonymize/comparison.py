"""A released table beside its original, both as counts.

Row ``i`` of ``codes`` says which label each quasi-identifier of class ``i`` shows, ``rows[i]`` how many rows show it;
`columns` says which raw values a label allows. Where it is known which raw row became which released one, `lines` holds
that too: the original cell, the class, and the number of rows.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from cloister.anonymize.cells import Cells
from cloister.anonymize.labels import ReadLabels, read_labels
from cloister.errors import DataError

__all__ = ["Comparison", "Lines", "compared"]

Counts: TypeAlias = NDArray[np.int64]


@dataclass(frozen=True, eq=False, kw_only=True)
class Lines:
    """Which original cell went into which class (-1: none), and how many rows of it."""

    cells: Counts
    classes: Counts
    counts: Counts


@dataclass(frozen=True, eq=False, kw_only=True)
class Comparison:
    """What was, and what is shown instead."""

    original: Cells
    columns: tuple[ReadLabels, ...]
    codes: NDArray[np.int32]
    rows: Counts
    lines: Lines | None = None
    class_losses: NDArray[np.float64] | None = None
    """The LM loss of each class (row) in each column, where more than the labels is known."""
    class_levels: NDArray[np.int64] | None = None
    """The level at which the rows of each class meet, likewise."""

    @property
    def names(self) -> tuple[str, ...]:
        """Return the quasi-identifiers."""
        return self.original.names

    @cached_property
    def total(self) -> int:
        """Return the number of original rows."""
        return self.original.total

    @cached_property
    def kept(self) -> int:
        """Return the number of released rows."""
        return int(self.rows.sum())

    @property
    def suppressed(self) -> int:
        """Return how many original rows are not released."""
        return self.total - self.kept

    def lost(self, place: int) -> float:
        """Return the sum of the LM losses of one column over the released rows."""
        if self.class_losses is not None:
            return float(self.rows @ self.class_losses[:, place])
        return float(self.label_rows(place) @ self.columns[place].losses)

    def climbed(self, place: int) -> float:
        """Return the number of levels climbed in one column over the released rows."""
        if self.class_levels is not None:
            return float(self.rows @ self.class_levels[:, place])
        return float(self.label_rows(place) @ self.columns[place].levels)

    @cached_property
    def original_columns(self) -> NDArray[np.intp]:
        """Return the codes of the original, one line per column, as NumPy looks things up fastest."""
        return np.ascontiguousarray(self.original.codes.T, dtype=np.intp)

    def label_rows(self, place: int) -> NDArray[np.float64]:
        """Return how many rows show each label of one column."""
        size = len(self.columns[place].losses)
        return np.bincount(self.codes[:, place], weights=self.rows, minlength=size).astype(np.float64)

    def leaf_rows(self, place: int) -> NDArray[np.float64]:
        """Return how many original rows have each raw value of one column."""
        size = len(self.original.attributes[place].leaves)
        codes, weights = self.original.codes[:, place], self.original.weights
        return np.bincount(codes, weights=weights, minlength=size).astype(np.float64)


def compared(
    original: Cells,
    released: Cells,
    kept: NDArray[np.bool_],
    *,
    lines: Lines | None = None,
    leaves_of: Callable[[int, Any], NDArray[np.int64]] | None = None,
) -> Comparison:
    """Return a comparison of an original with the kept cells of a released table.

    Args:
        original: the table as it was.
        released: the table as it is shown.
        kept: which released cells are not suppressed.
        lines: which cells became which, if that is known.
        leaves_of: the leaves behind a label of a column (by place) that cannot be read, if they are known.

    Raises:
        SchemaError: if labels cannot be read.
        DataError: if there are more released rows than original ones.
    """
    known = [None if leaves_of is None else partial(leaves_of, place) for place in range(len(original.attributes))]
    triples = zip(original.attributes, released.attributes, known, strict=True)
    result = Comparison(
        original=original,
        columns=tuple(read_labels(item, shown.leaves, leaves_of=leaves) for item, shown, leaves in triples),
        codes=released.codes[kept],
        rows=released.weights[kept],
        lines=lines,
    )
    if result.suppressed < 0:
        raise DataError(
            "The released table has more rows than the original.", fix="give the table that it was made from."
        )
    return result
