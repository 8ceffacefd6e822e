"""What the engine returns, in the groups of the answer: whole numbers per component, protected."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray
from sqlglot import exp

from cloister.data.columns import MOST_CATEGORIES
from cloister.errors import ParameterError
from cloister.mechanisms.base import with_room
from cloister.queries._question import FixedPointNumber, GroupKey

__all__ = [
    "Component",
    "ExactCells",
    "Ranked",
    "check_size",
    "is_private",
    "occurring_cells",
    "public_cells",
    "rank_cells",
]


@dataclass(frozen=True, slots=True)
class Component:
    """One whole number per group: of rows, of present values, or a sum of centered numbers or of their squares."""

    kind: str
    of: exp.Expression | None = field(default=None, compare=False)
    center: int = 0
    largest: int = 1
    text: str = ""

    @classmethod
    def of_number(cls, kind: str, number: FixedPointNumber, center: int = 0) -> Component:
        """Return a component of a number."""
        away = max(abs(number.low - center), abs(number.high - center), 1)
        largest = {"present": 1, "total": away, "square": away**2}[kind]
        return cls(kind, number.steps, center if kind != "present" else 0, largest, number.text)

    @property
    def name(self) -> str:
        """Return what its measurement is called, also in stored answers."""
        return f"{self.kind} {self.text}" if self.text else self.kind

    def as_summed(self) -> tuple[Component, ...]:
        """Return what the engine sums for it: a centered total is a plain one, less the center of each value."""
        if self.kind != "total" or not self.center:
            return (self,)
        # The plain number can be as far from zero as the centered one and its center together, and the width of
        # the sum is planned for that.
        plain = Component("total", self.of, 0, self.largest + abs(self.center), self.text)
        return plain, Component("present", self.of, 0, 1, self.text)

    @classmethod
    def of_value(cls, kind: str, of: exp.Expression) -> Component:
        """Return a component of any SQL."""
        return cls(kind, of, 0, 1, _text(of))


@dataclass(frozen=True, slots=True)
class ExactCells:
    """Whole numbers per component in the groups of the answer; ``shown`` are the keys where they are not public."""

    shown: tuple[list[Any], ...]
    numbers: dict[Component, NDArray[Any]]
    size: int


@dataclass(frozen=True, slots=True)
class Ranked:
    """For one cell, the positions that occur and their weights, sorted."""

    positions: NDArray[np.int64]
    weights: NDArray[np.int64]


def center_cells(cells: ExactCells, components: Sequence[Component]) -> ExactCells:
    """Return the numbers of components, from those that the engine summed."""
    numbers = {}
    for part in components:
        summed = part.as_summed()
        numbers[part] = cells.numbers[summed[0]]
        if len(summed) > 1:
            # The center times a count can leave 64 bits even where the centered sum fits.
            counts = cells.numbers[summed[1]].astype(object)
            numbers[part] = with_room(cells.numbers[summed[0]].astype(object) - part.center * counts)
    return ExactCells(cells.shown, numbers, cells.size)


def check_size(keys: Sequence[GroupKey]) -> int:
    """Return how many public groups there are, or refuse too many."""
    size = 1
    for key in keys:
        size *= 1 if key.values is None else len(key.values)
    if size > MOST_CATEGORIES:
        raise ParameterError(
            f"The answer would have {size:,} groups, all of which are released, also empty ones.",
            fix=f"group by fewer columns or wider bins; at most {MOST_CATEGORIES:,} groups are answered at once.",
        )
    return size


def is_private(keys: Sequence[GroupKey]) -> bool:
    """Return whether groups are chosen privately: one of the keys is not public."""
    return any(key.values is None for key in keys)


def public_cells(result: pa.Table, keys: Sequence[GroupKey], components: Sequence[Component]) -> ExactCells:
    """Return all public groups in order; a group that does not occur is zero."""
    sizes = tuple(len(key.values or ()) for key in keys)
    size = check_size(keys)
    known, cell = _codes(result, keys, sizes)
    numbers = {}
    for number, part in enumerate(components):
        column = _integers(result.column(f"m{number}"))
        filled = np.zeros(size, dtype=column.dtype)
        np.add.at(filled, cell, column[known])
        numbers[part] = filled
    return ExactCells((), numbers, size)


def _codes(result: pa.Table, keys: Sequence[GroupKey], sizes: Sequence[int]) -> tuple[NDArray[Any], NDArray[np.int64]]:
    """Return which result rows are in a public group, and in which."""
    known = np.ones(result.num_rows, dtype=bool)
    cell = np.zeros(result.num_rows, dtype=np.int64)
    for number, (key, size) in enumerate(zip(keys, sizes, strict=True)):
        column = result.column(f"k{number}").combine_chunks()
        codes = _places(column, key.values or ())
        known &= codes >= 0
        # The code -1 of a value that is not public spoils its cell number, which is why such rows are masked
        # before it is used.
        cell = cell * size + codes
    return known, cell[known]


def _places(column: pa.Array, values: Sequence[Any]) -> NDArray[np.int64]:
    """Return where each item is among public values, -1 for none."""
    encoded = column.dictionary_encode()
    known = {value: place for place, value in enumerate(values)}
    # The last place is for missing items, which the dictionary does not hold.
    places = np.array([*(known.get(item, -1) for item in encoded.dictionary.to_pylist()), -1], dtype=np.int64)
    return np.asarray(places[_whole_numbers(encoded.indices, missing=len(places) - 1)])


def occurring_cells(result: pa.Table, keys: Sequence[GroupKey], components: Sequence[Component]) -> ExactCells:
    """Return the groups that occur, sorted by key; public keys among them only with their public values."""
    keep = np.ones(result.num_rows, dtype=bool)
    for number, key in enumerate(keys):
        column = result.column(f"k{number}").combine_chunks()
        keep &= ~pc.is_null(column).to_numpy(zero_copy_only=False)
        if key.values is not None:
            found = pc.is_in(column, value_set=pa.array(key.values, column.type))
            keep &= found.to_numpy(zero_copy_only=False)
    kept = result.filter(pa.array(keep))
    # Sorting by key hides the order in which the engine met the groups.
    order = pc.sort_indices(kept, [(f"k{number}", "ascending") for number in range(len(keys))])
    kept = kept.take(order)
    shown = tuple(_label_values(kept.column(f"k{number}"), key) for number, key in enumerate(keys))
    numbers = {part: _integers(kept.column(f"m{number}")) for number, part in enumerate(components)}
    return ExactCells(shown, numbers, kept.num_rows)


def _label_values(column: pa.ChunkedArray, key: GroupKey) -> list[Any]:
    values: list[Any] = column.to_pylist()
    if key.values is None or key.labels is None:
        return values
    names = dict(zip(key.values, key.labels, strict=True))
    return [names[value] for value in values]


def rank_cells(result: pa.Table, keys: Sequence[GroupKey]) -> list[Ranked]:
    """Return positions and weights per public group, from result rows of (keys, position, weight)."""
    sizes = tuple(len(key.values or ()) for key in keys)
    size = check_size(keys)
    present = pc.is_valid(result.column(f"k{len(keys)}")).combine_chunks().to_numpy(zero_copy_only=False)
    result = result.filter(pa.array(present))
    known, cell = _codes(result, keys, sizes)
    positions = result.column(f"k{len(keys)}").to_numpy().astype(np.int64)[known]
    weights = _integers(result.column("m0"))[known]
    # A weight that was rounded down to zero would be refused by the selection, and no row may make a release
    # fail.
    used = weights > 0
    cell, positions, weights = cell[used], positions[used], weights[used]
    order = np.lexsort((positions, cell))
    cell, positions, weights = cell[order], positions[order], weights[order]
    # A public group without rows gets an empty slice: it is ranked like all others.
    ends = np.searchsorted(cell, np.arange(size + 1))
    return [Ranked(positions[low:high], weights[low:high]) for low, high in pairwise(ends.tolist())]


def _integers(column: pa.ChunkedArray) -> NDArray[Any]:
    """Return whole numbers, Python's own where 64 bits may be few; an empty sum is zero."""
    if pa.types.is_decimal(column.type):
        numbers = np.empty(len(column), dtype=object)
        numbers[:] = [0 if item is None else int(item) for item in column.to_pylist()]
        return numbers
    return _whole_numbers(column.combine_chunks(), missing=0)


def _text(expression: exp.Expression) -> str:
    return expression.sql(identify=True)


def _whole_numbers(array: pa.Array, *, missing: int) -> NDArray[np.int64]:
    """Return an array of integers, something else for missing ones; Arrow's own way there would load pandas."""
    here = slice(array.offset, array.offset + len(array))
    validity, data = array.buffers()
    numbers = np.frombuffer(data or b"", dtype=np.dtype(f"i{array.type.bit_width // 8}"))[here].astype(np.int64)
    if array.null_count:
        present = np.unpackbits(np.frombuffer(validity, dtype=np.uint8), bitorder="little")[here]
        numbers[present == 0] = missing
    return numbers
