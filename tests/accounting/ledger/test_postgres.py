"""What only a server can do wrong."""

from __future__ import annotations

import threading
import traceback
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from cloister.accounting.budget import Budget
from cloister.accounting.ledger import Ledger, open_ledger
from cloister.accounting.ledger._postgres import _without_secrets
from cloister.errors import (
    LedgerDamagedError,
    LedgerError,
    LedgerUnreachableError,
    LedgerVersionError,
    ParameterError,
)

SECRET = "top" + "secret"


@pytest.fixture
def server(postgres_url: str) -> Iterator[Any]:
    import psycopg

    with psycopg.connect(postgres_url, autocommit=True) as connection:
        yield connection


@pytest.fixture
def opened(postgres_url: str) -> Iterator[Ledger]:
    with open_ledger(postgres_url) as ledger:
        ledger.open_account("hospital", budget=Budget(epsilon=1))
        yield ledger


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("postgresql://ann:secret@host:5432/db?sslmode=require&password=secret", "postgresql://ann@host:5432/db"),
        ("postgres://host/db", "postgresql://host/db"),
        ("postgresql:///db?host=%2Frun%2Fpg", "postgresql:///run/pg/db"),
        ("postgresql://ann:se@cret@host/db", "postgresql://ann@host/db"),
    ],
)
def test_a_password_is_never_shown(url: str, shown: str) -> None:
    assert _without_secrets(url) == shown


@pytest.mark.parametrize("timeout", ["", "&connect_timeout=2"])
def test_a_server_that_is_not_there(tmp_path: object, timeout: str) -> None:
    url = f"postgresql://ann:{SECRET}@/db?host={tmp_path}{timeout}"
    with pytest.raises(LedgerUnreachableError, match="does not answer") as caught:
        open_ledger(url)
    told = "".join(traceback.format_exception(caught.value)) + str(caught.value)
    assert SECRET not in told
    assert "look before repeating" in caught.value.fix


def test_a_malformed_address_does_not_show_the_password() -> None:
    url = f"postgresql://ann:{SECRET}@host/db?nonsense={SECRET}"
    with pytest.raises(ParameterError, match="malformed") as caught:
        open_ledger(url)
    assert SECRET not in "".join(traceback.format_exception(caught.value))


@pytest.mark.postgres
@pytest.mark.slow
def test_a_database_without_a_ledger(postgres_url: str, server: Any) -> None:
    with pytest.raises(LedgerUnreachableError, match="no ledger in"):
        open_ledger(postgres_url, create=False)
    assert server.execute("SELECT to_regnamespace('cloister_ledger')").fetchone() == (None,)


@pytest.mark.postgres
@pytest.mark.slow
def test_many_make_the_schema_together(postgres_url: str) -> None:
    start = threading.Barrier(6)

    def make(_: int) -> str:
        start.wait()
        with open_ledger(postgres_url) as ledger:
            return ledger.open_account("hospital", budget=Budget(epsilon=1)).head

    with ThreadPoolExecutor(6) as pool:
        assert len(set(pool.map(make, range(6)))) == 1


@pytest.mark.postgres
@pytest.mark.slow
def test_somebody_else_made_the_schema_first(
    postgres_url: str, opened: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen = iter([False, True, True])
    monkeypatch.setattr("cloister.accounting.ledger._postgres._exists", lambda session: next(seen))
    with open_ledger(postgres_url) as second:
        assert second.accounts() == opened.accounts()


@pytest.mark.postgres
@pytest.mark.slow
@pytest.mark.parametrize(
    ("statement", "shown"),
    [("UPDATE cloister_ledger.format SET version = 2", "format 2"), ("DELETE FROM cloister_ledger.format", "unknown")],
)
def test_a_ledger_of_another_version(
    postgres_url: str, opened: Ledger, server: Any, statement: str, shown: str
) -> None:
    server.execute(statement)
    with pytest.raises(LedgerVersionError, match=shown):
        open_ledger(postgres_url)


@pytest.mark.postgres
@pytest.mark.slow
def test_a_user_without_rights(postgres_url: str, opened: Ledger, server: Any) -> None:
    server.execute("CREATE ROLE visitor LOGIN")
    try:
        with pytest.raises(LedgerError, match="permission denied") as caught:
            open_ledger(postgres_url.replace("cloister@", "visitor@"))
        assert "ask the owner" in caught.value.fix
    finally:
        server.execute("DROP ROLE visitor")


@pytest.mark.postgres
@pytest.mark.slow
def test_a_server_that_may_only_be_read(opened: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    database = opened._database  # type: ignore[attr-defined]
    monkeypatch.setattr(database, "begin_writing", "BEGIN READ ONLY")
    with pytest.raises(LedgerError, match="read-only transaction") as caught:
        opened.spend("hospital", cost=Budget(epsilon=0.1))
    assert "ask the owner" in caught.value.fix
    assert opened.spent("hospital") == Budget(epsilon=0)


@pytest.mark.postgres
@pytest.mark.slow
def test_a_writer_that_never_ends(
    postgres_url: str, opened: Ledger, server: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    database = opened._database  # type: ignore[attr-defined]
    monkeypatch.setattr(database, "begin_writing", database.begin_writing.replace("120s", "10ms"))
    with server.transaction():
        server.execute("SELECT * FROM cloister_ledger.accounts FOR UPDATE")
        with pytest.raises(LedgerUnreachableError, match="another writer"):
            opened.spend("hospital", cost=Budget(epsilon=0.1))
    opened.spend("hospital", cost=Budget(epsilon=0.1))
    assert opened.spent("hospital") == Budget(epsilon=0.1)


@pytest.mark.postgres
@pytest.mark.slow
def test_lost_connections_are_replaced(opened: Ledger, server: Any) -> None:
    hang_up = "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity WHERE application_name = 'cloister ledger'"
    server.execute(hang_up)
    opened.spend("hospital", cost=Budget(epsilon=0.1))
    losing = opened._database.writing()  # type: ignore[attr-defined]
    with pytest.raises(LedgerUnreachableError, match="does not answer"), losing:
        server.execute(hang_up)
    assert opened.spent("hospital") == Budget(epsilon=0.1)
    opened.verify()


@pytest.mark.postgres
@pytest.mark.slow
def test_tables_that_were_removed(opened: Ledger, server: Any) -> None:
    server.execute("DROP TABLE cloister_ledger.entries")
    with pytest.raises(LedgerDamagedError, match="does not exist"):
        opened.verify()


@pytest.mark.postgres
@pytest.mark.slow
def test_commits_wait_for_the_disk_whatever_the_server_prefers(opened: Ledger, server: Any) -> None:
    server.execute("ALTER ROLE cloister SET synchronous_commit = off")
    server.execute("ALTER ROLE cloister SET default_transaction_isolation = 'serializable'")
    try:
        opened._database._finalizer()  # type: ignore[attr-defined]
        with opened._database.writing() as session:  # type: ignore[attr-defined]
            assert session.rows("SHOW synchronous_commit") == [("on",)]
            assert session.rows("SHOW transaction_isolation") == [("read committed",)]
    finally:
        server.execute("ALTER ROLE cloister RESET ALL")
