"""Paying for answers: an offer of epsilon, epsilon with delta, or rho, charged to one account before the data is read.

An answer that was paid for is stored in the ledger. Whoever asks the same question again, at the same price or a
lower one, gets the stored answer, which is post-processing and costs nothing. A fresh answer draws fresh noise and
costs again: answers could otherwise be averaged.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from cloister.accounting.budget import Budget
from cloister.accounting.events import Event
from cloister.accounting.ledger import Ledger
from cloister.accounting.payment import finish
from cloister.core import validation
from cloister.core.exact import Number
from cloister.core.guarantees import DifferentialPrivacy
from cloister.core.random import RandomSource
from cloister.errors import BudgetExceededError, ParameterError
from cloister.queries._question import QueryRows

__all__ = ["AnalystSession", "Paid", "check_price"]


def check_price(*, epsilon: Number | None = None, rho: Number | None = None, delta: Number = 0) -> Budget:
    """Return a checked offer: epsilon or rho, above zero, and delta."""
    if (epsilon is None) == (rho is None):
        raise ParameterError(
            "An answer is paid in epsilon or in rho, one of them.",
            fix="write epsilon=0.1, or epsilon=0.1 with delta=1e-6, or rho=0.01.",
        )
    slack = validation.check_delta(delta)
    if epsilon is not None:
        return Budget(epsilon=validation.check_epsilon(epsilon), delta=slack)
    return Budget(rho=validation.check_positive(rho, name="rho"), delta=slack)


_LONGEST_PURPOSE = 500


@dataclass(frozen=True, slots=True)
class Paid:
    """An answer as stored, what it cost now, and the price at which it was made."""

    payload: Any  # any JSON value
    cost: Budget
    price: Budget


class AnalystSession:
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

    def price(self, *, epsilon: Number | None, rho: Number | None, delta: Number | None) -> Budget:
        """Return the offer, or the next share of the policy where none is made."""
        if epsilon is not None or rho is not None:
            return check_price(epsilon=epsilon, rho=rho, delta=0 if delta is None else delta)
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
        return check_price(epsilon=self._share.epsilon, rho=self._share.rho, delta=self._share.delta)

    def release(
        self,
        *,
        key: str,
        purpose: str,
        guarantee: DifferentialPrivacy,
        price: Budget,
        event: Event,
        source: RandomSource,
        fresh: bool,
        run: Callable[[QueryRows], Any],
        rows: QueryRows,
    ) -> Paid:
        """Return a stored answer, or charge the account, run on the rows, and store what it gives."""
        name = _digest(key)
        budget = self.ledger.account(self.dataset).budget
        cost = budget.cost_of(guarantee)
        # Seeded noise is neither stored nor looked up: a stored answer would be sold later with a promise that
        # it does not keep.
        stored = None if fresh or not source.is_secure else self.ledger.find_answer(self.dataset, key=name, cost=cost)
        if stored is not None:
            return Paid(stored.answer["payload"], budget.spent_nothing(), Budget(**stored.answer["price"]))
        receipt = self.ledger.spend(
            self.dataset,
            guarantee=guarantee,
            event=event,
            analyst=self.analyst,
            purpose=purpose[:_LONGEST_PURPOSE],
            key=name,
        )
        # A share of the policy is gone only now: a question that was refused before payment leaves it for the
        # next one.
        self._share = None
        payload = finish(lambda: run(rows), nothing=lambda: run(rows.nobody()))
        if source.is_secure:
            self.ledger.store_answer(receipt, answer={"price": price.amounts(), "payload": payload})
        return Paid(payload, receipt.cost, price)


def _digest(key: str) -> str:
    return f"cloister.query/1 {hashlib.sha256(key.encode('utf-8', 'surrogatepass')).hexdigest()}"
