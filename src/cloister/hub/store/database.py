"""The hub's database: SQLite in one file, or PostgreSQL, with the ledger in the same transactions."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal

from sqlalchemy import create_engine, event, make_url, text
from sqlalchemy.engine import Engine
from sqlalchemy.exc import IntegrityError, OperationalError
from sqlalchemy.orm import Session

from cloister.accounting.ledger import Ledger
from cloister.accounting.ledger.host_database import join_ledger
from cloister.errors import ConflictError, HubUnavailableError, ParameterError

PATIENCE = 120
"""Seconds to wait for other writers."""

Dialect = Literal["sqlite", "postgresql"]


class Store:
    """A database with short transactions: `reading` changes nothing, `writing` commits at its end or not at all."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.dialect = _dialect(url)
        self._engine = _sqlite(url) if self.dialect == "sqlite" else _postgres(url)

    @property
    def engine(self) -> Engine:
        """Return the engine, for migrations."""
        return self._engine

    @contextmanager
    def reading(self, *, snapshot: bool = False) -> Iterator[Session]:
        """Open a transaction that sees the database and keeps nothing.

        Args:
            snapshot: whether all that is read must be of one moment; of SQLite it always is.
        """
        with self._session(begin="BEGIN") as session:
            if snapshot and self.dialect == "postgresql":
                session.execute(text("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ"))
            yield session
            # What was read stays as it is: touching it later must not begin another transaction.
            session.expunge_all()
            session.rollback()

    @contextmanager
    def writing(self) -> Iterator[Session]:
        """Open a transaction that is durable once it has ended; writers of SQLite queue."""
        # The lock is taken at once: SQLite refuses transactions that have read and want to write after somebody else
        # did.
        with self._session(begin="BEGIN IMMEDIATE") as session:
            try:
                yield session
                session.commit()
            except IntegrityError:
                raise ConflictError(
                    "Somebody else changed this at the same moment, or it exists already.",
                    fix="look again, then repeat.",
                ) from None

    def ledger(self, session: Session) -> Ledger:
        """Return the ledger inside a session's transaction: what it spends is kept when the session is."""
        # What the session still holds back must be written before what the ledger writes on the same connection.
        session.flush()
        return join_ledger(session.connection().connection.driver_connection, dialect=self.dialect)

    def close(self) -> None:
        """Close all connections."""
        self._engine.dispose()

    @contextmanager
    def _session(self, *, begin: str) -> Iterator[Session]:
        try:
            with self._engine.connect() as connection:
                connection.info["begin"] = begin
                with Session(connection, expire_on_commit=False) as session:
                    yield session
        except OperationalError:
            raise HubUnavailableError("The hub's database does not answer.", fix="try again in a moment.") from None


def _dialect(url: str) -> Dialect:
    match make_url(url).get_backend_name():
        case "sqlite":
            return "sqlite"
        case "postgresql":
            return "postgresql"
    raise ParameterError("The hub's database is SQLite or PostgreSQL.", fix="write sqlite:///hub.db or postgresql://…")


def _sqlite(url: str) -> Engine:
    path = make_url(url).database
    if path and not Path(path).exists():
        # SQLite itself would make a file that others may read, as far as the umask lets them.
        Path(path).touch(mode=0o600)
    engine = create_engine(
        url,
        connect_args={"timeout": PATIENCE, "check_same_thread": False},
        pool_size=20,
        max_overflow=80,
        # Errors of the database would otherwise quote the values of a statement.
        hide_parameters=True,
    )

    @event.listens_for(engine, "connect")
    def prepare(connection: Any, record: Any) -> None:  # noqa: ARG001
        # The driver would otherwise begin transactions by itself, and of the wrong kind.
        connection.isolation_level = None
        # FULL, as what was paid must survive a loss of power; secure_delete, as what is deleted must be gone.
        for pragma in ("journal_mode = WAL", "synchronous = FULL", "foreign_keys = ON", "secure_delete = ON"):
            connection.execute(f"PRAGMA {pragma}")

    @event.listens_for(engine, "begin")
    def begin(connection: Any) -> None:
        connection.exec_driver_sql(connection.info.pop("begin", "BEGIN IMMEDIATE"))

    return engine


def _postgres(url: str) -> Engine:
    return create_engine(
        url,
        pool_size=10,
        max_overflow=30,
        pool_pre_ping=True,
        hide_parameters=True,
        isolation_level="READ COMMITTED",
        connect_args={"application_name": "cloister hub", "prepare_threshold": None},
    )
