from __future__ import annotations

import io
import json
from typing import Any

import pytest
from fastapi.testclient import TestClient

from cloister.data.schema_file import dump_yaml
from cloister.errors import ConflictError, PolicyError
from cloister.hub.domain._row_predicates import RowPredicate
from cloister.hub.domain.policy import Acknowledgement, Mode, Policy
from cloister.hub.domain.roles import AccountRole
from cloister.hub.hub import Hub
from cloister.hub.store.models import AnswerHistory, Dataset, Job, ResultRecord, now
from cloister.hub.use_cases import datasets, jobs
from tests.hub.conftest import ClientFor
from tests.hub.services.helpers import API, PURPOSE, allow, ask, job_of, user_id, work
from tests.support.hub_datasets import read_uploads_here, ready_dataset, subject

SERVICE = "query.controlled"
STAFF = "name,age,sex,salary\n" + "".join(
    f"n{place},{20 + place % 40},{'FM'[place % 2]},{1000 + place * place % 977}\n" for place in range(80)
)
SCHEMA = {
    "columns": {
        "name": {"role": "identifier", "kind": "nominal", "storage": "text", "subject": True},
        "age": {"role": "quasi", "kind": "numeric", "bounds": [0, 110], "storage": "integer"},
        "sex": {"role": "quasi", "kind": "nominal", "categories": ["F", "M"], "storage": "text"},
        "salary": {"role": "sensitive", "kind": "numeric", "bounds": [0, 5000], "storage": "integer"},
    }
}
WHOLE = "SELECT SUM(salary) AS pay FROM data WHERE sex = 'F'"
ALL_BUT_ONE = "SELECT SUM(salary) AS pay FROM data WHERE sex = 'F' AND age <> 20"
ACKNOWLEDGEMENT = {"by": "olga", "at": "2026-01-01T00:00:00+00:00", "statement": "I know."}


def staff(hub: Hub, owner: TestClient, *, name: str = "staff", content: str = STAFF) -> str:
    """Return a dataset that is described and not open yet."""
    person = subject(hub, user_id(hub, "olga"))
    with hub.store.writing() as session:
        made = datasets.create_dataset(session, person, name=name, title="Staff", description="")
    with read_uploads_here():
        datasets.upload_version(hub, person, made.id, io.BytesIO(content.encode()), kind="csv")
    answer = owner.put(f"{API}/datasets/{made.id}/schema", json={"text": dump_yaml(SCHEMA), "confirm": True})
    assert answer.status_code == 200, answer.text
    return str(made.id)


@pytest.fixture
def owner(client_for: ClientFor) -> TestClient:
    return client_for("olga", AccountRole.DATA_OWNER)


@pytest.fixture
def ada(client_for: ClientFor) -> TestClient:
    return client_for("ada", AccountRole.DATA_USER, of="south")


@pytest.fixture
def bob(client_for: ClientFor) -> TestClient:
    return client_for("bob", AccountRole.DATA_USER, of="south")


@pytest.fixture
def dataset(hub: Hub, owner: TestClient, ada: TestClient, bob: TestClient) -> str:
    made = staff(hub, owner)
    opened = owner.post(f"{API}/datasets/{made}/opening", json={"mode": "sdc", "controls": {"min_size": 3}})
    assert opened.status_code == 200, opened.text
    allow(hub, made, user_id(hub, "ada"), user_id(hub, "bob"), mode=Mode.SDC)
    return made


def answer(hub: Hub, client: TestClient, dataset: str, sql: str) -> dict[str, Any]:
    job = job_of(client, dataset, SERVICE, sql=sql)
    work(hub)
    seen = client.get(f"{API}/jobs/{job}/result")
    assert seen.status_code == 200, client.get(f"{API}/jobs/{job}").text
    document: dict[str, Any] = seen.json()["document"]
    return document


def is_refused(document: dict[str, Any]) -> bool:
    return bool(document["schema"] == "cloister.controlled_refusal/1")


