"""A hub in a temporary folder, with people in it, and browsers of theirs without a network."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, closing
from functools import partial
from pathlib import Path
from typing import Any

import httpx2
import pytest
from anyio.from_thread import BlockingPortal, start_blocking_portal
from fastapi.testclient import TestClient
from sqlalchemy import create_engine
from sqlalchemy.engine import Engine
from starlette import testclient

from cloister.hub import hub as hub_module
from cloister.hub.app import create_app
from cloister.hub.domain.roles import AccountRole
from cloister.hub.gateway.identity import COOKIE, CSRF_COOKIE, CSRF_HEADER
from cloister.hub.hub import Hub, open_hub
from cloister.hub.settings import Settings
from cloister.hub.store import database
from cloister.hub.store.database import Store
from cloister.hub.store.models import Organisation, User, new_id
from cloister.hub.store.table_upgrade import current_revision, upgrade
from cloister.hub.use_cases.sessions import open_login
from tests.support.postgres import copy_database, empty_database

ClientFor = Callable[..., TestClient]


@pytest.fixture(autouse=True, scope="session")
def _tables_made_once() -> Iterator[None]:
    """Copy the tables of new hubs from the first one on such a database; to migrate takes longer than most tests."""
    with pytest.MonkeyPatch.context() as patch, closing(sqlite3.connect(":memory:")) as made:
        patch.setattr(hub_module, "upgrade", partial(_upgrade_by_copy, made, set()))
        yield


class _SharedLoop:
    """The event loop of all browsers of one test, which begins with the first request."""

    def __init__(self, ending: ExitStack) -> None:
        self._ending = ending
        self._portal: BlockingPortal | None = None

    def __get__(self, client: TestClient | None, kind: type[TestClient]) -> BlockingPortal:
        if self._portal is None:
            self._portal = self._ending.enter_context(start_blocking_portal())
        return self._portal


@pytest.fixture(autouse=True)
def _one_event_loop(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Let all browsers of a test share one event loop in one thread."""
    with ExitStack() as ending:
        monkeypatch.setattr(TestClient, "portal", _SharedLoop(ending))
        yield


@pytest.fixture(autouse=True, scope="session")
def _statements_compiled_once() -> Iterator[None]:
    """Let all databases in files share what statements are compiled to."""
    first = create_engine("sqlite://")
    first.connect().close()

    def make(url: str) -> Engine:
        engine = make_sqlite(url)
        # A statement is remembered with the dialect that it was compiled for.
        engine.dialect, engine._compiled_cache = first.dialect, first._compiled_cache
        return engine

    make_sqlite = database._sqlite
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(database, "_sqlite", make)
        yield


