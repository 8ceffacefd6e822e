"""One-time links by which people set their own password, so that operators never know one.

A link also replaces a forgotten password. It leaves the second factor alone, and the operator who made a link for an
account cannot take its second factor away as well: an account with a second factor can be taken over only by two
people together, and the audit log shows both.

Whoever resets the sign-in of a data owner needs a second person, whether or not there is a second factor: a link opens
the account, and its second factor is taken away, only after somebody else has confirmed it, and the owner is told when
it is asked for. The first link of the first owner of an institution without data opens nothing that is worth taking,
and needs nobody. Accounts of operators and auditors, who can be that second person, are opened by two in every case:
otherwise an operator could make the second person himself. A hub with one operator makes others at its own machine.

`invite` lets somebody into a hub from its own machine: so the first operator gets an account.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import delete, select
from sqlalchemy.orm import Session

from cloister.errors import ConflictError, ForbiddenError, NotFoundError
from cloister.hub.domain import actions
from cloister.hub.domain.roles import AccessSubject, AccountRole
from cloister.hub.domain.untrusted_input import fold_name
from cloister.hub.hub import Hub, open_hub
from cloister.hub.settings import Settings
from cloister.hub.store.models import Enrolment, NoticeRecord, Organisation, User, new_id, now
from cloister.hub.store.models.base import random_text
from cloister.hub.use_cases import audit_log
from cloister.hub.use_cases.accounts import administration, passwords, second_factor, sign_in
from cloister.hub.use_cases.sessions import digest_secret, subject_of

__all__ = ["Invitation", "invite"]


VALID = timedelta(days=3)
KEPT = timedelta(days=365)
"""How long it is remembered who made a link."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Link:
    """A new link, shown once; ``waits`` says that it opens nothing before a second person has confirmed it."""

    token: str
    account: str
    expires: datetime
    waits: bool


def make_link(session: Session, account_id: str, *, by: AccessSubject | None) -> Link:
    """Make a link for an account; earlier links of the account stop working."""
    user = administration.get_account(session, account_id)
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
    session.add(Enrolment(digest=digest_secret(token), user_id=user.id, made_by=made_by, expires=moment + VALID))
    _log(session, user, by, change="enrolment link made")
    waits = by is not None and needs_second_person(session, user)
    if waits:
        _ask_second_person(session, user, asked="a link that sets your password anew")
    return Link(token=token, account=user.name, expires=moment + VALID, waits=waits)


def needs_second_person(session: Session, user: User) -> bool:
    """Return whether setting or resetting the sign-in of an account takes two: it decides about data, or confirms."""
    if administration.GUARDS & {AccountRole(name) for name in user.roles}:
        return True
    if AccountRole.DATA_OWNER not in user.roles:
        return False
    has_data = user.organisation_id is not None and administration.has_data(session, user.organisation_id)
    return has_data or administration.has_way_in(session, user)


def find_link(session: Session, token: str, *, lock: bool = False) -> tuple[Enrolment, User]:
    """Return a link that still works and its account, or raise; used, old and invented ones are all alike."""
    found = session.get(Enrolment, digest_secret(token), with_for_update=True if lock else None)
    user = None if found is None else session.get(User, found.user_id)
    if (
        found is None
        or user is None
        or found.used is not None
        or found.expires <= now()
        or user.is_disabled
        # Asked when the link is used, not when it was made: the account may have become an owner's in between.
        or (_is_unconfirmed(found) and needs_second_person(session, user))
    ):
        raise NotFoundError("This link does not work, or not any more.", fix="ask the hub's operator for a new one.")
    return found, user


def enrol(hub: Hub, token: str, password: str) -> str:
    """Set the password of the link's account, end what was open, and return the account's name."""
    with hub.store.reading() as session:
        name = find_link(session, token)[1].name
    kept = passwords.hash_password(passwords.check_password(password, name=name))
    with hub.store.writing() as session:
        # Looked at again under a lock: hashing took its time, and somebody may have used the link meanwhile.
        link, user = find_link(session, token, lock=True)
        link.used = now()
        had_password = user.password_hash is not None
        user.password_hash = kept
        # Whoever knew the old password may be signed in somewhere.
        administration.end_everything(session, user.id)
        sign_in.forget_browsers(session, user.id)
        sign_in.forgive(session, sign_in.counter_for(session, user.name, user_id=user.id, browser=None))
        if had_password:
            text = "Your password was set anew by a link that an operator made. If that was not you, tell an auditor."
            _tell(session, user, text)
        audit_log.append(session, actions.ENROL, by=user.id, target=f"account:{user.id}", replaced=had_password)
    return name


