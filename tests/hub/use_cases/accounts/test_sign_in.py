from __future__ import annotations

from datetime import timedelta

import pytest
from fastapi.testclient import TestClient

from cloister.errors import NotSignedInError, TooManyRequestsError
from cloister.hub.domain.roles import AccountRole
from cloister.hub.hub import Hub
from cloister.hub.store.models import AuditEntry, LoginSession, SignInTries, User, now
from cloister.hub.use_cases.accounts import passwords, sign_in
from tests.hub.conftest import ClientFor
from tests.hub.use_cases.accounts.conftest import PASSWORD, AddPerson


def _post(client: TestClient, name: str = "ada", password: str = PASSWORD, **more: str) -> int:
    return client.post("/api/v1/session", json={"name": name, "password": password, **more}).status_code


def test_signing_in_gives_cookies_that_work(hub: Hub, client_for: ClientFor, add_person: AddPerson) -> None:
    add_person("ada", AccountRole.DATA_USER)
    client = client_for()
    answer = client.post("/api/v1/session", json={"name": "Ada ", "password": PASSWORD})
    assert answer.status_code == 200
    assert answer.json()["account"]["name"] == "ada"
    assert client.get("/api/v1/session").json()["account"]["roles"] == ["data_user"]
    kept = {cookie.split("=")[0]: cookie.lower() for cookie in answer.headers.get_list("set-cookie")}
    assert set(kept) == {"cloister_session", "cloister_csrf", "cloister_browser"}
    assert "httponly" in kept["cloister_session"]
    assert "samesite=lax" in kept["cloister_session"]
    assert "path=/" in kept["cloister_session"]
    assert "httponly" not in kept["cloister_csrf"]
    with hub.store.reading() as session:
        stored = session.query(LoginSession).one()
    assert client.cookies["cloister_session"] not in (stored.digest, stored.csrf_digest, stored.id)


def test_signing_out_ends_the_sign_in(client_for: ClientFor, add_person: AddPerson) -> None:
    add_person("ada")
    client = client_for()
    assert _post(client) == 200
    secret = client.cookies["cloister_session"]
    headers = {"x-csrf-token": client.cookies["cloister_csrf"]}
    assert client.delete("/api/v1/session", headers=headers).status_code == 200
    client.cookies.set("cloister_session", secret)
    assert client.get("/api/v1/session").status_code == 401


def test_a_sign_in_never_takes_over_a_secret_that_was_there(
    hub: Hub, client_for: ClientFor, add_person: AddPerson
) -> None:
    add_person("ada")
    client = client_for()
    client.cookies.set("cloister_session", "chosen-by-somebody-else")
    assert _post(client) == 200
    first = client.cookies.get("cloister_session", domain="127.0.0.1")
    assert first != "chosen-by-somebody-else"
    headers = {"x-csrf-token": client.cookies["cloister_csrf"]}
    client.cookies.delete("cloister_session", domain="")
    answer = client.post("/api/v1/session", json={"name": "ada", "password": PASSWORD}, headers=headers)
    assert answer.status_code == 200
    assert client.cookies["cloister_session"] != first
    with hub.store.reading() as session:
        assert session.query(LoginSession).count() == 1, "the sign-in that the browser had is over"


@pytest.mark.parametrize(
    ("name", "password"),
    [("ada", "not the password at all"), ("nobody", PASSWORD), ("closed", PASSWORD), ("unset", PASSWORD)],
)
def test_whatever_is_wrong_the_answer_is_the_same(
    hub: Hub, client_for: ClientFor, add_person: AddPerson, name: str, password: str
) -> None:
    add_person("ada")
    closed, unset = add_person("closed"), add_person("unset")
    with hub.store.writing() as session:
        session.get_one(User, closed).is_disabled = True
        session.get_one(User, unset).password_hash = None
    answer = client_for().post("/api/v1/session", json={"name": name, "password": password})
    assert answer.status_code == 401
    assert answer.json()["problem"] == "The name, the password or the code is not right."


def test_an_unknown_name_takes_the_same_steps_as_a_wrong_password(
    hub: Hub, add_person: AddPerson, monkeypatch: pytest.MonkeyPatch
) -> None:
    add_person("ada")
    verified: list[str] = []
    real = passwords._hasher

    class Watching:
        memory_cost, time_cost, parallelism = real.memory_cost, real.time_cost, real.parallelism
        salt_len, hash_len = real.salt_len, real.hash_len

        def verify(self, kept: str, password: str) -> bool:
            verified.append(kept.rsplit("$", 2)[0])
            return real.verify(kept, password)

    statements = _statements_of(hub)
    monkeypatch.setattr(passwords, "_hasher", Watching())
    seen = []
    for name in ("warms up", "ada", "nobody"):
        with hub.store.writing() as session:
            session.query(SignInTries).delete()
        statements.clear()
        with pytest.raises(NotSignedInError):
            sign_in.sign_in(hub, name=name, password="wrong but long enough", browser="x" * 52)
        seen.append(list(statements))
    assert len(verified) == 3
    assert verified[1] == verified[2], "the same parameters, so the same work"
    assert seen[1] == seen[2]


def test_the_hash_that_nothing_fits_has_the_real_parameters() -> None:
    made = passwords.hash_password(PASSWORD)
    assert passwords.make_unmatched_hash().rsplit("$", 2)[0] == made.rsplit("$", 2)[0]
    assert not passwords.is_outdated(passwords.make_unmatched_hash())
    assert not passwords.verify_password(None, PASSWORD)


