"""Another sign-in service (OpenID Connect): what it says about itself, changing a code for a token, checking the token.

Everything that the service says about itself comes from its own address (discovery), and its tokens count only if
they are signed by its published keys, for this hub, for this very sign-in, and now.
"""

from __future__ import annotations

import hmac
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from cloister.core.lazy_imports import late_module
from cloister.errors import HubUnavailableError, NotFoundError, NotSignedInError, ParameterError
from cloister.hub.settings import Settings

httpx2 = late_module("httpx2")

ALGORITHMS = ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512")
"""Signatures with published keys; no token without one, and none with a shared secret."""

LEEWAY = 60
PATIENCE = 10.0
_REMEMBERED = 600.0
_LOOPBACK = frozenset({"127.0.0.1", "localhost", "::1"})
_metadata: dict[str, tuple[float, Metadata]] = {}


@dataclass(frozen=True, slots=True, kw_only=True)
class Provider:
    """What the settings say about a sign-in service."""

    name: str
    title: str
    issuer: str
    client_id: str
    client_secret: str
    creates_accounts: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Metadata:
    """What a sign-in service says about itself."""

    authorization_endpoint: str
    token_endpoint: str
    jwks_uri: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Claims:
    """What a checked token says about the person."""

    issuer: str
    subject: str
    preferred_name: str
    display_name: str


def providers(settings: Settings) -> list[Provider]:
    """Return the sign-in services of a hub."""
    return [_provider(name, facts) for name, facts in sorted((settings.oidc or {}).items())]


def find_provider(settings: Settings, name: str) -> Provider:
    """Return a sign-in service by its name."""
    for provider in providers(settings):
        if provider.name == name:
            return provider
    raise NotFoundError("There is no such sign-in service.", fix="choose one on the sign-in page.")


def discover(provider: Provider) -> Metadata:
    """Return what a service says about itself, remembered for some minutes."""
    known = _metadata.get(provider.issuer)
    if known is not None and known[0] > time.monotonic():
        return known[1]
    found = _get(provider.issuer.rstrip("/") + "/.well-known/openid-configuration")
    # The service must call itself as the settings do, since its tokens are held against that name.
    if found.get("issuer") != provider.issuer:
        raise _not_valid()
    try:
        # The addresses that it names are held to the same rule: the code and the hub's secret go there.
        metadata = Metadata(**{name: _check_address(str(found[name])) for name in Metadata.__slots__})
    except KeyError:
        raise _not_valid() from None
    _metadata[provider.issuer] = (time.monotonic() + _REMEMBERED, metadata)
    return metadata


def exchange(provider: Provider, metadata: Metadata, *, code: str, verifier: str, redirect_uri: str) -> str:
    """Change a code for the token that says who signed in; only who began this sign-in knows the verifier."""
    form = {
        "grant_type": "authorization_code",
        "code": code,
        "redirect_uri": redirect_uri,
        "code_verifier": verifier,
        "client_id": provider.client_id,
    }
    secret = (provider.client_id, provider.client_secret) if provider.client_secret else None
    try:
        answer = httpx2.post(metadata.token_endpoint, data=form, auth=secret, timeout=PATIENCE)
        found = answer.json() if answer.status_code == 200 else None
    except httpx2.HTTPError:
        raise _no_answer() from None
    except ValueError:
        raise _not_valid() from None
    if not isinstance(found, dict) or not isinstance(found.get("id_token"), str):
        raise _not_valid()
    return str(found["id_token"])


def check_token(provider: Provider, metadata: Metadata, token: str, *, nonce: str) -> Claims:
    """Return what a token says, after its signature, issuer, audience, time and nonce were checked."""
    from joserfc import jwt
    from joserfc.errors import JoseError
    from joserfc.jwk import KeySet

    try:
        keys = KeySet.import_key_set({"keys": _get(metadata.jwks_uri)["keys"]})
        claims = jwt.decode(token, keys, algorithms=list(ALGORITHMS)).claims
        jwt.JWTClaimsRegistry(
            leeway=LEEWAY,
            iss={"essential": True, "value": provider.issuer},
            sub={"essential": True},
            aud={"essential": True, "value": provider.client_id},
            exp={"essential": True},
            iat={"essential": True},
            nonce={"essential": True},
        ).validate(claims)
    except (JoseError, ValueError, KeyError, TypeError):
        raise _not_valid() from None
    _check_parties(claims, provider, nonce)
    return Claims(
        issuer=provider.issuer,
        subject=claims["sub"],
        preferred_name=str(claims.get("preferred_username", "")),
        display_name=str(claims.get("name", "")),
    )


def _check_parties(claims: Mapping[str, Any], provider: Provider, nonce: str) -> None:
    audience = claims["aud"]
    is_shared = isinstance(audience, list) and len(audience) > 1
    # A token for several audiences has to say which of them asked for it.
    authorized = claims.get("azp", None if is_shared else provider.client_id)
    subject = claims["sub"]
    is_sound = isinstance(subject, str) and 0 < len(subject) <= 255
    is_ours = hmac.compare_digest(str(claims["nonce"]).encode("utf-8", "replace"), nonce.encode())
    if authorized != provider.client_id or not is_sound or not is_ours:
        raise _not_valid()


def _provider(name: str, facts: Mapping[str, str]) -> Provider:
    new_accounts = facts.get("new_accounts", "refuse")
    if not name.replace("-", "").isalnum() or not name.isascii() or new_accounts not in ("refuse", "create"):
        raise ParameterError(f'The sign-in service "{name}" is not described well.', fix="see the settings oidc.")
    try:
        return Provider(
            name=name,
            title=facts.get("title", name),
            issuer=_check_address(facts["issuer"]),
            client_id=facts["client_id"],
            client_secret=facts.get("client_secret", ""),
            creates_accounts=new_accounts == "create",
        )
    except KeyError as missing:
        raise ParameterError(f'The sign-in service "{name}" has no {missing.args[0]}.', fix="add it.") from None


def _check_address(address: str) -> str:
    parts = urlsplit(address)
    if parts.scheme == "https" or (parts.scheme == "http" and parts.hostname in _LOOPBACK):
        return address
    raise ParameterError("A sign-in service is reached by https only.", fix="write https://… as its issuer.")


def _get(address: str) -> dict[str, Any]:
    try:
        answer = httpx2.get(address, timeout=PATIENCE)
        found = answer.json() if answer.status_code == 200 else None
    except (httpx2.HTTPError, ValueError):
        raise _no_answer() from None
    if not isinstance(found, dict):
        raise _no_answer()
    return found


def _no_answer() -> HubUnavailableError:
    return HubUnavailableError("The sign-in service does not answer.", fix="try again later, or use your password.")


def _not_valid() -> NotSignedInError:
    return NotSignedInError("The answer of the sign-in service is not valid.", fix="begin again on the sign-in page.")
