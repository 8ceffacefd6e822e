"""Tries to sign in: after five failures each next one has to wait, twice as long each time, at most a quarter hour.

Names that nobody has are counted exactly as names that somebody has, so waiting tells nothing. A try is counted
before its password is looked at, so that many at once are many tries. Tries during the wait do not prolong it. Who
knows only a name can keep strangers' browsers waiting, but not the browsers in which that person has signed in
before: those have counts of their own. Counts are kept in the database, under digests, and forgotten after a day.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from datetime import datetime, timedelta

from sqlalchemy import delete
from sqlalchemy.orm import Session

from cloister.errors import TooManyRequestsError
from cloister.hub.domain.names import folded
from cloister.hub.services.sessions import digest_of
from cloister.hub.store.database import Store
from cloister.hub.store.models import KnownBrowser, SignInTries, User, now
from cloister.hub.store.models.base import random_text

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
    known = None if browser is None else session.get(KnownBrowser, digest_of(browser))
    if known is not None and known.user_id == user_id and known.expires > now():
        return Counter(f"browser:{known.digest}")
    return Counter("name:" + hashlib.sha256(folded(name)[:200].encode("utf-8", "surrogatepass")).hexdigest())


def holder_of(store: Store, browser: str) -> Holder | None:
    """Return who has signed in with a browser before, or None for a browser that was never here."""
    with store.reading() as session:
        known = session.get(KnownBrowser, digest_of(browser))
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
    known = None if browser is None else session.get(KnownBrowser, digest_of(browser))
    secret = browser if browser is not None and known is not None and known.user_id == user_id else random_text(32)
    session.merge(
        KnownBrowser(digest=digest_of(secret), user_id=user_id, expires=moment + timedelta(days=BROWSER_DAYS))
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
