"""Paying for answers: one account in the ledger, charged before the data is read, and repeats for nothing.

An answer that was paid for is stored in the ledger. Whoever asks the same question again, at the same price or a lower
one, gets the stored answer, which is post-processing and costs nothing. A fresh answer draws fresh noise and costs
again: answers could otherwise be averaged.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from cloister.accounting.budget import Budget
from cloister.accounting.events import Event
from cloister.accounting.failures import finish
from cloister.accounting.ledger import Ledger
from cloister.core.guarantees import DifferentialPrivacy
from cloister.core.random import RandomSource
from cloister.errors import BudgetExceededError, ParameterError
from cloister.queries.price import Price
from cloister.queries.question import Rows

__all__ = ["Paid", "Session"]

_LONGEST_PURPOSE = 500


@dataclass(frozen=True, slots=True)
class Paid:
    """An answer as stored, what it cost now, and the price at which it was made."""

    payload: Any  # any JSON value
    cost: Budget
    price: Price


class Session:
    """One analyst's way to one account."""

    def __init__(
        self, ledger: Ledger, dataset: str, *, analyst: str | None = None, policy: Iterator[Budget] | None = None
    ) -> None:
        self.ledger, self.dataset, self.analyst = ledger, dataset, analyst
        self._policy = policy
        self._share: Budget | None = None

    @property
    def remaining(self) -> Budget:
        """Return what is left, for this analyst."""
        return self.ledger.remaining(self.dataset, analyst=self.analyst)

    def price(self, *, epsilon: object, rho: object, delta: object) -> Price:
        """Return the offer, or the next share of the policy where none is made."""
        if epsilon is not None or rho is not None:
            return Price.of(epsilon=epsilon, rho=rho, delta=0 if delta is None else delta)
        if self._policy is None:
            raise ParameterError("The answer has no price.", fix="say how much it may cost, for example epsilon=0.1.")
        if self._share is None:
            self._share = next(self._policy, None)
        if self._share is None:
            raise BudgetExceededError(
                requested=self.remaining.amount,
                remaining=self.remaining.spent_nothing().amount,
                measure=self.remaining.measure,
                whose=" of the plan",
                fix="name a price, such as epsilon=0.1, or plan more queries.",
            )
        return Price.of_budget(self._share)

    def release(
        self,
        *,
        key: str,
        purpose: str,
        guarantee: DifferentialPrivacy,
        price: Price,
        event: Event,
        source: RandomSource,
        fresh: bool,
        run: Callable[[Rows], Any],
        rows: Rows,
    ) -> Paid:
        """Return a stored answer, or charge the account, run on the rows, and store what it gives."""
        name = _digest(key)
        budget = self.ledger.account(self.dataset).budget
        cost = budget.cost_of(guarantee)
        stored = None if fresh or not source.is_secure else self.ledger.find_answer(self.dataset, key=name, cost=cost)
        if stored is not None:
            return Paid(stored.answer["payload"], budget.spent_nothing(), Price.from_dict(stored.answer["price"]))
        receipt = self.ledger.spend(
            self.dataset,
            guarantee=guarantee,
            event=event,
            analyst=self.analyst,
            purpose=purpose[:_LONGEST_PURPOSE],
            key=name,
        )
        self._share = None
        payload = finish(lambda: run(rows), nothing=lambda: run(rows.nobody()))
        if source.is_secure:
            self.ledger.store_answer(receipt, answer={"price": price.to_dict(), "payload": payload})
        return Paid(payload, receipt.cost, price)


def _digest(key: str) -> str:
    return f"cloister.query/1 {hashlib.sha256(key.encode('utf-8', 'surrogatepass')).hexdigest()}"
