"""Work on the columns of an Arrow table: codes, numbers, conditions, replacements."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray
from sqlglot import exp

from cloister.data.engines.base import physical
from cloister.data.engines.duckdb import engine_over_arrow
from cloister.data.engines.predicates import resolve_condition
from cloister.errors import DataError, UnknownColumnError

Floats: TypeAlias = NDArray[np.float64]
Integers: TypeAlias = NDArray[np.int64]
Mask: TypeAlias = NDArray[np.bool_]

MISSING = -1
_ROW = "\x00row"


def column_of(rows: pa.Table, name: str) -> pa.Array:
    """Return a column in one piece.

    Raises:
        UnknownColumnError: if there is none of that name.
    """
    if name not in rows.column_names:
        raise UnknownColumnError(name, rows.column_names)
    column = rows.column(name).combine_chunks()
    return column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column


def with_column(rows: pa.Table, name: str, column: pa.Array) -> pa.Table:
    """Return the rows with a column replaced."""
    return rows.set_column(rows.column_names.index(name), name, column)


def without_columns(rows: pa.Table, names: Iterable[str]) -> pa.Table:
    """Return the rows without some columns."""
    return rows.drop_columns(list(names))


def encode_column(column: pa.Array) -> tuple[pa.Array, Integers]:
    """Return the distinct values of a column and the place of each cell among them, -1 for a missing one."""
    encoded = column.dictionary_encode()
    codes = encoded.indices.cast(pa.int64()).fill_null(MISSING)
    return encoded.dictionary, np.asarray(codes, dtype=np.int64)


def values_of(distinct: pa.Array) -> Any:  # an array of numbers, or a list of other values
    """Return distinct values as hierarchies take them."""
    if pa.types.is_integer(distinct.type) or pa.types.is_floating(distinct.type):
        return np.asarray(distinct)
    return distinct.to_pylist()


def decode_column(labels: Iterable[Any], codes: Integers, type_: pa.DataType | None = None) -> pa.Array:
    """Return a column from labels and the place of each cell's label, missing for -1."""
    chosen = pa.array(list(labels), type=type_)
    return chosen.take(pa.array(codes, mask=codes == MISSING))


def present(column: pa.Array) -> Mask:
    """Return which cells are not missing."""
    return np.asarray(column.is_valid().to_numpy(zero_copy_only=False), dtype=np.bool_)


def is_number(column: pa.Array) -> bool:
    """Return whether a column holds numbers."""
    return bool(pa.types.is_integer(column.type) or pa.types.is_floating(column.type))


def is_moment(column: pa.Array) -> bool:
    """Return whether a column holds dates or times."""
    return bool(pa.types.is_date(column.type) or pa.types.is_timestamp(column.type))


def need_numbers(column: pa.Array, name: str) -> pa.Array:
    """Return a column of finite numbers.

    Raises:
        DataError: if it holds anything else.
    """
    if not is_number(column):
        raise DataError(
            f'Column "{name}" does not hold numbers.', fix="use a numeric column, or convert it before opening."
        )
    if pa.types.is_floating(column.type) and not pc.all(pc.is_finite(column), min_count=0).as_py():
        raise DataError(f'Column "{name}" holds infinite numbers.', fix="make them missing, or top-code the column.")
    return column


def floats_of(column: pa.Array, name: str) -> Floats:
    """Return numbers as floats, NaN where missing."""
    numbers = need_numbers(column, name).cast(pa.float64(), safe=False)
    return np.array(numbers.to_numpy(zero_copy_only=False), dtype=np.float64)


def ordered_floats(column: pa.Array, name: str) -> Floats:
    """Return numbers, dates or times as floats on which distances make sense, NaN where missing.

    Raises:
        DataError: if the column holds something else.
    """
    if pa.types.is_date(column.type):
        column = column.cast(pa.int32())
    elif pa.types.is_timestamp(column.type):
        column = column.cast(pa.int64())
    return floats_of(column, name)


def rows_where(rows: pa.Table, where: str | None) -> Mask:
    """Return for which rows a SQL condition is true; without one, all."""
    if where is None:
        return np.ones(rows.num_rows, dtype=np.bool_)
    numbered = rows.append_column(_ROW, pa.array(np.arange(rows.num_rows)))
    engine = engine_over_arrow(numbered)
    # Resolved without the added column, which a condition must not name.
    condition = resolve_condition(where, engine_over_arrow(rows))
    number = exp.alias_(physical(rows.num_columns), "row", quoted=True)
    query = exp.select(number).from_(engine.source()).where(condition)
    found = engine.execute(query, pa.schema([("row", pa.int64())]))
    mask = np.zeros(rows.num_rows, dtype=np.bool_)
    mask[np.asarray(found.column("row"), dtype=np.int64)] = True
    return mask


def strata_of(rows: pa.Table, names: Iterable[str]) -> Integers:
    """Return the number of the group of equal values that each row is in; missing values are equal to each other."""
    strata = np.zeros(rows.num_rows, dtype=np.int64)
    for name in names:
        distinct, codes = encode_column(column_of(rows, name))
        # Missing cells have the code -1: one more makes them a value of their own.
        strata = refine_strata(strata, codes + 1, len(distinct) + 1)
    return strata


def refine_strata(strata: Integers, codes: Integers, count: int) -> Integers:
    """Return the number of the group of each row when groups are split by codes in 0 .. count - 1."""
    return np.asarray(np.unique(strata * count + codes, return_inverse=True)[1], dtype=np.int64).reshape(-1)
