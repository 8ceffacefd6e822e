"""A role that is revoked while work is queued, and a budget that is exhausted, seen from every side."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from cloister.hub import queue
from cloister.hub.use_cases.jobs import work
from tests.hub.use_cases.access.conftest import API, Scene, role

UNTIL = (datetime.now(UTC) + timedelta(days=30)).date().isoformat()


@pytest.mark.parametrize("way", ["request", "person", "policy"])
def test_work_that_is_queued_is_denied_once_its_role_is_revoked(scene: Scene, way: str) -> None:
    scene.save(discoverable=True, roles=[role("researchers")])
    ada = scene.user("ada")
    request = scene.ask(ada)["id"]
    scene.step(scene.owner, request, "approval", role="researchers", until=UNTIL)
    job = scene.run(ada).json()["id"]
    assert ada.get(f"{API}/jobs/{job}").json()["state"] == "queued"
    if way == "request":
        scene.step(scene.owner, request, "revocation")
    elif way == "person":
        scene.owner.post(f"{scene.place}/policy/revocations", json={"person": "ada"})
    else:
        scene.save(discoverable=True, roles=[role("researchers")])
    scene.work()
    ended = ada.get(f"{API}/jobs/{job}").json()
    assert ended["state"] == "denied"
    assert ended["error"]["problem"] == "You have no access to this; you can ask its owner for it."
    assert "What was paid stays paid." in ended["error"]["fix"]
    assert ada.get(f"{API}/jobs/{job}/result").status_code in (404, 409)
    assert ada.get(f"{API}/requests/{request}").json()["state"] == "revoked"
    assert ("job.end", "refused") in scene.audit()


def test_work_that_runs_is_denied_before_its_result_is_kept(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    scene.save(discoverable=True, roles=[role("researchers")])
    ada = scene.user("ada")
    scene.step(scene.owner, scene.ask(ada)["id"], "approval", role="researchers", until=UNTIL)
    job = scene.run(ada).json()["id"]
    run = work._run

    def revoking(*arguments: object) -> object:
        outcome = run(*arguments)  # type: ignore[arg-type]  # passed on
        answer = scene.owner.post(f"{scene.place}/policy/revocations", json={"person": "ada"})
        assert answer.status_code == 200
        return outcome

    monkeypatch.setattr(work, "_run", revoking)
    with scene.hub.store.writing() as session:
        claim = queue.claim(session, "test", 60)
    assert claim is not None
    work.perform(scene.hub, claim, lambda share, stage: None)
    assert ada.get(f"{API}/jobs/{job}").json()["state"] == "denied"
    assert ada.get(f"{API}/jobs/{job}/result").status_code in (404, 409)


def test_an_exhausted_budget_is_refused_and_every_view_agrees(scene: Scene) -> None:
    ada, bob = scene.user("ada"), scene.user("bob")
    scene.save(discoverable=True, roles=[role("researchers", "ada", "bob")])
    asked = [(ada, "2", "COUNT(*)"), (bob, "0.75", "AVG(age)")]
    for by, epsilon, what in asked:
        answer = scene.run(by, sql=f"SELECT {what} AS x FROM data", epsilon=epsilon)
        assert answer.status_code == 202, answer.text
    scene.work()
    refused = scene.run(bob, sql="SELECT SUM(age) AS x FROM data", epsilon="0.5")
    assert refused.status_code == 409
    assert refused.json()["problem"] == "This release needs epsilon 0.5, but only 0.25 is left."
    assert ("service.run", "refused") in scene.audit()

    ledger = scene.owner.get(f"{scene.place}/ledger").json()
    assert ledger["spent"]["epsilon"] == "11/4"
    spends = [item for item in ledger["items"] if item["kind"] == "spend"]
    assert [(item["analyst"], item["cost"]["epsilon"]) for item in spends] == [("ada", "2"), ("bob", "3/4")]
    for by in (ada, bob):
        assert by.get(f"{scene.place}/access").json()["left"]["epsilon"] == "1/4"
        question = {"parameters": {"sql": "SELECT SUM(age) AS x FROM data", "epsilon": "0.5"}, "purpose": "research"}
        preview = by.post(f"{scene.place}/services/query.sql/preview", json=question).json()
        assert (preview["left"]["epsilon"], preview["is_affordable"]) == ("1/4", False)
    receipts = [job["receipt"]["cost"]["epsilon"] for by in (ada, bob) for job in by.get(f"{API}/jobs").json()["items"]]
    assert sorted(receipts) == ["2", "3/4"]
    assert "92% of epsilon 3 is spent" in scene.owner.get(f"/datasets/{scene.dataset}").text.replace("91.7", "92")
    assert "epsilon 0.25" in ada.get(f"/datasets/{scene.dataset}/access").text
    again = scene.run(bob, sql="SELECT COUNT(*) AS x FROM data", epsilon="2").json()
    assert again["state"] == "done"
    assert scene.owner.get(f"{scene.place}/ledger").json()["spent"]["epsilon"] == "11/4"
