"""Services over HTTP: the list, what each takes, what a run would cost, and runs, which become jobs."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import Header
from pydantic import Field

from cloister.errors import NotFoundError
from cloister.hub.domain import actions
from cloister.hub.domain.untrusted_input import RequestBody
from cloister.hub.gateway import CurrentAccess, CurrentHub, GuardedRouter
from cloister.hub.services.registry import Service, service_registry
from cloister.hub.use_cases import jobs
from cloister.hub.use_cases.jobs import decide

router = GuardedRouter(tags=["services"])


class ServiceRequest(RequestBody):
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
    items = [_describe_service(algorithm) for _, algorithm in sorted(service_registry.items())]
    return {"schema": "cloister.services/1", "items": items, "next": None}


@router.guarded("GET", "/services/{name}", actions.LIST_SERVICES)
def see_service(name: str) -> dict[str, Any]:
    """Say what a service takes, as a JSON schema."""
    if name not in service_registry:
        raise NotFoundError("There is no such service.", fix="see /api/v1/services for what there is.")
    algorithm = service_registry.get(name)
    return _describe_service(algorithm) | {"parameters": algorithm.parameters.model_json_schema()}


@router.guarded("GET", "/datasets/{dataset_id}/services/{name}", actions.PREVIEW_SERVICE)
def see_offer(name: str, access: CurrentAccess) -> dict[str, Any]:
    """Say what a service takes, and whether and for which purposes you may run it on this dataset."""
    described = see_service(name)
    return described | decide.offer(service_registry.get(name), access.person, access.object)


@router.guarded("POST", "/datasets/{dataset_id}/services/{name}/preview", actions.PREVIEW_SERVICE)
def preview(name: str, asked: ServiceRequest, hub: CurrentHub, access: CurrentAccess) -> dict[str, Any]:
    """Say what a run would cost and how exact it would be; this costs nothing and reads no rows."""
    return jobs.preview(hub, access, name, asked.parameters, asked.purpose).to_dict()


@router.guarded("POST", "/datasets/{dataset_id}/services/{name}/runs", actions.RUN_SERVICE, status_code=202)
def run(
    name: str, asked: ServiceRequest, hub: CurrentHub, access: CurrentAccess, idempotency_key: IdempotencyKey = None
) -> dict[str, Any]:
    """Pay for a run and queue it; what was asked and paid for before is done at once, for nothing."""
    job = jobs.submit(
        hub,
        access,
        service=name,
        parameters=asked.parameters,
        purpose=asked.purpose,
        idempotency_key=idempotency_key,
    )
    return jobs.see_job(hub, access, job.id)


def _describe_service(algorithm: Service) -> dict[str, Any]:
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
