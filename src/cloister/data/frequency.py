"""Frequency tables: how often each combination of values occurs, integer coded.

Row ``i`` of ``codes`` is a combination, ``weights[i]`` its number of rows. ``decoders[j]`` lists the values of column
``j``: a code is a position in it. A declared column (bins, or categories of the schema) has all its declared values, in
that order, then None: its decoder is public, and values outside the declaration are missing. Any other column has the
values that occur, sorted (text by code points), and None last if it occurs: that decoder is as private as the data.
Rows are sorted by their codes, so equal data give equal tables, whichever engine holds them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from types import MappingProxyType
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from cloister.data.engines.base import ARROW_TYPES
from cloister.data.values import StorageType
from cloister.errors import ParameterError, UnknownColumnError

__all__ = ["FrequencyTable", "MeasuredSums"]

Codes: TypeAlias = NDArray[np.int32]
_LARGEST_DENSE = 10**8


@dataclass(frozen=True, slots=True, eq=False)
class MeasuredSums:
    """The sums of one measure per group, as whole numbers of ``unit``.

    ``values`` is int64; where the public bounds allow sums beyond 64 bits it holds Python integers instead. ``steps``
    is the smallest and largest number that one row may have added.
    """

    values: NDArray[Any]
    unit: Fraction
    steps: tuple[int, int]

    def exact(self) -> list[Fraction]:
        """Return the sums in the column's own unit."""
        return [int(item) * self.unit for item in self.values]

    def __repr__(self) -> str:
        return f"MeasuredSums(unit={self.unit}, steps={self.steps})"


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class FrequencyTable:
    """Counts and sums per combination of values; shows its columns, never its counts."""

    columns: tuple[str, ...]
    codes: Codes
    weights: NDArray[np.int64]
    decoders: tuple[tuple[Any, ...], ...]
    types: tuple[StorageType, ...]
    declared: tuple[bool, ...]
    measures: Mapping[str, MeasuredSums]

    def __repr__(self) -> str:
        measures = f", measures={list(self.measures)}" if self.measures else ""
        return f"FrequencyTable(columns={list(self.columns)}{measures})"

    def __len__(self) -> int:
        return len(self.weights)

    @property
    def total(self) -> int:
        """Return the number of rows counted."""
        return int(self.weights.sum())

    @property
    def shape(self) -> tuple[int, ...]:
        """Return the number of values of each column, missing included where it is one."""
        return tuple(map(len, self.decoders))

    def decode(self) -> dict[str, list[Any]]:
        """Return the values of each column, one per group."""
        return {name: self._values(position).tolist() for position, name in enumerate(self.columns)}

    def marginal(self, columns: Sequence[str]) -> FrequencyTable:
        """Return the table of fewer (or reordered) columns, the others summed out."""
        for name in columns:
            if name not in self.columns:
                raise UnknownColumnError(name, self.columns)
        keep = [self.columns.index(name) for name in columns]
        return build(
            columns=tuple(columns),
            codes=self.codes[:, keep],
            weights=self.weights,
            decoders=tuple(self.decoders[position] for position in keep),
            types=tuple(self.types[position] for position in keep),
            declared=tuple(self.declared[position] for position in keep),
            measures=self.measures,
        )

    def dense(self) -> NDArray[np.int64]:
        """Return the counts of all combinations, absent ones as zero: one axis per column."""
        # In floats, since the product may be beyond 64 bits.
        cells = int(np.prod([float(size) for size in self.shape]))
        if cells > _LARGEST_DENSE:
            raise ParameterError(
                "These columns have too many combinations for a full array.", fix="use fewer columns or wider bins."
            )
        counts = np.zeros(self.shape, dtype=np.int64)
        # Each combination occurs once, so that assigning is adding.
        counts[tuple(self.codes.T)] = self.weights
        return counts

    def to_arrow(self) -> pa.Table:
        """Return an Arrow table: decoded columns, then ``count``, then the measures in whole steps."""
        arrays = [pa.array(self._plain(position), self._arrow_type(position)) for position in range(len(self.columns))]
        names = list(self.columns)
        for name, values in (("count", self.weights), *((key, item.values) for key, item in self.measures.items())):
            wide = values.dtype == object
            arrays.append(pa.array(values.tolist() if wide else values, pa.decimal128(38, 0) if wide else pa.int64()))
            names.append(name if name not in names else f"{name} (total)")
        return pa.table(arrays, names=names)

    def equals(self, other: FrequencyTable) -> bool:
        """Return whether two tables are the same in every code, count, value, measure and type."""
        return (
            (self.columns, self.decoders, self.types, self.declared)
            == (other.columns, other.decoders, other.types, other.declared)
            and _same(self.codes, other.codes)
            and _same(self.weights, other.weights)
            and list(self.measures) == list(other.measures)
            and all(_same_sums(item, other.measures[name]) for name, item in self.measures.items())
        )

    def _values(self, position: int) -> NDArray[Any]:
        values = np.empty(len(self.decoders[position]), dtype=object)
        values[:] = self.decoders[position]
        return values[self.codes[:, position]]

    def _plain(self, position: int) -> list[Any]:
        values: list[Any] = self._values(position).tolist()
        if self._arrow_type(position) != pa.string():
            return values
        return [None if item is None else str(item) for item in values]

    def _arrow_type(self, position: int) -> pa.DataType:
        plain = ARROW_TYPES[self.types[position]]
        try:
            pa.array(self.decoders[position], plain)
        except (pa.ArrowInvalid, pa.ArrowTypeError):
            return pa.string()
        return plain


