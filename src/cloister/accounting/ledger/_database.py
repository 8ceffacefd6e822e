"""The seam under the ledger: transactions on a database, most of them on pooled connections that survive forks.

The statements of the ledger are the same for every database: they are written once, for PostgreSQL with ``?`` as
placeholder, and each database translates them.
"""

from __future__ import annotations

import os
import weakref
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from typing import Any, ClassVar

from cloister.accounting.ledger._chain import COLUMNS, Record, damage_error
from cloister.errors import CloisterError, LedgerError, LedgerVersionError, UnknownAccountError, did_you_mean

VERSION = 1
"""The format of the tables."""

_ABANDONED: list[Any] = []
"""Connections of a parent process: closing them in a child would disturb the parent, so they are only kept."""


class LedgerSession:
    """One transaction."""

    def __init__(self, database: Database, make_cursor: Callable[[], Any]) -> None:  # Any: a cursor of any driver
        self._database, self._make_cursor = database, make_cursor

    def rows(self, statement: str, *parameters: object) -> list[tuple[Any, ...]]:
        """Run a statement and return its rows, if it has any."""
        text = self._database.translate(statement)
        cursor = self._make_cursor()
        # Given parameters, even none, psycopg takes every percent sign for a placeholder.
        cursor.execute(text, parameters) if parameters else cursor.execute(text)
        return cursor.fetchall() if cursor.description else []

    def lock_openings(self) -> None:
        """Let nobody else open an account until the end of the transaction."""
        self._database.lock_openings(self)

    def lock_heads(self) -> None:
        """Let no chain grow while all of them are read."""
        self._database.lock_heads(self)


class Database(ABC):
    """A database with a ledger in it."""

    opener: ClassVar[str] = "open_ledger"
    """The function that opens such a ledger."""

    def __init__(self, name: str, *, driver_errors: tuple[type[Exception], ...]) -> None:
        self.name = name
        self._driver_errors = driver_errors
        self._closed = False

    @abstractmethod
    def reading(self) -> AbstractContextManager[LedgerSession]:
        """Return a transaction for reading."""

    @abstractmethod
    def writing(self) -> AbstractContextManager[LedgerSession]:
        """Return a transaction for writing."""

    @abstractmethod
    def close(self) -> None:
        """Refuse further use."""

    @abstractmethod
    def translate(self, statement: str) -> str:
        """Return a statement in this database's dialect."""

    @abstractmethod
    def lock_openings(self, session: LedgerSession) -> None:
        """Let nobody else open an account until the end of the transaction."""

    def lock_heads(self, session: LedgerSession) -> None:  # noqa: B027  # a transaction that sees one moment needs no lock
        """Let no chain grow while all of them are read."""

    @abstractmethod
    def check_storage(self, session: LedgerSession) -> None:
        """Raise `LedgerDamagedError` if the database itself finds that it is broken."""

    @abstractmethod
    def _explained(self, error: Exception) -> LedgerError:
        """Return the error that a caller sees for one of the driver's."""

    def _check_open(self) -> None:
        if self._closed:
            raise LedgerError("This ledger has been closed.", fix=f"open it again with {self.opener}(...).")

    @contextmanager
    def _translated(self) -> Iterator[None]:
        try:
            yield
        except self._driver_errors as error:
            raise self._explained(error) from None