def revision(hub: Hub, dataset: str) -> list[int]:
    with hub.store.reading() as session:
        return [row.revision for row in session.query(AnswerHistory).filter_by(dataset_id=dataset)]


def test_answers_are_exact_labelled_and_free(hub: Hub, owner: TestClient, ada: TestClient, dataset: str) -> None:
    place = f"{API}/datasets/{dataset}/services/{SERVICE}"
    preview = ada.post(f"{place}/preview", json={"parameters": {"sql": WHOLE}, "purpose": PURPOSE}).json()
    assert preview["cost"] is None
    assert "not differential privacy" in preview["warnings"][0]
    assert "at least 3 rows" in preview["preview"]["text"]
    found = answer(hub, ada, dataset, "SELECT sex, COUNT(*) AS n FROM data GROUP BY sex")
    assert found["columns"][1]["values"] == [40, 40]
    assert found["guarantee"]["schema"] == "cloister.guarantee.none/1"
    job = ada.get(f"{API}/jobs").json()["items"][0]
    assert job["receipt"] is None
    assert "Not differential privacy" in ada.get(f"/jobs/{job['id']}").text
    page = owner.get(f"/datasets/{dataset}").text
    assert "not differential privacy" in page
    assert "Ask in SQL" not in page


def test_a_refusal_is_a_result_and_names_no_numbers(hub: Hub, ada: TestClient, dataset: str) -> None:
    answer(hub, ada, dataset, WHOLE)
    found = answer(hub, ada, dataset, "SELECT SUM(salary) AS pay FROM data WHERE age = 20")
    assert is_refused(found)
    assert found["control"] == "size"
    assert not any(character.isdigit() for character in found["problem"] + found["fix"])


def test_no_exact_salary_is_found_by_cutting(hub: Hub, owner: TestClient, ada: TestClient, dataset: str) -> None:
    """Moving a cut until what is seen changes would find a salary; only the owner's cut points are understood."""
    for cut in ("salary >= 1500", "salary > 1500", "salary BETWEEN 0 AND 1500"):
        refused = ask(ada, dataset, SERVICE, sql=f"SELECT COUNT(*) AS n FROM data WHERE sex = 'F' AND {cut}")
        assert refused.status_code == 422, refused.text
        assert "declare public cut points" in refused.text
    made = staff(hub, owner, name="cut")
    controls = {"min_size": 3, "max_questions": 4, "cut_points": {"salary": [1500]}}
    opened = owner.post(f"{API}/datasets/{made}/opening", json={"mode": "sdc", "controls": controls})
    assert opened.status_code == 200, opened.text
    allow(hub, made, user_id(hub, "ada"), mode=Mode.SDC)
    elsewhere = ask(ada, made, SERVICE, sql="SELECT COUNT(*) AS n FROM data WHERE sex = 'F' AND salary >= 1501")
    assert elsewhere.status_code == 422
    assert "with one of 1500" in elsewhere.text
    at_the_cut = "SELECT COUNT(*) AS n FROM data WHERE sex = 'F' AND salary >= 1500"
    first = answer(hub, ada, made, at_the_cut)
    assert not is_refused(first)
    # Refused and repeated questions count, in one history.
    assert answer(hub, ada, made, at_the_cut) == first
    assert answer(hub, ada, made, "SELECT COUNT(*) AS n FROM data WHERE age = 20")["control"] == "size"
    assert answer(hub, ada, made, at_the_cut) == first
    assert answer(hub, ada, made, at_the_cut)["control"] == "history"


def test_cut_points_of_columns_that_somebody_does_not_see_are_no_matter(
    hub: Hub, owner: TestClient, client_for: ClientFor
) -> None:
    made, mia = staff(hub, owner, name="cut"), client_for("mia", AccountRole.DATA_USER)
    bad = {"mode": "sdc", "controls": {"min_size": 3, "cut_points": {"wage": [1500]}}}
    assert owner.post(f"{API}/datasets/{made}/opening", json=bad).status_code in (400, 404, 422)
    good = {"mode": "sdc", "controls": {"min_size": 3, "cut_points": {"salary": [1500]}}}
    assert owner.post(f"{API}/datasets/{made}/opening", json=good).status_code == 200
    allow(hub, made, user_id(hub, "mia"), mode=Mode.SDC, hidden=("salary",))
    assert not is_refused(answer(hub, mia, made, "SELECT COUNT(*) AS n FROM data WHERE sex = 'F'"))


