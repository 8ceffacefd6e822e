"""What waits for a person: notices, and steps that suit their roles."""

from __future__ import annotations

from typing import Any

from sqlalchemy import select, update
from sqlalchemy.orm import Session

from cloister.hub.domain.roles import Role, Subject
from cloister.hub.services import guide
from cloister.hub.store.models import Notice

MOST_NOTICES = 30

_STEPS: dict[Role, tuple[tuple[str, str, str], ...]] = {
    Role.DATA_OWNER: (
        ("/datasets", "Share data", "Upload a table, say what its columns are, set a budget and who may ask."),
        ("/surveys", "Ask people", "Make a survey whose answers are blurred on the respondents' own phones."),
        ("/requests", "Decide on access", "Approve or refuse what others want to do with your data."),
        ("/jobs", "See what is asked", "All work on your data, and releases that wait for your decision."),
        ("/people/confirmations", "Confirm colleagues", "Whoever becomes a data owner of your institution needs you."),
    ),
    Role.DATA_USER: (
        ("/catalogue", "Find data", "See what institutions share, ask for access, and ask questions."),
        ("/jobs", "See your work", "Answers that you asked for, with their margins of error and promises."),
    ),
    Role.ALGORITHM_PROVIDER: (
        ("/algorithms", "Provide an algorithm", "Register a method that others may run without seeing their data."),
    ),
    Role.OPERATOR: (
        ("/people", "Manage accounts", "Make and close accounts, and give them roles."),
        ("/people/confirmations", "Be the second person", "Confirm that a sign-in is set or reset."),
    ),
    Role.AUDITOR: (
        ("/audit", "Check the log", "Read who did what, and verify that nobody changed the record."),
        ("/people/confirmations", "Be the second person", "Confirm that a sign-in is set or reset."),
    ),
}


_FACTOR_STEP = ("/account", "Set up a second factor", "Data owners of this hub need one before they do anything else.")


def start(session: Session, subject: Subject, *, is_demo: bool = False, lacks_factor: bool = False) -> dict[str, Any]:
    """Return what the start page shows; in the demo with a guide, and to owners without a second factor that step."""
    notices = session.scalars(
        select(Notice).where(Notice.user_id == subject.user_id).order_by(Notice.created.desc()).limit(MOST_NOTICES)
    )
    steps = [step for role in Role if role in subject.roles for step in _STEPS.get(role, ())]
    if lacks_factor:
        steps = [_FACTOR_STEP]
    return {
        "schema": "cloister.home/1",
        "name": subject.name,
        "roles": sorted(str(role) for role in subject.roles),
        "notices": [{"id": item.id, "text": item.text, "link": item.link, "is_read": item.is_read} for item in notices],
        "guide": guide.guide(session, subject) if is_demo else [],
        "steps": [{"link": link, "title": title, "text": text} for link, title, text in steps],
    }


def read_notices(session: Session, subject: Subject) -> None:
    """Mark a person's notices as read."""
    session.execute(update(Notice).where(Notice.user_id == subject.user_id).values(is_read=True))
