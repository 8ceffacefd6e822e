"""What people do with their own account: see it, change the password, use a second factor, end sign-ins, make tokens.

Tokens are for programs: for some actions, for some time, shown once, kept as digests.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from cloister.errors import ConflictError, ForbiddenError, NotFoundError, ParameterError, did_you_mean
from cloister.hub.domain import actions
from cloister.hub.domain.roles import AccessSubject, AccountRole
from cloister.hub.domain.untrusted_input import check_title
from cloister.hub.hub import Hub
from cloister.hub.store.models import ApiToken, Identity, LoginSession, User, new_id, now
from cloister.hub.store.models.base import random_text
from cloister.hub.use_cases import audit_log
from cloister.hub.use_cases.accounts import passwords, second_factor, sign_in
from cloister.hub.use_cases.sessions import SignedIn, close_logins, digest_secret

PREFIX = "clst_"
MOST_DAYS = 365
MOST_TOKENS = 50


@dataclass(frozen=True, slots=True)
class NewToken:
    """A new token and its secret, which is shown once."""

    token: ApiToken
    secret: str


def known_scopes() -> list[str]:
    """Return every scope: each action that a token may do, each family of them, and everything."""
    names = [action.name for action in actions.all_actions() if not action.is_public and not action.needs_sign_in]
    return [*sorted({f"{name.partition('.')[0]}.*" for name in names} | set(names)), "*"]


def make_token(session: Session, *, by: AccessSubject, name: str, scopes: Iterable[str], days: int) -> NewToken:
    """Make a token of one's own; it can never do more than the account can at that moment."""
    clean = check_title(name, what="name of the token")
    wanted, known = sorted(set(scopes)), known_scopes()
    for scope in wanted:
        if scope not in known:
            raise ParameterError(
                f'There is no scope "{scope[:60]}".{did_you_mean(scope, known)}', fix="use the names of actions."
            )
    if not wanted or not 1 <= days <= MOST_DAYS:
        raise ParameterError(
            "A token is for something and ends some day.", fix=f"give a scope, and 1 to {MOST_DAYS} days."
        )
    _check_number(session, by)
    secret = PREFIX + random_text(32)
    token = ApiToken(
        id=new_id("tok"),
        user_id=by.user_id,
        name=clean,
        digest=digest_secret(secret),
        scopes=wanted,
        expires=now() + timedelta(days=days),
    )
    session.add(token)
    session.flush()
    _log_token(session, by, token, change="token made", scopes=wanted[:20], days=days)
    return NewToken(token, secret)


def list_tokens(session: Session, user_id: str) -> list[ApiToken]:
    """Return the tokens of somebody that are not revoked, the newest first."""
    return list(
        session.scalars(
            select(ApiToken)
            .where(ApiToken.user_id == user_id, ApiToken.revoked.is_(None))
            .order_by(ApiToken.created.desc(), ApiToken.id)
        )
    )


def revoke_token(session: Session, token_id: str, *, by: AccessSubject) -> None:
    """End a token of one's own."""
    token = session.get(ApiToken, token_id)
    if token is None or token.user_id != by.user_id or token.revoked is not None:
        raise NotFoundError("There is no such token of yours.", fix="look at the list of your tokens.")
    token.revoked = now()
    _log_token(session, by, token, change="token revoked")


def _check_number(session: Session, by: AccessSubject) -> None:
    counted = select(func.count()).where(
        ApiToken.user_id == by.user_id, ApiToken.revoked.is_(None), ApiToken.expires > now()
    )
    if int(session.scalar(counted) or 0) >= MOST_TOKENS:
        raise ConflictError(f"You have {MOST_TOKENS} tokens.", fix="revoke those that you do not use.")


def _log_token(session: Session, by: AccessSubject, token: ApiToken, **details: Any) -> None:
    audit_log.append(session, actions.CHANGE_SELF, by=by, target=f"token:{token.id}", **details)


