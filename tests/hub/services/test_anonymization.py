from __future__ import annotations

import csv
import io
import json
from typing import Any

import pyarrow.parquet as pq
import pytest
from fastapi.testclient import TestClient
from sqlalchemy import select

from cloister.attacks import GatePolicy
from cloister.crypto.certificates import check_certificate
from cloister.errors import DataError
from cloister.hub.domain.operations import PolicyOperation
from cloister.hub.domain.policy import ColumnRule, Use
from cloister.hub.domain.roles import AccountRole
from cloister.hub.hub import Hub
from cloister.hub.services import anonymization, protected_tables
from cloister.hub.store.models import ResultRecord
from tests.hub.conftest import ClientFor
from tests.hub.services.helpers import API, PURPOSE, allow, ask, job_of, user_id, work
from tests.support.hub_datasets import VISITS_SCHEMA, ready_dataset, subject

SERVICE = "release.anonymize"
COUNT = {"sql": "SELECT COUNT(*) AS n FROM data", "epsilon": "0.1"}


@pytest.fixture
def owner(client_for: ClientFor) -> TestClient:
    return client_for("olga", AccountRole.DATA_OWNER)


@pytest.fixture
def ada(client_for: ClientFor) -> TestClient:
    return client_for("ada", AccountRole.DATA_USER, of="south")


@pytest.fixture
def dataset(hub: Hub, owner: TestClient, ada: TestClient) -> str:
    made = ready_dataset(hub, subject(hub, user_id(hub, "olga")))
    allow(hub, made, user_id(hub, "ada"))
    return made


def decide(client: TestClient, job: str, *, approve: bool = True, reason: str = "between our institutions only") -> Any:
    return client.post(f"{API}/jobs/{job}/decision", json={"approve": approve, "reason": reason})


def state(client: TestClient, job: str) -> str:
    return str(client.get(f"{API}/jobs/{job}").json()["state"])


def made(hub: Hub, client: TestClient, dataset: str, **parameters: Any) -> str:
    job = job_of(client, dataset, SERVICE, **parameters)
    work(hub)
    seen = client.get(f"{API}/jobs/{job}").json()
    assert seen["state"] == "waiting", seen
    return job


def test_a_preview_says_what_is_promised_and_that_it_is_not_differential_privacy(ada: TestClient, dataset: str) -> None:
    wanted = {
        "k": 3,
        "diversity": [{"attribute": "diagnosis", "l": 2}],
        "further_models": ["alpha_k_anonymity(attribute=diagnosis, alpha=0.75, k=2)"],
    }
    seen = ada.post(
        f"{API}/datasets/{dataset}/services/{SERVICE}/preview", json={"parameters": wanted, "purpose": PURPOSE}
    ).json()
    assert seen["cost"] is None
    assert seen["needs_approval"]
    assert "not differential privacy" in " ".join(seen["warnings"])
    assert "2 well-represented values" in seen["preview"]["text"]
    assert "share above 0.75" in seen["preview"]["text"]
    assert seen["preview"]["columns"] == ["age", "sex", "diagnosis"]


REFUSED: list[tuple[dict[str, Any], str]] = [
    ({"k": 1}, "see /api/v1/services/release.anonymize"),
    ({"columns": []}, "see /api/v1/services/release.anonymize"),
    ({"columns": ["salary"]}, "use one of"),
    ({"diversity": [{"attribute": "age", "l": 2}]}, "the role sensitive"),
    ({"diversity": [{"attribute": "nothing", "l": 2}]}, "use one of"),
    ({"diversity": [{"attribute": "diagnosis", "l": 0.5}]}, "l=3"),
    ({"closeness": [{"attribute": "diagnosis", "t": 2}]}, ""),
    ({"closeness": [{"attribute": "diagnosis", "t": 0.2, "kind": "hierarchical"}]}, "give one"),
    ({"further_models": ["k_anonymty(k=2)"]}, "use one of k_anonymity"),
    ({"further_models": ["p_sensitivity(attribute=age, p=2, k=2)"]}, "the role sensitive"),
    ({"further_models": ["k_map(k=2)"]}, "use another model"),
    ({"suppression_limit": "2"}, ""),
    ({"algorithm": "anatomy"}, "see /api/v1/services/release.anonymize"),
    ({"columns": ["diagnosis"]}, "quasi"),
]


