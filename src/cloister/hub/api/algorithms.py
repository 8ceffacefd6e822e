"""Algorithms of outside providers over HTTP: registered, checked, published, and allowed by owners."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, Literal

from fastapi import Query, Request, Response
from pydantic import Field

from cloister.errors import ParameterError, TooLargeError
from cloister.hub.domain import actions
from cloister.hub.domain.actions import ObjectRelation
from cloister.hub.domain.algorithms import VersionStep
from cloister.hub.domain.algorithms.artifact import MOST_PACKED
from cloister.hub.domain.untrusted_input import RequestBody
from cloister.hub.gateway import CurrentAccess, CurrentHub, GuardedRouter
from cloister.hub.gateway.bodies import allow_upload, arriving
from cloister.hub.use_cases import algorithms
from cloister.hub.use_cases.algorithms.registration import Registered

router = GuardedRouter(tags=["algorithms"])
allow_upload("/api/v1/algorithms", lambda limit: min(limit, MOST_PACKED))
allow_upload("/api/v1/algorithms/{}/versions", lambda limit: min(limit, MOST_PACKED))

_ZIP = ("application/zip", "application/x-zip-compressed")
_ZIP_BODY: dict[str, Any] = {
    "requestBody": {
        "required": True,
        "content": {"application/zip": {"schema": {"type": "string", "format": "binary"}}},
    }
}
Limit = Annotated[int, Query(ge=1, le=200)]
After = Annotated[str | None, Query(max_length=100)]


class VersionMove(RequestBody):
    """What happens to a version."""

    step: Literal["send_back", "publish", "deprecate", "restore", "revoke"]


class Permission(RequestBody):
    """An owner's decision about a version."""

    algorithm: str = Field(max_length=200, examples=["k-means@1.0.0"])
    digest: str = Field(min_length=64, max_length=64, description="Of the sources that you have read.")
    has_read: bool = Field(description="Whether you have read the manifest, the sources and the report of the checks.")
    until: datetime | None = Field(default=None, description="When the permission ends; never, if it is left out.")


@router.guarded("GET", "/algorithms", actions.LIST_ALGORITHMS)
def list_algorithms(
    hub: CurrentHub,
    access: CurrentAccess,
    own: bool = False,  # noqa: FBT001, FBT002  # a part of the address
    after: After = None,
    limit: Limit = 50,
) -> dict[str, Any]:
    """List published algorithms and your own, by name."""
    with hub.store.reading() as session:
        items, following = algorithms.list_algorithms(session, access.person, own=own, after=after, limit=limit)
    return {"schema": "cloister.hub_algorithms/1", "items": items, "next": following}


@router.guarded("POST", "/algorithms", actions.REGISTER_ALGORITHM, status_code=201, openapi_extra=_ZIP_BODY)
def register(hub: CurrentHub, access: CurrentAccess, request: Request) -> dict[str, Any]:
    """Register an algorithm with its first version: a zip with manifest.yaml, as the body. Its checks are queued."""
    return _describe_registration(algorithms.register(hub, access.person, _zip(request)))


@router.guarded("GET", "/algorithms/{algorithm_id}", actions.SEE_ALGORITHM)
def see_algorithm(hub: CurrentHub, access: CurrentAccess, algorithm_id: str) -> dict[str, Any]:  # noqa: ARG001
    """Describe an algorithm and its versions."""
    with hub.store.reading() as session:
        return algorithms.describe(session, access.person, access.object)


@router.guarded("GET", "/algorithms/{algorithm_id}/usage", actions.SEE_ALGORITHM_USE)
def see_usage(hub: CurrentHub, access: CurrentAccess, algorithm_id: str) -> dict[str, Any]:  # noqa: ARG001
    """Say how often your algorithm was run, by version and month, and nothing else."""
    with hub.store.reading() as session:
        items = algorithms.usage(session, algorithm_id)
    return {"schema": "cloister.hub_algorithm_usage/1", "items": items, "next": None}


@router.guarded(
    "POST",
    "/algorithms/{algorithm_id}/versions",
    actions.EDIT_ALGORITHM,
    status_code=201,
    openapi_extra=_ZIP_BODY,
)
def add_version(hub: CurrentHub, access: CurrentAccess, algorithm_id: str, request: Request) -> dict[str, Any]:
    """Add a version, or replace one that was not published yet. Its checks are queued."""
    return _describe_registration(algorithms.add_version(hub, access.person, algorithm_id, _zip(request)))


