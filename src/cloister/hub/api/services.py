"""What the hub can do with data: the list, what each service takes, what a run would cost, and runs."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import Header
from pydantic import Field

from cloister.errors import NotFoundError
from cloister.hub.domain import actions
from cloister.hub.domain.request_body import RequestBody
from cloister.hub.gateway import CurrentAccess, CurrentHub, GuardedRouter
from cloister.hub.services import offering, running
from cloister.hub.services.registry import Algorithm, algorithms

router = GuardedRouter(tags=["services"])


class Asked(RequestBody):
    """What somebody wants to run."""

    parameters: dict[str, Any] = Field(default_factory=dict, description="What the service takes; see the service.")
    purpose: str = Field(default="", max_length=200, description="What it is for, such as research.health.")


IdempotencyKey = Annotated[
    str | None,
    Header(
        min_length=1, max_length=200, description="The same key gives the same work, charged once; send a new one each."
    ),
]


@router.guarded("GET", "/services", actions.LIST_SERVICES)
def list_services() -> dict[str, Any]:
    """List what the hub can do with data."""
    items = [_described(algorithm) for _, algorithm in sorted(algorithms.items())]
    return {"schema": "cloister.services/1", "items": items, "next": None}


@router.guarded("GET", "/services/{name}", actions.LIST_SERVICES)
def see_service(name: str) -> dict[str, Any]:
    """Say what a service takes, as a JSON schema."""
    if name not in algorithms:
        raise NotFoundError("There is no such service.", fix="see /api/v1/services for what there is.")
    algorithm = algorithms.get(name)
    return _described(algorithm) | {"parameters": algorithm.parameters.model_json_schema()}


@router.guarded("GET", "/datasets/{dataset_id}/services/{name}", actions.PREVIEW_SERVICE)
def see_offer(name: str, access: CurrentAccess) -> dict[str, Any]:
    """Say what a service takes, and whether and for which purposes you may run it on this dataset."""
    described = see_service(name)
    return described | offering.offer(algorithms.get(name), access.person, access.object)


@router.guarded("POST", "/datasets/{dataset_id}/services/{name}/preview", actions.PREVIEW_SERVICE)
def preview(name: str, asked: Asked, hub: CurrentHub, access: CurrentAccess) -> dict[str, Any]:
    """Say what a run would cost and how exact it would be; this costs nothing and reads no rows."""
    return running.preview(hub, access, name, asked.parameters, asked.purpose).to_dict()


@router.guarded("POST", "/datasets/{dataset_id}/services/{name}/runs", actions.RUN_SERVICE, status_code=202)
def run(
    name: str, asked: Asked, hub: CurrentHub, access: CurrentAccess, idempotency_key: IdempotencyKey = None
) -> dict[str, Any]:
    """Pay for a run and queue it; what was asked and paid for before is done at once, for nothing."""
    job = running.submit(
        hub,
        access,
        service=name,
        parameters=asked.parameters,
        purpose=asked.purpose,
        idempotency_key=idempotency_key,
    )
    return running.see_job(hub, access, job.id)


def _described(algorithm: Algorithm) -> dict[str, Any]:
    return {
        "schema": "cloister.service/1",
        "name": algorithm.name,
        "version": algorithm.version,
        "title": algorithm.title,
        "summary": algorithm.summary,
        "operation": str(algorithm.operation),
        "modes": sorted(algorithm.modes),
        "needs_approval": algorithm.needs_approval,
        "owners_only": algorithm.owners_only,
    }
