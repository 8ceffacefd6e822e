"""A ledger in the database and the transaction of a host: kept together or lost together."""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Iterator
from contextlib import closing
from typing import Any

import pytest

from cloister.accounting.budget import Budget
from cloister.accounting.ledger import open_ledger
from cloister.accounting.ledger.host_database import create_tables, join_ledger
from cloister.errors import (
    BudgetExceededError,
    LedgerError,
    LedgerUnreachableError,
    LedgerVersionError,
    MissingExtraError,
    ParameterError,
    ParameterTypeError,
)
from tests.support.ledger_host import Host

HALF = Budget(epsilon=0.5)
NOTHING = Budget(epsilon=0)


@pytest.fixture
def sqlite_host(sqlite_url: str) -> Iterator[Host]:
    with Host(sqlite_url) as host:
        host.set_up()
        yield host


@pytest.fixture
def postgres_host(postgres_url: str) -> Iterator[Host]:
    with Host(postgres_url) as host:
        host.set_up()
        yield host


def _spent(host: Host) -> Budget:
    """What a ledger with connections of its own sees."""
    with open_ledger(host.url, create=False) as ledger:
        ledger.verify()
        return ledger.spent("hospital")


def test_a_commit_keeps_the_spend_and_the_row_together(host: Host) -> None:
    host.begin()
    receipt = host.ledger().spend("hospital", cost=HALF, analyst="ann")
    host.add_job("count")
    assert (_spent(host), host.jobs()) == (NOTHING, [])
    host.commit()
    assert (_spent(host), host.jobs()) == (HALF, ["count"])
    with open_ledger(host.url) as ledger:
        assert ledger.head("hospital") == receipt.digest


def test_a_rollback_takes_the_spend_and_the_row_back(host: Host) -> None:
    host.begin()
    host.ledger().spend("hospital", cost=Budget(epsilon=1))
    host.add_job("count")
    host.roll_back()
    assert (_spent(host), host.jobs()) == (NOTHING, [])
    host.begin()
    host.ledger().spend("hospital", cost=Budget(epsilon=1))
    host.commit()
    assert _spent(host) == Budget(epsilon=1)


def test_a_part_of_a_transaction_can_be_taken_back(host: Host) -> None:
    host.begin()
    ledger = host.ledger()
    ledger.spend("hospital", cost=Budget(epsilon=0.25))
    host.connection.execute("SAVEPOINT job")
    ledger.spend("hospital", cost=HALF)
    host.connection.execute("ROLLBACK TO SAVEPOINT job")
    assert ledger.spent("hospital") == Budget(epsilon=0.25)
    ledger.spend("hospital", cost=HALF)
    host.commit()
    assert _spent(host) == Budget(epsilon=0.75)


def test_a_refused_spend_leaves_the_transaction_to_the_host(host: Host) -> None:
    host.begin()
    with pytest.raises(BudgetExceededError):
        host.ledger().spend("hospital", cost=Budget(epsilon=2))
    host.add_job("denied")
    host.commit()
    assert (_spent(host), host.jobs()) == (NOTHING, ["denied"])


def test_joined_and_plain_ledgers_share_one_budget(host: Host) -> None:
    with open_ledger(host.url, create=False) as plain:
        plain.spend("hospital", cost=HALF)
        host.begin()
        joined = host.ledger()
        assert joined.remaining("hospital") == HALF
        with pytest.raises(BudgetExceededError):
            joined.spend("hospital", cost=Budget(epsilon=0.6))
        joined.spend("hospital", cost=HALF)
        assert plain.remaining("hospital") == HALF
        host.commit()
        assert plain.remaining("hospital") == NOTHING
        with pytest.raises(BudgetExceededError):
            plain.spend("hospital", cost=HALF)
        assert [entry.number for entry in plain.entries("hospital")] == [1, 2, 3]
        plain.verify()


def test_an_account_opened_in_a_transaction_ends_with_it(host: Host) -> None:
    host.begin()
    host.ledger().open_account("clinic", budget=HALF)
    host.roll_back()
    with open_ledger(host.url) as plain:
        assert [account.dataset for account in plain.accounts()] == ["hospital"]


