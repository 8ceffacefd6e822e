"""The guide of the demo: for each role where to look and what to try, with addresses that are there."""

from __future__ import annotations

from typing import Any

from sqlalchemy.orm import Session

from cloister.hub.domain.roles import Role, Subject
from cloister.hub.services import datasets

_OTHERS = (
    "/account",
    "Be somebody else",
    "Sign out, then in as olga (owner), uma (user), alva (algorithms), otis (operator) or audrey (auditor).",
)
_STEPS: dict[Role, tuple[tuple[str, str, str], ...]] = {
    Role.DATA_OWNER: (
        ("{dataset}", "See your data as its owner", "Who asked what, and how much of the privacy budget is left."),
        (
            "/datasets",
            "Share a table of your own",
            "Give it a name, upload a CSV file, check what its columns are, set a budget.",
        ),
        ("{dataset}/policy", "Decide who may ask", "Nobody may do anything that a rule of yours does not allow."),
        ("/surveys", "Look at the survey", "Phones blur the answers before they leave; you see only what all say."),
    ),
    Role.DATA_USER: (
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
    Role.ALGORITHM_PROVIDER: (
        ("/algorithms", "Provide a method", "Others run it in a sandbox; you never see their data or their results."),
        ("/catalogue", "See what data there is", "You see what it is about; running anything needs the owner's rule."),
    ),
    Role.OPERATOR: (
        (
            "/people",
            "Manage accounts",
            "Make an account for a colleague. An owner of the institution has to confirm it.",
        ),
        ("{dataset}", "Try to look at data", "You run the hub, and still no row and no answer is shown to you."),
    ),
    Role.AUDITOR: (
        ("/audit", "Read the log", "Every decision is there, with its reason; look for those that were refused."),
        ("/audit", "Check the chain", "The button says whether anybody changed or cut the record."),
    ),
}


def guide(session: Session, subject: Subject) -> list[dict[str, Any]]:
    """Return the steps for somebody's roles; those about a dataset only where there is one to see."""
    found, _ = datasets.list_catalogue(session, subject, limit=1)
    place = f"/datasets/{found[0]['id']}" if found else ""
    steps = [step for role in Role if role in subject.roles for step in _STEPS.get(role, ())]
    shown = [step for step in (*steps, _OTHERS) if place or "{dataset}" not in step[0]]
    return [{"link": link.format(dataset=place), "title": title, "text": text} for link, title, text in shown]
