"""Signing in with a name, a password and, where the account has one, a second factor; and waiting after failures.

Whatever is wrong, the answer is the same, and so is the work: one count, one argon2 verification, one refusal that
does not say whose it was. The audit log says how many tries failed when somebody succeeds. Hashing happens outside of
transactions, so that it holds nobody up.

Tries are counted (lockout): after five failures each next one has to wait, twice as long each time, at most a quarter
hour. Names that nobody has are counted exactly as names that somebody has, so waiting tells nothing. A try is counted
before its password is looked at, so that many at once are many tries. Tries during the wait do not prolong it. Who
knows only a name can keep strangers' browsers waiting, but not the browsers in which that person has signed in
before: those have counts of their own. Counts are kept in the database, under digests, and forgotten after a day.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from datetime import datetime, timedelta

from sqlalchemy import delete, select
from sqlalchemy.orm import Session

from cloister.errors import NotSignedInError, TooManyRequestsError
from cloister.hub.domain import actions
from cloister.hub.domain.roles import AccessSubject
from cloister.hub.domain.untrusted_input import fold_name
from cloister.hub.hub import Hub
from cloister.hub.store.database import Store
from cloister.hub.store.models import KnownBrowser, SignInTries, User, now
from cloister.hub.store.models.base import random_text
from cloister.hub.use_cases import audit_log, sessions
from cloister.hub.use_cases.accounts import passwords, second_factor
from cloister.hub.use_cases.sessions import digest_secret

FREE_TRIES = 5
LONGEST_WAIT = timedelta(minutes=15)
MEMORY = timedelta(days=1)
BROWSER_DAYS = 180


@dataclass(frozen=True, slots=True)
class Counter:
    """What a try counts against: a name, or a browser that was here before."""

    key: str


@dataclass(frozen=True, slots=True)
class Holder:
    """Whose a browser is: the account and its name, folded."""

    user_id: str
    folded: str


def wait_after(failures: int) -> timedelta:
    """Return how long the next try has to wait: 2 seconds after five failures, doubling to a quarter hour."""
    if failures < FREE_TRIES:
        return timedelta(0)
    return min(timedelta(seconds=2 ** min(failures - FREE_TRIES + 1, 30)), LONGEST_WAIT)


def counter_for(session: Session, name: str, *, user_id: str | None, browser: str | None) -> Counter:
    """Return what a try with a name from a browser counts against."""
    known = None if browser is None else session.get(KnownBrowser, digest_secret(browser))
    # A browser counts for its own person only: with every other name it would be a fresh count to guess with.
    if known is not None and known.user_id == user_id and known.expires > now():
        return Counter(f"browser:{known.digest}")
    # Whatever was typed is counted, however long and odd, or such names would have tries for nothing.
    return Counter("name:" + hashlib.sha256(fold_name(name)[:200].encode("utf-8", "surrogatepass")).hexdigest())


def holder_of(store: Store, browser: str) -> Holder | None:
    """Return who has signed in with a browser before, or None for a browser that was never here."""
    with store.reading() as session:
        known = session.get(KnownBrowser, digest_secret(browser))
        if known is None or known.expires <= now():
            return None
        return Holder(known.user_id, session.get_one(User, known.user_id).folded)


def own_counter(user_id: str) -> Counter:
    """Return what the tries of somebody count who is signed in and must give their password again."""
    return Counter(f"own:{user_id}")


def begin_try(session: Session, counter: Counter) -> None:
    """Count a try as failed until `forgive` says otherwise, or raise if it comes too early."""
    moment = now()
    session.execute(delete(SignInTries).where(SignInTries.updated < moment - MEMORY))
    tries = session.get(SignInTries, counter.key, with_for_update=True)
    if tries is None:
        tries = SignInTries(key=counter.key, failures=0, locked_until=None)
        session.add(tries)
    if tries.locked_until is not None and tries.locked_until > moment:
        raise _too_early(tries.locked_until - moment)
    tries.failures += 1
    tries.updated = moment
    tries.locked_until = _later(moment, wait_after(tries.failures))


def forgive(session: Session, counter: Counter) -> int:
    """Forget the failures after a success; return how many there were before it."""
    tries = session.get(SignInTries, counter.key)
    if tries is None:
        return 0
    session.delete(tries)
    return max(0, tries.failures - 1)


def remember_browser(session: Session, user_id: str, browser: str | None) -> str:
    """Return the secret by which a browser is known as one of somebody's, the same as before if it was."""
    moment = now()
    session.execute(delete(KnownBrowser).where(KnownBrowser.expires <= moment))
    known = None if browser is None else session.get(KnownBrowser, digest_secret(browser))
    secret = browser if browser is not None and known is not None and known.user_id == user_id else random_text(32)
    session.merge(
        KnownBrowser(digest=digest_secret(secret), user_id=user_id, expires=moment + timedelta(days=BROWSER_DAYS))
    )
    return secret


