"""How often an algorithm was run: counts for each version and month, and nothing about where, by whom or with what."""

from __future__ import annotations

from collections import Counter
from typing import Any

from sqlalchemy import select
from sqlalchemy.orm import Session

from cloister.hub.domain.algorithms import Version
from cloister.hub.domain.jobs import State
from cloister.hub.services.algorithms.sources import full_name
from cloister.hub.store.models import AlgorithmVersion, Job

__all__ = ["RUN", "usage"]

RUN = "algo.run"
"""The service that runs foreign algorithms."""


def usage(session: Session, algorithm_id: str) -> list[dict[str, Any]]:
    """Return how many runs of each version gave a result, in all and by month, the newest version first."""
    versions = session.scalars(select(AlgorithmVersion).where(AlgorithmVersion.algorithm_id == algorithm_id))
    ordered = sorted(versions, key=lambda item: Version.parse(item.version), reverse=True)
    return [{"version": item.version, **_counted(session, full_name(item))} for item in ordered]


def _counted(session: Session, name: str) -> dict[str, Any]:
    ended = session.scalars(
        select(Job.finished).where(
            Job.service == RUN,
            Job.state == State.DONE.value,
            Job.parameters["algorithm"].as_string() == name,
        )
    )
    months = Counter(moment.strftime("%Y-%m") for moment in ended if moment is not None)
    return {"runs": sum(months.values()), "months": dict(sorted(months.items()))}