class PooledDatabase(Database):
    """A database with connections of our own. Only a clean end of a transaction commits."""

    begin_reading: ClassVar[str]
    begin_writing: ClassVar[str]

    def __init__(self, name: str, *, driver_errors: tuple[type[Exception], ...]) -> None:
        super().__init__(name, driver_errors=driver_errors)
        self._idle: deque[tuple[int, Any]] = deque()
        self._finalizer = weakref.finalize(self, _close_all, self._idle)

    def reading(self) -> AbstractContextManager[LedgerSession]:
        """Return a transaction that sees one consistent moment and changes nothing."""
        return self._transaction(self.begin_reading)

    def writing(self) -> AbstractContextManager[LedgerSession]:
        """Return a transaction that is durable once it has ended."""
        return self._transaction(self.begin_writing)

    def close(self) -> None:
        """Close all idle connections and refuse further use."""
        self._closed = True
        _close_all(self._idle)

    @abstractmethod
    def _connect(self) -> Any:  # a connection of any driver
        """Return a new connection that commits only on COMMIT."""

    def _is_stale(self, error: Exception) -> bool:  # noqa: ARG002  # for databases that can go away
        """Return whether an idle connection failed because its server has gone, so that a new one may work."""
        return False

    @contextmanager
    def _transaction(self, begin: str) -> Iterator[LedgerSession]:
        self._check_open()
        with self._translated():
            connection = self._begun(begin)
            healthy = False
            try:
                try:
                    yield LedgerSession(self, connection.cursor)
                # After a refusal the connection is known to be sound. After anything else it is closed, which takes
                # everything back, too.
                except CloisterError:
                    connection.execute("ROLLBACK")
                    healthy = True
                    raise
                connection.execute("COMMIT")
                healthy = True
            finally:
                self._return_connection(connection, healthy=healthy)

    def _begun(self, begin: str) -> Any:  # a connection of any driver
        while True:
            connection, fresh = self._take_connection()
            try:
                connection.execute(begin)
            except BaseException as error:
                self._return_connection(connection, healthy=False)
                # Only an idle connection can have gone stale, and nothing was written before BEGIN: trying again
                # spends nothing twice.
                if fresh or not isinstance(error, self._driver_errors) or not self._is_stale(error):
                    raise
            else:
                return connection

    def _take_connection(self) -> tuple[Any, bool]:
        while self._idle:
            # Another thread may take the last connection between the look and the grasp.
            with suppress(IndexError):
                process, connection = self._idle.pop()
                if process == os.getpid():
                    return connection, False
                _ABANDONED.append(connection)
        return self._connect(), True

    def _return_connection(self, connection: Any, *, healthy: bool) -> None:
        if healthy and not self._closed:
            self._idle.append((os.getpid(), connection))
        else:
            connection.close()


def check_version(name: str, versions: Sequence[tuple[object, ...]]) -> None:
    """Raise `LedgerVersionError` unless the one version found is ours."""
    if list(versions) != [(VERSION,)]:
        found = ", ".join(str(version) for (version,) in versions) or "unknown"
        raise LedgerVersionError(
            f"The ledger {name} has format {found}, this cloister knows format {VERSION}.",
            fix="use the cloister that wrote it, or a newer one.",
        )


def _close_all(idle: deque[tuple[int, Any]]) -> None:
    while idle:
        process, connection = idle.pop()
        if process == os.getpid():
            connection.close()
        else:
            _ABANDONED.append(connection)


_NAMES = ", ".join(COLUMNS)
_SELECT = "SELECT " + _NAMES + " FROM cloister_ledger.entries "  # noqa: S608  # names of columns only
_ACCOUNT = "SELECT entries, head FROM cloister_ledger.accounts WHERE dataset = ?"
_ONE = _SELECT + "WHERE dataset = ? AND number = ?"
_PAGE = _SELECT + "WHERE dataset = ? AND number > ? ORDER BY number LIMIT 500"
_OF_ANALYST = _SELECT + "WHERE dataset = ? AND analyst = ? ORDER BY number DESC LIMIT 1"
_ANALYSTS = "SELECT DISTINCT analyst FROM cloister_ledger.entries WHERE dataset = ? AND analyst IS NOT NULL"
_ANSWERS = _SELECT + "WHERE dataset = ? AND query_key = ? AND number > ? AND kind = 'answer' ORDER BY number"
_INSERT = f"INSERT INTO cloister_ledger.entries ({_NAMES}) VALUES ({', '.join('?' * len(COLUMNS))})"  # noqa: S608
_OPEN = "INSERT INTO cloister_ledger.accounts (dataset, entries, head) VALUES (?, ?, ?)"
_ADVANCE = "UPDATE cloister_ledger.accounts SET entries = ?, head = ? WHERE dataset = ?"


