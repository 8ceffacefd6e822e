"""Signing in with a name, a password and, where the account has one, a second factor.

Whatever is wrong, the answer is the same, and so is the work: one count, one argon2 verification, one refusal that
does not say whose it was. The audit log says how many tries failed when somebody succeeds. Hashing happens outside of
transactions, so that it holds nobody up.
"""

from __future__ import annotations

from dataclasses import dataclass

from sqlalchemy import select
from sqlalchemy.orm import Session

from cloister.errors import NotSignedInError
from cloister.hub.domain import actions
from cloister.hub.domain.names import folded
from cloister.hub.domain.roles import Subject
from cloister.hub.hub import Hub
from cloister.hub.services import auditing, sessions
from cloister.hub.services.accounts import lockout, passwords, second_factor
from cloister.hub.store.models import User


@dataclass(frozen=True, slots=True, kw_only=True)
class Opened:
    """A new sign-in: its secrets, for cookies only, and whose it is."""

    cookie: str
    csrf: str
    browser: str
    subject: Subject


def sign_in(
    hub: Hub, *, name: str, password: str, code: str = "", browser: str | None = None, replaced: str | None = None
) -> Opened:
    """Begin a sign-in, or raise one error for every reason.

    Args:
        hub: where.
        name: of the account.
        password: of the account.
        code: from the authenticator, or a recovery code, where the account has a second factor.
        browser: the secret of a browser that was here before.
        replaced: the cookie of a sign-in that this one replaces.
    """
    with hub.store.writing() as session:
        user = _find(session, name)
        counter = lockout.counter_for(session, name, user_id=None if user is None else user.id, browser=browser)
        lockout.begin_try(session, counter)
        kept = None if user is None else user.password_hash
    is_right = passwords.verify_password(kept, password)
    outdated = is_right and kept is not None and passwords.is_outdated(kept)
    renewed = passwords.hash_password(password) if outdated else None
    if is_right:
        opened = _open(
            hub, name, kept=kept, code=code, renewed=renewed, counter=counter, browser=browser, replaced=replaced
        )
        if opened is not None:
            return opened
    auditing.record_refusal(hub.store, actions.SIGN_IN, subject=None, target_id=None, problem=_wrong())
    raise _wrong()


def _open(
    hub: Hub,
    name: str,
    *,
    kept: str | None,
    code: str,
    renewed: str | None,
    counter: lockout.Counter,
    browser: str | None,
    replaced: str | None,
) -> Opened | None:
    with hub.store.writing() as session:
        user = _find(session, name, lock=True)
        if user is None or user.is_disabled or user.password_hash != kept:
            return None
        if not second_factor.accept(session, hub.key, user, code):
            return None
        failures = lockout.forgive(session, counter)
        if renewed is not None:
            user.password_hash = renewed
        return open_for(session, hub, user, method="password", failures=failures, browser=browser, replaced=replaced)


def open_for(
    session: Session,
    hub: Hub,
    user: User,
    *,
    method: str,
    failures: int = 0,
    browser: str | None,
    replaced: str | None,
) -> Opened:
    """Begin a sign-in for somebody whose identity was shown, ending the one that the browser had."""
    if replaced is not None:
        sessions.close_login(session, replaced)
    cookie, csrf = sessions.open_login(session, user, hours=hub.settings.session_hours, method=method)
    known = lockout.remember_browser(session, user.id, browser)
    subject = sessions.subject_of(user)
    auditing.append(session, actions.SIGN_IN, by=subject, target=f"account:{user.id}", method=method, failures=failures)
    return Opened(cookie=cookie, csrf=csrf, browser=known, subject=subject)


def sign_out(hub: Hub, subject: Subject, cookie: str) -> None:
    """End a sign-in."""
    with hub.store.writing() as session:
        sessions.close_login(session, cookie)
        auditing.append(session, actions.SIGN_OUT, by=subject, target=f"account:{subject.user_id}")


def _find(session: Session, name: str, *, lock: bool = False) -> User | None:
    asked = select(User).where(User.folded == folded(name))
    return session.scalars(asked.with_for_update(of=User) if lock else asked).one_or_none()


def _wrong() -> NotSignedInError:
    return NotSignedInError(
        "The name, the password or the code is not right.",
        fix="try again; where the account has a second factor, give its code too.",
    )
