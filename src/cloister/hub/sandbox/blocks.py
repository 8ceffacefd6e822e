"""Blocks: the inputs of a run as plain matrices, split among processes by fresh private coins.

Every person (every row, where rows are protected) draws its block independently and uniformly. Privacy: fix the coins
of everybody else. Adding, removing or changing one person then changes one block only, whatever block that person
draws; and since the coins are independent of the data, the same holds for the mixture over all coins. Numbering persons
one after the other would not do under add/remove, where one row less renumbers all rows after it.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from cloister.core.random import RandomSource, integers_below
from cloister.errors import DataError

Inputs = Mapping[str, NDArray[np.float64]]
"""The matrix of each input: one row per row of the data, one column per chosen column."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Block:
    """What one process gets: its rows, and public facts."""

    inputs: Inputs
    parameters: Mapping[str, object]
    bounds: Mapping[str, Sequence[tuple[float, float]]]
    outputs: tuple[tuple[str, tuple[int, ...]], ...]
    entrypoint: str

    def __repr__(self) -> str:
        return f"<Block for {self.entrypoint}>"

    def encode(self, *, size: int) -> bytes:
        """Return the bytes that the confined process reads: a length, a JSON header, and the matrices."""
        header = {
            "entry": self.entrypoint,
            "inputs": [[name, *matrix.shape] for name, matrix in self.inputs.items()],
            "parameters": dict(self.parameters),
            "bounds": {name: [list(pair) for pair in pairs] for name, pairs in self.bounds.items()},
            "outputs": [[name, list(shape)] for name, shape in self.outputs],
            "size": size,
        }
        text = json.dumps(header).encode()
        matrices = [np.ascontiguousarray(matrix, dtype="<f8").tobytes() for matrix in self.inputs.values()]
        return b"".join([len(text).to_bytes(8, "little"), text, *matrices])


def numeric_column(column: pa.ChunkedArray, bounds: tuple[float, float]) -> NDArray[np.float64]:
    """Return a column of numbers, clamped to public bounds; what is missing or undefined is NaN.

    Raises:
        DataError: if the column's type holds no numbers.
    """
    kind = column.type
    if not (
        pa.types.is_integer(kind)
        or pa.types.is_floating(kind)
        or pa.types.is_decimal(kind)
        or pa.types.is_boolean(kind)
    ):
        raise DataError("A column that should hold numbers is of another type.", fix="choose numeric columns.")
    numbers = pc.cast(column, pa.float64(), safe=False).to_numpy()
    with np.errstate(invalid="ignore"):
        return np.clip(np.asarray(numbers, dtype=np.float64), *bounds)


def category_column(column: pa.ChunkedArray, categories: Sequence[object]) -> NDArray[np.float64]:
    """Return the place of each value among the public categories; others are NaN.

    Raises:
        DataError: if the categories are not of the column's type.
    """
    plain = column.cast(column.type.value_type) if pa.types.is_dictionary(column.type) else column
    try:
        known = pa.array(list(categories)).cast(plain.type)
    except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError):
        raise DataError(
            "The categories of a column are not of its type.", fix="mend the categories in the schema."
        ) from None
    return np.asarray(pc.cast(pc.index_in(plain, value_set=known), pa.float64()).to_numpy(), dtype=np.float64)


def persons_of(column: pa.ChunkedArray) -> NDArray[np.int64]:
    """Return a number for each row that is the same for rows of the same person; missing keys count as one person."""
    if pa.types.is_floating(column.type) or pa.types.is_nested(column.type):
        raise DataError("Persons are named by a column of floating or nested type.", fix="use whole numbers or text.")
    encoded = column if pa.types.is_dictionary(column.type) else pc.dictionary_encode(column, null_encoding="encode")
    codes = encoded.combine_chunks()
    merged = codes.chunk(0) if isinstance(codes, pa.ChunkedArray) else codes
    return np.asarray(pc.fill_null(merged.indices, -1).to_numpy(zero_copy_only=False), dtype=np.int64) + 1


def assign(persons: NDArray[np.int64] | int, blocks: int, source: RandomSource) -> NDArray[np.int64]:
    """Return the block of each row: one independent uniform draw per person, or per row where a number is given."""
    if isinstance(persons, int):
        return integers_below(source, blocks, persons)
    drawn = integers_below(source, blocks, int(persons.max(initial=-1)) + 1)
    return drawn[persons]


def split(inputs: Inputs, owners: NDArray[np.int64], blocks: int) -> Iterator[dict[str, NDArray[np.float64]]]:
    """Yield the rows of each block, also of those that got none, in the order of the data."""
    order = np.argsort(owners, kind="stable")
    ends = np.searchsorted(owners[order], np.arange(blocks + 1))
    for block in range(blocks):
        rows = order[ends[block] : ends[block + 1]]
        yield {name: matrix[rows] for name, matrix in inputs.items()}
