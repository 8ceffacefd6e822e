"""Small services, as an algorithm provider would write them, and a dataset of seven people for them to run on."""

from __future__ import annotations

import io
import time
from decimal import Decimal
from typing import Any, ClassVar

from pydantic import Field

from cloister.accounting.budget import Budget
from cloister.core import exact
from cloister.core.guarantees import PureDP
from cloister.hub.domain.operations import PolicyOperation
from cloister.hub.domain.policy import (
    ALL_USES,
    BudgetLimits,
    ColumnRule,
    ColumnRules,
    Member,
    Members,
    Policy,
    PolicyRole,
    PolicyRule,
    RuleEffect,
)
from cloister.hub.domain.policy_file import policy_to_dict
from cloister.hub.domain.roles import AccountRole
from cloister.hub.domain.terms import PurposeSet, UsageTerms
from cloister.hub.hub import Hub
from cloister.hub.services.registry import ResultFile, ServiceOutcome, ServiceParameters, ServicePlan, ServiceWork
from cloister.hub.store.models import Dataset, Organisation, PolicyVersion, User, new_id
from cloister.hub.use_cases import datasets
from cloister.hub.use_cases.datasets.versions import newest_version
from cloister.hub.use_cases.sessions import subject_of
from cloister.queries import PrivateTable
from tests.support.hub_datasets import read_uploads_here

PURPOSE = "research.health"
ROWS = "age,ward,salary\n31,a,1\n47,b,2\n52,a,3\n28,c,4\n66,b,5\n71,a,6\n39,a,7\n"
SCHEMA = """
columns:
  age: {role: quasi, kind: numeric, bounds: [0, 110], storage: integer}
  ward: {role: quasi, kind: nominal, categories: [a, b, c], storage: text}
  salary: {role: sensitive, kind: numeric, bounds: [0, 10], storage: integer}
"""


class Priced(ServiceParameters):
    epsilon: Decimal = Field(gt=0, le=10, description="What it may cost.")
    where: str | None = Field(default=None, description="Which rows.")


class Service:
    """What the services here have in common."""

    version: ClassVar[str] = "1.0.0"
    title: ClassVar[str] = "Count rows"
    summary: ClassVar[str] = "Counts rows with noise."
    operation: ClassVar[PolicyOperation] = PolicyOperation.QUERY_COUNT
    modes: ClassVar[frozenset[str]] = frozenset({"dp"})
    parameters: ClassVar[type[ServiceParameters]] = Priced
    needs_approval: ClassVar[bool] = False
    owners_only: ClassVar[bool] = False
    page: ClassVar[str] = "service.html"

    def plan(self, work: ServiceWork, parameters: Any) -> ServicePlan:
        return ServicePlan(
            guarantee=PureDP(epsilon=parameters.epsilon), preview={"left": str(work.ledger.remaining(work.account))}
        )


class RowCount(Service):
    """A private count: a plan on the empty table, a run on the real one, and nothing else."""

    name: ClassVar[str] = "test.count"

    def plan(self, work: ServiceWork, parameters: Any) -> ServicePlan:
        return ServicePlan(
            guarantee=PureDP(epsilon=parameters.epsilon),
            key=f"count where {parameters.where}",
            preview={"columns": list(work.table.columns), "rows": work.table.count()},
        )

    def run(self, work: ServiceWork, parameters: Any) -> ServiceOutcome:
        work.progress(0.5, "counting")
        answer = private(work).count(where=parameters.where, epsilon=parameters.epsilon)
        return ServiceOutcome(
            document=answer.to_dict(), summary=(("count", str(answer)),), guarantee=answer.guarantee.to_dict()
        )


class FreshCount(RowCount):
    """The same, without sharing answers between equal questions."""

    name: ClassVar[str] = "test.fresh"

    def plan(self, work: ServiceWork, parameters: Any) -> ServicePlan:
        return ServicePlan(guarantee=PureDP(epsilon=parameters.epsilon))


class Failing(Service):
    """Fails in a way that tells something about the data."""

    name: ClassVar[str] = "test.fail"

    def run(self, work: ServiceWork, parameters: Any) -> ServiceOutcome:
        raise ZeroDivisionError(f"{work.table.count()} rows")


class Greedy(Service):
    """Wants more than it planned for."""

    name: ClassVar[str] = "test.greedy"

    def run(self, work: ServiceWork, parameters: Any) -> ServiceOutcome:
        private(work).count(epsilon=parameters.epsilon)
        return ServiceOutcome(document=private(work).count(where="age > 50", epsilon=parameters.epsilon).to_dict())


class Free(Service):
    """Would answer about private data for nothing."""

    name: ClassVar[str] = "test.free"

    def plan(self, work: ServiceWork, parameters: Any) -> ServicePlan:
        return ServicePlan(guarantee=None)

    def run(self, work: ServiceWork, parameters: Any) -> ServiceOutcome:
        return ServiceOutcome(document={})


