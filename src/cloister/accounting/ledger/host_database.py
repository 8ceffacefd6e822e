"""A ledger inside the database, and the transactions, of a host program.

A spend and the host's own rows are then kept together or lost together. The host begins, commits and rolls back; the
ledger runs its statements in between. **A receipt counts only once the host has committed**: look at data after that.
"""

from __future__ import annotations

import sqlite3
import threading
from abc import abstractmethod
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any, Literal

from cloister.accounting.ledger._database import Database, LedgerSession
from cloister.accounting.ledger._postgres import PostgresDialect
from cloister.accounting.ledger._sql_ledger import SqlLedger
from cloister.accounting.ledger._sqlite import (
    DRIVER_ERRORS,
    HOSTED,
    SqliteDialect,
    decode,
    is_file_of_its_own,
    is_hosted,
    table_statements,
)
from cloister.accounting.ledger.protocol import Ledger
from cloister.errors import LedgerError, LedgerUnreachableError, ParameterError, ParameterTypeError, did_you_mean

__all__ = ["create_tables", "join_ledger"]

Dialect = Literal["sqlite", "postgresql"]

_FULL = 2
_SETTINGS = "SELECT current_setting('transaction_isolation'), current_setting('synchronous_commit')"
_DURABLE = ("on", "remote_apply")


def create_tables(connection: Any, *, dialect: Dialect) -> None:  # Any: a connection of either driver
    """Make the ledger's tables in the database of a host, if they are missing, in the host's transaction.

    Args:
        connection: the driver's own connection, of `sqlite3` or psycopg 3, in a transaction that the host commits.
        dialect: ``"sqlite"``, where every name begins with ``cloister_ledger_``, or ``"postgresql"``, where the tables
            are in the schema ``cloister_ledger``.
    """
    _join(connection, dialect).create()


def join_ledger(connection: Any, *, dialect: Dialect) -> Ledger:  # Any: a connection of either driver
    """Return the ledger in the database of a host; all that it reads and writes is in the host's transaction.

    A refused spend has written nothing. After any other error the host has to roll back. Closing the ledger leaves the
    connection open.

    >>> host = sqlite3.connect(":memory:", isolation_level=None)
    >>> _ = host.execute("BEGIN IMMEDIATE")
    >>> create_tables(host, dialect="sqlite")
    >>> join_ledger(host, dialect="sqlite").accounts()
    ()
    >>> host.close()
    """
    database = _join(connection, dialect)
    database.check_there()
    return SqlLedger(database)


class JoinedDatabase(Database):
    """A ledger on a connection, and in the transaction, of somebody else; threads that share it take turns."""

    opener = "join_ledger"

    def __init__(self, name: str, *, driver_errors: tuple[type[Exception], ...]) -> None:
        super().__init__(name, driver_errors=driver_errors)
        self._turn = threading.Lock()

    def reading(self) -> AbstractContextManager[LedgerSession]:
        """Return the host's transaction."""
        return self._transaction()

    @contextmanager
    def writing(self) -> Iterator[LedgerSession]:
        """Return the host's transaction, if its commit is certain to last."""
        # The host commits, so that its settings decide whether a spend survives a crash.
        with self._transaction() as session:
            self._check_writable(session)
            yield session

    def close(self) -> None:
        """Refuse further use; the connection is the host's."""
        self._closed = True

    @abstractmethod
    def create(self) -> None:
        """Make the tables, unless they are there."""

    @abstractmethod
    def is_there(self, session: LedgerSession) -> bool:
        """Return whether there is a ledger, of a version that is known."""

    def check_there(self) -> None:
        """Raise `LedgerUnreachableError` if there is no ledger."""
        with self.reading() as session:
            if not self.is_there(session):
                raise LedgerUnreachableError(
                    f"There is no ledger in {self.name} that a host could join.",
                    fix="make it first, when the host's own tables are made: create_tables(connection, dialect=...)",
                )

    @abstractmethod
    def _check_transaction(self) -> None:
        """Raise unless the host has an open transaction that still works."""

    @abstractmethod
    def _check_writable(self, session: LedgerSession) -> None:
        """Raise unless what is written now outlasts a crash after the host's commit."""

    @abstractmethod
    def _session(self) -> AbstractContextManager[LedgerSession]:
        """Return what runs statements on the host's connection whatever its settings are."""

    @contextmanager
    def _transaction(self) -> Iterator[LedgerSession]:
        self._check_open()
        with self._turn, self._translated():
            self._check_transaction()
            with self._session() as session:
                yield session