def test_what_cannot_be_made_is_refused_before_any_row_is_read(ada: TestClient, dataset: str) -> None:
    for parameters, fix in REFUSED:
        refused = ask(ada, dataset, SERVICE, **parameters)
        assert refused.status_code in (400, 404, 422), (parameters, refused.text)
        assert fix in refused.json()["fix"], (parameters, refused.text)
        assert ada.get(f"{API}/jobs").json()["items"] == [], parameters


def test_nothing_leaves_before_the_owner_has_approved(
    hub: Hub, owner: TestClient, ada: TestClient, dataset: str, client_for: ClientFor
) -> None:
    job = made(hub, ada, dataset, k=3)
    other = client_for("eve", AccountRole.DATA_USER, of="south")
    for path in ("/result", "/report", "/files/protected.csv", "/files/protected.parquet", "/files/certificate.json"):
        assert ada.get(f"{API}/jobs/{job}{path}").status_code == 409, path
        assert other.get(f"{API}/jobs/{job}{path}").status_code == 404, path
    assert decide(ada, job).status_code == 403
    assert decide(other, job).status_code in (403, 404)
    seen = owner.get(f"{API}/jobs/{job}/result").json()
    assert seen["certificate"] is None
    assert seen["owner_only"]["risk_before"]["reidentification"]["rows"] == 120
    assert owner.get(f"{API}/jobs/{job}/report").status_code == 200
    assert owner.get(f"{API}/jobs/{job}/files/certificate.json").status_code == 404
    assert decide(owner, job).json()["state"] == "done"
    given = ada.get(f"{API}/jobs/{job}/result").json()
    assert given["owner_only"] == {}
    assert given["report"] is None
    assert "unique_share" not in json.dumps({**given, "document": {**given["document"], "risk": None}})
    assert ada.get(f"{API}/jobs/{job}/report").status_code == 404
    assert other.get(f"{API}/jobs/{job}/result").status_code == 404


def test_the_files_satisfy_what_is_promised_and_cost_nothing(
    hub: Hub, owner: TestClient, ada: TestClient, dataset: str
) -> None:
    job = made(hub, ada, dataset, k=4, columns=["age", "sex", "diagnosis"])
    decide(owner, job)
    text = ada.get(f"{API}/jobs/{job}/files/protected.csv").text
    rows = list(csv.DictReader(io.StringIO(text)))
    assert list(rows[0]) == ["age", "sex", "diagnosis"]
    classes: dict[tuple[str, str], int] = {}
    for row in rows:
        classes[row["age"], row["sex"]] = classes.get((row["age"], row["sex"]), 0) + 1
    assert min(classes.values()) >= 4
    table = pq.read_table(io.BytesIO(ada.get(f"{API}/jobs/{job}/files/protected.parquet").content))
    assert table.num_rows == len(rows) == 120
    assert table.schema.metadata is None
    assert owner.get(f"{API}/datasets/{dataset}/ledger").json()["spent"]["epsilon"] == "0"


