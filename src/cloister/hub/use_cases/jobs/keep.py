"""Step 5 of a job: its sealed result and what an organization was answered are kept, it ends, and people are told.

Results are sealed for the database, with where they come from, and a digest that nobody can guess. The digest covers
the document, the promise, the files, the provenance and 16 random bytes that only the holder of the result knows. So
the hub can tell anybody who has a digest whether it is genuine, and nobody can find out somebody else's answer by
asking about guesses of it.

What an organisation was answered under inference control is read before a run, and kept with its result or not at all.
A history has a revision. A run decides on the one that it read; its result is kept only while that is still the newest,
under a lock on the history's row, in the transaction that keeps the result. So of two runs at once one is decided again
after the other, and a killed worker has neither told nor remembered anything.

That work has ended is told to people and to the audit log.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
from dataclasses import dataclass, replace
from typing import Any

from sqlalchemy import select
from sqlalchemy.orm import Session

from cloister.core.digests import canonical
from cloister.core.random import SystemRandomSource
from cloister.crypto import certificates
from cloister.crypto.keys import DataKey
from cloister.crypto.sealed_data import seal, unseal
from cloister.errors import CloisterError, ConflictError, DecryptionError, ForbiddenError, NotFoundError
from cloister.hub import queue
from cloister.hub.domain import audit_chain
from cloister.hub.domain.actions import ObjectRelation
from cloister.hub.domain.lifecycles import JobState
from cloister.hub.domain.policy import Mode
from cloister.hub.hub import Hub
from cloister.hub.services.registry import ResultFile, ServiceOutcome, service_registry
from cloister.hub.store.models import AnswerHistory, Job, ResultRecord, new_id
from cloister.hub.use_cases import audit_log
from cloister.hub.use_cases.authorization import Access, load_target
from cloister.hub.use_cases.jobs._release_registry import certificate_file, certificate_of
from cloister.hub.use_cases.jobs.decide import RunCase, check_may_have
from cloister.hub.use_cases.jobs.plan import target_id
from cloister.hub.use_cases.notices import notify, notify_owners

__all__ = [
    "Recalled",
    "SeenResult",
    "give_again",
    "keep_history",
    "keep_result",
    "read_result",
    "recall",
    "see_result",
    "tell_end",
    "verify_result",
]


_HISTORY_PURPOSE = "history"


@dataclass(frozen=True, slots=True, kw_only=True)
class Recalled:
    """A history as it was read: whose, which revision, and what it holds; nothing before the first answer."""

    asker: str
    revision: int
    values: dict[str, Any] | None


def recall(hub: Hub, case: RunCase) -> Recalled | None:
    """Return what the asker's organisation was answered; None for datasets that are not under inference control."""
    if case.dataset.mode != Mode.SDC:
        return None
    # What colleagues were answered counts together, since they can hold their answers against each other.
    asker = case.subject.organisation_id or case.subject.user_id
    found = _read_history(hub, case.dataset.id, asker)
    if found is None:
        _begin_history(hub, case.dataset.id, asker)
        found = _read_history(hub, case.dataset.id, asker)
    if found is None:
        raise ConflictError("The dataset was deleted.", fix="use another one.")
    return found


def keep_history(hub: Hub, session: Session, case: RunCase, before: Recalled, values: dict[str, Any]) -> bool:
    """Keep what a history has become, unless somebody else was answered since; return whether it was kept."""
    statement = (
        select(AnswerHistory)
        .where(AnswerHistory.dataset_id == case.dataset.id, AnswerHistory.asker == before.asker)
        .with_for_update()
        .execution_options(populate_existing=True)
    )
    # Read anew under its lock, as the session may hold an older copy.
    row = session.scalars(statement).first()
    if row is None or row.revision != before.revision:
        return False
    key = DataKey.generate()
    row.revision += 1
    # The revision is bound in: an earlier history that was put back no longer opens under the newer number.
    row.sealed = seal(canonical(values).encode(), key=key, associated=_bind_history(row))
    row.wrapped_key = hub.key.wrap(key, purpose=_HISTORY_PURPOSE, object_id=_name_history(row))
    session.flush()
    return True


