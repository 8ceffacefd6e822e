from __future__ import annotations

import threading
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from fastapi.testclient import TestClient

from cloister.hub.domain.roles import AccountRole
from cloister.hub.store.models import AccessRequestRecord, PolicyVersion
from cloister.hub.workers import do_upkeep
from tests.hub.use_cases.access.conftest import API, Scene, role

UNTIL = (datetime.now(UTC) + timedelta(days=30)).date().isoformat()


@pytest.fixture
def listed(scene: Scene) -> Scene:
    """A dataset that everybody can find, with an empty role."""
    scene.save(discoverable=True, roles=[role("researchers")])
    return scene


def test_from_request_to_answer(listed: Scene) -> None:
    ada = listed.user("ada")
    made = listed.ask(ada, budget={"epsilon": "0.5"}, note="A thesis on asthma.", algorithms=["kmeans@1.0.0"])
    request = made["id"]
    assert made["state"] == "requested"
    assert listed.notices(listed.owner)[0] == "ada asks for access to Visits."
    assert listed.ask(ada, status=409)["fix"] == "answer or withdraw it on the page Access."

    waiting = listed.owner.get(f"{API}/requests?which=waiting").json()["items"]
    assert [item["id"] for item in waiting] == [request]
    asked = listed.step(listed.owner, request, "question", note="Which hospital?")
    assert asked["state"] == "info_needed"
    assert listed.step(listed.owner, request, "approval", status=409, role="researchers", until=UNTIL)
    assert listed.step(ada, request, "answer", note="North.")["state"] == "requested"
    seen = listed.owner.get(f"{API}/requests/{request}").json()
    assert [item["allowed"] for item in seen["outlook"][0]["operations"]] == [True, True]

    before = listed.version()
    approved = listed.step(
        listed.owner, request, "approval", role="researchers", until=UNTIL, budget={"epsilon": "0.15"}, note="Welcome."
    )
    assert approved["state"] == "approved"
    assert listed.version() == before + 1
    document = listed.owner.get(f"{listed.place}/policy").json()["document"]
    member = document["roles"][0]["members"]["users"][0]
    assert member["user"] == "ada"
    assert member["budget"] == {"epsilon": "3/20"}
    limits = [item for item in listed.owner.get(f"{listed.place}/ledger").json()["items"] if item["kind"] == "limit"]
    assert [(item["analyst"], item["budget"]["epsilon"]) for item in limits] == [("ada", "3/20")]

    assert listed.run(ada).status_code == 202
    spent = listed.run(ada, sql="SELECT AVG(age) AS a FROM data")
    assert spent.status_code == 409
    assert "0.05" in spent.json()["problem"]
    standing = ada.get(f"{listed.place}/access").json()
    assert standing["left"]["epsilon"] == "1/20"
    assert standing["may"][0]["until"].startswith(UNTIL)

    own = ada.get(f"{API}/requests/{request}").json()
    assert [step["state"] for step in own["history"]] == ["requested", "info_needed", "requested", "approved"]
    assert [step["by"] for step in own["history"]] == ["ada", "the owner", "ada", "the owner"]
    assert "outlook" not in own
    assert "researchers" not in str(own)
    assert any("You have access to Visits until" in text for text in listed.notices(ada))
    steps = [action for action, outcome in listed.audit() if outcome == "done" and action.startswith("access.")]
    assert steps == ["access.request", "access.decide", "access.answer", "access.decide", "access.decide"]


@pytest.mark.parametrize(
    ("asked", "gives"), [({"budget": {"epsilon": "1.5"}}, "1"), ({}, "1"), ({"budget": {"epsilon": "0.5"}}, "1/2")]
)
def test_a_grant_says_what_it_gives(scene: Scene, asked: dict[str, Any], gives: str) -> None:
    scene.save(discoverable=True, roles=[role("researchers", limits={"user": {"epsilon": "1"}})])
    ada = scene.user("ada")
    request = scene.ask(ada)["id"]
    seen = scene.owner.get(f"{API}/requests/{request}").json()
    assert seen["outlook"][0]["most"]["epsilon"] == "1"
    assert "at most epsilon 1 for one person" in scene.owner.get(f"/requests/{request}").text
    granted = scene.step(scene.owner, request, "approval", role="researchers", until=UNTIL, **asked)["granted"]
    assert granted["gives"]["epsilon"] == gives
    assert granted["budget"] is None or granted["budget"]["epsilon"] == gives
    shown = {"1": "epsilon 1", "1/2": "epsilon 0.5"}[gives]
    assert any(f"with {shown} in all" in text for text in scene.notices(ada))
    assert f"{shown} in all" in ada.get(f"/requests/{request}").text


