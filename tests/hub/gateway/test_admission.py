"""A crowd does not keep everybody else from the hub: sign-ins in places, abandoned requests dropped, people served."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest
from anyio import to_thread
from fastapi import FastAPI, Request
from sqlalchemy import update

from cloister.errors import HubUnavailableError
from cloister.hub.app import create_app
from cloister.hub.domain import actions
from cloister.hub.domain.roles import AccountRole
from cloister.hub.gateway import GuardedRouter, admission
from cloister.hub.gateway._lanes import Lane, TokenBuckets
from cloister.hub.gateway.admission import LANES, RequestAdmission
from cloister.hub.gateway.identity import BROWSER_COOKIE, COOKIE
from cloister.hub.hub import Hub
from cloister.hub.store.models import KnownBrowser, User, now
from cloister.hub.use_cases.accounts import passwords, sign_in as accounts_sign_in
from cloister.hub.use_cases.accounts.own_account import make_token
from cloister.hub.use_cases.sessions import open_login, subject_of
from tests.hub.conftest import add_user

SIGN_IN = "/api/v1/session"
UPLOAD = "/api/v1/algorithms"
ZIP = {"content-type": "application/zip"}


class Answer:
    """A request under way, whose client can go, and can leave its answer unread."""

    def __init__(self, app: Any, method: str, path: str, **options: Any) -> None:
        self.sent: list[dict[str, Any]] = []
        self.gone = asyncio.Event()
        self._body = options.pop("body", b"")
        self._asked_again = asyncio.Event()
        self.offered, self.may_read = asyncio.Event(), asyncio.Event()
        if options.pop("is_read", True):
            self.may_read.set()
        address = options.pop("address", "10.0.0.1")
        headers = {"host": "127.0.0.1:8080", "content-type": "application/json"} | options.pop("headers", {})
        self._scope = {
            "type": "http",
            "asgi": {"version": "3.0"},
            "http_version": "1.1",
            "method": method,
            "scheme": "http",
            "path": path,
            "raw_path": path.encode(),
            "query_string": b"",
            "root_path": "",
            "headers": [(name.encode(), value.encode()) for name, value in headers.items()],
            "client": (address, 1) if address else None,
            "server": None,
        }
        self.task = asyncio.ensure_future(app(self._scope, self._receive, self._send))

    async def _receive(self) -> dict[str, Any]:
        if self._body is not None:
            body, self._body = self._body, None
            return {"type": "http.request", "body": body, "more_body": False}
        self._asked_again.set()
        await self.gone.wait()
        return {"type": "http.disconnect"}

    async def _send(self, message: Any) -> None:
        self.offered.set()
        await self.may_read.wait()
        self.sent.append(message)

    async def is_waiting(self) -> None:
        """Wait until the body was read and the request is in a lane."""
        await self._asked_again.wait()

    async def status(self) -> int:
        await asyncio.wait_for(self.task, 60)
        return int(self.sent[0]["status"]) if self.sent else 0

    @property
    def headers(self) -> dict[str, str]:
        return {name.decode().lower(): value.decode() for name, value in self.sent[0]["headers"]}

    @property
    def content(self) -> Any:
        return json.loads(b"".join(message.get("body", b"") for message in self.sent[1:]))


Ask = Callable[..., Answer]


class Hashing:
    """Password hashing that stands still until it is let go, and counts."""

    def __init__(self) -> None:
        self.begun, self.may_end, self.count = threading.Event(), threading.Event(), 0

    def verify(self, kept: str | None, password: str) -> bool:
        self.count += 1
        self.begun.set()
        assert self.may_end.wait(60)
        return False


@pytest.fixture
def hashing(monkeypatch: pytest.MonkeyPatch) -> Iterator[Hashing]:
    made = Hashing()
    monkeypatch.setattr(passwords, "verify_password", made.verify)
    yield made
    made.may_end.set()


def sign_in(name: str) -> dict[str, Any]:
    return {"body": json.dumps({"name": name, "password": "some password or other"}).encode()}


def run(work: Callable[[], Awaitable[None]]) -> None:
    async def bounded() -> None:
        await asyncio.wait_for(work(), 60)

    asyncio.run(bounded())


async def fill(app: FastAPI, hashing: Hashing, count: int, **options: Any) -> list[Answer]:
    """Start so many sign-ins, each from an address of its own, of which the first hashes and the others wait."""
    asked = []
    for number in range(count):
        asked.append(Answer(app, "POST", SIGN_IN, address=f"10.0.1.{number}", **sign_in(f"n{number}"), **options))
        await asked[-1].is_waiting()
    await asyncio.to_thread(hashing.begun.wait, 60)
    return asked


def cookie_of(hub: Hub, name: str, *roles: AccountRole) -> dict[str, str]:
    user_id = add_user(hub, name, *roles)
    with hub.store.writing() as session:
        cookie, _ = open_login(session, session.get_one(User, user_id), hours=1)
    return {"cookie": f"{COOKIE}={cookie}"}


def token_of(hub: Hub, user_id: str) -> dict[str, str]:
    with hub.store.writing() as session:
        by = subject_of(session.get_one(User, user_id))
        return {"authorization": f"Bearer {make_token(session, by=by, name='all', scopes=['*'], days=1).secret}"}


def browser_of(hub: Hub, user_id: str) -> dict[str, str]:
    """Return the cookie of a browser in which somebody has signed in before."""
    with hub.store.writing() as session:
        return {"cookie": f"{BROWSER_COOKIE}={accounts_sign_in.remember_browser(session, user_id, None)}"}


def test_while_a_password_is_hashed_the_next_but_some_is_refused_at_once_and_everything_else_answers(
    hub: Hub, hashing: Hashing
) -> None:
    async def walk() -> None:
        app = create_app(hub)
        person = cookie_of(hub, "olga", AccountRole.DATA_OWNER)
        asked = await fill(app, hashing, 17)
        refused = Answer(app, "POST", SIGN_IN, address="10.0.2.1", **sign_in("late"))
        assert await refused.status() == 503
        assert refused.headers["retry-after"] == "5"
        assert refused.headers["connection"] == "close"
        assert refused.content["error"] == "HubUnavailableError"
        assert await Answer(app, "GET", "/health").status() == 200
        assert await Answer(app, "GET", "/datasets", headers=person).status() == 200
        assert await Answer(app, "GET", "/login").status() == 200
        assert hashing.count == 1, "one hash at a time"
        hashing.may_end.set()
        assert [await answer.status() for answer in asked] == [401] * 17
        assert hashing.count == 17

    run(walk)


def test_an_abandoned_sign_in_is_never_hashed_and_leaves_its_place(hub: Hub, hashing: Hashing) -> None:
    async def walk() -> None:
        app = create_app(hub)
        asked = await fill(app, hashing, 17)
        for answer in asked[1:]:
            answer.gone.set()
            assert await answer.status() == 0
        again = await fill(app, hashing, 3)
        hashing.may_end.set()
        assert [await answer.status() for answer in (asked[0], *again)] == [401] * 4
        assert hashing.count == 4

    run(walk)


def test_a_client_that_went_before_its_turn_or_within_its_body_reaches_nothing(hub: Hub, hashing: Hashing) -> None:
    async def walk() -> None:
        app = create_app(hub)
        gone = Answer(app, "POST", SIGN_IN, **sign_in("ada"))
        gone.gone.set()
        assert await gone.status() == 0
        within = Answer(app, "POST", SIGN_IN)
        within._body = None
        within.gone.set()
        assert await within.status() == 0
        assert hashing.count == 0

    run(walk)


def test_one_address_takes_only_a_part_of_the_line(hub: Hub, hashing: Hashing) -> None:
    async def walk() -> None:
        app = create_app(hub)
        asked = []
        for number in range(9):
            asked.append(Answer(app, "POST", SIGN_IN, address=f"2001:db8::{number}", **sign_in(f"n{number}")))
            await asked[-1].is_waiting()
        refused = Answer(app, "POST", SIGN_IN, address="2001:db8::ffff:1", **sign_in("late"))
        assert await refused.status() == 429, "all of a /64 is one address"
        assert refused.headers["retry-after"] == "5"
        other = Answer(app, "POST", SIGN_IN, address="2001:db8:0:1::1", **sign_in("other"))
        await other.is_waiting()
        hashing.may_end.set()
        assert [await answer.status() for answer in (*asked, other)] == [401] * 10

    run(walk)


def test_a_browser_that_was_here_before_does_not_wait_behind_strangers(hub: Hub, hashing: Hashing) -> None:
    async def walk() -> None:
        app = create_app(hub)
        user_id = add_user(hub, "ada")
        browser = browser_of(hub, user_id)
        asked = await fill(app, hashing, 17)
        invented = Answer(
            app, "POST", SIGN_IN, headers={"cookie": f"{BROWSER_COOKIE}={'x' * 52}"}, **sign_in("eve"), address="::1"
        )
        assert await invented.status() == 503
        hashing.begun.clear()
        known = Answer(app, "POST", SIGN_IN, headers=browser, **sign_in("Ada "))
        await asyncio.to_thread(hashing.begun.wait, 60)
        assert hashing.count == 2
        hashing.may_end.set()
        assert [await answer.status() for answer in (*asked, known)] == [401] * 18

    run(walk)


@pytest.mark.parametrize(
    "body",
    [
        b'{"name": "nobody", "password": "wrong"}',
        b'{"name": 7}',
        b"[]",
        b"no JSON",
        b'{"name": "mallory", "password": "' + b"x" * 16_384 + b'"}',
    ],
)
def test_a_known_browser_is_a_strangers_for_every_name_but_its_own(hub: Hub, hashing: Hashing, body: bytes) -> None:
    async def walk() -> None:
        app = create_app(hub)
        mallory, victim = browser_of(hub, add_user(hub, "mallory")), browser_of(hub, add_user(hub, "victim"))
        asked = await fill(app, hashing, 17)
        refused = Answer(app, "POST", SIGN_IN, headers=mallory, body=body)
        assert await refused.status() == 503, "it waits behind strangers, whose line is full"
        hashing.begun.clear()
        asked.append(Answer(app, "POST", SIGN_IN, headers=victim, **sign_in("victim")))
        assert await asyncio.to_thread(hashing.begun.wait, 60)
        hashing.may_end.set()
        assert [await answer.status() for answer in asked] == [401] * 18

    run(walk)


def test_all_browsers_of_one_person_have_one_share_of_the_sign_ins(hub: Hub, hashing: Hashing) -> None:
    async def walk() -> None:
        app = create_app(hub)
        mallory, victim = add_user(hub, "mallory"), browser_of(hub, add_user(hub, "victim"))
        asked = []
        for _ in range(3):
            asked.append(Answer(app, "POST", SIGN_IN, headers=browser_of(hub, mallory), **sign_in("mallory")))
            await asked[-1].is_waiting()
        for _ in range(10):
            refused = Answer(app, "POST", SIGN_IN, headers=browser_of(hub, mallory), **sign_in("mallory"))
            assert await refused.status() == 429
        asked.append(Answer(app, "POST", SIGN_IN, headers=victim, **sign_in("victim")))
        await asked[-1].is_waiting()
        hashing.may_end.set()
        assert [await answer.status() for answer in asked] == [401] * 4

    run(walk)


def test_a_person_who_has_tried_often_is_a_stranger_until_some_time_has_passed(
    hub: Hub, hashing: Hashing, monkeypatch: pytest.MonkeyPatch
) -> None:
    moment = [0.0]
    monkeypatch.setattr(
        admission, "TokenBuckets", lambda *, burst, rate: TokenBuckets(burst=burst, rate=rate, clock=lambda: moment[0])
    )

    async def walk() -> None:
        app = create_app(hub)
        user_id = add_user(hub, "mallory")

        async def attempt() -> int:
            answer = Answer(app, "POST", SIGN_IN, headers=browser_of(hub, user_id), **sign_in("mallory"))
            return await answer.status()

        hashing.may_end.set()
        assert [await attempt() for _ in range(20)] == [401] * 20
        hashing.may_end.clear()
        hashing.begun.clear()
        asked = await fill(app, hashing, 17)
        assert await attempt() == 503, "the strangers' line is full"
        moment[0] += 20
        hashing.begun.clear()
        asked.append(Answer(app, "POST", SIGN_IN, headers=browser_of(hub, user_id), **sign_in("mallory")))
        assert await asyncio.to_thread(hashing.begun.wait, 60)
        hashing.may_end.set()
        assert [await answer.status() for answer in asked] == [401] * 18

    run(walk)


def test_a_browser_whose_time_is_over_or_whose_client_went_within_the_body_is_a_strangers(
    hub: Hub, hashing: Hashing
) -> None:
    async def walk() -> None:
        app = create_app(hub)
        user_id = add_user(hub, "ada")
        browser = browser_of(hub, user_id)
        within = Answer(app, "POST", SIGN_IN, headers=browser)
        within._body = None
        within.gone.set()
        assert await within.status() == 0
        with hub.store.writing() as session:
            session.execute(update(KnownBrowser).values(expires=now()))
        asked = await fill(app, hashing, 17)
        assert await Answer(app, "POST", SIGN_IN, headers=browser, **sign_in("ada")).status() == 503
        hashing.may_end.set()
        assert [await answer.status() for answer in asked] == [401] * 17

    run(walk)


@pytest.mark.parametrize("kind", ["strangers", "unproven", "people"])
def test_whoever_does_not_read_an_answer_holds_no_place(hub: Hub, kind: str) -> None:
    async def walk() -> None:
        app = create_app(hub)
        path, late = "/account" if kind == "people" else "/login", cookie_of(hub, "late")
        headers = {
            "strangers": {},
            "unproven": {"cookie": f"{COOKIE}=invented"},
            "people": cookie_of(hub, "ada"),
        }[kind]
        assert await Answer(app, "GET", "/account", headers=headers).status() in (200, 303, 401)
        unread = [Answer(app, "GET", path, headers=headers, is_read=False) for _ in range(8)]
        for answer in unread:
            await answer.offered.wait()
        assert await Answer(app, "GET", "/login").status() == 200
        assert await Answer(app, "GET", "/account", headers=late).status() == 200
        assert await Answer(app, "GET", "/account", headers=headers).status() in (200, 303, 401)
        for answer in unread:
            assert answer.sent == []
            answer.may_read.set()
        assert [await answer.status() for answer in unread] == [200] * 8

    run(walk)


def test_an_upload_whose_answer_is_not_read_holds_no_place(hub: Hub) -> None:
    async def walk() -> None:
        app = create_app(hub)
        unread = [Answer(app, "POST", UPLOAD, is_read=False) for _ in range(7)]
        for answer in unread:
            await answer.offered.wait()
        assert await Answer(app, "GET", "/login").status() == 200
        for answer in unread:
            answer.may_read.set()
        assert [await answer.status() for answer in unread] == [401] * 7

    run(walk)


def test_slow_uploads_with_new_tokens_hold_the_share_of_their_sender_and_no_place_of_the_unproven(hub: Hub) -> None:
    async def walk() -> None:
        app = create_app(hub)
        dora = add_user(hub, "dora", AccountRole.ALGORITHM_PROVIDER)
        slow = []
        for number in range(4):
            headers = token_of(hub, dora) | ZIP
            slow.append(Answer(app, "POST", UPLOAD, address=f"10.0.2.{number}", headers=headers, body=None))
            await slow[-1].is_waiting()
        assert await Answer(app, "POST", UPLOAD, headers=token_of(hub, dora) | ZIP, body=None).status() == 429
        for name in ("eve", "finn", "gus"):
            assert await Answer(app, "GET", "/account", headers=cookie_of(hub, name)).status() == 200
        for answer in slow:
            answer.gone.set()
        assert [await answer.status() for answer in slow] == [422] * 4

    run(walk)


@pytest.mark.parametrize("lane", ["strangers", "unproven", "people"])
def test_no_key_has_a_lane_for_itself(lane: str) -> None:
    assert LANES[lane]["each_at_once"] < LANES[lane]["at_once"]
    assert LANES[lane]["each_waiting"] < LANES[lane]["waiting"]


@pytest.mark.parametrize(("proxy", "statuses"), [("", [401, 429]), ("https://127.0.0.1:8080", [401, 401])])
def test_sign_ins_have_a_budget_for_each_address_where_addresses_are_known(
    hub: Hub, hashing: Hashing, monkeypatch: pytest.MonkeyPatch, proxy: str, statuses: list[int]
) -> None:
    hashing.may_end.set()
    buckets = {60: TokenBuckets(burst=60, rate=0.0), 40: TokenBuckets(burst=1, rate=0.0), 20: None}
    monkeypatch.setattr(admission, "TokenBuckets", lambda *, burst, rate: buckets[burst])
    behind = Hub(replace(hub.settings, public_url=proxy), hub.store, hub.key, hub.blobs)

    async def walk() -> None:
        app = create_app(behind)
        found = [await Answer(app, "POST", SIGN_IN, **sign_in(f"n{number}")).status() for number in range(2)]
        assert found == statuses

    run(walk)


def test_sign_ins_have_a_budget_in_total(hub: Hub, hashing: Hashing, monkeypatch: pytest.MonkeyPatch) -> None:
    hashing.may_end.set()
    monkeypatch.setattr(admission, "TokenBuckets", lambda *, burst, rate: TokenBuckets(burst=burst // 30, rate=0.0))

    async def walk() -> None:
        app = create_app(hub)
        asked = [Answer(app, "POST", SIGN_IN, address=f"10.0.3.{n}", **sign_in(f"n{n}")) for n in range(3)]
        assert sorted([await answer.status() for answer in asked]) == [401, 401, 503]

    run(walk)


@contextmanager
def standing_route(app: FastAPI) -> Iterator[tuple[threading.Event, list[str]]]:
    """Add a page whose requests stand still until they are let go."""
    may_end, begun = threading.Event(), []
    router = GuardedRouter()

    @router.guarded("GET", "/standing", actions.SEE_HOME)
    def stand(request: Request) -> dict[str, str]:
        begun.append(request.state.access.person.name)
        assert may_end.wait(60)
        return {}

    app.include_router(router)
    try:
        yield may_end, begun
    finally:
        may_end.set()


def test_one_account_takes_only_its_share_and_others_are_served_beside_it(hub: Hub) -> None:
    async def walk() -> None:
        app = create_app(hub)
        ada, bob = cookie_of(hub, "ada"), cookie_of(hub, "bob")
        for person in (ada, bob):
            assert await Answer(app, "GET", "/account", headers=person).status() == 200
        with standing_route(app) as (may_end, begun):
            asked = [Answer(app, "GET", "/standing", headers=ada) for _ in range(44)]
            for answer in asked:
                await answer.is_waiting()
            refused = Answer(app, "GET", "/standing", headers=ada)
            assert await refused.status() == 429
            assert refused.headers["retry-after"] == "5"
            assert refused.headers["content-type"].startswith("text/plain")
            assert await Answer(app, "GET", "/account", headers=bob).status() == 200
            assert await Answer(app, "GET", "/login").status() == 200
            assert len(begun) <= 4
            may_end.set()
            assert [await answer.status() for answer in asked] == [200] * 44

    run(walk)


def test_all_places_together_leave_threads_of_the_pool_free(hub: Hub) -> None:
    async def walk() -> None:
        threads = to_thread.current_default_thread_limiter().total_tokens
        gate = RequestAdmission(create_app(hub), hub=hub)
        lanes = [value for value in vars(gate).values() if isinstance(value, Lane)]
        assert len(lanes) == len(LANES)
        assert sum(lane.at_once for lane in lanes) <= threads - 4

    run(walk)


def test_a_sign_in_that_ended_has_no_place_among_people(hub: Hub) -> None:
    async def walk() -> None:
        gate = RequestAdmission(create_app(hub), hub=hub)
        gate._note("c1", {"signed_in": SimpleNamespace(subject=SimpleNamespace(user_id="usr_1"))})
        assert gate._known == {"c1": "usr_1"}
        gate._note("c1", {})
        gate._note(None, {})
        assert gate._known == {}

    run(walk)


def test_only_the_credentials_used_last_are_remembered(hub: Hub, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(admission, "MOST_CREDENTIALS", 1)
    gate = RequestAdmission(create_app(hub), hub=hub)
    for name in ("c1", "c2"):
        gate._note(name, {"signed_in": SimpleNamespace(subject=SimpleNamespace(user_id=name))})
    assert gate._known == {"c2": "c2"}


def test_health_with_a_token_is_looked_up_like_everything_else(hub: Hub) -> None:
    async def walk() -> None:
        app = create_app(hub)
        for path in ("/health", "/api/v1/health"):
            wrong = Answer(app, "GET", path, headers={"authorization": "Bearer clst_wrong"}, address="")
            assert await wrong.status() == 401

    run(walk)


def test_hashes_have_slots_that_nobody_waits_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(passwords, "_slots", threading.BoundedSemaphore(1))
    begun, may_end = threading.Event(), threading.Event()

    def hash_slowly(password: str) -> str:
        begun.set()
        assert may_end.wait(60)
        return "made"

    monkeypatch.setattr(passwords, "_hasher", SimpleNamespace(hash=hash_slowly))
    made: list[str] = []
    thread = threading.Thread(target=lambda: made.append(passwords.hash_password("first")))
    thread.start()
    assert begun.wait(60)
    with pytest.raises(HubUnavailableError, match="try again in some seconds") as refused:
        passwords.hash_password("second")
    assert refused.value.wait_seconds == 5
    may_end.set()
    thread.join(60)
    assert made == ["made"]