def test_people_of_one_organisation_share_a_history_and_others_do_not(
    hub: Hub, owner: TestClient, ada: TestClient, bob: TestClient, dataset: str, client_for: ClientFor
) -> None:
    assert not is_refused(answer(hub, ada, dataset, WHOLE))
    assert is_refused(answer(hub, bob, dataset, ALL_BUT_ONE))
    client_for("eve", AccountRole.DATA_USER, of="east")
    assert not is_refused(answer(hub, owner, dataset, ALL_BUT_ONE))
    assert not is_refused(answer(hub, ada, dataset, WHOLE))


def test_people_who_see_other_columns_share_the_history(
    hub: Hub, owner: TestClient, dataset: str, client_for: ClientFor
) -> None:
    mia = client_for("mia", AccountRole.DATA_USER)
    allow(hub, dataset, user_id(hub, "mia"), mode=Mode.SDC, hidden=("name",))
    assert not is_refused(answer(hub, owner, dataset, WHOLE))
    assert is_refused(answer(hub, mia, dataset, ALL_BUT_ONE))
    unknown = ask(mia, dataset, SERVICE, sql="SELECT COUNT(*) FROM data WHERE nothing = 'n1'")
    assert unknown.status_code in (400, 404, 422)
    hidden = ask(mia, dataset, SERVICE, sql="SELECT COUNT(*) FROM data WHERE name = 'n1'")
    assert hidden.status_code in (400, 404, 422)


def test_of_two_harmful_questions_at_once_one_is_answered(
    hub: Hub, ada: TestClient, bob: TestClient, dataset: str
) -> None:
    first, second = job_of(ada, dataset, SERVICE, sql=WHOLE), job_of(bob, dataset, SERVICE, sql=ALL_BUT_ONE)
    outer, stages = jobs.take(hub, "outer"), []
    assert outer is not None

    def interrupted(share: float, stage: str) -> None:
        stages.append(stage)
        if stages.count("deciding") == 1 and stage == "deciding":
            inner = jobs.take(hub, "inner")
            assert inner is not None
            jobs.perform(hub, inner, lambda share, stage: None)

    jobs.perform(hub, outer, interrupted)
    assert stages.count("deciding") == 2
    found = [ada.get(f"{API}/jobs/{first}/result").json(), bob.get(f"{API}/jobs/{second}/result").json()]
    assert [is_refused(item["document"]) for item in found] == [True, False]
    assert revision(hub, dataset) == [2]


def test_a_killed_worker_has_told_and_remembered_nothing(
    hub: Hub, ada: TestClient, bob: TestClient, dataset: str
) -> None:
    job = job_of(ada, dataset, SERVICE, sql=WHOLE)
    held = jobs.take(hub, "dying")
    assert held is not None

    def die(share: float, stage: str) -> None:
        if stage == "deciding":
            raise SystemExit

    with pytest.raises(SystemExit):
        jobs.perform(hub, held, die)
    assert revision(hub, dataset) == [0]
    assert not is_refused(answer(hub, bob, dataset, ALL_BUT_ONE))
    with hub.store.writing() as session:
        session.get_one(Job, job).lease_until = now()
        session.flush()
    work(hub)
    assert is_refused(ada.get(f"{API}/jobs/{job}/result").json()["document"])


