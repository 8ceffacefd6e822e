from __future__ import annotations

from datetime import timedelta

import pytest
from fastapi.testclient import TestClient

from cloister.hub.domain.roles import AccountRole
from cloister.hub.hub import Hub
from cloister.hub.store.models import AuditEntry, Enrolment, NoticeRecord, User, now
from cloister.hub.use_cases.accounts import sign_in as accounts_sign_in
from tests.hub.conftest import ClientFor, sign_in
from tests.hub.use_cases.accounts.conftest import AddPerson

NEW = "seven quite different wooden spoons"


@pytest.fixture
def operator(client_for: ClientFor) -> TestClient:
    return client_for("oper", AccountRole.OPERATOR)


def _link(operator: TestClient, account_id: str) -> str:
    answer = operator.post(f"/api/v1/people/{account_id}/enrolment")
    assert answer.status_code == 200
    return str(answer.json()["link"].rpartition("/")[2])


def test_a_link_sets_a_password_that_operators_never_see(hub: Hub, operator: TestClient, client_for: ClientFor) -> None:
    account = operator.post("/api/v1/people", json={"name": "ada"}).json()["id"]
    token = _link(operator, account)
    stranger = client_for()
    assert stranger.get(f"/api/v1/enrolments/{token}").json()["account"] == "ada"
    assert stranger.get(f"/enrol/{token}").status_code == 200
    weak = stranger.post(f"/api/v1/enrolments/{token}", json={"password": "short"})
    assert weak.status_code == 422
    done = stranger.post(f"/api/v1/enrolments/{token}", json={"password": NEW})
    assert done.json()["account"] == "ada"
    assert "set-cookie" not in done.headers, "a link does not sign anybody in"
    assert accounts_sign_in.sign_in(hub, name="ada", password=NEW)
    assert stranger.post(f"/api/v1/enrolments/{token}", json={"password": NEW}).status_code == 404, "it works once"
    with hub.store.reading() as session:
        assert token not in str([vars(entry) for entry in session.query(AuditEntry)])
        assert session.query(Enrolment).one().digest != token


def test_old_replaced_and_invented_links_fail_alike(hub: Hub, operator: TestClient, client_for: ClientFor) -> None:
    account = operator.post("/api/v1/people", json={"name": "ada"}).json()["id"]
    replaced = _link(operator, account)
    expired = _link(operator, account)
    with hub.store.writing() as session:
        session.query(Enrolment).filter_by(used=None).update({"expires": now() - timedelta(seconds=1)})
    answers = [client_for().get(f"/api/v1/enrolments/{token}") for token in (replaced, expired, "invented")]
    assert [answer.status_code for answer in answers] == [404] * 3
    assert len({answer.text for answer in answers}) == 1


def test_a_link_for_an_old_account_ends_what_was_open_and_tells_its_holder(
    hub: Hub, operator: TestClient, client_for: ClientFor, add_person: AddPerson
) -> None:
    user_id = add_person("ada")
    browser = client_for()
    sign_in(hub, browser, user_id)
    token = _link(operator, user_id)
    assert browser.get("/api/v1/session").status_code == 200, "making a link ends nothing"
    assert client_for().post(f"/api/v1/enrolments/{token}", json={"password": NEW}).status_code == 200
    assert browser.get("/api/v1/session").status_code == 401
    with hub.store.reading() as session:
        assert "link that an operator made" in session.query(NoticeRecord).filter_by(user_id=user_id).one().text


def test_a_link_opens_a_lock(hub: Hub, operator: TestClient, client_for: ClientFor, add_person: AddPerson) -> None:
    user_id = add_person("ada")
    client = client_for()
    wrong = {"name": "ada", "password": "not the password"}
    assert [client.post("/api/v1/session", json=wrong).status_code for _ in range(6)][-1] == 429
    client.post(f"/api/v1/enrolments/{_link(operator, user_id)}", json={"password": NEW})
    assert client.post("/api/v1/session", json={"name": "ada", "password": NEW}).status_code == 200


def _with_factor(hub: Hub, user_id: str) -> None:
    with hub.store.writing() as session:
        session.get_one(User, user_id).totp_sealed = b"wrapped"


def test_one_operator_alone_cannot_take_over_an_account_with_a_second_factor(
    hub: Hub, operator: TestClient, client_for: ClientFor, add_person: AddPerson
) -> None:
    second = client_for("oper2", AccountRole.OPERATOR)
    ada, eve = add_person("ada"), add_person("eve")
    for user_id in (ada, eve):
        _with_factor(hub, user_id)
    _link(operator, ada)
    with hub.store.reading() as session:
        assert session.get_one(User, ada).totp_sealed is not None, "a link leaves the second factor alone"
    assert operator.post(f"/api/v1/people/{ada}/factor-reset").status_code == 403
    assert second.post(f"/api/v1/people/{ada}/factor-reset").status_code == 200
    assert operator.post(f"/api/v1/people/{eve}/factor-reset").status_code == 200
    refused = operator.post(f"/api/v1/people/{eve}/enrolment")
    assert refused.status_code == 403
    assert "another operator" in refused.json()["fix"]
    assert second.post(f"/api/v1/people/{eve}/enrolment").status_code == 200
    with hub.store.reading() as session:
        changes = [entry.details for entry in session.query(AuditEntry).filter_by(outcome="done")]
    assert sum("second factor taken away" in change for change in changes) == 2


def test_a_closed_account_has_no_working_link(
    hub: Hub, operator: TestClient, client_for: ClientFor, add_person: AddPerson
) -> None:
    user_id = add_person("ada")
    token = _link(operator, user_id)
    operator.patch(f"/api/v1/people/{user_id}", json={"is_disabled": True})
    assert client_for().post(f"/api/v1/enrolments/{token}", json={"password": NEW}).status_code == 404
