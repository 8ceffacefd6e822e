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
from functools import cache
from pathlib import Path
from typing import Any

from cloister.accounting.ledger.database import Database, Session
from cloister.errors import LedgerDamagedError, LedgerError, LedgerUnreachableError, LedgerVersionError

APPLICATION = 0x636C6F69
VERSION = 1
PATIENCE = 120
"""Seconds to wait for other writers."""

_LINKING = 1.0
"""Seconds for which a new file may have two names, while it is made."""

_TABLES = """
CREATE TABLE accounts (
    dataset TEXT NOT NULL PRIMARY KEY,
    entries INTEGER NOT NULL,
    head TEXT NOT NULL
) WITHOUT ROWID;
CREATE TABLE entries (
    dataset TEXT NOT NULL,
    number INTEGER NOT NULL,
    kind TEXT NOT NULL,
    time TEXT NOT NULL,
    analyst TEXT,
    query_key TEXT,
    details TEXT NOT NULL,
    state TEXT NOT NULL,
    previous TEXT NOT NULL,
    digest TEXT NOT NULL,
    PRIMARY KEY (dataset, number)
) WITHOUT ROWID;
CREATE INDEX entries_by_analyst ON entries (dataset, analyst, number) WHERE analyst IS NOT NULL;
CREATE INDEX answers_by_key ON entries (dataset, query_key, number) WHERE kind = 'answer';
CREATE TRIGGER entries_stay BEFORE UPDATE ON entries
    BEGIN SELECT RAISE(ABORT, 'entries of a ledger are final'); END;
CREATE TRIGGER entries_remain BEFORE DELETE ON entries
    BEGIN SELECT RAISE(ABORT, 'entries of a ledger are final'); END;
CREATE TRIGGER entries_are_new BEFORE INSERT ON entries
    WHEN EXISTS (SELECT 1 FROM entries WHERE dataset = NEW.dataset AND number = NEW.number)
    BEGIN SELECT RAISE(ABORT, 'entries of a ledger are final'); END;
CREATE TRIGGER accounts_remain BEFORE DELETE ON accounts
    BEGIN SELECT RAISE(ABORT, 'accounts of a ledger stay'); END;
CREATE TRIGGER accounts_are_new BEFORE INSERT ON accounts
    WHEN EXISTS (SELECT 1 FROM accounts WHERE dataset = NEW.dataset)
    BEGIN SELECT RAISE(ABORT, 'accounts of a ledger stay'); END;
CREATE TRIGGER accounts_grow BEFORE UPDATE ON accounts
    WHEN NEW.dataset <> OLD.dataset OR NEW.entries <> OLD.entries + 1
    BEGIN SELECT RAISE(ABORT, 'accounts of a ledger only grow'); END;
"""

_LAYOUT = "SELECT type, name, sql FROM sqlite_master WHERE name NOT LIKE 'sqlite_%' ORDER BY type, name"

_DRIVER_ERRORS = (sqlite3.Error, UnicodeDecodeError)
"""SQLite quotes damaged bytes in its messages, and Python's driver then fails to decode them."""

_COPY = "copy it, with its -wal file, into a folder where you may write, or ask its owner."
_ERRORS: dict[str, tuple[type[LedgerError], str, str]] = {
    "SQLITE_BUSY": (LedgerUnreachableError, "is held by another writer for too long", "try again later."),
    "SQLITE_READONLY": (LedgerError, "may not be written to", _COPY),
    "SQLITE_CANTOPEN": (LedgerUnreachableError, "could not be opened", _COPY),
    "SQLITE_FULL": (LedgerError, "does not fit on the disk", "make room on the disk; nothing was spent."),
    "SQLITE_IOERR": (LedgerUnreachableError, "could not be read or written", "check the disk, then verify the ledger."),
}


