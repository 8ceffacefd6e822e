"""Signing in through another service: authorization code with PKCE, state and nonce.

A sign-in begins with one random secret, which goes into a cookie, wrapped by the hub's master key and bound to the
service, the page to return to and an end. State, nonce and verifier are derived from it, so that nothing is stored
until somebody has really signed in; then the state is used up.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import time
from dataclasses import dataclass
from datetime import UTC, datetime

from sqlalchemy import delete
from sqlalchemy.orm import Session

from cloister.crypto.keys import DataKey
from cloister.errors import ConflictError, CryptoError, ForbiddenError, NotSignedInError
from cloister.hub.domain import actions
from cloister.hub.domain.local_paths import local_path
from cloister.hub.domain.roles import Subject
from cloister.hub.hub import Hub
from cloister.hub.services import auditing
from cloister.hub.services.accounts import oidc_accounts
from cloister.hub.services.accounts.oidc_provider import (
    Claims,
    Provider,
    check_token,
    discover,
    exchange,
    find_provider,
)
from cloister.hub.services.accounts.signing_in import Opened, open_for
from cloister.hub.services.sessions import digest_of
from cloister.hub.store.models import Identity, UsedState, User, now

MINUTES = 10
LINK_MINUTES = 2
_PURPOSE = "oidc"
_LINK_PURPOSE = "oidc link"


@dataclass(frozen=True, slots=True, kw_only=True)
class Begun:
    """A sign-in that has begun: where to send the browser, and the cookie that it needs when it comes back."""

    address: str
    cookie: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Finished:
    """A sign-in that has ended well: its secrets (None where an account was only linked), and where to go."""

    opened: Opened | None
    next_path: str


@dataclass(frozen=True, slots=True, kw_only=True)
class _Attempt:
    """What the cookie holds besides the secret."""

    provider: str
    ends: int
    next_path: str
    user_id: str

    @property
    def bound(self) -> str:
        return f"{self.provider}\n{self.ends}\n{self.next_path}\n{self.user_id}"


def redirect_uri(hub: Hub, provider: str) -> str:
    """Return the one address to which the service may send people back."""
    return f"{hub.settings.address}/api/v1/oidc/{provider}/callback"


def begin(
    hub: Hub, name: str, *, next_path: str | None, link_ticket: str = "", subject: Subject | None = None
) -> Begun:
    """Begin a sign-in, or the linking of the account of somebody who is signed in and asked for it just now."""
    provider = find_provider(hub.settings, name)
    user_id = _linking_user(hub, link_ticket, subject) if link_ticket else ""
    metadata = discover(provider)
    attempt = _Attempt(
        provider=name,
        ends=int(time.time()) + MINUTES * 60,
        next_path=local_path(next_path, otherwise="/account" if user_id else "/"),
        user_id=user_id,
    )
    secret = DataKey.generate()
    from authlib.oauth2.rfc6749.parameters import prepare_grant_uri
    from authlib.oauth2.rfc7636 import create_s256_code_challenge

    address = prepare_grant_uri(
        metadata.authorization_endpoint,
        client_id=provider.client_id,
        response_type="code",
        redirect_uri=redirect_uri(hub, name),
        scope="openid profile",
        state=_derived(secret, "state"),
        nonce=_derived(secret, "nonce"),
        code_challenge=create_s256_code_challenge(_derived(secret, "verifier")),
        code_challenge_method="S256",
    )
    wrapped = hub.key.wrap(secret, purpose=_PURPOSE, object_id=attempt.bound)
    return Begun(address=str(address), cookie=_cookie(attempt, wrapped))


def finish(
    hub: Hub,
    name: str,
    *,
    cookie: str | None,
    state: str,
    code: str,
    issuer: str | None = None,
    subject: Subject | None = None,
    browser: str | None = None,
    replaced: str | None = None,
) -> Finished:
    """End a sign-in with what the service sent back, or raise."""
    provider = find_provider(hub.settings, name)
    attempt, secret = _opened_cookie(hub, name, cookie)
    if not hmac.compare_digest(_derived(secret, "state").encode(), state.encode("utf-8", "replace")):
        raise _begin_again()
    if issuer is not None and issuer != provider.issuer:
        raise _begin_again()
    with hub.store.reading() as session:
        if session.get(UsedState, digest_of(state)) is not None:
            raise _begin_again()
    metadata = discover(provider)
    token = exchange(
        provider, metadata, code=code, verifier=_derived(secret, "verifier"), redirect_uri=redirect_uri(hub, name)
    )
    claims = check_token(provider, metadata, token, nonce=_derived(secret, "nonce"))
    try:
        with hub.store.writing() as session:
            _use_up(session, state, attempt)
            if attempt.user_id:
                _link(session, claims, attempt.user_id, subject)
                return Finished(opened=None, next_path=attempt.next_path)
            user = _account(session, provider, claims)
            opened = open_for(session, hub, user, method=name, browser=browser, replaced=replaced)
    except ConflictError:
        raise _begin_again() from None
    return Finished(opened=opened, next_path=attempt.next_path)


def link_ticket(hub: Hub, subject: Subject) -> str:
    """Return a ticket by which somebody who is signed in may link their account, for two minutes."""
    ends = int(time.time()) + LINK_MINUTES * 60
    wrapped = hub.key.wrap(DataKey.generate(), purpose=_LINK_PURPOSE, object_id=f"{subject.user_id}\n{ends}")
    return f"{ends}.{base64.urlsafe_b64encode(wrapped).decode()}"


def _linking_user(hub: Hub, ticket: str, subject: Subject | None) -> str:
    ends, _, wrapped = ticket.partition(".")
    try:
        if subject is None or not ends.isascii() or not ends.isdigit() or int(ends) <= time.time():
            raise _begin_again()
        hub.key.unwrap(
            base64.urlsafe_b64decode(wrapped), purpose=_LINK_PURPOSE, object_id=f"{subject.user_id}\n{int(ends)}"
        )
    except (CryptoError, binascii.Error, ValueError):
        raise _begin_again() from None
    return subject.user_id


def _account(session: Session, provider: Provider, claims: Claims) -> User:
    known = session.get(Identity, (claims.issuer, claims.subject))
    if known is None:
        return oidc_accounts.create_for(session, provider, claims)
    user = session.get_one(User, known.user_id)
    if user.is_disabled:
        raise NotSignedInError("This account is closed.", fix="ask the hub's operator.")
    return user


def _link(session: Session, claims: Claims, user_id: str, subject: Subject | None) -> None:
    if subject is None or subject.user_id != user_id:
        raise _begin_again()
    if session.get(Identity, (claims.issuer, claims.subject)) is not None:
        raise ForbiddenError("That person is linked to an account already.", fix="sign in with it, or ask an operator.")
    session.add(Identity(issuer=claims.issuer, subject=claims.subject, user_id=user_id))
    auditing.append(session, actions.CHANGE_SELF, by=subject, target=f"account:{user_id}", change="identity linked")


def _use_up(session: Session, state: str, attempt: _Attempt) -> None:
    session.execute(delete(UsedState).where(UsedState.expires < now()))
    session.add(UsedState(digest=digest_of(state), expires=datetime.fromtimestamp(attempt.ends, UTC)))
    session.flush()


def _derived(secret: DataKey, label: str) -> str:
    digest = hmac.new(secret.reveal(), f"cloister oidc {label}".encode(), hashlib.sha256).digest()
    return base64.urlsafe_b64encode(digest).decode().rstrip("=")


def _cookie(attempt: _Attempt, wrapped: bytes) -> str:
    parts = (attempt.next_path.encode(), attempt.user_id.encode(), wrapped)
    return ".".join([str(attempt.ends), *(base64.urlsafe_b64encode(part).decode() for part in parts)])


def _opened_cookie(hub: Hub, name: str, cookie: str | None) -> tuple[_Attempt, DataKey]:
    try:
        ends, *parts = (cookie or "").split(".")
        next_path, user_id, wrapped = (base64.urlsafe_b64decode(part) for part in parts)
        attempt = _Attempt(provider=name, ends=int(ends), next_path=next_path.decode(), user_id=user_id.decode())
        secret = hub.key.unwrap(wrapped, purpose=_PURPOSE, object_id=attempt.bound)
    except (CryptoError, binascii.Error, ValueError):
        raise _begin_again() from None
    if attempt.ends <= time.time():
        raise _begin_again()
    return attempt, secret


def _begin_again() -> NotSignedInError:
    return NotSignedInError("This sign-in is over or was not begun here.", fix="begin again on the sign-in page.")