class JoinedSqlite(SqliteDialect, JoinedDatabase):
    """A ledger in a host's SQLite database."""

    prefix = HOSTED

    def __init__(self, connection: Any) -> None:
        super().__init__("sqlite:///", driver_errors=DRIVER_ERRORS)
        self._connection = _check_connection(connection, sqlite3.Connection)
        with self.reading() as session:
            ((file,),) = session.rows("SELECT file FROM pragma_database_list WHERE name = 'main'")
        self.name += file or ":memory:"

    def create(self) -> None:
        """Make the tables, unless they are there."""
        with self.writing() as session:
            if is_file_of_its_own(session, self.name):
                raise LedgerError(
                    f"The file {self.name} is a ledger itself; a second one in it would be a second budget.",
                    fix="give the host a database of its own.",
                )
            if not is_hosted(session, self.name):
                for statement in table_statements(HOSTED):
                    session.rows(statement)

    def is_there(self, session: LedgerSession) -> bool:
        """Return whether there is a ledger, of a version that is known."""
        return is_hosted(session, self.name)

    def _check_transaction(self) -> None:
        if not self._connection.in_transaction:
            raise _no_transaction('connection.execute("BEGIN IMMEDIATE")')

    def _check_writable(self, session: LedgerSession) -> None:
        ((level,),) = session.rows("PRAGMA main.synchronous")
        if level < _FULL:
            raise LedgerError(
                "The host's connection does not wait for the disk, so a spend could be lost after its answer is out.",
                fix="set it for every connection, before any transaction: PRAGMA synchronous = FULL",
            )

    @contextmanager
    def _session(self) -> Iterator[LedgerSession]:
        # A host may read text in its own way; damaged bytes must reach the chain all the same.
        before = self._connection.text_factory
        self._connection.text_factory = decode
        try:
            # Made like this, a cursor does not take over the row factory of the host.
            yield LedgerSession(self, lambda: sqlite3.Cursor(self._connection))
        finally:
            self._connection.text_factory = before

    def _explained(self, error: Exception) -> LedgerError:
        if isinstance(error, sqlite3.ProgrammingError):
            return LedgerError(
                "The host's connection is closed, or belongs to another thread.",
                fix="join the ledger anew, with a connection of the thread that uses it.",
            )
        if (getattr(error, "sqlite_errorname", None) or "").startswith("SQLITE_BUSY"):
            return LedgerUnreachableError(
                f"Another writer stood in the way of this transaction on the ledger {self.name}.",
                fix="roll it back and try again; begin it with BEGIN IMMEDIATE, so that writers queue.",
            )
        return super()._explained(error)


class JoinedPostgres(PostgresDialect, JoinedDatabase):
    """A ledger in a host's PostgreSQL database."""

    def __init__(self, connection: Any) -> None:
        super().__init__("postgresql://")
        self._connection = _check_connection(connection, self._psycopg.Connection)
        with self._translated():
            info = connection.info
            self.name += f"{info.user}@{info.host}/{info.dbname}"

    def lock_heads(self, session: LedgerSession) -> None:
        """Keep writers of other transactions waiting: each statement of this one may see a later moment."""
        session.rows("LOCK TABLE cloister_ledger.accounts IN SHARE MODE")

    def _check_transaction(self) -> None:
        status, known = self._connection.info.transaction_status, self._psycopg.pq.TransactionStatus
        if status == known.INERROR:
            raise LedgerError("The host's transaction has failed already.", fix="roll it back and begin a new one.")
        if status == known.IDLE and self._connection.autocommit:
            raise _no_transaction("with connection.transaction(): ...")
        if self._connection.info.encoding != "utf-8":
            raise LedgerError(
                "The host's connection cannot carry all text.", fix='connect with client_encoding="utf8".'
            )

    def _check_writable(self, session: LedgerSession) -> None:
        ((isolation, commit),) = session.rows(_SETTINGS)
        if isolation != "read committed":
            raise LedgerError(
                f"The host's transaction is {isolation}, and would not see what others have spent since it began.",
                fix="begin it with ISOLATION LEVEL READ COMMITTED; the ledger locks what it needs.",
            )
        # SET LOCAL ends with the host's transaction and leaves its session as it was.
        if commit not in _DURABLE:
            session.rows("SET LOCAL synchronous_commit = on")

    @contextmanager
    def _session(self) -> Iterator[LedgerSession]:
        rows = self._psycopg.rows.tuple_row
        yield LedgerSession(self, lambda: self._psycopg.Cursor(self._connection, row_factory=rows))

    def _explained(self, error: Exception) -> LedgerError:
        if (getattr(error, "sqlstate", None) or "").startswith("40"):
            return LedgerUnreachableError(
                f"Another writer stood in the way of this transaction on the ledger {self.name}.",
                fix="roll it back and try again.",
            )
        return super()._explained(error)


_KINDS: dict[str, type[JoinedSqlite | JoinedPostgres]] = {"sqlite": JoinedSqlite, "postgresql": JoinedPostgres}


def _join(connection: Any, dialect: str) -> JoinedSqlite | JoinedPostgres:
    if dialect not in _KINDS:
        raise ParameterError(
            f"A ledger cannot join a database of this dialect.{did_you_mean(str(dialect), _KINDS)}",
            fix='write dialect="sqlite" or dialect="postgresql".',
        )
    return _KINDS[dialect](connection)


def _check_connection(connection: Any, kind: type) -> Any:  # a connection of either driver
    if not isinstance(connection, kind):
        raise ParameterTypeError(
            f"This is not a connection of the driver: {kind.__module__}.{kind.__name__}.",
            fix="give the driver's own; in SQLAlchemy it is session.connection().connection.driver_connection.",
        )
    return connection


def _no_transaction(begin: str) -> LedgerError:
    return LedgerError(
        "The host has no open transaction, so a spend could not be taken back with it.", fix=f"begin one first: {begin}"
    )
