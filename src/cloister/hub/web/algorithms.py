"""Pages about algorithms of outside providers: the list, one with its versions, one version, and running it on data."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import Query, Request
from fastapi.responses import Response

from cloister.errors import NotFoundError
from cloister.hub.domain import actions
from cloister.hub.domain.actions import ObjectRelation
from cloister.hub.domain.algorithms import VersionState, VersionStep, next_state as state_after
from cloister.hub.domain.roles import AccountRole
from cloister.hub.gateway import CurrentAccess, CurrentHub, GuardedRouter
from cloister.hub.services.outside_algorithms import RunAlgorithm
from cloister.hub.services.registry import service_registry as services
from cloister.hub.use_cases import algorithms, datasets
from cloister.hub.use_cases.jobs import decide
from cloister.hub.web import shell

router = GuardedRouter()


@shell.page(router, "/algorithms", actions.LIST_ALGORITHMS, twin="/algorithms", menu=shell.MenuEntry(60, "Algorithms"))
def all_algorithms(
    request: Request,
    hub: CurrentHub,
    access: CurrentAccess,
    after: Annotated[str | None, Query(max_length=100)] = None,
) -> Response:
    """See what outside providers offer, and register algorithms of one's own."""
    with hub.store.reading() as session:
        items, following = algorithms.list_algorithms(session, access.person, after=after)
    return shell.render(
        request,
        "algorithms.html",
        title="Algorithms",
        items=items,
        following=following,
        may_register=AccountRole.ALGORITHM_PROVIDER in access.person.roles,
    )


@shell.page(router, "/algorithms/{algorithm_id}", actions.SEE_ALGORITHM, twin="/algorithms/{algorithm_id}")
def algorithm(request: Request, hub: CurrentHub, access: CurrentAccess, algorithm_id: str) -> Response:
    """See an algorithm, its versions and, for its provider, how often it was run."""
    with hub.store.reading() as session:
        described = algorithms.describe(session, access.person, access.object)
        counted = algorithms.usage(session, algorithm_id) if described["is_provider"] else []
    return shell.render(
        request,
        "algorithm.html",
        title=described["title"],
        algorithm=described,
        runs={item["version"]: item["runs"] for item in counted},
    )


@shell.page(
    router,
    "/algorithms/{algorithm_id}/versions/{version}",
    actions.SEE_ALGORITHM,
    twin="/algorithms/{algorithm_id}/versions/{version}",
)
def one_version(
    request: Request,
    hub: CurrentHub,
    access: CurrentAccess,
    algorithm_id: str,  # noqa: ARG001
    version: str,
) -> Response:
    """Read a version: its manifest, its sources and what the checks found."""
    with hub.store.reading() as session:
        found = algorithms.describe_version(hub, session, access.person, access.object, version)
    return shell.render(
        request,
        "algorithm_version.html",
        title=found["full_name"],
        found=found,
        steps=_possible(VersionState(found["state"])) if found["is_provider"] else [],
    )


@shell.page(
    router, "/datasets/{dataset_id}/algorithms", actions.ALLOW_ALGORITHM, twin="/datasets/{dataset_id}/algorithms"
)
def allowing(request: Request, hub: CurrentHub, access: CurrentAccess, dataset_id: str) -> Response:
    """Decide which algorithms may run on one's own data."""
    with hub.store.reading() as session:
        described = datasets.describe(session, access.person, access.object, None)
        allowed = algorithms.list_allowed(session, dataset_id, is_owner=True)
        offered = [
            {
                "full_name": algorithms.full_name(item),
                "algorithm_id": item.algorithm_id,
                "version": item.version,
                "title": item.manifest["title"],
                "digest": item.digest,
            }
            for item in algorithms.list_to_allow(session, dataset_id)
        ]
    return shell.render(
        request,
        "allow_algorithms.html",
        title=f"Algorithms on {described['title']}",
        dataset=described,
        allowed=allowed,
        offered=offered,
    )


# This page is found before the general form of services, since the modules of pages are read in the order of names.
@shell.page(
    router,
    f"/datasets/{{dataset_id}}/services/{RunAlgorithm.name}",
    actions.PREVIEW_SERVICE,
    twin="/datasets/{dataset_id}/algorithms",
)
def choosing(request: Request, hub: CurrentHub, access: CurrentAccess, dataset_id: str) -> Response:
    """Choose one of the algorithms that the owner allows."""
    with hub.store.reading() as session:
        described = datasets.describe(session, access.person, access.object, None)
        allowed = algorithms.list_allowed(session, dataset_id, is_owner=False)
    service = services.get(RunAlgorithm.name)
    return shell.render(
        request, "choose_algorithm.html", title=service.title, dataset=described, service=service, allowed=allowed
    )


@shell.page(
    router,
    "/datasets/{dataset_id}/algorithms/{name}/{version}",
    actions.PREVIEW_SERVICE,
    twin="/datasets/{dataset_id}/algorithms",
)
def running(
    request: Request, hub: CurrentHub, access: CurrentAccess, *, dataset_id: str, name: str, version: str
) -> Response:
    """Choose columns and parameters, see what a run would cost, and run it."""
    full_name = f"{name}@{version}"
    with hub.store.reading() as session:
        described = datasets.describe(session, access.person, access.object, None)
        allowed = algorithms.list_allowed(session, dataset_id, is_owner=False)
        stored = algorithms.find_version(session, full_name)
        if stored is None or full_name not in [item["algorithm"] for item in allowed]:
            raise NotFoundError("The owner does not allow this version.", fix="choose one on the dataset's page.")
        manifest = stored.manifest
    return shell.render(
        request,
        "run_algorithm.html",
        title=manifest["title"],
        dataset=described,
        service=services.get(RunAlgorithm.name),
        offer=decide.offer(services.get(RunAlgorithm.name), access.person, access.object),
        is_free=False,
        fields=[],
        full_name=full_name,
        algorithm_id=stored.algorithm_id,
        number=version,
        manifest=manifest,
        inputs=[_input(item, facts, described["columns"]) for item, facts in manifest["inputs"].items()],
        is_owner=ObjectRelation.OWNER in access.object.relations(access.person),
    )


def _possible(state: VersionState) -> list[tuple[str, str, bool]]:
    """Return the steps that a provider can take now: their names, what the button says, and whether it is final."""
    words = {
        VersionStep.SEND_BACK: "Back to the drafts",
        VersionStep.PUBLISH: "Publish",
        VersionStep.DEPRECATE: "Deprecate",
        VersionStep.RESTORE: "Publish again",
        VersionStep.REVOKE: "Revoke for good",
    }
    found = []
    for step in algorithms.OFFERED_STEPS:
        try:
            state_after(state, step)
        except ValueError:
            continue
        found.append((str(step), words[step], step is VersionStep.REVOKE))
    return found


def _input(name: str, facts: dict[str, Any], columns: list[dict[str, Any]]) -> dict[str, Any]:
    """Return an input with the columns of a dataset that suit it."""
    if facts["kind"] == "category":
        suitable = [column["name"] for column in columns if column["categories"]]
    else:
        suitable = [column["name"] for column in columns if column["kind"] in ("numeric", "ordinal")]
    return {"name": name, "columns": suitable, **facts}
