"""Rows of two tables as numbers that are equal where the rows are, however their cells are written.

Copies hide behind little: another case, a blank, a number with noise in its ninth digit, another unit. So rows are held
against each other at three resolutions. ``written`` takes whole numbers and texts as they are (without case and outer
blanks) and other numbers to a ten-millionth of their range. ``near`` takes numbers to a five-hundredth of it. For
``ranked`` a number is its place among those of its own table, which no change of unit or scale hides.

The key of a row is a sum of one 64-bit hash per cell, so that columns can be left out or exchanged by subtraction.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from cloister.data.table import Table

__all__ = ["MISSING", "RESOLUTIONS", "Keys", "RowPair", "once", "read_numbers", "read_pair"]

Keys: TypeAlias = NDArray[np.uint64]
Codes: TypeAlias = NDArray[np.int64]

RESOLUTIONS = WRITTEN, NEAR, RANKED = ("written", "near", "ranked")
_FINE, _ROUGH = 10_000_000, 500
_RANKS = 32
MISSING = -(2**62)


@dataclass(frozen=True, eq=False, repr=False)
class RowPair:
    """The shared columns of two tables, coded alike. Protected.

    Attributes:
        names: the shared columns.
        original: one row per row of the original, one column per name.
        released: the same of the release.
        is_number: whether each column holds numbers or times in both.
        resolution: how closely cells are compared.
        strange: the columns whose released values are mostly none that the original could have.
    """

    names: tuple[str, ...]
    original: Codes
    released: Codes
    is_number: tuple[bool, ...]
    resolution: str
    strange: tuple[str, ...] = ()

    def hash_cells(self) -> tuple[Keys, Keys]:
        """Return the hash of every cell; the key of a row is the sum over its columns."""
        # The number of the column goes into the highest bits: equal values of different columns must not have
        # equal hashes.
        salts = np.arange(1, len(self.names) + 1, dtype=np.uint64) << np.uint64(56)
        return _mix(self.original.astype(np.uint64) ^ salts), _mix(self.released.astype(np.uint64) ^ salts)


def read_pair(original: Table, released: Table, names: Sequence[str], *, resolution: str) -> RowPair:
    """Return the rows of two tables at a resolution."""
    first, second = original.to_arrow().select(list(names)), released.to_arrow().select(list(names))
    coded = [_code_column(first[name], second[name], _public_categories(original, name), resolution) for name in names]
    return RowPair(
        names=tuple(names),
        original=_stack_columns([codes for codes, _, _ in coded], len(first)),
        released=_stack_columns([codes for _, codes, _ in coded], len(second)),
        resolution=resolution,
        is_number=tuple(is_strange is None for _, _, is_strange in coded),
        strange=tuple(name for name, (_, _, is_strange) in zip(names, coded, strict=True) if is_strange),
    )


def once(keys: Keys, *, times: int = 1) -> Keys:
    """Return the keys that occur once, or another number of times."""
    found, counts = np.unique(keys, return_counts=True)
    return np.asarray(found[counts == times], dtype=np.uint64)


def _public_categories(table: Table, name: str) -> list[str]:
    """Return the categories that are public, as texts."""
    column = None if table.schema is None else table.schema.columns.get(name)
    return [] if column is None or column.categories is None else [str(value) for value in column.categories]


def _code_column(
    first: pa.ChunkedArray, second: pa.ChunkedArray, declared: list[str], resolution: str
) -> tuple[Codes, Codes, bool | None]:
    """Return the codes of a column in both tables, and whether the second has mostly other values; None of numbers."""
    pair = read_numbers(first), read_numbers(second)
    if pair[0] is not None and pair[1] is not None:
        ours, theirs = _of_numbers(pair[0], pair[1], resolution)
        return ours, theirs, None
    texts = _texts(first), _texts(second)
    known = np.union1d(texts[0], np.asarray([_fold_text(text) for text in declared], dtype=str))
    codes = np.unique(np.concatenate(texts), return_inverse=True)[1]
    # Of a column that holds numbers in one table only, no cell can be compared; of others, most can be.
    is_strange = (pair[0] is None) != (pair[1] is None) or bool(np.mean(~np.isin(texts[1], known)) > 0.5)
    return codes[: len(texts[0])].astype(np.int64), codes[len(texts[0]) :].astype(np.int64), is_strange


def _of_numbers(first: NDArray[np.generic], second: NDArray[np.generic], resolution: str) -> tuple[Codes, Codes]:
    if resolution == WRITTEN and first.dtype.kind == second.dtype.kind == "i":
        return first.astype(np.int64), second.astype(np.int64)
    ours, theirs = first.astype(np.float64), second.astype(np.float64)
    if resolution == RANKED and min(len(np.unique(ours)), len(np.unique(theirs))) > _RANKS:
        return _rank(ours), _rank(theirs)
    finite = ours[np.isfinite(ours)]
    # Quarters keep every distance, and leave room for the range of numbers at both ends of what a float can hold.
    ours, theirs, finite = ours / 4, theirs / 4, finite / 4
    if not len(finite):
        return np.isnan(ours).astype(np.int64), np.isnan(theirs).astype(np.int64)
    # Outliers do not widen the steps of "near": the range is that of the inner 98% of the values.
    edges = (0.0, 1.0) if resolution == WRITTEN else (0.01, 0.99)
    low, high = np.quantile(finite, edges)
    step = (high - low) / (_FINE if resolution == WRITTEN else _ROUGH) or 0.25
    return _quantize(ours, low, step), _quantize(theirs, low, step)


def _quantize(values: NDArray[np.float64], low: float, step: float) -> Codes:
    scaled = np.clip((values - low) / step, -(2.0**60), 2.0**60)
    return np.where(np.isnan(scaled), MISSING, np.rint(np.nan_to_num(scaled))).astype(np.int64)


def _rank(values: NDArray[np.float64]) -> Codes:
    """Return which of 32 equally large parts of its own table each number is in."""
    edges = np.quantile(values[~np.isnan(values)], np.arange(1, _RANKS) / _RANKS)
    return np.where(np.isnan(values), MISSING, np.searchsorted(edges, values, side="right")).astype(np.int64)


def read_numbers(column: pa.ChunkedArray) -> NDArray[np.generic] | None:
    """Return a column as whole numbers, as numbers with NaN for missing ones, or None if it holds other values."""
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    if pa.types.is_temporal(column.type):
        column = column.cast(pa.timestamp("us")) if not pa.types.is_time(column.type) else column
        column = column.cast(pa.int64())
    if pa.types.is_boolean(column.type):
        return None
    if pa.types.is_integer(column.type) and not column.null_count:
        return np.asarray(column.to_numpy())
    if not pa.types.is_string(column.type) and not pa.types.is_large_string(column.type):
        return np.asarray(column.cast(pa.float64(), safe=False).to_numpy(), dtype=np.float64)
    return _numbers_in_texts(column)


def _numbers_in_texts(column: pa.ChunkedArray) -> NDArray[np.generic] | None:
    texts = pc.utf8_trim_whitespace(column)
    for kind in (pa.float64(), pa.timestamp("us")):
        try:
            read = texts.cast(kind)
        except pa.ArrowInvalid:
            continue
        return read_numbers(read)
    return None


def _texts(column: pa.ChunkedArray) -> NDArray[np.str_]:
    """Return cells as texts without case and superfluous blanks."""
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    kinds = pc.unique(column.cast(pa.string()))
    places = pc.index_in(column.cast(pa.string()), kinds).to_numpy()
    folded = np.asarray([_fold_text(text) for text in kinds.to_pylist()], dtype=str)
    return folded[places.astype(np.int64)] if len(places) else np.asarray([], dtype=str)


def _fold_text(text: str | None) -> str:
    return "\x00" if text is None else " ".join(text.casefold().split())


def _stack_columns(columns: list[Codes], count: int) -> Codes:
    return np.column_stack(columns) if columns else np.zeros((count, 0), dtype=np.int64)


def _mix(values: Keys) -> Keys:
    """Return a well-mixed 64-bit hash of each number (the finalizer of SplitMix64, Steele et al. 2014)."""
    with np.errstate(over="ignore"):
        values = values + np.uint64(0x9E3779B97F4A7C15)
        values = (values ^ (values >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        values = (values ^ (values >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        return values ^ (values >> np.uint64(31))