def test_closing_the_ledger_leaves_the_connection_and_the_transaction(host: Host) -> None:
    host.begin()
    with host.ledger() as ledger:
        ledger.spend("hospital", cost=HALF)
    with pytest.raises(LedgerError, match="closed") as caught:
        ledger.spend("hospital", cost=HALF)
    assert "join_ledger" in caught.value.fix
    host.add_job("count")
    host.commit()
    assert (_spent(host), host.jobs()) == (HALF, ["count"])


def test_a_ledger_is_named_after_the_database_of_its_host(host: Host) -> None:
    host.begin()
    name = repr(host.ledger())
    host.roll_back()
    if host.dialect == "sqlite":
        assert name == f'join_ledger("{host.url}")'
    else:
        assert name.startswith('join_ledger("postgresql://cloister@/')


def test_tables_are_made_once_and_taken_back_with_the_transaction(host: Host) -> None:
    host.begin()
    create_tables(host.connection, dialect=host.dialect)
    host.ledger().verify()
    host.commit()
    assert _spent(host) == NOTHING


@pytest.mark.parametrize(
    "place", ["sqlite_url", pytest.param("postgres_url", marks=[pytest.mark.postgres, pytest.mark.slow])]
)
def test_tables_of_a_transaction_that_is_rolled_back_are_gone(request: pytest.FixtureRequest, place: str) -> None:
    with Host(request.getfixturevalue(place)) as host:
        host.begin()
        create_tables(host.connection, dialect=host.dialect)
        host.roll_back()
        host.begin()
        with pytest.raises(LedgerUnreachableError, match="no ledger in") as caught:
            host.ledger()
        assert "create_tables(" in caught.value.fix
        host.roll_back()


def test_a_ledger_of_another_version_is_not_joined(host: Host) -> None:
    host.begin()
    table = "cloister_ledger_format" if host.dialect == "sqlite" else "cloister_ledger.format"
    host.connection.execute(f"UPDATE {table} SET version = 7")
    with pytest.raises(LedgerVersionError, match="has format 7"):
        host.ledger()
    host.commit()
    with pytest.raises(LedgerVersionError, match="has format 7"):
        open_ledger(host.url)


def test_without_a_transaction_nothing_works(host: Host) -> None:
    host.begin()
    ledger = host.ledger()
    host.commit()
    if host.dialect == "postgresql":
        host.connection.autocommit = True
    with pytest.raises(LedgerError, match="no open transaction") as caught:
        ledger.spend("hospital", cost=HALF)
    assert "begin one first" in caught.value.fix
    for use in (ledger.accounts, host.ledger):
        with pytest.raises(LedgerError, match="no open transaction"):
            use()
    with pytest.raises(LedgerError, match="no open transaction"):
        create_tables(host.connection, dialect=host.dialect)


def test_a_closed_connection_says_so(host: Host) -> None:
    host.begin()
    ledger = host.ledger()
    host.connection.close()
    with pytest.raises(LedgerError, match="closed|does not answer"):
        ledger.accounts()
    with pytest.raises(LedgerError, match="closed|does not answer"):
        host.ledger()


@pytest.mark.parametrize("dialect", ["sqlite", "postgresql"])
def test_something_that_is_not_a_connection_is_refused(dialect: Any) -> None:
    with pytest.raises(ParameterTypeError, match="not a connection") as caught:
        join_ledger("sqlite:///hub.db", dialect=dialect)
    assert "driver_connection" in caught.value.fix


def test_an_unknown_dialect_is_refused() -> None:
    with pytest.raises(ParameterError, match='Did you mean "postgresql"') as caught:
        create_tables(None, dialect="postgres")  # type: ignore[arg-type]
    assert 'dialect="sqlite"' in caught.value.fix


def test_joining_postgres_needs_its_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    import sys

    monkeypatch.setitem(sys.modules, "psycopg", None)
    with pytest.raises(MissingExtraError, match=r"cloister\[postgres\]"):
        join_ledger(None, dialect="postgresql")