def test_rejection_and_withdrawal_end_a_request(listed: Scene) -> None:
    ada = listed.user("ada")
    first = listed.ask(ada)["id"]
    assert listed.step(listed.owner, first, "rejection", note="No.")["state"] == "rejected"
    assert "Your request for access to Visits was rejected." in listed.notices(ada)
    listed.step(listed.owner, first, "approval", status=409, role="researchers", until=UNTIL)
    second = listed.ask(ada)["id"]
    assert listed.step(ada, second, "withdrawal")["state"] == "withdrawn"
    assert listed.run(ada).status_code == 403
    assert [item["id"] for item in ada.get(f"{API}/requests?which=own&limit=1").json()["items"]] != []
    page = ada.get(f"{API}/requests?limit=1").json()
    rest = ada.get(f"{API}/requests?limit=1&after={page['next']}").json()
    assert {page["items"][0]["id"], rest["items"][0]["id"]} == {first, second}
    assert rest["next"] is None


def test_access_can_be_revoked_or_given_back(listed: Scene) -> None:
    ada = listed.user("ada")
    for by, step, words in ((listed.owner, "revocation", "ended"), (ada, "return", "")):
        request = listed.ask(ada)["id"]
        listed.step(listed.owner, request, "approval", role="researchers", until=UNTIL)
        assert listed.run(ada).status_code == 202
        assert listed.step(by, request, step)["state"] == "revoked"
        assert listed.run(ada).status_code == 403
        assert any(words in text for text in listed.notices(ada))
    assert any("given back" in text for text in listed.notices(listed.owner))


def test_taking_somebody_out_of_the_policy_ends_the_request(listed: Scene) -> None:
    ada = listed.user("ada")
    request = listed.ask(ada)["id"]
    listed.step(listed.owner, request, "approval", role="researchers", until=UNTIL)
    gone = listed.owner.post(f"{listed.place}/policy/revocations", json={"person": "ada"}).json()
    assert gone["still_in"] == []
    assert ada.get(f"{API}/requests/{request}").json()["state"] == "revoked"
    again = listed.owner.post(f"{listed.place}/policy/revocations", json={"person": "ada"})
    assert again.status_code == 409


def test_two_owners_are_needed_where_the_policy_says_so(scene: Scene) -> None:
    scene.save(discoverable=True, two_person=True, roles=[role("researchers")])
    second = scene.user("otto", AccountRole.DATA_OWNER, of="north")
    both = scene.user("bea", AccountRole.DATA_OWNER, AccountRole.DATA_USER, of="north")
    ada = scene.user("ada")
    request = scene.ask(ada)["id"]
    terms: dict[str, Any] = {"role": "researchers", "until": UNTIL}
    once = scene.step(scene.owner, request, "approval", **terms)
    assert (once["state"], once["approvals_missing"]) == ("requested", 1)
    assert scene.run(ada).status_code == 403
    twice = scene.step(scene.owner, request, "approval", status=409, **terms)
    assert twice["fix"] == "ask a second owner."
    other = scene.step(second, request, "approval", status=409, **terms | {"budget": {"epsilon": "1"}})
    assert "another role, end or budget" in other["problem"]
    assert "olga has approved access to Visits; a second owner has to." in scene.notices(second)
    assert scene.step(second, request, "approval", **terms)["state"] == "approved"
    assert scene.run(ada).status_code == 202
    assert scene.ask(both, status=409)["problem"] == "You own this dataset."


def test_nobody_decides_who_is_not_an_owner(listed: Scene) -> None:
    ada, eve = listed.user("ada"), listed.user("eve", AccountRole.DATA_OWNER, AccountRole.DATA_USER, of="west")
    request = listed.ask(ada)["id"]
    for step in ("approval", "rejection", "revocation", "question"):
        body: dict[str, Any] = {"role": "researchers", "until": UNTIL} if step == "approval" else {"note": "x"}
        assert listed.step(ada, request, step, status=403, **body)
        assert listed.step(eve, request, step, status=404, **body)
    assert listed.step(eve, request, "answer", status=404, note="x")
    assert eve.get(f"{API}/requests/{request}").status_code == 404
    assert eve.get(f"{API}/requests").json()["items"] == []
    assert listed.step(listed.owner, request, "withdrawal", status=404)


def test_a_request_that_makes_no_sense_is_refused(listed: Scene) -> None:
    cases: list[tuple[dict[str, Any], int, str]] = [
        ({"purpose": "Research!"}, 422, "purpose"),
        ({"operations": ["policy.edit"]}, 422, "what governs an object is its owner's"),
        ({"operations": ["dance"]}, 422, "use some of"),
        ({"operations": []}, 422, "operations"),
        ({"algorithms": ["a b"]}, 422, "name@version"),
        ({"budget": {"epsilon": "-1"}}, 422, "epsilon"),
        ({"state": "approved"}, 422, "malformed"),
    ]
    for body, status, told in cases:
        answer = listed.ask(listed.user("ada"), status=status, **body)
        assert told in answer["problem"] + answer["fix"]


