"""What a ledger gives out: accounts, entries, receipts and stored answers, all frozen."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from cloister.accounting.budget import Budget
from cloister.accounting.events import Event, event_from_dict
from cloister.core.guarantees import Adjacency


class EntryKind(StrEnum):
    """What an entry records."""

    OPEN = "open"
    RAISE = "raise"
    LIMIT = "limit"
    SPEND = "spend"
    ANSWER = "answer"


@dataclass(frozen=True, slots=True, kw_only=True)
class Account:
    """One dataset in the ledger: its budget, what was spent, and the head of its chain."""

    dataset: str
    budget: Budget
    spent: Budget
    unit: str
    adjacency: Adjacency
    entries: int
    updated: str
    head: str

    @property
    def remaining(self) -> Budget:
        """Return what is left for everybody together."""
        return self.budget - self.spent

    def __str__(self) -> str:
        return f"{self.dataset}: {self.spent} spent of {self.budget} per {self.unit}"

    def to_dict(self) -> dict[str, Any]:
        """Return JSON-ready values; rationals are text."""
        return {
            "schema": "cloister.ledger.account/1",
            "dataset": self.dataset,
            "budget": self.budget.to_dict(),
            "spent": self.spent.to_dict(),
            "remaining": self.remaining.to_dict(),
            "unit": self.unit,
            "adjacency": str(self.adjacency),
            "entries": self.entries,
            "updated": self.updated,
            "head": self.head,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Receipt:
    """Proof that a spend is durably recorded; ``cost`` is what was charged."""

    dataset: str
    number: int
    time: str
    cost: Budget
    analyst: str | None
    key: str | None
    digest: str

    def to_dict(self) -> dict[str, Any]:
        """Return JSON-ready values; rationals are text."""
        return {
            "schema": "cloister.ledger.receipt/1",
            "dataset": self.dataset,
            "number": self.number,
            "time": self.time,
            "cost": self.cost.to_dict(),
            "analyst": self.analyst,
            "key": self.key,
            "digest": self.digest,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One row of a chain: what happened, and the running total after it."""

    dataset: str
    number: int
    kind: EntryKind
    time: str
    analyst: str | None
    details: dict[str, Any]
    spent: Budget
    previous: str
    digest: str

    @property
    def cost(self) -> Budget | None:
        """Return what a spend was charged; None for other kinds."""
        return Budget.from_dict(self.details["cost"]) if self.kind is EntryKind.SPEND else None

    @property
    def budget(self) -> Budget | None:
        """Return the budget that was opened, raised to or set as an analyst's limit; None for other kinds."""
        values = self.details.get("budget")
        return None if values is None else Budget.from_dict(values)

    @property
    def event(self) -> Event | None:
        """Return what ran, if the spend said so."""
        values = self.details.get("event")
        return None if values is None else event_from_dict(values)

    @property
    def purpose(self) -> str:
        """Return what a spend was for, possibly empty."""
        return str(self.details.get("purpose", ""))

    def to_dict(self) -> dict[str, Any]:
        """Return JSON-ready values; rationals are text."""
        return {
            "schema": "cloister.ledger.entry/1",
            "dataset": self.dataset,
            "number": self.number,
            "kind": str(self.kind),
            "time": self.time,
            "analyst": self.analyst,
            "details": self.details,
            "spent": self.spent.to_dict(),
            "previous": self.previous,
            "digest": self.digest,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredAnswer:
    """An answer that was paid for before; giving it out again is free, being post-processing."""

    dataset: str
    key: str
    answer: Any  # any JSON value
    cost: Budget
    spend: int
    time: str
