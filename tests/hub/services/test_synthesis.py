from __future__ import annotations

import csv
import io
import json
from typing import Any

import pyarrow.parquet as pq
import pytest
from fastapi.testclient import TestClient

from cloister import synth
from cloister.core.guarantees import NoGuarantee
from cloister.crypto.certificates import check_certificate
from cloister.hub.domain.operations import PolicyOperation
from cloister.hub.domain.policy import ColumnRule, Use
from cloister.hub.domain.roles import AccountRole
from cloister.hub.hub import Hub
from cloister.hub.services import synthesis
from cloister.hub.use_cases import jobs
from cloister.report import Report, Section, Text
from cloister.synth import row_comparison
from cloister.synth.documents import synthesizer_of
from tests.hub.conftest import ClientFor
from tests.hub.services.helpers import API, PURPOSE, allow, ask, job_of, user_id, work
from tests.support.hub_datasets import ready_dataset, subject

SERVICE = "synth.generate"
ASKING = (PolicyOperation.SYNTH_GENERATE, PolicyOperation.QUERY_AGGREGATE)
WANTED: dict[str, Any] = {"method": "spanning_tree", "epsilon": "1", "rows": 60}


@pytest.fixture
def owner(client_for: ClientFor) -> TestClient:
    return client_for("olga", AccountRole.DATA_OWNER)


@pytest.fixture
def dataset(hub: Hub, owner: TestClient) -> str:
    return ready_dataset(hub, subject(hub, user_id(hub, "olga")))


@pytest.fixture
def ada(hub: Hub, dataset: str, client_for: ClientFor) -> TestClient:
    found = client_for("ada", AccountRole.DATA_USER, of="south")
    allow(hub, dataset, user_id(hub, "ada"), operations=ASKING)
    return found


def _spent(owner: TestClient, dataset: str) -> str:
    return str(owner.get(f"{API}/datasets/{dataset}/ledger").json()["spent"]["epsilon"])


def _decide(client: TestClient, job: str, *, approve: bool = True) -> Any:
    return client.post(f"{API}/jobs/{job}/decision", json={"approve": approve})


def _made(hub: Hub, client: TestClient, dataset: str, **changes: Any) -> str:
    job = job_of(client, dataset, SERVICE, **{**WANTED, **changes})
    work(hub)
    seen = client.get(f"{API}/jobs/{job}").json()
    assert seen["state"] == "waiting", seen
    return job


def _released(hub: Hub, owner: TestClient, client: TestClient, dataset: str, **changes: Any) -> str:
    job = _made(hub, client, dataset, **changes)
    assert _decide(owner, job).json()["state"] == "done"
    return job


def _rows(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(text)))


class _Compared:
    """What an evaluation looks like."""

    def report(self) -> Report:
        return Report("Compared", sections=[Section("Nearness", [Text("Exactly zanzibar.")])])

    def to_dict(self) -> dict[str, Any]:
        return {"schema": "test/1", "distance": "zanzibar"}

    def __str__(self) -> str:
        return "a distance of zanzibar"


