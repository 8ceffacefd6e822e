"""Tables in sealed files: an upload becomes sealed Parquet, which DuckDB reads where it is, chunk by chunk.

The cells are read by the rules of `cloister.open_table`. What the columns of an upload are called, and which of them
got their types from their cells, is inside the sealed file too.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import duckdb
import pyarrow as pa
from pyarrow import parquet
from sqlglot import exp

from cloister.data.engines.base import ARROW_TYPES, select_all
from cloister.data.engines.csv_header import read_header
from cloister.data.engines.duckdb import DuckDBEngine, connect, engine_over_connection
from cloister.data.engines.files import engine_over_input, view_parquet
from cloister.data.profile import StorageType
from cloister.data.sources import stated_storage
from cloister.data.table import Table
from cloister.errors import DataError, DecryptionError, ParameterError
from cloister.hub.store.blobs import Blob, BlobStore
from cloister.hub.store.sealed_connection import SealedFile, connect_to_sealed
from cloister.hub.store.upload_checks import (
    Limits,
    check_columns,
    check_parquet,
    check_size,
    check_text,
    is_plain,
    limited,
    plain_text,
)

__all__ = ["Layout", "Limits", "empty_table", "ingest", "layout_of", "open_sealed_table"]

_DATA = "cloister_data"
_FORMAT = "cloister.sealed-table/1"
_KEY = b"cloister"
_UNLIMITED = 2**62


@dataclass(frozen=True, slots=True)
class Layout:
    """What a table is like: the names and types of its columns, and which types were decided by its cells."""

    columns: Mapping[str, StorageType]
    sniffed: frozenset[str]


def ingest(
    store: BlobStore,
    upload: Blob,
    *,
    format: Literal["csv", "parquet"],  # noqa: A002  # the word for it
    schema: Any = None,  # a Schema or None
    missing: Sequence[str] = (),
    encoding: str = "utf-8",
    limits: Limits | None = None,
) -> Blob:
    """Read a sealed upload by the rules of `cloister.open_table`, and keep its rows as sealed Parquet.

    Args:
        store: where the upload is and the table goes.
        upload: a CSV file, perhaps packed with gzip, or a Parquet file, as it was sent.
        format: which of the two.
        schema: states in which types columns of a CSV file are read; other columns get the type that all cells have,
            and are remembered as such. When the owner has stated the types, ingest the upload again with them.
        missing: texts that stand for a missing value.
        encoding: of a CSV file: utf-8, latin-1, cp1252 or utf-16.
        limits: how much the table may hold.

    Raises:
        DataError: if it is not of that format, damaged, or beyond the limits; no cell is quoted.
        DecryptionError: if the upload is not as it was sealed.
    """
    limits = limits or Limits()
    if format == "parquet":
        return _ingest_parquet(store, upload, tuple(missing), limits)
    if format != "csv":
        raise ParameterError("A table is uploaded as csv or parquet.", fix='say format="csv" or format="parquet".')
    with store.open(upload) as reader:
        check_text(reader)
        plain = is_plain(reader, encoding)
    text = upload if plain else _as_plain_text(store, upload, encoding, limits)
    try:
        return _ingest_csv(store, text, stated_storage(schema), tuple(missing), limits)
    finally:
        if text is not upload:
            store.delete(text)


def open_sealed_table(
    store: BlobStore,
    blob: Blob,
    schema: Any = None,
    *,
    sniffed: Iterable[str] | None = None,
    limits: Limits | None = None,
) -> Table:
    """Open a table that `ingest` kept; its rows are decrypted when they are asked for, and in memory only.

    Args:
        store: where the table is.
        blob: the table.
        schema: what its owner states about it, or None.
        sniffed: the columns whose types are no public knowledge; by default all that got them from their cells.
        limits: how much memory it may take.

    Raises:
        DecryptionError: if the key or the file is not as it was.
        SourceNotFoundError: if the file is gone.
    """
    layout = layout_of(store, blob)
    file = SealedFile(lambda: store.open(blob), name="table.parquet")
    connection = connect_to_sealed(file, memory_limit=(limits or Limits()).memory)
    unknown = layout.sniffed if sniffed is None else layout.sniffed & frozenset(sniffed)
    engine = _engine_over_parquet(connection, file, names=tuple(layout.columns), sniffed=unknown)
    return Table(engine, schema=schema)


def layout_of(store: BlobStore, blob: Blob) -> Layout:
    """Return the columns of a table that `ingest` kept.

    Raises:
        DecryptionError: if the key or the file is not as it was, or it is no table.
    """
    with store.open(blob) as reader:
        try:
            fields = parquet.read_schema(reader)
            known = json.loads(fields.metadata[_KEY])
        except (pa.ArrowException, KeyError, TypeError):
            raise DecryptionError from None
    kinds = {arrow: storage for storage, arrow in ARROW_TYPES.items()}
    columns = {name: kinds[field.type] for name, field in zip(known["names"], fields, strict=True)}
    return Layout(columns=columns, sniffed=frozenset(known["sniffed"]))


def empty_table(columns: Mapping[str, StorageType], schema: Any = None, *, sniffed: Iterable[str] = ()) -> Table:
    """Return a table of such columns and of this schema without any row, to plan and preview on."""
    fields = [(f"c{position}", ARROW_TYPES[storage]) for position, storage in enumerate(columns.values())]
    connection = connect().execute("SET enable_external_access = false")
    connection.register(_DATA, pa.schema(fields).empty_table())
    engine = engine_over_connection(connection, exp.to_table(_DATA), names=tuple(columns), sniffed=frozenset(sniffed))
    return Table(engine, schema=schema)


def _ingest_csv(
    store: BlobStore, text: Blob, storage: Mapping[str, StorageType], missing: tuple[str, ...], limits: Limits
) -> Blob:
    check_size(0, text.size, limits)
    file = SealedFile(lambda: store.open(text), name="upload.csv")
    names, _ = read_header(file, "utf-8")
    check_columns(names, limits)
    connection = connect_to_sealed(file, memory_limit=limits.memory)
    with file.blamed():
        engine = engine_over_input(file, connection, missing=missing, storage=storage)
    return _keep(store, engine, limits)


def _ingest_parquet(store: BlobStore, upload: Blob, missing: tuple[str, ...], limits: Limits) -> Blob:
    with store.open(upload) as reader:
        names = check_parquet(reader, limits)
    file = SealedFile(lambda: store.open(upload), name="upload.parquet")
    connection = connect_to_sealed(file, memory_limit=limits.memory)
    engine = _engine_over_parquet(connection, file, names=names, missing=missing)
    _check_texts(engine, limits)
    return _keep(store, engine, limits)


def _as_plain_text(store: BlobStore, upload: Blob, encoding: str, limits: Limits) -> Blob:
    """Return a sealed copy of a text that is unpacked and UTF-8."""
    file = SealedFile(lambda: store.open(upload), name="upload.csv")
    with file.open("rb") as stream, store.writer(limit_bytes=_UNLIMITED) as writer:
        for piece in plain_text(stream, file, encoding, limits, packed_bytes=upload.size):
            writer.write(piece)
    return writer.blob


def _engine_over_parquet(
    connection: duckdb.DuckDBPyConnection,
    file: SealedFile,
    *,
    names: Sequence[str],
    missing: tuple[str, ...] = (),
    sniffed: frozenset[str] = frozenset(),
) -> DuckDBEngine:
    try:
        view_parquet(connection, _DATA, [file.absolute()])
        return engine_over_connection(
            connection, exp.to_table(_DATA), names=names, missing=missing, sniffed=sniffed, failure=file.failure
        )
    except duckdb.Error as error:
        raise file.failure(error) from None


def _check_texts(engine: DuckDBEngine, limits: Limits) -> None:
    """Refuse texts that a few packed bytes unfold to, before any of them is copied."""
    texts = [position for position, storage in enumerate(engine.types) if storage is StorageType.TEXT]
    if not texts:
        return
    lengths = [exp.Anonymous(this="strlen", expressions=[engine.stored(position)]) for position in texts]
    sums = [exp.cast(exp.func("sum", length), "DOUBLE") for length in lengths]
    longest = [exp.cast(exp.func("max", length.copy()), "DOUBLE") for length in lengths]
    fields = pa.schema([(f"n{number}", pa.float64()) for number in range(2 * len(texts))])
    query = exp.select(*(exp.alias_(item, name) for item, name in zip([*sums, *longest], fields.names, strict=True)))
    found = [value or 0 for value in engine.execute(query.from_(engine.source()), fields).to_pylist()[0].values()]
    check_size(0, int(sum(found[: len(texts)])), limits)
    if max(found[len(texts) :]) > limits.cell_bytes:
        raise DataError(
            f"A cell of the upload has more than the {limits.cell_bytes:,} bytes that are taken.",
            fix="shorten the long texts or leave their column out.",
        )


def _keep(store: BlobStore, engine: DuckDBEngine, limits: Limits) -> Blob:
    """Seal the rows of an engine as Parquet whose columns are known by position; their names are beside them."""
    query, fields = select_all(engine)
    facts = {"schema": _FORMAT, "names": list(engine.names), "sniffed": sorted(engine.sniffed)}
    with store.writer(limit_bytes=_UNLIMITED) as writer:
        output = parquet.ParquetWriter(
            writer, fields.with_metadata({_KEY: json.dumps(facts).encode()}), compression="zstd"
        )
        try:
            for batch in limited(engine.stream(query, fields), limits):
                output.write_batch(batch)
        except BaseException:
            writer.close()
            with contextlib.suppress(ValueError):
                output.close()
            raise
        output.close()
    return writer.blob
