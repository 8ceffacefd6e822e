"""Step 4 of a job, in a worker: decided again, run against the reservation, and kept in one transaction.

A worker may vanish anywhere in here. Before the last transaction nothing of its work is visible; after it, everything.

A service that fails on the rows is run again on a table without rows, the one that it was planned on, and that is the
answer: whether work fails may depend on a single row, so the person who asked, the owner and the audit see work that
is done. So ends work that has lost three workers. Operators are told how often that happened, and nothing else.

Results are kept only at certain moments after the claim: the setting ``answer_seconds``, and twice, four times, eight
times as much, and so on; so is the end of work that its requester breaks off. How long a run took may depend on the
data; in this way a duration tells at most which power of two it reached. What a private service reports on its way is
for the worker only: `overview` shows nobody a stage that rows have reached.

Chores are about no dataset, so that their failures may be told in full.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection
from dataclasses import dataclass, replace
from typing import Any

from sqlalchemy.orm import Session

from cloister import _version
from cloister.accounting.budget import Budget
from cloister.accounting.ledger import Account, Receipt
from cloister.accounting.payment import failure_count, finish
from cloister.core.digests import digest_of
from cloister.core.guarantees import NoGuarantee
from cloister.data.table import Table
from cloister.errors import (
    CloisterError,
    ConflictError,
    ForbiddenError,
    HubError,
    HubUnavailableError,
    InternalError,
    NotFoundError,
    SandboxUnavailableError,
    SourceNotFoundError,
)
from cloister.hub import queue
from cloister.hub.domain.lifecycles import JobState
from cloister.hub.domain.policy_file import sticky_terms, write_terms
from cloister.hub.domain.terms import UsageTerms, inherit
from cloister.hub.hub import Hub
from cloister.hub.queue import BrokenOff, Claim, FailureCount, Standing
from cloister.hub.services.registry import ServiceOutcome, ServiceWork
from cloister.hub.store.models import Job
from cloister.hub.use_cases import _spending_limits as spending_limits, notices
from cloister.hub.use_cases._chores import Chore, chores
from cloister.hub.use_cases.datasets import _views as views
from cloister.hub.use_cases.jobs import keep
from cloister.hub.use_cases.jobs.decide import RunCase, consider
from cloister.hub.use_cases.jobs.keep import Recalled, tell_end
from cloister.hub.use_cases.sessions import subject_of

__all__ = ["Progress", "next_moment", "perform", "perform_chore", "take"]

Progress = Callable[[float, str], None]
OpenTable = Callable[[str, Callable[[], Table]], Table]
"""Returns the table of a view, which is opened only if it is not open already."""

FAILED = {
    "problem": "The work failed.",
    "fix": "ask the owner of the data, who sees the kind of failure; what was paid stays paid.",
}
NOTHING = "Nothing was learned."
_TOLD = (HubError, ForbiddenError, NotFoundError, ConflictError)
"""Refusals whose words are meant for the person who asked."""
_CHORE_FAILED = {"problem": "The work failed.", "fix": "try again; if it stays, tell the operator."}
_STAYS_PAID = "what was paid stays paid, because nobody can tell what was looked at."


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """Work that may be done: the case, what pays for it, the account as it stood, and what the run brings along.

    Attributes:
        case: what is asked, and what the policy says.
        receipt: what was paid.
        account: of the dataset, as it stood.
        guarantee: what was promised, as JSON-ready values; None where nothing is paid.
        material: what the run brings along.
        is_last: whether the rows may not be looked at again, because workers were lost with them.
    """

    case: RunCase
    receipt: Receipt | None
    account: Account | None
    guarantee: dict[str, Any] | None = None
    material: Any = None
    is_last: bool = False


def _just_open(view: str, opener: Callable[[], Table]) -> Table:  # noqa: ARG001  # nothing is kept open
    return opener()


def perform(hub: Hub, held: Claim, progress: Progress, *, open_table: OpenTable = _just_open) -> None:
    """Do the work of a claim and keep what it gives, unless the claim was lost or the policy has changed.

    Args:
        hub: the hub.
        held: the claim.
        progress: called by the work with its share, 0 to 1, and its stage; it may raise to break off.
        open_table: keeps tables open between runs.

    Raises:
        SourceNotFoundError: if a file of the work is not here; nothing was looked at, and the work is given back.
    """
    began = time.monotonic()
    if perform_chore(hub, held, progress):
        return
    order = _prepare(hub, held)
    while order is not None:
        try:
            # Read anew in every round, because a colleague may have been answered since the last one.
            recalled = keep.recall(hub, order.case)
            outcome = _run(hub, order, progress, open_table, recalled)
        except HubUnavailableError:
            raise
        except BrokenOff as reason:
            if reason.standing is Standing.CANCELED and not order.case.service.owners_only:
                _wait(hub, began)  # where work hears that it is to stop may depend on the rows
            raise
        except Exception as error:  # noqa: BLE001  # what no row decides, or what owners ask for themselves
            _wait(hub, began)
            _fail(hub, held, error)
            return
        _wait(hub, began)
        if _keep(hub, held, order, outcome, recalled):
            return


def take(hub: Hub, worker: str, *, passed_over: Collection[str] = ()) -> Claim | None:
    """Claim the oldest work for a worker, but none that it cannot do, after ending what was lost too often."""
    lease_seconds = hub.settings.lease_seconds
    with hub.store.writing() as session:
        for job in queue.sweep(session, lease_seconds=lease_seconds):
            tell_end(session, job)
        return queue.claim(session, worker, lease_seconds, passed_over=passed_over)


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
            # Decided again, because time has passed: who lost access while the work waited gets no answer.
            case = _consider(session, job)
            material = None if case.material is None else case.material.open(hub)
            # Missing files are noticed before any row is read, so that nothing about rows decides where the work goes.
            hub.blobs.check_present(str(case.version.blob_id))
        except HubUnavailableError:
            raise
        except CloisterError as error:
            refusal = error
        else:
            account = spending_limits.account_of(hub.store.ledger(session), case.dataset.id)
            # The order outlives this transaction: what it holds must not be loaded again on the way.
            session.expunge_all()
            return Order(
                case=case,
                receipt=_receipt(job),
                account=account,
                guarantee=job.plan.get("guarantee"),
                material=material,
                is_last=held.is_last,
            )
    if isinstance(refusal, SourceNotFoundError):
        _give_back(hub, held, refusal)
        raise refusal
    _deny(hub, held, refusal)
    return None


def _give_back(hub: Hub, held: Claim, error: CloisterError) -> None:
    """Put work back whose files are missing here, for a worker that has them or until they are restored."""
    with hub.store.writing() as session:
        job = queue.hold(session, held)
        if job is not None:
            _record_damage(session, job, error)
        queue.give_back(session, held)


def _consider(session: Session, job: Job) -> RunCase:
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
    # What was planned and paid is what runs: a changed view, algorithm or version would be another question.
    if (case.view, case.used, case.service.version) != planned:
        raise HubError("The policy, the data or the service was changed after this was asked for.", fix=_STAYS_PAID)
    return case


def _receipt(job: Job) -> Receipt | None:
    if job.receipt is None:
        return None
    values = {name: value for name, value in job.receipt.items() if name != "schema"}
    return Receipt(**values | {"cost": Budget.from_dict(values["cost"])})


# The work ------------------------------------------------------------------------------------------------------------


def _run(
    hub: Hub, order: Order, progress: Progress, open_table: OpenTable, recalled: Recalled | None
) -> ServiceOutcome:
    """Return what the service gives for the rows or, where it fails on them, for a table without rows.

    Raises:
        Exception: what no row decides: that stored rows are damaged, or that the machine cannot confine foreign code;
            and any failure of a service for owners, who may see their rows.
    """
    case, forward, before = order.case, _Forward(progress), failure_count()
    remembered = None if recalled is None else recalled.values
    table = None
    # Rows that may have brought down workers before are not opened again.
    if not order.is_last:
        table = open_table(case.view, lambda: views.open_view(hub, case.version, case.decision))

    def somebody() -> ServiceOutcome | Exception:
        if table is None:
            raise InternalError("workers were lost with the rows")
        return _serve(order, table, forward, remembered)

    def nobody() -> ServiceOutcome | Exception:
        try:
            return _about_nobody(order, forward)
        except Exception as error:  # noqa: BLE001  # some services can do nothing without rows
            return _nothing(order, error)

    # Owners may know how their own rows fail; everybody else gets an answer of the same form either way.
    found = somebody() if case.service.owners_only else finish(somebody, nothing=nobody)
    FailureCount(hub.settings.folder).add(failure_count() - before)
    if isinstance(found, Exception):
        raise found
    return found


class _Forward:
    """Progress that never goes back: a second run is not to be seen."""

    def __init__(self, progress: Progress) -> None:
        self._progress, self._reached = progress, (0.0, "")

    def __call__(self, share: float, stage: str) -> None:
        if share >= self._reached[0]:
            self._reached = (share, stage)
        self._progress(*self._reached)


def _serve(
    order: Order, table: Table, progress: Progress, remembered: dict[str, Any] | None
) -> ServiceOutcome | Exception:
    """Return what the service gives for a table, or a problem of the machine, which no row decides."""
    case = order.case
    amount = None if order.receipt is None else order.receipt.cost
    with spending_limits.ledger_with(amount, dataset=case.dataset, account=order.account) as reserved:
        work = ServiceWork(
            table=table,
            rights=views.rights_of(case.version, case.decision),
            account=case.dataset.id,
            facts=dict(case.dataset.facts) | {"mode": case.dataset.mode},
            version=case.version.id,
            ledger=reserved,
            remembered=remembered,
            progress=progress,
            material=order.material,
        )
        try:
            return case.service.run(work, case.parameters)
        except SandboxUnavailableError as error:  # sandboxes are opened before any row is read
            return error
        except Exception as error:
            if notices.is_damage(error):
                return error
            raise


def _about_nobody(order: Order, progress: Progress) -> ServiceOutcome | Exception:
    """Return what the service gives for the table that it was planned on; it changes no history."""
    found = _serve(order, views.empty_view(order.case.version, order.case.decision), progress, None)
    return replace(found, remembered=None) if isinstance(found, ServiceOutcome) else found


def _nothing(order: Order, error: Exception) -> ServiceOutcome:
    """Return the result of a service that can do nothing without rows.

    Where an owner decides about a table that promises no differential privacy, the owner sees why there is none.
    """
    promise = order.guarantee or NoGuarantee(reason="nothing was computed from the rows").to_dict()
    is_for_owner = order.guarantee is None and order.case.service.needs_approval
    return ServiceOutcome(
        document={"schema": "cloister.nothing_learned/1", "text": NOTHING, "guarantee": promise},
        summary=(("answer", NOTHING),),
        guarantee=promise,
        owner_only={"summary_failure": type(error).__name__} if is_for_owner else {},
    )


def _wait(hub: Hub, began: float) -> None:
    elapsed = time.monotonic() - began
    time.sleep(max(next_moment(elapsed, hub.settings.answer_seconds) - elapsed, 0))


# After ---------------------------------------------------------------------------------------------------------------


def _keep(hub: Hub, held: Claim, order: Order, outcome: ServiceOutcome, recalled: Recalled | None) -> bool:
    """Keep the result, the answer for repeats, the history and the end of the work, all or nothing.

    Returns whether the work is over; if not, somebody else of the organisation was answered in the meantime, and what
    may be answered has to be decided again.
    """
    refusal: CloisterError | None = None
    with hub.store.writing() as session:
        # The claim is looked at under a lock, in the transaction that keeps the result: a slow worker can keep nothing.
        job = queue.hold(session, held)
        if job is None:
            return True
        if job.is_cancel_requested:
            queue.end(job, JobState.CANCELED)
            tell_end(session, job)
            return True
        try:
            # Decided again, because work may take hours: what the policy forbids by now must not become a result.
            case = _consider(session, job)
        except HubUnavailableError:
            raise
        except CloisterError as error:
            refusal = error
        else:
            # Before the result, and with it in one transaction: an answer that nobody remembers could be combined
            # later.
            if not _remember(hub, session, case, outcome, recalled):
                return False
            keep.keep_result(hub, session, job, outcome, provenance_of(case, order.receipt, job))
            if order.receipt is not None and order.receipt.key is not None:
                hub.store.ledger(session).store_answer(order.receipt, answer={"job": job.id})
            waits = case.service.needs_approval
            queue.end(job, JobState.WAITING if waits else JobState.DONE)
            tell_end(session, job, waits=waits)
    if refusal is not None:
        _deny(hub, held, refusal)
    return True


def _remember(hub: Hub, session: Session, case: RunCase, outcome: ServiceOutcome, recalled: Recalled | None) -> bool:
    if outcome.remembered is None:
        return True
    if recalled is None:
        raise InternalError(f"{case.service.name} remembers answers where none are recalled")
    return keep.keep_history(hub, session, case, recalled, outcome.remembered)


def provenance_of(case: RunCase, receipt: Receipt | None, job: Job) -> dict[str, Any]:
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
        "service": case.service.name,
        "service_version": case.service.version,
        "used": case.used,
        "parameters": job.parameters,
        "purpose": job.purpose,
        "receipt": None
        if receipt is None
        else {"number": receipt.number, "digest": receipt.digest, "cost": receipt.cost.to_dict()},
        "software": f"cloister {_version.__version__}",
        "is_repeated": False,
    }


def _terms(case: RunCase) -> dict[str, Any]:
    """Return what the result inherits: the terms of the dataset, and of every column that the run could use."""
    columns = views.constraints_of(case.decision).columns
    names = views.visible_columns(case.version, case.decision)
    return write_terms(inherit([sticky_terms(case.policy), *(columns.of(name).terms for name in names)]), UsageTerms())


def _fail(hub: Hub, held: Claim, error: Exception) -> None:
    told = notices.DAMAGED if notices.is_damage(error) else FAILED
    with hub.store.writing() as session:
        job = queue.hold(session, held)
        if job is None:
            return
        if job.is_cancel_requested:
            queue.end(job, JobState.CANCELED)
            tell_end(session, job)
            return
        queue.end(job, JobState.FAILED, error={**told, "kind": type(error).__name__})
        _record_damage(session, job, error)
        tell_end(session, job)


def _deny(hub: Hub, held: Claim, refusal: CloisterError) -> None:
    # Only refusals that were written for the person who asked are passed on; others could say more than they may know.
    told = refusal if type(refusal) in _TOLD else HubError("This may not be done any more.", fix="ask the owner.")
    paid = _STAYS_PAID if told.fix == _STAYS_PAID else f"{told.fix} What was paid stays paid."
    with hub.store.writing() as session:
        job = queue.hold(session, held)
        if job is None:
            return
        queue.end(job, JobState.DENIED, error={"problem": told.problem, "fix": paid, "kind": type(refusal).__name__})
        _record_damage(session, job, refusal)
        tell_end(session, job)


def _record_damage(session: Session, job: Job, error: Exception) -> None:
    if notices.is_damage(error):
        notices.record_damage(session, target=f"dataset:{job.dataset_id}", dataset_id=job.dataset_id)


# Chores --------------------------------------------------------------------------------------------------------------


def perform_chore(hub: Hub, held: Claim, progress: Callable[[float, str], None]) -> bool:
    """Do the work of a claim if it is a chore, keep what it gives with its end, and return whether it was one."""
    with hub.store.reading() as session:
        job = session.get(Job, held.job_id)
        if job is None or job.service not in chores:
            return False
        chore, parameters = chores.get(job.service), dict(job.parameters)
    try:
        found = chore.work(hub, parameters, progress)
        _end_chore(hub, held, chore, found)
    # Without the database no end can be written: the claim lapses, and another worker does the work again.
    except HubUnavailableError:
        raise
    except SourceNotFoundError:
        with hub.store.writing() as session:
            queue.give_back(session, held)
        raise
    except CloisterError as error:
        _fail_chore(hub, held, {"problem": error.problem, "fix": error.fix, "kind": type(error).__name__})
    except Exception as error:  # noqa: BLE001  # whatever a chore raises, it ends this work and not the worker
        _fail_chore(hub, held, _CHORE_FAILED | {"kind": type(error).__name__})
    return True


def _end_chore(hub: Hub, held: Claim, chore: Chore, found: Any) -> None:
    with hub.store.writing() as session:
        job = queue.hold(session, held)
        if job is None:
            return
        if job.is_cancel_requested:
            queue.end(job, JobState.CANCELED)
        else:
            chore.keep(session, dict(job.parameters), found)
            queue.end(job, JobState.DONE)
        tell_end(session, job)


def _fail_chore(hub: Hub, held: Claim, error: dict[str, Any]) -> None:
    with hub.store.writing() as session:
        job = queue.hold(session, held)
        if job is None:
            return
        queue.end(job, JobState.CANCELED if job.is_cancel_requested else JobState.FAILED, error=error)
        tell_end(session, job)