def test_a_certificate_verifies_and_carries_terms_recipe_and_figures(
    hub: Hub, owner: TestClient, ada: TestClient, dataset: str
) -> None:
    job = made(hub, ada, dataset, k=3)
    digest = owner.get(f"{API}/jobs/{job}/result").json()["digest"]
    assert ada.get(f"{API}/results/{digest}/verification").json()["is_genuine"] is False
    decide(owner, job)
    answer = ada.get(f"{API}/jobs/{job}/files/certificate.json")
    certificate = answer.json()
    files = {name: ada.get(f"{API}/jobs/{job}/files/{name}").content for name in ("protected.csv", "protected.parquet")}
    assert check_certificate(certificate, files) == digest
    assert ada.get(certificate["verification"]).json()["is_genuine"] is True
    held = ada.post(f"{API}/certificates/verification", json={"certificate": certificate}).json()
    assert (held["kind"], held["is_genuine"], held["is_of_file"]) == ("anonymized table", True, None)
    assert certificate["terms"]["retention_days"] == 30
    assert certificate["terms"]["purposes"] == ["research"]
    assert certificate["policy_version"] == 2
    assert len(certificate["source_digest"]) == 64
    assert "not differential privacy" in certificate["promise"]
    document = certificate["result"]["document"]
    assert document["recipe"]["anonymize"]["models"] == [{"model": "k_anonymity", "k": 3, "unit": "patient"}]
    assert 0 <= document["loss"] <= 1
    assert document["risk"]["reidentification"]["smallest"] >= 3
    with pytest.raises(DataError, match="from the hub again"):
        check_certificate(certificate, {"protected.csv": files["protected.csv"] + b"x"})
    with pytest.raises(DataError, match="from the hub again"):
        check_certificate({**certificate, "result": {**certificate["result"], "guarantee": {}}})
    with pytest.raises(DataError, match="from the hub again"):
        check_certificate({"schema": "cloister.certificate/1"})


def test_losing_the_role_stops_the_download_and_the_approval(
    hub: Hub, owner: TestClient, ada: TestClient, dataset: str
) -> None:
    job, waiting = made(hub, ada, dataset, k=3), made(hub, ada, dataset, k=4)
    decide(owner, job)
    assert ada.get(f"{API}/jobs/{job}/files/protected.csv").status_code == 200
    allow(hub, dataset)
    for path in ("/result", "/files/protected.csv", "/files/certificate.json"):
        assert ada.get(f"{API}/jobs/{job}{path}").status_code == 403, path
    refused = decide(owner, waiting)
    assert refused.status_code == 403
    assert "reject the release" in refused.json()["fix"]
    assert decide(owner, waiting, approve=False).json()["state"] == "denied"
    assert owner.get(f"{API}/jobs/{job}/files/protected.csv").status_code == 200
    allow(hub, dataset, user_id(hub, "ada"))
    assert ada.get(f"{API}/jobs/{job}/files/protected.csv").status_code == 200


def test_deleting_the_dataset_stops_the_download(hub: Hub, owner: TestClient, ada: TestClient, dataset: str) -> None:
    job = made(hub, ada, dataset, k=3)
    decide(owner, job)
    assert owner.delete(f"{API}/datasets/{dataset}").status_code == 204
    assert ada.get(f"{API}/jobs/{job}/files/protected.csv").status_code == 403


def test_the_page_of_a_release_that_one_may_not_have_any_more_says_so(
    hub: Hub, owner: TestClient, ada: TestClient, dataset: str
) -> None:
    job = made(hub, ada, dataset, k=3)
    decide(owner, job)
    allow(hub, dataset)
    page = ada.get(f"/jobs/{job}")
    assert page.status_code == 200
    assert "protected.csv" not in page.text
    assert "ask the owner for access" in page.text


def results(hub: Hub) -> set[str]:
    with hub.store.reading() as session:
        return set(session.scalars(select(ResultRecord.job_id)))


def test_a_release_that_is_not_let_out_is_deleted(hub: Hub, owner: TestClient, ada: TestClient, dataset: str) -> None:
    rejected, canceled, approved = (made(hub, ada, dataset, k=k) for k in (2, 3, 4))
    decide(owner, rejected, approve=False)
    decide(owner, approved)
    assert ada.post(f"{API}/jobs/{canceled}/cancel").json()["state"] == "canceled"
    assert results(hub) == {approved}
    for client in (owner, ada):
        assert client.get(f"/jobs/{rejected}").status_code == 200


