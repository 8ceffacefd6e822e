"""Rate limits: who is let in now, who waits and who comes back later, by account or by address; tries to sign in.

Nobody's crowd keeps everybody else from the hub.

Requests work in threads, and there are few. So each request first takes a place in a lane (`gateway._lanes`):
strangers, strangers who sign in, browsers that are known and sign in, people whose sign-in was not looked at yet, and
people who are signed in, each with a bounded number at work and a bounded line. Whoever does not fit gets 429 or 503
with ``Retry-After`` at once, before the body is read. Whoever waits does so without a thread, and is dropped when the
client has gone: nothing of an abandoned request is worked off. A place is held for as long as the hub works, not for as
long as a client reads: it is given back before the answer is sent. An upload holds a place of its sender's share from
when it is known who sends it. Health and the files of the pages need no place.

A browser that is known gets its place for signing in only with the name of the person who signed in there: with any
other name it is a stranger's, and so it is where that person has tried often.

Addresses are looked at only where the hub is reached directly; behind a proxy it does not learn them, so that nobody
can tell who answered a survey, and the proxy has to limit them. An address of IPv6 is its /64.
"""

from __future__ import annotations

import asyncio
import json
from collections import OrderedDict
from collections.abc import MutableMapping
from ipaddress import ip_address, ip_network
from typing import Any

from fastapi import Request
from fastapi.responses import JSONResponse, PlainTextResponse, Response
from starlette.concurrency import run_in_threadpool
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from cloister.errors import HubError, HubUnavailableError, TooManyRequestsError
from cloister.hub.domain.untrusted_input import fold_name
from cloister.hub.gateway import failures
from cloister.hub.gateway._lanes import Lane, LanePlace, TokenBuckets
from cloister.hub.gateway.bodies import takes_upload
from cloister.hub.gateway.identity import BROWSER_COOKIE, read_cookie, session_cookie
from cloister.hub.hub import Hub
from cloister.hub.use_cases.accounts import sign_in
from cloister.hub.use_cases.sessions import SignedIn, digest_secret

__all__ = ["RequestAdmission"]

LANES = {
    "strangers": {"at_once": 6, "waiting": 200, "each_at_once": 4, "each_waiting": 100},
    "signing_in": {"at_once": 1, "waiting": 16, "each_at_once": 1, "each_waiting": 8},
    "returning": {"at_once": 1, "waiting": 16, "each_at_once": 1, "each_waiting": 2},
    "unproven": {"at_once": 4, "waiting": 100, "each_at_once": 3, "each_waiting": 50},
    "people": {"at_once": 20, "waiting": 400, "each_at_once": 4, "each_waiting": 40},
}
"""How many requests of each lane are at work and wait, in all and of one key.

At work they are fewer than the threads of the server's pool, 40: the others are for what needs no place, which is
health and the files of the pages.
"""
TRIES_OF_ALL = {"burst": 60, "rate": 4}
TRIES_OF_ADDRESS = {"burst": 40, "rate": 2}
"""How many sign-ins of strangers are tried at once and in a second, in all and from one address."""
TRIES_OF_RETURNING = {"burst": 20, "rate": 0.05}
"""How many sign-ins of one person, from all browsers that are theirs, do not count as a stranger's."""
LARGEST_SIGN_IN = 16 * 1024
"""The largest body in which the name of a returning person is looked for, in bytes."""
RETRY_SECONDS = 5
MOST_CREDENTIALS = 10_000
_SIGN_IN = ("POST", "/api/v1/session")
_HEALTH = ("/health", "/api/v1/health")


