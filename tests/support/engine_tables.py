"""The same rows in every engine: one opener per engine, for the contract tests."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any, NamedTuple

import pyarrow as pa

from cloister.data.engines.base import ARROW_TYPES
from cloister.data.sources import open_table
from cloister.data.table import Table
from cloister.data.values import StorageType

_NUMBERS = itertools.count()
_POSTGRES_TYPES = {
    pa.int64(): "bigint",
    pa.float64(): "double precision",
    pa.bool_(): "boolean",
    pa.string(): "text",
    pa.date32(): "date",
    pa.timestamp("us"): "timestamp",
}

Opener = Callable[..., Table]


class NamedOpener(NamedTuple):
    """A kind of engine, and the function that puts a table into it."""

    name: str
    open: Opener


def arrow_table(columns: dict[str, tuple[StorageType, list[Any]]]) -> pa.Table:
    arrays = [pa.array(values, ARROW_TYPES[storage]) for storage, values in columns.values()]
    return pa.table(arrays, names=list(columns))


def open_in_duckdb(rows: pa.Table, **options: Any) -> Table:
    return open_table(rows, **options)


def postgres_opener(url: str) -> Opener:
    import psycopg
    from psycopg import sql

    def load(rows: pa.Table, **options: Any) -> Table:
        name = f"rows_{next(_NUMBERS)}"
        columns = sql.SQL(", ").join(
            sql.SQL("{} {}").format(sql.Identifier(field.name), sql.SQL(_POSTGRES_TYPES[field.type]))
            for field in rows.schema
        )
        with psycopg.connect(url) as connection, connection.cursor() as cursor:
            cursor.execute(sql.SQL("CREATE TABLE {} ({})").format(sql.Identifier(name), columns))
            with cursor.copy(sql.SQL("COPY {} FROM STDIN").format(sql.Identifier(name))) as copy:
                for row in zip(*(column.to_pylist() for column in rows.columns), strict=True):
                    copy.write_row(row)
        return open_table(url, name=name, **options)

    return load


def spark_opener(session: Any) -> Opener:
    session.conf.set("spark.sql.session.timeZone", "UTC")

    def load(rows: pa.Table, **options: Any) -> Table:
        return open_table(session.createDataFrame(rows), **options)

    return load