FRESH = timedelta(minutes=5)
"""How long after signing in somebody without a password may add another way in."""


def describe_own(session: Session, signed_in: SignedIn) -> dict[str, Any]:
    """Return everything that the hub knows about somebody's account, for themselves."""
    user = session.get_one(User, signed_in.subject.user_id)
    identities = session.scalars(select(Identity).where(Identity.user_id == user.id).order_by(Identity.created))
    return {
        "id": user.id,
        "name": user.name,
        "display_name": user.display_name,
        "organisation": None if user.organisation is None else user.organisation.name,
        "roles": sorted(user.roles),
        "attributes": dict(user.attributes),
        "has_password": user.password_hash is not None,
        "has_second_factor": second_factor.is_on(user),
        "recovery_codes_left": second_factor.codes_left(session, user),
        "identities": [{"issuer": item.issuer, "since": item.created.isoformat()} for item in identities],
        "sign_ins": list_sign_ins(session, signed_in),
        "tokens": [describe_token(token) for token in list_tokens(session, user.id)],
    }


def describe_token(token: ApiToken) -> dict[str, Any]:
    """Return a token without its secret."""
    return {
        "id": token.id,
        "name": token.name,
        "scopes": token.scopes,
        "created": token.created.isoformat(),
        "expires": None if token.expires is None else token.expires.isoformat(),
    }


def list_sign_ins(session: Session, signed_in: SignedIn) -> list[dict[str, Any]]:
    """Return the sign-ins of somebody that are open, the newest first."""
    user_id = signed_in.subject.user_id
    found = session.scalars(
        select(LoginSession)
        .where(LoginSession.user_id == user_id, LoginSession.expires > now())
        .order_by(LoginSession.created.desc(), LoginSession.id)
    )
    return [
        {
            "id": login.id,
            "method": login.method,
            "since": login.created.isoformat(),
            "seen": login.seen.isoformat(),
            "expires": login.expires.isoformat(),
            "is_this": login.id == signed_in.login_id,
        }
        for login in found
    ]


def end_sign_in(session: Session, signed_in: SignedIn, login_id: str) -> None:
    """End one sign-in of one's own."""
    if close_logins(session, signed_in.subject.user_id, only=login_id) == 0:
        raise NotFoundError("There is no such sign-in of yours.", fix="look at the list of your sign-ins.")
    _log_change(session, signed_in.subject, change="sign-in ended")


def end_all_sign_ins(session: Session, signed_in: SignedIn) -> int:
    """End all sign-ins of one's own, this one too, and treat all browsers as strangers; tokens stay."""
    ended = close_logins(session, signed_in.subject.user_id)
    sign_in.forget_browsers(session, signed_in.subject.user_id)
    _log_change(session, signed_in.subject, change="signed out everywhere", ended=ended)
    return ended


def change_password(hub: Hub, signed_in: SignedIn, *, current: str, new: str) -> None:
    """Change one's own password, which ends all other sign-ins."""
    subject = signed_in.subject
    clean = passwords.check_password(new, name=subject.name)
    check_own_password(hub, subject, current)
    kept = passwords.hash_password(clean)
    with hub.store.writing() as session:
        session.get_one(User, subject.user_id).password_hash = kept
        # Whoever knew the old password may be signed in elsewhere; this browser has just shown who it is.
        ended = close_logins(session, subject.user_id, but=signed_in.login_id)
        sign_in.forget_browsers(session, subject.user_id)
        _log_change(session, subject, change="password changed", ended=ended)


def propose_factor(hub: Hub, subject: AccessSubject, *, password: str, code: str = "") -> second_factor.Proposal:
    """Begin to use an authenticator; who has one already replaces it with one of its codes only."""
    check_own_password(hub, subject, password)
    # Codes are counted like passwords, in a transaction of their own, so that a wrong one stays counted.
    _begin_try(hub, subject)
    with hub.store.writing() as session:
        user = session.get_one(User, subject.user_id)
        _use_code(session, hub, user, code)
        sign_in.forgive(session, sign_in.own_counter(subject.user_id))
        return second_factor.propose(session, hub.key, user)


