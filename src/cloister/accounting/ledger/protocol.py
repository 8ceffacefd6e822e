"""The seam between releases and budgets: what every ledger can do.

What a ledger gives out, accounts, entries, receipts and stored answers, is frozen. `open_ledger` opens one by its URL.

Spend, then look: `Ledger.spend` checks and debits in one transaction and returns its receipt only after a durable
commit. The debit *is* the reservation: whatever fails afterwards, it stays spent. Whether a spend is refused depends on
the ledger and its limits alone, never on data.

The sum over all analysts never passes the dataset's budget. Limits of single analysts are policy below that sum;
analysts may share what they learn, so the dataset's sum is the one that protects people. A spend without an analyst is
the owner's and is bound by the sum alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any, Protocol, Self, runtime_checkable

from cloister.accounting.budget import Budget
from cloister.accounting.events import Event, event_from_dict
from cloister.core.guarantees import Adjacency, DifferentialPrivacy
from cloister.errors import ParameterError, ParameterTypeError, did_you_mean


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


@runtime_checkable
class Ledger(Protocol):
    """Budgets of datasets, and everything that was spent of them."""

    def open_account(
        self, dataset: str, *, budget: Budget, unit: str = "row", adjacency: Adjacency | str = Adjacency.ADD_REMOVE
    ) -> Account:
        """Return the account of a dataset, opening it if it is new.

        Raises:
            AccountMismatchError: if it exists with another budget, unit or neighbor relation, or under another
                spelling of the same name.
        """
        ...

    def account(self, dataset: str) -> Account:
        """Return the account of a dataset, or raise `UnknownAccountError`."""
        ...

    def accounts(self) -> tuple[Account, ...]:
        """Return all accounts, ordered by dataset."""
        ...

    def spend(
        self,
        dataset: str,
        *,
        cost: Budget | None = None,
        guarantee: DifferentialPrivacy | None = None,
        event: Event | None = None,
        analyst: str | None = None,
        purpose: str = "",
        key: str | None = None,
    ) -> Receipt:
        """Debit a cost, or what a guarantee costs, durably, or raise and debit nothing.

        Args:
            dataset: the account.
            cost: what the release takes, in the measure of the account's budget.
            guarantee: in place of a cost, what the release promises, under the account's relation and unit.
            event: what will run, for accountants; the cost must be at least what it takes.
            analyst: who asks; a limit set for them applies as well.
            purpose: a sentence for the owner.
            key: the canonical text of the query, if its answer will be stored for repeats.

        Raises:
            BudgetExceededError: if the dataset, or the analyst's limit, has less left.
            AccountMismatchError: if the guarantee is for another relation or unit, or the analyst's name is only
                another spelling of one that the account knows.
            AccountingError: if the guarantee does not hold, or the event takes more than the cost, or nobody knows
                what the event takes.
        """
        ...

    def remaining(self, dataset: str, *, analyst: str | None = None) -> Budget:
        """Return what is left of a dataset's budget, for everybody or for one analyst."""
        ...

    def spent(self, dataset: str, *, analyst: str | None = None) -> Budget:
        """Return what was spent, by everybody or by one analyst."""
        ...

    def limit_analyst(self, dataset: str, *, analyst: str, budget: Budget) -> None:
        """Set how much one analyst may spend of a dataset's budget, past spends included."""
        ...

    def raise_budget(self, dataset: str, *, budget: Budget) -> Account:
        """Raise the budget of a dataset; the owner's decision is recorded like any other entry."""
        ...

    def find_answer(self, dataset: str, *, key: str, cost: Budget) -> StoredAnswer | None:
        """Return the best stored answer to a query that was paid at least this much, free for everybody."""
        ...

    def store_answer(self, receipt: Receipt, *, answer: Any) -> None:  # any JSON value
        """Keep the private answer that a receipt with a key paid for, so that repeats are free."""
        ...

    def entries(self, dataset: str) -> tuple[Entry, ...]:
        """Return all entries of a dataset, in order."""
        ...

    def head(self, dataset: str) -> str:
        """Return the digest of the last entry, to be noted outside the ledger."""
        ...

    def verify(self, *, heads: Mapping[str, str] | None = None) -> None:
        """Recompute every chain; ``heads`` are digests noted earlier, which must still be part of their chains.

        Raises:
            LedgerDamagedError: naming the dataset and the number of the first entry that is wrong.
        """
        ...

    def close(self) -> None:
        """Close all connections; nothing is lost."""
        ...

    def __enter__(self) -> Self: ...

    def __exit__(self, *exception: object) -> None: ...


_SCHEMES = ("memory:", "sqlite:", "postgresql:", "postgres:")
_EXAMPLES = '"sqlite:///budget.db", "postgresql://user@host/database" or "memory:"'


def open_ledger(url: str, *, create: bool = True) -> Ledger:
    """Return the ledger at a URL.

    Args:
        url: ``sqlite:///relative.db``, ``sqlite:////absolute.db``, ``postgresql://user@host/database``, or ``memory:``
            for one that ends with this process.
        create: whether to make a ledger where there is none. One that exists is never overwritten.

    >>> open_ledger("memory:").accounts()
    ()
    """
    from cloister.accounting.ledger._sql_ledger import SqlLedger
    from cloister.accounting.ledger._sqlite import MemoryDatabase, SqliteDatabase

    if not isinstance(url, str):
        raise ParameterTypeError("The address of a ledger is not text.", fix=f"write {_EXAMPLES}.")
    scheme, colon, rest = url.partition(":")
    match scheme.lower() + colon:
        case "memory:" if not rest:
            return SqlLedger(MemoryDatabase())
        case "sqlite:":
            return SqlLedger(SqliteDatabase(_path(rest), create=create))
        case "postgresql:" | "postgres:" if rest.startswith("//"):
            from cloister.accounting.ledger._postgres import PostgresDatabase

            return SqlLedger(PostgresDatabase(url, create=create))
    raise ParameterError(
        f"A ledger's address does not start like this.{did_you_mean(scheme.lower() + ':', _SCHEMES)}",
        fix=f"write {_EXAMPLES}.",
    )


def _path(rest: str) -> Path:
    name = rest.removeprefix("///")
    if not rest.startswith("///") or not name or name == ":memory:":
        raise ParameterError(
            "The address of an SQLite ledger needs three slashes and a file name, four slashes for an absolute path.",
            fix='write "sqlite:///budget.db" or "sqlite:////var/lib/budget.db"; "memory:" for one without a file.',
        )
    # An option such as mode=memory would open something else than the file that is named.
    if "?" in name or "\0" in name:
        raise ParameterError("The address of an SQLite ledger takes no options.", fix='leave out what follows the "?".')
    return Path(name)
