"""The page on which an owner says who may do what with a dataset."""

from __future__ import annotations

import json

from fastapi import Request
from fastapi.responses import Response

from cloister.hub.domain import actions
from cloister.hub.gateway import CurrentAccess, CurrentHub, GuardedRouter
from cloister.hub.services import datasets, policies
from cloister.hub.web import shell

router = GuardedRouter()


@shell.page(router, "/datasets/{dataset_id}/policy", actions.SEE_POLICY, twin="/datasets/{dataset_id}/policy")
def policy(request: Request, hub: CurrentHub, access: CurrentAccess, dataset_id: str) -> Response:
    """See and change who may do what with a dataset."""
    with hub.store.reading() as session:
        dataset = datasets.stored(session, dataset_id)
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
