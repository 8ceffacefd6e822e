from __future__ import annotations

import base64
import json
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import cache
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient
from joserfc import jwt
from joserfc.jwk import OctKey, RSAKey

from cloister.errors import ParameterError
from cloister.hub.app import create_app
from cloister.hub.domain.roles import AccountRole
from cloister.hub.hub import Hub
from cloister.hub.settings import Settings
from cloister.hub.store.models import AuditEntry, Identity, LoginSession, UsedState, User
from cloister.hub.use_cases.accounts import oidc_login, oidc_provider, own_account, second_factor
from tests.hub.conftest import add_user, sign_in
from tests.hub.use_cases.accounts.conftest import PASSWORD, AddPerson
from tests.hub.use_cases.accounts.oidc_service import Claims, SignInService

pytestmark = [pytest.mark.slow, pytest.mark.traced]

START = "/api/v1/oidc/campus/start"
Browse = Callable[..., TestClient]


@pytest.fixture
def service() -> Iterator[SignInService]:
    running = SignInService()
    yield running
    running.close()


def _hub(hub: Hub, service: SignInService, **facts: str) -> Hub:
    campus = {
        "issuer": service.issuer,
        "client_id": service.client_id,
        "client_secret": service.client_secret,
        "title": "The campus",
        **facts,
    }
    settings = replace(hub.settings, oidc={"campus": campus})
    return Hub(settings, hub.store, hub.key, hub.blobs)


@pytest.fixture
def browse(hub: Hub, service: SignInService) -> Iterator[Browse]:
    """A function that returns a new browser at a hub where the service may make accounts."""
    clients: list[TestClient] = []

    @cache
    def app(**facts: str) -> FastAPI:
        return create_app(_hub(hub, service, **{"new_accounts": "create", **facts}))

    def make(**facts: str) -> TestClient:
        clients.append(TestClient(app(**facts), base_url="http://127.0.0.1:8080", follow_redirects=False))
        return clients[-1]

    yield make
    for client in clients:
        client.close()


def _back(client: TestClient, service: SignInService, **query: str) -> str:
    started = client.get(START, params=query)
    assert started.status_code == 303, started.text
    address = service.authorize(started.headers["location"])
    return address.removeprefix("http://127.0.0.1:8080")


def test_a_person_signs_in_through_another_service(hub: Hub, service: SignInService, browse: Browse) -> None:
    client = browse()
    answer = client.get(_back(client, service, next="/datasets"))
    assert (answer.status_code, answer.headers["location"]) == (303, "/datasets")
    account = client.get("/api/v1/session").json()["account"]
    assert (account["name"], account["roles"]) == ("grace@campus", [])
    assert client.get("/api/v1/account/sign-ins").json()["items"][0]["method"] == "campus"
    again = browse()
    assert again.get(_back(again, service)).status_code == 303
    assert again.get("/api/v1/session").json()["account"]["id"] == account["id"]
    with hub.store.reading() as session:
        assert session.query(User).count() == session.query(Identity).count() == 1


def test_the_request_has_all_that_protects_it(service: SignInService, browse: Browse) -> None:
    client = browse()
    _back(client, service)
    _back(client, service)
    first, second = service.asked
    assert first["response_type"] == "code"
    assert first["code_challenge_method"] == "S256"
    assert first["redirect_uri"] == "http://127.0.0.1:8080/api/v1/oidc/campus/callback"
    assert "openid" in first["scope"].split()
    for name in ("state", "nonce", "code_challenge"):
        assert len(first[name]) == 43
        assert first[name] != second[name]
    assert len({first["state"], first["nonce"], first["code_challenge"]}) == 3


def test_people_without_a_linked_account_are_refused_by_default(
    hub: Hub, service: SignInService, browse: Browse
) -> None:
    client = browse(new_accounts="refuse")
    answer = client.get(_back(client, service))
    assert answer.status_code == 403
    assert "operator" in answer.json()["fix"]
    with hub.store.reading() as session:
        assert session.query(User).count() == 0
    with pytest.raises(ParameterError, match="oidc"):
        oidc_provider.providers(Settings(folder=hub.settings.folder, oidc={"x": {"new_accounts": "yes"}}))


def test_a_closed_account_stays_closed(hub: Hub, service: SignInService, browse: Browse) -> None:
    client = browse()
    client.get(_back(client, service))
    with hub.store.writing() as session:
        session.query(User).update({"is_disabled": True})
    other = browse()
    assert other.get(_back(other, service)).status_code == 401


