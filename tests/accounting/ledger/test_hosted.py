"""A ledger in the SQLite file of a host, as others find and check it."""

from __future__ import annotations

import hashlib
import json
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from cloister.accounting.budget import Budget
from cloister.accounting.ledger import open_ledger
from cloister.accounting.ledger._sqlite import ALONE, HOSTED, original_layout
from cloister.cli import main
from cloister.errors import LedgerDamagedError
from tests.support.ledger_host import Host

LAYOUT = "113ea6999ce11ba5f9398ca2b907bed0d158c43b58b7a98f81b967b4a6ce2e69"


@pytest.fixture
def host(sqlite_url: str) -> Iterator[Host]:
    with Host(sqlite_url) as made:
        made.set_up()
        made.begin()
        ledger = made.ledger()
        for purpose in ("weekly", "monthly"):
            receipt = ledger.spend("hospital", cost=Budget(epsilon=0.1), analyst="ann", purpose=purpose, key=purpose)
            ledger.store_answer(receipt, answer=purpose)
        made.commit()
        yield made


def _damage(host: Host) -> LedgerDamagedError:
    """Find the same with a ledger of our own and with one that is joined."""
    with open_ledger(host.url) as ledger, pytest.raises(LedgerDamagedError) as plain:
        ledger.verify()
    host.begin()
    with pytest.raises(LedgerDamagedError) as joined:
        host.ledger().verify()
    host.roll_back()
    assert (joined.value.problem, joined.value.entry) == (plain.value.problem, plain.value.entry)
    return plain.value


def test_ledgers_written_before_are_laid_out_like_this() -> None:
    assert hashlib.sha256(json.dumps(original_layout(ALONE)).encode()).hexdigest() == LAYOUT


def test_every_name_of_a_hosted_ledger_carries_the_prefix() -> None:
    alone = {(kind, name) for kind, name, _ in original_layout(ALONE)}
    hosted = {(kind, name.removeprefix(HOSTED)) for kind, name, _ in original_layout(HOSTED)}
    assert all(name.startswith(HOSTED) for _, name, _ in original_layout(HOSTED))
    assert hosted == alone | {("table", "format")}


@pytest.mark.parametrize("create", [True, False])
def test_it_is_found_by_the_address_of_the_file(host: Host, create: bool) -> None:
    with open_ledger(host.url, create=create) as ledger:
        ledger.spend("hospital", cost=Budget(epsilon=0.1))
        ledger.verify()
        assert ledger.spent("hospital") == Budget(epsilon=0.3)


def test_the_commands_show_and_verify_it(host: Host, capsys: pytest.CaptureFixture[str]) -> None:
    for verb, expected in (("show", "hospital"), ("verify", "Every entry is as it was written")):
        with pytest.raises(SystemExit) as ended:
            main(["ledger", verb, host.url])
        assert ended.value.code == 0
        assert expected in capsys.readouterr().out


def test_what_else_is_in_the_file_does_not_matter(host: Host) -> None:
    for statement in (
        "PRAGMA application_id = 42",
        "PRAGMA user_version = 9",
        "CREATE TABLE entries (name TEXT NOT NULL)",
        "INSERT INTO entries VALUES ('x')",
        "CREATE TABLE cloisterXledgerX (name TEXT)",
        "CREATE INDEX by_name ON jobs (name)",
        "CREATE TRIGGER job_added AFTER INSERT ON jobs BEGIN DELETE FROM entries; END",
        "ANALYZE",
    ):
        host.connection.execute(statement)
    with open_ledger(host.url) as ledger:
        ledger.verify()
        assert ledger.spent("hospital") == Budget(epsilon=0.2)


