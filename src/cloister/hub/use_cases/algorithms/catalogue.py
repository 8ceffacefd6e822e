"""Algorithms as people see them: what was published by everybody, drafts by their providers.

How often an algorithm was run is told as counts for each version and month, and nothing about where, by whom or with
what.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

from sqlalchemy import and_, or_, select
from sqlalchemy.orm import Session

from cloister.hub.domain.actions import ObjectRelation
from cloister.hub.domain.algorithms import Version
from cloister.hub.domain.lifecycles import JobState
from cloister.hub.domain.roles import AccessSubject, AccountRole
from cloister.hub.hub import Hub
from cloister.hub.store.models import AlgorithmVersion, HubAlgorithm, Job
from cloister.hub.use_cases.algorithms.versions import full_name, load_version, open_sources
from cloister.hub.use_cases.authorization import ActionTarget

__all__ = ["RUN", "describe", "describe_version", "list_algorithms", "usage"]


RUN = "algo.run"
"""The service that runs foreign algorithms."""


def usage(session: Session, algorithm_id: str) -> list[dict[str, Any]]:
    """Return how many runs of each version gave a result, in all and by month, the newest version first."""
    versions = session.scalars(select(AlgorithmVersion).where(AlgorithmVersion.algorithm_id == algorithm_id))
    ordered = sorted(versions, key=lambda item: Version.parse(item.version), reverse=True)
    return [{"version": item.version, **_count_runs(session, full_name(item))} for item in ordered]


def _count_runs(session: Session, name: str) -> dict[str, Any]:
    ended = session.scalars(
        select(Job.finished).where(
            Job.service == RUN,
            Job.state == JobState.DONE.value,
            Job.parameters["algorithm"].as_string() == name,
        )
    )
    months = Counter(moment.strftime("%Y-%m") for moment in ended if moment is not None)
    return {"runs": sum(months.values()), "months": dict(sorted(months.items()))}


def list_algorithms(
    session: Session, subject: AccessSubject, *, own: bool = False, after: str | None = None, limit: int = 50
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


def describe(session: Session, subject: AccessSubject, target: ActionTarget) -> dict[str, Any]:
    """Return an algorithm with its versions, the newest first."""
    algorithm: HubAlgorithm = target.item
    is_provider = ObjectRelation.PROVIDER in target.relations(subject)
    return {
        "schema": "cloister.hub_algorithm/1",
        **_summary(session, algorithm, is_provider=is_provider),
        "versions": [_version(item) for item in _versions(session, algorithm.id, drafts=is_provider)],
    }


def describe_version(
    hub: Hub, session: Session, subject: AccessSubject, target: ActionTarget, version: str
) -> dict[str, Any]:
    """Return a version with its manifest, its sources as text, and what the checks found.

    Raises:
        NotFoundError: if there is none, or it is somebody else's draft.
        ConflictError: if the stored sources are not the ones that were registered.
    """
    is_provider = ObjectRelation.PROVIDER in target.relations(subject)
    stored = load_version(session, target.id, version)
    if stored.published is None and not is_provider:
        stored = load_version(session, target.id, "")
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


def _own(subject: AccessSubject) -> Any:  # a condition of SQLAlchemy
    if AccountRole.ALGORITHM_PROVIDER not in subject.roles:
        return HubAlgorithm.id.is_(None)
    alone = and_(HubAlgorithm.organisation_id.is_(None), HubAlgorithm.provider_id == subject.user_id)
    if subject.organisation_id is None:
        return alone
    return or_(alone, HubAlgorithm.organisation_id == subject.organisation_id)


def _is_own(algorithm: HubAlgorithm, subject: AccessSubject) -> bool:
    target = ActionTarget(
        kind="algorithm",
        id=algorithm.id,
        organisation_id=algorithm.organisation_id,
        provider_id=algorithm.provider_id,
    )
    return ObjectRelation.PROVIDER in target.relations(subject)


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