def test_deleting_the_dataset_deletes_what_has_not_left_the_hub(
    hub: Hub, owner: TestClient, ada: TestClient, dataset: str
) -> None:
    approved, waiting = made(hub, ada, dataset, k=3), made(hub, ada, dataset, k=4)
    decide(owner, approved)
    risk, answer = job_of(owner, dataset, "risk.assess"), job_of(ada, dataset, "query.sql", **COUNT)
    work(hub)
    assert results(hub) == {approved, waiting, risk, answer}
    assert owner.delete(f"{API}/datasets/{dataset}").status_code == 204
    assert results(hub) == {approved, answer}
    assert (state(ada, waiting), state(owner, risk)) == ("denied", "done")
    assert owner.get(f"{API}/jobs/{risk}").json()["may_read_result"] is False
    assert "There is no result." in owner.get(f"/jobs/{risk}").text
    assert "The dataset was deleted." in ada.get(f"/jobs/{waiting}").text
    assert decide(owner, waiting).status_code == 409
    assert ada.get(f"{API}/jobs/{answer}/result").status_code == 200


def test_somebody_without_the_operation_cannot_ask(hub: Hub, ada: TestClient, dataset: str) -> None:
    allow(hub, dataset, user_id(hub, "ada"), operations=(PolicyOperation.QUERY_AGGREGATE,))
    assert ask(ada, dataset, SERVICE, k=3).status_code == 403


def test_the_owner_is_told_of_earlier_releases_of_the_same_people(
    hub: Hub, owner: TestClient, ada: TestClient, dataset: str
) -> None:
    first = made(hub, ada, dataset, k=3)
    assert owner.get(f"{API}/jobs/{first}").json()["earlier_releases"] == []
    rejected = made(hub, ada, dataset, k=6)
    decide(owner, first)
    decide(owner, rejected, approve=False)
    second, again = made(hub, ada, dataset, k=4), made(hub, ada, dataset, k=3)
    seen = owner.get(f"{API}/jobs/{second}").json()
    assert [item["job"] for item in seen["earlier_releases"]] == [first]
    assert "about the same people left the hub before" in seen["owner_warnings"][0]
    assert "adds nothing" in owner.get(f"{API}/jobs/{again}").json()["owner_warnings"][0]
    assert ada.get(f"{API}/jobs/{second}").json()["earlier_releases"] == []
    page = owner.get(f"/jobs/{second}").text
    assert "left the hub before" in page
    assert "Read the report" in page
    assert "unique" in page
    assert decide(owner, second).json()["decision"]["earlier_releases"] == [first]


def test_two_persons_approve_where_the_policy_says_so(
    hub: Hub, owner: TestClient, ada: TestClient, dataset: str, client_for: ClientFor
) -> None:
    allow(hub, dataset, user_id(hub, "ada"), two_person=True)
    job = made(hub, ada, dataset, k=3)
    assert owner.get(f"{API}/jobs/{job}").json()["approvals_needed"] == 2
    first = decide(owner, job).json()
    assert (first["state"], first["may_decide"], first["approvals_needed"]) == ("waiting", False, 1)
    assert ada.get(f"{API}/jobs/{job}/result").status_code == 409
    repeated = decide(owner, job)
    assert repeated.status_code == 409
    assert "another owner" in repeated.json()["fix"]
    allow(hub, dataset, user_id(hub, "ada"))
    assert decide(owner, job).status_code == 409
    second = client_for("otto", AccountRole.DATA_OWNER)
    page = second.get(f"/jobs/{job}").text
    assert "Approved by olga" in page
    assert decide(second, job).json()["state"] == "done"
    certificate = ada.get(f"{API}/jobs/{job}/files/certificate.json").json()
    assert [item["by"] for item in certificate["approved"]["approvals"]] == ["olga", "otto"]


