"""Decisions of people about work: an owner lets a release out or not, and whoever has a part in it may cancel it."""

from __future__ import annotations

import unicodedata
from typing import Any

from sqlalchemy import delete, select
from sqlalchemy.orm import Session

from cloister.errors import ConflictError, ForbiddenError, NotFoundError
from cloister.hub import queue
from cloister.hub.domain import actions
from cloister.hub.domain.actions import ObjectRelation
from cloister.hub.domain.lifecycles import JobState
from cloister.hub.domain.roles import AccessSubject
from cloister.hub.hub import Hub
from cloister.hub.store.models import Job, ResultRecord, now
from cloister.hub.use_cases import audit_log
from cloister.hub.use_cases.authorization import Access, current_policy, load_target
from cloister.hub.use_cases.jobs._release_registry import earlier_releases
from cloister.hub.use_cases.jobs.decide import check_may_have
from cloister.hub.use_cases.jobs.keep import see_result
from cloister.hub.use_cases.notices import notify
from cloister.hub.use_cases.sessions import subject_of

__all__ = ["approvals_needed", "cancel", "decide_release", "has_approved", "without_reasons"]

_LONGEST_NOTE = 2_000
_FEWEST_LETTERS = 3
_FILLERS = frozenset("\u115f\u1160\u3164\uffa0")
"""Letters that nobody sees."""
_ATTACKED = frozenset({"release.anonymize", "synth.generate"})
"""Services whose results are attacked before their owner is asked."""


def decide_release(
    hub: Hub, access: Access, job_id: str, *, approve: bool, note: str = "", reason: str = ""
) -> JobState:
    """Let a release that waits leave the hub, or not; either is final, and the note is for the person who asked.

    Where the policy asks for two persons, the first approval is noted and the second lets it out; one rejection ends
    it, and deletes what was made. The decision remembers the earlier releases of the same data that the owner was told
    about.

    What the gate advises against is let out only with a reason, which owners alone see.

    Raises:
        ConflictError: if the work does not wait for a decision, or this person has approved it already, or it was not
            attacked, or the gate advises against it and no reason is given.
        ForbiddenError: if the person does not own the data, or the requester may not have the release any more.
    """
    with hub.store.writing() as session:
        # Locked before it is looked at: of two owners who decide at once, the second sees what the first decided.
        job = _lock_job(session, job_id)
        target = load_target(session, "job", job.id)
        if target is None or ObjectRelation.OWNER not in target.relations(access.person):
            raise ForbiddenError("Only its owner may decide about a release.", fix="ask the owner.")
        if job.state != JobState.WAITING:
            raise ConflictError("This does not wait for a decision.", fix="look at it again.")
        # Saying no is always possible; only what leaves the hub has conditions.
        if approve:
            _check_requester(session, job)
            _check_gate(hub, session, job, reason=reason)
        said = {"note": note[:_LONGEST_NOTE], "reason": reason[:_LONGEST_NOTE]}
        is_over = _write_down(session, job, access.person, approve=approve, said=said)
        if not is_over:
            _note(session, actions.DECIDE_RELEASE, access, job, approved=True, is_first=True)
            return JobState(job.state)
        if approve:
            queue.end(job, JobState.DONE)
        else:
            queue.end(
                job, JobState.DENIED, error={"problem": "The owner rejected the release.", "fix": "ask the owner."}
            )
            _forget_result(session, job)
        _note(session, actions.DECIDE_RELEASE, access, job, approved=approve)
        words = "the owner let the result out." if approve else "the owner rejected the release."
        notify(session, job.requester_id, f"{job.service}: {words}", link=f"/jobs/{job.id}")
        return JobState(job.state)


def approvals_needed(session: Session, job: Job) -> int:
    """Return how many owners have yet to approve a release that waits.

    Two persons are asked for if the policy said so when the release was asked for, or says so now.
    """
    policy = current_policy(session, "dataset", str(job.dataset_id))
    asked = 2 if job.plan.get("two_person") or (policy is not None and policy.two_person) else 1
    return max(asked - len(_approvals(job)), 1)


