"""The pages of the audit log: all of it for auditors, the part about a dataset for its owner."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import Query, Request
from fastapi.responses import Response

from cloister.hub.domain import actions
from cloister.hub.domain.roles import AccountRole
from cloister.hub.gateway import CurrentHub, GuardedRouter
from cloister.hub.use_cases import activity_profiles, audit_log
from cloister.hub.use_cases.audit_log import AuditFilter
from cloister.hub.web import shell

router = GuardedRouter()

Before = Annotated[int | None, Query(ge=1, le=2**62)]
Word = Annotated[str, Query(max_length=100)]


_MENU = shell.MenuEntry(80, "Audit", (AccountRole.AUDITOR,))


@shell.page(router, "/audit", actions.READ_AUDIT, twin="/audit", menu=_MENU)
def audit(
    *,
    request: Request,
    hub: CurrentHub,
    after: Before = None,
    actor: Word = "",
    action: Word = "",
    outcome: Word = "",
    dataset: Word = "",
) -> Response:
    """Read the audit log."""
    audit_log.write_counts(hub.store)
    asked = {"actor": actor, "action": action, "outcome": outcome, "dataset": dataset}
    wanted = AuditFilter(
        actor=actor or None, action=action or None, outcome=outcome or None, dataset_id=dataset or None
    )
    with hub.store.reading() as session:
        head = audit_log.head_of(session)
    known = [item.name for item in actions.all_actions()]
    return _show(request, hub, wanted, after, title="Audit log", asked=asked, head=head, actions=known, dataset_id=None)


@shell.page(router, "/datasets/{dataset_id}/audit", actions.READ_OWN_AUDIT, twin="/datasets/{dataset_id}/audit")
def own_audit(request: Request, hub: CurrentHub, dataset_id: str, after: Before = None) -> Response:
    """Read what happened around one's own dataset."""
    wanted = AuditFilter(dataset_id=dataset_id)
    return _show(
        request,
        hub,
        wanted,
        after,
        title="What happened to this dataset",
        asked=None,
        head=None,
        actions=[],
        dataset_id=dataset_id,
    )


@shell.twin_page(
    router, "/audit/profiles", actions.READ_AUDIT, template="profiles.html", title="Unusual days", tag="audit"
)
def read_profiles(hub: CurrentHub) -> dict[str, Any]:
    """List the days of the last week by how far they are from what is usual for each person."""
    with hub.store.reading() as session:
        return activity_profiles.profiles(session)


@shell.twin_page(
    router,
    "/datasets/{dataset_id}/profiles",
    actions.READ_OWN_AUDIT,
    template="profiles.html",
    title="Unusual days",
    tag="audit",
)
def read_own_profiles(hub: CurrentHub, dataset_id: str) -> dict[str, Any]:
    """The same for what people did with one's own dataset."""
    with hub.store.reading() as session:
        return activity_profiles.profiles(session, dataset_id=dataset_id)


def _show(request: Request, hub: CurrentHub, wanted: AuditFilter, after: int | None, **values: Any) -> Response:
    with hub.store.reading() as session:
        entries, following = audit_log.read_entries(session, wanted, before=after)
    return shell.render(request, "audit.html", entries=entries, following=following, **values)
