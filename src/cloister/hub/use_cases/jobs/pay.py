"""Step 3 of a job: paying for a run and adding it to the queue, in one transaction."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from sqlalchemy import select
from sqlalchemy.orm import Session

from cloister.accounting.ledger import Receipt
from cloister.core.digests import canonical
from cloister.errors import ConflictError, ParameterError, UnknownAccountError
from cloister.hub.domain import actions
from cloister.hub.domain.lifecycles import JobState
from cloister.hub.domain.roles import AccessSubject
from cloister.hub.hub import Hub
from cloister.hub.queue import Bell
from cloister.hub.store.models import Job, ResultRecord, new_id
from cloister.hub.use_cases import _spending_limits as spending_limits, audit_log
from cloister.hub.use_cases.authorization import Access
from cloister.hub.use_cases.jobs import keep
from cloister.hub.use_cases.jobs.decide import consider
from cloister.hub.use_cases.jobs.plan import RunPlan, make_plan, target_id

__all__ = ["submit"]


_LONGEST_KEY = 200


def submit(
    hub: Hub,
    access: Access,
    *,
    service: str,
    parameters: Mapping[str, Any],
    purpose: str = "",
    idempotency_key: str | None = None,
) -> Job:
    """Pay for a run and queue it, or give the stored answer to an equal question for nothing.

    Asking again with the same idempotency key gives the same work and charges nothing. A refusal charges nothing, and
    depends on the policy and the ledger only.

    Raises:
        BudgetExceededError: if the dataset, or a limit, has less left than the run costs.
        ConflictError: if the idempotency key was used for something else.
    """
    asked = {
        "dataset_id": target_id(access),
        "service": service,
        "parameters": dict(parameters),
        "purpose": purpose,
    }
    if idempotency_key is not None and not 0 < len(idempotency_key) <= _LONGEST_KEY:
        raise ParameterError("The idempotency key is too long.", fix=f"use at most {_LONGEST_KEY} characters.")
    try:
        job = _submit(hub, access, asked, idempotency_key)
    # Two equal requests may race: whoever loses finds what the winner has added under the same key.
    except ConflictError:
        with hub.store.reading() as session:
            found = _same(session, access.person, asked, idempotency_key)
            if found is None:
                raise
            session.expunge(found)
        return found
    # Rung after the transaction, so that whoever comes finds the work.
    Bell(hub.settings.folder).ring()
    return job


def _submit(hub: Hub, access: Access, asked: dict[str, Any], key: str | None) -> Job:
    subject = access.person
    with hub.store.reading() as session:
        found = _same(session, subject, asked, key)
        if found is not None:
            session.expunge(found)
            return found
        planned = make_plan(hub, session, consider(session, subject=subject, target=access.target, **asked))
    with hub.store.writing() as session:
        planned = _again(session, planned, asked)
        job = _job(planned, asked, key)
        stored = _find_stored(hub, session, planned)
        receipt = None if stored is not None else _pay(hub, session, planned)
        # Receipt and work are written together: nobody pays for what was not queued, and nothing is queued unpaid.
        job.receipt = None if receipt is None else receipt.to_dict()
        session.add(job)
        session.flush()
        if stored is not None:
            keep.give_again(hub, session, stored, job)
        audit_log.append(
            session,
            actions.RUN_SERVICE,
            by=subject,
            target=f"job:{job.id}",
            dataset_id=job.dataset_id,
            service=job.service,
            receipt=None if receipt is None else receipt.number,
            is_repeated=stored is not None,
        )
    return job


def _again(session: Session, planned: RunPlan, asked: dict[str, Any]) -> RunPlan:
    """Return a plan with its case as it is in the transaction that pays."""
    # Decided again, because planning takes its time: in one transaction with it, planning would hold up everybody.
    case = consider(session, subject=planned.case.subject, **asked)
    # The plan is about the view that it was made on; another view would need another plan and another price.
    if case.view != planned.case.view:
        raise ConflictError("The dataset or its policy was changed at this moment.", fix="look again, then repeat.")
    return replace(planned, case=case)


def _same(session: Session, subject: AccessSubject, asked: dict[str, Any], key: str | None) -> Job | None:
    """Return the work that was asked for with this key before."""
    if key is None:
        return None
    found = session.scalars(select(Job).where(Job.requester_id == subject.user_id, Job.idempotency_key == key)).first()
    if found is None:
        return None
    if canonical(found.plan["asked"]) != canonical(asked):
        raise ConflictError(
            "This idempotency key was used for another request.", fix="send a new key with a new request."
        )
    return found


def _job(planned: RunPlan, asked: dict[str, Any], key: str | None) -> Job:
    case, plan = planned.case, planned.plan
    return Job(
        id=new_id("job"),
        service=case.service.name,
        service_version=case.service.version,
        state=JobState.QUEUED.value,
        dataset_id=case.dataset.id,
        version_id=case.version.id,
        requester_id=case.subject.user_id,
        organisation_id=case.subject.organisation_id,
        purpose=case.purpose,
        parameters=case.parameters.model_dump(mode="json"),
        plan={
            "asked": asked,
            "guarantee": None if plan.guarantee is None else plan.guarantee.to_dict(),
            "cost": None if planned.cost is None else planned.cost.to_dict(),
            "key": None if plan.key is None else case.key(plan.key),
            "view": case.view,
            "used": case.used,
            "operation": str(case.service.operation),
            "needs_approval": case.service.needs_approval,
            "owners_only": case.service.owners_only,
            "two_person": case.policy.two_person,
            "preview": plan.preview,
            "warnings": list(plan.warnings),
        },
        idempotency_key=key,
        attempt=0,
        losses=0,
    )


def _find_stored(hub: Hub, session: Session, planned: RunPlan) -> ResultRecord | None:
    """Return the result of an equal question that was paid for at least as well."""
    question = planned.plan.key
    # An owner decides about every release by itself, so that none is given again without being asked.
    if question is None or planned.cost is None or planned.account is None or planned.case.service.needs_approval:
        return None
    ledger = hub.store.ledger(session)
    answer = ledger.find_answer(planned.account.dataset, key=planned.case.key(question), cost=planned.cost)
    if answer is None:
        return None
    return session.scalars(select(ResultRecord).where(ResultRecord.job_id == str(answer.answer["job"]))).first()


def _pay(hub: Hub, session: Session, planned: RunPlan) -> Receipt | None:
    case, plan = planned.case, planned.plan
    if planned.cost is None:
        return None
    if planned.account is None:
        raise UnknownAccountError("The owner has set no budget for this dataset.", fix="ask the owner to set one.")
    receipt = hub.store.ledger(session).spend(
        planned.account.dataset,
        cost=plan.cost,
        guarantee=None if plan.cost is not None else plan.guarantee,
        event=plan.event,
        analyst=case.subject.name,
        purpose=f"{case.service.name}: {case.purpose}" if case.purpose else case.service.name,
        key=None if plan.key is None else case.key(plan.key),
    )
    # After the ledger, whose lock on the account keeps two spends from being counted at the same time.
    spending_limits.charge(session, planned.account, case, receipt.cost)
    return receipt
