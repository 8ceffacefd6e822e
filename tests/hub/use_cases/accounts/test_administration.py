from __future__ import annotations

import pytest

from cloister.errors import CloisterError, ConflictError, ForbiddenError, NotFoundError, ParameterError
from cloister.hub.domain.roles import AccessSubject, AccountRole, check_roles
from cloister.hub.domain.untrusted_input import check_account_name, check_title, fold_name
from cloister.hub.hub import Hub
from cloister.hub.store.models import Dataset, LoginSession, NoticeRecord, Organisation, User
from cloister.hub.use_cases.accounts import administration
from cloister.hub.use_cases.accounts.administration import Change
from tests.hub.conftest import ClientFor, add_user

OPERATOR = AccessSubject(user_id="usr_oper", name="oper", roles=frozenset({AccountRole.OPERATOR}))


def _subject(hub: Hub, user_id: str) -> AccessSubject:
    with hub.store.reading() as session:
        user = session.get_one(User, user_id)
        return AccessSubject(
            user_id=user.id,
            name=user.name,
            organisation_id=user.organisation_id,
            roles=frozenset(AccountRole(role) for role in user.roles),
        )


def _organisation_id(hub: Hub, name: str = "north") -> str:
    with hub.store.reading() as session:
        return session.query(Organisation).filter_by(name=name).one().id


@pytest.mark.parametrize("name", ["ada", "ada.lovelace", "a", "a1", "user_7-b"])
def test_plain_names_are_names_of_accounts(name: str) -> None:
    assert check_account_name(name) == name


@pytest.mark.parametrize(
    "name", ["", "Ada", "\u0430da", "ada ", "-ada", "ada.", "a" * 65, "ada@north", "a\nb", "\uff41da"]
)
def test_names_that_could_be_confused_are_refused(name: str) -> None:
    with pytest.raises(ParameterError, match="small letters"):
        check_account_name(name)


@pytest.mark.parametrize("other", ["north hospital", "NORTH  Hospital", "\uff2eorth Hospital"])
def test_spellings_of_one_organisation_are_one(hub: Hub, other: str) -> None:
    assert fold_name(other) == fold_name("North Hospital")
    with hub.store.writing() as session:
        administration.create_organisation(session, "North Hospital", by=OPERATOR)
    with pytest.raises(ConflictError, match="choose another name"), hub.store.writing() as session:
        administration.create_organisation(session, other, by=OPERATOR)


@pytest.mark.parametrize("name", ["N\u043erth", "", " North", "North\u202e", "x" * 201])
def test_names_that_deceive_the_eye_are_refused(name: str) -> None:
    with pytest.raises(ParameterError):
        check_title(name, what="name")


@pytest.mark.parametrize(
    "roles",
    [("operator", "data_owner"), ("operator", "data_user"), ("auditor", "data_user"), ("operator", "auditor")],
)
def test_who_runs_or_audits_the_hub_does_nothing_else(roles: tuple[str, ...]) -> None:
    with pytest.raises(ForbiddenError, match="separate_duties"):
        check_roles(roles)
    assert check_roles(roles, separate=False) == {AccountRole(role) for role in roles}


def test_owners_may_use_and_provide_too() -> None:
    assert len(check_roles(["data_owner", "data_user", "algorithm_provider"])) == 3
    with pytest.raises(ParameterError, match="data_owner"):
        check_roles(["king"])