def datasets(session: LedgerSession) -> list[str]:
    """Return the datasets that have an account, in order."""
    return sorted(str(name) for (name,) in session.rows("SELECT dataset FROM cloister_ledger.accounts"))


def datasets_with_entries(session: LedgerSession) -> list[str]:
    """Return the datasets that have an entry, in order."""
    return sorted(str(name) for (name,) in session.rows("SELECT DISTINCT dataset FROM cloister_ledger.entries"))


def position(session: LedgerSession, dataset: str, *, lock: bool = False) -> tuple[int, str] | None:
    """Return the number and digest of an account's last entry; ``lock`` keeps other writers waiting."""
    rows = session.rows(_ACCOUNT + " FOR UPDATE" if lock else _ACCOUNT, dataset)
    return (rows[0][0], rows[0][1]) if rows else None


def last(session: LedgerSession, dataset: str, *, lock: bool = False) -> Record | None:
    """Return the last entry of an account, checked against the account, or None if there is no account."""
    found = position(session, dataset, lock=lock)
    if found is None:
        return None
    number, head = found
    record = one(session, dataset, number)
    if record is None:
        raise damage_error(dataset, number, "is missing")
    if record.digest != head:
        raise damage_error(dataset, number, "is not the head that the account names")
    return record


def last_known(session: LedgerSession, dataset: str, *, lock: bool = False) -> Record:
    """Return the last entry of an account, or raise `UnknownAccountError`."""
    record = last(session, dataset, lock=lock)
    if record is None:
        raise UnknownAccountError(
            f'The ledger has no account for dataset "{dataset}".{did_you_mean(dataset, datasets(session))}',
            fix="open it first: ledger.open_account(dataset, budget=Budget(epsilon=1))",
        )
    return record


def one(session: LedgerSession, dataset: str, number: int) -> Record | None:
    """Return one entry, checked, or None."""
    rows = session.rows(_ONE, dataset, number)
    return _record(rows[0]).check() if rows else None


def last_of_analyst(session: LedgerSession, dataset: str, analyst: str) -> Record | None:
    """Return the last entry that concerns an analyst, checked, or None."""
    rows = session.rows(_OF_ANALYST, dataset, analyst)
    return _record(rows[0]).check() if rows else None


def analysts(session: LedgerSession, dataset: str) -> list[str]:
    """Return the analysts that have an entry in an account, in order."""
    return sorted(str(name) for (name,) in session.rows(_ANALYSTS, dataset))


def answers(session: LedgerSession, dataset: str, query_key: str, *, after: int = 0) -> list[Record]:
    """Return the stored answers to a query, checked; only those entered after a number."""
    return [_record(row).check() for row in session.rows(_ANSWERS, dataset, query_key, after)]


def all_unchecked(session: LedgerSession, dataset: str) -> Iterator[Record]:
    """Return the entries of a dataset in order, a page at a time."""
    # Below every number that can be stored, so that a forged entry 0 or -1 is read, and refused, too.
    number = -(2**63)
    while page := session.rows(_PAGE, dataset, number):
        records = [_record(row) for row in page]
        yield from records
        number = records[-1].number


def append(session: LedgerSession, record: Record) -> None:
    """Write an entry and move the account's head."""
    session.rows(_INSERT, *record.row())
    if record.number == 1:
        session.rows(_OPEN, record.dataset, record.number, record.digest)
    else:
        session.rows(_ADVANCE, record.number, record.digest, record.dataset)


def _record(row: tuple[object, ...]) -> Record:
    return Record(**dict(zip(COLUMNS, row, strict=True)))  # type: ignore[arg-type]  # `Record.check` checks types
