"""One-time links by which people set their own password, so that operators never know one.

A link also replaces a forgotten password. It leaves the second factor alone, and the operator who made a link for an
account cannot take its second factor away as well: an account with a second factor can be taken over only by two
operators together, and the audit log shows both.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from sqlalchemy import delete, select
from sqlalchemy.orm import Session

from cloister.errors import ForbiddenError, NotFoundError
from cloister.hub.domain import actions
from cloister.hub.domain.roles import Subject
from cloister.hub.hub import Hub
from cloister.hub.services import auditing
from cloister.hub.services.accounts import lockout, passwords, people, second_factor
from cloister.hub.services.sessions import digest_of
from cloister.hub.store.models import Enrolment, Notice, User, new_id, now
from cloister.hub.store.models.base import random_text

VALID = timedelta(days=3)
KEPT = timedelta(days=365)
"""How long it is remembered who made a link."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Link:
    """A new link, shown once."""

    token: str
    account: str
    expires: datetime


def make_link(session: Session, account_id: str, *, by: Subject | None) -> Link:
    """Make a link for an account; earlier links of the account stop working."""
    user = people.get_account(session, account_id)
    if by is not None and user.id == by.user_id:
        raise ForbiddenError("Nobody makes a link for themselves.", fix="change your password on your account page.")
    if by is not None and user.factor_reset_by == by.user_id:
        raise ForbiddenError(
            "You took this account's second factor away, so its link has to come from somebody else.",
            fix="ask another operator for the link.",
        )
    moment = now()
    session.execute(delete(Enrolment).where(Enrolment.created < moment - KEPT))
    for earlier in session.scalars(select(Enrolment).where(Enrolment.user_id == user.id, Enrolment.used.is_(None))):
        earlier.used = moment
    token = random_text(32)
    made_by = None if by is None else by.user_id
    session.add(Enrolment(digest=digest_of(token), user_id=user.id, made_by=made_by, expires=moment + VALID))
    _log(session, user, by, change="enrolment link made")
    return Link(token=token, account=user.name, expires=moment + VALID)


def find_link(session: Session, token: str, *, lock: bool = False) -> tuple[Enrolment, User]:
    """Return a link that still works and its account, or raise; used, old and invented ones are all alike."""
    found = session.get(Enrolment, digest_of(token), with_for_update=True if lock else None)
    user = None if found is None else session.get(User, found.user_id)
    if found is None or user is None or found.used is not None or found.expires <= now() or user.is_disabled:
        raise NotFoundError("This link does not work, or not any more.", fix="ask the hub's operator for a new one.")
    return found, user


def enrol(hub: Hub, token: str, password: str) -> str:
    """Set the password of the link's account, end what was open, and return the account's name."""
    with hub.store.reading() as session:
        name = find_link(session, token)[1].name
    kept = passwords.hash_password(passwords.check_password(password, name=name))
    with hub.store.writing() as session:
        link, user = find_link(session, token, lock=True)
        link.used = now()
        had_password = user.password_hash is not None
        user.password_hash = kept
        people.end_everything(session, user.id)
        lockout.forget_browsers(session, user.id)
        lockout.forgive(session, lockout.counter_for(session, user.name, user_id=user.id, browser=None))
        if had_password:
            text = "Your password was set anew by a link that an operator made. If that was not you, tell an auditor."
            session.add(Notice(id=new_id("ntc"), user_id=user.id, text=text, link="/account"))
        auditing.append(session, actions.ENROL, by=user.id, target=f"account:{user.id}", replaced=had_password)
    return name


def reset_factor(session: Session, account_id: str, *, by: Subject) -> None:
    """Take away the second factor of somebody who lost it and all recovery codes."""
    user = people.get_account(session, account_id)
    if user.id == by.user_id:
        raise ForbiddenError("Nobody does this for themselves.", fix="use a recovery code, or ask another operator.")
    makers = set(session.scalars(select(Enrolment.made_by).where(Enrolment.user_id == user.id)))
    if second_factor.is_on(user) and by.user_id in makers:
        raise ForbiddenError(
            "You made a link for this account, so its second factor can only be taken away by somebody else.",
            fix="ask another operator.",
        )
    second_factor.remove(session, user)
    user.factor_reset_by = by.user_id
    text = "An operator took your second factor away. If you did not ask for that, tell an auditor."
    session.add(Notice(id=new_id("ntc"), user_id=user.id, text=text, link="/account"))
    _log(session, user, by, change="second factor taken away")


def _log(session: Session, user: User, by: Subject | None, *, change: str) -> None:
    actor = auditing.HUB if by is None else by
    auditing.append(session, actions.MANAGE_ACCOUNTS, by=actor, target=f"account:{user.id}", change=change)