def build(
    *,
    columns: tuple[str, ...],
    codes: Codes,
    weights: NDArray[np.int64],
    decoders: tuple[tuple[Any, ...], ...],
    types: tuple[StorageType, ...],
    declared: tuple[bool, ...],
    measures: Mapping[str, MeasuredSums],
) -> FrequencyTable:
    """Return a table with its groups sorted by code and equal groups added up."""
    order, starts = _groups(codes, tuple(map(len, decoders)))
    sums = {
        name: MeasuredSums(_add(item.values, order, starts), item.unit, item.steps) for name, item in measures.items()
    }
    return FrequencyTable(
        columns=columns,
        codes=_frozen(np.ascontiguousarray(codes[order][starts], dtype=np.int32)),
        weights=_add(weights, order, starts),
        decoders=decoders,
        types=types,
        declared=declared,
        measures=MappingProxyType(sums),
    )


def _groups(codes: Codes, shape: tuple[int, ...]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the order that sorts rows by their codes, and where in it each distinct row starts."""
    if codes.shape[1] == 0:
        # Without columns all rows are one group, and no rows are none.
        return np.arange(len(codes)), np.arange(min(len(codes), 1))
    if np.prod([float(size) for size in shape]) < 2.0**62:
        # One number for each row, digit by digit: NumPy's own function takes 64 columns at most.
        key = np.zeros(len(codes), dtype=np.int64)
        for column, size in zip(codes.T, shape, strict=True):
            key = key * size + column
        order = np.argsort(key, kind="stable")
        changed = np.diff(key[order]) != 0
    else:
        # lexsort sorts by its last key first, hence the columns in reverse.
        order = np.lexsort(codes.T[::-1])
        changed = (np.diff(codes[order], axis=0) != 0).any(axis=1)
    starts = np.flatnonzero(np.concatenate(([len(codes) > 0], changed)))
    return order, starts


def _add(values: NDArray[Any], order: NDArray[np.int64], starts: NDArray[np.int64]) -> NDArray[Any]:
    ordered = values[order]
    # reduceat cannot add up nothing.
    return _frozen(np.add.reduceat(ordered, starts) if len(starts) else ordered[:0])


def _frozen(array: NDArray[Any]) -> NDArray[Any]:
    # Tables are shared and kept: nobody may change a count behind another's back.
    array.flags.writeable = False
    return array


def _same(left: NDArray[Any], right: NDArray[Any]) -> bool:
    return left.dtype == right.dtype and np.array_equal(left, right)


def _same_sums(left: MeasuredSums, right: MeasuredSums) -> bool:
    return _same(left.values, right.values) and (left.unit, left.steps) == (right.unit, right.steps)
