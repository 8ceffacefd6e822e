"""What an account holds, how each kind of entry changes it (a spend, a raised budget), and what a spend must cost.

Writers and the verifier use the same `transition`: a writer records its outcome, the verifier recomputes and compares.
Sums are exact. A sum whose denominator would pass 2**512 is rounded up to a multiple of 2**-512, by charging that much
more, so that odd costs cannot make the ledger's numbers grow without end.

A spend must cost at least what its event takes, and what its guarantee says. An event is compared with the cost, or
with the guarantee in the guarantee's own measure. In epsilon, the event must be (epsilon, delta)-private at the stated
numbers, by the exact sum of pure losses or by the best accountant that knows the event. In rho, the rhos and deltas of
the event must stay within them. An event of which no accountant knows the cost is refused.
"""

from __future__ import annotations

import math
from contextlib import suppress
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

from cloister.accounting.accountants import PureAccountant, ZeroConcentratedAccountant, compose
from cloister.accounting.accountants.automatic import check_relation
from cloister.accounting.accountants.base import supports_all, tally
from cloister.accounting.budget import Budget
from cloister.accounting.events import Event
from cloister.accounting.ledger.checks import FINEST
from cloister.accounting.ledger.protocol import EntryKind
from cloister.core.guarantees import Adjacency, DifferentialPrivacy, ZeroConcentratedDP
from cloister.errors import AccountingError, AccountMismatchError, CloisterError, ParameterError, ParameterTypeError


@dataclass(frozen=True, slots=True, kw_only=True)
class AccountState:
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
    def from_dict(cls, values: dict[str, Any]) -> AccountState:
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
        # A limit may be set below what was spent already; then nothing is left, not less.
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
    state: AccountState | None,
    share: Share | None,
    analyst: str | None,
) -> tuple[AccountState, Share | None]:
    """Return what an account and an analyst's share are after an entry, or raise if it is not allowed."""
    if kind is EntryKind.OPEN:
        return _open_state(details, state), None
    if state is None:
        raise ParameterError("The account is not open.", fix="open the account first.")
    if kind is EntryKind.RAISE:
        return replace(state, budget=_raise_budget(state.budget, Budget.from_dict(details["budget"]))), None
    if kind is EntryKind.ANSWER:
        return state, None
    before = share or Share(limit=None, spent=state.budget.spent_nothing())
    if kind is EntryKind.LIMIT:
        limit = Budget.from_dict(details["budget"])
        _check_within(limit, state.budget)
        return state, replace(before, limit=limit)
    cost = Budget.from_dict(details["cost"])
    # The account and the analyst's share are both asked before either changes.
    state.remaining.check_covers(cost)
    after = replace(state, spent=state.spent + cost)
    if analyst is None:
        return after, None
    before.remaining(state.remaining).check_covers(cost, whose=f' for analyst "{analyst}"')
    return after, replace(before, spent=before.spent + cost)


def charge(state: AccountState, cost: Budget) -> Budget:
    """Return what a spend is charged: its cost, or a trifle more when the exact sum has too many digits."""
    state.remaining.check_covers(cost)
    # The difference of two sums is charged, so that a verifier who adds it up arrives at the same rounded sum.
    amount = add_rounding_up(state.spent.amount, cost.amount) - state.spent.amount
    delta = add_rounding_up(state.spent.delta, cost.delta) - state.spent.delta
    amounts = {cost.measure: amount}
    return Budget(**amounts, delta=delta)


def add_rounding_up(total: Fraction, more: Fraction) -> Fraction:
    """Return a sum, rounded up to a multiple of 2**-512 when its denominator is larger than 2**512."""
    exactly = total + more
    return exactly if exactly.denominator <= FINEST else Fraction(math.ceil(exactly * FINEST), FINEST)


def _open_state(details: dict[str, Any], state: AccountState | None) -> AccountState:
    if state is not None:
        raise ParameterError("The account is open already.", fix="open an account once.")
    budget = Budget.from_dict(details["budget"])
    return AccountState(
        budget=budget,
        spent=budget.spent_nothing(),
        unit=details["unit"],
        adjacency=Adjacency(details["adjacency"]),
    )