def _none(claims: Claims) -> str:
    parts = ({"alg": "none", "typ": "JWT"}, claims)
    return ".".join(base64.urlsafe_b64encode(json.dumps(part).encode()).decode().rstrip("=") for part in parts) + "."


def _other_key(claims: Claims) -> str:
    return jwt.encode({"alg": "RS256", "kid": "one"}, claims, RSAKey.generate_key(2048))


def _shared_secret(claims: Claims) -> str:
    secret = OctKey.import_key(SignInService.client_secret)
    return jwt.encode({"alg": "HS256", "kid": "one"}, claims, secret, algorithms=["HS256"])


def _with(**changed: Any) -> Callable[[Claims], Claims]:
    return lambda claims: {**claims, **changed}


def _without(name: str) -> Callable[[Claims], Claims]:
    return lambda claims: {key: value for key, value in claims.items() if key != name}


@pytest.mark.parametrize(
    "change",
    [
        _with(nonce="another"),
        _with(nonce=["another"]),
        _with(nonce=None),
        _without("nonce"),
        _with(aud="another-client"),
        _with(aud=["another-client"]),
        _with(aud=[SignInService.client_id, "another-client"]),
        _with(aud=[SignInService.client_id, "another-client"], azp="another-client"),
        _with(azp="another-client"),
        _without("aud"),
        _with(iss="https://evil.example"),
        _without("iss"),
        _with(exp=int(time.time()) - 3600),
        _without("exp"),
        _with(iat=int(time.time()) + 3600),
        _with(nbf=int(time.time()) + 3600),
        _without("sub"),
        _with(sub=""),
        _with(sub=7),
        _with(sub="x" * 256),
    ],
)
def test_a_token_with_wrong_claims_signs_nobody_in(
    hub: Hub, service: SignInService, browse: Browse, change: Callable[[Claims], Claims]
) -> None:
    service.change = change
    _assert_nobody(hub, browse(), service)


@pytest.mark.parametrize("sign", [_none, _other_key, _shared_secret, lambda claims: "not.a.token", lambda claims: ""])
def test_a_token_that_is_not_signed_by_the_service_signs_nobody_in(
    hub: Hub, service: SignInService, browse: Browse, sign: Callable[[Claims], str]
) -> None:
    service.sign = sign
    _assert_nobody(hub, browse(), service)


def test_a_tampered_token_signs_nobody_in(hub: Hub, service: SignInService, browse: Browse) -> None:
    def tampered(claims: Claims) -> str:
        header, _, signature = service.signed(claims).split(".")
        body = base64.urlsafe_b64encode(json.dumps({**claims, "sub": "person-2"}).encode()).decode().rstrip("=")
        return f"{header}.{body}.{signature}"

    service.sign = tampered
    _assert_nobody(hub, browse(), service)


def _assert_nobody(hub: Hub, client: TestClient, service: SignInService) -> None:
    answer = client.get(_back(client, service))
    assert answer.status_code == 401
    assert answer.json()["fix"] == "begin again on the sign-in page."
    assert service.token_requests == 1, "the token came and was refused"
    assert "cloister_session" not in answer.headers.get("set-cookie", "")
    with hub.store.reading() as session:
        assert session.query(User).count() == session.query(UsedState).count() == 0


def test_a_state_works_once(service: SignInService, browse: Browse) -> None:
    client = browse()
    path = _back(client, service)
    kept = client.cookies["cloister_oidc"]
    assert client.get(path).status_code == 303
    client.cookies.set("cloister_oidc", kept)
    query = parse_qs(urlsplit(path).query)
    service.codes["fresh"] = service.asked[0]
    replayed = client.get("/api/v1/oidc/campus/callback", params={"code": "fresh", "state": query["state"][0]})
    assert replayed.status_code == 401
    assert service.token_requests == 1, "the second code was not even tried"


def test_a_state_of_another_browser_is_refused(service: SignInService, browse: Browse) -> None:
    attacker, victim = browse(), browse()
    path = _back(attacker, service)
    assert victim.get(path).status_code == 401, "no cookie"
    _back(victim, service)
    assert victim.get(path).status_code == 401, "the cookie of another attempt"
    assert service.token_requests == 0


