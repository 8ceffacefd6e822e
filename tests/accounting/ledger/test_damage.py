"""Every edit of a stored ledger is found, and named."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given, settings, strategies as st

from cloister.accounting.budget import Budget
from cloister.accounting.ledger import Ledger, open_ledger
from cloister.accounting.ledger._chain import COLUMNS, Record
from cloister.accounting.ledger._sqlite import ALONE, original_layout
from cloister.core.digests import GENESIS, chain_text
from cloister.errors import LedgerDamagedError, LedgerError
from tests.support.thoroughness import is_thorough

Execute = Callable[..., Any]
LAST = 8


def _fill(ledger: Ledger) -> None:
    ledger.open_account("hospital", budget=Budget(epsilon=1, delta=1e-6))
    ledger.limit_analyst("hospital", analyst="ann", budget=Budget(epsilon=0.5))
    for _ in range(3):
        ledger.spend("hospital", cost=Budget(epsilon=0.1), analyst="ann", purpose="weekly")
    receipt = ledger.spend("hospital", cost=Budget(epsilon=0.1), key="count()")
    ledger.store_answer(receipt, answer={"value": 42})
    ledger.raise_budget("hospital", budget=Budget(epsilon=2, delta=1e-6))
    ledger.open_account("clinic", budget=Budget(rho=1))


@pytest.fixture
def url(durable_url: str) -> str:
    with open_ledger(durable_url) as ledger:
        _fill(ledger)
        ledger.verify()
    return durable_url


@pytest.fixture
def execute(url: str) -> Iterator[Execute]:
    """Run statements on the raw database, with the triggers gone."""
    if url.startswith("sqlite"):
        with closing(sqlite3.connect(url.removeprefix("sqlite:///"), isolation_level=None)) as connection:
            for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'trigger'").fetchall():
                connection.execute(f"DROP TRIGGER {name}")
            yield connection.execute
    else:
        import psycopg

        with psycopg.connect(url, autocommit=True) as server:
            server.execute("SET search_path TO cloister_ledger")
            server.execute("ALTER TABLE entries DISABLE TRIGGER ALL")
            server.execute("ALTER TABLE accounts DISABLE TRIGGER ALL")
            yield lambda statement, values=(): server.execute(statement.replace("?", "%s"), values)


def _damage(url: str, **heads: str) -> LedgerDamagedError:
    with open_ledger(url) as ledger, pytest.raises(LedgerDamagedError) as caught:
        ledger.verify(heads=heads)
    assert "restore a backup" in caught.value.fix
    return caught.value


EDITS = {
    "kind": "limit",
    "time": "2020-01-01T00:00:00+00:00",
    "analyst": "bob",
    "query_key": "0" * 64,
    "details": "{}",
    "state": "{}",
    "previous": "1" * 64,
    "digest": "1" * 64,
}


@pytest.mark.parametrize("column", EDITS)
@pytest.mark.parametrize("number", [1, 4, LAST])
def test_an_edited_column_is_found(url: str, execute: Execute, column: str, number: int) -> None:
    execute(f"UPDATE entries SET {column} = ? WHERE dataset = 'hospital' AND number = ?", (EDITS[column], number))
    error = _damage(url)
    assert (error.dataset, error.entry) == ("hospital", number)
    assert f'entry {number} of dataset "hospital"' in error.problem


@pytest.mark.parametrize("column", ["details", "state", "time", "previous", "digest"])
def test_a_flipped_character_is_found(url: str, execute: Execute, column: str) -> None:
    for number in range(1, LAST + 1):
        where = f"WHERE dataset = 'hospital' AND number = {number}"
        text = execute(f"SELECT {column} FROM entries {where}").fetchone()[0]
        middle = len(text) // 2
        flipped = text[:middle] + chr(ord(text[middle]) ^ 1) + text[middle + 1 :]
        execute(f"UPDATE entries SET {column} = ? {where}", (flipped,))
        assert _damage(url).entry == number
        execute(f"UPDATE entries SET {column} = ? {where}", (text,))
    _verify_with_triggers(url, execute)


@pytest.mark.parametrize("number", [1, 2, 5, LAST])
def test_a_removed_entry_is_found(url: str, execute: Execute, number: int) -> None:
    execute(f"DELETE FROM entries WHERE dataset = 'hospital' AND number = {number}")
    assert (_damage(url).dataset, _damage(url).entry) == ("hospital", number)


def test_reordered_entries_are_found(url: str, execute: Execute) -> None:
    for old, new in ((3, 99), (4, 3), (99, 4)):
        execute(f"UPDATE entries SET number = {new} WHERE dataset = 'hospital' AND number = {old}")
    assert _damage(url).entry == 3


def test_entries_that_were_resealed_in_another_order_are_found(url: str, execute: Execute) -> None:
    first, second = (_load(execute, number) for number in (3, 4))
    _store(execute, 3, {**second, "number": 3})
    _store(execute, 4, {**first, "number": 4})
    assert _damage(url).entry == 3


def test_an_added_entry_is_found(url: str, execute: Execute) -> None:
    values = _load(execute, LAST)
    raised = {name: values[name].replace('"epsilon":"2"', '"epsilon":"3"') for name in ("details", "state")}
    _insert(execute, {**values, **raised, "number": LAST + 1, "previous": values["digest"]})
    assert "not accounted for" in _damage(url).problem
    assert _damage(url).entry == LAST + 1


@pytest.mark.parametrize("number", [0, -5])
def test_an_entry_before_the_first_is_found(url: str, execute: Execute, number: int) -> None:
    _insert(execute, {**_load(execute, 1), "number": number})
    assert _damage(url).entry == 1


def test_entries_without_an_account_are_found(url: str, execute: Execute) -> None:
    execute("DELETE FROM accounts WHERE dataset = 'clinic'")
    assert (_damage(url).dataset, _damage(url).entry) == ("clinic", 1)


def test_an_account_without_entries_is_found(url: str, execute: Execute) -> None:
    execute("DELETE FROM entries WHERE dataset = 'clinic'")
    assert (_damage(url).dataset, _damage(url).entry) == ("clinic", 1)


def test_an_edited_head_is_found_also_when_spending(url: str, execute: Execute) -> None:
    execute("UPDATE accounts SET head = ? WHERE dataset = 'hospital'", (GENESIS,))
    assert _damage(url).entry == LAST
    with open_ledger(url) as ledger, pytest.raises(LedgerDamagedError, match="not the head"):
        ledger.spend("hospital", cost=Budget(epsilon=0.1))


def test_a_spend_on_a_shortened_chain_is_refused(url: str, execute: Execute) -> None:
    execute(f"DELETE FROM entries WHERE dataset = 'hospital' AND number = {LAST}")
    with open_ledger(url) as ledger, pytest.raises(LedgerDamagedError, match="missing"):
        ledger.spend("hospital", cost=Budget(epsilon=0.1))


def test_edited_totals_are_found_even_when_resealed(url: str, execute: Execute) -> None:
    values = _load(execute, LAST)
    cheaper = values["state"].replace('"2/5"', '"1/5"')
    assert cheaper != values["state"]
    digest = _store(execute, LAST, {**values, "state": cheaper})
    execute("UPDATE accounts SET head = ? WHERE dataset = 'hospital'", (digest,))
    assert "do not add up" in _damage(url).problem
    assert _damage(url).entry == LAST


def test_an_overspend_that_was_sealed_properly_is_found(url: str, execute: Execute) -> None:
    _reseal_last_as(execute, kind="spend", details={"cost": Budget(epsilon=2).to_dict()})
    assert "spends more than was left" in _damage(url).problem


@pytest.mark.parametrize(
    ("kind", "details"),
    [
        ("open", {"budget": Budget(epsilon=9).to_dict(), "unit": "row", "adjacency": "add_remove"}),
        ("raise", {"budget": Budget(epsilon=0.1).to_dict()}),
        ("limit", {"budget": Budget(epsilon=9).to_dict()}),
        ("refund", {}),
        ("spend", {"cost": "free"}),
        ("spend", []),
    ],
)
def test_an_entry_against_the_rules_is_found(url: str, execute: Execute, kind: str, details: object) -> None:
    _reseal_last_as(execute, kind=kind, details=details)
    assert "cannot be understood" in _damage(url).problem


@pytest.mark.parametrize("spend", [4, 6, 99])
def test_an_answer_that_nobody_paid_for_is_found(url: str, execute: Execute, spend: int) -> None:
    details = {"spend": spend, "cost": Budget(epsilon=0.1).to_dict(), "answer": 1}
    before = _load(execute, LAST - 1)["state"]
    _reseal_last_as(execute, kind="answer", details=details, state=before)
    assert "not paid for" in _damage(url).problem


def test_a_chain_that_does_not_begin_by_opening_is_found(url: str, execute: Execute) -> None:
    values = {**_load(execute, 1, "clinic"), "kind": "raise"}
    digest = _store(execute, 1, values)
    execute("UPDATE accounts SET head = ? WHERE dataset = 'clinic'", (digest,))
    assert (_damage(url).dataset, _damage(url).entry) == ("clinic", 1)


def test_an_older_but_whole_chain_is_found_by_a_noted_head(url: str, execute: Execute) -> None:
    with open_ledger(url) as ledger:
        head = ledger.head("hospital")
    execute(f"DELETE FROM entries WHERE dataset = 'hospital' AND number = {LAST}")
    older = _load(execute, LAST - 1)["digest"]
    execute("UPDATE accounts SET entries = ?, head = ? WHERE dataset = 'hospital'", (LAST - 1, older))
    _verify_with_triggers(url, execute)
    assert "noted earlier" in _damage(url, hospital=head).problem


def test_a_dataset_that_vanished_is_found_by_a_noted_head(url: str, execute: Execute) -> None:
    for table in ("entries", "accounts"):
        execute(f"DELETE FROM {table} WHERE dataset = 'clinic'")
    _verify_with_triggers(url, execute)
    assert _damage(url, clinic="a" * 64).dataset == "clinic"


def test_reading_a_broken_entry_says_so(url: str, execute: Execute) -> None:
    values = _load(execute, LAST)
    digest = _store(execute, LAST, {**values, "state": "[]", "details": "nonsense"})
    execute("UPDATE accounts SET head = ? WHERE dataset = 'hospital'", (digest,))
    with open_ledger(url) as ledger:
        for use in (ledger.entries, ledger.account, ledger.remaining):
            with pytest.raises(LedgerDamagedError, match="cannot be understood"):
                use("hospital")


def test_an_edited_answer_is_not_given_out(url: str, execute: Execute) -> None:
    execute("UPDATE entries SET details = '{}' WHERE dataset = 'hospital' AND kind = 'answer'")
    with open_ledger(url) as ledger, pytest.raises(LedgerDamagedError, match="was changed"):
        ledger.find_answer("hospital", key="count()", cost=Budget(epsilon=0.1))


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE entries SET time = '' WHERE number = 2",
        "DELETE FROM entries WHERE number = 2",
        "DELETE FROM accounts",
        "UPDATE accounts SET entries = 1 WHERE dataset = 'hospital'",
    ],
)
def test_the_database_itself_refuses_edits(url: str, statement: str) -> None:
    if url.startswith("sqlite"):
        connect = closing(sqlite3.connect(url.removeprefix("sqlite:///")))
        with connect as connection, pytest.raises(sqlite3.IntegrityError, match="of a ledger"):
            connection.execute(statement)
    else:
        import psycopg

        with psycopg.connect(url) as server:
            server.execute("SET search_path TO cloister_ledger")
            with pytest.raises(psycopg.errors.RaiseException, match="of a ledger"):
                server.execute(statement.encode())


@pytest.mark.parametrize("table", ["entries", "accounts"])
def test_sqlite_refuses_to_replace_rows(sqlite_url: str, table: str) -> None:
    with open_ledger(sqlite_url) as ledger:
        _fill(ledger)
    connect = closing(sqlite3.connect(sqlite_url.removeprefix("sqlite:///")))
    with connect as connection, pytest.raises(sqlite3.IntegrityError, match="of a ledger"):
        connection.execute(f"INSERT OR REPLACE INTO {table} SELECT * FROM {table}")


@pytest.mark.postgres
@pytest.mark.slow
def test_postgres_refuses_to_empty_the_tables(postgres_url: str) -> None:
    import psycopg

    open_ledger(postgres_url).close()
    for table in ("entries", "accounts"):
        with psycopg.connect(postgres_url) as server, pytest.raises(psycopg.errors.RaiseException, match="of a ledger"):
            server.execute(f"TRUNCATE cloister_ledger.{table}".encode())


@pytest.mark.parametrize(("column", "value"), [("analyst", b"x"), ("details", b"{}"), ("time", 7.5)])
def test_values_of_other_types_are_found(sqlite_url: str, column: str, value: object) -> None:
    with open_ledger(sqlite_url) as ledger:
        _fill(ledger)
    with closing(sqlite3.connect(sqlite_url.removeprefix("sqlite:///"), isolation_level=None)) as connection:
        connection.execute("DROP TRIGGER entries_stay")
        connection.execute(f"UPDATE entries SET {column} = ? WHERE dataset = 'hospital' AND number = 3", (value,))
    assert _damage(sqlite_url).entry == 3


def test_a_number_that_is_text_is_found(sqlite_url: str) -> None:
    with open_ledger(sqlite_url) as ledger:
        _fill(ledger)
    with closing(sqlite3.connect(sqlite_url.removeprefix("sqlite:///"), isolation_level=None)) as connection:
        connection.execute("DROP TRIGGER entries_stay")
        connection.execute("UPDATE entries SET number = 'three' WHERE dataset = 'hospital' AND number = 3")
    assert _damage(sqlite_url).entry == 3


@pytest.mark.parametrize("text", [b"weekly", b"hospital", b'"budget":{', b"ann", b"+00:00"])
def test_a_flipped_byte_in_the_file_is_found(tmp_path: Path, text: bytes) -> None:
    path = tmp_path / "budget.db"
    with open_ledger(f"sqlite:///{path}") as ledger:
        _fill(ledger)
    content = bytearray(path.read_bytes())
    places = _places(bytes(content), text)
    assert places
    for place in places:
        flipped = content.copy()
        flipped[place + len(text) // 2] ^= 1
        copy = tmp_path / "copy.db"
        copy.write_bytes(flipped)
        with open_ledger(f"sqlite:///{copy}") as ledger, pytest.raises(LedgerDamagedError):
            ledger.verify()


class WholeFile:
    """The file of a filled ledger, to be written again with one bit flipped."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "budget.db"
        with open_ledger(f"sqlite:///{self.path}") as ledger:
            _fill(ledger)
            self.content = self._content(ledger)
        self.whole = self.path.read_bytes()

    def check_flipped(self, place: int, bit: int) -> None:
        """Either the ledger says that it is damaged, or nothing that it holds has changed."""
        flipped = bytearray(self.whole)
        flipped[place] ^= 1 << bit
        for leftover in self.path.parent.iterdir():
            leftover.unlink()
        self.path.write_bytes(flipped)
        try:
            with open_ledger(f"sqlite:///{self.path}", create=False) as ledger:
                ledger.verify()
                found = self._content(ledger)
        except LedgerError:
            return
        assert found == self.content

    @staticmethod
    def _content(ledger: Ledger) -> object:
        return ledger.accounts(), ledger.entries("hospital"), ledger.entries("clinic")


