"""Who a request comes from, and that a browser sent it on purpose."""

from __future__ import annotations

import hmac
from urllib.parse import urlsplit

from fastapi import Request
from sqlalchemy.orm import Session

from cloister.errors import ForbiddenError, NotSignedInError
from cloister.hub.gateway.cookies import COOKIE, CSRF_COOKIE, session_cookie
from cloister.hub.hub import Hub
from cloister.hub.services.sessions import SignedIn, digest_of, find_login, find_token

__all__ = ["COOKIE", "CSRF_COOKIE", "CSRF_HEADER", "check_origin", "check_proof", "of_request"]

CSRF_HEADER = "x-csrf-token"
_OWN_SITE = frozenset({"same-origin", "none"})
_RETRY = "load the page again, then repeat."


def of_request(session: Session, request: Request) -> SignedIn | None:
    """Return who asks: by a token if there is one, else by the cookie, else nobody. A wrong token is refused."""
    header = request.headers.get("authorization")
    if header is not None:
        scheme, _, secret = header.partition(" ")
        found = find_token(session, secret.strip()) if scheme.lower() == "bearer" else None
        if found is None:
            raise NotSignedInError("This token is not valid.", fix="make a new one on your account page.")
        return found
    hub: Hub = request.app.state.hub
    cookie = session_cookie(request)
    return None if cookie is None else find_login(session, cookie, idle_minutes=hub.settings.idle_minutes)


def check_origin(request: Request) -> None:
    """Raise if a browser sent a change from a page of another site, whether or not anybody is signed in."""
    site = request.headers.get("sec-fetch-site")
    if (site is not None and site not in _OWN_SITE) or not _is_own_origin(request):
        raise ForbiddenError("This request came from another site.", fix=_RETRY)


def check_proof(request: Request, signed_in: SignedIn) -> None:
    """Raise unless a change carries the proof that only the hub's own pages can read, or a token."""
    if signed_in.csrf_digest is None:
        return
    proof = request.headers.get(CSRF_HEADER, "")
    if not hmac.compare_digest(digest_of(proof), signed_in.csrf_digest):
        raise ForbiddenError("This request has no proof that your browser sent it on purpose.", fix=_RETRY)


def _is_own_origin(request: Request) -> bool:
    origin = request.headers.get("origin")
    if origin is None:
        return True
    hub: Hub = request.app.state.hub
    if hub.settings.public_url:
        own = urlsplit(hub.settings.address)
        return origin == f"{own.scheme}://{own.netloc}"
    return urlsplit(origin).netloc == request.headers.get("host", "")