@pytest.mark.parametrize("how", ["canceled", "denied"])
def test_what_is_not_told_is_not_remembered(hub: Hub, ada: TestClient, bob: TestClient, dataset: str, how: str) -> None:
    job = job_of(ada, dataset, SERVICE, sql=WHOLE)
    held = jobs.take(hub, "tests")
    assert held is not None

    def meanwhile(share: float, stage: str) -> None:
        if stage != "deciding":
            return
        if how == "canceled":
            ada.post(f"{API}/jobs/{job}/cancel")
        else:
            allow(hub, dataset, user_id(hub, "bob"), mode=Mode.SDC)

    jobs.perform(hub, held, meanwhile)
    assert ada.get(f"{API}/jobs/{job}").json()["state"] == how
    assert revision(hub, dataset) == [0]
    assert not is_refused(answer(hub, bob, dataset, ALL_BUT_ONE))


def test_the_database_does_not_see_a_history(hub: Hub, ada: TestClient, dataset: str) -> None:
    answer(hub, ada, dataset, WHOLE)
    with hub.store.reading() as session:
        sealed = session.query(AnswerHistory).one().sealed
        assert sealed is not None
        assert b"fingerprint" not in sealed
        assert b"members" not in sealed
        assert session.query(ResultRecord).count() == 1


def test_what_is_not_understood_is_refused_before_any_row_is_read(ada: TestClient, dataset: str) -> None:
    for sql in (
        "SELECT MAX(salary) FROM data",
        "SELECT name FROM data",
        "SELECT SUM(age) FROM data",
        "SELECT COUNT(*) FROM data WHERE name = 'n1'",
        "SELECT COUNT(*) FROM data ORDER BY 1",
        "DROP TABLE data",
    ):
        refused = ask(ada, dataset, SERVICE, sql=sql)
        assert refused.status_code in (400, 403, 422), (sql, refused.text)
        assert refused.json()["fix"], sql
        assert ada.get(f"{API}/jobs").json()["items"] == [], sql


# Modes ---------------------------------------------------------------------------------------------------------------


def test_the_mode_is_chosen_once(hub: Hub, owner: TestClient, ada: TestClient, dataset: str) -> None:
    again = owner.post(f"{API}/datasets/{dataset}/opening", json={"budget": {"epsilon": "1"}})
    assert again.status_code == 409
    private = ask(ada, dataset, "query.sql", sql="SELECT COUNT(*) FROM data", epsilon="1")
    assert private.status_code == 409
    with hub.store.reading() as session:
        stored = session.get_one(Dataset, dataset)
        with pytest.raises(ConflictError, match="make a new dataset"):
            datasets.check_mode(stored, Policy(object_id=dataset, mode=Mode.DP))
        datasets.check_mode(stored, Policy(object_id=dataset, mode=Mode.SDC))


def test_a_dataset_with_a_budget_stays_with_it(hub: Hub, owner: TestClient, ada: TestClient) -> None:
    made = ready_dataset(hub, subject(hub, user_id(hub, "olga")))
    with hub.store.writing() as session:
        with pytest.raises(ConflictError, match="make a new dataset"):
            datasets.adopt_mode(session.get_one(Dataset, made), Policy(object_id=made, mode=Mode.SDC))
        assert session.get_one(Dataset, made).mode == "dp"
    assert ask(owner, made, SERVICE, sql="SELECT COUNT(*) FROM data").status_code == 409


@pytest.mark.parametrize("mode", [Mode.DP, Mode.SDC])
def test_nothing_runs_where_the_policy_says_another_mode(
    hub: Hub, owner: TestClient, ada: TestClient, dataset: str, mode: Mode
) -> None:
    allow(hub, dataset, user_id(hub, "ada"), mode=mode)
    asked = ask(ada, dataset, SERVICE, sql=WHOLE)
    assert asked.status_code == (202 if mode is Mode.SDC else 409)
    assert mode is Mode.SDC or "mode" in asked.json()["fix"]


def test_a_draft_takes_the_mode_of_its_policy(hub: Hub, owner: TestClient) -> None:
    made = staff(hub, owner)
    with hub.store.writing() as session:
        datasets.adopt_mode(session.get_one(Dataset, made), Policy(object_id=made, mode=Mode.SDC))
    refused = owner.post(f"{API}/datasets/{made}/opening", json={"budget": {"epsilon": "1"}})
    assert refused.status_code == 409
    assert "sdc" in refused.json()["fix"]


