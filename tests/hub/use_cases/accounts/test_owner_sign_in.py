"""Nobody becomes a data owner alone: second factors, and a second person for whoever resets a sign-in."""

from __future__ import annotations

import pytest
from fastapi.testclient import TestClient

from cloister.errors import ForbiddenError
from cloister.hub.domain.roles import AccountRole
from cloister.hub.hub import Hub, open_hub
from cloister.hub.settings import Settings
from cloister.hub.store.models import Dataset, Identity, NoticeRecord, User
from cloister.hub.use_cases.accounts import own_account, second_factor
from cloister.hub.use_cases.sessions import subject_of
from tests.hub.conftest import ClientFor, add_user, sign_in
from tests.hub.use_cases.accounts.conftest import PASSWORD, AddPerson

NEW = "seven quite different wooden spoons"


@pytest.fixture
def operator(client_for: ClientFor) -> TestClient:
    return client_for("oper", AccountRole.OPERATOR)


def _ask_link(operator: TestClient, account_id: str) -> tuple[str, bool]:
    made = operator.post(f"/api/v1/people/{account_id}/enrolment").json()
    return str(made["link"].rpartition("/")[2]), made["waits"]


def _use(client: TestClient, token: str) -> int:
    return client.post(f"/api/v1/enrolments/{token}", json={"password": NEW}).status_code


def _confirm(client: TestClient, account_id: str) -> int:
    return client.post(f"/api/v1/people/{account_id}/reset-confirmation").status_code


def _give_factor(hub: Hub, user_id: str) -> None:
    with hub.store.writing() as session:
        session.get_one(User, user_id).totp_sealed = b"wrapped"


def _give_data(hub: Hub, owner_id: str) -> None:
    """Give the institution of an owner a dataset."""
    with hub.store.writing() as session:
        place = session.get_one(User, owner_id).organisation_id
        session.add(Dataset(id="ds_1", name="d", organisation_id=str(place), creator_id=owner_id))


def test_one_operator_cannot_become_an_owner_without_a_second_factor(
    hub: Hub, operator: TestClient, client_for: ClientFor, add_person: AddPerson
) -> None:
    ada = add_person("ada", AccountRole.DATA_OWNER)
    token, waits = _ask_link(operator, ada)
    assert waits
    assert _use(client_for(), token) == 404
    assert client_for().get(f"/enrol/{token}").status_code == 404
    assert _confirm(operator, ada) == 403, "nobody is their own second person"
    with hub.store.reading() as session:
        assert "did not ask" in session.query(NoticeRecord).filter_by(user_id=ada).one().text, (
            "the owner is told at once"
        )
    assert _confirm(client_for("oper2", AccountRole.OPERATOR), ada) == 200
    assert _use(client_for(), token) == 200
    with hub.store.reading() as session:
        texts = [notice.text for notice in session.query(NoticeRecord).filter_by(user_id=ada)]
    assert any("second person" in text for text in texts)


@pytest.mark.parametrize(
    ("role", "of", "expected"),
    [
        (AccountRole.OPERATOR, "office", 200),
        (AccountRole.AUDITOR, "office", 200),
        (AccountRole.DATA_OWNER, "north", 200),
        (AccountRole.DATA_OWNER, "south", 404),
        (AccountRole.DATA_USER, "north", 403),
    ],
)
def test_who_may_be_the_second_person(
    hub: Hub,
    operator: TestClient,
    client_for: ClientFor,
    add_person: AddPerson,
    role: AccountRole,
    of: str,
    expected: int,
) -> None:
    ada = add_person("ada", AccountRole.DATA_OWNER)
    _give_data(hub, ada)
    second = client_for("second", role, of=of)
    token, _ = _ask_link(operator, ada)
    listed = second.get("/api/v1/people/confirmations")
    if role is not AccountRole.DATA_USER:
        assert [item["name"] for item in listed.json()["resets"]] == (["ada"] if expected == 200 else [])
        page = second.get("/people/confirmations").text
        assert ("Confirm the reset for ada" in page) is (expected == 200)
    assert _confirm(second, ada) == expected
    assert _use(client_for(), token) == (200 if expected == 200 else 404)