def reset_factor(session: Session, account_id: str, *, by: AccessSubject) -> None:
    """Take away the second factor of somebody who lost it and all recovery codes."""
    user = administration.get_account(session, account_id)
    if user.id == by.user_id:
        raise ForbiddenError("Nobody does this for themselves.", fix="use a recovery code, or ask another operator.")
    makers = set(session.scalars(select(Enrolment.made_by).where(Enrolment.user_id == user.id)))
    if second_factor.is_on(user) and by.user_id in makers:
        raise ForbiddenError(
            "You made a link for this account, so its second factor can only be taken away by somebody else.",
            fix="ask another operator.",
        )
    if needs_second_person(session, user):
        user.factor_reset_asked_by = by.user_id
        _ask_second_person(session, user, asked="the removal of your second factor")
        _log(session, user, by, change="removal of second factor asked for")
        return
    _take_factor_away(session, user, by=by)


def list_resets(session: Session, subject: AccessSubject) -> list[dict[str, Any]]:
    """Return the accounts whose sign-in somebody may let be set or reset as a second person, and what was asked for."""
    waiting = session.scalars(
        select(Enrolment).where(
            Enrolment.used.is_(None),
            Enrolment.expires > now(),
            Enrolment.made_by.is_not(None),
            Enrolment.confirmed_by.is_(None),
        )
    )
    accounts = {link.user_id for link in waiting}
    accounts |= set(session.scalars(select(User.id).where(User.factor_reset_asked_by.is_not(None))))
    found = [session.get_one(User, account_id) for account_id in accounts]
    return [
        {
            "id": user.id,
            "name": user.name,
            "display_name": user.display_name,
            "link": _waiting_link(session, user) is not None,
            "second_factor": user.factor_reset_asked_by is not None,
        }
        for user in sorted(found, key=lambda user: user.name)
        if needs_second_person(session, user) and _may_confirm_reset(session, user, subject)
    ]


def confirm_reset(session: Session, account_id: str, *, by: AccessSubject) -> None:
    """Let a link or the removal of a second factor take place, as a second person who knows that its holder wants it.

    Raises:
        NotFoundError: if nothing waits, or nothing that is for this person to see.
        ForbiddenError: if somebody confirms what they asked for themselves, or what is about themselves.
    """
    user = session.get(User, account_id)
    link = None if user is None else _waiting_link(session, user)
    if user is not None and by.user_id in _askers(user, link):
        raise ForbiddenError(
            "This takes a second person: another operator, an auditor, or another data owner of the institution.",
            fix="ask one of them.",
        )
    waits = user is not None and (link is not None or user.factor_reset_asked_by is not None)
    if user is None or not waits or not needs_second_person(session, user) or not _may_confirm_reset(session, user, by):
        raise NotFoundError("Nothing waits to be confirmed for this account.", fix="look at the list again.")
    if link is not None:
        link.confirmed_by = by.user_id
    if user.factor_reset_asked_by is not None:
        _take_factor_away(session, user, by=by)
    _tell(
        session,
        user,
        "A second person confirmed the reset of your sign-in. If you did not ask for it, tell an auditor.",
    )
    audit_log.append(session, actions.CONFIRM_RESET, by=by, target=f"account:{user.id}", change="reset confirmed")


def _take_factor_away(session: Session, user: User, *, by: AccessSubject) -> None:
    second_factor.remove(session, user)
    user.factor_reset_by = user.factor_reset_asked_by or by.user_id
    user.factor_reset_asked_by = None
    _tell(session, user, "An operator took your second factor away. If you did not ask for that, tell an auditor.")
    _log(session, user, by, change="second factor taken away")