def test_failures_have_to_wait_longer_and_longer_but_never_for_ever() -> None:
    waits = [sign_in.wait_after(failures).total_seconds() for failures in range(100)]
    assert waits[:8] == [0, 0, 0, 0, 0, 2, 4, 8]
    assert waits == sorted(waits)
    assert max(waits) == 900


@pytest.mark.parametrize("name", ["ada", "nobody"])
def test_names_are_locked_whether_or_not_somebody_has_them(
    hub: Hub, client_for: ClientFor, add_person: AddPerson, name: str
) -> None:
    add_person("ada")
    client = client_for()
    assert [_post(client, name, "wrong but long enough") for _ in range(6)] == [401] * 5 + [429]
    answer = client.post("/api/v1/session", json={"name": name, "password": PASSWORD})
    assert answer.status_code == 429
    assert "wait" in answer.json()["fix"]


def test_locks_survive_a_restart_and_end(hub: Hub, add_person: AddPerson) -> None:
    add_person("ada")
    for _ in range(5):
        with pytest.raises(NotSignedInError):
            sign_in.sign_in(hub, name="ada", password="wrong but long enough")
    hub.store.engine.dispose()
    with pytest.raises(TooManyRequestsError, match="wait"):
        sign_in.sign_in(hub, name="ADA", password=PASSWORD)
    _pass_time(hub, timedelta(seconds=3))
    assert sign_in.sign_in(hub, name="ada", password=PASSWORD).subject.name == "ada"
    with hub.store.reading() as session:
        assert session.query(SignInTries).count() == 0
        entry = session.query(AuditEntry).filter_by(action="session.open", outcome="done").one()
    assert '"failures":5' in entry.details


def test_tries_while_waiting_do_not_prolong_the_wait(hub: Hub, add_person: AddPerson) -> None:
    add_person("ada")
    for _ in range(5):
        with pytest.raises(NotSignedInError):
            sign_in.sign_in(hub, name="ada", password="wrong but long enough")
    with hub.store.reading() as session:
        before = session.query(SignInTries).one().locked_until
    for _ in range(20):
        with pytest.raises(TooManyRequestsError):
            sign_in.sign_in(hub, name="ada", password="wrong but long enough")
    with hub.store.reading() as session:
        assert session.query(SignInTries).one().locked_until == before


def test_a_stranger_cannot_lock_out_a_browser_that_was_here_before(hub: Hub, add_person: AddPerson) -> None:
    add_person("ada")
    add_person("eve")
    browser = sign_in.sign_in(hub, name="ada", password=PASSWORD).browser
    other = sign_in.sign_in(hub, name="eve", password=PASSWORD).browser
    for _ in range(5):
        with pytest.raises(NotSignedInError):
            sign_in.sign_in(hub, name="ada", password="wrong but long enough")
    with pytest.raises(TooManyRequestsError):
        sign_in.sign_in(hub, name="ada", password=PASSWORD, browser=other)
    assert sign_in.sign_in(hub, name="ada", password=PASSWORD, browser=browser).browser == browser
    for _ in range(5):
        with pytest.raises(NotSignedInError):
            sign_in.sign_in(hub, name="ada", password="wrong but long enough", browser=browser)
    with pytest.raises(TooManyRequestsError):
        sign_in.sign_in(hub, name="ada", password=PASSWORD, browser=browser)


def test_a_sign_in_ends_when_it_is_old_or_idle(hub: Hub, client_for: ClientFor, add_person: AddPerson) -> None:
    add_person("ada")
    client = client_for()
    assert _post(client) == 200
    for change in ({"seen": now() - timedelta(minutes=61)}, {"seen": now(), "expires": now()}):
        with hub.store.writing() as session:
            session.query(LoginSession).update(change)
        assert client.get("/api/v1/session").status_code == 401


def test_use_keeps_a_sign_in_alive(hub: Hub, client_for: ClientFor, add_person: AddPerson) -> None:
    add_person("ada")
    client = client_for()
    assert _post(client) == 200
    with hub.store.writing() as session:
        session.query(LoginSession).update({"seen": now() - timedelta(minutes=10)})
    assert client.get("/api/v1/session").status_code == 200
    with hub.store.reading() as session:
        assert session.query(LoginSession).one().seen > now() - timedelta(minutes=1)


def test_a_hash_with_old_parameters_is_renewed(
    hub: Hub, add_person: AddPerson, monkeypatch: pytest.MonkeyPatch
) -> None:
    from argon2 import PasswordHasher

    user_id = add_person("ada")
    monkeypatch.setattr(passwords, "_hasher", PasswordHasher(time_cost=2, memory_cost=64, parallelism=1))
    sign_in.sign_in(hub, name="ada", password=PASSWORD)
    with hub.store.reading() as session:
        kept = session.get_one(User, user_id).password_hash
    assert kept is not None
    assert "t=2" in kept
    assert sign_in.sign_in(hub, name="ada", password=PASSWORD)


def _pass_time(hub: Hub, time: timedelta) -> None:
    with hub.store.writing() as session:
        tries = session.query(SignInTries).one()
        assert tries.locked_until is not None
        tries.locked_until -= time


def _statements_of(hub: Hub) -> list[str]:
    from sqlalchemy import event

    statements: list[str] = []
    event.listen(hub.store.engine, "before_cursor_execute", lambda *found: statements.append(found[2]))
    return statements
