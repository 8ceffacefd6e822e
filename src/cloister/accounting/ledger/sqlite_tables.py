"""The ledger's tables in SQLite, alone in a file or, with a prefix, next to the tables of a host.

A file of its own is marked in its header; a hosted ledger by the table ``cloister_ledger_format``.
"""

from __future__ import annotations

import sqlite3
from functools import cache

from cloister.accounting.ledger.database import Database, Session, check_version
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

    def lock_openings(self, session: Session) -> None:
        """Do nothing: there is one writer at a time."""

    def check_storage(self, session: Session) -> None:
        """Let SQLite check its pages and indexes, and see that the tables still refuse edits."""
        if any(session.rows(check) != [("ok",)] for check in self._integrity_checks()):
            raise LedgerDamagedError(f"The ledger {self.name} is damaged: its pages or indexes disagree.")
        ours = f"{self.prefix}*"
        if session.rows(_LAYOUT, ours, ours) != expected_layout(self.prefix):
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
def expected_layout(prefix: str) -> list[tuple[str, str, str]]:
    """Return what SQLite says of tables that nobody has changed."""
    connection = sqlite3.connect(":memory:")
    try:
        for statement in table_statements(prefix):
            connection.execute(statement)
        return connection.execute(_LAYOUT, ("*", "*")).fetchall()
    finally:
        connection.close()


def is_file_of_its_own(session: Session, name: str) -> bool:
    """Return whether the file is a ledger and nothing else, of a version that is known."""
    ((application,),), versions = session.rows("PRAGMA main.application_id"), session.rows("PRAGMA main.user_version")
    if application != APPLICATION:
        return False
    check_version(name, versions)
    return True


def is_hosted(session: Session, name: str) -> bool:
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
