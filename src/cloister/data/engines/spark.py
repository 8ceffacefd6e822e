"""Apache Spark: data beyond one machine. The table is a PySpark DataFrame; its session does the work.

Timestamps of Spark's default kind are read as wall-clock time in the session's time zone.
"""

from __future__ import annotations

import itertools
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
    repair_names,
    rows_of,
    unusable,
)
from cloister.data.profile import StorageType
from cloister.errors import DataError, MissingExtraError

__all__ = ["SparkEngine"]

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
_AS_IS = ("bigint", "double", "boolean", "string", "date", "timestamp_ntz")


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
        if native.startswith("string collate"):
            return exp.Collate(this=column, expression=exp.to_identifier("UTF8_BINARY"))
        return column if native in _AS_IS else exp.cast(column, SQL_TYPES[self.types[position]])

    def execute(self, query: exp.Select, schema: pa.Schema) -> pa.Table:
        """Run a query and return its columns in the Arrow types of ``schema``."""
        sql = query.sql(dialect=self.dialect, identify=True)
        try:
            return cast_columns(self._collect(sql), schema)
        except (self._failure, pa.ArrowException):
            raise DataError(
                "Spark could not finish the query.",
                fix="check that the session runs and its sources are readable; the executors' logs have the details.",
            ) from None
        except Exception as error:
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

    def _collect(self, sql: str) -> pa.Table:
        engines = [self, *self._others]
        for engine in engines:
            engine.frame.createOrReplaceTempView(engine.view)
        try:
            return _to_arrow(self.session.sql(sql))
        finally:
            for engine in engines:
                self.session.catalog.dropTempView(engine.view)


def _to_arrow(frame: Any) -> pa.Table:  # a pyspark DataFrame
    if hasattr(frame, "toArrow"):
        return frame.toArrow()
    return pa.Table.from_pandas(frame.toPandas(), preserve_index=False)


def _storage_type(native: str) -> StorageType:
    if native.startswith("decimal"):
        precision, scale = (int(part) for part in native[native.index("(") + 1 : -1].split(","))
        return decimal_storage(precision, scale)
    return _TYPES.get(native, StorageType.TEXT)