@pytest.fixture(scope="module")
def whole_file(tmp_path_factory: pytest.TempPathFactory) -> WholeFile:
    return WholeFile(tmp_path_factory.mktemp("whole"))


@settings(max_examples=60)
@given(place=st.floats(0, 1, exclude_max=True), bit=st.integers(0, 7))
@example(place=0.09375, bit=7)
def test_any_flipped_bit_of_the_file_is_found_or_changes_nothing(whole_file: WholeFile, place: float, bit: int) -> None:
    whole_file.check_flipped(int(place * len(whole_file.whole)), bit)


@pytest.mark.slow
def test_flipped_bits_all_over_the_file(whole_file: WholeFile) -> None:
    # Both steps are odd, so that all bits of a byte come up.
    for place in range(0, len(whole_file.whole), 53 if is_thorough() else 107):
        whole_file.check_flipped(place, place % 8)


def test_an_index_that_disagrees_is_found(tmp_path: Path) -> None:
    path = tmp_path / "budget.db"
    with open_ledger(f"sqlite:///{path}") as ledger:
        _fill(ledger)
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("PRAGMA writable_schema = ON")
        connection.execute(
            "UPDATE sqlite_master SET sql = replace(sql, 'kind = ''answer''', 'kind = ''spend''') "
            "WHERE name = 'answers_by_key'"
        )
    assert "pages or indexes disagree" in _damage(f"sqlite:///{path}").problem


