"""DuckDB's own tables: relations of a session, and tables of a database file, opened for reading."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import duckdb
from sqlglot import exp

from cloister.data.engines.base import Engine
from cloister.data.engines.duckdb import connect_to_file, engine_over_connection, engine_over_relation, tables_of
from cloister.data.engines.openers import (
    SourceOptions,
    check_readable,
    database_path,
    not_a_table,
    opens_objects,
    opens_urls,
)
from cloister.errors import DataError, SourceNotFoundError, did_you_mean

__all__ = ["open_database", "open_relation"]


@opens_objects("duckdb")
def open_relation(relation: Any, options: SourceOptions) -> Engine:
    """Return an engine over a relation, in its own session."""
    if not hasattr(relation, "query"):
        raise not_a_table(relation)
    return engine_over_relation(relation, missing=options.missing)


@opens_urls("duckdb", example="duckdb:///file", is_file=True)
def open_database(url: str, table: str, options: SourceOptions) -> Engine:
    """Return an engine over a table or view of a database file."""
    path = database_path(url)
    check_readable(path)
    try:
        connection = connect_to_file(str(path))
        known = tables_of(connection)
    except duckdb.Error:
        raise DataError(
            f'"{path}" is not a DuckDB database that can be opened.',
            fix="check the file, and close other programs that write to it.",
        ) from None
    schema, last = _choose_table(table, known, path)
    relation = exp.Table(this=exp.to_identifier(last, quoted=True), db=exp.to_identifier(schema, quoted=True))
    try:
        return engine_over_connection(connection, relation, missing=options.missing, is_foreign=True)
    except duckdb.Error:
        raise DataError(
            f'"{table}" cannot be read from "{path}" alone.',
            fix="if it is a view of other files, open those files, or make a table of it in the database.",
        ) from None


def _choose_table(table: str, known: list[tuple[str, str]], path: Path) -> tuple[str, str]:
    """Return the schema and name of a table as the database spells them; a bare name is in the schema main."""
    *schema, last = table.split(".", 1)
    wanted = [("main", table), *((name, last) for name in schema)]
    for candidate in wanted:
        for one in known:
            if tuple(map(str.lower, one)) == tuple(map(str.lower, candidate)):
                return one
    spelled = [name for first, second in known for name in (second, f"{first}.{second}")]
    raise SourceNotFoundError(
        f'"{path}" has no table "{table}".{did_you_mean(table, spelled)}', fix="name a table or view of the file."
    )
