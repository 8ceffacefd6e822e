"""What one person, organisation or purpose may spend of a dataset, below the dataset's own budget."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Protocol

from sqlalchemy.orm import Session

from cloister.accounting.budget import Budget
from cloister.accounting.ledger import Account, Ledger
from cloister.core import exact
from cloister.errors import ConflictError
from cloister.hub.domain.decisions import Decision
from cloister.hub.domain.roles import Subject
from cloister.hub.services import views
from cloister.hub.store.models import Spending

__all__ = ["Spender", "charge", "left_for"]


class Spender(Protocol):
    """Who spends, for what, and the decision that lets them."""

    @property
    def subject(self) -> Subject:
        """Return who spends."""
        ...

    @property
    def purpose(self) -> str:
        """Return what it is for; empty where that is not known."""
        ...

    @property
    def decision(self) -> Decision:
        """Return what lets them."""
        ...


@dataclass(frozen=True, slots=True)
class Scope:
    """Whose spending is counted: a kind, a name, the limit if there is one, and how an error calls it."""

    kind: str
    name: str
    limit: Budget | None
    whose: str


def left_for(session: Session, ledger: Ledger, account: Account, case: Spender) -> Budget:
    """Return what is left for a person: of the dataset, of their own limits, and of those that they share."""
    left = ledger.remaining(account.dataset, analyst=case.subject.name)
    job = _same_measure(account, views.constraints_of(case.decision).limits.job)
    if job is not None:
        left = _lower(left, job)
    for scope in _scopes(case):
        limit = _same_measure(account, scope.limit)
        if limit is not None:
            left = _lower(left, _rest(limit, _spent(session, account, scope)))
    return left


def charge(session: Session, account: Account, case: Spender, cost: Budget) -> None:
    """Count a spend for the person, the organisation and the purpose, after the ledger took it, in its transaction.

    The ledger holds its lock on the account until the transaction ends, so that no two spends are counted at once.

    Raises:
        BudgetExceededError: if a limit has less left; the transaction must then be taken back.
        ConflictError: if a limit is stated in another measure than the budget.
    """
    job = _same_measure(account, views.constraints_of(case.decision).limits.job)
    if job is not None:
        job.check_covers(cost, whose=" for one run")
    for scope in _scopes(case):
        spent = _spent(session, account, scope)
        limit = _same_measure(account, scope.limit)
        if limit is not None:
            _rest(limit, spent).check_covers(cost, whose=scope.whose)
        _keep(session, account, scope, spent + cost)


def _scopes(case: Spender) -> Iterator[Scope]:
    limits, subject = views.constraints_of(case.decision).limits, case.subject
    yield Scope("user", subject.user_id, limits.user, " of what the policy gives to you")
    if subject.organisation_id is not None:
        yield Scope(
            "organisation",
            subject.organisation_id,
            limits.organisation,
            " of what the policy gives to your organisation",
        )
    if case.purpose:
        widest = case.purpose.partition(".")[0]
        yield Scope("purpose", widest, limits.purpose, " of what the policy gives to this purpose")


def _spent(session: Session, account: Account, scope: Scope) -> Budget:
    row = session.get(Spending, (account.dataset, scope.kind, scope.name), populate_existing=True)
    nothing = account.budget.spent_nothing()
    if row is None:
        return nothing
    return Budget(**{nothing.measure: exact.number(row.amount), "delta": exact.number(row.delta)})


def _keep(session: Session, account: Account, scope: Scope, spent: Budget) -> None:
    session.merge(
        Spending(
            dataset_id=account.dataset,
            scope=scope.kind,
            name=scope.name,
            amount=exact.text(spent.amount),
            delta=exact.text(spent.delta),
        )
    )
    session.flush()


def _same_measure(account: Account, limit: Budget | None) -> Budget | None:
    if limit is not None and limit.measure != account.budget.measure:
        raise ConflictError(
            f"The policy limits {limit.measure}, but the dataset's budget is counted in {account.budget.measure}.",
            fix=f"ask the owner to state the limits in {account.budget.measure}.",
        )
    return limit


def _rest(limit: Budget, spent: Budget) -> Budget:
    """Return what a limit leaves; one that was lowered below what is spent leaves nothing."""
    amount = max(limit.amount - spent.amount, Fraction(0))
    delta = max(limit.delta - spent.delta, Fraction(0))
    return Budget(**{limit.measure: amount, "delta": delta})


def _lower(left: Budget, right: Budget) -> Budget:
    return Budget(**{left.measure: min(left.amount, right.amount), "delta": min(left.delta, right.delta)})