class RequestAdmission:
    """The part of the application that gives out places, as `LANES` says.

    Attributes:
        strangers: requests of people who are not signed in.
        signing_in: sign-ins of browsers that were never here: each costs a hash, so there is one at a time.
        returning: sign-ins of browsers in which the named person has signed in before, which strangers do not hold
            up; each person has their share.
        unproven: requests with a cookie or a token that was not looked at yet.
        people: requests of people who are signed in; each account has its share.
    """

    def __init__(self, app: ASGIApp, *, hub: Hub) -> None:
        self._app, self._hub = app, hub
        self.strangers = Lane(**LANES["strangers"])
        self.signing_in = Lane(**LANES["signing_in"])
        self.returning = Lane(**LANES["returning"])
        self.unproven = Lane(**LANES["unproven"])
        self.people = Lane(**LANES["people"])
        self._tries_of_all = TokenBuckets(burst=TRIES_OF_ALL["burst"], rate=TRIES_OF_ALL["rate"])
        self._tries_of_address = TokenBuckets(burst=TRIES_OF_ADDRESS["burst"], rate=TRIES_OF_ADDRESS["rate"])
        self._tries_of_returning = TokenBuckets(burst=TRIES_OF_RETURNING["burst"], rate=TRIES_OF_RETURNING["rate"])
        self._known: OrderedDict[str, str] = OrderedDict()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on when it has a place, or refuse or drop it."""
        if scope["type"] != "http" or _needs_no_place(scope):
            await self._app(scope, receive, send)
            return
        scope.setdefault("state", {})
        request = Request(scope)
        credential, body = _credential(request), _Body(receive)
        try:
            lane, key = await self._lane(request, credential, body)
            # Asked before the body is read, so that a crowd that does not fit costs neither memory nor time.
            _refuse(lane.refusal(key))
            if takes_upload(scope["path"]):
                await self._pass_upload(lane, key, scope, receive, send)
            else:
                await self._pass(lane, key, scope, body, send)
        except (TooManyRequestsError, HubUnavailableError) as problem:
            await _answer(request, problem)(scope, receive, send)
            return
        self._note(credential, scope["state"])

    async def _lane(self, request: Request, credential: str | None, body: _Body) -> tuple[Lane, str | None]:
        """Return the lane of a request and whose share of it counts."""
        address = _address(request, self._hub)
        if (request.method, request.url.path) == _SIGN_IN:
            return await self._sign_in_lane(request, address, body)
        if credential is None:
            return self.strangers, address
        account = self._known.get(credential)
        return (self.unproven, address) if account is None else (self.people, account)

    async def _sign_in_lane(self, request: Request, address: str | None, body: _Body) -> tuple[Lane, str | None]:
        holder = await self._holder(request, address)
        # Whoever has an account has known browsers too: these serve for that account alone, and only its share.
        if holder is not None and fold_name(await body.name()) == holder.folded:
            _refuse(self.returning.refusal(holder.user_id))
            if self._tries_of_returning.take(holder.user_id):
                return self.returning, holder.user_id
        _refuse(self.signing_in.refusal(address))  # whoever finds no place has cost nothing, and spends nothing
        if address is not None and not self._tries_of_address.take(address):
            raise TooManyRequestsError(
                "There were too many sign-ins from this address.", fix="try again in a minute.", wait_seconds=60
            )
        if not self._tries_of_all.take("all"):
            raise _busy()
        return self.signing_in, address

    async def _holder(self, request: Request, address: str | None) -> sign_in.Holder | None:
        """Return who has signed in before with the browser of a request."""
        browser = read_cookie(request, BROWSER_COOKIE)
        if browser is None:
            return None
        # Looking a browser up takes a thread, and so a place of its own.
        place = _require_place(self.unproven.join(address))
        try:
            await place.turn
            return await run_in_threadpool(sign_in.holder_of, self._hub.store, browser)
        finally:
            self.unproven.leave(place)

    async def _pass(self, lane: Lane, key: str | None, scope: Scope, body: _Body, send: Send) -> None:
        # The body is read first: a slow one must not hold a place.
        if not await body.is_whole():
            return
        seat = _Seat(lane, _require_place(lane.join(key)))
        # After the body there is only one message left: that the client has gone.
        gone = asyncio.ensure_future(body.rest())
        try:
            # One round of the loop, in which a client that has gone already is noticed before its work begins.
            await asyncio.sleep(0)
            either: set[asyncio.Future[Any]] = {seat.place.turn, gone}
            await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
            if not gone.done():
                await self._app(scope, body.replay(gone), seat.leaving(send))
        finally:
            seat.leave()
            gone.cancel()

    async def _pass_upload(self, lane: Lane, key: str | None, scope: Scope, receive: Receive, send: Send) -> None:
        seat = _Seat(lane, _require_place(lane.join(key)))
        refusals: list[HubError] = []

        async def receive_as_person() -> Message:
            # The body is asked for when the guard has looked at who sends it: from then on it is their share.
            sender: SignedIn | None = scope["state"].get("signed_in")
            if sender is not None and seat.lane is self.unproven:
                try:
                    seat.move(self.people, sender.subject.user_id)
                except HubError as problem:
                    refusals.append(problem)
            return {"type": "http.disconnect"} if refusals else await receive()

        async def send_unless_refused(message: Message) -> None:
            if not refusals:
                await send(message)

        try:
            await seat.place.turn
            await self._app(scope, receive_as_person, seat.leaving(send_unless_refused))
        finally:
            seat.leave()
        if refusals:
            raise refusals[0]

    def _note(self, credential: str | None, state: MutableMapping[str, Any]) -> None:
        """Remember whose a cookie or token is, or that it is nobody's any more."""
        if credential is None:
            return
        signed_in: SignedIn | None = state.get("signed_in")
        self._known.pop(credential, None)
        if signed_in is not None:
            self._known[credential] = signed_in.subject.user_id
            while len(self._known) > MOST_CREDENTIALS:
                self._known.popitem(last=False)


