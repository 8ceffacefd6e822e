"""Ledgers in a PostgreSQL database, in a schema of their own called ``cloister_ledger``.

A writer locks the row of its account, so that spends on one dataset queue and spends on different ones do not.
Commits are synchronous whatever the server's default is. Passwords never appear in names or messages.
"""

from __future__ import annotations

from functools import cache
from typing import Any
from urllib.parse import parse_qs, urlsplit

from cloister.accounting.ledger._database import Database, LedgerSession, PooledDatabase, check_version
from cloister.errors import (
    LedgerDamagedError,
    LedgerError,
    LedgerUnreachableError,
    MissingExtraError,
    ParameterError,
)

CREATION_LOCK = 0x636C6F69737465
OPENING_LOCK = CREATION_LOCK + 1
PATIENCE = 120
"""Seconds to wait for other writers."""

_TABLES = """
CREATE SCHEMA IF NOT EXISTS cloister_ledger;
CREATE TABLE cloister_ledger.format (version INTEGER NOT NULL);
INSERT INTO cloister_ledger.format VALUES (1);
CREATE TABLE cloister_ledger.accounts (
    dataset TEXT NOT NULL PRIMARY KEY,
    entries BIGINT NOT NULL,
    head TEXT NOT NULL
);
CREATE TABLE cloister_ledger.entries (
    dataset TEXT NOT NULL,
    number BIGINT NOT NULL,
    kind TEXT NOT NULL,
    time TEXT NOT NULL,
    analyst TEXT,
    query_key TEXT,
    details TEXT NOT NULL,
    state TEXT NOT NULL,
    previous TEXT NOT NULL,
    digest TEXT NOT NULL,
    PRIMARY KEY (dataset, number)
);
CREATE INDEX entries_by_analyst ON cloister_ledger.entries (dataset, analyst, number) WHERE analyst IS NOT NULL;
CREATE INDEX answers_by_key ON cloister_ledger.entries (dataset, query_key, number) WHERE kind = 'answer';
CREATE FUNCTION cloister_ledger.refuse() RETURNS trigger LANGUAGE plpgsql AS
    $$ BEGIN RAISE EXCEPTION 'entries of a ledger are final'; END $$;
CREATE TRIGGER entries_stay BEFORE UPDATE OR DELETE OR TRUNCATE ON cloister_ledger.entries
    FOR EACH STATEMENT EXECUTE FUNCTION cloister_ledger.refuse();
CREATE TRIGGER accounts_stay BEFORE DELETE OR TRUNCATE ON cloister_ledger.accounts
    FOR EACH STATEMENT EXECUTE FUNCTION cloister_ledger.refuse();
CREATE TRIGGER accounts_grow BEFORE UPDATE ON cloister_ledger.accounts FOR EACH ROW
    WHEN (NEW.dataset <> OLD.dataset OR NEW.entries <> OLD.entries + 1) EXECUTE FUNCTION cloister_ledger.refuse();
"""

_TRIGGERS = {"entries_stay", "accounts_stay", "accounts_grow"}
_ACTIVE_TRIGGERS = """
SELECT t.tgname FROM pg_catalog.pg_trigger t
    JOIN pg_catalog.pg_class c ON c.oid = t.tgrelid JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
    WHERE n.nspname = 'cloister_ledger' AND NOT t.tgisinternal AND t.tgenabled IN ('O', 'A')
"""


