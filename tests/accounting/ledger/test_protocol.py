"""Addresses of ledgers, and everything that can be wrong with what is there."""

from __future__ import annotations

import gc
import os
import sqlite3
import stat
import sys
import threading
from contextlib import closing
from pathlib import Path

import pytest

from cloister.accounting.budget import Budget
from cloister.accounting.ledger import Ledger, _sqlite as sqlite, open_ledger
from cloister.accounting.ledger._database import _ABANDONED, _close_all
from cloister.accounting.ledger._sqlite import MemoryDatabase, SqliteDatabase
from cloister.errors import (
    LedgerDamagedError,
    LedgerError,
    LedgerUnreachableError,
    LedgerVersionError,
    MissingExtraError,
    ParameterError,
    ParameterTypeError,
)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "budget.db"


@pytest.fixture
def opened(path: Path) -> Ledger:
    ledger = open_ledger(f"sqlite:///{path}")
    ledger.open_account("hospital", budget=Budget(epsilon=1))
    return ledger


def _database(ledger: Ledger) -> SqliteDatabase:
    return ledger._database  # type: ignore[attr-defined, no-any-return]


@pytest.mark.parametrize(
    ("url", "hint"),
    [
        ("sqlitee:///budget.db", 'Did you mean "sqlite:"'),
        ("postgresqll://host/db", 'Did you mean "postgresql:"'),
        ("postgresql+psycopg://host/db", 'Did you mean "postgresql:"'),
        ("memory", 'Did you mean "memory:"'),
        ("memory:budget", "does not start like this"),
        ("budget.db", "does not start like this"),
        ("postgresql:host", "does not start like this"),
        ("", "does not start like this"),
        ("sqlite://budget.db", "three slashes"),
        ("sqlite:budget.db", "three slashes"),
        ("sqlite:///", "three slashes"),
        ("sqlite:///:memory:", "three slashes"),
        ("sqlite:///budget.db?mode=ro", "no options"),
    ],
)
def test_a_wrong_address_is_explained(url: str, hint: str) -> None:
    with pytest.raises(ParameterError, match=hint) as caught:
        open_ledger(url)
    assert "write" in caught.value.fix or "leave out" in caught.value.fix


def test_an_address_is_text(tmp_path: Path) -> None:
    with pytest.raises(ParameterTypeError, match="not text"):
        open_ledger(tmp_path)  # type: ignore[arg-type]


