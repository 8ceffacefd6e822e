"""Paying before anybody looks at the rows."""

from __future__ import annotations

from typing import Any

from cloister.accounting.events import Event
from cloister.accounting.ledger import Ledger, open_ledger
from cloister.core.guarantees import DifferentialPrivacy
from cloister.errors import ParameterError, ParameterTypeError

__all__ = ["pay"]


def pay(
    guarantee: DifferentialPrivacy,
    event: Event,
    *,
    ledger: Any,  # a ledger, its address, or None
    dataset: str | None,
    analyst: str | None,
    purpose: str,
) -> None:
    """Charge a ledger, or raise and charge nothing; without a ledger, do nothing.

    A seed breaks the promise but not the price: it is charged all the same.
    """
    if ledger is None:
        if dataset is not None:
            raise ParameterError(
                "There is a dataset, but no ledger.", fix='give ledger="sqlite:///budget.db", or neither.'
            )
        return
    if dataset is None:
        raise ParameterError(
            "The ledger does not know which dataset this is.", fix='name its account: dataset="hospital-2026".'
        )
    spent: dict[str, Any] = {"guarantee": guarantee, "event": event, "analyst": analyst, "purpose": purpose}
    if isinstance(ledger, str):
        with open_ledger(ledger, create=False) as opened:
            opened.spend(str(dataset), **spent)
    elif isinstance(ledger, Ledger):
        ledger.spend(str(dataset), **spent)
    else:
        raise ParameterTypeError("ledger is not a ledger or its address.", fix='write ledger="sqlite:///budget.db".')