def test_an_attempt_is_over_after_some_minutes(
    service: SignInService, browse: Browse, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = browse()
    path = _back(client, service)
    real = time.time
    monkeypatch.setattr(oidc_login.time, "time", lambda: real() + 601)
    assert client.get(path).status_code == 401


@pytest.mark.parametrize("part", range(4))
def test_the_cookie_cannot_be_changed(service: SignInService, browse: Browse, part: int) -> None:
    client = browse()
    path = _back(client, service, next="/jobs")
    parts = client.cookies["cloister_oidc"].split(".")
    changed = ["9999999999", "aHR0cHM6Ly9ldmlsLmV4YW1wbGU=", "dXNyX2V2ZQ==", parts[3][:-8] + "AAAAAAA="]
    parts[part] = changed[part]
    client.cookies.clear()
    client.cookies.set("cloister_oidc", ".".join(parts))
    assert client.get(path).status_code == 401
    for odd in ("", "x", "1.2.3", "....", "9999999999.é.x.y"):
        client.cookies.clear()
        assert client.get(path, headers={"cookie": f"cloister_oidc={odd}".encode()}).status_code == 401


def test_the_code_of_somebody_else_is_worth_nothing(service: SignInService, browse: Browse) -> None:
    victim, attacker = browse(), browse()
    code = parse_qs(urlsplit(_back(victim, service)).query)["code"][0]
    state = parse_qs(urlsplit(_back(attacker, service)).query)["state"][0]
    answer = attacker.get("/api/v1/oidc/campus/callback", params={"code": code, "state": state})
    assert answer.status_code == 401, "PKCE: the code belongs to the other verifier"


@pytest.mark.parametrize(
    "wanted",
    ["https://evil.example", "//evil.example", "/\\evil.example", "/\t/evil.example", "javascript:alert(1)", "evil"],
)
def test_nobody_is_sent_to_another_site(service: SignInService, browse: Browse, wanted: str) -> None:
    client = browse()
    assert client.get(_back(client, service, next=wanted)).headers["location"] == "/"


def test_an_answer_in_the_name_of_another_issuer_is_refused(service: SignInService, browse: Browse) -> None:
    client = browse()
    path = _back(client, service)
    assert client.get(f"{path}&iss=https%3A%2F%2Fevil.example").status_code == 401
    assert client.get("/api/v1/oidc/campus/callback?error=access_denied").status_code == 401


def test_a_service_that_describes_another_is_refused(
    service: SignInService, browse: Browse, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(service, "metadata", lambda: {"issuer": "https://evil.example"})
    assert browse().get(START).status_code == 401


def test_a_service_that_does_not_answer_is_said_to(service: SignInService, browse: Browse, hub: Hub) -> None:
    client = browse(issuer="http://127.0.0.1:9")
    answer = client.get(START)
    assert (answer.status_code, answer.json()["error"]) == (503, "HubUnavailableError")
    assert client.get("/api/v1/oidc/other/start").status_code == 404
    with pytest.raises(ParameterError, match="https"):
        oidc_provider.providers(_hub(hub, service, issuer="http://campus.example").settings)


def test_sign_in_replaces_a_secret_that_was_there(service: SignInService, browse: Browse) -> None:
    client = browse()
    client.cookies.set("cloister_session", "chosen-by-somebody-else", domain="127.0.0.1")
    client.get(_back(client, service))
    assert client.cookies.get("cloister_session", domain="127.0.0.1") != "chosen-by-somebody-else"


def test_somebody_links_their_own_account(hub: Hub, service: SignInService, browse: Browse) -> None:
    user_id = add_user(hub, "grace", AccountRole.DATA_USER)
    client = browse(new_accounts="refuse")
    sign_in(hub, client, user_id)
    ticket = client.post("/api/v1/account/identities").json()["ticket"]
    answer = client.get(_back(client, service, ticket=ticket))
    assert (answer.status_code, answer.headers["location"]) == (303, "/account")
    other = browse(new_accounts="refuse")
    assert other.get(_back(other, service)).status_code == 303
    assert other.get("/api/v1/session").json()["account"]["name"] == "grace"
    with hub.store.reading() as session:
        assert any("identity linked" in entry.details for entry in session.query(AuditEntry))


def test_linking_asks_for_the_password_and_the_second_factor(hub: Hub, browse: Browse, add_person: AddPerson) -> None:
    client, place = browse(), "/api/v1/account/identities"
    sign_in(hub, client, add_person("ada"))
    assert 'id="link-password-1"' in client.get("/account").text
    for wrong in (None, {}, {"password": "not it at all"}):
        assert client.post(place, json=wrong).status_code == 403
    assert client.post(place, json={"password": PASSWORD}).json()["ticket"]
    proposed = client.post("/api/v1/account/totp", json={"password": PASSWORD}).json()
    secret, step = base64.b32decode(proposed["secret"]), int(time.time()) // second_factor.STEP
    client.post("/api/v1/account/totp/confirmation", json={"code": second_factor.code_at(secret, step - 1)})
    assert 'id="link-code-1"' in client.get("/account").text
    for wrong in ("", "000000x", second_factor.code_at(secret, step - 1)):
        assert client.post(place, json={"password": PASSWORD, "code": wrong}).status_code == 403
    assert client.post(place, json={"password": PASSWORD, "code": second_factor.code_at(secret, step)}).json()["ticket"]


def test_linking_without_a_password_needs_a_fresh_sign_in(hub: Hub, browse: Browse) -> None:
    client, place = browse(), "/api/v1/account/identities"
    sign_in(hub, client, add_user(hub, "ada"))
    assert client.post(place, json={}).json()["ticket"]
    with hub.store.writing() as session:
        login = session.query(LoginSession).one()
        login.created -= own_account.FRESH
    refused = client.post(place, json={})
    assert refused.status_code == 403
    assert "sign in again" in refused.json()["fix"]


def test_nobody_can_be_made_to_link(hub: Hub, service: SignInService, browse: Browse) -> None:
    ada, eve = add_user(hub, "ada"), add_user(hub, "eve")
    victim, attacker = browse(), browse()
    sign_in(hub, victim, ada)
    sign_in(hub, attacker, eve)
    ticket = attacker.post("/api/v1/account/identities").json()["ticket"]
    assert victim.get(START, params={"ticket": ticket}).status_code == 401, "a ticket of somebody else"
    for odd in ("x", "1.AAAA", "9999999999.AAAA"):
        assert victim.get(START, params={"ticket": odd}).status_code == 401
    assert browse().get(START, params={"ticket": ticket}).status_code == 401, "nobody is signed in"
    path = _back(attacker, service, ticket=ticket)
    begun = attacker.cookies["cloister_oidc"]
    victim.cookies.set("cloister_oidc", begun)
    assert victim.get(path).status_code == 401, "begun by somebody else"
    with hub.store.reading() as session:
        assert session.query(Identity).count() == 0


def test_a_person_is_linked_to_one_account(hub: Hub, service: SignInService, browse: Browse) -> None:
    first = browse()
    first.get(_back(first, service))
    client = browse()
    sign_in(hub, client, add_user(hub, "ada"))
    ticket = client.post("/api/v1/account/identities").json()["ticket"]
    assert client.get(_back(client, service, ticket=ticket)).status_code == 403


@pytest.mark.parametrize(
    ("claims", "name"),
    [
        ({"preferred_username": "Ann O'Nymous"}, "ann-o-nymous@campus"),
        ({"preferred_username": "root@evil.example"}, "root@campus"),
        ({"preferred_username": "\u0430dmin\u202e"}, "dmin@campus"),
        ({"preferred_username": ""}, "person@campus"),
    ],
)
def test_names_from_elsewhere_cannot_be_names_from_here(
    hub: Hub, service: SignInService, browse: Browse, claims: Claims, name: str
) -> None:
    service.person |= claims
    client = browse()
    client.get(_back(client, service))
    assert client.get("/api/v1/session").json()["account"]["name"] == name
    service.person["sub"] = "person-2"
    other = browse()
    other.get(_back(other, service))
    second = other.get("/api/v1/session").json()["account"]["name"]
    assert second != name
    assert second.endswith("@campus")


def test_a_browser_that_fails_gets_a_page(service: SignInService, browse: Browse) -> None:
    answer = browse().get("/api/v1/oidc/campus/callback", headers={"accept": "text/html,*/*"})
    assert answer.status_code == 401
    assert "begin again" in answer.text
    assert answer.headers["content-type"].startswith("text/html")


def test_the_challenge_is_the_one_of_the_standard() -> None:
    # RFC 7636, appendix B.
    verifier = "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk"
    assert oidc_login._code_challenge(verifier) == "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM"


def test_an_address_keeps_its_own_query() -> None:
    asked = oidc_login._add_query("https://campus.test/authorize?tenant=a%2Fb", state="x&y", scope="openid profile")
    assert asked == "https://campus.test/authorize?tenant=a%2Fb&state=x%26y&scope=openid+profile"
    assert oidc_login._add_query("https://campus.test/authorize", state="x") == "https://campus.test/authorize?state=x"