def test_an_approval_that_makes_no_sense_changes_nothing(listed: Scene) -> None:
    cases: list[tuple[dict[str, Any], int, str]] = [
        ({"role": "nobody"}, 422, "researchers"),
        ({"until": "2020-01-01"}, 409, "give a later end."),
        ({"until": "2090-01-01T00:00:00"}, 422, "2027-12-31"),
        ({"until": "soon"}, 422, "2027-12-31"),
        ({"budget": {"rho": "1"}}, 409, "The dataset's budget is in epsilon, not in rho."),
    ]
    ada = listed.user("ada")
    request, before = listed.ask(ada)["id"], listed.version()
    for terms, status, told in cases:
        whole: dict[str, Any] = {"role": "researchers", "until": UNTIL} | terms
        answer = listed.step(listed.owner, request, "approval", status=status, **whole)
        assert told in answer["problem"] + answer["fix"]
    assert listed.version() == before
    assert ada.get(f"{API}/requests/{request}").json()["state"] == "requested"


def test_what_has_run_out_is_noted_by_itself(listed: Scene) -> None:
    ada, bob = listed.user("ada"), listed.user("bob")
    granted, waiting = listed.ask(ada)["id"], listed.ask(bob)["id"]
    listed.step(listed.owner, granted, "approval", role="researchers", until=UNTIL)
    past = datetime.now(UTC) - timedelta(days=1)
    with listed.hub.store.writing() as session:
        for identifier, days in ((granted, 2), (waiting, 200)):
            row = session.get_one(AccessRequestRecord, identifier)
            row.history = [step | {"at": (past - timedelta(days=days)).isoformat()} for step in row.history]
            approvals = [item | {"until": past.isoformat()} for item in row.document["approvals"]]
            row.document, row.expires = row.document | {"approvals": approvals}, past
        newest = session.query(PolicyVersion).order_by(PolicyVersion.number.desc()).first()
        assert newest is not None
        document = newest.document
        document["roles"][0]["members"]["users"][0]["until"] = past.isoformat()
        session.expunge(newest)
        session.add(
            PolicyVersion(
                id="pol_x",
                object_kind="dataset",
                object_id=listed.dataset,
                number=newest.number + 1,
                document=document | {"version": newest.number + 1},
            )
        )
    assert listed.run(ada).status_code == 403
    do_upkeep(listed.hub)
    do_upkeep(listed.hub)
    assert ada.get(f"{API}/requests/{granted}").json()["state"] == "expired"
    assert bob.get(f"{API}/requests/{waiting}").json()["state"] == "expired"
    assert listed.notices(ada).count("Your access to Visits has expired.") == 1
    assert "Your request for access to Visits has expired." in listed.notices(bob)
    policy = listed.owner.get(f"{listed.place}/policy").json()
    assert policy["roles"][0]["people"] == []
    versions = listed.owner.get(f"{listed.place}/policy/versions").json()["items"]
    assert versions[0]["author"] == "the hub"
    assert listed.audit().count(("access.expire", "done")) == 2


def _at_once(*calls: Any) -> list[int]:
    statuses: list[int] = []
    gate = threading.Barrier(len(calls))

    def call(step: Any) -> None:
        gate.wait()
        statuses.append(step().status_code)

    threads = [threading.Thread(target=call, args=(step,)) for step in calls]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return sorted(statuses)


def test_of_two_owners_who_decide_at_once_one_is_told(listed: Scene) -> None:
    second = listed.user("otto", AccountRole.DATA_OWNER, of="north")
    ada = listed.user("ada")
    request, before = listed.ask(ada)["id"], listed.version()

    def decide(by: TestClient, step: str, body: dict[str, str]) -> Any:
        return by.post(f"{API}/requests/{request}/{step}", json=body)

    approval = {"role": "researchers", "until": UNTIL}
    statuses = _at_once(
        lambda: decide(listed.owner, "approval", approval),
        lambda: decide(second, "approval", approval),
        lambda: decide(second, "rejection", {"note": "No."}),
    )
    assert statuses in ([200, 409, 409], [409, 409, 200])
    state = ada.get(f"{API}/requests/{request}").json()["state"]
    assert listed.version() == before + (state == "approved")
    assert (listed.run(ada).status_code == 202) == (state == "approved")


def test_of_two_owners_who_edit_at_once_one_looks_again(listed: Scene) -> None:
    second = listed.user("otto", AccountRole.DATA_OWNER, of="north")
    version = listed.version()

    def edit(by: TestClient, rows: str) -> Any:
        return by.patch(f"{listed.place}/policy", json={"based_on": version, "rows": rows})

    statuses = _at_once(lambda: edit(listed.owner, "age > 18"), lambda: edit(second, "age > 21"))
    assert statuses == [200, 409]
    assert listed.version() == version + 1
