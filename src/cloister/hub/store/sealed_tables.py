"""Tables in sealed files: an upload becomes sealed Parquet, which DuckDB reads where it is, chunk by chunk.

The cells are read by the rules of `cloister.open_table`. What the columns of an upload are called, and which of them
got their types from their cells, is inside the sealed file too.

Bytes are decrypted when a query asks for them, and never touch a disk. The connection can open this one file and
nothing else, writes no temporary files (a query that would have to fails instead), and its settings are locked.
"""

from __future__ import annotations

import contextlib
import datetime as dt
import io
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import IO, Any, Literal, cast

import duckdb
import pyarrow as pa
from fsspec.spec import AbstractFileSystem
from pyarrow import parquet
from sqlglot import exp

from cloister.crypto.sealed_data import SealedReader
from cloister.data.engines.base import ARROW_TYPES, select_all
from cloister.data.engines.csv_input import read_header
from cloister.data.engines.duckdb import DuckDBEngine, connect, engine_over_connection, unreadable
from cloister.data.engines.files import engine_over_input, view_parquet
from cloister.data.sources import stated_storage
from cloister.data.table import Table
from cloister.data.values import StorageType
from cloister.errors import CloisterError, DataError, DecryptionError, ParameterError
from cloister.hub.store._upload_checks import (
    UploadLimits,
    check_columns,
    check_parquet,
    check_size,
    check_text,
    is_plain,
    limit_batches,
    plain_text,
)
from cloister.hub.store.blobs import Blob, BlobStore

__all__ = [
    "SealedFile",
    "TableLayout",
    "UploadLimits",
    "connect_to_sealed",
    "empty_table",
    "ingest",
    "layout_of",
    "open_sealed_table",
]


_PROTOCOL = "sealed"
_WRITTEN = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
"""Sealed files never change."""


class SealedFile:
    """One sealed file under a name of ours; it is opened anew by every query, so a deleted one is gone at once."""

    def __init__(self, opener: Callable[[], SealedReader], *, name: str) -> None:
        self._opener = opener
        self.name = name
        self._error: CloisterError | None = None
        with opener() as reader:
            self.size = reader.size

    @property
    def suffix(self) -> str:
        """Return nothing: it is never compressed, whatever it is called."""
        return ""

    def absolute(self) -> str:
        """Return what DuckDB finds it by: never a name that a person gave."""
        return f"{_PROTOCOL}://file"

    def open(self, mode: Literal["rb"]) -> IO[bytes]:  # noqa: ARG002  # there is no other way to open it
        """Open it for reading."""
        return cast("IO[bytes]", io.BufferedReader(self._opener()))

    def handle(self) -> _Handle:
        """Open it for reading by DuckDB."""
        return _Handle(self.remembered(self._opener), self)

    def remembered(self, work: Callable[[], Any]) -> Any:  # what the work gives
        """Do some work, and remember why it failed: DuckDB would hide that."""
        try:
            return work()
        except CloisterError as error:
            self._error = error
            raise

    @contextmanager
    def blame_file(self) -> Iterator[None]:
        """Let damage to the file go before what others make of it."""
        try:
            yield
        except CloisterError as error:
            raise self._take_error() or error from None

    def failure(self, error: Exception) -> CloisterError:
        """Return why a query failed: damage to the file goes before what DuckDB makes of it."""
        return self._take_error() or unreadable(error)

    def _take_error(self) -> CloisterError | None:
        """Return what is remembered, once."""
        error, self._error = self._error, None
        return error and error.with_traceback(None)


class _Handle:
    """What DuckDB reads from."""

    def __init__(self, reader: SealedReader, file: SealedFile) -> None:
        self._reader = reader
        self._file = file

    def seek(self, offset: int) -> int:
        return self._reader.seek(offset)

    def tell(self) -> int:
        return self._reader.tell()

    def read(self, size: int = -1) -> bytes:
        content: bytes = self._file.remembered(lambda: self._reader.read(size))
        return content

    def close(self) -> None:
        self._reader.close()


class _OneFile(AbstractFileSystem):  # type: ignore[misc]  # fsspec has no types
    """A file system with one file."""

    protocol = _PROTOCOL
    cachable = False  # codespell:ignore cachable

    def __init__(self, file: SealedFile) -> None:
        super().__init__()
        self._file = file

    def open(self, path: str, mode: str = "rb", **_: Any) -> _Handle:
        """Open the one file."""
        if mode != "rb" or not self.exists(path):
            raise PermissionError
        return self._file.handle()

    def info(self, path: str, **_: Any) -> dict[str, Any]:
        """Return the size of the one file."""
        return {"name": path, "size": self._file.size, "type": "file"}

    def exists(self, path: str, **_: Any) -> bool:
        """Return whether this is the one file."""
        return path == self._file.absolute()

    def isfile(self, path: str) -> bool:
        """Return whether this is the one file."""
        return self.exists(path)

    def glob(self, path: str, **_: Any) -> list[str]:
        """Return the one file."""
        return [path] if self.exists(path) else []

    def modified(self, path: str) -> dt.datetime:  # noqa: ARG002  # there is one file
        """Return the same time always."""
        return _WRITTEN


