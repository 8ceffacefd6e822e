"""What an account holds, and how each kind of entry changes it.

Writers and the verifier use the same `transition`: a writer records its outcome, the verifier recomputes and compares.
Sums are exact. A sum whose denominator would pass 2**512 is rounded up to a multiple of 2**-512, by charging that much
more, so that odd costs cannot make the ledger's numbers grow without end.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

from cloister.accounting.budget import Budget
from cloister.accounting.ledger.checks import FINEST
from cloister.accounting.ledger.values import EntryKind
from cloister.core.guarantees import Adjacency
from cloister.errors import ParameterError


@dataclass(frozen=True, slots=True, kw_only=True)
class State:
    """The numbers of an account after an entry."""

    budget: Budget
    spent: Budget
    unit: str
    adjacency: Adjacency

    @property
    def remaining(self) -> Budget:
        """Return what is left."""
        return self.budget - self.spent

    def to_dict(self) -> dict[str, Any]:
        """Return JSON-ready values."""
        return {
            "budget": self.budget.to_dict(),
            "spent": self.spent.to_dict(),
            "unit": self.unit,
            "adjacency": str(self.adjacency),
        }

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> State:
        """Return what `to_dict` wrote."""
        return cls(
            budget=Budget.from_dict(values["budget"]),
            spent=Budget.from_dict(values["spent"]),
            unit=values["unit"],
            adjacency=Adjacency(values["adjacency"]),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Share:
    """One analyst's part of an account after an entry: a limit, if there is one, and what was spent."""

    limit: Budget | None
    spent: Budget

    def remaining(self, account: Budget) -> Budget:
        """Return what the analyst may still spend, given what is left for everybody."""
        if self.limit is None:
            return account
        amounts = {self.limit.measure: max(Fraction(0), self.limit.amount - self.spent.amount)}
        own = Budget(**amounts, delta=max(Fraction(0), self.limit.delta - self.spent.delta))
        smaller = {own.measure: min(own.amount, account.amount)}
        return Budget(**smaller, delta=min(own.delta, account.delta))

    def to_dict(self) -> dict[str, Any]:
        """Return JSON-ready values."""
        return {"limit": None if self.limit is None else self.limit.to_dict(), "spent": self.spent.to_dict()}

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> Share:
        """Return what `to_dict` wrote."""
        limit = values["limit"]
        return cls(
            limit=None if limit is None else Budget.from_dict(limit),
            spent=Budget.from_dict(values["spent"]),
        )


def transition(
    kind: EntryKind,
    details: dict[str, Any],
    *,
    state: State | None,
    share: Share | None,
    analyst: str | None,
) -> tuple[State, Share | None]:
    """Return what an account and an analyst's share are after an entry, or raise if it is not allowed."""
    if kind is EntryKind.OPEN:
        return _opened(details, state), None
    if state is None:
        raise ParameterError("The account is not open.", fix="open the account first.")
    if kind is EntryKind.RAISE:
        return replace(state, budget=_raised(state.budget, Budget.from_dict(details["budget"]))), None
    if kind is EntryKind.ANSWER:
        return state, None
    before = share or Share(limit=None, spent=state.budget.spent_nothing())
    if kind is EntryKind.LIMIT:
        limit = Budget.from_dict(details["budget"])
        _check_within(limit, state.budget)
        return state, replace(before, limit=limit)
    cost = Budget.from_dict(details["cost"])
    state.remaining.check_covers(cost)
    after = replace(state, spent=state.spent + cost)
    if analyst is None:
        return after, None
    before.remaining(state.remaining).check_covers(cost, whose=f' for analyst "{analyst}"')
    return after, replace(before, spent=before.spent + cost)


def charge(state: State, cost: Budget) -> Budget:
    """Return what a spend is charged: its cost, or a trifle more when the exact sum has too many digits."""
    state.remaining.check_covers(cost)
    amount = bounded_sum(state.spent.amount, cost.amount) - state.spent.amount
    delta = bounded_sum(state.spent.delta, cost.delta) - state.spent.delta
    amounts = {cost.measure: amount}
    return Budget(**amounts, delta=delta)


def bounded_sum(total: Fraction, more: Fraction) -> Fraction:
    """Return a sum, rounded up to a multiple of 2**-512 when its denominator is larger than 2**512."""
    exactly = total + more
    return exactly if exactly.denominator <= FINEST else Fraction(math.ceil(exactly * FINEST), FINEST)


def _opened(details: dict[str, Any], state: State | None) -> State:
    if state is not None:
        raise ParameterError("The account is open already.", fix="open an account once.")
    budget = Budget.from_dict(details["budget"])
    return State(
        budget=budget,
        spent=budget.spent_nothing(),
        unit=details["unit"],
        adjacency=Adjacency(details["adjacency"]),
    )


def _raised(before: Budget, after: Budget) -> Budget:
    if not after.covers(before) or after == before:
        raise ParameterError(
            f"A budget of {before} can only be raised, and {after} is not more.",
            fix="give a budget that is at least as large in both numbers, and larger in one.",
        )
    return after


def _check_within(limit: Budget, budget: Budget) -> None:
    if not budget.covers(limit):
        raise ParameterError(
            f"An analyst's limit of {_in_words(limit)} is more than the dataset's budget of {_in_words(budget)}.",
            fix="give a limit within the budget, or raise the budget first.",
        )


def _in_words(budget: Budget) -> str:
    slack = f", delta {float(budget.delta):g}" if budget.delta else ""
    return f"{budget.measure} {float(budget.amount):g}{slack}"