def forget_browsers(session: Session, user_id: str) -> None:
    """Treat all browsers of somebody as strangers again."""
    session.execute(delete(KnownBrowser).where(KnownBrowser.user_id == user_id))


def _later(moment: datetime, wait: timedelta) -> datetime | None:
    return moment + wait if wait else None


def _too_early(left: timedelta) -> TooManyRequestsError:
    seconds = max(1, round(left.total_seconds()))
    return TooManyRequestsError(
        "There were too many tries with this name.",
        fix=f"wait {seconds} seconds, then try again.",
        wait_seconds=seconds,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Opened:
    """A new sign-in: its secrets, for cookies only, and whose it is."""

    cookie: str
    csrf: str
    browser: str
    subject: AccessSubject


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
        counter = counter_for(session, name, user_id=None if user is None else user.id, browser=browser)
        begin_try(session, counter)
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
    audit_log.record_refusal(hub.store, actions.SIGN_IN, subject=None, target_id=None, problem=_wrong())
    raise _wrong()


def _open(
    hub: Hub,
    name: str,
    *,
    kept: str | None,
    code: str,
    renewed: str | None,
    counter: Counter,
    browser: str | None,
    replaced: str | None,
) -> Opened | None:
    with hub.store.writing() as session:
        user = _find(session, name, lock=True)
        # The password may have been changed while the old one was verified, outside of any transaction.
        if user is None or user.is_disabled or user.password_hash != kept:
            return None
        # The account is locked, so that one code cannot serve two sign-ins at once.
        if not second_factor.accept(session, hub.key, user, code):
            return None
        failures = forgive(session, counter)
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
    # A sign-in that somebody else may have put into this browser ends before the new one begins.
    if replaced is not None:
        sessions.close_login(session, replaced)
    cookie, csrf = sessions.open_login(session, user, hours=hub.settings.session_hours, method=method)
    known = remember_browser(session, user.id, browser)
    subject = sessions.subject_of(user)
    audit_log.append(
        session, actions.SIGN_IN, by=subject, target=f"account:{user.id}", method=method, failures=failures
    )
    return Opened(cookie=cookie, csrf=csrf, browser=known, subject=subject)


def sign_out(hub: Hub, subject: AccessSubject, cookie: str) -> None:
    """End a sign-in."""
    with hub.store.writing() as session:
        sessions.close_login(session, cookie)
        audit_log.append(session, actions.SIGN_OUT, by=subject, target=f"account:{subject.user_id}")


def _find(session: Session, name: str, *, lock: bool = False) -> User | None:
    asked = select(User).where(User.folded == fold_name(name))
    return session.scalars(asked.with_for_update(of=User) if lock else asked).one_or_none()


def _wrong() -> NotSignedInError:
    return NotSignedInError(
        "The name, the password or the code is not right.",
        fix="try again; where the account has a second factor, give its code too.",
    )