class PostgresDialect(Database):
    """What all ledgers in PostgreSQL have in common."""

    def __init__(self, name: str) -> None:
        self._psycopg = driver()
        super().__init__(name, driver_errors=(self._psycopg.Error,))

    def translate(self, statement: str) -> str:
        """Return a statement with the driver's placeholders."""
        return _translate(statement)

    def lock_openings(self, session: LedgerSession) -> None:
        """Take a lock that all openers of accounts share."""
        # The lock ends with the transaction, whatever becomes of this process.
        session.rows("SELECT pg_advisory_xact_lock(?)", OPENING_LOCK)

    def check_storage(self, session: LedgerSession) -> None:
        """See that the tables still refuse edits; the server checks its own pages."""
        if {name for (name,) in session.rows(_ACTIVE_TRIGGERS)} != _TRIGGERS:
            raise LedgerDamagedError(
                f"The tables of the ledger {self.name} were changed: its triggers no longer keep entries from edits."
            )

    def is_there(self, session: LedgerSession) -> bool:
        """Return whether there is a ledger, of a version that is known."""
        if not _exists(session):
            return False
        check_version(self.name, session.rows("SELECT version FROM cloister_ledger.format"))
        return True

    def create(self) -> None:
        """Make the tables, unless they are there."""
        with self.reading() as session:
            if _exists(session):
                return
        with self.writing() as session:
            session.rows("SELECT pg_advisory_xact_lock(?)", CREATION_LOCK)
            # Somebody else may have made them while we waited for the lock.
            if not _exists(session):
                session.rows(_TABLES)

    def _explained(self, error: Exception) -> LedgerError:
        errors = self._psycopg.errors
        if isinstance(error, errors.LockNotAvailable):
            return LedgerUnreachableError(
                f"The ledger {self.name} is held by another writer for too long.", fix="try again later."
            )
        if isinstance(error, errors.InsufficientPrivilege | errors.ReadOnlySqlTransaction):
            return LedgerError(
                f"The ledger {self.name} may not be used like this: {_reason(error)}.",
                fix="ask the owner of the database for the right to read and write the schema cloister_ledger.",
            )
        if isinstance(error, self._psycopg.OperationalError):
            return LedgerUnreachableError(
                f"The ledger {self.name} does not answer.",
                fix="check address, user, password and that the server runs; "
                "a spend that was under way may have been recorded, so look before repeating it.",
            )
        return LedgerDamagedError(f"The ledger {self.name} is damaged: {_reason(error)}.")


class PostgresDatabase(PostgresDialect, PooledDatabase):
    """A ledger in a PostgreSQL database."""

    begin_reading = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"
    # A writer that waited for its lock has to see what was committed meanwhile, which REPEATABLE READ would hide.
    begin_writing = (
        "BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE; "
        f"SET LOCAL synchronous_commit = on; SET LOCAL lock_timeout = '{PATIENCE}s'"
    )

    def __init__(self, url: str, *, create: bool) -> None:
        super().__init__(_without_secrets(url))
        self._url = url
        self._options = self._connection_options()
        if create:
            self.create()
        try:
            with self.reading() as session:
                self._check_there(session)
        except LedgerError:
            self.close()
            raise

    def _connection_options(self) -> dict[str, Any]:
        try:
            given = self._psycopg.conninfo.conninfo_to_dict(self._url)
        except self._psycopg.Error:
            raise ParameterError(
                "The URL of the PostgreSQL ledger is malformed.",
                fix="write postgresql://user@host:5432/database, and encode special characters such as @ as %40.",
            ) from None
        # Only a caller who says otherwise waits longer for a server that is not there.
        return {} if "connect_timeout" in given else {"connect_timeout": 10}

    def _connect(self) -> Any:  # a psycopg connection
        return self._psycopg.connect(
            self._url,
            autocommit=True,
            prepare_threshold=None,
            client_encoding="utf8",
            application_name="cloister ledger",
            **self._options,
        )

    def _is_stale(self, error: Exception) -> bool:
        return isinstance(error, self._psycopg.OperationalError)

    def _check_there(self, session: LedgerSession) -> None:
        if not self.is_there(session):
            raise LedgerUnreachableError(
                f"There is no ledger in {self.name}.", fix="check the address, or open it with create=True."
            )


@cache
def _translate(statement: str) -> str:
    return statement.replace("?", "%s")


def driver() -> Any:  # the module psycopg
    """Return the driver, or say how to get it."""
    try:
        import psycopg
    except ImportError:
        raise MissingExtraError(what="Ledgers in PostgreSQL", package="psycopg", extra="postgres") from None
    return psycopg


def _exists(session: LedgerSession) -> bool:
    """Look with the eyes of this statement: `to_regclass` may answer from a cache older than our lock."""
    found = session.rows(
        "SELECT 1 FROM pg_catalog.pg_tables WHERE schemaname = 'cloister_ledger' AND tablename = 'format'"
    )
    return bool(found)


def _reason(error: Exception) -> str:
    """Return the server's own sentence, which quotes schema names but no values."""
    sentence = getattr(getattr(error, "diag", None), "message_primary", None)
    return str(sentence or type(error).__name__)


def _without_secrets(url: str) -> str:
    """Return a URL with user, host, port and database only."""
    parts = urlsplit(url)
    account, _, address = parts.netloc.rpartition("@")
    user = account.partition(":")[0]
    socket = parse_qs(parts.query).get("host", [""])[0]
    return f"postgresql://{user + '@' if user else ''}{address or socket}{parts.path}"