def test_sqlite_settings_of_the_host_do_not_matter_and_stay(sqlite_host: Host) -> None:
    connection = sqlite_host.connection
    connection.row_factory, connection.text_factory = sqlite3.Row, bytes
    sqlite_host.begin()
    ledger = sqlite_host.ledger()
    ledger.spend("hospital", cost=HALF, analyst="ann")
    ledger.verify()
    with pytest.raises(BudgetExceededError):
        ledger.spend("hospital", cost=Budget(epsilon=1))
    assert (connection.row_factory, connection.text_factory) == (sqlite3.Row, bytes)
    assert connection.execute("SELECT 'x' AS name").fetchone()["name"] == b"x"
    sqlite_host.commit()


def test_sqlite_must_wait_for_the_disk(sqlite_host: Host) -> None:
    sqlite_host.connection.execute("PRAGMA synchronous = NORMAL")
    sqlite_host.begin()
    ledger = sqlite_host.ledger()
    assert ledger.remaining("hospital") == Budget(epsilon=1)
    with pytest.raises(LedgerError, match="wait for the disk") as caught:
        ledger.spend("hospital", cost=HALF)
    assert "synchronous = FULL" in caught.value.fix


def test_sqlite_writers_that_did_not_queue_do_not_both_win(sqlite_host: Host) -> None:
    sqlite_host.connection.execute("BEGIN")
    ledger = sqlite_host.ledger()
    assert ledger.remaining("hospital") == Budget(epsilon=1)
    with open_ledger(sqlite_host.url) as plain:
        plain.spend("hospital", cost=Budget(epsilon=0.6))
    with pytest.raises(LedgerUnreachableError, match="Another writer") as caught:
        ledger.spend("hospital", cost=Budget(epsilon=0.6))
    assert "BEGIN IMMEDIATE" in caught.value.fix
    sqlite_host.roll_back()
    assert _spent(sqlite_host) == Budget(epsilon=0.6)


def test_sqlite_refuses_a_connection_of_another_thread(sqlite_host: Host) -> None:
    with closing(sqlite3.connect(sqlite_host.url.removeprefix("sqlite:///"), isolation_level=None)) as connection:
        connection.execute("BEGIN IMMEDIATE")
        ledger = join_ledger(connection, dialect="sqlite")
        caught: list[Exception] = []

        def use() -> None:
            try:
                ledger.accounts()
            except LedgerError as error:
                caught.append(error)

        thread = threading.Thread(target=use)
        thread.start()
        thread.join()
        assert "belongs to another thread" in str(caught[0])
        assert [account.dataset for account in ledger.accounts()] == ["hospital"]


def test_a_host_in_memory() -> None:
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as connection:
        connection.execute("BEGIN")
        create_tables(connection, dialect="sqlite")
        ledger = join_ledger(connection, dialect="sqlite")
        assert repr(ledger) == 'join_ledger("sqlite:///:memory:")'
        ledger.open_account("hospital", budget=HALF)
        ledger.verify()


def test_a_file_that_is_a_ledger_hosts_no_second_one(sqlite_url: str) -> None:
    open_ledger(sqlite_url).close()
    with Host(sqlite_url) as host:
        host.begin()
        with pytest.raises(LedgerError, match="second budget") as caught:
            create_tables(host.connection, dialect="sqlite")
        assert "a database of its own" in caught.value.fix
        with pytest.raises(LedgerUnreachableError, match="no ledger in"):
            host.ledger()


