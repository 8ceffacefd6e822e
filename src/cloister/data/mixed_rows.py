"""Rows of numbers and names side by side, coded alike over several tables so that they can be compared.

A number stays a number; any other value becomes a code that is the same in all tables. A missing number is NaN, a
missing name has a code of its own. Dates and times are days and seconds. The codes and the ranges are read from the
rows: what is here is as protected as the tables are.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from cloister.data.columns import Kind
from cloister.data.profile import StorageType
from cloister.data.table import Table
from cloister.errors import ParameterError

__all__ = ["MixedRows", "numbered_rows", "read_mixed_rows"]

Floats: TypeAlias = NDArray[np.float64]
Integers: TypeAlias = NDArray[np.int64]

_AMOUNTS = (StorageType.INTEGER, StorageType.REAL)
_TIMES = (StorageType.DATE, StorageType.TIMESTAMP)


@dataclass(frozen=True, eq=False, repr=False)
class MixedRows:
    """Rows as numbers and codes.

    Attributes:
        columns: the names of the columns of ``numbers``, then those of ``codes``.
        numbers: one row per row, one column per numeric column; NaN is missing.
        codes: one row per row, one column per other column.
        lows: the smallest value of each numeric column, by which distances are scaled.
        highs: the largest one.
    """

    columns: tuple[str, ...]
    numbers: Floats
    codes: NDArray[np.int32]
    lows: Floats
    highs: Floats

    def __repr__(self) -> str:
        return f"MixedRows({', '.join(self.columns)})"

    def __len__(self) -> int:
        return len(self.numbers)

    @property
    def numeric(self) -> int:
        """Return how many columns hold numbers; they come first."""
        return int(self.numbers.shape[1])

    def take(self, places: NDArray[Any]) -> MixedRows:
        """Return some rows, in the order asked for."""
        return replace(self, numbers=self.numbers[places], codes=self.codes[places])

    def only(self, names: Sequence[str]) -> MixedRows:
        """Return some columns."""
        first = [place for place, name in enumerate(self.columns[: self.numeric]) if name in names]
        second = [place for place, name in enumerate(self.columns[self.numeric :]) if name in names]
        return MixedRows(
            columns=tuple(name for name in self.columns if name in names),
            numbers=self.numbers[:, first],
            codes=self.codes[:, second],
            lows=self.lows[first],
            highs=self.highs[first],
        )

    def column(self, name: str) -> NDArray[Any]:
        """Return the numbers or the codes of one column."""
        place = self.columns.index(name)
        return self.numbers[:, place] if place < self.numeric else self.codes[:, place - self.numeric]

    def scaled(self) -> Floats:
        """Return the numbers between 0 and 1 by their range; NaN is missing, and a column of one value is 0."""
        # Quarters, since the range of extreme numbers may be more than a float can hold.
        spread = self.highs / 4 - self.lows / 4
        shown = np.clip(self.numbers, self.lows, self.highs) / 4 - self.lows / 4
        return np.asarray(np.divide(shown, spread, out=np.where(np.isnan(shown), np.nan, 0.0), where=spread > 0))


def read_mixed_rows(
    tables: Sequence[Table], names: Sequence[str], *, bounds: Mapping[str, tuple[float, float]] | None = None
) -> list[MixedRows]:
    """Return the rows of several tables, coded alike.

    Args:
        tables: each has all the columns. The schema of the first says which numbers are names of things.
        names: the columns.
        bounds: public ranges of numeric columns; without them, a range is that of all tables together.

    Raises:
        ParameterError: if a column holds numbers in one table and names in another.
    """
    numeric = [name for name in names if _is_numeric(tables, name)]
    others = [name for name in names if name not in numeric]
    read = [table.to_arrow().select(list(names)) for table in tables]
    numbers = [_matrix([_numbers(rows[name]) for name in numeric], len(rows)) for rows in read]
    codes = [np.zeros((len(rows), len(others)), dtype=np.int32) for rows in read]
    for place, name in enumerate(others):
        for target, values in zip(codes, _coded([rows[name] for rows in read]), strict=True):
            target[:, place] = values
    lows, highs = _ranges(numbers, numeric, bounds or {})
    columns = (*numeric, *others)
    return [MixedRows(columns, first, second, lows, highs) for first, second in zip(numbers, codes, strict=True)]


def numbered_rows(tables: Sequence[MixedRows]) -> list[Integers]:
    """Return for each table the number of the kind of each row: equal rows of any tables have equal numbers."""
    lengths = [len(rows) for rows in tables]
    numbers = np.concatenate([rows.numbers for rows in tables])
    codes = np.concatenate([rows.codes for rows in tables])
    kinds = np.zeros(sum(lengths), dtype=np.int64)
    for column in (*numbers.T, *codes.T):
        values, part = np.unique(column, return_inverse=True)
        _, kinds = np.unique(kinds * len(values) + part, return_inverse=True)
    return np.split(kinds.astype(np.int64), np.cumsum(lengths)[:-1])


def _is_numeric(tables: Sequence[Table], name: str) -> bool:
    kinds = [table.types[name] for table in tables]
    families = [family for family in (_AMOUNTS, _TIMES) if all(kind in family for kind in kinds)]
    if not families and len(set(kinds)) > 1:
        raise ParameterError(
            f'Column "{name}" holds {kinds[0]} values in one table and other values in another.',
            fix="store the column alike in all tables.",
        )
    schema = tables[0].schema
    described = None if schema is None else schema.columns.get(name)
    return bool(families) and (described is None or described.kind in (Kind.NUMERIC, Kind.DATETIME))


def _numbers(values: pa.ChunkedArray) -> Floats:
    if pa.types.is_date(values.type):
        values = values.cast(pa.int32() if pa.types.is_date32(values.type) else pa.int64())
    elif pa.types.is_timestamp(values.type):
        values = values.cast(pa.int64())
    return np.asarray(values.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False), dtype=np.float64)


def _coded(columns: Sequence[pa.ChunkedArray]) -> list[NDArray[np.int32]]:
    kind = columns[0].type
    encoded = pa.chunked_array([chunk for column in columns for chunk in column.cast(kind).chunks], kind)
    codes = pc.index_in(encoded, pc.unique(encoded)).to_numpy(zero_copy_only=False)
    return np.split(np.asarray(codes, dtype=np.int32), np.cumsum([len(column) for column in columns])[:-1])


def _matrix(columns: list[Floats], count: int) -> Floats:
    return np.column_stack(columns) if columns else np.zeros((count, 0))


def _ranges(
    numbers: list[Floats], names: list[str], bounds: Mapping[str, tuple[float, float]]
) -> tuple[Floats, Floats]:
    pooled = np.concatenate(numbers)
    finite = np.isfinite(pooled)
    lows = np.min(pooled, axis=0, initial=np.inf, where=finite)
    highs = np.max(pooled, axis=0, initial=-np.inf, where=finite)
    for place, name in enumerate(names):
        if name in bounds:
            lows[place], highs[place] = bounds[name]
    empty = lows > highs
    return np.where(empty, 0.0, lows), np.where(empty, 0.0, highs)
