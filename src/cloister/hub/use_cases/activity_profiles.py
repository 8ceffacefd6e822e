"""Days that are far from what a person usually does, from the audit log: a hint for people, never a lock.

Nothing is stored: profiles are counted anew from the entries of the last 90 days whenever somebody looks. An owner sees
what people did with one dataset of theirs, and is compared with nothing else; an auditor sees all of the log.
"""

from __future__ import annotations

from collections import Counter
from datetime import UTC, date, datetime, timedelta
from typing import Any

from sqlalchemy import select
from sqlalchemy.orm import Session

from cloister.hub.domain.audit_chain import AuditOutcome
from cloister.hub.domain.roles import AccountRole
from cloister.hub.domain.usage_profiles import (
    RETENTION,
    Activity,
    Suggestion,
    UsageEvent,
    UsageScore,
    activities_of,
    drop_expired,
    rank,
    score,
)
from cloister.hub.store.models import AuditEntry, Dataset, NoticeRecord, User
from cloister.hub.use_cases.notices import notify, notify_owners

__all__ = ["alert", "profiles"]

_COUNTED = (str(AuditOutcome.ALLOWED), str(AuditOutcome.REFUSED))
RECENT = timedelta(days=7)
"""How many days are scored; earlier ones are what they are compared with."""


def profiles(session: Session, *, dataset_id: str | None = None) -> dict[str, Any]:
    """Return the days of the last week with their scores, the most unusual first.

    Args:
        session: a transaction.
        dataset_id: only what was done with one dataset; None is everything, for auditors.
    """
    today = datetime.now(UTC).date()
    scored = _score_days(session, today, dataset_id)
    users = {activity.user_id for activity, _, _ in scored}
    found = session.execute(select(User.id, User.name).where(User.id.in_(users)))
    names = {row.id: row.name for row in found}
    return {
        "schema": "cloister.profiles/1",
        "retention_days": RETENTION.days,
        "items": [
            {
                "person": names.get(activity.user_id, activity.user_id),
                "day": activity.day.isoformat(),
                "datasets": activity.datasets,
                "operations": activity.operations,
                "score": round(points.value, 1),
                "rank": share,
                "suggestion": str(points.suggestion),
                "explanation": points.explain(),
            }
            for activity, points, share in scored
        ],
        "next": None,
    }


def alert(session: Session) -> int:
    """Leave a notice, once for each unusual day of a person, for auditors and for owners of the data concerned."""
    today = datetime.now(UTC).date()
    unusual = [
        item for item, found, _ in _score_days(session, today, None) if found.suggestion is not Suggestion.NOTHING
    ]
    count = 0
    for activity in unusual:
        user = session.get(User, activity.user_id)
        words = f"{activity.user_id if user is None else user.name} had an unusual day on {activity.day}."
        if session.scalars(select(NoticeRecord.id).where(NoticeRecord.text == words).limit(1)).first() is not None:
            continue
        count += 1
        for auditor in session.scalars(select(User).where(User.is_disabled.is_(False)).order_by(User.id)):
            if AccountRole.AUDITOR in auditor.roles:
                notify(session, auditor.id, words, link="/audit/profiles")
        for organisation, dataset in _find_datasets(session, activity).items():
            notify_owners(session, organisation, words, link=f"/datasets/{dataset}/profiles", but=activity.user_id)
    return count


def _score_days(session: Session, today: date, dataset_id: str | None) -> list[tuple[Activity, UsageScore, float]]:
    activities = drop_expired(activities_of(_events(session, today, dataset_id)), today=today)
    found = [(item, score(item, activities)) for item in activities if today - item.day <= RECENT]
    values = [points.value for _, points in found]
    ranked = [(item, points, rank(points.value, values)) for item, points in found]
    return sorted(ranked, key=lambda entry: (-entry[1].value, entry[0].day, entry[0].user_id))


def _events(session: Session, today: date, dataset_id: str | None) -> list[UsageEvent]:
    since = (today - RETENTION).isoformat()
    found = select(AuditEntry.actor, AuditEntry.time, AuditEntry.dataset_id).where(
        AuditEntry.time >= since,
        AuditEntry.dataset_id.is_not(None),
        AuditEntry.actor.startswith("usr_"),
        AuditEntry.outcome.in_(_COUNTED),
    )
    if dataset_id is not None:
        found = found.where(AuditEntry.dataset_id == dataset_id)
    return [
        UsageEvent(user_id=row.actor, at=datetime.fromisoformat(row.time), dataset=row.dataset_id)
        for row in session.execute(found)
    ]


def _find_datasets(session: Session, activity: Activity) -> dict[str, str]:
    """Return a dataset of each institution whose data a person used on a day."""
    entries = session.scalars(
        select(AuditEntry.dataset_id).where(
            AuditEntry.actor == activity.user_id,
            AuditEntry.time >= activity.day.isoformat(),
            AuditEntry.time < (activity.day + timedelta(days=1)).isoformat(),
            AuditEntry.dataset_id.is_not(None),
        )
    )
    used = Counter(entries)
    found = session.execute(select(Dataset.id, Dataset.organisation_id).where(Dataset.id.in_(used)))
    owners = {row.id: row.organisation_id for row in found}
    most: dict[str, str] = {}
    for dataset_id in sorted(owners, key=lambda item: (used[item], item)):
        most[owners[dataset_id]] = dataset_id
    return most
