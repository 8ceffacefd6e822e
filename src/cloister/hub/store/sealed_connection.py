"""DuckDB over one sealed file: bytes are decrypted when a query asks for them, and never touch a disk.

The connection can open this one file and nothing else, writes no temporary files (a query that would have to fails
instead), and its settings are locked.
"""

from __future__ import annotations

import datetime as dt
import io
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import IO, Any, Literal, cast

import duckdb
from fsspec.spec import AbstractFileSystem

from cloister.crypto.sealed_files import SealedReader
from cloister.data.engines.duckdb import connect, unreadable
from cloister.errors import CloisterError

__all__ = ["SealedFile", "connect_to_sealed"]

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
    def blamed(self) -> Iterator[None]:
        """Let damage to the file go before what others make of it."""
        try:
            yield
        except CloisterError as error:
            raise self._told() or error from None

    def failure(self, error: Exception) -> CloisterError:
        """Return why a query failed: damage to the file goes before what DuckDB makes of it."""
        return self._told() or unreadable(error)

    def _told(self) -> CloisterError | None:
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
    return connection.execute("SET lock_configuration = true")
