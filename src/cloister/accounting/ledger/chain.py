"""Entries as they are stored, each sealed with SHA-256 over itself and the digest of the entry before it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, fields
from typing import Any

from cloister.accounting.ledger.state import Share, State
from cloister.accounting.ledger.values import Account, Entry, EntryKind
from cloister.core.chain import GENESIS, canonical, digest
from cloister.errors import LedgerDamagedError, ParameterError

__all__ = ["COLUMNS", "FORMAT", "GENESIS", "Record", "canonical", "damaged", "reading", "state_text"]

FORMAT = "cloister.ledger/1"


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """One stored row. ``details`` and ``state`` are canonical JSON text."""

    dataset: str
    number: int
    kind: str
    time: str
    analyst: str | None
    query_key: str | None
    details: str
    state: str
    previous: str
    digest: str = ""

    def sealed(self) -> Record:
        """Return the record with its digest."""
        return Record(**{**self._values(), "digest": self.computed_digest()})

    def computed_digest(self) -> str:
        """Return SHA-256 over everything but the digest."""
        hashed = [value for name, value in self._values().items() if name != "digest"]
        return digest([FORMAT, *hashed])

    def row(self) -> tuple[Any, ...]:
        """Return the values in the order of the columns."""
        return tuple(self._values().values())

    def check(self) -> Record:
        """Return the record, or raise if it is not what was sealed."""
        if not self._has_types() or self.digest != self.computed_digest():
            raise damaged(self.dataset, self.number, "was changed after it was written")
        return self

    def account(self) -> Account:
        """Return the account as it stood after this entry."""
        state = self.read_state()
        return Account(
            dataset=self.dataset,
            budget=state.budget,
            spent=state.spent,
            unit=state.unit,
            adjacency=state.adjacency,
            entries=self.number,
            updated=self.time,
            head=self.digest,
        )

    def entry(self) -> Entry:
        """Return the entry that callers see."""
        with reading(self.dataset, self.number):
            return Entry(
                dataset=self.dataset,
                number=self.number,
                kind=EntryKind(self.kind),
                time=self.time,
                analyst=self.analyst,
                details=json.loads(self.details),
                spent=self.read_state().spent,
                previous=self.previous,
                digest=self.digest,
            )

    def read_state(self) -> State:
        """Return the account's numbers after this entry."""
        with reading(self.dataset, self.number):
            return State.from_dict(json.loads(self.state)["account"])

    def read_share(self) -> Share:
        """Return the analyst's numbers after this entry."""
        with reading(self.dataset, self.number):
            return Share.from_dict(json.loads(self.state)["share"])

    def _values(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in COLUMNS}

    def _has_types(self) -> bool:
        texts = (self.dataset, self.kind, self.time, self.details, self.state, self.previous, self.digest)
        optional = (self.analyst, self.query_key)
        return (
            type(self.number) is int
            and all(isinstance(text, str) for text in texts)
            and all(text is None or isinstance(text, str) for text in optional)
        )


COLUMNS = tuple(item.name for item in fields(Record))


def state_text(state: State, share: Share | None) -> str:
    """Return the text of an account's numbers, and of one analyst's, after an entry."""
    return canonical({"account": state.to_dict(), "share": None if share is None else share.to_dict()})


def damaged(dataset: object, number: object, what: str) -> LedgerDamagedError:
    """Return the error for a broken entry."""
    known = number if isinstance(number, int) else None
    return LedgerDamagedError(
        f'The ledger is damaged: entry {number} of dataset "{dataset}" {what}.',
        dataset=str(dataset),
        entry=known,
    )


@contextmanager
def reading(dataset: str, number: int) -> Iterator[None]:
    """Turn the failure to understand an entry into one clear error."""
    try:
        yield
    except (ValueError, KeyError, TypeError, AttributeError, ParameterError) as error:
        raise damaged(dataset, number, "cannot be understood") from error