def test_one_of_two_owners_can_reject(hub: Hub, owner: TestClient, ada: TestClient, dataset: str) -> None:
    allow(hub, dataset, user_id(hub, "ada"), two_person=True)
    job = made(hub, ada, dataset, k=3)
    decide(owner, job)
    assert decide(owner, job, approve=False).json()["state"] == "denied"


def test_hidden_and_narrowed_columns_are_not_released(
    hub: Hub, owner: TestClient, ada: TestClient, dataset: str
) -> None:
    narrowed = (("diagnosis", ColumnRule(uses=frozenset({Use.GROUP_BY}))),)
    allow(hub, dataset, user_id(hub, "ada"), hidden=("patient", "sex"), narrowed=narrowed)
    unknown = ask(ada, dataset, SERVICE, columns=["age", "sex"])
    assert unknown.json()["problem"] == ask(ada, dataset, SERVICE, columns=["age", "nope"]).json()["problem"].replace(
        "nope", "sex"
    )
    forbidden = ask(ada, dataset, SERVICE, columns=["age", "diagnosis"])
    assert forbidden.status_code == 403
    job = made(hub, ada, dataset, k=3)
    decide(owner, job)
    assert ada.get(f"{API}/jobs/{job}/files/protected.csv").text.splitlines()[0] == '"age"'


def test_persons_are_counted_where_they_are_protected_also_if_they_are_hidden(
    hub: Hub, owner: TestClient, ada: TestClient
) -> None:
    made_ = ready_dataset(hub, subject(hub, user_id(hub, "olga")), name="persons", unit="patient", max_rows_per_unit=5)
    allow(hub, made_, user_id(hub, "ada"), hidden=("patient",))
    job = made(hub, ada, made_, k=3)
    decide(owner, job)
    given = ada.get(f"{API}/jobs/{job}/result").json()
    assert given["guarantee"]["unit"] == "patient"
    assert "patient" not in ada.get(f"{API}/jobs/{job}/files/protected.csv").text.splitlines()[0]


def test_cells_that_a_spreadsheet_would_run_are_written_as_text(hub: Hub, owner: TestClient, ada: TestClient) -> None:
    evil = ["=1+1", "+cmd", "-2", "@SUM(A1)", "\t=1", "plain"]
    content = "age,note\n" + "".join(f'{30 + n % 2},"{evil[n % 6]}"\n' for n in range(60))
    schema = {
        "columns": {
            "age": {**VISITS_SCHEMA["columns"]["age"]},
            "note": {"role": "insensitive", "kind": "nominal", "storage": "text"},
        }
    }
    dataset = ready_dataset(hub, subject(hub, user_id(hub, "olga")), name="evil", content=content, schema=schema)
    allow(hub, dataset, user_id(hub, "ada"))
    job = made(hub, ada, dataset, k=3)
    decide(owner, job)
    text = ada.get(f"{API}/jobs/{job}/files/protected.csv").text
    notes = {row["note"] for row in csv.DictReader(io.StringIO(text, newline=""))}
    assert notes == {"'=1+1", "'+cmd", "'-2", "'@SUM(A1)", "'\t=1", "plain"}
    table = pq.read_table(io.BytesIO(ada.get(f"{API}/jobs/{job}/files/protected.parquet").content))
    assert set(table.column("note").to_pylist()) == set(evil)


