"""Pages about jobs: asking for one, the list, one job with its result, and synthetic tables.

A synthetic table that was released has a page with its card, its files, and more rows.
"""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import Query, Request
from fastapi.responses import Response

from cloister.errors import CloisterError, ForbiddenError, NotFoundError
from cloister.hub.domain import actions
from cloister.hub.domain.operations import UNPAID
from cloister.hub.gateway import CurrentAccess, CurrentHub, GuardedRouter
from cloister.hub.hub import Hub
from cloister.hub.services.registry import service_registry
from cloister.hub.use_cases import datasets, jobs as use_cases_jobs
from cloister.hub.use_cases.authorization import Access, authorize
from cloister.hub.use_cases.jobs import decide, synthetic_tables
from cloister.hub.web import forms, forms as web_forms, shell

router = GuardedRouter()


_PLACE = "/datasets/{dataset_id}/services/{name}"


@shell.page(router, _PLACE, actions.PREVIEW_SERVICE, twin=_PLACE)
def service(
    *,
    request: Request,
    hub: CurrentHub,
    access: CurrentAccess,
    dataset_id: str,
    name: str,
    again: Annotated[str | None, Query(max_length=100)] = None,
) -> Response:
    """Fill in what a service takes, see what it would cost, and run it; perhaps as it was asked before."""
    if name not in service_registry:
        raise NotFoundError("There is no such service.", fix="go back to the dataset's page.")
    algorithm = service_registry.get(name)
    with hub.store.reading() as session:
        described = datasets.describe(session, access.person, access.object, None)
    return shell.render(
        request,
        algorithm.page,
        title=algorithm.title,
        dataset=described,
        service=algorithm,
        offer=decide.offer(algorithm, access.person, access.object),
        parts=web_forms.parts_of(described["columns"]),
        before={} if again is None else _before(hub, access, again, dataset_id),
        is_free=algorithm.operation in UNPAID or described["mode"] != "dp",
        fields=forms.fields_of(algorithm.parameters),
    )


@shell.page(router, "/jobs", actions.LIST_JOBS, twin="/jobs", menu=shell.MenuEntry(50, "Work"))
def jobs(
    request: Request,
    hub: CurrentHub,
    access: CurrentAccess,
    after: Annotated[str | None, Query(max_length=100)] = None,
) -> Response:
    """See one's own work, and work on one's own data."""
    items, following = use_cases_jobs.list_jobs(hub, access, after=after)
    return shell.render(request, "jobs.html", title="Work", items=items, following=following)


def _before(hub: Hub, access: Access, job_id: str, dataset_id: str) -> dict[str, Any]:
    """Return the parameters of a piece of work on the same dataset, if the person may see it."""
    try:
        with hub.store.reading() as session:
            seen = authorize(session, actions.SEE_JOB, subject=access.person, target_id=job_id)
    except CloisterError:
        return {}
    described = use_cases_jobs.see_job(hub, seen, job_id)
    is_same = (described["dataset"] or {}).get("id") == dataset_id
    return dict(described["parameters"]) if is_same else {}


@shell.page(router, "/jobs/{job_id}", actions.SEE_JOB, twin="/jobs/{job_id}")
def job(request: Request, hub: CurrentHub, access: CurrentAccess, job_id: str) -> Response:
    """See how far a piece of work is, and what it gave."""
    described = use_cases_jobs.see_job(hub, access, job_id)
    result: dict[str, Any] | None = None
    refusal: CloisterError | None = None
    if described["may_read_result"]:
        try:
            result = use_cases_jobs.read_result(hub, access, job_id).to_dict()
        except ForbiddenError as error:
            refusal = error
    return shell.render(
        request,
        "job.html",
        title=described["title"],
        job=described,
        result=result,
        refusal=refusal,
        table=forms.table_of(result),
    )


synthetics_router = GuardedRouter()


@shell.page(synthetics_router, "/synthetics/{synthetic_id}", actions.READ_SYNTHETIC, twin="/synthetics/{synthetic_id}")
def synthetic(
    request: Request,
    hub: CurrentHub,
    access: CurrentAccess,
    synthetic_id: str,  # noqa: ARG001  # the guard reads it
    purpose: Annotated[str, Query(max_length=200)] = "",
) -> Response:
    """See what a synthetic table is, download it, and draw more rows."""
    card = synthetic_tables.see_card(hub, access, purpose=purpose)
    return shell.render(request, "synthetic.html", title="A synthetic table", card=card, purpose=purpose)