def test_relative_paths_stay_where_they_were(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(path.parent)
    with open_ledger("sqlite:///budget.db") as ledger:
        monkeypatch.chdir("/")
        ledger.open_account("hospital", budget=Budget(epsilon=1))
    with open_ledger(f"SQLITE:///{path}", create=False) as again:
        assert again.account("hospital").entries == 1


def test_an_odd_file_name_works(tmp_path: Path) -> None:
    with open_ledger(f"sqlite:///{tmp_path / 'bud get #1 %41.db'}") as ledger:
        ledger.open_account("hospital", budget=Budget(epsilon=1))
    assert (tmp_path / "bud get #1 %41.db").exists()


def test_a_ledger_that_is_not_there(path: Path) -> None:
    with pytest.raises(LedgerUnreachableError, match="no ledger at") as caught:
        open_ledger(f"sqlite:///{path}", create=False)
    assert "create=True" in caught.value.fix
    assert list(path.parent.iterdir()) == []


def test_a_folder_that_is_not_there(path: Path) -> None:
    with pytest.raises(LedgerUnreachableError, match="no folder") as caught:
        open_ledger(f"sqlite:///{path.parent / 'nowhere' / 'budget.db'}")
    assert "mkdir -p" in caught.value.fix


def test_a_folder_in_place_of_a_file(path: Path) -> None:
    with pytest.raises(LedgerUnreachableError, match="is a folder"):
        open_ledger(f"sqlite:///{path.parent}")


def test_a_name_that_the_disk_refuses(path: Path) -> None:
    with pytest.raises(LedgerUnreachableError, match="name too long"):
        open_ledger(f"sqlite:///{path.parent / ('x' * 300)}")


def test_a_disk_without_hard_links(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*arguments: object) -> None:
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(os, "link", refuse)
    with pytest.raises(LedgerUnreachableError, match="not permitted") as caught:
        open_ledger(f"sqlite:///{path}")
    assert "local disk" in caught.value.fix
    assert list(path.parent.iterdir()) == []


def test_somebody_else_made_it_first(path: Path, opened: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Path, "exists", lambda self: False)
    with open_ledger(f"sqlite:///{path}") as second:
        assert second.accounts() == opened.accounts()
    opened.close()


@pytest.mark.parametrize("content", [b"dear diary, this is not a database" * 99, b"x", b"", b"SQLite format 3\0" * 50])
def test_a_file_that_is_not_a_ledger_stays_untouched(path: Path, content: bytes) -> None:
    path.write_bytes(content)
    with pytest.raises(LedgerDamagedError, match="not a ledger") as caught:
        open_ledger(f"sqlite:///{path}")
    assert caught.value.fix
    assert path.read_bytes() == content


def test_another_database_stays_untouched(path: Path) -> None:
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE patients (name TEXT)")
    before = path.read_bytes()
    with pytest.raises(LedgerDamagedError, match="not a ledger"):
        open_ledger(f"sqlite:///{path}")
    assert path.read_bytes() == before


def test_a_ledger_of_another_version(path: Path, opened: Ledger) -> None:
    opened.close()
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA user_version = 2")
    with pytest.raises(LedgerVersionError, match="has format 2") as caught:
        open_ledger(f"sqlite:///{path}")
    assert "newer" in caught.value.fix


def test_a_ledger_that_may_only_be_read(opened: Ledger) -> None:
    with _database(opened).reading() as session:
        session.rows("PRAGMA query_only = ON")
    assert opened.remaining("hospital") == Budget(epsilon=1)
    with pytest.raises(LedgerError, match="may not be written to"):
        opened.spend("hospital", cost=Budget(epsilon=0.1))
    opened.close()


def test_a_writer_that_never_ends(path: Path, opened: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    opened.close()
    monkeypatch.setattr("cloister.accounting.ledger._sqlite.PATIENCE", 0)
    with (
        open_ledger(f"sqlite:///{path}") as ledger,
        closing(sqlite3.connect(path, isolation_level=None)) as other,
    ):
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(LedgerUnreachableError, match="another writer") as caught:
            ledger.spend("hospital", cost=Budget(epsilon=0.1))
        assert "try again" in caught.value.fix
        assert ledger.remaining("hospital") == Budget(epsilon=1)
        other.execute("ROLLBACK")
        ledger.spend("hospital", cost=Budget(epsilon=0.1))


def test_a_file_that_was_replaced_while_in_use(path: Path, opened: Ledger) -> None:
    path.rename(path.with_name("old.db"))
    with pytest.raises(LedgerUnreachableError, match="no ledger"):
        opened.spend("hospital", cost=Budget(epsilon=0.1))
    open_ledger(f"sqlite:///{path}").close()
    with open_ledger(f"sqlite:///{path.with_name('old.db')}"), pytest.raises(LedgerDamagedError, match="was replaced"):
        opened.spend("hospital", cost=Budget(epsilon=0.1))
    opened.close()


def test_tables_that_were_removed(path: Path, opened: Ledger) -> None:
    opened.close()
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("DROP TABLE entries")
    with open_ledger(f"sqlite:///{path}") as ledger, pytest.raises(LedgerDamagedError):
        ledger.verify()


def test_commits_wait_for_the_disk(opened: Ledger) -> None:
    with _database(opened).reading() as session:
        assert session.rows("PRAGMA synchronous") == [(2,)]
        assert session.rows("PRAGMA journal_mode") == [("wal",)]
    opened.close()


def test_a_forgotten_ledger_closes_its_connections(path: Path) -> None:
    forgotten = open_ledger(f"sqlite:///{path}")
    (_, connection), *_ = _database(forgotten)._idle
    del forgotten
    gc.collect()
    with pytest.raises(sqlite3.ProgrammingError, match="closed"):
        connection.execute("SELECT 1")


def test_connections_of_a_parent_process_are_left_alone(opened: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    idle = _database(opened)._idle
    (_, connection), *_ = idle
    with monkeypatch.context() as patch:
        patch.setattr(os, "getpid", lambda: -1)
        assert opened.remaining("hospital") == Budget(epsilon=1)
        assert connection in _ABANDONED
    connection.execute("SELECT 1")
    _close_all(idle)
    assert len(_ABANDONED) >= 2
    for kept in _ABANDONED:
        kept.close()
    _ABANDONED.clear()


def test_a_ledger_in_memory_is_never_made_twice() -> None:
    database = MemoryDatabase()
    with database.reading() as session:
        database.close()
        assert session.rows("SELECT count(*) FROM cloister_ledger.accounts") == [(0,)]
    database._closed = False
    with pytest.raises(LedgerError, match="closed"), database.reading():
        raise AssertionError
    assert database._turn.acquire(blocking=False)


def test_a_broken_ledger_in_memory_says_so() -> None:
    with open_ledger("memory:") as ledger:
        with _database(ledger).writing() as session:
            session.rows("DROP TABLE cloister_ledger.entries")
        with pytest.raises(LedgerDamagedError, match="in memory"):
            ledger.verify()


def test_postgres_needs_its_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "psycopg", None)
    with pytest.raises(MissingExtraError, match=r"cloister\[postgres\]"):
        open_ledger("postgresql://host/database")


def test_a_second_name_for_the_file_is_refused(path: Path, opened: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sqlite, "_LINKING", 0.02)
    other = path.with_name("other.db")
    os.link(path, other)
    for use in (opened.accounts, lambda: open_ledger(f"sqlite:///{other}"), lambda: open_ledger(f"sqlite:///{path}")):
        with pytest.raises(LedgerError, match="remove the other names"):
            use()
    other.unlink()
    assert opened.accounts() == open_ledger(f"sqlite:///{path}").accounts()


def test_a_new_file_may_have_two_names_for_a_moment(path: Path, opened: Ledger) -> None:
    other = path.with_name("other.db")
    os.link(path, other)
    threading.Timer(0.1, other.unlink).start()
    opened.accounts()
    assert not other.exists()


def test_a_symbolic_link_leads_to_the_same_budget(path: Path, opened: Ledger) -> None:
    opened.open_account("linked", budget=Budget(epsilon=1))
    link = path.with_name("link.db")
    link.symlink_to(path)
    with open_ledger(f"sqlite:///{link}") as other:
        other.spend("linked", cost=Budget(epsilon=1))
    assert opened.remaining("linked").amount == 0
    assert not link.with_name("link.db-wal").exists()


def test_only_the_owner_may_read_a_new_ledger(path: Path, opened: Ledger) -> None:
    opened.open_account("private", budget=Budget(epsilon=1))
    modes = {file.name: stat.S_IMODE(file.stat().st_mode) for file in path.parent.iterdir()}
    assert modes[path.name] == 0o600
    assert set(modes.values()) == {0o600}