@pytest.mark.hidden_failures
def test_a_table_that_cannot_be_made_waits_for_the_owner_like_one_that_can(
    hub: Hub, owner: TestClient, ada: TestClient, dataset: str
) -> None:
    jobs = [job_of(ada, dataset, SERVICE, k=k) for k in (100_000, 2)]
    work(hub)
    seen = [ada.get(f"{API}/jobs/{job}").json() for job in jobs]
    shown = ("state", "error", "progress", "stage", "may_read_result", "guarantee", "decision")
    assert [seen[0][name] for name in shown] == [seen[1][name] for name in shown]
    assert seen[0]["state"] == "waiting"
    told = owner.get(f"{API}/jobs/{jobs[0]}/result").json()
    assert "kind" not in seen[0]
    assert told["document"]["schema"] == "cloister.nothing_learned/1"
    assert told["owner_only"]["summary_failure"].endswith("Error")
    assert told["owner_only"]["summary_failure"] in owner.get(f"/jobs/{jobs[0]}").text
    decided = owner.post(f"{API}/jobs/{jobs[0]}/decision", json={"approve": True, "reason": "it is fine"})
    assert decided.status_code == 409
    decided = owner.post(f"{API}/jobs/{jobs[0]}/decision", json={"approve": False})
    assert ada.get(f"{API}/jobs/{jobs[0]}").json()["state"] == "denied"


def test_the_form_has_rows_for_sensitive_columns(owner: TestClient, dataset: str) -> None:
    page = owner.get(f"/datasets/{dataset}/services/{SERVICE}")
    assert page.status_code == 200
    assert 'data-list="diversity"' in page.text
    assert 'value="diagnosis"' in page.text
    assert 'value="patient"' not in page.text


def test_the_owner_sees_what_attacks_found_and_nobody_else_does(
    hub: Hub, owner: TestClient, ada: TestClient, dataset: str
) -> None:
    job = made(hub, ada, dataset, k=3)
    found = owner.get(f"{API}/jobs/{job}/result").json()["owner_only"]["gate"]
    assert found["schema"] == "cloister.gate/1"
    assert {item["attack"] for item in found["findings"]} >= {"linkage", "homogeneity of diagnosis"}
    assert "The gate" in owner.get(f"{API}/jobs/{job}/report").text
    page = owner.get(f"/jobs/{job}").text
    assert "What was tried" in page
    decide(owner, job)
    assert "gate" not in ada.get(f"{API}/jobs/{job}/result").json()["owner_only"]
    assert "The gate" not in ada.get(f"/jobs/{job}").text


def test_what_the_gate_advises_against_leaves_with_a_reason_only(
    hub: Hub, owner: TestClient, ada: TestClient, dataset: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(protected_tables, "GatePolicy", lambda **limits: GatePolicy(max_match=0.001, **limits))
    job = made(hub, ada, dataset, k=3)
    assert owner.get(f"{API}/jobs/{job}/result").json()["owner_only"]["gate"]["publish"] is False
    for reason in ("", "  ", ".", "\u200b\u2060\ufeff", "\u3164" * 9, "\u2800" * 9):
        refused = decide(owner, job, reason=reason)
        assert refused.status_code == 409
        assert "give a reason" in refused.json()["fix"]
    assert state(owner, job) == "waiting"
    assert "Why it may leave" in owner.get(f"/jobs/{job}").text
    assert decide(owner, job, approve=False, reason="").json()["state"] == "denied"


def test_only_owners_see_the_reason(
    hub: Hub, owner: TestClient, ada: TestClient, dataset: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(protected_tables, "GatePolicy", lambda **limits: GatePolicy(max_match=0.001, **limits))
    job = made(hub, ada, dataset, k=3)
    assert decide(owner, job, reason="classes are small but the partner is bound").json()["state"] == "done"
    assert "partner is bound" in owner.get(f"{API}/jobs/{job}").text
    assert "partner is bound" not in ada.get(f"{API}/jobs/{job}").text
    assert "partner is bound" not in ada.get(f"/jobs/{job}").text


def test_a_release_that_was_not_attacked_does_not_leave(
    hub: Hub, owner: TestClient, ada: TestClient, dataset: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(anonymization, "gate_of", lambda found: {})
    job = made(hub, ada, dataset, k=3)
    refused = decide(owner, job)
    assert refused.status_code == 409
    assert "have it made again" in refused.json()["fix"]