@pytest.mark.postgres
@pytest.mark.slow
class TestPostgres:
    def test_settings_of_the_host_do_not_matter_and_stay(self, postgres_host: Host) -> None:
        from psycopg import ClientCursor
        from psycopg.rows import dict_row

        connection = postgres_host.connection
        connection.row_factory, connection.cursor_factory = dict_row, ClientCursor
        ledger = postgres_host.ledger()
        ledger.spend("hospital", cost=HALF, analyst="ann")
        ledger.verify()
        assert connection.execute("SELECT 'x' AS name").fetchone() == {"name": "x"}
        connection.commit()

    def test_a_commit_waits_for_the_disk_whatever_the_host_prefers(self, postgres_host: Host) -> None:
        connection = postgres_host.connection
        connection.execute("SET synchronous_commit = off")
        connection.commit()
        postgres_host.ledger().spend("hospital", cost=Budget(epsilon=0.1))
        assert connection.execute("SHOW synchronous_commit").fetchone() == ("on",)
        connection.commit()
        assert connection.execute("SHOW synchronous_commit").fetchone() == ("off",)
        connection.execute("SET synchronous_commit = remote_apply")
        postgres_host.ledger().spend("hospital", cost=Budget(epsilon=0.1))
        assert connection.execute("SHOW synchronous_commit").fetchone() == ("remote_apply",)

    @pytest.mark.parametrize("level", ["REPEATABLE READ", "SERIALIZABLE"])
    def test_a_transaction_that_sees_the_past_may_only_read(self, postgres_host: Host, level: str) -> None:
        postgres_host.connection.execute(f"SET TRANSACTION ISOLATION LEVEL {level}")
        ledger = postgres_host.ledger()
        ledger.verify()
        with pytest.raises(LedgerError, match=level.lower()) as caught:
            ledger.spend("hospital", cost=HALF)
        assert "READ COMMITTED" in caught.value.fix

    def test_a_transaction_that_failed_says_so(self, postgres_host: Host) -> None:
        import psycopg

        ledger = postgres_host.ledger()
        with pytest.raises(psycopg.Error):
            postgres_host.connection.execute("SELECT nonsense")
        with pytest.raises(LedgerError, match="failed already") as caught:
            ledger.spend("hospital", cost=HALF)
        assert "roll it back" in caught.value.fix

    def test_an_encoding_that_loses_text_is_refused(self, postgres_host: Host) -> None:
        postgres_host.connection.execute("SET client_encoding = latin1")
        with pytest.raises(LedgerError, match="cannot carry all text") as caught:
            postgres_host.ledger()
        assert 'client_encoding="utf8"' in caught.value.fix

    def test_an_explicit_transaction_of_an_autocommit_connection(self, postgres_host: Host) -> None:
        postgres_host.connection.autocommit = True
        with postgres_host.connection.transaction():
            postgres_host.ledger().spend("hospital", cost=HALF)
        assert _spent(postgres_host) == HALF

    def test_no_chain_grows_while_it_is_verified(self, postgres_host: Host, monkeypatch: pytest.MonkeyPatch) -> None:
        with open_ledger(postgres_host.url) as plain:
            database: Any = plain._database  # type: ignore[attr-defined]
            monkeypatch.setattr(database, "begin_writing", database.begin_writing.replace("120s", "10ms"))
            postgres_host.ledger().verify()
            with pytest.raises(LedgerUnreachableError, match="another writer"):
                plain.spend("hospital", cost=HALF)
            postgres_host.roll_back()
            plain.spend("hospital", cost=HALF)

    def test_hosts_that_wait_for_each_other_are_told_to_try_again(self, postgres_host: Host) -> None:
        postgres_host.ledger().open_account("clinic", budget=Budget(epsilon=1))
        postgres_host.commit()
        both_spent, fixes = threading.Barrier(2), []

        def spend(datasets: tuple[str, str]) -> None:
            with Host(postgres_host.url) as host:
                ledger = host.ledger()
                ledger.spend(datasets[0], cost=HALF)
                both_spent.wait()
                try:
                    ledger.spend(datasets[1], cost=HALF)
                except LedgerUnreachableError as error:
                    host.roll_back()
                    fixes.append(error.fix)
                else:
                    host.commit()

        pairs = (("hospital", "clinic"), ("clinic", "hospital"))
        threads = [threading.Thread(target=spend, args=(pair,)) for pair in pairs]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert fixes == ["roll it back and try again."]
        assert _spent(postgres_host) == HALF

    def test_two_hosts_make_the_tables_together(self, postgres_url: str) -> None:
        made = threading.Event()

        def make() -> None:
            with Host(postgres_url) as second:
                create_tables(second.connection, dialect="postgresql")
                second.ledger().open_account("clinic", budget=HALF)
                second.commit()
            made.set()

        with Host(postgres_url) as first:
            create_tables(first.connection, dialect="postgresql")
            thread = threading.Thread(target=make)
            thread.start()
            assert not made.wait(0.2)
            first.commit()
            thread.join()
            assert [account.dataset for account in first.ledger().accounts()] == ["clinic"]