def connect_to_sealed(file: SealedFile, *, memory_limit: str) -> duckdb.DuckDBPyConnection:
    """Return a database in memory that can read one sealed file and no other, and that spills nothing."""
    connection = connect()
    connection.execute("SET temp_directory = ''")
    connection.execute("SET memory_limit = ?", [memory_limit])
    connection.register_filesystem(_OneFile(file))
    connection.execute("SET allowed_paths = ?", [[file.absolute()]])
    connection.execute("SET enable_external_access = false")
    # Locked last: no query can open anything after this.
    return connection.execute("SET lock_configuration = true")


_DATA = "cloister_data"
_FORMAT = "cloister.sealed-table/1"
_KEY = b"cloister"
_UNLIMITED = 2**62


@dataclass(frozen=True, slots=True)
class TableLayout:
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
    limits: UploadLimits | None = None,
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
    limits = limits or UploadLimits()
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
    limits: UploadLimits | None = None,
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
    connection = connect_to_sealed(file, memory_limit=(limits or UploadLimits()).memory)
    unknown = layout.sniffed if sniffed is None else layout.sniffed & frozenset(sniffed)
    engine = _engine_over_parquet(connection, file, names=tuple(layout.columns), sniffed=unknown)
    return Table(engine, schema=schema)


def layout_of(store: BlobStore, blob: Blob) -> TableLayout:
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
    return TableLayout(columns=columns, sniffed=frozenset(known["sniffed"]))


def empty_table(columns: Mapping[str, StorageType], schema: Any = None, *, sniffed: Iterable[str] = ()) -> Table:
    """Return a table of such columns and of this schema without any row, to plan and preview on."""
    fields = [(f"c{position}", ARROW_TYPES[storage]) for position, storage in enumerate(columns.values())]
    connection = connect().execute("SET enable_external_access = false")
    connection.register(_DATA, pa.schema(fields).empty_table())
    engine = engine_over_connection(connection, exp.to_table(_DATA), names=tuple(columns), sniffed=frozenset(sniffed))
    return Table(engine, schema=schema)


def _ingest_csv(
    store: BlobStore, text: Blob, storage: Mapping[str, StorageType], missing: tuple[str, ...], limits: UploadLimits
) -> Blob:
    check_size(0, text.size, limits)
    file = SealedFile(lambda: store.open(text), name="upload.csv")
    names, _ = read_header(file, "utf-8")
    check_columns(names, limits)
    connection = connect_to_sealed(file, memory_limit=limits.memory)
    with file.blame_file():
        engine = engine_over_input(file, connection, missing=missing, storage=storage)
    return _keep(store, engine, limits)


def _ingest_parquet(store: BlobStore, upload: Blob, missing: tuple[str, ...], limits: UploadLimits) -> Blob:
    with store.open(upload) as reader:
        names = check_parquet(reader, limits)
    file = SealedFile(lambda: store.open(upload), name="upload.parquet")
    connection = connect_to_sealed(file, memory_limit=limits.memory)
    engine = _engine_over_parquet(connection, file, names=names, missing=missing)
    _check_texts(engine, limits)
    return _keep(store, engine, limits)


def _as_plain_text(store: BlobStore, upload: Blob, encoding: str, limits: UploadLimits) -> Blob:
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


def _check_texts(engine: DuckDBEngine, limits: UploadLimits) -> None:
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


def _keep(store: BlobStore, engine: DuckDBEngine, limits: UploadLimits) -> Blob:
    """Seal the rows of an engine as Parquet whose columns are known by position; their names are beside them."""
    query, fields = select_all(engine)
    facts = {"schema": _FORMAT, "names": list(engine.names), "sniffed": sorted(engine.sniffed)}
    with store.writer(limit_bytes=_UNLIMITED) as writer:
        output = parquet.ParquetWriter(
            writer, fields.with_metadata({_KEY: json.dumps(facts).encode()}), compression="zstd"
        )
        try:
            for batch in limit_batches(engine.stream(query, fields), limits):
                output.write_batch(batch)
        # The writer is closed first, so that the footer which Parquet insists on writing goes nowhere.
        except BaseException:
            writer.close()
            with contextlib.suppress(ValueError):
                output.close()
            raise
        output.close()
    return writer.blob
