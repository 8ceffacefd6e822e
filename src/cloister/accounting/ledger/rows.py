"""The statements of the ledger, the same for every database."""

from __future__ import annotations

from collections.abc import Iterator

from cloister.accounting.ledger.chain import COLUMNS, Record, damaged
from cloister.accounting.ledger.database import Session
from cloister.errors import UnknownAccountError, did_you_mean

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


def datasets(session: Session) -> list[str]:
    """Return the datasets that have an account, in order."""
    return sorted(str(name) for (name,) in session.rows("SELECT dataset FROM cloister_ledger.accounts"))


def datasets_with_entries(session: Session) -> list[str]:
    """Return the datasets that have an entry, in order."""
    return sorted(str(name) for (name,) in session.rows("SELECT DISTINCT dataset FROM cloister_ledger.entries"))


def position(session: Session, dataset: str, *, lock: bool = False) -> tuple[int, str] | None:
    """Return the number and digest of an account's last entry; ``lock`` keeps other writers waiting."""
    rows = session.rows(_ACCOUNT + " FOR UPDATE" if lock else _ACCOUNT, dataset)
    return (rows[0][0], rows[0][1]) if rows else None


def last(session: Session, dataset: str, *, lock: bool = False) -> Record | None:
    """Return the last entry of an account, checked against the account, or None if there is no account."""
    found = position(session, dataset, lock=lock)
    if found is None:
        return None
    number, head = found
    record = one(session, dataset, number)
    if record is None:
        raise damaged(dataset, number, "is missing")
    if record.digest != head:
        raise damaged(dataset, number, "is not the head that the account names")
    return record


def last_known(session: Session, dataset: str, *, lock: bool = False) -> Record:
    """Return the last entry of an account, or raise `UnknownAccountError`."""
    record = last(session, dataset, lock=lock)
    if record is None:
        raise UnknownAccountError(
            f'The ledger has no account for dataset "{dataset}".{did_you_mean(dataset, datasets(session))}',
            fix="open it first: ledger.open_account(dataset, budget=Budget(epsilon=1))",
        )
    return record


def one(session: Session, dataset: str, number: int) -> Record | None:
    """Return one entry, checked, or None."""
    rows = session.rows(_ONE, dataset, number)
    return _record(rows[0]).check() if rows else None


def last_of_analyst(session: Session, dataset: str, analyst: str) -> Record | None:
    """Return the last entry that concerns an analyst, checked, or None."""
    rows = session.rows(_OF_ANALYST, dataset, analyst)
    return _record(rows[0]).check() if rows else None


def analysts(session: Session, dataset: str) -> list[str]:
    """Return the analysts that have an entry in an account, in order."""
    return sorted(str(name) for (name,) in session.rows(_ANALYSTS, dataset))


def answers(session: Session, dataset: str, query_key: str, *, after: int = 0) -> list[Record]:
    """Return the stored answers to a query, checked; only those entered after a number."""
    return [_record(row).check() for row in session.rows(_ANSWERS, dataset, query_key, after)]


def all_unchecked(session: Session, dataset: str) -> Iterator[Record]:
    """Return the entries of a dataset in order, a page at a time."""
    number = -(2**63)
    while page := session.rows(_PAGE, dataset, number):
        records = [_record(row) for row in page]
        yield from records
        number = records[-1].number


def append(session: Session, record: Record) -> None:
    """Write an entry and move the account's head."""
    session.rows(_INSERT, *record.row())
    if record.number == 1:
        session.rows(_OPEN, record.dataset, record.number, record.digest)
    else:
        session.rows(_ADVANCE, record.number, record.digest, record.dataset)


def _record(row: tuple[object, ...]) -> Record:
    return Record(**dict(zip(COLUMNS, row, strict=True)))  # type: ignore[arg-type]  # `Record.check` checks types
