"""A table in its engine: what it has, its profiles, its frequency tables, and how it is written to a file.

A `Table` holds protected rows. Its ``repr`` shows columns and types only; what it computes is not private by itself.
Rows are written to CSV and Parquet files batch by batch, so that a table larger than memory can be written.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import pyarrow as pa
from sqlglot import exp

from cloister.core.atomic_files import write_with
from cloister.data.bins import ColumnBins
from cloister.data.columns import Column
from cloister.data.engines.aggregation import CountKey, count_groups, profile_columns
from cloister.data.engines.base import ARROW_TYPES, Engine, all_rows, literal, select_all
from cloister.data.engines.predicates import resolve_condition
from cloister.data.frequency import FrequencyTable
from cloister.data.measures import CountPresent, Measure, Sum
from cloister.data.values import ColumnProfile, StorageType
from cloister.errors import (
    CloisterError,
    DataError,
    DataWarning,
    MissingExtraError,
    ParameterError,
    ParameterTypeError,
    SchemaError,
    UnknownColumnError,
)

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl

__all__ = ["Table", "check_ending", "write_rows"]


_ENDINGS = {".csv": "csv", ".parquet": "parquet", ".pq": "parquet"}


def check_ending(path: str | Path) -> str:
    """Return whether a path is for a CSV or a Parquet file.

    Raises:
        DataError: if its ending is neither.
    """
    kind = _ENDINGS.get(Path(path).suffix.lower())
    if kind is None:
        raise DataError(
            f'"{Path(path).name}" has an ending that says no kind of file.',
            fix="use a name that ends in .csv or .parquet.",
        )
    return kind


def write_rows(path: str | Path, schema: pa.Schema, batches: Iterable[pa.RecordBatch], *, overwrite: bool) -> None:
    """Write batches of rows to a file, which appears whole or not at all."""
    kind = check_ending(path)

    def write(file: IO[bytes]) -> None:
        with _writer(kind, file, schema) as writer:
            for batch in batches:
                writer.write_batch(batch)

    write_with(path, write, overwrite=overwrite)


def _writer(kind: str, file: IO[bytes], schema: pa.Schema) -> Any:  # a writer of pyarrow
    if kind == "csv":
        from pyarrow import csv

        return csv.CSVWriter(file, schema)
    from pyarrow import parquet

    return parquet.ParquetWriter(file, schema, compression="zstd")


_SNIFFED = (
    "the types of columns are public, although they were read from the rows of the file "
    "(state the storage of every column in the schema to make them so)"
)


class Table:
    """Rows in an engine, with an optional schema. Open one with `cloister.open_table`."""

    def __init__(self, engine: Engine, *, schema: Any = None) -> None:  # a Schema or None
        unknown = [name for name in getattr(schema, "columns", ()) if name not in engine.names]
        if unknown:
            listing = ", ".join(f'"{name}"' for name in unknown)
            raise SchemaError(
                f"The schema describes columns that the table does not have: {listing}.",
                fix=f"remove or rename them; the table has {', '.join(engine.names)}.",
            )
        self._engine = engine
        self._schema = schema
        self._warn_of_contradictions()

    @property
    def engine(self) -> Engine:
        """Return the engine that holds the rows."""
        return self._engine

    @property
    def schema(self) -> Any:  # a Schema or None
        """Return the schema, or None."""
        return self._schema

    @property
    def columns(self) -> tuple[str, ...]:
        """Return the names of the columns."""
        return self._engine.names

    @property
    def types(self) -> dict[str, StorageType]:
        """Return the type of each column."""
        return dict(zip(self._engine.names, self._engine.types, strict=True))

    @property
    def assumptions(self) -> tuple[str, ...]:
        """Return what a promise about the rows assumes: a row that can change the type of a column is a private one."""
        return (_SNIFFED,) if self._engine.sniffed else ()

    def with_schema(self, schema: Any) -> Table:  # a Schema or None
        """Return the same rows under another schema."""
        return Table(self._engine, schema=schema)

    def without_rows(self) -> Table:
        """Return a table of the same columns that has no rows.

        Raises:
            DataError: if the rows are no longer to be had, such as a file that is gone; none of them is looked at.
        """
        from cloister.data.sources import open_table

        query = exp.select(exp.alias_(literal(1, StorageType.INTEGER), "c0", quoted=True)).from_(self._engine.source())
        self._engine.execute(query.where(exp.false()), pa.schema([("c0", pa.int64())]))
        columns = pa.schema([(name, ARROW_TYPES[storage]) for name, storage in self.types.items()])
        return open_table(columns.empty_table()).with_schema(self._schema)

    def beside(self, first: Table) -> Table:
        """Return the same rows where a query over the first table can join them.

        Raises:
            DataError: if the two are in different places.
        """
        return Table(first.engine.beside(self._engine), schema=self._schema)

    def __repr__(self) -> str:
        columns = ", ".join(f"{name}: {storage}" for name, storage in self.types.items())
        return f"Table({columns})"

    def frequencies(
        self,
        columns: Sequence[str],
        *,
        where: str | exp.Expression | None = None,
        bins: Mapping[str, Sequence[Any]] | None = None,
        measures: Mapping[str, Measure] | None = None,
    ) -> FrequencyTable:
        """Count the rows, and sum the measures, for each combination of values.

        Args:
            columns: what to group by; none gives one group with all rows.
            where: a SQL condition on rows, such as ``"age > 50 AND sex = 'F'"``.
            bins: public edges per column, half-open; values outside are missing.
            measures: a name for each `Sum`, `SumOfSquares` or `CountPresent`.

        Raises:
            UnknownColumnError: if a column does not exist.
            ParameterError: if an option is malformed, or could not be computed exactly.
        """
        edges = dict(bins or {})
        keys = [self._key(name, edges.pop(name, None)) for name in _names(columns)]
        if edges:
            self._position(next(iter(edges)))
            raise ParameterError(
                f'There are bins for "{next(iter(edges))}", which is not grouped by.',
                fix="add it to columns, or drop its bins.",
            )
        chosen = _check_measures(measures)
        positions = {name: self._check_measure(measure) for name, measure in chosen.items()}
        condition = None if where is None else resolve_condition(where, self._engine)
        return count_groups(self._engine, keys, condition=condition, measures=chosen, positions=positions)

    def count(self, where: str | exp.Expression | None = None) -> int:
        """Return the exact number of rows: protected, not for release."""
        return self.frequencies([], where=where).total

    def profiles(self) -> list[ColumnProfile]:
        """Return facts about every column, for proposing a schema: protected, not for release."""
        return profile_columns(self._engine)

    def to_arrow(self) -> pa.Table:
        """Return all rows as an Arrow table, in the engine's order."""
        rows = all_rows(self._engine).rename_columns(list(self._engine.names))
        self._verify_read()
        return rows

    def write(self, path: str | Path, *, overwrite: bool = False) -> None:
        """Write all rows to a CSV or Parquet file, by its ending; whole or not at all, and piece by piece.

        Raises:
            DataError: if the file is there already and may not be replaced, or cannot be written.
        """
        query, columns = select_all(self._engine)
        named = pa.schema([pa.field(name, item.type) for name, item in zip(self.columns, columns, strict=True)])
        write_rows(path, named, self._verify_batches(self._engine.stream(query, columns)), overwrite=overwrite)

    def _verify_batches(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Give the batches under the names of the columns; what must hold of them is checked before the end."""
        for batch in batches:
            yield batch.rename_columns(list(self.columns))
        self._verify_read()

    def _verify_read(self) -> None:
        """Return nothing when rows that were just read may be handed out, else raise; anything goes, by default."""

    def store(self, name: str) -> None:
        """Write all rows as a new table beside the one they come from, without taking them out of their engine.

        Raises:
            DataError: if the engine has no tables of its own, or the table cannot be made.
        """
        self._engine.store(name)
        try:
            self._verify_read()
        except CloisterError:
            self._engine.drop(name)
            raise

    def to_pandas(self) -> pd.DataFrame:
        """Return all rows as a pandas data frame."""
        try:
            import pandas as pd  # noqa: F401  # Arrow needs it
        except ImportError:
            raise MissingExtraError(what="Data frames", package="pandas", extra="pandas") from None
        return self.to_arrow().to_pandas()

    def to_polars(self) -> pl.DataFrame:
        """Return all rows as a polars data frame."""
        try:
            import polars as pl
        except ImportError:
            raise MissingExtraError(what="Polars data frames", package="polars", extra="polars") from None
        return pl.from_arrow(self.to_arrow())

    def _warn_of_contradictions(self) -> None:
        described = getattr(self._schema, "columns", {})
        known = {name: column for name, column in described.items() if isinstance(column, Column)}
        wrong = [
            f'"{name}" is called {column.stated_storage or column.kind} and stored as {self.types[name]}'
            for name, column in known.items()
            if not column.fits(self.types[name]) or column.stated_storage not in (None, self.types[name])
        ]
        if wrong:
            warnings.warn(
                f"The schema contradicts the table: {', '.join(wrong)}. Correct the kind or storage, or mend the data; "
                'texts that stand for missing values are given with missing=("?",).',
                DataWarning,
                stacklevel=4,
            )

    def _position(self, name: str) -> int:
        if name not in self._engine.names:
            raise UnknownColumnError(str(name), self._engine.names)
        return self._engine.names.index(name)

    def _key(self, name: str, edges: Sequence[Any] | None) -> CountKey:
        position = self._position(name)
        storage = self._engine.types[position]
        bins = None if edges is None else ColumnBins.of(name, edges, storage)
        described = self._schema.columns.get(name) if self._schema is not None else None
        categories = None if described is None or bins is not None else described.categories
        guessed = categories is not None and "categories" in getattr(described, "guessed", ())
        declared = bins is not None or (categories is not None and not guessed)
        return CountKey(
            name=name, position=position, type=storage, bins=bins, categories=categories, is_declared=declared
        )

    def _check_measure(self, measure: Measure) -> int:
        if not isinstance(measure, Sum | CountPresent):
            raise ParameterTypeError(
                "A measure is not a Sum, SumOfSquares or CountPresent.",
                fix='write for example measures={"cost": Sum("cost", bounds=(0, 1000))}.',
            )
        position = self._position(measure.column)
        measure.check(self._engine.types[position])
        return position


def _check_measures(measures: Mapping[str, Measure] | None) -> dict[str, Measure]:
    if measures is not None and not isinstance(measures, Mapping):
        raise ParameterTypeError(
            "measures is not a mapping from names to measures.",
            fix='write for example measures={"cost": Sum("cost", bounds=(0, 1000))}.',
        )
    return dict(measures or {})


def _names(columns: Sequence[str]) -> list[str]:
    if isinstance(columns, str):
        raise ParameterTypeError("columns is one text, not a list of names.", fix=f'write ["{columns}"].')
    names = list(columns)
    repeated = next((name for name in names if names.count(name) > 1), None)
    if repeated is not None:
        raise ParameterError(f'Column "{repeated}" is listed twice.', fix="list each column once.")
    return names