def _is_unconfirmed(link: Enrolment) -> bool:
    return link.made_by is not None and link.confirmed_by is None


def _waiting_link(session: Session, user: User) -> Enrolment | None:
    links = session.scalars(select(Enrolment).where(Enrolment.user_id == user.id, Enrolment.used.is_(None)))
    return next((link for link in links if _is_unconfirmed(link) and link.expires > now()), None)


def _askers(user: User, link: Enrolment | None) -> set[str | None]:
    """Return who cannot be the second person: whoever asked, and whom it is about."""
    return {user.id, user.factor_reset_asked_by, None if link is None else link.made_by}


def _may_confirm_reset(session: Session, user: User, subject: AccessSubject) -> bool:
    if subject.user_id in _askers(user, _waiting_link(session, user)):
        return False
    if administration.GUARDS & subject.roles:
        return True
    # Fellow owners speak for owners of their institution's data only: any operator can make owners of an empty one.
    if administration.GUARDS & {AccountRole(name) for name in user.roles} or user.organisation_id is None:
        return False
    fellows = administration.owners_of(session, user.organisation_id)
    return administration.has_data(session, user.organisation_id) and any(one.id == subject.user_id for one in fellows)


def _ask_second_person(session: Session, user: User, *, asked: str) -> None:
    """Tell the holder, and everybody who can confirm it."""
    _tell(session, user, f"An operator asked for {asked}. If you did not ask for that, tell an auditor.")
    for other in session.scalars(select(User).where(User.is_disabled.is_(False))):
        if _may_confirm_reset(session, user, subject_of(other)):
            text = f"An operator asks to reset the sign-in of {user.name}. Confirm it only if {user.name} told you so."
            session.add(NoticeRecord(id=new_id("ntc"), user_id=other.id, text=text, link="/people/confirmations"))


def _tell(session: Session, user: User, text: str) -> None:
    session.add(NoticeRecord(id=new_id("ntc"), user_id=user.id, text=text, link="/account"))


def _log(session: Session, user: User, by: AccessSubject | None, *, change: str) -> None:
    actor = audit_log.HUB if by is None else by
    audit_log.append(session, actions.MANAGE_ACCOUNTS, by=actor, target=f"account:{user.id}", change=change)


@dataclass(frozen=True, slots=True, kw_only=True)
class Invitation:
    """A link by which somebody sets their password, shown once."""

    account: str
    roles: tuple[str, ...]
    address: str
    expires: datetime

    def to_dict(self) -> dict[str, Any]:
        """Return JSON-ready values."""
        return {
            "schema": "cloister.invitation/1",
            "account": self.account,
            "roles": list(self.roles),
            "address": self.address,
            "expires": self.expires.isoformat(),
        }


def invite(settings: Settings, name: str, *, roles: Iterable[str] = (), organisation: str | None = None) -> Invitation:
    """Make an account, or take the one of that name, and return a new link for it.

    Raises:
        ConflictError: if there is an account of that name and roles or an organisation were given.
    """
    wanted = [role.strip().replace(" ", "_").replace("-", "_") for role in roles]
    hub = open_hub(settings)
    try:
        with hub.store.writing() as session:
            user = session.scalars(select(User).where(User.folded == fold_name(name))).one_or_none()
            if user is not None and (wanted or organisation):
                raise ConflictError(
                    "There is an account of this name.", fix="leave the roles out for a new link, or take another name."
                )
            if user is None:
                user = administration.create_account(
                    session,
                    name,
                    by=None,
                    roles=wanted,
                    organisation_id=None if organisation is None else _organisation(session, organisation),
                    separate=settings.separate_duties,
                )
            link = make_link(session, user.id, by=None)
            return Invitation(
                account=user.name,
                roles=tuple(user.roles),
                address=f"{settings.address}/enrol/{link.token}",
                expires=link.expires,
            )
    finally:
        hub.close()


def _organisation(session: Session, name: str) -> str:
    found = session.scalars(select(Organisation).where(Organisation.folded == fold_name(name))).one_or_none()
    return (administration.create_organisation(session, name, by=None) if found is None else found).id
