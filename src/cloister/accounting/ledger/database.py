"""The seam under the ledger: transactions on a database, most of them on pooled connections that survive forks.

Statements are written once, for PostgreSQL with ``?`` as placeholder, and each database translates them.
"""

from __future__ import annotations

import os
import weakref
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from typing import Any, ClassVar

from cloister.errors import CloisterError, LedgerError, LedgerVersionError

VERSION = 1
"""The format of the tables."""

_ABANDONED: list[Any] = []
"""Connections of a parent process: closing them in a child would disturb the parent, so they are only kept."""


class Session:
    """One transaction."""

    def __init__(self, database: Database, make_cursor: Callable[[], Any]) -> None:  # Any: a cursor of any driver
        self._database, self._make_cursor = database, make_cursor

    def rows(self, statement: str, *parameters: object) -> list[tuple[Any, ...]]:
        """Run a statement and return its rows, if it has any."""
        text = self._database.translate(statement)
        cursor = self._make_cursor()
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
    def reading(self) -> AbstractContextManager[Session]:
        """Return a transaction for reading."""

    @abstractmethod
    def writing(self) -> AbstractContextManager[Session]:
        """Return a transaction for writing."""

    @abstractmethod
    def close(self) -> None:
        """Refuse further use."""

    @abstractmethod
    def translate(self, statement: str) -> str:
        """Return a statement in this database's dialect."""

    @abstractmethod
    def lock_openings(self, session: Session) -> None:
        """Let nobody else open an account until the end of the transaction."""

    def lock_heads(self, session: Session) -> None:  # noqa: B027  # a transaction that sees one moment needs no lock
        """Let no chain grow while all of them are read."""

    @abstractmethod
    def check_storage(self, session: Session) -> None:
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

    def reading(self) -> AbstractContextManager[Session]:
        """Return a transaction that sees one consistent moment and changes nothing."""
        return self._transaction(self.begin_reading)

    def writing(self) -> AbstractContextManager[Session]:
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
    def _transaction(self, begin: str) -> Iterator[Session]:
        self._check_open()
        with self._translated():
            connection = self._begun(begin)
            healthy = False
            try:
                try:
                    yield Session(self, connection.cursor)
                except CloisterError:
                    connection.execute("ROLLBACK")
                    healthy = True
                    raise
                connection.execute("COMMIT")
                healthy = True
            finally:
                self._put_back(connection, healthy=healthy)

    def _begun(self, begin: str) -> Any:  # a connection of any driver
        while True:
            connection, fresh = self._taken()
            try:
                connection.execute(begin)
            except BaseException as error:
                self._put_back(connection, healthy=False)
                if fresh or not isinstance(error, self._driver_errors) or not self._is_stale(error):
                    raise
            else:
                return connection

    def _taken(self) -> tuple[Any, bool]:
        while self._idle:
            with suppress(IndexError):
                process, connection = self._idle.pop()
                if process == os.getpid():
                    return connection, False
                _ABANDONED.append(connection)
        return self._connect(), True

    def _put_back(self, connection: Any, *, healthy: bool) -> None:
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
