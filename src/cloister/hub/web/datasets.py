"""Pages about datasets: the catalogue, one's own data, one dataset, its schema and its budget."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import Query, Request
from fastapi.responses import Response

from cloister.hub.domain import actions
from cloister.hub.domain.roles import AccountRole
from cloister.hub.gateway import CurrentAccess, CurrentHub, GuardedRouter
from cloister.hub.use_cases import datasets
from cloister.hub.use_cases.jobs import decide, synthetic_tables
from cloister.hub.web import display, forms, shell

router = GuardedRouter()


@shell.page(router, "/catalogue", actions.LIST_CATALOGUE, twin="/catalogue", menu=shell.MenuEntry(10, "Catalogue"))
def catalogue(
    request: Request,
    hub: CurrentHub,
    access: CurrentAccess,
    search: Annotated[str, Query(max_length=200)] = "",
    after: Annotated[str | None, Query(max_length=100)] = None,
) -> Response:
    """Find datasets."""
    with hub.store.reading() as session:
        items, following = datasets.list_catalogue(session, access.person, search=search, after=after)
    return shell.render(request, "catalogue.html", title="Catalogue", items=items, following=following, search=search)


@shell.page(
    router,
    "/datasets",
    actions.LIST_OWN_DATASETS,
    twin="/datasets",
    menu=shell.MenuEntry(20, "My data", (AccountRole.DATA_OWNER,)),
)
def own(request: Request, hub: CurrentHub, access: CurrentAccess) -> Response:
    """See and make one's own datasets."""
    with hub.store.reading() as session:
        items, _ = datasets.list_own(session, access.person, limit=200)
    return shell.render(request, "datasets.html", title="My data", items=items)


@shell.page(router, "/datasets/{dataset_id}", actions.SEE_DATASET, twin="/datasets/{dataset_id}")
def dataset(request: Request, hub: CurrentHub, access: CurrentAccess, dataset_id: str) -> Response:
    """See a dataset, and what one may do with it."""
    with hub.store.reading() as session:
        described = decide.describe_offers(session, access.person, access.object)
        account = _account(hub, session, described, dataset_id)
        released = synthetic_tables.list_synthetics(session, access.person, dataset_id)
    return shell.render(
        request,
        "dataset.html",
        title=described["title"],
        dataset=described,
        account=account,
        synthetics=released,
        chart="" if account is None else display.burn_down(account),
        upload_limit=hub.settings.upload_limit,
    )


@shell.page(router, "/datasets/{dataset_id}/schema", actions.EDIT_DATASET, twin="/datasets/{dataset_id}/schema")
def schema(request: Request, hub: CurrentHub, access: CurrentAccess, dataset_id: str) -> Response:
    """Correct and confirm what the columns are."""
    with hub.store.reading() as session:
        described = datasets.describe(session, access.person, access.object, None)
        found = datasets.read_schema(hub.blobs, datasets.get_newest_version(session, dataset_id))
    return shell.render(
        request,
        "schema.html",
        title=f"Columns of {described['title']}",
        dataset=described,
        found=found,
        rows=forms.rows_of(found),
        words=forms,
    )


def _account(hub: Any, session: Any, described: dict[str, Any], dataset_id: str) -> dict[str, Any] | None:
    if not described["is_owner"] or described["state"] != "ready" or described["mode"] != "dp":
        return None
    return datasets.spending(hub.store, session, dataset_id)