def test_operators_make_and_change_accounts(hub: Hub, client_for: ClientFor) -> None:
    operator = client_for("oper", AccountRole.OPERATOR)
    organisation = operator.post("/api/v1/organisations", json={"name": "West"}).json()["id"]
    made = operator.post(
        "/api/v1/people",
        json={
            "name": "ada",
            "roles": ["data_user"],
            "organisation_id": organisation,
            "attributes": {"branch": "oncology"},
        },
    )
    assert made.status_code == 200
    account = made.json()
    assert (account["has_password"], account["organisation"]) == (False, "West")
    again = operator.post("/api/v1/people", json={"name": "ada"})
    assert again.status_code == 409
    path = f"/api/v1/people/{account['id']}"
    assert operator.patch(path, json={"roles": ["data_user", "data_owner"]}).json()["roles"] == [
        "data_owner",
        "data_user",
    ]
    assert operator.patch(path, json={"attributes": {}}).json()["attributes"] == {}
    assert operator.patch(path, json={"organisation_id": ""}).status_code == 422, "owners belong somewhere"
    listed = operator.get("/api/v1/people", params={"limit": 1}).json()
    assert [item["name"] for item in listed["items"]] == ["ada"]
    assert operator.get("/api/v1/people", params={"after": listed["next"]}).json()["items"][0]["name"] == "oper"
    renamed = operator.patch(f"/api/v1/organisations/{organisation}", json={"name": "WEST"})
    assert renamed.json()["name"] == "WEST"


@pytest.mark.parametrize(
    "role", [None, AccountRole.DATA_OWNER, AccountRole.DATA_USER, AccountRole.AUDITOR, AccountRole.ALGORITHM_PROVIDER]
)
def test_nobody_else_does(client_for: ClientFor, role: AccountRole | None) -> None:
    client = client_for("somebody", *([] if role is None else [role]))
    assert client.get("/api/v1/people").status_code == 403
    assert client.post("/api/v1/people", json={"name": "ada"}).status_code == 403
    assert client.post("/api/v1/organisations", json={"name": "ada"}).status_code == 403


def test_an_operator_cannot_change_their_own_account(hub: Hub, client_for: ClientFor) -> None:
    operator = client_for("oper", AccountRole.OPERATOR)
    own = operator.get("/api/v1/session").json()["account"]["id"]
    refused = operator.patch(f"/api/v1/people/{own}", json={"roles": ["data_owner"]})
    assert refused.status_code == 403
    assert "another operator" in refused.json()["fix"]
    assert operator.post(f"/api/v1/people/{own}/enrolment").status_code == 403
    assert operator.post(f"/api/v1/people/{own}/factor-reset").status_code == 403


def test_a_new_owner_of_somebodys_data_is_confirmed_by_its_owners(hub: Hub, client_for: ClientFor) -> None:
    operator = client_for("oper", AccountRole.OPERATOR, of="hub")
    owner = client_for("olga", AccountRole.DATA_OWNER)
    elsewhere = client_for("otto", AccountRole.DATA_OWNER, of="south")
    auditor = client_for("tom", AccountRole.AUDITOR, of="hub")
    made = operator.post(
        "/api/v1/people",
        json={"name": "puppet", "roles": ["data_owner"], "organisation_id": _organisation_id(hub)},
    ).json()
    assert made["roles"] == []
    assert made["organisation_id"] is None
    assert made["proposed"]["roles"] == ["data_owner"]
    path = f"/api/v1/people/{made['id']}/confirmation"
    assert [client.post(path).status_code for client in (operator, elsewhere, auditor)] == [403, 403, 403]
    assert elsewhere.get("/api/v1/people/confirmations").json()["items"] == []
    assert [item["name"] for item in owner.get("/api/v1/people/confirmations").json()["items"]] == ["puppet"]
    with hub.store.reading() as session:
        assert "puppet" in session.query(NoticeRecord).one().text
    confirmed = owner.post(path).json()
    assert (confirmed["roles"], confirmed["organisation"]) == (["data_owner"], "north")
    assert owner.post(path).status_code == 404