@pytest.fixture
def compared(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(row_comparison, "evaluate", lambda real, made, **how: _Compared())


def test_a_preview_says_the_price_and_how_exact_it_will_be(owner: TestClient, ada: TestClient, dataset: str) -> None:
    asked = {"parameters": WANTED, "purpose": PURPOSE}
    seen = ada.post(f"{API}/datasets/{dataset}/services/{SERVICE}/preview", json=asked).json()
    assert seen["cost"]["epsilon"] == "1"
    assert seen["needs_approval"]
    assert seen["preview"]["columns"] == ["age", "sex", "diagnosis"]
    assert "How far each count may be off" in seen["preview"]["text"]
    assert "by chance" in " ".join(seen["warnings"])
    assert _spent(owner, dataset) == "0"
    page = ada.get(f"/datasets/{dataset}/services/{SERVICE}")
    assert "Pay and run" in page.text


def test_nothing_leaves_before_the_owner_has_approved(
    hub: Hub, owner: TestClient, ada: TestClient, dataset: str, client_for: ClientFor, compared: None
) -> None:
    job, eve = _made(hub, ada, dataset), client_for("eve", AccountRole.DATA_USER, of="south")
    assert _spent(owner, dataset) == "1"
    paths = [f"/jobs/{job}{end}" for end in ("/result", "/report", "/owner-report", "/files/synthetic.csv")]
    for path in paths:
        assert ada.get(f"{API}{path}").status_code == 409, path
        assert eve.get(f"{API}{path}").status_code == 404, path
    for end in ("", "/rows", "/report", "/files/model.cloister"):
        assert owner.get(f"{API}/synthetics/{job}{end}").status_code == 404, end
    assert _decide(ada, job).status_code == 403
    seen = owner.get(f"{API}/jobs/{job}/result").json()
    assert seen["owner_only"]["compared"]["distance"] == "zanzibar"
    assert "zanzibar" in owner.get(f"{API}/jobs/{job}/owner-report").text
    page = owner.get(f"/jobs/{job}").text
    assert "a distance of zanzibar" in page
    assert "It cost epsilon 1" in page
    assert _decide(owner, job).json()["state"] == "done"
    given = ada.get(f"{API}/jobs/{job}/result").json()
    assert given["owner_only"] == {}
    assert given["owner_report"] is None
    assert "zanzibar" not in json.dumps(given)
    assert ada.get(f"{API}/jobs/{job}/owner-report").status_code == 404
    assert "zanzibar" not in ada.get(f"{API}/jobs/{job}/report").text
    assert "zanzibar" not in ada.get(f"{API}/jobs/{job}/files/certificate.json").text
    assert eve.get(f"{API}/synthetics/{job}").status_code == 404


def test_a_comparison_that_fails_does_not_lose_what_was_paid_for(
    hub: Hub, owner: TestClient, ada: TestClient, dataset: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(real: Any, made: Any, **how: Any) -> Any:
        raise ValueError("asthma of p7")

    monkeypatch.setattr(row_comparison, "evaluate", broken)
    job = _made(hub, ada, dataset)
    seen = owner.get(f"{API}/jobs/{job}/result")
    assert seen.json()["owner_only"]["summary_compared"] == "this could not be done"
    assert seen.json()["owner_only"]["gate"]["publish"] is True
    assert "asthma of p7" not in seen.text


def test_attacks_that_fail_do_not_lose_what_was_paid_for_and_speak_against_letting_it_out(
    hub: Hub, owner: TestClient, ada: TestClient, dataset: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*release: Any, **how: Any) -> Any:
        raise ValueError("asthma of p7")

    monkeypatch.setattr(synthesis, "run_gate", broken)
    job = _made(hub, ada, dataset)
    seen = owner.get(f"{API}/jobs/{job}/result")
    assert seen.json()["owner_only"]["gate"]["publish"] is False
    assert "asthma of p7" not in seen.text
    assert _decide(owner, job).status_code == 409


def test_the_owner_sees_what_attacks_found_before_deciding(
    hub: Hub, owner: TestClient, ada: TestClient, dataset: str
) -> None:
    job = _made(hub, ada, dataset)
    found = owner.get(f"{API}/jobs/{job}/result").json()["owner_only"]["gate"]
    assert found["publish"] is True
    assert found["kind"] == "synthetic table"
    assert "singling out" in {item["attack"] for item in found["findings"]}
    assert "The gate" in owner.get(f"{API}/jobs/{job}/owner-report").text
    assert "The gate found nothing against it." in owner.get(f"/jobs/{job}").text
    assert _decide(owner, job).json()["state"] == "done"


def test_a_rejected_table_is_deleted_and_stays_paid(hub: Hub, owner: TestClient, ada: TestClient, dataset: str) -> None:
    job = _made(hub, ada, dataset)
    assert _decide(owner, job, approve=False).json()["state"] == "denied"
    assert owner.get(f"{API}/jobs/{job}/result").status_code == 409
    assert ada.get(f"{API}/synthetics/{job}").status_code == 404
    assert _spent(owner, dataset) == "1"


def test_the_files_are_what_the_certificate_says(hub: Hub, owner: TestClient, ada: TestClient, dataset: str) -> None:
    job = _released(hub, owner, ada, dataset, columns=["sex", "diagnosis"])
    names = ("synthetic.csv", "synthetic.parquet", "model.cloister")
    files = {name: ada.get(f"{API}/jobs/{job}/files/{name}").content for name in names}
    certificate = ada.get(f"{API}/jobs/{job}/files/certificate.json").json()
    digest = check_certificate(certificate, files)
    assert ada.get(f"{API}/results/{digest}/verification").json()["is_genuine"] is True
    assert certificate["result"]["guarantee"]["epsilon"] == "1"
    assert certificate["source_digest"]
    rows = _rows(files["synthetic.csv"].decode())
    assert len(rows) == 60
    assert set(rows[0]) == {"sex", "diagnosis"}
    assert {row["sex"] for row in rows} <= {"F", "M", ""}
    assert pq.read_table(io.BytesIO(files["synthetic.parquet"])).num_rows == 60
    model = synthesizer_of(json.loads(files["model.cloister"]))
    assert model.guarantee_.brief() == "epsilon = 1 per row"
    assert "made with SpanningTree" in ada.get(f"{API}/jobs/{job}/report").text


def test_more_rows_are_free(hub: Hub, owner: TestClient, ada: TestClient, dataset: str) -> None:
    job = _released(hub, owner, ada, dataset)
    place = f"{API}/synthetics/{job}/rows"
    first, again = (ada.get(place, params={"n": 40, "seed": 3, "where": ["sex=F", "age=20..40"]}) for _ in range(2))
    assert first.status_code == 200, first.text
    assert first.content == again.content
    rows = _rows(first.text)
    assert len(rows) == 40
    assert {row["sex"] for row in rows} == {"F"}
    assert all(20 <= int(row["age"]) <= 40 for row in rows)
    assert "attachment" in first.headers["content-disposition"]
    assert ada.get(place).text != ada.get(place).text
    assert _spent(owner, dataset) == "1"
    entries = owner.get(f"{API}/datasets/{dataset}/ledger").json()["items"]
    assert [entry["kind"] for entry in entries].count("spend") == 1
    for wrong in ({"where": "sex=X"}, {"where": "nothing=1"}, {"where": "sex"}, {"n": 0}, {"n": 10**9}, {"seed": -1}):
        refused = ada.get(place, params=wrong)
        assert refused.status_code in (400, 404, 422), wrong
        assert refused.json()["fix"]


def test_a_card_says_where_a_table_comes_from_and_until_when_it_may_be_kept(
    hub: Hub, owner: TestClient, ada: TestClient, dataset: str
) -> None:
    job = _released(hub, owner, ada, dataset)
    card = ada.get(f"{API}/synthetics/{job}").json()
    assert card["dataset"] == dataset
    assert card["dataset_version"] == 1
    assert card["method"] == "spanning_tree"
    assert card["cost"]["epsilon"] == "1"
    assert card["guarantee"]["epsilon"] == "1"
    assert card["expires"] > card["approved"][:10]
    assert card["is_orphaned"] is False
    assert [item["what"] for item in card["expected"]][:3] == ["age", "sex", "diagnosis"]
    listed = ada.get(f"{API}/datasets/{dataset}/synthetics").json()["items"]
    assert [item["id"] for item in listed] == [job]
    assert f"/synthetics/{job}" in ada.get(f"/datasets/{dataset}").text
    page = ada.get(f"/synthetics/{job}").text
    assert "Draw more rows" in page
    assert card["expires"] in page


def test_others_read_a_released_table_only_if_the_policy_says_so(
    hub: Hub, owner: TestClient, ada: TestClient, dataset: str, client_for: ClientFor
) -> None:
    job = _released(hub, owner, ada, dataset)
    bob, users = client_for("bob", AccountRole.DATA_USER, of="south"), [user_id(hub, name) for name in ("ada", "bob")]
    place = f"{API}/synthetics/{job}"
    assert bob.get(place).status_code == 404
    allow(hub, dataset, *users, operations=ASKING)
    assert bob.get(place).status_code == 403
    assert bob.get(f"{API}/datasets/{dataset}/synthetics").json()["items"] == []
    allow(hub, dataset, *users, operations=(*ASKING, PolicyOperation.SYNTH_READ))
    (listed,) = bob.get(f"{API}/datasets/{dataset}/synthetics").json()["items"]
    purpose = {"purpose": listed["named_purpose"]}
    assert bob.get(place).status_code == 403
    assert bob.get(place, params=purpose).json()["id"] == job
    assert len(_rows(bob.get(f"{place}/rows", params=purpose).text)) == 1000
    assert bob.get(f"{place}/files/model.cloister", params=purpose).status_code == 200
    assert bob.get(f"{place}/report", params=purpose).status_code == 200
    assert bob.get(f"/synthetics/{job}", params=purpose).status_code == 200
    assert bob.get(f"{API}/jobs/{job}/result").status_code == 404
    assert bob.get(place, params={"purpose": "marketing"}).status_code == 403
    assert _spent(owner, dataset) == "1"


def test_who_lost_access_loses_the_table(hub: Hub, owner: TestClient, ada: TestClient, dataset: str) -> None:
    job = _released(hub, owner, ada, dataset)
    allow(hub, dataset, user_id(hub, "ada"), operations=(PolicyOperation.QUERY_AGGREGATE,))
    for path in (f"/synthetics/{job}", f"/synthetics/{job}/rows", f"/jobs/{job}/result"):
        assert ada.get(f"{API}{path}").status_code == 403, path


def test_a_released_table_outlives_its_data_as_an_orphan(
    hub: Hub, owner: TestClient, ada: TestClient, dataset: str, client_for: ClientFor, compared: None
) -> None:
    job, eve = _released(hub, owner, ada, dataset), client_for("eve", AccountRole.DATA_USER, of="south")
    waiting = _made(hub, ada, dataset)
    assert owner.delete(f"{API}/datasets/{dataset}").status_code in (200, 204)
    assert ada.get(f"{API}/jobs/{waiting}").json()["state"] == "denied"
    assert ada.get(f"{API}/jobs/{job}").json()["is_orphaned"] is True
    card = ada.get(f"{API}/synthetics/{job}").json()
    assert card["is_orphaned"] is True
    assert len(_rows(ada.get(f"{API}/synthetics/{job}/rows", params={"n": 5}).text)) == 5
    assert ada.get(f"{API}/jobs/{job}/files/synthetic.csv").status_code == 200
    assert eve.get(f"{API}/synthetics/{job}").status_code == 404
    assert owner.get(f"{API}/jobs/{job}/result").json()["owner_only"] == {}
    for page in (f"/jobs/{job}", f"/synthetics/{job}"):
        shown = ada.get(page).text
        assert "were deleted" in shown
        assert f'href="/datasets/{dataset}"' not in shown


def test_the_policy_and_the_ledger_decide(hub: Hub, owner: TestClient, dataset: str, client_for: ClientFor) -> None:
    bob = client_for("bob", AccountRole.DATA_USER, of="south")
    me = user_id(hub, "bob")
    assert ask(bob, dataset, SERVICE, **WANTED).status_code == 404
    allow(hub, dataset, me, operations=(PolicyOperation.QUERY_AGGREGATE,))
    assert ask(bob, dataset, SERVICE, **WANTED).status_code == 403
    allow(hub, dataset, me, operations=ASKING, hidden=("sex",))
    assert ask(bob, dataset, SERVICE, **WANTED, columns=["sex"]).status_code in (400, 404, 422)
    narrow = (("age", ColumnRule(uses=frozenset({Use.FILTER}))),)
    allow(hub, dataset, me, operations=ASKING, narrowed=narrow)
    assert ask(bob, dataset, SERVICE, **WANTED, columns=["age"]).status_code == 403
    assert ask(bob, dataset, SERVICE, **{**WANTED, "epsilon": "4"}).status_code in (402, 403, 409)
    assert _spent(owner, dataset) == "0"
    job = _made(hub, bob, dataset)
    seen = owner.get(f"{API}/jobs/{job}/result").json()
    assert seen["document"]["columns"] == ["sex", "diagnosis"]


def test_persons_are_protected_as_the_owner_says(hub: Hub, owner: TestClient) -> None:
    made = ready_dataset(hub, subject(hub, user_id(hub, "olga")), name="persons", unit="patient", max_rows_per_unit=2)
    job = _made(hub, owner, made)
    seen = owner.get(f"{API}/jobs/{job}/result").json()
    assert seen["guarantee"]["unit"] == "patient"
    assert seen["document"]["columns"] == ["age", "sex", "diagnosis"]


def test_constraints_hold_in_every_row(hub: Hub, owner: TestClient, ada: TestClient, dataset: str) -> None:
    rule = [{"impossible": {"sex": "F", "diagnosis": "flu"}}]
    job = _released(hub, owner, ada, dataset, constraints=rule, complete=["sex", "diagnosis"], epsilon="0.1")
    rows = _rows(ada.get(f"{API}/jobs/{job}/files/synthetic.csv").text)
    assert not [row for row in rows if (row["sex"], row["diagnosis"]) == ("F", "flu")]
    assert {row["sex"] for row in rows} <= {"F", "M"}


WRONG: tuple[dict[str, Any], ...] = (
    {"method": "nothing"},
    {"epsilon": "0"},
    {"epsilon": "many"},
    {"delta": "2"},
    {"columns": ["nothing"]},
    {"columns": ["patient"]},
    {"columns": []},
    {"rows": 0},
    {"rows": 10**9},
    {"bins": 0},
    {"complete": ["nothing"]},
    {"settings": ["ledger=x"]},
    {"settings": ["center=nothing"]},
    {"constraints": [{"nothing": 1}]},
    {"constraints": [{"at_most": ["age", "patient"]}]},
    {"unit": "row"},
)


def test_what_cannot_be_made_is_refused_before_anything_is_paid(
    owner: TestClient, ada: TestClient, dataset: str
) -> None:
    for changes in WRONG:
        refused = ask(ada, dataset, SERVICE, **{**WANTED, **changes})
        assert refused.status_code in (400, 403, 404, 422), (changes, refused.text)
        assert refused.json()["fix"], changes
    assert ada.get(f"{API}/jobs").json()["items"] == []
    assert _spent(owner, dataset) == "0"


def test_a_method_without_differential_privacy_is_refused(
    owner: TestClient, ada: TestClient, dataset: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(synth.SpanningTree, "_promise", lambda self, facts: (NoGuarantee(reason="a test"), None))
    refused = ask(ada, dataset, SERVICE, **WANTED)
    assert "does not promise differential privacy" in refused.json()["problem"]
    assert _spent(owner, dataset) == "0"


@pytest.mark.hidden_failures
def test_a_failure_tells_no_data(
    hub: Hub, owner: TestClient, ada: TestClient, dataset: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(self: Any, work: Any) -> Any:
        raise ValueError("asthma of p7")

    monkeypatch.setattr(synth.SpanningTree, "_modeled", broken)
    job = job_of(ada, dataset, SERVICE, **WANTED)
    work(hub)
    for client in (ada, owner):
        told = client.get(f"{API}/jobs/{job}")
        assert (told.json()["state"], told.json()["error"]) == ("waiting", None)
        assert "asthma of p7" not in told.text
    assert _spent(owner, dataset) == "1"


@pytest.mark.hidden_failures
def test_a_fit_tells_how_far_it_is_and_can_be_broken_off(hub: Hub, ada: TestClient, dataset: str) -> None:
    job = job_of(ada, dataset, SERVICE, **WANTED)
    told: list[tuple[float, str]] = []

    class _CanceledError(Exception):
        pass

    def progress(share: float, stage: str) -> None:
        told.append((share, stage))
        if stage == "estimating":
            raise _CanceledError

    held = jobs.take(hub, "tests")
    assert held is not None
    assert ada.post(f"{API}/jobs/{job}/cancel").status_code == 200
    jobs.perform(hub, held, progress)
    assert [share for share, _ in told] == sorted(share for share, _ in told)
    assert told[0] == (0.0, "counting")
    assert ada.get(f"{API}/jobs/{job}").json()["state"] == "canceled"


def test_earlier_private_tables_are_told_to_the_owner_as_what_they_are(
    hub: Hub, owner: TestClient, ada: TestClient, dataset: str
) -> None:
    _released(hub, owner, ada, dataset)
    seen = owner.get(f"{API}/jobs/{_made(hub, ada, dataset)}").json()
    assert seen["owner_warnings"] == [
        "A private table about the same people left the hub before. What they tell together is bounded by the budget."
    ]
    assert [item["is_same_table"] for item in seen["earlier_releases"]] == [False]
    assert _spent(owner, dataset) == "2"
