"""Jobs over HTTP: the list, one job, its result and files, canceling it, and an owner's decision.

Also whether a result, or the certificate of a file, is genuine.
"""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import Query
from fastapi.responses import Response
from pydantic import Field

from cloister.crypto.certificates import certificate_from_dict
from cloister.errors import NotFoundError
from cloister.hub.api._downloads import SANDBOXED, download
from cloister.hub.domain import actions
from cloister.hub.domain.lifecycles import JobState
from cloister.hub.domain.untrusted_input import RequestBody
from cloister.hub.gateway import CurrentAccess, CurrentHub, GuardedRouter
from cloister.hub.use_cases import jobs

router = GuardedRouter(tags=["jobs"])

_OURS = "This hub let the release out."
_STATED = "The certificate is whole. This hub does not know whose word it is: what it promises is stated, not proven."


class ReleaseDecision(RequestBody):
    """What an owner decides about a release."""

    approve: bool = Field(description="Whether the release may leave the hub.")
    note: str = Field(default="", max_length=2_000, description="A sentence for the person who asked.")
    reason: str = Field(
        default="",
        max_length=2_000,
        description="Why something leaves that the gate advises against; owners alone see it.",
    )


class HeldCertificate(RequestBody):
    """A certificate that came with a file."""

    certificate: dict[str, Any] = Field(description="What the file of the certificate holds.")
    sha256: str = Field(
        default="", max_length=64, description="The SHA-256 of the file, to learn whether the certificate is about it."
    )


@router.guarded("GET", "/jobs", actions.LIST_JOBS)
def list_jobs(
    hub: CurrentHub,
    access: CurrentAccess,
    *,
    limit: Annotated[int, Query(ge=1, le=200)] = 50,
    after: Annotated[str | None, Query(max_length=100)] = None,
    dataset: Annotated[str | None, Query(max_length=100)] = None,
    state: JobState | None = None,
) -> dict[str, Any]:
    """List one's own work, and work on one's own data, the newest first."""
    items, cursor = jobs.list_jobs(hub, access, limit=limit, after=after, dataset_id=dataset, state=state)
    return {"schema": "cloister.jobs/1", "items": items, "next": cursor}


@router.guarded("GET", "/jobs/{job_id}", actions.SEE_JOB)
def see_job(job_id: str, hub: CurrentHub, access: CurrentAccess) -> dict[str, Any]:
    """Say how far a piece of work is, what it cost and what became of it."""
    return jobs.see_job(hub, access, job_id)


@router.guarded("POST", "/jobs/{job_id}/cancel", actions.CANCEL_JOB)
def cancel(job_id: str, hub: CurrentHub, access: CurrentAccess) -> dict[str, Any]:
    """Cancel work, at once or as soon as its worker hears of it; what was paid stays paid."""
    jobs.cancel(hub, access, job_id)
    return jobs.see_job(hub, access, job_id)


@router.guarded("POST", "/jobs/{job_id}/decision", actions.DECIDE_RELEASE)
def decide(job_id: str, decision: ReleaseDecision, hub: CurrentHub, access: CurrentAccess) -> dict[str, Any]:
    """Let a release that waits leave the hub, or not."""
    jobs.decide_release(hub, access, job_id, approve=decision.approve, note=decision.note, reason=decision.reason)
    return jobs.see_job(hub, access, job_id)


@router.guarded("GET", "/jobs/{job_id}/result", actions.SEE_RESULT)
def read_result(job_id: str, hub: CurrentHub, access: CurrentAccess) -> dict[str, Any]:
    """Return a result with its promise, its provenance and its digest."""
    return jobs.read_result(hub, access, job_id).to_dict()


@router.guarded("GET", "/jobs/{job_id}/files/{name}", actions.SEE_RESULT, response_class=Response)
def read_file(job_id: str, name: str, hub: CurrentHub, access: CurrentAccess) -> Response:
    """Return a file of a result, always as a download."""
    return download(jobs.read_result(hub, access, job_id).file(name))


@router.guarded("GET", "/jobs/{job_id}/report", actions.SEE_RESULT, response_class=Response)
def read_report(job_id: str, hub: CurrentHub, access: CurrentAccess) -> Response:
    """Return the report of a result as a page that can run nothing."""
    report = jobs.read_result(hub, access, job_id).outcome.report
    if not report:
        raise NotFoundError("The result has no report.", fix="read the result itself.")
    return Response(report, media_type="text/html; charset=utf-8", headers=SANDBOXED)


@router.guarded("GET", "/jobs/{job_id}/owner-report", actions.SEE_RESULT, response_class=Response)
def read_owner_report(job_id: str, hub: CurrentHub, access: CurrentAccess) -> Response:
    """Return what a release says to owners of the data only, as a page that can run nothing."""
    report = jobs.read_result(hub, access, job_id).outcome.owner_report
    if not report:
        raise NotFoundError("The result has no such report for you.", fix="read the result itself.")
    return Response(report, media_type="text/html; charset=utf-8", headers=SANDBOXED)


@router.guarded("GET", "/results/{digest}/verification", actions.VERIFY_RESULT)
def verify(digest: str, hub: CurrentHub) -> dict[str, Any]:
    """Say whether a result with this digest left the hub as it is; nothing more, and only to who holds the digest."""
    return {
        "schema": "cloister.verification/1",
        "digest": digest[:200],
        "is_genuine": jobs.verify_result(hub, digest),
    }


@router.guarded("POST", "/certificates/verification", actions.VERIFY_CERTIFICATE)
def verify_certificate(body: HeldCertificate, hub: CurrentHub) -> dict[str, Any]:
    """Say what a certificate of a file, or of a hub's result, promises and whose word that is."""
    found = certificate_from_dict(body.certificate)
    ours = found.digest is not None and jobs.verify_result(hub, found.digest)
    return {
        "schema": "cloister.certificate_verification/1",
        "kind": found.kind,
        "promise": found.guarantee.explain(),
        "guarantee": found.guarantee.to_dict(),
        "signer": found.signer,
        "is_genuine": ours,
        "is_of_file": body.sha256 in {digest for _, digest in found.files} if body.sha256 else None,
        "text": _OURS if ours else _STATED,
    }
