"""The registry of releases: the note on earlier tables about the same people, and what goes with each table.

Two anonymized tables about the same people can be held against each other, whatever each of them promises. The hub does
not forbid a second release; it tells the owner who decides, and writes down that it did. What differentially private
tables tell together is bounded by the budget that paid for them.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from sqlalchemy import select
from sqlalchemy.orm import Session

from cloister.core.digests import digest_of
from cloister.core.guarantees import guarantee_from_dict
from cloister.crypto import certificates
from cloister.hub.domain.lifecycles import JobState
from cloister.hub.services.registry import ResultFile
from cloister.hub.store.models import Job

__all__ = [
    "certificate_file",
    "certificate_of",
    "earlier_releases",
    "is_orphaned",
    "is_private",
    "warnings_about",
]


def earlier_releases(session: Session, job: Job) -> list[dict[str, Any]]:
    """Return the approved releases of the same dataset, the newest first; one of its own is not among them."""
    statement = (
        select(Job)
        .where(Job.dataset_id == job.dataset_id, Job.id != job.id, Job.state == JobState.DONE.value)
        .order_by(Job.created.desc(), Job.id.desc())
    )
    return [
        {
            "job": other.id,
            "service": other.service,
            "requester": other.requester.name,
            "approved": (other.decision or {}).get("time"),
            "is_private": is_private(other),
            "is_same_table": not is_private(other) and _recipe(other) == _recipe(job),
        }
        for other in session.scalars(statement)
        if other.plan.get("needs_approval") and (other.decision or {}).get("approved")
    ]


def is_private(job: Job) -> bool:
    """Return whether a job gives something differentially private: what was paid for, and stays so whatever follows."""
    return job.plan.get("guarantee") is not None


def is_orphaned(job: Job) -> bool:
    """Return whether a private release has outlived the data that it was made from."""
    is_gone = job.dataset is not None and job.dataset.state == "deleted"
    return is_gone and job.state == JobState.DONE and bool(job.plan.get("needs_approval")) and is_private(job)


def warnings_about(job: Job, earlier: list[dict[str, Any]]) -> list[str]:
    """Return what an owner should know about earlier releases before letting another one out."""
    if is_private(job):
        number = sum(1 for item in earlier if item["is_private"])
        many = "A private table" if number == 1 else f"{number} private tables"
        text = f"{many} about the same people left the hub before. What they tell together is bounded by the budget."
        return [text] if number else []
    earlier = [item for item in earlier if not item["is_private"]]
    others = [item for item in earlier if not item["is_same_table"]]
    told = []
    if others:
        count = "Another table" if len(others) == 1 else f"{len(others)} other tables"
        told.append(
            f"{count} about the same people left the hub before. Whoever has both can hold the classes of a person in "
            "one against those in the other, and may single people out whom each table alone protects."
        )
    if len(others) < len(earlier):
        told.append("The same table, by the same recipe from the same rows, left the hub before; this adds nothing.")
    return told


def certificate_of(job: Job, covered: Mapping[str, Any], digest: str) -> dict[str, Any]:
    """Return the certificate of an approved release."""
    provenance, guarantee = covered["provenance"], covered["guarantee"]
    return {
        "schema": certificates.SCHEMA,
        "digest": digest,
        "promise": guarantee_from_dict(guarantee).explain() if guarantee else "",
        "dataset": provenance["dataset"],
        "source_digest": provenance["source_digest"],
        "policy_version": provenance["policy_version"],
        "terms": provenance["terms"],
        "purpose": provenance["purpose"],
        "approved": job.decision,
        "result": {name: covered[name] for name in certificates.COVERED},
        "verification": f"/api/v1/results/{digest}/verification",
    }


def certificate_file(certificate: dict[str, Any]) -> ResultFile:
    """Return a certificate as a file."""
    text = json.dumps(certificate, indent=2, ensure_ascii=False, allow_nan=False)
    return ResultFile(name=certificates.NAME, media_type="application/json", content=f"{text}\n".encode())


def _recipe(job: Job) -> str:
    """Return what tells whether two runs give the same table."""
    return digest_of([job.service, job.service_version, job.version_id, job.plan.get("view"), job.parameters])