@pytest.mark.parametrize("change", [Change(is_disabled=True), Change(roles=())])
def test_removing_the_owners_first_does_not_open_the_door(hub: Hub, change: Change) -> None:
    owner = add_user(hub, "olga", AccountRole.DATA_OWNER)
    puppet = add_user(hub, "puppet", of="hub")
    tom = _subject(hub, add_user(hub, "tom", AccountRole.AUDITOR, of="hub"))
    organisation = _organisation_id(hub)
    with hub.store.writing() as session:
        session.add(Dataset(id="ds_1", name="d", organisation_id=organisation, creator_id=owner))
        administration.change_account(session, owner, change, by=OPERATOR)
        wanted = Change(roles=("data_owner",), organisation_id=organisation)
        user = administration.change_account(session, puppet, wanted, by=OPERATOR)
        assert user.roles == []
    with hub.store.writing() as session:
        user = administration.confirm_owner(session, puppet, by=tom)
        assert user.roles == ["data_owner"]


def test_the_first_owner_of_a_new_institution_needs_nobody(hub: Hub) -> None:
    with hub.store.writing() as session:
        organisation = administration.create_organisation(session, "East", by=OPERATOR)
        user = administration.create_account(
            session, "olga", by=OPERATOR, roles=["data_owner"], organisation_id=organisation.id
        )
        assert user.roles == ["data_owner"]
        assert user.proposed is None


def test_nobody_confirms_themselves(hub: Hub) -> None:
    owner = add_user(hub, "olga", AccountRole.DATA_OWNER)
    with hub.store.writing() as session:
        session.get_one(User, owner).proposed = {"roles": ["data_owner"], "organisation_id": _organisation_id(hub)}
    with pytest.raises(ForbiddenError), hub.store.writing() as session:
        administration.confirm_owner(session, owner, by=_subject(hub, owner))


def test_closing_an_account_ends_its_sign_ins_and_tokens(hub: Hub, client_for: ClientFor) -> None:
    operator, user = client_for("oper", AccountRole.OPERATOR), client_for("ada", AccountRole.DATA_USER)
    made = user.post("/api/v1/account/tokens", json={"name": "t", "scopes": ["*"]}).json()
    own = user.get("/api/v1/session").json()["account"]["id"]
    assert operator.patch(f"/api/v1/people/{own}", json={"is_disabled": True}).json()["is_disabled"]
    assert user.get("/api/v1/session").status_code == 401
    with hub.store.reading() as session:
        assert session.query(LoginSession).filter_by(user_id=own).count() == 0
    assert operator.patch(f"/api/v1/people/{own}", json={"is_disabled": False}).status_code == 200
    bearer = {"Authorization": f"Bearer {made['secret']}"}
    assert client_for().get("/api/v1/session", headers=bearer).status_code == 401, "revoked for good"


def test_a_change_of_roles_counts_at_once(client_for: ClientFor) -> None:
    operator, user = client_for("oper", AccountRole.OPERATOR), client_for("tom", AccountRole.AUDITOR)
    assert user.get("/api/v1/audit").status_code == 200
    own = user.get("/api/v1/session").json()["account"]["id"]
    operator.patch(f"/api/v1/people/{own}", json={"roles": []})
    assert user.get("/api/v1/audit").status_code == 403


@pytest.mark.parametrize("attributes", [{"a b": "c"}, {"a": "x" * 201}, {f"a{n}": "x" for n in range(21)}])
def test_odd_attributes_are_refused(hub: Hub, attributes: dict[str, str]) -> None:
    with pytest.raises(CloisterError, match="branch = oncology"), hub.store.writing() as session:
        administration.create_account(session, "ada", by=OPERATOR, attributes=attributes)


def test_unknown_accounts_and_organisations_are_not_found(hub: Hub, client_for: ClientFor) -> None:
    operator = client_for("oper", AccountRole.OPERATOR)
    assert operator.get("/api/v1/people/usr_none").status_code == 404
    assert operator.patch("/api/v1/organisations/org_none", json={"name": "x"}).status_code == 404
    with pytest.raises(NotFoundError), hub.store.writing() as session:
        administration.create_account(session, "ada", by=OPERATOR, organisation_id="org_none")
