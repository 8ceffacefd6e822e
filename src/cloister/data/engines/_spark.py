"""Apache Spark: data beyond one machine. The table is a PySpark DataFrame; its session does the work.

Timestamps of Spark's default kind are read as wall-clock time in the session's time zone.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import pyarrow as pa
from sqlglot import exp

from cloister.data.engines.base import (
    SQL_TYPES,
    Engine,
    apart,
    cast_columns,
    decimal_storage,
    physical,
    rename_tables,
    repair_names,
    rows_of,
    unusable,
)
from cloister.data.engines.openers import SourceOptions, not_a_table, opens_objects
from cloister.data.values import StorageType
from cloister.errors import DataError, MissingExtraError

__all__ = ["SparkEngine", "open_spark"]

_NUMBERS = itertools.count()
_TYPES = {
    "tinyint": StorageType.INTEGER,
    "smallint": StorageType.INTEGER,
    "int": StorageType.INTEGER,
    "bigint": StorageType.INTEGER,
    "float": StorageType.REAL,
    "double": StorageType.REAL,
    "boolean": StorageType.BOOLEAN,
    "date": StorageType.DATE,
    "timestamp": StorageType.TIMESTAMP,
    "timestamp_ntz": StorageType.TIMESTAMP,
}
_AS_TEXT = ("string", "char(", "varchar(", "decimal", "time(", "void")
_AS_IS = ("bigint", "double", "boolean", "date", "timestamp_ntz")


class SparkEngine:
    """A PySpark DataFrame."""

    dialect = "spark"
    sniffed: frozenset[str] = frozenset()
    sums_overflow = True

    def __init__(self, frame: Any, *, missing: tuple[str, ...] = ()) -> None:  # a pyspark DataFrame
        try:
            from pyspark.errors import PySparkException
        except ImportError:
            raise MissingExtraError(what="Spark data frames", package="pyspark", extra="spark") from None
        self._failure: type[Exception] = PySparkException
        self.missing = missing
        self.names = repair_names(frame.columns)
        self._native = [field.dataType.simpleString() for field in frame.schema.fields]
        self.types = tuple(map(_storage_type, self._native))
        self.session = frame.sparkSession
        self._others: list[SparkEngine] = []
        self.view = f"cloister_data_{next(_NUMBERS)}"
        # Renamed once, since Spark's own names may repeat or differ in case alone.
        self.frame = frame.toDF(*(f"c{position}" for position in range(len(self.names))))
        self._source = rows_of(exp.to_table(self.view), len(self.names))

    def source(self) -> exp.Table:
        """Return the data frame's view with its columns renamed by position."""
        return self._source.copy()

    def stored(self, position: int) -> exp.Expression:
        """Return a column in its stored type; text in the collation of code points."""
        column, native = physical(position), self._native[position]
        if native not in _TYPES and not native.startswith(_AS_TEXT):
            raise unusable(self.names[position], native)
        if native == "timestamp":
            return _within_reach(column)
        if native.startswith("string"):
            # Spark keeps bytes that are no text as they are, and fails to hand them over.
            binary = exp.Collate(this=column, expression=exp.to_identifier("UTF8_BINARY"))
            plain = column if native == "string" else exp.paren(binary, copy=False)
            return exp.Anonymous(this="make_valid_utf8", expressions=[plain])
        return column if native in _AS_IS else exp.cast(column, SQL_TYPES[self.types[position]])

    def execute(self, query: exp.Select, schema: pa.Schema) -> pa.Table:
        """Run a query and return its columns in the Arrow types of ``schema``."""
        sql = query.sql(dialect=self.dialect, identify=True)
        try:
            return cast_columns(self._collect(sql), schema)
        except (self._failure, pa.ArrowException, UnicodeError):
            raise DataError(
                "Spark could not finish the query.",
                fix="check that the session runs and its sources are readable; the executors' logs have the details.",
            ) from None
        except Exception as error:
            # Errors of the bridge have no common class that could be imported without Spark.
            if not type(error).__module__.startswith("py4j"):
                raise
            raise DataError(
                "The connection to Spark is lost.", fix="start the session again and open the table anew."
            ) from None

    def beside(self, other: Engine) -> Engine:
        """Return another data frame of the same session; its view is made and dropped with this one's."""
        if not isinstance(other, SparkEngine) or other.session is not self.session:
            raise apart()
        self._others.append(other)
        return other

    def stream(self, query: exp.Select, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
        """Run a query and return its rows; Spark hands them over as a whole."""
        yield from self.execute(query, schema).to_batches()

    def derive(self, query: exp.Select, schema: pa.Schema, lookups: Mapping[str, pa.Table]) -> Engine:
        """Return an engine over a data frame that Spark computes when it is asked."""
        names = {name: f"cloister_lookup_{next(_NUMBERS)}" for name in lookups}
        frames = {names[name]: _from_arrow(self.session, table) for name, table in lookups.items()}
        sql = rename_tables(query, names).sql(dialect=self.dialect, identify=True)
        with self._views(frames):
            return SparkEngine(self.session.sql(sql).toDF(*schema.names))

    def store(self, name: str) -> None:
        """Write the rows as a new table of the session's catalog."""
        try:
            self.frame.toDF(*self.names).write.mode("errorifexists").saveAsTable(name)
        except self._failure:
            raise DataError(
                f'The table "{name}" could not be made.',
                fix="choose a name that is not taken, in a catalog that can keep tables.",
            ) from None

    def drop(self, name: str) -> None:
        """Delete a table that `store` made."""
        parts = ".".join(f"`{part}`" for part in name.split("."))
        self.session.sql(f"DROP TABLE IF EXISTS {parts}")

    def _collect(self, sql: str) -> pa.Table:
        with self._views({}):
            return _to_arrow(self.session.sql(sql))

    @contextmanager
    def _views(self, frames: Mapping[str, Any]) -> Iterator[None]:
        """Give the data frames their names while a query is read."""
        views = {engine.view: engine.frame for engine in (self, *self._others)} | dict(frames)
        # Names live only while a query is read, so that the session's catalog stays clean.
        for name, frame in views.items():
            frame.createOrReplaceTempView(name)
        try:
            yield
        finally:
            for name in views:
                self.session.catalog.dropTempView(name)


def _within_reach(column: exp.Expression) -> exp.Expression:
    """Return an instant as wall-clock time; far from any calendar the session's time zone would make it overflow."""
    first, last = (exp.cast(exp.Literal.string(text), "TIMESTAMP") for text in ("0000-01-01", "10000-01-31"))
    near = exp.And(
        this=exp.GTE(this=column.copy(), expression=first), expression=exp.LTE(this=column.copy(), expression=last)
    )
    return exp.Case().when(near, exp.cast(column.copy(), SQL_TYPES[StorageType.TIMESTAMP]))


def _from_arrow(session: Any, table: pa.Table) -> Any:  # a SparkSession and a DataFrame
    """Return an Arrow table as a data frame: through tuples, so that no missing value becomes a number."""
    kinds = {pa.int64(): "bigint", pa.float64(): "double", pa.bool_(): "boolean", pa.string(): "string"}
    kinds |= {pa.date32(): "date", pa.timestamp("us"): "timestamp_ntz"}
    layout = ", ".join(f"`{field.name}` {kinds[field.type]}" for field in table.schema)
    return session.createDataFrame(list(zip(*(column.to_pylist() for column in table.columns), strict=True)), layout)


def _to_arrow(frame: Any) -> pa.Table:  # a pyspark DataFrame
    # Older versions of Spark have no way to Arrow but through pandas.
    if hasattr(frame, "toArrow"):
        return frame.toArrow()
    return pa.Table.from_pandas(frame.toPandas(), preserve_index=False)


def _storage_type(native: str) -> StorageType:
    if native.startswith("decimal"):
        precision, scale = (int(part) for part in native[native.index("(") + 1 : -1].split(","))
        return decimal_storage(precision, scale)
    return _TYPES.get(native, StorageType.TEXT)


@opens_objects("pyspark")
def open_spark(frame: Any, options: SourceOptions) -> Engine:
    """Return an engine over a data frame, in its own session."""
    if not hasattr(frame, "sparkSession"):
        raise not_a_table(frame)
    return SparkEngine(frame, missing=options.missing)