class SqliteDatabase(Database):
    """A ledger in an SQLite file."""

    begin_reading = "BEGIN"
    begin_writing = "BEGIN IMMEDIATE"

    def __init__(self, path: Path, *, create: bool) -> None:
        super().__init__(f"sqlite:///{path}", driver_errors=_DRIVER_ERRORS)
        self._path = Path(os.path.realpath(path))
        try:
            self._check_place()
            if create and not self._path.exists():
                self._create()
            self._identity = self._file_identity()
            with self.reading() as session:
                _check_format(session, self.name)
        except OSError as error:
            raise LedgerUnreachableError(
                f"The ledger {self.name} cannot be reached or made: {error.strerror}.",
                fix="choose a file on a local disk, in a folder where you may write.",
            ) from None
        except LedgerError:
            self.close()
            raise

    def translate(self, statement: str) -> str:
        """Return a statement in SQLite's dialect."""
        return _translate(statement)

    def lock_openings(self, session: Session) -> None:
        """Do nothing: there is one writer at a time."""

    def check_storage(self, session: Session) -> None:
        """Let SQLite check its pages and indexes, and see that the tables still refuse edits."""
        if session.rows("PRAGMA integrity_check") != [("ok",)]:
            raise LedgerDamagedError(f"The ledger {self.name} is damaged: its pages or indexes disagree.")
        if session.rows(_LAYOUT) != _expected_layout():
            raise LedgerDamagedError(
                f"The tables of the ledger {self.name} were changed: its triggers no longer keep entries from edits."
            )

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
        except _DRIVER_ERRORS:
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

    def _explained(self, error: Exception) -> LedgerError:
        code = getattr(error, "sqlite_errorname", None) or ""
        for prefix, (kind, problem, fix) in _ERRORS.items():
            if code.startswith(prefix):
                return kind(f"The ledger {self.name} {problem}.", fix=fix)
        return LedgerDamagedError(f"The file of the ledger {self.name} is damaged, or is not a ledger.")

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


class MemoryDatabase(Database):
    """A ledger that lives and dies with this process; its threads take turns."""

    begin_reading = "BEGIN"
    begin_writing = "BEGIN IMMEDIATE"

    def __init__(self) -> None:
        super().__init__("memory:", driver_errors=_DRIVER_ERRORS)
        self._process = os.getpid()
        self._turn = threading.Lock()
        connection = sqlite3.connect(":memory:", isolation_level=None, check_same_thread=False)
        connection.executescript(_TABLES)
        self._idle.append((self._process, _prepared(connection)))

    def translate(self, statement: str) -> str:
        """Return a statement in SQLite's dialect."""
        return _translate(statement)

    def lock_openings(self, session: Session) -> None:
        """Do nothing: there is one writer at a time."""

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


@cache
def _translate(statement: str) -> str:
    return statement.replace("cloister_ledger.", "main.").replace(" FOR UPDATE", "")


@cache
def _expected_layout() -> list[tuple[str, str, str]]:
    connection = sqlite3.connect(":memory:")
    try:
        connection.executescript(_TABLES)
        return connection.execute(_LAYOUT).fetchall()
    finally:
        connection.close()


def _prepared(connection: sqlite3.Connection) -> sqlite3.Connection:
    connection.text_factory = _decode
    connection.execute("PRAGMA synchronous = FULL")
    connection.execute("PRAGMA fullfsync = ON")
    return connection


def _decode(text: bytes) -> str:
    """Read damaged text too, so that the chain can say where it is."""
    return text.decode("utf-8", errors="replace")


def _write_empty_ledger(path: Path) -> None:
    path.touch(mode=0o600)
    connection = sqlite3.connect(path, isolation_level=None)
    try:
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = FULL")
        connection.executescript(
            f"BEGIN; {_TABLES} PRAGMA application_id = {APPLICATION}; PRAGMA user_version = {VERSION}; COMMIT;"
        )
    finally:
        connection.close()


def _check_format(session: Session, name: str) -> None:
    ((application,),), ((version,),) = session.rows("PRAGMA application_id"), session.rows("PRAGMA user_version")
    if application != APPLICATION:
        raise LedgerDamagedError(
            f"The file {name} is an SQLite database or an empty file, but not a ledger.",
            fix="name another file; if this was a ledger, restore a backup.",
        )
    if version != VERSION:
        raise LedgerVersionError(
            f"The ledger {name} has format {version}, this cloister knows format {VERSION}.",
            fix="use the cloister that wrote it, or a newer one.",
        )
