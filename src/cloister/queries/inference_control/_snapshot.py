"""One version of a table, held in memory, in which a row is known by its position."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray
from sqlglot import exp

from cloister.data.engines.base import ARROW_TYPES, literal, value
from cloister.data.engines.duckdb import engine_over_arrow
from cloister.data.table import Table
from cloister.data.values import StorageType
from cloister.errors import InternalError, ParameterError
from cloister.queries.inference_control._linear_audit import Mask

__all__ = ["Snapshot"]


class Snapshot:
    """The rows of a table as they were when it was opened."""

    def __init__(self, table: Table) -> None:
        rows = table.to_arrow()
        self._columns = [rows.column(place) for place in range(rows.num_columns)]
        self.size: int = rows.num_rows
        _check_subject(rows, table.schema.subject)
        place = _free_name(rows.column_names)
        numbered = rows.append_column(place, pa.array(np.arange(self.size, dtype=np.int64)))
        self.table = Table(engine_over_arrow(numbered), schema=table.schema)
        self._position = value(self.table.engine, rows.num_columns)

    def fingerprint(self, rows: int) -> str:
        """Return a digest of the first rows."""
        digest = hashlib.sha256()
        for column in self._columns:
            digest.update(json.dumps(column.slice(0, rows).to_pylist(), default=str).encode())
            digest.update(b"\n")
        return digest.hexdigest()

    def masks(self, conditions: Sequence[exp.Expression | None]) -> list[Mask]:
        """Return for each condition, None being true, which rows meet it."""
        given = [condition for condition in conditions if condition is not None]
        one, none = (literal(number, StorageType.INTEGER) for number in (1, 0))
        # A condition that is unknown because a value is missing counts as not met, as in WHERE.
        truths = [exp.Case().when(condition.copy(), one.copy()).else_(none.copy()) for condition in given]
        found = iter(self._read(truths, StorageType.INTEGER))
        everything = np.ones(self.size, dtype=np.bool_)
        return [everything if condition is None else _integers(next(found)) == 1 for condition in conditions]

    def places(self, group: exp.Expression, storage: StorageType, values: Sequence[object]) -> NDArray[np.int64]:
        """Return where the value of each row is among public values, -1 for none of them."""
        (column,) = self._read([group], storage)
        if pa.types.is_floating(column.type):
            column = pc.add(column, 0.0)
        encoded = column.combine_chunks().dictionary_encode()
        known: Mapping[object, int] = {item: place for place, item in enumerate(values)}
        places = [known.get(item, -1) for item in encoded.dictionary.to_pylist()]
        codes = _integers(pc.fill_null(encoded.indices.cast(pa.int64()), len(places)))
        return np.array([*places, -1], dtype=np.int64)[codes]

    def numbers(self, steps: exp.Expression) -> tuple[NDArray[np.int64], Mask]:
        """Return a whole number for each row, 0 where it is missing, and which rows have one."""
        (column,) = self._read([exp.cast(steps.copy(), "BIGINT", copy=False)], StorageType.INTEGER)
        present = pc.is_valid(column).combine_chunks()
        return _integers(pc.fill_null(column, 0)), present.to_numpy(zero_copy_only=False).astype(np.bool_)

    def _read(self, columns: Sequence[exp.Expression], storage: StorageType) -> list[pa.ChunkedArray]:
        """Return expressions for all rows, in the order of positions."""
        if not columns:
            return []
        names = ["place", *(f"x{number}" for number in range(len(columns)))]
        given = zip([self._position, *columns], names, strict=True)
        parts = [exp.alias_(part.copy(), name, quoted=True) for part, name in given]
        types = [pa.int64(), *([ARROW_TYPES[storage]] * len(columns))]
        query = exp.select(*parts).from_(self.table.engine.source())
        result = self.table.engine.execute(query, pa.schema(list(zip(names, types, strict=True))))
        ordered = result.sort_by("place")
        if not np.array_equal(_integers(ordered.column("place")), np.arange(self.size)):
            raise InternalError("rows were lost or repeated while a question was read.")
        return [ordered.column(name) for name in names[1:]]


def _integers(column: pa.ChunkedArray | pa.Array) -> NDArray[np.int64]:
    return np.asarray(column.to_numpy(), dtype=np.int64)


def _free_name(taken: Sequence[str]) -> str:
    name = "position"
    while name in taken:
        name += "_"
    return name


def _check_subject(rows: pa.Table, subject: str | None) -> None:
    if subject is None:
        return
    column = rows.column(subject)
    if column.null_count or pc.count_distinct(column).as_py() < rows.num_rows:
        raise ParameterError(
            f'"{subject}" does not name another person in every row; inference control counts rows as persons.',
            fix="make a table with one row for each person first, or use a PrivateTable.",
        )
