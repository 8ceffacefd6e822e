"""The chain of a dataset: entries as they are stored, and the replay that verifies them by the account's own rules.

Each entry is sealed with SHA-256 over itself and the digest of the entry before it. Verification replays a chain from
its first entry and compares every number and digest on the way.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, fields
from typing import Any

from cloister.accounting.ledger.account_state import AccountState, Share, transition
from cloister.accounting.ledger.protocol import Account, Entry, EntryKind
from cloister.core.digests import GENESIS, chain_digest, chain_text
from cloister.errors import AccountingError, LedgerDamagedError, ParameterError

__all__ = ["COLUMNS", "FORMAT", "GENESIS", "Record", "chain_text", "damage_error", "explain_damage", "state_text"]


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
        return chain_digest([FORMAT, *hashed])

    def row(self) -> tuple[Any, ...]:
        """Return the values in the order of the columns."""
        return tuple(self._values().values())

    def check(self) -> Record:
        """Return the record, or raise if it is not what was sealed."""
        if not self._has_types() or self.digest != self.computed_digest():
            raise damage_error(self.dataset, self.number, "was changed after it was written")
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
        with explain_damage(self.dataset, self.number):
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

    def read_state(self) -> AccountState:
        """Return the account's numbers after this entry."""
        with explain_damage(self.dataset, self.number):
            return AccountState.from_dict(json.loads(self.state)["account"])

    def read_share(self) -> Share:
        """Return the analyst's numbers after this entry."""
        with explain_damage(self.dataset, self.number):
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


def state_text(state: AccountState, share: Share | None) -> str:
    """Return the text of an account's numbers, and of one analyst's, after an entry."""
    return chain_text({"account": state.to_dict(), "share": None if share is None else share.to_dict()})


def damage_error(dataset: object, number: object, what: str) -> LedgerDamagedError:
    """Return the error for a broken entry."""
    known = number if isinstance(number, int) else None
    return LedgerDamagedError(
        f'The ledger is damaged: entry {number} of dataset "{dataset}" {what}.',
        dataset=str(dataset),
        entry=known,
    )


@contextmanager
def explain_damage(dataset: str, number: int) -> Iterator[None]:
    """Turn the failure to understand an entry into one clear error."""
    try:
        yield
    except (ValueError, KeyError, TypeError, AttributeError, ParameterError) as error:
        raise damage_error(dataset, number, "cannot be understood") from error


@dataclass(slots=True)
class Replay:
    """The chain of one dataset so far."""

    dataset: str
    noted_head: str = GENESIS
    number: int = 0
    head: str = GENESIS
    state: AccountState | None = None
    shares: dict[str, Share] = field(default_factory=dict)
    unanswered: dict[int, tuple[str, Any]] = field(default_factory=dict)
    noted_head_seen: bool = False

    def __post_init__(self) -> None:
        self.noted_head_seen = self.noted_head == GENESIS

    def step(self, record: Record) -> None:
        """Take the next entry, or raise `LedgerDamagedError` naming it."""
        expected = self.number + 1
        if record.number != expected:
            raise damage_error(self.dataset, expected, "is missing")
        record.check()
        if record.previous != self.head:
            raise damage_error(self.dataset, expected, "does not follow the entry before it")
        with explain_damage(self.dataset, expected):
            try:
                self._apply(record)
            # The rules that a spend had to pass are applied again: an entry that breaks them was not written by a
            # ledger.
            except AccountingError as error:
                raise damage_error(self.dataset, expected, "spends more than was left") from error
        self.number, self.head = expected, record.digest
        self.noted_head_seen |= self.head == self.noted_head

    def finish(self, *, entries: int, head: str) -> None:
        """Compare the end of the chain with what the account says, or raise `LedgerDamagedError`."""
        if self.number < entries or self.number == 0:
            raise damage_error(self.dataset, self.number + 1, "is missing")
        if self.number > entries:
            raise damage_error(self.dataset, entries + 1, "is not accounted for")
        if self.head != head:
            raise damage_error(self.dataset, self.number, "is not the head that the account names")
        if not self.noted_head_seen:
            raise damage_error(self.dataset, self.number, "is the last, but the head noted earlier is not in the chain")

    def _apply(self, record: Record) -> None:
        kind, details = EntryKind(record.kind), json.loads(record.details)
        share = None if record.analyst is None else self.shares.get(record.analyst)
        self.state, share = transition(kind, details, state=self.state, share=share, analyst=record.analyst)
        if record.state != state_text(self.state, share):
            raise damage_error(self.dataset, record.number, "has running totals that do not add up")
        if record.analyst is not None and share is not None:
            self.shares[record.analyst] = share
        if kind is EntryKind.SPEND and record.query_key is not None:
            self.unanswered[record.number] = (record.query_key, details["cost"])
        # A spend pays for one answer: once it is taken out, a second one finds nothing.
        if kind is EntryKind.ANSWER and self.unanswered.pop(details["spend"], None) != (
            record.query_key,
            details["cost"],
        ):
            raise damage_error(self.dataset, record.number, "answers a question that was not paid for")
