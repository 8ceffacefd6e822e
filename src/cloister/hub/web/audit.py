"""The pages of the audit log: all of it for auditors, the part about a dataset for its owner."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import Query, Request
from fastapi.responses import Response

from cloister.hub.domain import actions
from cloister.hub.gateway import CurrentHub, GuardedRouter
from cloister.hub.use_cases import activity_profiles, audit_log
from cloister.hub.use_cases.audit_log import AuditFilter
from cloister.hub.web import shell

router = GuardedRouter()

Before = Annotated[int | None, Query(ge=1, le=2**62)]
Word = Annotated[str, Query(max_length=100)]


@shell.page(router, "/audit", actions.READ_AUDIT, twin="/audit")
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


@shell.page(router, "/audit/profiles", actions.READ_AUDIT, twin="/audit/profiles")
def profiles(request: Request, hub: CurrentHub) -> Response:
    """See which days of people are far from what is usual for them."""
    with hub.store.reading() as session:
        found = activity_profiles.profiles(session)
    return shell.render(request, "profiles.html", title="Unusual days", found=found, dataset_id=None)


@shell.page(router, "/datasets/{dataset_id}/profiles", actions.READ_OWN_AUDIT, twin="/datasets/{dataset_id}/profiles")
def own_profiles(request: Request, hub: CurrentHub, dataset_id: str) -> Response:
    """See which days of people who use one's own dataset are far from what is usual."""
    with hub.store.reading() as session:
        found = activity_profiles.profiles(session, dataset_id=dataset_id)
    return shell.render(request, "profiles.html", title="Unusual days", found=found, dataset_id=dataset_id)


def _show(request: Request, hub: CurrentHub, wanted: AuditFilter, after: int | None, **values: Any) -> Response:
    with hub.store.reading() as session:
        entries, following = audit_log.read_entries(session, wanted, before=after)
    return shell.render(request, "audit.html", entries=entries, following=following, **values)
