"""Ledgers in SQLite: in a file of their own, in that of a host, or in the memory of one process.

A file is made complete under another name and then linked to its own, so that nobody sees half a ledger and nothing is
overwritten. Only its owner may read it. It must have one name: each name has a write-ahead log of its own, and two logs
would be two budgets. Every commit waits for the disk (``synchronous=FULL``); writers queue with ``BEGIN IMMEDIATE``.

The tables are alone in a file or, with a prefix, next to the tables of a host. A file of its own is marked in its
header; a hosted ledger by the table ``cloister_ledger_format``.
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

from cloister.accounting.ledger._database import VERSION, Database, LedgerSession, PooledDatabase, check_version
from cloister.errors import LedgerDamagedError, LedgerError, LedgerUnreachableError

APPLICATION = 0x636C6F69
ALONE, HOSTED = "", "cloister_ledger_"
"""What the names of tables, indexes and triggers begin with."""

DRIVER_ERRORS = (sqlite3.Error, UnicodeDecodeError)
"""SQLite quotes damaged bytes in its messages, and Python's driver then fails to decode them."""

_TABLES = (
    """CREATE TABLE {prefix}accounts (
    dataset TEXT NOT NULL PRIMARY KEY,
    entries INTEGER NOT NULL,
    head TEXT NOT NULL
) WITHOUT ROWID""",
    """CREATE TABLE {prefix}entries (
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
) WITHOUT ROWID""",
    "CREATE INDEX {prefix}entries_by_analyst ON {prefix}entries (dataset, analyst, number) WHERE analyst IS NOT NULL",
    "CREATE INDEX {prefix}answers_by_key ON {prefix}entries (dataset, query_key, number) WHERE kind = 'answer'",
    """CREATE TRIGGER {prefix}entries_stay BEFORE UPDATE ON {prefix}entries
    BEGIN SELECT RAISE(ABORT, 'entries of a ledger are final'); END""",
    """CREATE TRIGGER {prefix}entries_remain BEFORE DELETE ON {prefix}entries
    BEGIN SELECT RAISE(ABORT, 'entries of a ledger are final'); END""",
    """CREATE TRIGGER {prefix}entries_are_new BEFORE INSERT ON {prefix}entries
    WHEN EXISTS (SELECT 1 FROM {prefix}entries WHERE dataset = NEW.dataset AND number = NEW.number)
    BEGIN SELECT RAISE(ABORT, 'entries of a ledger are final'); END""",
    """CREATE TRIGGER {prefix}accounts_remain BEFORE DELETE ON {prefix}accounts
    BEGIN SELECT RAISE(ABORT, 'accounts of a ledger stay'); END""",
    """CREATE TRIGGER {prefix}accounts_are_new BEFORE INSERT ON {prefix}accounts
    WHEN EXISTS (SELECT 1 FROM {prefix}accounts WHERE dataset = NEW.dataset)
    BEGIN SELECT RAISE(ABORT, 'accounts of a ledger stay'); END""",
    """CREATE TRIGGER {prefix}accounts_grow BEFORE UPDATE ON {prefix}accounts
    WHEN NEW.dataset <> OLD.dataset OR NEW.entries <> OLD.entries + 1
    BEGIN SELECT RAISE(ABORT, 'accounts of a ledger only grow'); END""",
)
_MARK = (
    "CREATE TABLE cloister_ledger_format (version INTEGER NOT NULL)",
    "INSERT INTO cloister_ledger_format VALUES (1)",
)
_IS_MARKED = "SELECT 1 FROM main.sqlite_master WHERE type = 'table' AND name = 'cloister_ledger_format'"
_LAYOUT = """
SELECT type, name, sql FROM main.sqlite_master
    WHERE name NOT GLOB 'sqlite_*' AND (lower(name) GLOB ? OR lower(tbl_name) GLOB ?) ORDER BY type, name
"""

_COPY = "copy it, with its -wal file, into a folder where you may write, or ask its owner."
_ERRORS: dict[str, tuple[type[LedgerError], str, str]] = {
    "SQLITE_BUSY": (LedgerUnreachableError, "is held by another writer for too long", "try again later."),
    "SQLITE_READONLY": (LedgerError, "may not be written to", _COPY),
    "SQLITE_CANTOPEN": (LedgerUnreachableError, "could not be opened", _COPY),
    "SQLITE_FULL": (LedgerError, "does not fit on the disk", "make room on the disk; nothing was spent."),
    "SQLITE_IOERR": (LedgerUnreachableError, "could not be read or written", "check the disk, then verify the ledger."),
}


class SqliteDialect(Database):
    """What all ledgers in SQLite have in common."""

    prefix = ALONE

    def translate(self, statement: str) -> str:
        """Return a statement in SQLite's dialect."""
        return _translate(statement, self.prefix)

    def lock_openings(self, session: LedgerSession) -> None:
        """Do nothing: there is one writer at a time."""

    def check_storage(self, session: LedgerSession) -> None:
        """Let SQLite check its pages and indexes, and see that the tables still refuse edits."""
        if any(session.rows(check) != [("ok",)] for check in self._integrity_checks()):
            raise LedgerDamagedError(f"The ledger {self.name} is damaged: its pages or indexes disagree.")
        ours = f"{self.prefix}*"
        # Compared with tables made by this very SQLite, since versions may store their text differently.
        if session.rows(_LAYOUT, ours, ours) != original_layout(self.prefix):
            raise LedgerDamagedError(
                f"The tables of the ledger {self.name} were changed: its triggers no longer keep entries from edits."
            )

    def _integrity_checks(self) -> tuple[str, ...]:
        """Leave the tables of a host out: their rules, and the functions that these need, are not ours."""
        if self.prefix == ALONE:
            return ("PRAGMA main.integrity_check",)
        return tuple(f"PRAGMA main.integrity_check({self.prefix}{name})" for name in ("accounts", "entries"))

    def _explained(self, error: Exception) -> LedgerError:
        code = getattr(error, "sqlite_errorname", None) or ""
        for start, (kind, problem, fix) in _ERRORS.items():
            if code.startswith(start):
                return kind(f"The ledger {self.name} {problem}.", fix=fix)
        return LedgerDamagedError(f"The file of the ledger {self.name} is damaged, or is not a ledger.")


