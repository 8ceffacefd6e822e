"""Ledgers in memory that hold what a run may spend, and nothing else."""

from __future__ import annotations

from fractions import Fraction

from cloister.accounting.budget import Budget
from cloister.accounting.ledger import Account, Ledger, open_ledger
from cloister.core.guarantees import Adjacency
from cloister.errors import UnknownAccountError
from cloister.hub.store.models import Dataset

__all__ = ["account_of", "ledger_with"]


def account_of(ledger: Ledger, dataset_id: str) -> Account | None:
    """Return the account of a dataset, or None where its owner has set no budget."""
    try:
        return ledger.account(dataset_id)
    except UnknownAccountError:
        return None


def ledger_with(amount: Budget | None, *, dataset: Dataset, account: Account | None) -> Ledger:
    """Return a ledger in memory in which so much of a dataset's budget is left; None leaves nothing.

    Args:
        amount: what is left, in the measure of the account.
        dataset: whose budget it is.
        account: as the real ledger has it; None where there is none.
    """
    ledger = open_ledger("memory:")
    budget = Budget(epsilon=Fraction(1)) if account is None else account.budget
    offered = None if amount is None or not (amount.amount or amount.delta) else amount
    ledger.open_account(
        dataset.id,
        budget=offered or budget,
        unit=str(dataset.facts.get("unit", "row")) if account is None else account.unit,
        adjacency=Adjacency(dataset.facts.get("adjacency", "add_remove")) if account is None else account.adjacency,
    )
    if offered is None:
        ledger.spend(dataset.id, cost=budget, purpose="nothing is left")
    return ledger