def _places(content: bytes, text: bytes) -> list[int]:
    places, start = [], content.find(text)
    while start >= 0:
        places.append(start)
        start = content.find(text, start + 1)
    return places


def _load(execute: Execute, number: int, dataset: str = "hospital") -> dict[str, Any]:
    row = execute(f"SELECT {', '.join(COLUMNS)} FROM entries WHERE dataset = ? AND number = ?", (dataset, number))
    return dict(zip(COLUMNS, row.fetchone(), strict=True))


def _insert(execute: Execute, values: dict[str, Any]) -> None:
    record = Record(**values).sealed()
    execute(f"INSERT INTO entries ({', '.join(COLUMNS)}) VALUES ({', '.join('?' * len(COLUMNS))})", record.row())


def _store(execute: Execute, number: int, values: dict[str, Any]) -> str:
    record = Record(**values).sealed()
    execute("DELETE FROM entries WHERE dataset = ? AND number = ?", (record.dataset, number))
    _insert(execute, values)
    return record.digest


def _reseal_last_as(execute: Execute, *, kind: str, details: object, state: str | None = None) -> None:
    values = {**_load(execute, LAST), "kind": kind, "details": chain_text(details)}
    digest = _store(execute, LAST, {**values, "state": state or values["state"]})
    execute("UPDATE accounts SET head = ? WHERE dataset = 'hospital'", (digest,))


def test_a_ledger_without_its_triggers_is_found(url: str) -> None:
    with open_ledger(url) as ledger:
        ledger.verify()
        _drop_a_trigger(url)
        with pytest.raises(LedgerDamagedError, match="triggers"):
            ledger.verify()


def _drop_a_trigger(url: str) -> None:
    if url.startswith("sqlite"):
        with closing(sqlite3.connect(url.removeprefix("sqlite:///"), isolation_level=None)) as connection:
            connection.execute("DROP TRIGGER entries_stay")
    else:
        import psycopg

        with psycopg.connect(url, autocommit=True) as server:
            server.execute("ALTER TABLE cloister_ledger.entries DISABLE TRIGGER entries_stay")


def _verify_with_triggers(url: str, execute: Execute) -> None:
    if url.startswith("sqlite"):
        for kind, _, statement in original_layout(ALONE):
            if kind == "trigger":
                execute(statement)
    else:
        for table in ("entries", "accounts"):
            execute(f"ALTER TABLE {table} ENABLE TRIGGER ALL")
    with open_ledger(url) as ledger:
        ledger.verify()