@pytest.fixture(autouse=True, scope="session")
def _requests_in_one_go() -> Iterator[None]:
    """Let browsers hand over whole requests to the event loop; theirs goes back and forth eight times for each."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(testclient._TestClientTransport, "handle_request", _handle_in_one_go)
        yield


def _handle_in_one_go(transport: testclient._TestClientTransport, request: httpx2.Request) -> httpx2.Response:
    request.read()
    sender = httpx2.ASGITransport(
        transport.app, raise_app_exceptions=transport.raise_server_exceptions, client=transport.client
    )

    async def answer() -> httpx2.Response:
        found = await sender.handle_async_request(request)
        body = httpx2.ByteStream(await found.aread())
        return httpx2.Response(found.status_code, headers=found.headers, stream=body)

    with transport.portal_factory() as portal:
        return portal.call(answer)


def _upgrade_by_copy(made: sqlite3.Connection, servers: set[str], store: Store) -> bool:
    with store.engine.connect() as connection:
        is_new = current_revision(connection) is None
    if not is_new:
        return upgrade(store)
    if store.dialect == "postgresql":
        return _upgrade_by_template(servers, store)
    if not made.execute("SELECT 1 FROM sqlite_schema").fetchone():
        upgrade(store)
        with store.engine.connect() as connection:
            connection.connection.driver_connection.backup(made)
        return True
    with store.engine.connect() as connection:
        made.backup(connection.connection.driver_connection)
    return True


def _upgrade_by_template(servers: set[str], store: Store) -> bool:
    url = store.engine.url
    server, name = url.set(drivername="postgresql", database="postgres"), str(url.database)
    text = server.render_as_string(hide_password=False)
    if text not in servers:
        upgrade(store)
        store.engine.dispose()
        copy_database(text, name, "hub_template")
        servers.add(text)
    else:
        store.engine.dispose()
        copy_database(text, "hub_template", name)
    return True


@pytest.fixture
def hub(tmp_path: Path) -> Iterator[Hub]:
    """An empty hub on SQLite."""
    opened = open_hub(Settings(folder=tmp_path / "hub", workers=0))
    yield opened
    opened.close()


@pytest.fixture(
    params=["sqlite", pytest.param("postgres", marks=[pytest.mark.postgres, pytest.mark.slow])],
)
def any_hub(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Hub]:
    """An empty hub on each kind of database in turn, whose results appear at once."""
    opened = make_hub(tmp_path / "hub", request)
    yield opened
    opened.close()


def on_databases(cases: Iterable[Any], *, postgres: Iterable[Any]) -> list[Any]:
    """Return pairs of a kind of database, for `any_hub`, and a case; on PostgreSQL only some always run."""
    cases, always = list(cases), list(postgres)
    if missing := [case for case in always if case not in cases]:
        raise ValueError(f"these are no cases: {missing}")
    marks = [pytest.mark.postgres, pytest.mark.slow]
    return [pytest.param("sqlite", case) for case in cases] + [
        pytest.param("postgres", case, marks=marks if case in always else [*marks, pytest.mark.audit]) for case in cases
    ]


def make_hub(folder: Path, request: pytest.FixtureRequest, **settings: Any) -> Hub:
    """Return an empty hub on the kind of database that the test's parameter names."""
    database = ""
    if request.param == "postgres":
        database = empty_database(request.getfixturevalue("postgres_server"))
    given = {"workers": 0, "answer_seconds": 0.0} | settings
    return open_hub(Settings(folder=folder, database=database, **given))


@pytest.fixture
def client_for(hub: Hub) -> Iterator[ClientFor]:
    """A function that makes an account and returns its browser: ``client_for("ada", Role.DATA_USER, of="north")``."""
    app, clients = create_app(hub), []

    def make(name: str | None = None, *roles: AccountRole, of: str = "north") -> TestClient:
        client = TestClient(app, base_url="http://127.0.0.1:8080", follow_redirects=False)
        clients.append(client)
        if name is not None:
            sign_in(hub, client, add_user(hub, name, *roles, of=of))
        return client

    yield make
    for client in clients:
        client.close()


def add_user(hub: Hub, name: str, *roles: AccountRole, of: str = "north") -> str:
    """Make an account without a password, and its organisation if it is new; return its id."""
    with hub.store.writing() as session:
        organisation = session.query(Organisation).filter_by(name=of).one_or_none()
        if organisation is None:
            organisation = Organisation(id=new_id("org"), name=of)
            session.add(organisation)
            session.flush()
        user = User(id=new_id("usr"), name=name, roles=[str(role) for role in roles], organisation_id=organisation.id)
        session.add(user)
    return user.id


def sign_in(hub: Hub, client: TestClient, user_id: str) -> None:
    """Give a browser the cookies of a sign-in."""
    with hub.store.writing() as session:
        user = session.get(User, user_id)
        assert user is not None
        cookie, csrf = open_login(session, user, hours=1)
    client.cookies.set(COOKIE, cookie)
    client.cookies.set(CSRF_COOKIE, csrf)
    client.headers[CSRF_HEADER] = csrf
