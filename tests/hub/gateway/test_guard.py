from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest
from fastapi import Request
from fastapi.testclient import TestClient

from cloister.hub.app import create_app
from cloister.hub.domain import actions
from cloister.hub.domain.roles import AccountRole
from cloister.hub.domain.untrusted_input import local_path
from cloister.hub.gateway import GuardedRouter
from cloister.hub.hub import Hub
from cloister.hub.store.models import AuditEntry, Dataset, User
from cloister.hub.use_cases.sessions import open_login
from tests.hub.conftest import ClientFor, add_user

SIGN_IN = {"name": "ada", "password": "some password or other"}
FOREIGN = [
    {"origin": "https://evil.example"},
    {"origin": "null"},
    {"origin": "http://127.0.0.1:8080.evil.example"},
    {"origin": "http://127.0.0.1:9090"},
    {"origin": ""},
    {"sec-fetch-site": "cross-site"},
    {"sec-fetch-site": "same-site"},
    {"sec-fetch-site": "cross-site", "origin": "http://127.0.0.1:8080"},
]


@pytest.mark.parametrize("headers", FOREIGN)
def test_nobody_is_signed_in_from_another_site(client_for: ClientFor, headers: dict[str, str]) -> None:
    answer = client_for().post("/api/v1/session", json=SIGN_IN, headers=headers)
    assert answer.status_code == 403
    assert answer.json()["problem"] == "This request came from another site."


@pytest.mark.parametrize("headers", FOREIGN)
def test_changes_from_another_site_are_refused_even_with_proof_or_token(
    client_for: ClientFor, headers: dict[str, str]
) -> None:
    client = client_for("ada", AccountRole.DATA_USER)
    made = client.post("/api/v1/account/tokens", json={"name": "t", "scopes": ["*"]})
    assert made.status_code == 200
    assert client.delete("/api/v1/account/sign-ins", headers=headers).status_code == 403
    bearer = {"authorization": f"Bearer {made.json()['secret']}"}
    answer = client_for().post("/api/v1/session", json=SIGN_IN, headers=headers | bearer)
    assert answer.status_code == 403
    assert client.get("/api/v1/session", headers=headers).status_code == 200, "reading is not changing"


@pytest.mark.parametrize("headers", [{}, {"origin": "http://127.0.0.1:8080"}, {"sec-fetch-site": "same-origin"}])
def test_the_hubs_own_pages_may_sign_in(client_for: ClientFor, headers: dict[str, str]) -> None:
    assert client_for().post("/api/v1/session", json=SIGN_IN, headers=headers).status_code == 401


@pytest.mark.parametrize("proof", [None, "", "wrong", "é"])
def test_a_change_by_cookie_needs_the_proof(client_for: ClientFor, proof: str | None) -> None:
    client = client_for("ada")
    del client.headers["x-csrf-token"]
    headers = {} if proof is None else {"x-csrf-token": proof.encode()}
    answer = client.delete("/api/v1/account/sign-ins", headers=headers)
    assert answer.status_code == 403
    assert "on purpose" in answer.json()["problem"]
    assert client.get("/api/v1/session").status_code == 200


def test_the_proof_of_another_sign_in_is_none(client_for: ClientFor) -> None:
    ada, eve = client_for("ada"), client_for("eve")
    headers = {"x-csrf-token": eve.headers["x-csrf-token"]}
    assert ada.delete("/api/v1/account/sign-ins", headers=headers).status_code == 403


@pytest.mark.parametrize("path", ["/health", "/login", "/api/v1/openapi.json", "/api/v1/session"])
@pytest.mark.parametrize("token", ["Bearer clst_wrong", "Bearer ", "Basic YWRhOng=", "clst_wrong", "Bearer é"])
def test_a_wrong_token_is_refused_even_on_public_routes(client_for: ClientFor, path: str, token: str) -> None:
    answer = client_for().get(path, headers={"authorization": token.encode()})
    assert answer.status_code == 401


def test_a_wrong_token_is_not_saved_by_a_good_cookie(client_for: ClientFor) -> None:
    client = client_for("ada")
    assert client.get("/api/v1/session", headers={"authorization": "Bearer clst_wrong"}).status_code == 401


def test_a_route_without_an_action_cannot_be_made() -> None:
    router = GuardedRouter()
    with pytest.raises(TypeError, match="has no action"):

        @router.get("/open")
        def unguarded() -> None: ...

    with pytest.raises(TypeError, match="has no action"):
        router.add_api_route("/open", lambda: None, action="dataset.see")
    with pytest.raises(TypeError, match="which dataset"):
        router.add_api_route("/datasets", lambda: None, action=actions.SEE_DATASET)
    assert router.routes == []