class Release(Service):
    """Something that the owner must approve before it leaves."""

    name: ClassVar[str] = "test.release"
    operation: ClassVar[PolicyOperation] = PolicyOperation.RELEASE_ANONYMIZE
    parameters: ClassVar[type[ServiceParameters]] = ServiceParameters
    needs_approval: ClassVar[bool] = True

    def plan(self, work: ServiceWork, parameters: Any) -> ServicePlan:
        return ServicePlan(guarantee=None)

    def run(self, work: ServiceWork, parameters: Any) -> ServiceOutcome:
        remaining = work.ledger.remaining(work.account)
        return ServiceOutcome(
            document={"schema": "test.release/1", "remaining": str(remaining)},
            report="<!doctype html><title>r</title>",
            owner_report="<!doctype html><title>o</title>",
            files=(ResultFile(name="release.csv", media_type="text/csv", content=b"ward\na\n"),),
            owner_only={"risk_before": 1.0},
        )


class Endless(Service):
    """Works until it is told to stop."""

    name: ClassVar[str] = "test.endless"

    def run(self, work: ServiceWork, parameters: Any) -> ServiceOutcome:
        until = time.monotonic() + 60
        while time.monotonic() < until:
            work.progress(0.1, "waiting")
            time.sleep(0.01)
        raise TimeoutError


SERVICES = (RowCount(), FreshCount(), Failing(), Greedy(), Free(), Release(), Endless())


def private(work: ServiceWork) -> PrivateTable:
    return PrivateTable(work.table, dataset=work.account, unit="row", ledger=work.ledger)


def add_dataset(
    hub: Hub, *, epsilon: str = "1", rho: str | None = None, owner: str = "owner", mode: str = "dp", **policy: Any
) -> str:
    """Make a dataset of the institution "north", with an owner, a budget and a policy; return its id."""
    with hub.store.writing() as session:
        organisation = _organisation(session, "north")
        user = session.query(User).filter_by(name=owner).one_or_none()
        if user is None:
            user = User(id=new_id("usr"), name=owner, roles=[AccountRole.DATA_OWNER], organisation_id=organisation.id)
            session.add(user)
            session.flush()
        made = datasets.create_dataset(session, subject_of(user), name="seven", title="Seven people", description="")
    subject = subject_of(user)
    with read_uploads_here():
        datasets.upload_version(hub, subject, made.id, io.BytesIO(ROWS.encode()), kind="csv")
    with hub.store.writing() as session:
        stored, version = session.get(Dataset, made.id), newest_version(session, made.id)
        assert stored is not None
        assert version is not None
        datasets.save_schema(hub.blobs, session, subject, version, SCHEMA, confirm=True)
        budget = Budget(epsilon=exact.number(epsilon)) if rho is None else Budget(rho=exact.number(rho))
        datasets.open_for_questions(hub.store, session, subject, stored, budget=budget, unit="row")
        stored.mode = mode
    set_policy(hub, made.id, **policy)
    return made.id


def set_policy(
    hub: Hub,
    dataset_id: str,
    *,
    users: tuple[str, ...] = (),
    everyone: bool = False,
    limits: BudgetLimits | None = None,
    hidden: tuple[str, ...] = (),
) -> None:
    """Give a dataset its next policy: some people may count, and ask for releases, for research."""
    operations = frozenset(
        {PolicyOperation.QUERY_COUNT, PolicyOperation.QUERY_AGGREGATE, PolicyOperation.RELEASE_ANONYMIZE}
    )
    role = PolicyRole(
        name="analysts",
        members=Members(users=tuple(Member(user_id=user) for user in users), everyone=everyone),
        rules=(PolicyRule(effect=RuleEffect.ALLOW, operations=operations, limits=limits or BudgetLimits()),),
    )
    shown = ColumnRule(uses=ALL_USES)
    with hub.store.writing() as session:
        number = session.query(PolicyVersion).filter_by(object_id=dataset_id).count() + 1
        policy = Policy(
            object_id=dataset_id,
            version=number,
            roles=(role,),
            columns=ColumnRules(named=tuple((name, ColumnRule()) for name in hidden), others=shown),
            terms=UsageTerms(purposes=PurposeSet.of("research")),
        )
        session.add(
            PolicyVersion(
                id=new_id("pol"),
                object_kind="dataset",
                object_id=dataset_id,
                number=number,
                document=policy_to_dict(policy),
            )
        )


def _organisation(session: Any, name: str) -> Organisation:
    found = session.query(Organisation).filter_by(name=name).one_or_none()
    if found is None:
        found = Organisation(id=new_id("org"), name=name)
        session.add(found)
        session.flush()
    return found
