"""Finding datasets: only what their owners made public, and only to whom the policy shows it."""

from __future__ import annotations

from typing import Any

from sqlalchemy import or_, select
from sqlalchemy.orm import Session

from cloister.core import markers
from cloister.hub.domain.actions import ObjectRelation
from cloister.hub.domain.decisions import Decision
from cloister.hub.domain.operations import PolicyOperation
from cloister.hub.domain.roles import AccessSubject
from cloister.hub.domain.views import ColumnRights
from cloister.hub.store.models import Dataset
from cloister.hub.store.sealed_schemas import schema_of
from cloister.hub.use_cases.authorization import ActionTarget, decide_operation, load_target
from cloister.hub.use_cases.datasets.versions import is_confirmed, newest_version

PAGE = 50
_UNKNOWN: dict[str, Any] = {
    **dict.fromkeys(("role", "kind", "bounds", "categories", "storage")),
    "subject": False,
}


def list_catalogue(
    session: Session, subject: AccessSubject, *, search: str = "", after: str | None = None, limit: int = PAGE
) -> tuple[list[dict[str, Any]], str | None]:
    """Return datasets that the person may know of, a page at a time, and where the next page begins."""
    query = select(Dataset).where(Dataset.state == "ready")
    if search:
        pattern = "%" + search.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_") + "%"
        query = query.where(
            or_(*(column.ilike(pattern, escape="\\") for column in (Dataset.name, Dataset.title, Dataset.description)))
        )
    return _page(session, query, subject, after, limit)


def list_own(
    session: Session, subject: AccessSubject, *, after: str | None = None, limit: int = PAGE
) -> tuple[list[dict[str, Any]], str | None]:
    """Return the datasets of the person's institution."""
    query = select(Dataset).where(
        Dataset.state != "deleted", Dataset.organisation_id == (subject.organisation_id or "")
    )
    return _page(session, query, subject, after, limit)


def summary(dataset: Dataset, *, is_owner: bool) -> dict[str, Any]:
    """Return what everybody may know who may know that a dataset exists."""
    return {
        "id": dataset.id,
        "name": dataset.name,
        "title": dataset.title or dataset.name,
        "description": dataset.description,
        "organisation": dataset.organisation.name,
        "mode": dataset.mode,
        "state": dataset.state,
        "is_owner": is_owner,
    }


def describe(
    session: Session, subject: AccessSubject, target: ActionTarget, decision: Decision | None
) -> dict[str, Any]:
    """Return what the person may know: columns are shown to whom the policy describes them."""
    dataset: Dataset = target.item
    is_owner = ObjectRelation.OWNER in target.relations(subject)
    described = decide_operation(target, subject, PolicyOperation.DESCRIBE) if decision is None else decision
    version = newest_version(session, dataset.id, state="ready") or newest_version(session, dataset.id)
    columns: list[dict[str, Any]] = []
    if version is not None and described.allowed and described.constraints is not None:
        schema = schema_of(version)
        rights = dict(ColumnRights.of(described.constraints, [str(c["name"]) for c in version.columns]).uses)
        facts = {} if schema is None else schema.to_dict()["columns"]
        columns = [
            {**_UNKNOWN, **facts.get(name, {}), "name": name, "uses": sorted(str(use) for use in uses)}
            for name, uses in rights.items()
        ]
    return {
        "schema": markers.DATASET,
        **summary(dataset, is_owner=is_owner),
        "unit": dataset.facts.get("unit"),
        "max_rows_per_unit": dataset.facts.get("max_rows_per_unit"),
        "version": None if version is None else version.number,
        "is_confirmed": version is not None and is_confirmed(version),
        "columns": columns,
        "policy_version": None if target.policy is None else target.policy.version,
    }


def _page(
    session: Session, query: Any, subject: AccessSubject, after: str | None, limit: int
) -> tuple[list[dict[str, Any]], str | None]:
    if after:
        query = query.where(Dataset.id > after)
    found: list[dict[str, Any]] = []
    for dataset in session.scalars(query.order_by(Dataset.id)):
        target = load_target(session, "dataset", dataset.id)
        if target is None:
            continue
        is_owner = ObjectRelation.OWNER in target.relations(subject)
        if is_owner or decide_operation(target, subject, PolicyOperation.DISCOVER).allowed:
            if len(found) == limit:
                return found, str(found[-1]["id"])
            found.append(summary(dataset, is_owner=is_owner))
    return found, None