@router.guarded("GET", "/algorithms/{algorithm_id}/versions/{version}", actions.SEE_ALGORITHM)
def see_version(hub: CurrentHub, access: CurrentAccess, algorithm_id: str, version: str) -> dict[str, Any]:  # noqa: ARG001
    """Show a version: its manifest, its sources and what the checks found."""
    with hub.store.reading() as session:
        return algorithms.describe_version(hub, session, access.person, access.object, version)


@router.guarded("POST", "/algorithms/{algorithm_id}/versions/{version}/checks", actions.EDIT_ALGORITHM, status_code=202)
def start_check(hub: CurrentHub, access: CurrentAccess, algorithm_id: str, version: str) -> dict[str, Any]:
    """Queue the checks of a draft again."""
    job = algorithms.start_check(hub, access.person, algorithm_id, version)
    return {"schema": "cloister.hub_algorithm_check/1", "job": job}


@router.guarded("POST", "/algorithms/{algorithm_id}/versions/{version}/steps", actions.EDIT_ALGORITHM)
def take_step(
    hub: CurrentHub, access: CurrentAccess, algorithm_id: str, version: str, body: VersionMove
) -> dict[str, Any]:
    """Publish, deprecate, restore or revoke a version, or send it back to the drafts."""
    with hub.store.writing() as session:
        moved = algorithms.take_step(session, access.person, algorithm_id, version, VersionStep(body.step))
        return {
            "schema": "cloister.hub_algorithm_step/1",
            "algorithm": algorithms.full_name(moved),
            "state": moved.state,
            "digest": moved.digest,
        }


@router.guarded("GET", "/datasets/{dataset_id}/algorithms", actions.LIST_ALLOWED)
def list_allowed(hub: CurrentHub, access: CurrentAccess, dataset_id: str) -> dict[str, Any]:
    """List the versions that a dataset's owner allows."""
    is_owner = ObjectRelation.OWNER in access.object.relations(access.person)
    with hub.store.reading() as session:
        items = algorithms.list_allowed(session, dataset_id, is_owner=is_owner)
    return {"schema": "cloister.allowed_algorithms/1", "items": items, "next": None}


@router.guarded("POST", "/datasets/{dataset_id}/algorithms", actions.ALLOW_ALGORITHM, status_code=201)
def allow(hub: CurrentHub, access: CurrentAccess, dataset_id: str, body: Permission) -> dict[str, Any]:
    """Allow exactly one version for your dataset, after reading it."""
    with hub.store.writing() as session:
        made = algorithms.allow(session, access.person, dataset_id, **body.model_dump())
        return {
            "schema": "cloister.allowed_algorithm/1",
            "id": made.id,
            "algorithm": body.algorithm,
            "digest": made.digest,
            "until": None if made.until is None else made.until.isoformat(),
        }


@router.guarded("DELETE", "/datasets/{dataset_id}/algorithms/{allowance_id}", actions.ALLOW_ALGORITHM, status_code=204)
def disallow(hub: CurrentHub, access: CurrentAccess, dataset_id: str, allowance_id: str) -> Response:
    """Stop allowing a version; runs that wait are denied."""
    with hub.store.writing() as session:
        algorithms.disallow(session, access.person, dataset_id, allowance_id)
    return Response(status_code=204)


def _zip(request: Request) -> bytes:
    """Return the body of a request, if it says that it is a zip and is not too large."""
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind not in _ZIP:
        raise ParameterError("An algorithm is uploaded as a zip.", fix="set Content-Type: application/zip.")
    pieces, size = [], 0
    with arriving(request) as stream:
        while piece := stream.read(MOST_PACKED):
            size += len(piece)
            if size > MOST_PACKED:
                raise TooLargeError("The zip is too large.", fix=f"keep it below {MOST_PACKED >> 20} MB.")
            pieces.append(piece)
    return b"".join(pieces)


def _describe_registration(found: Registered) -> dict[str, Any]:
    return {
        "schema": "cloister.hub_algorithm_upload/1",
        "id": found.algorithm_id,
        "name": found.name,
        "version": found.version,
        "digest": found.digest,
        "job": found.job_id,
    }
