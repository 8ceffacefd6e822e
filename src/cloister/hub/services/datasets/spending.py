"""What was spent of a dataset's budget, for its owner: every charge, and how the budget burns down."""

from __future__ import annotations

from typing import Any

from sqlalchemy.orm import Session

from cloister.accounting.ledger import Entry
from cloister.hub.store.database import Store

_SHOWN = frozenset({"open", "spend", "raise", "limit"})


def spending(store: Store, session: Session, dataset_id: str) -> dict[str, Any]:
    """Return the account of a dataset with its entries; stored answers are not told."""
    ledger = store.ledger(session)
    account = ledger.account(dataset_id)
    return {
        "schema": "cloister.dataset-ledger/1",
        "budget": account.budget.to_dict(),
        "spent": account.spent.to_dict(),
        "share": float(account.spent.amount / account.budget.amount) if account.budget.amount else 1.0,
        "unit": account.unit,
        "adjacency": str(account.adjacency),
        "head": account.head,
        "items": [_described(entry) for entry in ledger.entries(dataset_id) if str(entry.kind) in _SHOWN],
        "next": None,
    }


def _described(entry: Entry) -> dict[str, Any]:
    return {
        "number": entry.number,
        "kind": str(entry.kind),
        "time": entry.time,
        "analyst": entry.analyst,
        "purpose": entry.details.get("purpose", ""),
        "cost": entry.details.get("cost"),
        "budget": entry.details.get("budget"),
        "spent": entry.spent.to_dict(),
    }