def test_broken_rules_of_the_host_are_not_damage_of_the_ledger(host: Host) -> None:
    connection = host.connection
    connection.execute("INSERT INTO jobs VALUES (NULL)")
    connection.execute("PRAGMA writable_schema = ON")
    connection.execute("UPDATE sqlite_master SET sql = 'CREATE TABLE jobs (name TEXT NOT NULL)' WHERE name = 'jobs'")
    with closing(sqlite3.connect(host.url.removeprefix("sqlite:///"))) as other:
        assert other.execute("PRAGMA integrity_check").fetchall() != [("ok",)]
    with open_ledger(host.url) as ledger:
        ledger.verify()


@pytest.mark.parametrize(
    "statement",
    [
        "DROP TRIGGER cloister_ledger_entries_stay",
        "DROP INDEX cloister_ledger_answers_by_key",
        "CREATE TABLE cloister_ledger_more (name TEXT)",
        "CREATE TRIGGER quiet AFTER INSERT ON cloister_ledger_entries BEGIN SELECT 1; END",
        "CREATE TRIGGER loud AFTER INSERT ON CLOISTER_LEDGER_ENTRIES BEGIN SELECT 1; END",
        "CREATE INDEX mine ON cloister_ledger_accounts (head)",
    ],
)
def test_changed_tables_are_found(host: Host, statement: str) -> None:
    host.connection.execute(statement)
    assert "tables of the ledger" in _damage(host).problem


@pytest.mark.parametrize("table", ["accounts", "entries"])
def test_a_removed_table_is_found(host: Host, table: str) -> None:
    host.connection.execute(f"DROP TABLE cloister_ledger_{table}")
    assert "is damaged" in _damage(host).problem


@pytest.mark.parametrize("table", ["accounts", "entries"])
@pytest.mark.parametrize("statement", ["DELETE FROM {0}", "INSERT OR REPLACE INTO {0} SELECT * FROM {0}"])
def test_the_database_itself_refuses_edits(host: Host, table: str, statement: str) -> None:
    with pytest.raises(sqlite3.IntegrityError, match="of a ledger"):
        host.connection.execute(statement.format(f"cloister_ledger_{table}"))


@pytest.mark.parametrize("value", ["'annual'", "CAST(x'ff41fe' AS TEXT)", "x'00'", "7.5"])
@pytest.mark.parametrize("column", ["details", "time", "analyst"])
def test_damaged_values_are_found_and_named(host: Host, column: str, value: str) -> None:
    (trigger,) = (sql for _, name, sql in original_layout(HOSTED) if name == "cloister_ledger_entries_stay")
    host.connection.execute("DROP TRIGGER cloister_ledger_entries_stay")
    host.connection.execute(f"UPDATE cloister_ledger_entries SET {column} = {value} WHERE number = 4")
    host.connection.execute(trigger)
    assert _damage(host).entry == 4
    assert host.connection.text_factory is str


def test_an_index_that_disagrees_is_found(host: Host) -> None:
    host.connection.execute("PRAGMA writable_schema = ON")
    host.connection.execute(
        "UPDATE sqlite_master SET sql = replace(sql, 'kind = ''answer''', 'kind = ''spend''') "
        "WHERE name = 'cloister_ledger_answers_by_key'"
    )
    host.connection.close()
    host.connection = host.connect()
    assert "pages or indexes disagree" in _damage(host).problem


def test_a_file_whose_mark_was_removed_is_no_ledger_and_gets_no_new_budget(host: Host) -> None:
    from cloister.accounting.ledger.host_database import create_tables

    host.connection.execute("DROP TABLE cloister_ledger_format")
    with pytest.raises(LedgerDamagedError, match="not a ledger"):
        open_ledger(host.url)
    host.begin()
    with pytest.raises(LedgerDamagedError, match="is damaged"):
        create_tables(host.connection, dialect="sqlite")
    host.roll_back()


def test_a_file_of_a_host_without_a_ledger_stays_without_one(tmp_path: Path) -> None:
    path = tmp_path / "hub.db"
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE jobs (name TEXT)")
    before = path.read_bytes()
    with pytest.raises(LedgerDamagedError, match="not a ledger"):
        open_ledger(f"sqlite:///{path}", create=True)
    assert path.read_bytes() == before