def test_policies_that_nothing_can_serve_are_refused(hub: Hub, owner: TestClient) -> None:
    made = staff(hub, owner)
    with hub.store.reading() as session:
        stored = session.get_one(Dataset, made)
    exact = Policy(
        object_id=made, mode=Mode.EXACT, acknowledgement=Acknowledgement(by="olga", at=now(), statement="I know.")
    )
    with pytest.raises(PolicyError, match='write mode "dp" or "sdc"'):
        datasets.adopt_mode(stored, exact)
    some_rows = Policy(object_id=made, mode=Mode.SDC, rows=RowPredicate("age > 30"))
    with pytest.raises(PolicyError, match="leave the conditions on rows out"):
        datasets.adopt_mode(stored, some_rows)


def test_rows_cannot_be_replaced_after_answers(hub: Hub, owner: TestClient, ada: TestClient, dataset: str) -> None:
    upload = {"content": STAFF.encode(), "headers": {"Content-Type": "text/csv"}}
    answer(hub, ada, dataset, WHOLE)
    refused = owner.post(f"{API}/datasets/{dataset}/versions", **upload)
    assert refused.status_code == 409
    assert "make a new dataset" in refused.json()["fix"]
    assert owner.delete(f"{API}/datasets/{dataset}").status_code == 204
    assert revision(hub, dataset) == []


def test_an_owner_is_told_at_once_what_cannot_be_controlled(hub: Hub, owner: TestClient) -> None:
    twice = staff(hub, owner, name="twice", content=STAFF + "n1,30,F,1500\n")
    refused = owner.post(f"{API}/datasets/{twice}/opening", json={"mode": "sdc"})
    assert refused.status_code in (400, 422), refused.text
    assert "one row for each person" in refused.json()["fix"]
    few = staff(hub, owner, name="few", content="\n".join(STAFF.splitlines()[:11]) + "\n")
    refused = owner.post(f"{API}/datasets/{few}/opening", json={"mode": "sdc"})
    assert "lower min_size" in refused.json()["fix"]
    both = owner.post(f"{API}/datasets/{few}/opening", json={"mode": "sdc", "budget": {"epsilon": "1"}})
    assert both.status_code in (400, 422)
    assert owner.get(f"{API}/datasets/{few}").json()["state"] == "draft"


def test_rounding_is_the_owners_choice(hub: Hub, owner: TestClient) -> None:
    made = staff(hub, owner)
    controls = {"min_size": 3, "round_to": "25"}
    assert owner.post(f"{API}/datasets/{made}/opening", json={"mode": "sdc", "controls": controls}).status_code == 200
    found = answer(hub, owner, made, "SELECT COUNT(*) AS n FROM data WHERE sex = 'F'")
    assert found["columns"][0]["values"] == [50]
    assert json.dumps(found).count("rounded") == 1


def test_policies_of_a_dataset_under_control_are_kept_in_its_mode(
    hub: Hub, owner: TestClient, ada: TestClient, dataset: str
) -> None:
    place = f"{API}/datasets/{dataset}/policy"
    based_on = owner.get(place).json()["document"]["version"]
    made = owner.post(f"{place}/template", json={"template": "research by request", "based_on": based_on})
    assert made.status_code == 200, made.text
    document = owner.get(place).json()["document"]
    assert document["mode"] == "sdc"
    for changes, fix in (
        ({"mode": "dp"}, 'write mode "sdc"'),
        ({"rows": "age > 30"}, "leave the conditions on rows out"),
        ({"mode": "exact", "acknowledgement": ACKNOWLEDGEMENT}, 'write mode "dp" or "sdc"'),
    ):
        refused = owner.put(place, json={"policy": {**document, **changes}, "based_on": document["version"]})
        assert refused.status_code in (409, 422), refused.text
        assert fix in refused.json()["fix"]
    with hub.store.reading() as session:
        assert session.get_one(Dataset, dataset).mode == "sdc"
