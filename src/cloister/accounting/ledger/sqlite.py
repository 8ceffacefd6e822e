"""Ledgers in an SQLite file, or in the memory of one process.

A file is made complete under another name and then linked to its own, so that nobody sees half a ledger and nothing is
overwritten. Only its owner may read it. It must have one name: each name has a write-ahead log of its own, and two logs
would be two budgets. Every commit waits for the disk (``synchronous=FULL``); writers queue with ``BEGIN IMMEDIATE``.
"""

from __future__ import annotations

import os
import sqlite3
import tempfile
import threading
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

from cloister.accounting.ledger.database import VERSION, PooledDatabase, Session
from cloister.accounting.ledger.sqlite_tables import (
    ALONE,
    APPLICATION,
    DRIVER_ERRORS,
    HOSTED,
    SqliteDialect,
    decode,
    is_file_of_its_own,
    is_hosted,
    table_statements,
)
from cloister.errors import LedgerDamagedError, LedgerError, LedgerUnreachableError

PATIENCE = 120
"""Seconds to wait for other writers."""

_LINKING = 1.0
"""Seconds for which a new file may have two names, while it is made."""


class SqliteDatabase(SqliteDialect, PooledDatabase):
    """A ledger in an SQLite file of its own, or in that of a host."""

    begin_reading = "BEGIN"
    begin_writing = "BEGIN IMMEDIATE"

    def __init__(self, path: Path, *, create: bool) -> None:
        super().__init__(f"sqlite:///{path}", driver_errors=DRIVER_ERRORS)
        self._path = Path(os.path.realpath(path))
        try:
            self._check_place()
            if create and not self._path.exists():
                self._create()
            self._identity = self._file_identity()
            with self.reading() as session:
                self.prefix = self._found_prefix(session)
        except OSError as error:
            raise LedgerUnreachableError(
                f"The ledger {self.name} cannot be reached or made: {error.strerror}.",
                fix="choose a file on a local disk, in a folder where you may write.",
            ) from None
        except LedgerError:
            self.close()
            raise

    def _connect(self) -> sqlite3.Connection:
        connection = sqlite3.connect(
            f"{self._path.as_uri()}?mode=rw",
            uri=True,
            timeout=PATIENCE,
            isolation_level=None,
            check_same_thread=False,
        )
        try:
            return _prepared(connection)
        except DRIVER_ERRORS:
            connection.close()
            raise

    def _taken(self) -> tuple[Any, bool]:
        connection, fresh = super()._taken()
        try:
            if self._file_identity() != self._identity:
                raise LedgerDamagedError(f"The file of the ledger {self.name} was replaced while it was in use.")
        except LedgerError:
            connection.close()
            raise
        return connection, fresh

    def _found_prefix(self, session: Session) -> str:
        if is_file_of_its_own(session, self.name):
            return ALONE
        if is_hosted(session, self.name):
            return HOSTED
        raise LedgerDamagedError(
            f"The file {self.name} is an SQLite database or an empty file, but not a ledger.",
            fix="name another file; if this was a ledger, restore a backup.",
        )

    def _check_place(self) -> None:
        if not self._path.parent.is_dir():
            raise LedgerUnreachableError(
                f"There is no folder {self._path.parent} for the ledger {self.name}.",
                fix=f'make it first: mkdir -p "{self._path.parent}"',
            )
        if self._path.is_dir():
            raise LedgerUnreachableError(
                f"The ledger {self.name} is a folder.", fix="name a file, such as sqlite:///budget.db"
            )

    def _file_identity(self) -> tuple[int, int]:
        """Return what tells this file from any other; a file with two names would have two write-ahead logs."""
        deadline = time.monotonic() + _LINKING
        while (status := self._status()).st_nlink != 1:
            if time.monotonic() > deadline:
                raise LedgerError(
                    f"The file of the ledger {self.name} has {status.st_nlink} names (hard links): "
                    "each name could spend the whole budget.",
                    fix=f'remove the other names; find them with: find / -samefile "{self._path}"',
                )
            time.sleep(_LINKING / 100)
        return status.st_dev, status.st_ino

    def _status(self) -> os.stat_result:
        try:
            return self._path.stat()
        except FileNotFoundError:
            raise LedgerUnreachableError(
                f"There is no ledger at {self.name}.", fix="check the path, or open it with create=True."
            ) from None

    def _create(self) -> None:
        with self._translated(), tempfile.TemporaryDirectory(dir=self._path.parent, prefix=".ledger-") as folder:
            new = Path(folder) / "ledger.db"
            _write_empty_ledger(new)
            with suppress(FileExistsError):
                os.link(new, self._path)
            new.unlink()


class MemoryDatabase(SqliteDialect, PooledDatabase):
    """A ledger that lives and dies with this process; its threads take turns."""

    begin_reading = "BEGIN"
    begin_writing = "BEGIN IMMEDIATE"

    def __init__(self) -> None:
        super().__init__("memory:", driver_errors=DRIVER_ERRORS)
        self._process = os.getpid()
        self._turn = threading.Lock()
        connection = sqlite3.connect(":memory:", isolation_level=None, check_same_thread=False)
        for statement in table_statements(ALONE):
            connection.execute(statement)
        self._idle.append((self._process, _prepared(connection)))

    def check_storage(self, session: Session) -> None:
        """Do nothing: there is no file."""

    def _connect(self) -> Any:  # never returns
        raise LedgerError("This ledger has been closed.", fix="open a new one with cloister.open_ledger(...).")

    def _taken(self) -> tuple[Any, bool]:
        if os.getpid() != self._process:
            raise LedgerError(
                "A ledger in memory cannot be used in another process: both would spend the same budget.",
                fix="use a file: cloister.open_ledger('sqlite:///budget.db')",
            )
        self._turn.acquire()
        try:
            return super()._taken()
        except BaseException:
            self._turn.release()
            raise

    def _put_back(self, connection: Any, *, healthy: bool) -> None:
        if not healthy and connection.in_transaction:
            connection.execute("ROLLBACK")
        super()._put_back(connection, healthy=True)
        self._turn.release()

    def _explained(self, error: Exception) -> LedgerError:  # noqa: ARG002
        return LedgerDamagedError("The ledger in memory is damaged.")


def _prepared(connection: sqlite3.Connection) -> sqlite3.Connection:
    connection.text_factory = decode
    connection.execute("PRAGMA synchronous = FULL")
    connection.execute("PRAGMA fullfsync = ON")
    return connection


def _write_empty_ledger(path: Path) -> None:
    path.touch(mode=0o600)
    connection = sqlite3.connect(path, isolation_level=None)
    try:
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = FULL")
        marks = (f"PRAGMA application_id = {APPLICATION}", f"PRAGMA user_version = {VERSION}")
        for statement in ("BEGIN", *table_statements(ALONE), *marks, "COMMIT"):
            connection.execute(statement)
    finally:
        connection.close()
