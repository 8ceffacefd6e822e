"""Doing the work, in a worker: decided again, run against the reservation, and kept in one transaction.

A worker may vanish anywhere in here. Before the last transaction nothing of its work is visible; after it, everything.

Results are kept only at certain moments after the claim: the setting ``answer_seconds``, and twice, four times, eight
times as much, and so on. How long a run took may depend on the data; in this way a duration tells at most which power
of two it reached.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from sqlalchemy.orm import Session

from cloister import _version
from cloister.accounting.budget import Budget
from cloister.accounting.ledger import Account, Receipt
from cloister.data.table import Table
from cloister.errors import (
    CloisterError,
    ConflictError,
    ForbiddenError,
    HubError,
    HubUnavailableError,
    InternalError,
    NotFoundError,
)
from cloister.hub.domain.jobs import State
from cloister.hub.domain.policy_file import sticky_terms
from cloister.hub.domain.policy_parts import write_terms
from cloister.hub.domain.sticky import Terms, inherit
from cloister.hub.hub import Hub
from cloister.hub.jobs import queue
from cloister.hub.jobs.queue import Claim
from cloister.hub.services import incidents, views
from cloister.hub.services.registry import Outcome, Work
from cloister.hub.services.running import histories, reserving, results
from cloister.hub.services.running.chore_work import perform_chore
from cloister.hub.services.running.considering import Case, consider, digest_of
from cloister.hub.services.running.histories import Recalled
from cloister.hub.services.running.telling import tell_end as _tell
from cloister.hub.services.sessions import subject_of
from cloister.hub.store.models import Job

__all__ = ["Progress", "next_moment", "perform", "take"]

Progress = Callable[[float, str], None]
OpenTable = Callable[[str, Callable[[], Table]], Table]
"""Returns the table of a view, which is opened only if it is not open already."""

FAILED = {
    "problem": "The work failed after it was paid for; why is not told, because it may depend on the data.",
    "fix": "ask the owner of the data, who sees the kind of failure; what was paid stays paid.",
}
_TOLD = (HubError, ForbiddenError, NotFoundError, ConflictError)
"""Refusals whose words are meant for the person who asked."""
_STAYS_PAID = "what was paid stays paid, because nobody can tell what was looked at."


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """Work that may be done: the case, what pays for it, the account as it stood, and what the run brings along."""

    case: Case
    receipt: Receipt | None
    account: Account | None
    material: Any = None


def _just_open(view: str, opener: Callable[[], Table]) -> Table:  # noqa: ARG001  # nothing is kept open
    return opener()


def perform(hub: Hub, held: Claim, progress: Progress, *, open_table: OpenTable = _just_open) -> None:
    """Do the work of a claim and keep what it gives, unless the claim was lost or the policy has changed.

    Args:
        hub: the hub.
        held: the claim.
        progress: called by the work with its share, 0 to 1, and its stage; it may raise to break off.
        open_table: keeps tables open between runs.
    """
    began = time.monotonic()
    if perform_chore(hub, held, progress):
        return
    order = _prepare(hub, held)
    while order is not None:
        try:
            recalled = histories.recall(hub, order.case)
            outcome = _run(hub, order, progress, open_table, recalled)
        except Exception as error:  # noqa: BLE001  # whatever a service raises, it ends this work and not the worker
            _wait(hub, began)
            _fail(hub, held, error)
            return
        _wait(hub, began)
        if _keep(hub, held, order, outcome, recalled):
            return


def take(hub: Hub, worker: str) -> Claim | None:
    """Claim the oldest work for a worker, after ending what was lost too often."""
    with hub.store.writing() as session:
        for job in queue.sweep(session):
            _tell(session, job)
        return queue.claim(session, worker, hub.settings.lease_seconds)


def next_moment(elapsed: float, first: float) -> float:
    """Return the first of ``first``, twice, four times ... as much that is not over yet; 0 has no such moments."""
    moment = first
    while 0 < moment < elapsed:
        moment *= 2
    return moment


# Before --------------------------------------------------------------------------------------------------------------


def _prepare(hub: Hub, held: Claim) -> Order | None:
    """Return what is to be done, or end the work here where it may not be done any more."""
    with hub.store.reading() as session:
        job = session.get(Job, held.job_id)
        if job is None:
            return None
        try:
            case = _consider(session, job)
            material = None if case.material is None else case.material.open(hub)
        except HubUnavailableError:
            raise
        except CloisterError as error:
            refusal = error
        else:
            account = reserving.account_of(hub.store.ledger(session), case.dataset.id)
            session.expunge_all()
            return Order(case=case, receipt=_receipt(job), account=account, material=material)
    _deny(hub, held, refusal)
    return None


def _consider(session: Session, job: Job) -> Case:
    """Return the case of a job as its requester and the policy are now, if it is still the one that was planned."""
    if job.requester.is_disabled:
        raise HubError("Your account was closed.", fix=_STAYS_PAID)
    case = consider(
        session,
        dataset_id=str(job.dataset_id),
        subject=subject_of(job.requester),
        service=job.service,
        parameters=job.parameters,
        purpose=job.purpose,
        version_id=job.version_id,
    )
    planned = (job.plan["view"], job.plan["used"], job.service_version)
    if (case.view, case.used, case.algorithm.version) != planned:
        raise HubError("The policy, the data or the service was changed after this was asked for.", fix=_STAYS_PAID)
    return case


def _receipt(job: Job) -> Receipt | None:
    if job.receipt is None:
        return None
    values = {name: value for name, value in job.receipt.items() if name != "schema"}
    return Receipt(**values | {"cost": Budget.from_dict(values["cost"])})


# The work ------------------------------------------------------------------------------------------------------------


def _run(hub: Hub, order: Order, progress: Progress, open_table: OpenTable, recalled: Recalled | None) -> Outcome:
    case = order.case
    amount = None if order.receipt is None else order.receipt.cost
    with reserving.ledger_with(amount, dataset=case.dataset, account=order.account) as reserved:
        work = Work(
            table=open_table(case.view, lambda: views.open_view(hub, case.version, case.decision)),
            rights=views.rights_of(case.version, case.decision),
            account=case.dataset.id,
            facts=dict(case.dataset.facts) | {"mode": case.dataset.mode},
            version=case.version.id,
            ledger=reserved,
            remembered=None if recalled is None else recalled.values,
            progress=progress,
            material=order.material,
        )
        return case.algorithm.run(work, case.parameters)


def _wait(hub: Hub, began: float) -> None:
    elapsed = time.monotonic() - began
    time.sleep(max(next_moment(elapsed, hub.settings.answer_seconds) - elapsed, 0))


# After ---------------------------------------------------------------------------------------------------------------


def _keep(hub: Hub, held: Claim, order: Order, outcome: Outcome, recalled: Recalled | None) -> bool:
    """Keep the result, the answer for repeats, the history and the end of the work, all or nothing.

    Returns whether the work is over; if not, somebody else of the organisation was answered in the meantime, and what
    may be answered has to be decided again.
    """
    refusal: CloisterError | None = None
    with hub.store.writing() as session:
        job = queue.hold(session, held)
        if job is None:
            return True
        if job.is_cancel_requested:
            queue.end(job, State.CANCELED)
            _tell(session, job)
            return True
        try:
            case = _consider(session, job)
        except HubUnavailableError:
            raise
        except CloisterError as error:
            refusal = error
        else:
            if not _remember(hub, session, case, outcome, recalled):
                return False
            results.keep(hub, session, job, outcome, provenance_of(case, order.receipt, job))
            if order.receipt is not None and order.receipt.key is not None:
                hub.store.ledger(session).store_answer(order.receipt, answer={"job": job.id})
            waits = case.algorithm.needs_approval
            queue.end(job, State.WAITING if waits else State.DONE)
            _tell(session, job, waits=waits)
    if refusal is not None:
        _deny(hub, held, refusal)
    return True


def _remember(hub: Hub, session: Session, case: Case, outcome: Outcome, recalled: Recalled | None) -> bool:
    if outcome.remembered is None:
        return True
    if recalled is None:
        raise InternalError(f"{case.algorithm.name} remembers answers where none are recalled")
    return histories.keep(hub, session, case, recalled, outcome.remembered)


def provenance_of(case: Case, receipt: Receipt | None, job: Job) -> dict[str, Any]:
    """Return where a result comes from: everything that was decided, used and paid, without any rows."""
    return {
        "schema": "cloister.provenance/1",
        "job": job.id,
        "dataset": case.dataset.id,
        "dataset_version": case.version.number,
        "source_digest": case.version.source_digest,
        "schema_digest": digest_of(case.version.schema_text),
        "view_digest": case.view,
        "mode": case.dataset.mode,
        "trust_model": "hub",
        "policy_version": case.decision.policy_version,
        "terms": _terms(case),
        "service": case.algorithm.name,
        "service_version": case.algorithm.version,
        "used": case.used,
        "parameters": job.parameters,
        "purpose": job.purpose,
        "receipt": None
        if receipt is None
        else {"number": receipt.number, "digest": receipt.digest, "cost": receipt.cost.to_dict()},
        "software": f"cloister {_version.__version__}",
        "is_repeated": False,
    }


def _terms(case: Case) -> dict[str, Any]:
    """Return what the result inherits: the terms of the dataset, and of every column that the run could use."""
    columns = views.constraints_of(case.decision).columns
    names = views.visible_columns(case.version, case.decision)
    return write_terms(inherit([sticky_terms(case.policy), *(columns.of(name).terms for name in names)]), Terms())


def _fail(hub: Hub, held: Claim, error: Exception) -> None:
    told = incidents.DAMAGED if incidents.is_damage(error) else FAILED
    with hub.store.writing() as session:
        job = queue.hold(session, held)
        if job is None:
            return
        if job.is_cancel_requested:
            queue.end(job, State.CANCELED)
            _tell(session, job)
            return
        queue.end(job, State.FAILED, error={**told, "kind": type(error).__name__})
        _record_damage(session, job, error)
        _tell(session, job)


def _deny(hub: Hub, held: Claim, refusal: CloisterError) -> None:
    told = refusal if type(refusal) in _TOLD else HubError("This may not be done any more.", fix="ask the owner.")
    paid = _STAYS_PAID if told.fix == _STAYS_PAID else f"{told.fix} What was paid stays paid."
    with hub.store.writing() as session:
        job = queue.hold(session, held)
        if job is None:
            return
        queue.end(job, State.DENIED, error={"problem": told.problem, "fix": paid, "kind": type(refusal).__name__})
        _record_damage(session, job, refusal)
        _tell(session, job)


def _record_damage(session: Session, job: Job, error: Exception) -> None:
    if incidents.is_damage(error):
        incidents.record_damage(session, target=f"dataset:{job.dataset_id}", dataset_id=job.dataset_id)