def test_an_owner_does_not_confirm_their_own_reset(
    hub: Hub, operator: TestClient, client_for: ClientFor, add_person: AddPerson
) -> None:
    ada = add_person("ada", AccountRole.DATA_OWNER)
    _give_factor(hub, ada)
    browser = client_for()
    sign_in(hub, browser, ada)
    _ask_link(operator, ada)
    assert _confirm(browser, ada) == 403


def test_a_lost_factor_of_an_owner_takes_two(
    hub: Hub, operator: TestClient, client_for: ClientFor, add_person: AddPerson
) -> None:
    ada, ben = add_person("ada", AccountRole.DATA_OWNER), add_person("ben", AccountRole.DATA_OWNER)
    _give_data(hub, ada)
    _give_factor(hub, ada)
    assert operator.post(f"/api/v1/people/{ada}/factor-reset").json()["has_second_factor"]
    assert _confirm(operator, ada) == 403
    with hub.store.reading() as session:
        assert "sign-in of ada" in session.query(NoticeRecord).filter_by(user_id=ben).one().text
    assert _confirm(client_for("aud", AccountRole.AUDITOR), ada) == 200
    with hub.store.reading() as session:
        assert not second_factor.is_on(session.get_one(User, ada))
    assert operator.post(f"/api/v1/people/{ada}/enrolment").status_code == 403, "who asked for that makes no link"
    assert _confirm(client_for("aud2", AccountRole.AUDITOR), ada) == 404, "nothing waits any more"


def test_a_link_made_before_somebody_became_an_owner_does_not_open_it(
    hub: Hub, operator: TestClient, client_for: ClientFor, add_person: AddPerson
) -> None:
    bea = add_person("bea", AccountRole.DATA_USER)
    token, waits = _ask_link(operator, bea)
    assert not waits
    with hub.store.writing() as session:
        session.get_one(User, bea).roles = [str(AccountRole.DATA_OWNER)]
    assert _use(client_for(), token) == 404


def test_only_the_first_owner_of_an_institution_without_data_needs_nobody(hub: Hub, operator: TestClient) -> None:
    first = add_user(hub, "first", AccountRole.DATA_OWNER, of="new")
    assert not _ask_link(operator, first)[1]
    with hub.store.writing() as session:
        session.add(Identity(issuer="https://login.example", subject="1", user_id=first))
    assert _ask_link(operator, first)[1], "who comes through another service has a way in"
    other = add_user(hub, "other", AccountRole.DATA_OWNER, of="old")
    _give_data(hub, other)
    assert _ask_link(operator, other)[1]


@pytest.mark.parametrize("role", [AccountRole.OPERATOR, AccountRole.AUDITOR])
def test_one_operator_cannot_make_the_second_person(
    hub: Hub, operator: TestClient, client_for: ClientFor, add_person: AddPerson, role: AccountRole
) -> None:
    made = operator.post("/api/v1/people", json={"name": "made", "roles": [str(role)]}).json()["id"]
    token, waits = _ask_link(operator, made)
    assert waits
    assert _use(client_for(), token) == 404
    assert _confirm(operator, made) == 403
    known = add_person("known", AccountRole.DATA_USER)
    refused = operator.patch(f"/api/v1/people/{known}", json={"roles": [str(role)]})
    assert refused.status_code == 403
    assert "make a new account" in refused.json()["fix"]
    empty = operator.post("/api/v1/people", json={"name": "empty"}).json()["id"]
    early, waits = _ask_link(operator, empty)
    assert not waits
    assert operator.patch(f"/api/v1/people/{empty}", json={"roles": [str(role)]}).status_code == 200
    assert _use(client_for(), early) == 404, "a link from before the role waits too"
    assert _confirm(client_for("aud", AccountRole.AUDITOR), made) == 200
    assert _use(client_for(), token) == 200


