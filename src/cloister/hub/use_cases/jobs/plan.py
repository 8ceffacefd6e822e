"""Step 2 of a job: what a run would cost and give, known before anything is paid or any row is read.

Plans are made on tables without rows. They wait for the next plan on the same view, because making one costs more than
planning on it.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from sqlalchemy.orm import Session

from cloister.accounting.budget import Budget
from cloister.accounting.ledger import Account
from cloister.accounting.ledger.account_state import own_measure
from cloister.core.guarantees import DifferentialPrivacy
from cloister.data.table import Table
from cloister.errors import InternalError, NotFoundError
from cloister.hub.hub import Hub
from cloister.hub.services.registry import ServicePlan, ServiceWork
from cloister.hub.use_cases import _spending_limits as spending_limits
from cloister.hub.use_cases.authorization import Access
from cloister.hub.use_cases.datasets import _views as views
from cloister.hub.use_cases.jobs.decide import RunCase, consider

__all__ = ["IdleTables", "RunPlan", "RunPreview", "make_plan", "preview", "target_id"]


class IdleTables:
    """Tables by the digest of their view, each lent to one plan at a time; those of an old view are let go."""

    def __init__(self, *, limit: int = 32) -> None:
        self._limit = limit
        self._lock = threading.Lock()
        self._idle: OrderedDict[int, tuple[str, Table]] = OrderedDict()
        self._count = 0

    @contextmanager
    def lent(self, view: str, opener: Callable[[], Table]) -> Iterator[Table]:
        """Lend a table of a view, opened if none is idle; after an error it is not used again."""
        found = self._take(view)
        table = opener() if found is None else found
        # Nothing is given back after an error: a table in an unknown state must not serve the next person.
        yield table
        with self._lock:
            self._count += 1
            self._idle[self._count] = (view, table)
            while len(self._idle) > self._limit:
                self._idle.popitem(last=False)

    def _take(self, view: str) -> Table | None:
        with self._lock:
            number = next((number for number, (name, _) in self._idle.items() if name == view), None)
            return None if number is None else self._idle.pop(number)[1]


_TABLES = IdleTables()


@dataclass(frozen=True, slots=True, kw_only=True)
class RunPlan:
    """A case with the plan of its service, what that costs, and what is left to pay it from."""

    case: RunCase
    plan: ServicePlan
    account: Account | None
    cost: Budget | None
    left: Budget | None


@dataclass(frozen=True, slots=True, kw_only=True)
class RunPreview:
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


def preview(hub: Hub, access: Access, service: str, parameters: Mapping[str, Any], purpose: str = "") -> RunPreview:
    """Return what a run would cost and how exact it would be. It costs nothing and reads no rows."""
    with hub.store.reading() as session:
        case = consider(
            session,
            dataset_id=target_id(access),
            subject=access.person,
            service=service,
            parameters=parameters,
            purpose=purpose,
            target=access.target,
        )
        planned = make_plan(hub, session, case)
    return RunPreview(
        service=case.service.name,
        version=case.service.version,
        needs_approval=case.service.needs_approval,
        guarantee=planned.plan.guarantee,
        cost=planned.cost,
        left=planned.left,
        preview=planned.plan.preview,
        warnings=planned.plan.warnings,
    )


def make_plan(hub: Hub, session: Session, case: RunCase) -> RunPlan:
    """Return the plan of a run, made on a table without rows and a ledger that is thrown away, and what is left."""
    ledger = hub.store.ledger(session)
    account = spending_limits.account_of(ledger, case.dataset.id)
    left = None if account is None else spending_limits.find_remaining(session, ledger, account, case)
    with (
        spending_limits.ledger_for_plan(dataset=case.dataset, account=account) as plenty,
        _TABLES.lent(case.view, lambda: views.empty_view(case.version, case.decision)) as table,
    ):
        work = ServiceWork(
            table=table,
            rights=views.rights_of(case.version, case.decision),
            account=case.dataset.id,
            facts=dict(case.dataset.facts) | {"mode": case.dataset.mode},
            version=case.version.id,
            ledger=plenty,
            material=None if case.material is None else case.material.open(hub),
        )
        plan = case.service.plan(work, case.parameters)
    cost = plan.cost
    if cost is None and plan.guarantee is not None:
        cost = own_measure(plan.guarantee) if account is None else account.budget.cost_of(plan.guarantee)
    _check_priced(case, cost)
    return RunPlan(case=case, plan=plan, account=account, cost=cost, left=left)


def target_id(access: Access) -> str:
    """Return the object that an access is about."""
    if access.target is None:
        raise NotFoundError("This is about nothing.", fix="check the address.")
    return access.target.id


def _check_priced(case: RunCase, cost: Budget | None) -> None:
    """Raise where private data would be answered for nothing, which no service may do."""
    is_guarded = case.service.needs_approval or case.service.owners_only
    if cost is None and case.dataset.mode == "dp" and not is_guarded:
        raise InternalError(f"the service {case.service.name} names no price")