def table_statements(prefix: str) -> tuple[str, ...]:
    """Return the statements that make the tables; a hosted ledger is marked last, once it is complete."""
    made = tuple(statement.format(prefix=prefix) for statement in _TABLES)
    return made if prefix == ALONE else made + _MARK


@cache
def original_layout(prefix: str) -> list[tuple[str, str, str]]:
    """Return what SQLite says of tables that nobody has changed."""
    connection = sqlite3.connect(":memory:")
    try:
        for statement in table_statements(prefix):
            connection.execute(statement)
        return connection.execute(_LAYOUT, ("*", "*")).fetchall()
    finally:
        connection.close()


def is_file_of_its_own(session: LedgerSession, name: str) -> bool:
    """Return whether the file is a ledger and nothing else, of a version that is known."""
    ((application,),), versions = session.rows("PRAGMA main.application_id"), session.rows("PRAGMA main.user_version")
    if application != APPLICATION:
        return False
    check_version(name, versions)
    return True


def is_hosted(session: LedgerSession, name: str) -> bool:
    """Return whether a host's database holds a ledger, of a version that is known."""
    if not session.rows(_IS_MARKED):
        return False
    check_version(name, session.rows("SELECT version FROM main.cloister_ledger_format"))
    return True


def decode(text: bytes) -> str:
    """Read damaged text too, so that the chain can say where it is."""
    return text.decode("utf-8", errors="replace")


@cache
def _translate(statement: str, prefix: str) -> str:
    return statement.replace("cloister_ledger.", f"main.{prefix}").replace(" FOR UPDATE", "")


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
            # Problems of the place are told apart before anything is written there.
            self._check_place()
            if create and not self._path.exists():
                self._create()
            self._identity = self._file_identity()
            with self.reading() as session:
                self.prefix = self._find_prefix(session)
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
            # mode=rw makes no file: a ledger that vanished must not come back empty, with its whole budget.
            f"{self._path.as_uri()}?mode=rw",
            uri=True,
            timeout=PATIENCE,
            # Left to itself, the driver begins and commits transactions where it likes.
            isolation_level=None,
            check_same_thread=False,
        )
        try:
            return _prepare(connection)
        except DRIVER_ERRORS:
            connection.close()
            raise

    def _take_connection(self) -> tuple[Any, bool]:
        connection, fresh = super()._take_connection()
        try:
            # A file put in the place of the ledger would be another budget under the same name.
            if self._file_identity() != self._identity:
                raise LedgerDamagedError(f"The file of the ledger {self.name} was replaced while it was in use.")
        except LedgerError:
            connection.close()
            raise
        return connection, fresh

    def _find_prefix(self, session: LedgerSession) -> str:
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
            # Whoever loses the race to make the file uses that of the winner.
            with suppress(FileExistsError):
                os.link(new, self._path)
            # The temporary name has to go at once, since a ledger with two names is refused.
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
        self._idle.append((self._process, _prepare(connection)))

    def check_storage(self, session: LedgerSession) -> None:
        """Do nothing: there is no file."""

    def _connect(self) -> Any:  # never returns
        raise LedgerError("This ledger has been closed.", fix="open a new one with cloister.open_ledger(...).")

    def _take_connection(self) -> tuple[Any, bool]:
        # A forked child has a copy of the memory, and of the budget.
        if os.getpid() != self._process:
            raise LedgerError(
                "A ledger in memory cannot be used in another process: both would spend the same budget.",
                fix="use a file: cloister.open_ledger('sqlite:///budget.db')",
            )
        self._turn.acquire()
        try:
            return super()._take_connection()
        except BaseException:
            self._turn.release()
            raise

    def _return_connection(self, connection: Any, *, healthy: bool) -> None:
        # Closing the connection would lose the ledger, so that it is rolled back and kept.
        if not healthy and connection.in_transaction:
            connection.execute("ROLLBACK")
        super()._return_connection(connection, healthy=True)
        self._turn.release()

    def _explained(self, error: Exception) -> LedgerError:  # noqa: ARG002
        return LedgerDamagedError("The ledger in memory is damaged.")


def _prepare(connection: sqlite3.Connection) -> sqlite3.Connection:
    connection.text_factory = decode
    connection.execute("PRAGMA synchronous = FULL")
    # On macOS an ordinary flush may stay in the cache of the drive.
    connection.execute("PRAGMA fullfsync = ON")
    return connection


def _write_empty_ledger(path: Path) -> None:
    path.touch(mode=0o600)
    connection = sqlite3.connect(path, isolation_level=None)
    try:
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = FULL")
        marks = (f"PRAGMA application_id = {APPLICATION}", f"PRAGMA user_version = {VERSION}")
        # Tables and marks appear in one transaction: a file without a mark was never a ledger.
        for statement in ("BEGIN", *table_statements(ALONE), *marks, "COMMIT"):
            connection.execute(statement)
    finally:
        connection.close()
