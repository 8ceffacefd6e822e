"""Results: sealed for the database, with where they come from, and a digest that nobody can guess.

The digest covers the document, the promise, the files, the provenance and 16 random bytes that only the holder of the
result knows. So the hub can tell anybody who has a digest whether it is genuine, and nobody can find out somebody
else's answer by asking about guesses of it.
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

from cloister.core.random import SystemRandomSource
from cloister.crypto import certificates
from cloister.crypto.keys import DataKey
from cloister.crypto.sealing import seal, unseal
from cloister.errors import CloisterError, ConflictError, DecryptionError, ForbiddenError, NotFoundError
from cloister.hub.domain.actions import Relation
from cloister.hub.domain.jobs import State
from cloister.hub.hub import Hub
from cloister.hub.jobs import queue
from cloister.hub.services.authorizing import Access
from cloister.hub.services.registry import File, Outcome
from cloister.hub.services.running.considering import canonical, check_may_have
from cloister.hub.services.running.previewing import target_id
from cloister.hub.services.running.release_registry import certificate_file, certificate_of
from cloister.hub.services.targets import load_target
from cloister.hub.store.models import Job, Result, new_id

__all__ = ["SeenResult", "give_again", "keep", "read_result", "see_result", "verify_result"]

_PURPOSE = "result"
_NONCE_BYTES = 16


@dataclass(frozen=True, slots=True, kw_only=True)
class SeenResult:
    """A result as its reader sees it."""

    job_id: str
    outcome: Outcome
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

    def file(self, name: str) -> File:
        """Return a file that the result brings along, or the certificate of a release."""
        if name == certificates.NAME and self.certificate is not None:
            return certificate_file(self.certificate)
        for file in self.outcome.files:
            if file.name == name:
                return file
        raise NotFoundError("The result has no such file.", fix="see the result for the names of its files.")


def keep(hub: Hub, session: Session, job: Job, outcome: Outcome, provenance: dict[str, Any]) -> Result:
    """Add the sealed result of a job to its transaction; a second one for the same job would be refused."""
    nonce = SystemRandomSource().random_bytes(_NONCE_BYTES).hex()
    key = DataKey.generate()
    payload = canonical(_to_values(outcome) | {"nonce": nonce}).encode()
    result = Result(
        id=new_id("res"),
        job_id=job.id,
        sealed=seal(payload, key=key, associated=_bound(job.id)),
        wrapped_key=hub.key.wrap(key, purpose=_PURPOSE, object_id=job.id),
        guarantee=outcome.guarantee,
        provenance=provenance,
        digest=_digest(outcome, provenance, nonce),
    )
    session.add(result)
    session.flush()
    return result


def give_again(hub: Hub, session: Session, stored: Result, job: Job) -> None:
    """End a job with a copy of a result that was paid for before."""
    outcome, _ = _open(hub, stored)
    provenance = stored.provenance | {"job": job.id, "is_repeated": True, "purpose": job.purpose}
    keep(hub, session, job, outcome, provenance)
    queue.end(job, State.DONE)


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
        if job.plan.get("needs_approval") and Relation.OWNER not in relations:
            check_may_have(session, access.person, job)
        return see_result(hub, session, job, is_owner=Relation.OWNER in relations)


def see_result(hub: Hub, session: Session, job: Job, *, is_owner: bool) -> SeenResult:
    """Return a result to somebody who may have it; measurements of rows that were deleted are shown to nobody."""
    stored = session.scalars(select(Result).where(Result.job_id == job.id)).one_or_none()
    if stored is None:
        raise ConflictError("There is no result.", fix="look at the job; it says how far it is.")
    outcome, nonce = _open(hub, stored)
    covered = _covered(outcome, stored.provenance, nonce)
    is_out = bool(job.plan.get("needs_approval")) and job.state == State.DONE
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
        found = select(Result, Job).join(Job, Job.id == Result.job_id)
        row = session.execute(found.where(Result.digest == digest, Job.state == State.DONE.value)).first()
        if row is None:
            return False
        stored, job = row
        try:
            outcome, nonce = _open(hub, stored)
        except DecryptionError:
            return False
        is_whole = hmac.compare_digest(_digest(outcome, stored.provenance, nonce), stored.digest)
        return is_whole and _is_paid(hub, session, stored.provenance) and stored.provenance.get("job") == job.id


def _check_reader(job: Job, relations: frozenset[Relation]) -> None:
    if job.plan.get("owners_only"):
        _check_owner_reads(job, relations)
        return
    is_release = bool(job.plan.get("needs_approval"))
    sees_release = is_release and Relation.OWNER in relations
    if Relation.REQUESTER not in relations and not sees_release:
        raise ForbiddenError("Only the person who asked sees the answer.", fix="ask that person.")
    if job.state == State.DONE or (job.state == State.WAITING and sees_release):
        return
    if job.state == State.WAITING:
        raise ConflictError("The owner has not decided about this release yet.", fix="wait for the owner.")
    raise ConflictError("There is no result.", fix="look at the job; it says how far it is.")


def _check_owner_reads(job: Job, relations: frozenset[Relation]) -> None:
    """Raise unless an owner of the data reads what is for owners: it is about people, and nothing protects it."""
    if Relation.OWNER not in relations:
        raise ForbiddenError("Only owners of the data may see this.", fix="ask an owner.")
    if job.state != State.DONE:
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


def _digest(outcome: Outcome, provenance: dict[str, Any], nonce: str) -> str:
    return certificates.result_digest(_covered(outcome, provenance, nonce))


def _covered(outcome: Outcome, provenance: dict[str, Any], nonce: str) -> dict[str, Any]:
    """Return what the digest of a result covers."""
    return {
        "document": outcome.document,
        "guarantee": outcome.guarantee,
        "files": _facts(outcome),
        "provenance": provenance,
        "nonce": nonce,
    }


def _facts(outcome: Outcome) -> list[dict[str, Any]]:
    return [
        {
            "name": file.name,
            "media_type": file.media_type,
            "size": len(file.content),
            "sha256": hashlib.sha256(file.content).hexdigest(),
        }
        for file in outcome.files
    ]


def _open(hub: Hub, stored: Result) -> tuple[Outcome, str]:
    key = hub.key.unwrap(stored.wrapped_key, purpose=_PURPOSE, object_id=stored.job_id)
    values = json.loads(unseal(stored.sealed, key=key, associated=_bound(stored.job_id)))
    return _from_values(values), str(values["nonce"])


def _bound(job_id: str) -> bytes:
    return f"result of {job_id}".encode()


def _to_values(outcome: Outcome) -> dict[str, Any]:
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


def _from_values(values: dict[str, Any]) -> Outcome:
    return Outcome(
        document=values["document"],
        summary=tuple((str(name), str(text)) for name, text in values["summary"]),
        guarantee=values["guarantee"],
        figure=values["figure"],
        report=values["report"],
        is_report_for_owner=bool(values.get("is_report_for_owner")),
        owner_report=str(values.get("owner_report", "")),
        files=tuple(
            File(name=name, media_type=media_type, content=base64.b64decode(content))
            for name, media_type, content in values["files"]
        ),
        owner_only=values["owner_only"],
    )


def _without_owner_only(outcome: Outcome) -> Outcome:
    report = "" if outcome.is_report_for_owner else outcome.report
    return replace(outcome, owner_only={}, owner_report="", report=report)
