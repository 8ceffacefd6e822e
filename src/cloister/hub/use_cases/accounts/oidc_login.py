"""Signing in through another service: authorization code with PKCE, state and nonce.

A sign-in begins with one random secret, which goes into a cookie, wrapped by the hub's master key and bound to the
service, the page to return to and an end. State, nonce and verifier are derived from it, so that nothing is stored
until somebody has really signed in; then the state is used up.

People who come from another sign-in service for the first time are refused, or get an account without any role.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import re
import time
from dataclasses import dataclass
from datetime import UTC, datetime
from urllib.parse import urlencode, urlsplit, urlunsplit

from sqlalchemy import delete, select
from sqlalchemy.orm import Session

from cloister.crypto.keys import DataKey
from cloister.errors import ConflictError, CryptoError, ForbiddenError, NotSignedInError, ParameterError
from cloister.hub.domain import actions
from cloister.hub.domain.roles import AccessSubject
from cloister.hub.domain.untrusted_input import check_title, fold_name, local_path
from cloister.hub.hub import Hub
from cloister.hub.store.models import Identity, UsedState, User, new_id, now
from cloister.hub.store.models.base import random_text
from cloister.hub.use_cases import audit_log
from cloister.hub.use_cases.accounts.oidc_provider import (
    Claims,
    Provider,
    check_token,
    discover,
    exchange,
    find_provider,
)
from cloister.hub.use_cases.accounts.sign_in import Opened, open_for
from cloister.hub.use_cases.sessions import digest_secret

_ODD = re.compile(r"[^a-z0-9._-]+")


def create_for(session: Session, provider: Provider, claims: Claims) -> User:
    """Make an account without roles for a new person, or raise where the hub does not take new ones by itself."""
    if not provider.creates_accounts:
        raise ForbiddenError(
            "Nobody here has an account that is linked to this sign-in.",
            fix="ask the hub's operator for an account, sign in to it, and link it on your account page.",
        )
    user = User(id=new_id("usr"), name=_free_name(session, provider, claims), display_name=_choose_display_name(claims))
    session.add(user)
    session.flush()
    session.add(Identity(issuer=claims.issuer, subject=claims.subject, user_id=user.id))
    audit_log.append(
        session, actions.SIGN_IN, by=user.id, target=f"account:{user.id}", change="created", method=provider.name
    )
    return user


def _free_name(session: Session, provider: Provider, claims: Claims) -> str:
    """Return a name that no operator can give, so that nobody comes to a name that a policy was written for."""
    base = _ODD.sub("-", claims.preferred_name.partition("@")[0].lower()).strip("-._")[:40] or "person"
    for name in (f"{base}@{provider.name}", f"{base}-{random_text(5)}@{provider.name}"):
        if session.scalar(select(User.id).where(User.folded == fold_name(name))) is None:
            return name
    return f"{new_id('person')}@{provider.name}"


def _choose_display_name(claims: Claims) -> str:
    try:
        return check_title(claims.display_name, what="shown name")
    except ParameterError:
        return ""


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
    hub: Hub, name: str, *, next_path: str | None, link_ticket: str = "", subject: AccessSubject | None = None
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
    address = _add_query(
        metadata.authorization_endpoint,
        response_type="code",
        client_id=provider.client_id,
        redirect_uri=redirect_uri(hub, name),
        scope="openid profile",
        state=_derive_text(secret, "state"),
        nonce=_derive_text(secret, "nonce"),
        code_challenge=_code_challenge(_derive_text(secret, "verifier")),
        code_challenge_method="S256",
    )
    wrapped = hub.key.wrap(secret, purpose=_PURPOSE, object_id=attempt.bound)
    return Begun(address=address, cookie=_cookie(attempt, wrapped))


def finish(
    hub: Hub,
    name: str,
    *,
    cookie: str | None,
    state: str,
    code: str,
    issuer: str | None = None,
    subject: AccessSubject | None = None,
    browser: str | None = None,
    replaced: str | None = None,
) -> Finished:
    """End a sign-in with what the service sent back, or raise."""
    provider = find_provider(hub.settings, name)
    attempt, secret = _open_cookie(hub, name, cookie)
    if not hmac.compare_digest(_derive_text(secret, "state").encode(), state.encode("utf-8", "replace")):
        raise _begin_again()
    if issuer is not None and issuer != provider.issuer:
        raise _begin_again()
    with hub.store.reading() as session:
        # Asked before the service is bothered; whether the state counts is decided below, where it can be used once
        # only.
        if session.get(UsedState, digest_secret(state)) is not None:
            raise _begin_again()
    metadata = discover(provider)
    token = exchange(
        provider, metadata, code=code, verifier=_derive_text(secret, "verifier"), redirect_uri=redirect_uri(hub, name)
    )
    claims = check_token(provider, metadata, token, nonce=_derive_text(secret, "nonce"))
    try:
        with hub.store.writing() as session:
            # Used up in the transaction that opens the sign-in: the database lets a state in once.
            _use_up(session, state, attempt)
            if attempt.user_id:
                _link(session, claims, attempt.user_id, subject)
                return Finished(opened=None, next_path=attempt.next_path)
            user = _account(session, provider, claims)
            opened = open_for(session, hub, user, method=name, browser=browser, replaced=replaced)
    except ConflictError:
        raise _begin_again() from None
    return Finished(opened=opened, next_path=attempt.next_path)


def link_ticket(hub: Hub, subject: AccessSubject) -> str:
    """Return a ticket by which somebody who is signed in may link their account, for two minutes."""
    ends = int(time.time()) + LINK_MINUTES * 60
    wrapped = hub.key.wrap(DataKey.generate(), purpose=_LINK_PURPOSE, object_id=f"{subject.user_id}\n{ends}")
    return f"{ends}.{base64.urlsafe_b64encode(wrapped).decode()}"


def _linking_user(hub: Hub, ticket: str, subject: AccessSubject | None) -> str:
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
        return create_for(session, provider, claims)
    user = session.get_one(User, known.user_id)
    if user.is_disabled:
        raise NotSignedInError("This account is closed.", fix="ask the hub's operator.")
    return user


def _link(session: Session, claims: Claims, user_id: str, subject: AccessSubject | None) -> None:
    # Whoever comes back must be whoever began, or a stranger's identity could be linked to this account.
    if subject is None or subject.user_id != user_id:
        raise _begin_again()
    if session.get(Identity, (claims.issuer, claims.subject)) is not None:
        raise ForbiddenError("That person is linked to an account already.", fix="sign in with it, or ask an operator.")
    session.add(Identity(issuer=claims.issuer, subject=claims.subject, user_id=user_id))
    audit_log.append(session, actions.CHANGE_SELF, by=subject, target=f"account:{user_id}", change="identity linked")


def _use_up(session: Session, state: str, attempt: _Attempt) -> None:
    session.execute(delete(UsedState).where(UsedState.expires < now()))
    session.add(UsedState(digest=digest_secret(state), expires=datetime.fromtimestamp(attempt.ends, UTC)))
    session.flush()


def _derive_text(secret: DataKey, label: str) -> str:
    digest = hmac.new(secret.reveal(), f"cloister oidc {label}".encode(), hashlib.sha256).digest()
    return _unpadded(digest)


def _code_challenge(verifier: str) -> str:
    """Return what the service may know of a verifier before the code comes back (RFC 7636, S256)."""
    return _unpadded(hashlib.sha256(verifier.encode("ascii")).digest())


def _unpadded(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).decode().rstrip("=")


def _add_query(address: str, **values: str) -> str:
    """Add values to an address; a query that it has already stays (RFC 6749, section 3.1)."""
    parts = urlsplit(address)
    query = "&".join(part for part in (parts.query, urlencode(values)) if part)
    return urlunsplit(parts._replace(query=query))


def _cookie(attempt: _Attempt, wrapped: bytes) -> str:
    parts = (attempt.next_path.encode(), attempt.user_id.encode(), wrapped)
    return ".".join([str(attempt.ends), *(base64.urlsafe_b64encode(part).decode() for part in parts)])


def _open_cookie(hub: Hub, name: str, cookie: str | None) -> tuple[_Attempt, DataKey]:
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