def test_owners_whom_an_operator_made_are_no_second_person(
    hub: Hub, operator: TestClient, client_for: ClientFor
) -> None:
    """An operator makes an institution, its first owner, and asks that owner to open further accounts of it."""
    place = operator.post("/api/v1/organisations", json={"name": "Nowhere"}).json()["id"]
    made = {"roles": ["data_owner"], "organisation_id": place}
    puppet = operator.post("/api/v1/people", json={"name": "puppet", **made}).json()["id"]
    assert _use(client_for(), _ask_link(operator, puppet)[0]) == 200
    _give_factor(hub, puppet)
    browser = client_for()
    sign_in(hub, browser, puppet)
    for role in ("auditor", "operator", "data_user"):
        account = {"name": f"made-{role.replace('_', '-')}", "roles": [role], "organisation_id": place}
        made_id = operator.post("/api/v1/people", json=account).json()["id"]
        token, _ = _ask_link(operator, made_id)
        assert browser.get("/api/v1/people/confirmations").json()["resets"] == []
        assert _confirm(browser, made_id) == 404
        assert operator.patch(f"/api/v1/people/{made_id}", json={"roles": ["auditor"]}).status_code == 200
        assert _use(client_for(), token) == 404


def test_a_change_of_roles_or_place_voids_what_was_confirmed(
    operator: TestClient, client_for: ClientFor, add_person: AddPerson
) -> None:
    ada = add_person("ada", AccountRole.DATA_OWNER)
    token, _ = _ask_link(operator, ada)
    assert _confirm(client_for("aud", AccountRole.AUDITOR), ada) == 200
    assert operator.patch(f"/api/v1/people/{ada}", json={"roles": ["data_user"]}).status_code == 200
    assert _use(client_for(), token) == 404


def test_owners_with_a_password_alone_only_set_up_a_second_factor(
    hub: Hub, client_for: ClientFor, add_person: AddPerson
) -> None:
    ada = add_person("ada", AccountRole.DATA_OWNER)
    browser = client_for()
    sign_in(hub, browser, ada)
    refused = browser.get("/api/v1/datasets")
    assert refused.status_code == 403
    assert "/account" in refused.json()["fix"]
    assert [step["link"] for step in browser.get("/api/v1/home").json()["steps"]] == ["/account"]
    assert "Set up a second factor" in browser.get("/").text
    assert "need one before" in browser.get("/account").text
    with hub.store.writing() as session:
        made = own_account.make_token(
            session, by=subject_of(session.get_one(User, ada)), name="all", scopes=["*"], days=1
        )
    by_token = {"authorization": f"Bearer {made.secret}"}
    assert client_for().get("/api/v1/datasets", headers=by_token).status_code == 403, "a token is no way around it"
    _give_factor(hub, ada)
    assert browser.get("/api/v1/datasets").status_code == 200
    assert client_for().get("/api/v1/datasets", headers=by_token).status_code == 200
    assert "keep a second factor" in browser.get("/account").text


def test_owners_keep_their_second_factor(hub: Hub, add_person: AddPerson, monkeypatch: pytest.MonkeyPatch) -> None:
    ada = add_person("ada", AccountRole.DATA_OWNER)
    _give_factor(hub, ada)
    monkeypatch.setattr(second_factor, "accept", lambda *_: True)
    with hub.store.reading() as session:
        subject = subject_of(session.get_one(User, ada))
    with pytest.raises(ForbiddenError, match="new authenticator"):
        own_account.remove_factor(hub, subject, password=PASSWORD, code="000000")


def test_the_setting_lifts_it(tmp_path_factory: pytest.TempPathFactory) -> None:
    from cloister.hub.app import create_app

    opened = open_hub(Settings(folder=tmp_path_factory.mktemp("hub"), workers=0, owner_second_factor=False))
    user_id = add_user(opened, "ada", AccountRole.DATA_OWNER)
    with opened.store.writing() as session:
        session.get_one(User, user_id).password_hash = "x"
    with TestClient(create_app(opened), base_url="http://127.0.0.1:8080") as browser:
        sign_in(opened, browser, user_id)
        assert browser.get("/api/v1/datasets").status_code == 200
    opened.close()
