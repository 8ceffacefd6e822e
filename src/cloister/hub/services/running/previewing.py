"""What a run would cost and give, known before anything is paid or any row is read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sqlalchemy.orm import Session

from cloister.accounting.budget import Budget
from cloister.accounting.ledger import Account
from cloister.accounting.ledger.pricing import own_measure
from cloister.core.guarantees import DifferentialPrivacy
from cloister.errors import InternalError, NotFoundError
from cloister.hub.hub import Hub
from cloister.hub.services import views
from cloister.hub.services.authorizing import Access
from cloister.hub.services.registry import Plan, Work
from cloister.hub.services.running import limits, reserving
from cloister.hub.services.running.considering import Case, consider
from cloister.hub.services.running.idle_tables import IdleTables

__all__ = ["Preview", "Priced", "make_plan", "preview", "target_id"]

_TABLES = IdleTables()


@dataclass(frozen=True, slots=True, kw_only=True)
class Priced:
    """A case with its plan, and what it would take of what is left."""

    case: Case
    plan: Plan
    account: Account | None
    cost: Budget | None
    left: Budget | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Preview:
    """What a person sees before paying."""

    service: str
    version: str
    needs_approval: bool
    guarantee: DifferentialPrivacy | None
    cost: Budget | None
    left: Budget | None
    preview: dict[str, Any]
    warnings: tuple[str, ...]

    @property
    def is_affordable(self) -> bool:
        """Return whether enough is left."""
        return self.cost is None or (self.left is not None and self.left.covers(self.cost))

    def to_dict(self) -> dict[str, Any]:
        """Return JSON-ready values."""
        return {
            "schema": "cloister.preview/1",
            "service": self.service,
            "version": self.version,
            "needs_approval": self.needs_approval,
            "guarantee": None if self.guarantee is None else self.guarantee.to_dict(),
            "promise": "" if self.guarantee is None else self.guarantee.explain(),
            "cost": None if self.cost is None else self.cost.to_dict(),
            "left": None if self.left is None else self.left.to_dict(),
            "is_affordable": self.is_affordable,
            "preview": self.preview,
            "warnings": list(self.warnings),
        }


def preview(hub: Hub, access: Access, service: str, parameters: Mapping[str, Any], purpose: str = "") -> Preview:
    """Return what a run would cost and how exact it would be. It costs nothing and reads no rows."""
    with hub.store.reading() as session:
        case = consider(
            session,
            dataset_id=target_id(access),
            subject=access.person,
            service=service,
            parameters=parameters,
            purpose=purpose,
        )
        priced = make_plan(hub, session, case)
    return Preview(
        service=case.algorithm.name,
        version=case.algorithm.version,
        needs_approval=case.algorithm.needs_approval,
        guarantee=priced.plan.guarantee,
        cost=priced.cost,
        left=priced.left,
        preview=priced.plan.preview,
        warnings=priced.plan.warnings,
    )


def make_plan(hub: Hub, session: Session, case: Case) -> Priced:
    """Return the plan of a run, made on a table without rows and a ledger in memory with what is left."""
    ledger = hub.store.ledger(session)
    account = reserving.account_of(ledger, case.dataset.id)
    left = None if account is None else limits.left_for(session, ledger, account, case)
    with (
        reserving.ledger_with(left, dataset=case.dataset, account=account) as offered,
        _TABLES.lent(case.view, lambda: views.empty_view(case.version, case.decision)) as table,
    ):
        work = Work(
            table=table,
            rights=views.rights_of(case.version, case.decision),
            account=case.dataset.id,
            facts=dict(case.dataset.facts) | {"mode": case.dataset.mode},
            version=case.version.id,
            ledger=offered,
            material=None if case.material is None else case.material.open(hub),
        )
        plan = case.algorithm.plan(work, case.parameters)
    cost = plan.cost
    if cost is None and plan.guarantee is not None:
        cost = own_measure(plan.guarantee) if account is None else account.budget.cost_of(plan.guarantee)
    _check_priced(case, cost)
    return Priced(case=case, plan=plan, account=account, cost=cost, left=left)


def target_id(access: Access) -> str:
    """Return the object that an access is about."""
    if access.target is None:
        raise NotFoundError("This is about nothing.", fix="check the address.")
    return access.target.id


def _check_priced(case: Case, cost: Budget | None) -> None:
    """Raise where private data would be answered for nothing, which no service may do."""
    is_guarded = case.algorithm.needs_approval or case.algorithm.owners_only
    if cost is None and case.dataset.mode == "dp" and not is_guarded:
        raise InternalError(f"the service {case.algorithm.name} names no price")
