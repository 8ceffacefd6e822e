"""What one person, organisation or purpose may spend of a dataset, below the dataset's own budget.

A person has a limit in the ledger beside the one in the policy: both hold, and both count past spends. A plan gets a
ledger in memory with more than enough, a run one that holds what it may spend, and nothing else.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Protocol

from sqlalchemy.orm import Session

from cloister.accounting.budget import Budget
from cloister.accounting.ledger import Account, Ledger, open_ledger
from cloister.core import exact
from cloister.core.guarantees import Adjacency
from cloister.errors import ConflictError, UnknownAccountError
from cloister.hub.domain.decisions import Decision
from cloister.hub.domain.roles import AccessSubject
from cloister.hub.store.database import Store
from cloister.hub.store.models import Dataset, Spending, User
from cloister.hub.use_cases.datasets import _views as views

__all__ = [
    "Spender",
    "account_of",
    "charge",
    "check_budget",
    "find_remaining",
    "ledger_for_plan",
    "ledger_with",
    "limit_person",
]

_ENOUGH = Fraction(2**40)


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
    budget = Budget(epsilon=Fraction(1)) if account is None else account.budget
    offered = None if amount is None or not (amount.amount or amount.delta) else amount
    ledger = _open_in_memory(offered or budget, dataset, account)
    # No account can be opened with nothing in it, so that it is opened with something that is spent at once.
    if offered is None:
        ledger.spend(dataset.id, cost=budget, purpose="nothing is left")
    return ledger


def ledger_for_plan(*, dataset: Dataset, account: Account | None) -> Ledger:
    """Return a ledger in memory with more than any run costs, so that what is left decides nothing about a plan."""
    measure = "epsilon" if account is None else account.budget.measure
    return _open_in_memory(Budget(**{measure: _ENOUGH}, delta=Fraction(1, 2)), dataset, account)


def _open_in_memory(budget: Budget, dataset: Dataset, account: Account | None) -> Ledger:
    ledger = open_ledger("memory:")
    ledger.open_account(
        dataset.id,
        budget=budget,
        unit=str(dataset.facts.get("unit", "row")) if account is None else account.unit,
        adjacency=Adjacency(dataset.facts.get("adjacency", "add_remove")) if account is None else account.adjacency,
    )
    return ledger


class Spender(Protocol):
    """Who spends, for what, and the decision that lets them."""

    @property
    def subject(self) -> AccessSubject:
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
class SpendingScope:
    """Whose spending is counted: a kind, a name, the limit if there is one, and how an error calls it."""

    kind: str
    name: str
    limit: Budget | None
    whose: str


def find_remaining(session: Session, ledger: Ledger, account: Account, case: Spender) -> Budget:
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
        # Counted without a limit, too: one that is set later has to know what was spent before.
        _keep(session, account, scope, spent + cost)


def _scopes(case: Spender) -> Iterator[SpendingScope]:
    limits, subject = views.constraints_of(case.decision).limits, case.subject
    yield SpendingScope("user", subject.user_id, limits.user, " of what the policy gives to you")
    if subject.organisation_id is not None:
        yield SpendingScope(
            "organisation",
            subject.organisation_id,
            limits.organisation,
            " of what the policy gives to your organisation",
        )
    if case.purpose:
        # Narrower purposes share the limit of the widest, or every new name would be a new allowance.
        widest = case.purpose.partition(".")[0]
        yield SpendingScope("purpose", widest, limits.purpose, " of what the policy gives to this purpose")


def _spent(session: Session, account: Account, scope: SpendingScope) -> Budget:
    # Read anew, as the session may have read it before the ledger's lock was taken.
    row = session.get(Spending, (account.dataset, scope.kind, scope.name), populate_existing=True)
    nothing = account.budget.spent_nothing()
    if row is None:
        return nothing
    return Budget(**{nothing.measure: exact.number(row.amount), "delta": exact.number(row.delta)})


def _keep(session: Session, account: Account, scope: SpendingScope, spent: Budget) -> None:
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