def test_every_route_of_the_hub_names_an_action(hub: Hub) -> None:
    known = {action.name for action in actions.all_actions()}
    described = create_app(hub).openapi()["paths"]
    named = [route["x-cloister-action"] for path in described.values() for route in path.values()]
    assert named
    assert set(named) <= known


def test_what_a_route_gets_about_its_target_can_be_read_after_the_check(hub: Hub, client_for: ClientFor) -> None:
    owner = client_for("olga", AccountRole.DATA_OWNER)
    with hub.store.writing() as session:
        olga = session.query(User).one()
        session.add(Dataset(id="ds_1", name="d", organisation_id=str(olga.organisation_id), creator_id=olga.id))
    router = GuardedRouter()

    @router.guarded("GET", "/try/{dataset_id}", actions.EDIT_DATASET)
    def name_of(request: Request) -> dict[str, str]:
        return {"name": request.state.access.target.item.name}

    owner.app.include_router(router)  # type: ignore[attr-defined]  # the application of a TestClient
    assert owner.get("/try/ds_1").json() == {"name": "d"}


def test_refusals_are_in_the_log_with_their_reason(hub: Hub, client_for: ClientFor) -> None:
    client_for("ada", AccountRole.DATA_USER).get("/api/v1/people")
    with hub.store.reading() as session:
        entry = session.query(AuditEntry).one()
    assert (entry.action, entry.outcome) == ("accounts.list", "refused")
    assert "Only a" in entry.details


@pytest.fixture
def secure(hub: Hub) -> Iterator[TestClient]:
    """A browser at a hub behind a proxy with TLS."""
    settings = replace(hub.settings, public_url="https://hub.example")
    client = TestClient(create_app(Hub(settings, hub.store, hub.key, hub.blobs)), base_url="https://hub.example")
    yield client
    client.close()


def test_cookies_are_secure_and_of_this_host_only_under_https(hub: Hub, secure: TestClient) -> None:
    from cloister.hub.use_cases.accounts.passwords import hash_password

    user_id = add_user(hub, "ada")
    with hub.store.writing() as session:
        session.get_one(User, user_id).password_hash = hash_password("four unrelated wooden words")
    answer = secure.post(
        "/api/v1/session",
        json={"name": "ada", "password": "four unrelated wooden words"},
        headers={"origin": "https://hub.example"},
    )
    assert answer.status_code == 200
    kept = {cookie.split("=")[0]: cookie for cookie in answer.headers.get_list("set-cookie")}
    assert set(kept) == {"__Host-cloister_session", "cloister_csrf", "__Host-cloister_browser"}
    for cookie in kept.values():
        assert "; Secure" in cookie
        assert "; Path=/" in cookie
        assert "domain" not in cookie.lower()
    assert secure.get("/api/v1/session").status_code == 200


def test_a_cookie_without_the_prefix_is_nothing_under_https(hub: Hub, secure: TestClient) -> None:
    user_id = add_user(hub, "ada")
    with hub.store.writing() as session:
        cookie, _ = open_login(session, session.get_one(User, user_id), hours=1)
    secure.cookies.set("cloister_session", cookie)
    assert secure.get("/api/v1/session").status_code == 401


@pytest.mark.parametrize("origin", ["http://hub.example", "https://hub.example:444", "https://evil.example"])
def test_behind_a_proxy_only_the_public_address_is_the_own_site(secure: TestClient, origin: str) -> None:
    headers = {"origin": origin, "host": origin.partition("://")[2]}
    assert secure.post("/api/v1/session", json=SIGN_IN, headers=headers).status_code in {403, 421}


@pytest.mark.parametrize("path", ["/", "/datasets", "/datasets/ds_1?x=1&y=2#z", "/a/b.c"])
def test_paths_of_the_hub_are_where_people_may_go(path: str) -> None:
    assert local_path(path) == path


@pytest.mark.parametrize(
    "path",
    [
        None, "", "x", "//evil.example", "///evil.example", "/\\evil.example", "\\\\evil.example", "https://evil.example",
        "http:evil.example", "javascript:alert(1)", "data:text/html,x", " /x", "/\t/evil.example", "/\n/evil.example",
        "/x\r\nSet-Cookie: a=b", "/{id}", '/"onload="x', "/" + "x" * 600, "/é", "/\u2028",
    ],
)  # fmt: skip
def test_nothing_else_is(path: str | None) -> None:
    assert local_path(path) == "/"


def test_actions_of_tokens_are_marked() -> None:
    needing = {action.name for action in actions.all_actions() if action.needs_sign_in}
    assert needing == {"session.close", "account.change", "accounts.confirm", "accounts.reset"}
