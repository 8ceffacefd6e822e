"""Opening a table: a path, a glob, a data frame, Arrow, a DuckDB relation, a Spark data frame or a database URL."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import pyarrow as pa
from sqlglot import exp

from cloister.data.columns import Column
from cloister.data.engines.base import Engine, repair_names
from cloister.data.engines.files import (
    CSV_ENDINGS,
    PARQUET_ENDINGS,
    engine_over_csv,
    engine_over_parquet,
    in_stated_type,
)
from cloister.data.table import Table
from cloister.data.values import StorageType
from cloister.errors import DataError, ParameterError, ParameterTypeError, SourceNotFoundError, did_you_mean

__all__ = ["files_of", "open_table", "stated_storage"]

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
    if isinstance(source, str) and "://" in source:
        engine = _open_url(source, name, markers)
    elif isinstance(source, str | Path):
        engine = _open_path(os.fspath(source), markers, encoding, stated_storage(described))
    else:
        engine = _open_object(source, markers, stated_storage(described))
    return Table(engine, schema=described)


def files_of(source: str) -> list[Path]:
    """Return the files that a path, a pattern or a ``duckdb:`` URL stands for; none for other databases."""
    if "://" not in source:
        return _find(source)
    return [_database_path(source)] if urlsplit(source).scheme == "duckdb" else []


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


def _open_path(text: str, missing: tuple[str, ...], encoding: str | None, storage: dict[str, StorageType]) -> Engine:
    paths = _find(text)
    for path in paths:
        _check_readable(path)
    kinds = {_kind(path) for path in paths}
    if len(kinds) > 1:
        raise DataError(
            f'"{text}" matches files of several kinds.', fix="choose files of one kind, such as data/*.csv."
        )
    if kinds == {"parquet"}:
        return engine_over_parquet(paths, missing=missing)
    return engine_over_csv(paths, missing=missing, encoding=encoding, storage=storage)


def _find(text: str) -> list[Path]:
    path = Path(text)
    if path.exists() or not _GLOB.intersection(text):
        return [path]
    paths = sorted(Path(path.anchor or ".").glob(str(path.relative_to(path.anchor))))
    if not paths:
        raise SourceNotFoundError(f'No file matches "{text}".', fix="check the pattern and the folder it starts in.")
    return paths


def _check_readable(path: Path) -> None:
    if path.is_dir():
        raise DataError(
            f'"{path}" is a folder.',
            fix=f'name a file in it, or all of them with "{path}/*.csv" or "{path}/*.parquet".',
        )
    if not path.exists():
        siblings = [entry.name for entry in path.parent.iterdir()] if path.parent.is_dir() else []
        raise SourceNotFoundError(
            f'There is no file "{path}".{did_you_mean(path.name, siblings)}',
            fix="check the path and the working folder.",
        )
    if not os.access(path, os.R_OK):
        raise DataError(f'"{path}" may not be read by this account.', fix="ask its owner for the right to read it.")
    if path.stat().st_size == 0:
        raise DataError(f'"{path}" is empty.', fix="give a file with a header line and rows below it.")


def _kind(path: Path) -> str:
    name = path.name.lower()
    if name.endswith(PARQUET_ENDINGS):
        return "parquet"
    if name.endswith(CSV_ENDINGS):
        return "csv"
    raise DataError(
        f'"{path.name}" is of a kind that is not known.',
        fix=f"give a file that ends in {', '.join((*CSV_ENDINGS, *PARQUET_ENDINGS))}; save spreadsheets as CSV.",
    )


def _open_object(source: Any, missing: tuple[str, ...], storage: dict[str, StorageType]) -> Engine:
    package = type(source).__module__.split(".")[0].removeprefix("_")
    if package == "pandas":
        return _open_pandas(source, missing, storage)
    openers: dict[str, Callable[[Any, tuple[str, ...]], Engine]] = {
        "polars": _open_polars,
        "pyarrow": _open_arrow,
        "duckdb": _open_relation,
        "pyspark": _open_spark,
    }
    if package not in openers:
        raise _unknown(source)
    return openers[package](source, missing)


def _unknown(source: Any) -> ParameterTypeError:
    return ParameterTypeError(
        f"This is not a table but of type {type(source).__name__}.",
        fix="give a path, a pandas, polars or Spark data frame, Arrow data, a DuckDB relation or a database URL.",
    )


def _open_pandas(frame: Any, missing: tuple[str, ...], storage: dict[str, StorageType]) -> Engine:
    """Return an engine over a pandas data frame.

    pandas takes the type of a column from all of its cells: one that is missing turns whole numbers into reals. So a
    stated type is what is read, and one that is not stated is an assumption, as in a CSV file.
    """
    if not hasattr(frame, "columns"):
        raise _unknown(frame)
    names = repair_names(frame.columns)
    columns = [_from_pandas(frame.iloc[:, position]) for position in range(len(names))]
    columns = [
        in_stated_type(column, storage[name]) if name in storage else column
        for name, column in zip(names, columns, strict=True)
    ]
    is_declared = [hasattr(dtype, "na_value") for dtype in frame.dtypes]  # the types of pandas that have missing values
    sniffed = {name for name, declared in zip(names, is_declared, strict=True) if name not in storage and not declared}
    return _over_arrow(pa.table(columns, names=list(names)), missing, sniffed=frozenset(sniffed))


def _from_pandas(series: Any) -> Any:
    """Return a column as Arrow, without copying where it can be; a mixed column is text."""
    try:
        array = pa.array(series, from_pandas=True)
    except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError, OverflowError):
        present = series.notna()
        array = pa.array(series.where(~present, series.astype(str)), pa.string(), mask=~present.to_numpy())
    return array if isinstance(array, pa.ChunkedArray) else pa.chunked_array([array])


def _open_polars(frame: Any, missing: tuple[str, ...]) -> Engine:
    from polars.exceptions import PolarsError

    if not hasattr(frame, "collect") and not hasattr(frame, "get_columns"):
        raise _unknown(frame)
    try:
        rows = frame.collect().to_arrow() if hasattr(frame, "collect") else frame.to_arrow()
    except PolarsError:
        raise DataError(
            "Polars could not compute the data frame.", fix="check that it can be collected; cast objects to text."
        ) from None
    return _over_arrow(rows, missing)


def _open_arrow(source: Any, missing: tuple[str, ...]) -> Engine:
    if isinstance(source, pa.RecordBatch):
        source = pa.Table.from_batches([source])
    elif isinstance(source, pa.RecordBatchReader):
        source = source.read_all()
    if not hasattr(source, "schema"):
        raise _unknown(source)
    return _over_arrow(source, missing)


def _over_arrow(source: Any, missing: tuple[str, ...], *, sniffed: frozenset[str] = frozenset()) -> Engine:
    from cloister.data.engines.duckdb import engine_over_arrow

    if not source.schema.names:
        raise DataError("The table has no columns.", fix="give a table with at least one column.")
    return engine_over_arrow(source, missing=missing, sniffed=sniffed)


def _open_relation(relation: Any, missing: tuple[str, ...]) -> Engine:
    from cloister.data.engines.duckdb import engine_over_relation

    if not hasattr(relation, "query"):
        raise _unknown(relation)
    return engine_over_relation(relation, missing=missing)


def _open_spark(frame: Any, missing: tuple[str, ...]) -> Engine:
    from cloister.data.engines._spark import SparkEngine

    if not hasattr(frame, "sparkSession"):
        raise _unknown(frame)
    return SparkEngine(frame, missing=missing)


def _open_url(url: str, name: str | None, missing: tuple[str, ...]) -> Engine:
    from cloister.data.engines._postgres import PostgresEngine, split_table

    bare, named = split_table(url)
    scheme = urlsplit(url).scheme
    table = name or named
    if scheme in ("postgresql", "postgres", "duckdb", "sqlite") and not table:
        raise ParameterError("The URL names no table.", fix='add ?table=schema.table to it, or give name="table".')
    match scheme:
        case "postgresql" | "postgres":
            return PostgresEngine(bare, str(table), missing=missing)
        case "duckdb":
            return _open_database(url, str(table), missing)
        case "sqlite":
            raise DataError(
                "SQLite tables are not read directly.", fix="export the table to CSV or Parquet and open that file."
            )
    raise ParameterError(
        f'"{scheme}://" is not a kind of database that is known.',
        fix="use postgresql://..., duckdb:///file, or the path of a file; download files from the web first.",
    )


def _database_path(url: str) -> Path:
    return Path(unquote(urlsplit(url).path.removeprefix("/")) or ".")


def _open_database(url: str, table: str, missing: tuple[str, ...]) -> Engine:
    import duckdb

    from cloister.data.engines.duckdb import connect_to_file, engine_over_connection, tables_of

    path = _database_path(url)
    _check_readable(path)
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
        return engine_over_connection(connection, relation, missing=missing, is_foreign=True)
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