def confirm_factor(hub: Hub, subject: AccessSubject, *, code: str) -> list[str]:
    """Confirm the authenticator with its first code; return recovery codes, shown once."""
    _begin_try(hub, subject)
    with hub.store.writing() as session:
        codes = second_factor.confirm(session, hub.key, session.get_one(User, subject.user_id), code)
        sign_in.forgive(session, sign_in.own_counter(subject.user_id))
        _log_change(session, subject, change="second factor set")
    return codes


def remove_factor(hub: Hub, subject: AccessSubject, *, password: str, code: str) -> None:
    """Stop using a second factor, with one of its codes."""
    check_own_password(hub, subject, password)
    _begin_try(hub, subject)
    with hub.store.writing() as session:
        user = session.get_one(User, subject.user_id)
        if not second_factor.is_on(user):
            raise ConflictError("Your account has no second factor.", fix="there is nothing to remove.")
        if hub.settings.owner_second_factor and AccountRole.DATA_OWNER in subject.roles:
            raise ForbiddenError(
                "Data owners of this hub keep a second factor.", fix="set up a new authenticator; it replaces this one."
            )
        _use_code(session, hub, user, code)
        second_factor.remove(session, user)
        sign_in.forgive(session, sign_in.own_counter(subject.user_id))
        _log_change(session, subject, change="second factor removed")


def prove_again(hub: Hub, signed_in: SignedIn, *, password: str, code: str) -> None:
    """Raise unless somebody who is signed in shows that it is still them, before another way in is added.

    With a password it is given again; without one the sign-in has to be fresh. A second factor is asked for where one
    is set.
    """
    subject = signed_in.subject
    with hub.store.reading() as session:
        has_password = session.get_one(User, subject.user_id).password_hash is not None
        login = session.scalars(select(LoginSession).where(LoginSession.id == signed_in.login_id)).one_or_none()
    if has_password:
        check_own_password(hub, subject, password)
    elif login is None or now() - login.created >= FRESH:
        raise ForbiddenError("You signed in a while ago.", fix="sign out, sign in again, and repeat this at once.")
    _begin_try(hub, subject)
    with hub.store.writing() as session:
        _use_code(session, hub, session.get_one(User, subject.user_id), code)
        sign_in.forgive(session, sign_in.own_counter(subject.user_id))


def check_own_password(hub: Hub, subject: AccessSubject, password: str) -> None:
    """Raise unless somebody who is signed in gives their password again."""
    counter = sign_in.own_counter(subject.user_id)
    with hub.store.writing() as session:
        kept = session.get_one(User, subject.user_id).password_hash
        if kept is None:
            raise ConflictError(
                "Your account has no password.", fix="ask an operator for a link by which you can set one."
            )
        # Counted before it is verified: many tries at once are many tries.
        sign_in.begin_try(session, counter)
    if not passwords.verify_password(kept, password):
        raise ForbiddenError("This is not your present password.", fix="type the password you signed in with.")
    with hub.store.writing() as session:
        sign_in.forgive(session, counter)


def _begin_try(hub: Hub, subject: AccessSubject) -> None:
    with hub.store.writing() as session:
        sign_in.begin_try(session, sign_in.own_counter(subject.user_id))


def _use_code(session: Session, hub: Hub, user: User, code: str) -> None:
    """Raise unless a code of the second factor is right, where the account has one."""
    if not second_factor.accept(session, hub.key, user, code):
        raise ForbiddenError("This code is not right.", fix="take the next code, or a recovery code.")


def _log_change(session: Session, subject: AccessSubject, **details: Any) -> None:
    target = f"account:{subject.user_id}"
    audit_log.append(session, actions.CHANGE_SELF, by=subject, target=target, **details)