def has_approved(job: Job, subject: AccessSubject) -> bool:
    """Return whether a person was the first of two to approve a release."""
    return any(item["user"] == subject.user_id for item in _approvals(job))


def _write_down(session: Session, job: Job, person: AccessSubject, *, approve: bool, said: dict[str, str]) -> bool:
    """Write a decision down, and return whether it is the last one."""
    if approve and has_approved(job, person):
        raise ConflictError("You have approved this already; a second owner must, too.", fix="ask another owner.")
    is_over = not approve or approvals_needed(session, job) == 1
    mine = {"user": person.user_id, "by": person.name, **said, "time": now().isoformat()}
    approvals = [*_approvals(job), mine] if approve else _approvals(job)
    job.decision = {
        "approved": approve if is_over else None,
        "by": ", ".join(item["by"] for item in approvals) if approve else person.name,
        **said,
        "time": mine["time"],
        "approvals": approvals,
        "earlier_releases": [item["job"] for item in earlier_releases(session, job)],
    }
    return is_over


def _approvals(job: Job) -> list[dict[str, Any]]:
    return list((job.decision or {}).get("approvals", ()))


def _check_requester(session: Session, job: Job) -> None:
    """Raise where nobody would get the release: the account is closed, or the policy no longer lets the person."""
    if job.requester.is_disabled:
        raise ForbiddenError("The account of the person who asked was closed.", fix="reject the release.")
    try:
        check_may_have(session, subject_of(job.requester), job)
    except ForbiddenError:
        raise ForbiddenError(
            "The policy no longer lets the person who asked have this.", fix="reject the release, or change the policy."
        ) from None


def without_reasons(decision: dict[str, Any] | None, *, is_final: bool) -> dict[str, Any] | None:
    """Return a decision for somebody who does not own the data: no reasons, and no words before it is final."""
    if decision is None:
        return None
    hidden = {"reason"} if is_final else {"reason", "note"}
    kept = {name: value for name, value in decision.items() if name not in hidden}
    approvals = [
        {name: value for name, value in item.items() if name not in hidden} for item in decision.get("approvals", ())
    ]
    return kept | {"approvals": approvals}


def _check_gate(hub: Hub, session: Session, job: Job, *, reason: str) -> None:
    """Raise where a release was not attacked, or something speaks against it and the owner does not say why not."""
    if job.service not in _ATTACKED:
        return
    found = see_result(hub, session, job, is_owner=True).outcome.owner_only.get("gate")
    if found is None:
        raise ConflictError("This release was not attacked before.", fix="reject it, and have it made again.")
    if not found["publish"] and not _says_something(reason):
        raise ConflictError(
            "The gate advises against letting this out.", fix="reject it, or give a reason why you let it out."
        )


def _says_something(text: str) -> bool:
    """Return whether a text has a few letters that can be seen."""
    seen = [letter for letter in text if unicodedata.category(letter)[0] in "LN" and letter not in _FILLERS]
    return len(seen) >= _FEWEST_LETTERS


def cancel(hub: Hub, access: Access, job_id: str) -> JobState:
    """Cancel work, at once or as soon as its worker hears of it; what was paid stays paid."""
    with hub.store.writing() as session:
        state = queue.request_cancel(session, job_id)
        job = _lock_job(session, job_id)
        # A release that waited has its table already, and nobody may have that any more.
        if state is JobState.CANCELED:
            _forget_result(session, job)
        _note(session, actions.CANCEL_JOB, access, job, state=str(state))
    return state


def _forget_result(session: Session, job: Job) -> None:
    """Delete a table that nobody may have any more."""
    session.execute(delete(ResultRecord).where(ResultRecord.job_id == job.id))


def _note(session: Session, action: actions.Action, access: Access, job: Job, **details: Any) -> None:
    audit_log.append(session, action, by=access.subject, target=f"job:{job.id}", dataset_id=job.dataset_id, **details)


def _lock_job(session: Session, job_id: str) -> Job:
    job = session.scalars(select(Job).where(Job.id == job_id).with_for_update(of=Job)).first()
    if job is None:
        raise NotFoundError("There is no such job, or you may not see it.", fix="check the address.")
    return job
