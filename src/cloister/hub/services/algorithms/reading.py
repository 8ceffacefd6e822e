"""Algorithms as people see them: what was published by everybody, drafts by their providers."""

from __future__ import annotations

from typing import Any

from sqlalchemy import and_, or_, select
from sqlalchemy.orm import Session

from cloister.hub.domain.actions import Relation
from cloister.hub.domain.algorithms import Version
from cloister.hub.domain.roles import Role, Subject
from cloister.hub.hub import Hub
from cloister.hub.services.algorithms.sources import full_name, open_sources, stored_version
from cloister.hub.services.targets import Target
from cloister.hub.store.models import AlgorithmVersion, HubAlgorithm

__all__ = ["describe", "describe_version", "list_algorithms"]


def list_algorithms(
    session: Session, subject: Subject, *, own: bool = False, after: str | None = None, limit: int = 50
) -> tuple[list[dict[str, Any]], str | None]:
    """Return algorithms by their names, a page at a time: those with published versions and one's own.

    Args:
        session: a transaction.
        subject: who asks.
        own: only one's own.
        after: the name that the page before ended with.
        limit: how many at most.
    """
    mine = _own(subject)
    published = HubAlgorithm.id.in_(
        select(AlgorithmVersion.algorithm_id).where(AlgorithmVersion.published.is_not(None))
    )
    found = select(HubAlgorithm).where(mine if own else or_(mine, published))
    if after:
        found = found.where(HubAlgorithm.name > after)
    page = list(session.scalars(found.order_by(HubAlgorithm.name).limit(limit + 1)))
    items = [_summary(session, item, is_provider=_is_own(item, subject)) for item in page[:limit]]
    return items, items[-1]["name"] if len(page) > limit and items else None


def describe(session: Session, subject: Subject, target: Target) -> dict[str, Any]:
    """Return an algorithm with its versions, the newest first."""
    algorithm: HubAlgorithm = target.item
    is_provider = Relation.PROVIDER in target.relations(subject)
    return {
        "schema": "cloister.hub_algorithm/1",
        **_summary(session, algorithm, is_provider=is_provider),
        "versions": [_version(item) for item in _versions(session, algorithm.id, drafts=is_provider)],
    }


def describe_version(hub: Hub, session: Session, subject: Subject, target: Target, version: str) -> dict[str, Any]:
    """Return a version with its manifest, its sources as text, and what the checks found.

    Raises:
        NotFoundError: if there is none, or it is somebody else's draft.
        ConflictError: if the stored sources are not the ones that were registered.
    """
    is_provider = Relation.PROVIDER in target.relations(subject)
    stored = stored_version(session, target.id, version)
    if stored.published is None and not is_provider:
        stored = stored_version(session, target.id, "")
    sources = open_sources(hub, stored)
    return {
        "schema": "cloister.hub_algorithm_version/1",
        **_version(stored),
        "algorithm": {"id": target.id, "name": stored.algorithm.name, "provider": _provider(stored.algorithm)},
        "is_provider": is_provider,
        "manifest": stored.manifest,
        "files": [{"name": name, "text": content.decode("utf-8")} for name, content in sources.artifact.files.items()],
        "report": stored.report,
    }


def _own(subject: Subject) -> Any:  # a condition of SQLAlchemy
    if Role.ALGORITHM_PROVIDER not in subject.roles:
        return HubAlgorithm.id.is_(None)
    alone = and_(HubAlgorithm.organisation_id.is_(None), HubAlgorithm.provider_id == subject.user_id)
    if subject.organisation_id is None:
        return alone
    return or_(alone, HubAlgorithm.organisation_id == subject.organisation_id)


def _is_own(algorithm: HubAlgorithm, subject: Subject) -> bool:
    target = Target(
        kind="algorithm",
        id=algorithm.id,
        organisation_id=algorithm.organisation_id,
        provider_id=algorithm.provider_id,
    )
    return Relation.PROVIDER in target.relations(subject)


def _versions(session: Session, algorithm_id: str, *, drafts: bool) -> list[AlgorithmVersion]:
    found = session.scalars(select(AlgorithmVersion).where(AlgorithmVersion.algorithm_id == algorithm_id))
    shown = [item for item in found if drafts or item.published is not None]
    return sorted(shown, key=lambda item: Version.parse(item.version), reverse=True)


def _summary(session: Session, algorithm: HubAlgorithm, *, is_provider: bool) -> dict[str, Any]:
    versions = _versions(session, algorithm.id, drafts=is_provider)
    newest = versions[0] if versions else None
    return {
        "id": algorithm.id,
        "name": algorithm.name,
        "provider": _provider(algorithm),
        "is_provider": is_provider,
        "title": algorithm.name if newest is None else newest.manifest["title"],
        "description": "" if newest is None else newest.manifest["description"],
        "newest": None if newest is None else newest.version,
        "state": None if newest is None else newest.state,
    }


def _version(version: AlgorithmVersion) -> dict[str, Any]:
    return {
        "full_name": full_name(version),
        "version": version.version,
        "state": version.state,
        "title": version.manifest["title"],
        "digest": version.digest,
        "has_passed": None if version.report is None else bool(version.report["passed"]),
        "created": version.created.isoformat(),
        "published": None if version.published is None else version.published.isoformat(),
    }


def _provider(algorithm: HubAlgorithm) -> str:
    return algorithm.provider.name if algorithm.organisation is None else algorithm.organisation.name