class _Seat:
    """The place that a request has, in whichever lane."""

    def __init__(self, lane: Lane, place: LanePlace) -> None:
        self.lane, self.place = lane, place

    def leave(self) -> None:
        self.lane.leave(self.place)

    def move(self, lane: Lane, key: str) -> None:
        """Give the place up for one in another lane, at once: whoever waited would hold a thread all the while."""
        self.leave()
        self.lane, self.place = lane, _require_place(lane.join(key))
        if not self.place.is_working:
            self.leave()
            raise _problem("share")

    def leaving(self, send: Send) -> Send:
        """Return a way to send that gives the place back first: a client may take its time to read, or never do it."""

        async def leave_and_send(message: Message) -> None:
            self.leave()
            await send(message)

        return leave_and_send


class _Body:
    """A body that is read once, when somebody asks for it, and given to the application again."""

    def __init__(self, receive: Receive) -> None:
        self.rest = receive
        self._messages: list[Message] = []

    async def is_whole(self) -> bool:
        """Read to the end, and return whether there is one: the client may have gone before it."""
        while not self._messages or self._messages[-1].get("more_body", False):
            message = await self.rest()
            if message["type"] != "http.request":
                return False
            self._messages.append(message)
        return True

    async def name(self) -> str:
        """Return the name that somebody signs in with, or nothing where the body is not one of a sign-in."""
        if not await self.is_whole():
            return ""
        content = b"".join(message.get("body", b"") for message in self._messages)
        try:
            given = json.loads(content) if len(content) <= LARGEST_SIGN_IN else None
        except (ValueError, RecursionError):
            return ""
        name = given.get("name") if isinstance(given, dict) else None
        return name if isinstance(name, str) else ""

    def replay(self, rest: asyncio.Future[Message]) -> Receive:
        """Return what gives the body again, then whatever comes after it."""

        async def receive() -> Message:
            # Both this and `_pass` wait for the client's end: whoever stops waiting must not end it for the other.
            return self._messages.pop(0) if self._messages else await asyncio.shield(rest)

        return receive


def _answer(request: Request, problem: TooManyRequestsError | HubUnavailableError) -> Response:
    """Return a refusal that costs next to nothing, and ends the connection."""
    headers = {"Cache-Control": "no-store", "Connection": "close"}
    if problem.wait_seconds is not None:
        headers["Retry-After"] = str(problem.wait_seconds)
    status = failures.status_of(problem)
    if request.url.path.startswith("/api/"):
        return JSONResponse(problem.to_dict(), status_code=status, headers=headers)
    return PlainTextResponse(str(problem), status_code=status, headers=headers)


def _needs_no_place(scope: Scope) -> bool:
    if scope["path"].startswith("/static/"):
        return True
    # A token has to be looked up, which takes a thread; without one nothing is asked of the database.
    return scope["path"] in _HEALTH and not any(name == b"authorization" for name, _ in scope["headers"])


def _credential(request: Request) -> str | None:
    """Return a digest of the token or the cookie that a request comes with."""
    secret = request.headers.get("authorization") or session_cookie(request)
    # Kept as a digest, since a memory of credentials should hold none.
    return None if secret is None else digest_secret(secret)


def _address(request: Request, hub: Hub) -> str | None:
    """Return where a request comes from, or None where a proxy stands between."""
    if hub.settings.public_url or request.client is None:
        return None
    try:
        found = ip_address(request.client.host.partition("%")[0])
    except ValueError:
        return request.client.host
    return str(found) if found.version == 4 else str(ip_network((found, 64), strict=False))


def _require_place(found: LanePlace | str) -> LanePlace:
    if isinstance(found, LanePlace):
        return found
    raise _problem(found)


def _refuse(full: str | None) -> None:
    if full is not None:
        raise _problem(full)


def _problem(full: str) -> HubError:
    if full == "lane":
        return _busy()
    return TooManyRequestsError(
        "There are too many requests at once from you or your address.",
        fix="send one after the other.",
        wait_seconds=RETRY_SECONDS,
    )


def _busy() -> HubUnavailableError:
    return HubUnavailableError(
        "The hub has as much to do as it can.", fix="try again in some seconds.", wait_seconds=RETRY_SECONDS
    )