def _raise_budget(before: Budget, after: Budget) -> Budget:
    if not after.covers(before) or after == before:
        raise ParameterError(
            f"A budget of {before} can only be raised, and {after} is not more.",
            fix="give a budget that is at least as large in both numbers, and larger in one.",
        )
    return after


def _check_within(limit: Budget, budget: Budget) -> None:
    if not budget.covers(limit):
        raise ParameterError(
            f"An analyst's limit of {limit.words} is more than the dataset's budget of {budget.words}.",
            fix="give a limit within the budget, or raise the budget first.",
        )


_ROUNDING = 1 + Fraction(1, 10**9)
"""By how much an accountant's delta may pass that of the cost: margins of floats, not of the mechanism."""


def check_one_of(cost: object, guarantee: object) -> None:
    """Raise unless either a cost or a guarantee is given."""
    if (cost is None) == (guarantee is None):
        raise ParameterError(
            "A spend takes either a cost or a guarantee.",
            fix="write cost=Budget(epsilon=0.1), or guarantee=mechanism.guarantee.",
        )


def price(state: AccountState, *, guarantee: DifferentialPrivacy) -> Budget:
    """Return what a release with a guarantee takes from an account of the same relation and unit."""
    if not isinstance(guarantee, DifferentialPrivacy):
        raise ParameterTypeError(
            "The guarantee is not one of differential privacy.", fix="give mechanism.guarantee, or a cost."
        )
    if not guarantee.holds:
        broken = "; ".join(caveat.text for caveat in guarantee.caveats if caveat.breaks)
        raise AccountingError(
            f"This guarantee does not hold: {broken}.",
            fix="mend what breaks it, such as a seed; to pay for the release all the same, give its cost.",
        )
    pairs = (("adjacency", state.adjacency, guarantee.adjacency), ("unit", state.unit, guarantee.unit))
    for name, has, given in pairs:
        if has != given:
            raise AccountMismatchError(
                f"The account has {name} {has}, the guarantee {given}.",
                fix=f"build the mechanism with {name}={str(has)!r}.",
            )
    return state.budget.cost_of(guarantee)


def own_measure(guarantee: DifferentialPrivacy) -> Budget:
    """Return the numbers of a guarantee in its own measure, where an event is compared with it most sharply."""
    nothing = Fraction(0)
    measure = Budget(rho=nothing) if isinstance(guarantee, ZeroConcentratedDP) else Budget(epsilon=nothing)
    return measure.cost_of(guarantee)


def check_covers_event(state: AccountState, *, cost: Budget, event: Event) -> None:
    """Raise unless a cost is at least what an event takes from an account."""
    check_relation(state.adjacency, tally(event))
    covered = _covers_in_epsilon if cost.measure == "epsilon" else _covers_in_rho
    if not covered(cost, event):
        raise AccountingError(
            f"The event takes more than the cost of {cost}.",
            fix="give guarantee=mechanism.guarantee in place of the cost, or a cost that covers the event.",
        )


def _covers_in_epsilon(cost: Budget, event: Event) -> bool:
    counts, pure = tally(event), PureAccountant()
    # The exact sum comes first: it needs no delta, and no rounding.
    if supports_all(pure, counts) and pure.delta(counts, epsilon=cost.amount) <= cost.delta:
        return True
    if cost.delta == 0:
        return False
    with suppress(AccountingError):
        found = compose(counts, epsilon=cost.amount, adjacency="add_remove", unit="row")
        return found.delta <= cost.delta * _ROUNDING
    return False


def _covers_in_rho(cost: Budget, event: Event) -> bool:
    accountant, counts = ZeroConcentratedAccountant(), tally(event)
    with suppress(CloisterError):
        total = accountant.rho(counts)
        return total.rho <= cost.amount and total.delta <= cost.delta
    return False