def _read_history(hub: Hub, dataset_id: str, asker: str) -> Recalled | None:
    with hub.store.reading() as session:
        row = session.get(AnswerHistory, (dataset_id, asker))
        if row is None:
            return None
        values = None
        if row.sealed is not None and row.wrapped_key is not None:
            key = hub.key.unwrap(row.wrapped_key, purpose=_HISTORY_PURPOSE, object_id=_name_history(row))
            values = json.loads(unseal(row.sealed, key=key, associated=_bind_history(row)))
        return Recalled(asker=asker, revision=row.revision, values=values)


def _begin_history(hub: Hub, dataset_id: str, asker: str) -> None:
    """Make the row that later runs lock; another run may have made it at the same moment."""
    try:
        with hub.store.writing() as session:
            session.add(AnswerHistory(dataset_id=dataset_id, asker=asker, revision=0))
    except ConflictError:
        return


def _name_history(row: AnswerHistory) -> str:
    return f"{row.dataset_id} {row.asker}"


def _bind_history(row: AnswerHistory) -> bytes:
    return f"history of {_name_history(row)}, revision {row.revision}".encode()


_RESULT_PURPOSE = "result"
_NONCE_BYTES = 16


@dataclass(frozen=True, slots=True, kw_only=True)
class SeenResult:
    """A result as its reader sees it."""

    job_id: str
    outcome: ServiceOutcome
    provenance: dict[str, Any]
    nonce: str
    digest: str
    certificate: dict[str, Any] | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return JSON-ready values; files and the report have addresses of their own."""
        outcome, address = self.outcome, f"/api/v1/jobs/{self.job_id}"
        return {
            "schema": "cloister.job_result/1",
            "job": self.job_id,
            "document": outcome.document,
            "guarantee": outcome.guarantee,
            "summary": [list(row) for row in outcome.summary],
            "figure": outcome.figure,
            "report": f"{address}/report" if outcome.report else None,
            "owner_report": f"{address}/owner-report" if outcome.owner_report else None,
            "files": [{**facts, "address": f"{address}/files/{facts['name']}"} for facts in _facts(outcome)],
            "certificate": None if self.certificate is None else f"{address}/files/{certificates.NAME}",
            "owner_only": outcome.owner_only,
            "provenance": self.provenance,
            "nonce": self.nonce,
            "digest": self.digest,
        }

    def file(self, name: str) -> ResultFile:
        """Return a file that the result brings along, or the certificate of a release."""
        if name == certificates.NAME and self.certificate is not None:
            return certificate_file(self.certificate)
        for file in self.outcome.files:
            if file.name == name:
                return file
        raise NotFoundError("The result has no such file.", fix="see the result for the names of its files.")


def keep_result(
    hub: Hub, session: Session, job: Job, outcome: ServiceOutcome, provenance: dict[str, Any]
) -> ResultRecord:
    """Add the sealed result of a job to its transaction; a second one for the same job would be refused."""
    nonce = SystemRandomSource().random_bytes(_NONCE_BYTES).hex()
    key = DataKey.generate()
    payload = canonical(_to_values(outcome) | {"nonce": nonce}).encode()
    result = ResultRecord(
        id=new_id("res"),
        job_id=job.id,
        sealed=seal(payload, key=key, associated=_bind_result(job.id)),
        wrapped_key=hub.key.wrap(key, purpose=_RESULT_PURPOSE, object_id=job.id),
        guarantee=outcome.guarantee,
        provenance=provenance,
        digest=_digest(outcome, provenance, nonce),
    )
    session.add(result)
    session.flush()
    return result


def give_again(hub: Hub, session: Session, stored: ResultRecord, job: Job) -> None:
    """End a job with a copy of a result that was paid for before."""
    outcome, _ = _open(hub, stored)
    provenance = stored.provenance | {"job": job.id, "is_repeated": True, "purpose": job.purpose}
    keep_result(hub, session, job, outcome, provenance)
    queue.end(job, JobState.DONE)


def read_result(hub: Hub, access: Access, job_id: str | None = None) -> SeenResult:
    """Return a result to the person who asked for it, or a release to the owner who decides or has decided about it.

    A release is handed out for as long as the policy lets the person have it; what is for owners, to owners only.

    Raises:
        ConflictError: if there is no result yet.
        ForbiddenError: if it is an answer to somebody else.
    """
    with hub.store.reading() as session:
        target = load_target(session, "job", job_id or target_id(access))
        if target is None:
            raise NotFoundError("There is no such job, or you may not see it.", fix="check the address.")
        job: Job = target.item
        relations = target.relations(access.person)
        _check_reader(job, relations)
        if job.plan.get("needs_approval") and ObjectRelation.OWNER not in relations:
            # Approved once, handed out many times: who has lost access since then does not get it any more.
            check_may_have(session, access.person, job)
        return see_result(hub, session, job, is_owner=ObjectRelation.OWNER in relations)


def see_result(hub: Hub, session: Session, job: Job, *, is_owner: bool) -> SeenResult:
    """Return a result to somebody who may have it; measurements of rows that were deleted are shown to nobody."""
    stored = session.scalars(select(ResultRecord).where(ResultRecord.job_id == job.id)).one_or_none()
    if stored is None:
        raise ConflictError("There is no result.", fix="look at the job; it says how far it is.")
    outcome, nonce = _open(hub, stored)
    covered = _list_covered(outcome, stored.provenance, nonce)
    is_out = bool(job.plan.get("needs_approval")) and job.state == JobState.DONE
    is_gone = job.dataset is not None and job.dataset.state == "deleted"
    return SeenResult(
        job_id=job.id,
        outcome=outcome if is_owner and not is_gone else _without_owner_only(outcome),
        provenance=stored.provenance,
        nonce=nonce,
        digest=stored.digest,
        certificate=certificate_of(job, covered, stored.digest) if is_out else None,
    )


def verify_result(hub: Hub, digest: str) -> bool:
    """Return whether a result with this digest left the hub and is still what its record says: yes or no, no more."""
    with hub.store.reading() as session:
        found = select(ResultRecord, Job).join(Job, Job.id == ResultRecord.job_id)
        # What waits for its owner has not left the hub, and so does not exist for strangers.
        row = session.execute(found.where(ResultRecord.digest == digest, Job.state == JobState.DONE.value)).first()
        if row is None:
            return False
        stored, job = row
        try:
            outcome, nonce = _open(hub, stored)
        except DecryptionError:
            return False
        is_whole = hmac.compare_digest(_digest(outcome, stored.provenance, nonce), stored.digest)
        # Whole, paid for, and of this work: a record that was copied to another piece of work is none of its results.
        return is_whole and _is_paid(hub, session, stored.provenance) and stored.provenance.get("job") == job.id


def _check_reader(job: Job, relations: frozenset[ObjectRelation]) -> None:
    if job.plan.get("owners_only"):
        _check_owner_reads(job, relations)
        return
    is_release = bool(job.plan.get("needs_approval"))
    sees_release = is_release and ObjectRelation.OWNER in relations
    if ObjectRelation.REQUESTER not in relations and not sees_release:
        raise ForbiddenError("Only the person who asked sees the answer.", fix="ask that person.")
    if job.state == JobState.DONE or (job.state == JobState.WAITING and sees_release):
        return
    if job.state == JobState.WAITING:
        raise ConflictError("The owner has not decided about this release yet.", fix="wait for the owner.")
    raise ConflictError("There is no result.", fix="look at the job; it says how far it is.")


def _check_owner_reads(job: Job, relations: frozenset[ObjectRelation]) -> None:
    """Raise unless an owner of the data reads what is for owners: it is about people, and nothing protects it."""
    if ObjectRelation.OWNER not in relations:
        raise ForbiddenError("Only owners of the data may see this.", fix="ask an owner.")
    if job.state != JobState.DONE:
        raise ConflictError("There is no result.", fix="look at the job; it says how far it is.")


def _is_paid(hub: Hub, session: Session, provenance: dict[str, Any]) -> bool:
    """Return whether the ledger still has the receipt that a provenance names."""
    receipt = provenance.get("receipt")
    if receipt is None:
        return True
    try:
        entries = hub.store.ledger(session).entries(str(provenance["dataset"]))
    except CloisterError:
        return False
    return any(entry.number == receipt["number"] and entry.digest == receipt["digest"] for entry in entries)


def _digest(outcome: ServiceOutcome, provenance: dict[str, Any], nonce: str) -> str:
    return certificates.result_digest(_list_covered(outcome, provenance, nonce))


def _list_covered(outcome: ServiceOutcome, provenance: dict[str, Any], nonce: str) -> dict[str, Any]:
    """Return what the digest of a result covers."""
    return {
        "document": outcome.document,
        "guarantee": outcome.guarantee,
        "files": _facts(outcome),
        "provenance": provenance,
        "nonce": nonce,
    }


def _facts(outcome: ServiceOutcome) -> list[dict[str, Any]]:
    return [
        {
            "name": file.name,
            "media_type": file.media_type,
            "size": len(file.content),
            "sha256": hashlib.sha256(file.content).hexdigest(),
        }
        for file in outcome.files
    ]


def _open(hub: Hub, stored: ResultRecord) -> tuple[ServiceOutcome, str]:
    key = hub.key.unwrap(stored.wrapped_key, purpose=_RESULT_PURPOSE, object_id=stored.job_id)
    values = json.loads(unseal(stored.sealed, key=key, associated=_bind_result(stored.job_id)))
    return _from_values(values), str(values["nonce"])


def _bind_result(job_id: str) -> bytes:
    return f"result of {job_id}".encode()


def _to_values(outcome: ServiceOutcome) -> dict[str, Any]:
    return {
        "document": outcome.document,
        "summary": [list(row) for row in outcome.summary],
        "guarantee": outcome.guarantee,
        "figure": outcome.figure,
        "report": outcome.report,
        "is_report_for_owner": outcome.is_report_for_owner,
        "owner_report": outcome.owner_report,
        "files": [[file.name, file.media_type, base64.b64encode(file.content).decode()] for file in outcome.files],
        "owner_only": outcome.owner_only,
    }


def _from_values(values: dict[str, Any]) -> ServiceOutcome:
    return ServiceOutcome(
        document=values["document"],
        summary=tuple((str(name), str(text)) for name, text in values["summary"]),
        guarantee=values["guarantee"],
        figure=values["figure"],
        report=values["report"],
        is_report_for_owner=bool(values.get("is_report_for_owner")),
        owner_report=str(values.get("owner_report", "")),
        files=tuple(
            ResultFile(name=name, media_type=media_type, content=base64.b64decode(content))
            for name, media_type, content in values["files"]
        ),
        owner_only=values["owner_only"],
    )


def _without_owner_only(outcome: ServiceOutcome) -> ServiceOutcome:
    report = "" if outcome.is_report_for_owner else outcome.report
    return replace(outcome, owner_only={}, owner_report="", report=report)


def tell_end(session: Session, job: Job, *, waits: bool = False) -> None:
    """Note the end of work, for the audit, the requester, and the owners where they have to decide or it failed."""
    audit_log.append(
        session,
        "job.end",
        by=audit_log.HUB,
        target=f"job:{job.id}",
        dataset_id=job.dataset_id,
        outcome=audit_chain.AuditOutcome.REFUSED if job.state == JobState.DENIED else audit_chain.AuditOutcome.DONE,
        service=job.service,
        state=job.state,
    )
    name = "" if job.dataset is None else f" on {job.dataset.title or job.dataset.name}"
    title = service_registry.get(job.service).title if job.service in service_registry else job.service
    notify(session, job.requester_id, f"{title}{name}: {_WORDS[JobState(job.state)]}", link=f"/jobs/{job.id}")
    if job.dataset is not None and (waits or job.state == JobState.FAILED):
        words = "a release waits for your decision." if waits else "a run failed."
        owner = job.dataset.organisation_id
        notify_owners(session, owner, f"{title}{name}: {words}", link=f"/jobs/{job.id}", but=job.requester_id)


_WORDS = {
    JobState.DONE: "the result is there.",
    JobState.WAITING: "the result is made, and waits for the owner's decision.",
    JobState.FAILED: "the work failed.",
    JobState.DENIED: "the work was denied.",
    JobState.CANCELED: "the work was canceled.",
}
