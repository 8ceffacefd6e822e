"""Verification: replay a chain from its first entry and compare every number and digest on the way."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

from cloister.accounting.ledger.chain import GENESIS, Record, damaged, reading, state_text
from cloister.accounting.ledger.state import Share, State, transition
from cloister.accounting.ledger.values import EntryKind
from cloister.errors import AccountingError


@dataclass(slots=True)
class Replay:
    """The chain of one dataset so far."""

    dataset: str
    noted_head: str = GENESIS
    number: int = 0
    head: str = GENESIS
    state: State | None = None
    shares: dict[str, Share] = field(default_factory=dict)
    unanswered: dict[int, tuple[str, Any]] = field(default_factory=dict)
    noted_head_seen: bool = False

    def __post_init__(self) -> None:
        self.noted_head_seen = self.noted_head == GENESIS

    def step(self, record: Record) -> None:
        """Take the next entry, or raise `LedgerDamagedError` naming it."""
        expected = self.number + 1
        if record.number != expected:
            raise damaged(self.dataset, expected, "is missing")
        record.check()
        if record.previous != self.head:
            raise damaged(self.dataset, expected, "does not follow the entry before it")
        with reading(self.dataset, expected):
            try:
                self._apply(record)
            except AccountingError as error:
                raise damaged(self.dataset, expected, "spends more than was left") from error
        self.number, self.head = expected, record.digest
        self.noted_head_seen |= self.head == self.noted_head

    def finish(self, *, entries: int, head: str) -> None:
        """Compare the end of the chain with what the account says, or raise `LedgerDamagedError`."""
        if self.number < entries or self.number == 0:
            raise damaged(self.dataset, self.number + 1, "is missing")
        if self.number > entries:
            raise damaged(self.dataset, entries + 1, "is not accounted for")
        if self.head != head:
            raise damaged(self.dataset, self.number, "is not the head that the account names")
        if not self.noted_head_seen:
            raise damaged(self.dataset, self.number, "is the last, but the head noted earlier is not in the chain")

    def _apply(self, record: Record) -> None:
        kind, details = EntryKind(record.kind), json.loads(record.details)
        share = None if record.analyst is None else self.shares.get(record.analyst)
        self.state, share = transition(kind, details, state=self.state, share=share, analyst=record.analyst)
        if record.state != state_text(self.state, share):
            raise damaged(self.dataset, record.number, "has running totals that do not add up")
        if record.analyst is not None and share is not None:
            self.shares[record.analyst] = share
        if kind is EntryKind.SPEND and record.query_key is not None:
            self.unanswered[record.number] = (record.query_key, details["cost"])
        if kind is EntryKind.ANSWER and self.unanswered.pop(details["spend"], None) != (
            record.query_key,
            details["cost"],
        ):
            raise damaged(self.dataset, record.number, "answers a question that was not paid for")
