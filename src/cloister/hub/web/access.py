"""Pages about access: what one may do with a dataset, asking for more, requests with their decisions, and policies.

On the page of the policy an owner says who may do what with a dataset.
"""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import Annotated

from fastapi import Query, Request
from fastapi.responses import Response

from cloister.hub.domain import actions
from cloister.hub.domain.policy_words import ASKABLE, OPERATIONS
from cloister.hub.domain.roles import AccountRole
from cloister.hub.domain.terms import VOCABULARY
from cloister.hub.gateway import CurrentAccess, CurrentHub, GuardedRouter
from cloister.hub.store.models import AccessRequestRecord
from cloister.hub.use_cases import datasets, policies
from cloister.hub.use_cases.access import overview
from cloister.hub.use_cases.access.overview import Which
from cloister.hub.web import shell

router = GuardedRouter()

_USUAL_TIME = timedelta(days=365)
_OPEN = ("requested", "info_needed")


@shell.page(router, "/datasets/{dataset_id}/access", actions.SEE_STANDING, twin="/datasets/{dataset_id}/access")
def standing(request: Request, hub: CurrentHub, access: CurrentAccess, dataset_id: str) -> Response:
    """See what one may do with a dataset, and ask for access."""
    with hub.store.reading() as session:
        found = policies.standing(hub.store, session, access.object, access.person)
        own, _ = overview.list_requests(session, access.person, which=Which.OWN, dataset_id=dataset_id)
    is_waiting = any(item["state"] in _OPEN for item in own)
    return shell.render(
        request,
        "access.html",
        title=f"Your access to {found['dataset']['title']}",
        standing=found,
        requests=own,
        may_ask=AccountRole.DATA_USER in access.person.roles
        and not found["is_owner"]
        and not is_waiting
        and found["dataset"]["state"] == "ready",
        operations=[(str(item), OPERATIONS[item]) for item in ASKABLE],
        purposes=VOCABULARY,
    )


@shell.page(router, "/requests", actions.LIST_REQUESTS, twin="/requests", menu=shell.MenuEntry(40, "Access"))
def requests(
    request: Request,
    hub: CurrentHub,
    access: CurrentAccess,
    after: Annotated[str | None, Query(max_length=100)] = None,
) -> Response:
    """See what waits for one's decision, one's own requests, and what was decided."""
    person = access.person
    with hub.store.reading() as session:
        waiting, _ = overview.list_requests(session, person, which=Which.WAITING, limit=200)
        own, _ = overview.list_requests(session, person, which=Which.OWN, limit=200)
        decided, following = overview.list_requests(session, person, which=Which.DECIDED, after=after, limit=20)
    return shell.render(
        request, "requests.html", title="Access", waiting=waiting, own=own, decided=decided, following=following
    )


@shell.page(router, "/requests/{request_id}", actions.SEE_REQUEST, twin="/requests/{request_id}")
def see_request(request: Request, hub: CurrentHub, access: CurrentAccess, request_id: str) -> Response:
    """See a request with its history, and decide or answer."""
    with hub.store.reading() as session:
        found = overview.see_request(session, access.person, session.get_one(AccessRequestRecord, request_id))
    return shell.render(
        request,
        "request.html",
        title=f"Access to {found['dataset']['title']}",
        found=found,
        usual_end=(datetime.now(UTC) + _USUAL_TIME).date().isoformat(),
    )


policies_router = GuardedRouter()


@shell.page(policies_router, "/datasets/{dataset_id}/policy", actions.SEE_POLICY, twin="/datasets/{dataset_id}/policy")
def policy(request: Request, hub: CurrentHub, access: CurrentAccess, dataset_id: str) -> Response:
    """See and change who may do what with a dataset."""
    with hub.store.reading() as session:
        dataset = datasets.get_dataset(session, dataset_id)
        found = policies.read_policy(session, dataset)
        versions, _ = policies.list_versions(session, dataset)
    vocabulary = {item["name"] for item in found["known_purposes"]}
    return shell.render(
        request,
        "policy.html",
        title=f"Who may do what with {found['title']}",
        policy=found,
        other_purposes=[name for name in found["purposes"] if name not in vocabulary],
        organisation=access.object.item.organisation.name,
        versions=versions,
        text=json.dumps(found["document"], indent=2, ensure_ascii=False),
    )
