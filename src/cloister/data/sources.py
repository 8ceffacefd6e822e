"""Opening a table: a path, a glob, a data frame, Arrow, a DuckDB relation, a Spark data frame or a database URL."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlencode, urlsplit, urlunsplit

from cloister.data.columns import Column
from cloister.data.engines import openers
from cloister.data.engines.base import Engine
from cloister.data.engines.openers import FileOpener, SourceOptions
from cloister.data.table import Table
from cloister.data.values import StorageType
from cloister.errors import DataError, ParameterError, ParameterTypeError, SourceNotFoundError

__all__ = ["ensure_open", "files_of", "open_table", "stated_storage"]

_GLOB = frozenset("*?[")


def open_table(
    source: Any,
    schema: Any = None,
    *,
    name: str | None = None,
    missing: Sequence[str] = (),
    encoding: str | None = None,
) -> Table:
    """Open a table where it is; nothing is copied out of its engine.

    Args:
        source: a CSV (also .csv.gz) or Parquet path, a glob, a pandas or polars data frame, an Arrow table or dataset,
            a DuckDB relation, a PySpark data frame, or a URL ``postgresql://.../db?table=schema.table`` or
            ``duckdb:///file?table=name``.
        schema: a `Schema` or the path of a schema file. The columns of a CSV file or a pandas data frame whose storage
            it states are read in exactly that type, with cells that do not fit missing; other columns get the type that
            all cells have.
        name: the table's name in a database, instead of ``?table=``.
        missing: texts that stand for a missing value, such as ``("?", "NA")``.
        encoding: of a CSV file: utf-8 (the default), latin-1, cp1252 or utf-16.

    Raises:
        SourceNotFoundError: if there is no such file, table or server.
        DataError: if it is there and cannot be read.
        MissingExtraError: if the engine's package is not installed.
    """
    markers = _check_missing(missing)
    described = _read_schema(schema)
    if encoding is not None and not isinstance(source, str | Path):
        raise ParameterError("encoding= is for CSV files only.", fix="leave encoding out.")
    options = SourceOptions(missing=markers, storage=stated_storage(described), encoding=encoding)
    openers.load_engines()
    if isinstance(source, str) and "://" in source:
        engine = _open_url(source, name, options)
    elif isinstance(source, str | Path):
        engine = _open_path(os.fspath(source), options)
    else:
        engine = _open_object(source, options)
    return Table(engine, schema=described)


def ensure_open(table: Any) -> Table:  # what open_table takes
    """Return a table, opened if it is not yet."""
    return table if isinstance(table, Table) else open_table(table)


def files_of(source: str) -> list[Path]:
    """Return the files that a path, a pattern or the URL of a database file stands for; none for other databases."""
    if "://" not in source:
        return _find(source)
    openers.load_engines()
    kind = dict(openers.database_urls.items()).get(urlsplit(source).scheme)
    return [openers.database_path(source)] if kind is not None and kind.is_file else []


def _read_schema(schema: Any) -> Any:
    if not isinstance(schema, str | Path):
        return schema
    from cloister.data.schema import Schema

    return Schema.read(schema)


def stated_storage(schema: Any) -> dict[str, StorageType]:  # a Schema or None
    """Return the types that a schema states for columns, by name."""
    columns = getattr(schema, "columns", {}).values()
    stated = {column.name: column.stated_storage for column in columns if isinstance(column, Column)}
    return {name: storage for name, storage in stated.items() if storage is not None}


def _check_missing(missing: Sequence[str]) -> tuple[str, ...]:
    if isinstance(missing, str) or not all(isinstance(marker, str) for marker in missing):
        raise ParameterTypeError("missing= is not a list of texts.", fix='write for example missing=("?", "NA").')
    return tuple(missing)


def _open_path(text: str, options: SourceOptions) -> Engine:
    paths = _find(text)
    for path in paths:
        openers.check_readable(path)
    kinds = {_opener_of(path) for path in paths}
    if len(kinds) > 1:
        raise DataError(
            f'"{text}" matches files of several kinds.', fix="choose files of one kind, such as data/*.csv."
        )
    return kinds.pop()(paths, options)


def _find(text: str) -> list[Path]:
    path = Path(text)
    if path.exists() or not _GLOB.intersection(text):
        return [path]
    paths = sorted(Path(path.anchor or ".").glob(str(path.relative_to(path.anchor))))
    if not paths:
        raise SourceNotFoundError(f'No file matches "{text}".', fix="check the pattern and the folder it starts in.")
    return paths


def _opener_of(path: Path) -> FileOpener:
    name = path.name.lower()
    for ending, opener in openers.file_endings.items():
        if name.endswith(ending):
            return opener
    raise DataError(
        f'"{path.name}" is of a kind that is not known.',
        fix=f"give a file that ends in {', '.join(openers.file_endings)}; save spreadsheets as CSV.",
    )


def _open_object(source: Any, options: SourceOptions) -> Engine:
    package = type(source).__module__.split(".")[0].removeprefix("_")
    if package not in openers.object_packages:
        raise openers.not_a_table(source)
    return openers.object_packages.get(package)(source, options)


def _open_url(url: str, name: str | None, options: SourceOptions) -> Engine:
    bare, named = _split_table(url)
    scheme = urlsplit(url).scheme
    table = name or named
    kind = dict(openers.database_urls.items()).get(scheme)
    if (kind is not None or scheme == "sqlite") and not table:
        raise ParameterError("The URL names no table.", fix='add ?table=schema.table to it, or give name="table".')
    if kind is not None:
        # A path keeps the slashes that it begins with only in the URL as it was written.
        return kind.open(url if kind.is_file else bare, str(table), options)
    if scheme == "sqlite":
        raise DataError(
            "SQLite tables are not read directly.", fix="export the table to CSV or Parquet and open that file."
        )
    examples = dict.fromkeys(kind.example for _, kind in openers.database_urls.items())
    raise ParameterError(
        f'"{scheme}://" is not a kind of database that is known.',
        fix=f"use {', '.join(examples)}, or the path of a file; download files from the web first.",
    )


def _split_table(url: str) -> tuple[str, str | None]:
    """Return a database URL without its ``table`` parameter, and that parameter."""
    try:
        parts = urlsplit(url)
    except ValueError:
        raise ParameterError(
            "The address of the database is not a URL.", fix="write postgresql://user@host/database?table=name."
        ) from None
    query = parse_qsl(parts.query, keep_blank_values=True)
    table = next((text for key, text in query if key == "table"), None)
    rest = urlencode([(key, text) for key, text in query if key != "table"])
    return urlunsplit(parts._replace(query=rest)), table
