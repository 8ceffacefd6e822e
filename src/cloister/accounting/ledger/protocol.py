"""The seam between releases and budgets: what every ledger can do.

Spend, then look: `Ledger.spend` checks and debits in one transaction and returns its receipt only after a durable
commit. The debit *is* the reservation: whatever fails afterwards, it stays spent. Whether a spend is refused depends on
the ledger and its limits alone, never on data.

The sum over all analysts never passes the dataset's budget. Limits of single analysts are policy below that sum;
analysts may share what they learn, so the dataset's sum is the one that protects people. A spend without an analyst is
the owner's and is bound by the sum alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol, Self, runtime_checkable

from cloister.accounting.budget import Budget
from cloister.accounting.events import Event
from cloister.accounting.ledger.values import Account, Entry, Receipt, StoredAnswer
from cloister.core.guarantees import Adjacency, DifferentialPrivacy


@runtime_checkable
class Ledger(Protocol):
    """Budgets of datasets, and everything that was spent of them."""

    def open_account(
        self, dataset: str, *, budget: Budget, unit: str = "row", adjacency: Adjacency = Adjacency.ADD_REMOVE
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
