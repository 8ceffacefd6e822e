"""What waits for a person: notices, and steps that suit their roles.

In the demo there is a guide besides: for each role where to look and what to try, with addresses that are there.
"""

from __future__ import annotations

from typing import Any

from sqlalchemy import select, update
from sqlalchemy.orm import Session

from cloister.hub.domain.roles import AccessSubject, AccountRole
from cloister.hub.store.models import NoticeRecord
from cloister.hub.use_cases import datasets

_OTHERS = (
    "/account",
    "Be somebody else",
    "Sign out, then in as olga (owner), uma (user), alva (algorithms), otis (operator) or audrey (auditor).",
)
_GUIDE_STEPS: dict[AccountRole, tuple[tuple[str, str, str], ...]] = {
    AccountRole.DATA_OWNER: (
        ("{dataset}", "See your data as its owner", "Who asked what, and how much of the privacy budget is left."),
        (
            "/datasets",
            "Share a table of your own",
            "Give it a name, upload a CSV file, check what its columns are, set a budget.",
        ),
        ("{dataset}/policy", "Decide who may ask", "Nobody may do anything that a rule of yours does not allow."),
        ("/surveys", "Look at the survey", "Phones blur the answers before they leave; you see only what all say."),
    ),
    AccountRole.DATA_USER: (
        (
            "{dataset}/services/query.build",
            "Ask without SQL",
            "Choose what to find. Price and margin of error are shown before you pay.",
        ),
        ("{dataset}/services/query.sql", "Ask in SQL", "Counts, means, medians and groups; the rows stay unseen."),
        (
            "/jobs",
            "Read the answers",
            "Each says how far it may be off and what it promises. Asking the same again is free.",
        ),
        ("/catalogue", "Find data", "See what is shared, and ask its owner for access."),
    ),
    AccountRole.ALGORITHM_PROVIDER: (
        ("/algorithms", "Provide a method", "Others run it in a sandbox; you never see their data or their results."),
        ("/catalogue", "See what data there is", "You see what it is about; running anything needs the owner's rule."),
    ),
    AccountRole.OPERATOR: (
        (
            "/people",
            "Manage accounts",
            "Make an account for a colleague. An owner of the institution has to confirm it.",
        ),
        ("{dataset}", "Try to look at data", "You run the hub, and still no row and no answer is shown to you."),
    ),
    AccountRole.AUDITOR: (
        ("/audit", "Read the log", "Every decision is there, with its reason; look for those that were refused."),
        ("/audit", "Check the chain", "The button says whether anybody changed or cut the record."),
    ),
}


def list_guide_steps(session: Session, subject: AccessSubject) -> list[dict[str, Any]]:
    """Return the steps for somebody's roles; those about a dataset only where there is one to see."""
    found, _ = datasets.list_catalogue(session, subject, limit=1)
    place = f"/datasets/{found[0]['id']}" if found else ""
    steps = [step for role in AccountRole if role in subject.roles for step in _GUIDE_STEPS.get(role, ())]
    shown = [step for step in (*steps, _OTHERS) if place or "{dataset}" not in step[0]]
    return [{"link": link.format(dataset=place), "title": title, "text": text} for link, title, text in shown]


MOST_NOTICES = 30

_STEPS: dict[AccountRole, tuple[tuple[str, str, str], ...]] = {
    AccountRole.DATA_OWNER: (
        ("/datasets", "Share data", "Upload a table, say what its columns are, set a budget and who may ask."),
        ("/surveys", "Ask people", "Make a survey whose answers are blurred on the respondents' own phones."),
        ("/requests", "Decide on access", "Approve or refuse what others want to do with your data."),
        ("/jobs", "See what is asked", "All work on your data, and releases that wait for your decision."),
        ("/people/confirmations", "Confirm colleagues", "Whoever becomes a data owner of your institution needs you."),
    ),
    AccountRole.DATA_USER: (
        ("/catalogue", "Find data", "See what institutions share, ask for access, and ask questions."),
        ("/jobs", "See your work", "Answers that you asked for, with their margins of error and promises."),
    ),
    AccountRole.ALGORITHM_PROVIDER: (
        ("/algorithms", "Provide an algorithm", "Register a method that others may run without seeing their data."),
    ),
    AccountRole.OPERATOR: (
        ("/people", "Manage accounts", "Make and close accounts, and give them roles."),
        ("/people/confirmations", "Be the second person", "Confirm that a sign-in is set or reset."),
    ),
    AccountRole.AUDITOR: (
        ("/audit", "Check the log", "Read who did what, and verify that nobody changed the record."),
        ("/people/confirmations", "Be the second person", "Confirm that a sign-in is set or reset."),
    ),
}


_FACTOR_STEP = ("/account", "Set up a second factor", "Data owners of this hub need one before they do anything else.")


def start(
    session: Session, subject: AccessSubject, *, is_demo: bool = False, lacks_factor: bool = False
) -> dict[str, Any]:
    """Return what the start page shows; in the demo with a guide, and to owners without a second factor that step."""
    notices = session.scalars(
        select(NoticeRecord)
        .where(NoticeRecord.user_id == subject.user_id)
        .order_by(NoticeRecord.created.desc())
        .limit(MOST_NOTICES)
    )
    steps = [step for role in AccountRole if role in subject.roles for step in _STEPS.get(role, ())]
    if lacks_factor:
        steps = [_FACTOR_STEP]
    return {
        "schema": "cloister.home/1",
        "name": subject.name,
        "roles": sorted(str(role) for role in subject.roles),
        "notices": [{"id": item.id, "text": item.text, "link": item.link, "is_read": item.is_read} for item in notices],
        "guide": list_guide_steps(session, subject) if is_demo else [],
        "steps": [{"link": link, "title": title, "text": text} for link, title, text in steps],
    }


def read_notices(session: Session, subject: AccessSubject) -> None:
    """Mark a person's notices as read."""
    session.execute(update(NoticeRecord).where(NoticeRecord.user_id == subject.user_id).values(is_read=True))
