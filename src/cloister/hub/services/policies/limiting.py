"""The limit of a person in the ledger, beside the one in the policy: both hold, and both count past spends."""

from __future__ import annotations

from sqlalchemy.orm import Session

from cloister.accounting.budget import Budget
from cloister.errors import ConflictError
from cloister.hub.services.running.reserving import account_of
from cloister.hub.store.database import Store
from cloister.hub.store.models import Dataset, User

__all__ = ["check_budget", "limit_person"]


def check_budget(store: Store, session: Session, dataset: Dataset, budget: Budget | None) -> None:
    """Raise where a person's budget is in another measure than the dataset's, or there is nothing to limit."""
    account = account_of(store.ledger(session), dataset.id)
    if account is None:
        raise ConflictError("The dataset has no budget yet.", fix="open it for questions first.")
    if budget is not None and budget.measure != account.budget.measure:
        raise ConflictError(
            f"The dataset's budget is in {account.budget.measure}, not in {budget.measure}.",
            fix="leave the budget out, and limit the person in the ledger instead.",
        )


def limit_person(store: Store, session: Session, dataset: Dataset, user_id: str, budget: Budget | None) -> None:
    """Set what a person may spend of a dataset in all; None leaves the ledger as it is."""
    user = session.get(User, user_id)
    if budget is None or user is None:
        return
    ledger = store.ledger(session)
    if account_of(ledger, dataset.id) is not None:
        ledger.limit_analyst(dataset.id, analyst=user.name, budget=budget)
