from __future__ import annotations

import json
from typing import Any

import pytest
from fastapi.testclient import TestClient

from cloister.hub.domain.operations import PolicyOperation
from cloister.hub.domain.policy import ColumnRule, Use
from cloister.hub.domain.roles import AccountRole
from cloister.hub.hub import Hub
from cloister.hub.services.learning import MODELS
from cloister.learn.catalog import load_all
from cloister.learn.linear._solver import WEAKEST
from cloister.learn.persistence import model_of
from tests.hub.conftest import ClientFor
from tests.hub.services.helpers import API, PURPOSE, allow, ask, job_of, user_id, work
from tests.support.hub_datasets import ready_dataset, subject

LEARNING = (PolicyOperation.ML_TRAIN, PolicyOperation.ML_PREDICT)
WANTED: dict[str, Any] = {"model": "gaussian_nb", "target": "sex", "features": ["age"], "epsilon": "1"}


@pytest.fixture
def owner(client_for: ClientFor) -> TestClient:
    return client_for("olga", AccountRole.DATA_OWNER)


@pytest.fixture
def dataset(hub: Hub, owner: TestClient) -> str:
    return ready_dataset(hub, subject(hub, user_id(hub, "olga")))


@pytest.fixture
def ada(hub: Hub, dataset: str, client_for: ClientFor) -> TestClient:
    found = client_for("ada", AccountRole.DATA_USER, of="south")
    allow(hub, dataset, user_id(hub, "ada"), operations=LEARNING)
    return found


def _spent(owner: TestClient, dataset: str) -> str:
    return str(owner.get(f"{API}/datasets/{dataset}/ledger").json()["spent"]["epsilon"])


def _result(hub: Hub, client: TestClient, dataset: str, service: str, **parameters: Any) -> tuple[str, Any]:
    job = job_of(client, dataset, service, **parameters)
    work(hub)
    answer = client.get(f"{API}/jobs/{job}/result")
    assert answer.status_code == 200, answer.text
    return job, answer.json()


def test_the_page_names_every_model(ada: TestClient, dataset: str) -> None:
    assert sorted(load_all()) == list(MODELS)
    assert ", ".join(MODELS) in ada.get(f"/datasets/{dataset}/services/learn.train").text


def test_a_model_is_planned_paid_trained_and_downloaded(
    hub: Hub, owner: TestClient, ada: TestClient, dataset: str
) -> None:
    place = f"{API}/datasets/{dataset}/services/learn.train"
    preview = ada.post(f"{place}/preview", json={"parameters": WANTED, "purpose": PURPOSE}).json()
    assert preview["cost"]["epsilon"] == "1"
    assert "counts, sums and squares" in preview["preview"]["text"]
    assert _spent(owner, dataset) == "0"
    job, seen = _result(hub, ada, dataset, "learn.train", **WANTED)
    model = model_of(seen["document"])
    assert model.guarantee_.brief() == "epsilon = 1 per row"
    assert model.encoding_.columns == ("age",)
    assert model.provenance_.dataset == dataset
    assert _spent(owner, dataset) == "1"
    listed = ada.get(f"{API}/jobs/{job}").json()
    downloaded = ada.get(f"{API}/jobs/{job}/files/model.cloister")
    assert downloaded.status_code == 200, listed
    assert json.loads(downloaded.content) == seen["document"]
    assert "PrivateGaussianNB" in ada.get(f"/jobs/{job}").text


def test_a_model_is_evaluated_and_used_for_a_price(hub: Hub, owner: TestClient, ada: TestClient, dataset: str) -> None:
    _, trained = _result(hub, ada, dataset, "learn.train", **WANTED)
    text = json.dumps(trained["document"])
    _, figure = _result(hub, ada, dataset, "learn.evaluate", model=text, target="sex", epsilon="0.5")
    assert figure["document"]["schema"] == "cloister.evaluation/1"
    assert figure["document"]["measure"] == "accuracy"
    assert _spent(owner, dataset) == "3/2"
    _, counted = _result(hub, ada, dataset, "learn.predict", model=text, epsilon="0.5")
    assert counted["document"]["classes"] == ["F", "M"]
    assert _spent(owner, dataset) == "2"


def test_the_ledger_refuses_what_is_not_left(hub: Hub, owner: TestClient, ada: TestClient, dataset: str) -> None:
    refused = ask(ada, dataset, "learn.train", **{**WANTED, "epsilon": "4"})
    assert refused.status_code in (402, 403, 409), refused.text
    assert _spent(owner, dataset) == "0"


def test_the_policy_decides(hub: Hub, dataset: str, client_for: ClientFor) -> None:
    bob = client_for("bob", AccountRole.DATA_USER, of="south")
    allow(hub, dataset, user_id(hub, "bob"), operations=(PolicyOperation.QUERY_AGGREGATE,))
    assert ask(bob, dataset, "learn.train", **WANTED).status_code == 403
    allow(hub, dataset, user_id(hub, "bob"), operations=LEARNING, hidden=("sex",))
    assert ask(bob, dataset, "learn.train", **WANTED).status_code in (400, 404, 422)
    narrow = (("age", ColumnRule(uses=frozenset({Use.FILTER}))),)
    allow(hub, dataset, user_id(hub, "bob"), operations=LEARNING, narrowed=narrow)
    assert ask(bob, dataset, "learn.train", **WANTED).status_code == 403


def test_hidden_columns_are_not_learned_from_by_default(hub: Hub, dataset: str, client_for: ClientFor) -> None:
    bob = client_for("bob", AccountRole.DATA_USER, of="south")
    allow(hub, dataset, user_id(hub, "bob"), operations=LEARNING, hidden=("diagnosis",))
    _, seen = _result(hub, bob, dataset, "learn.train", model="gaussian_nb", target="sex", epsilon="1")
    assert "diagnosis" not in model_of(seen["document"]).encoding_.columns


def test_persons_are_protected_as_the_owner_says(hub: Hub, owner: TestClient) -> None:
    made = ready_dataset(hub, subject(hub, user_id(hub, "olga")), name="persons", unit="patient", max_rows_per_unit=2)
    _, seen = _result(hub, owner, made, "learn.train", **WANTED)
    assert model_of(seen["document"]).guarantee_.unit == "patient"


def test_no_single_person_decides_how_a_fit_ends(hub: Hub, owner: TestClient, client_for: ClientFor) -> None:
    """A column that is 0 for everybody, against one person who has a 1."""
    ada = client_for("ada", AccountRole.DATA_USER, of="south")
    schema = {
        "columns": {
            "hiv": {"role": "quasi", "kind": "numeric", "bounds": [0, 1], "storage": "integer"},
            "sick": {"role": "sensitive", "kind": "nominal", "categories": ["no", "yes"], "storage": "text"},
        }
    }
    settings = ["method=output", f"regularization={float(WEAKEST)}"]
    wanted = {"model": "logistic_regression", "target": "sick", "features": ["hiv"], "epsilon": "0.01"}
    seen = []
    for value in (0, 1):
        content = "hiv,sick\n" + "".join(f"0,{('no', 'yes')[row % 2]}\n" for row in range(60)) + f"{value},yes\n"
        made = ready_dataset(
            hub, subject(hub, user_id(hub, "olga")), name=f"people{value}", content=content, schema=schema
        )
        allow(hub, made, user_id(hub, "ada"), operations=LEARNING)
        # What is weaker than is accepted is refused before anything is paid, whoever the rows are about.
        assert (
            ask(ada, made, "learn.train", **wanted, settings=[settings[0], "regularization=1e-30"]).status_code == 422
        )
        job, found = _result(hub, ada, made, "learn.train", **wanted, settings=settings)
        listed = ada.get(f"{API}/jobs/{job}").json()
        model = model_of(found["document"])
        seen.append((listed["state"], listed["error"], sorted(found["document"]), type(model), model.guarantee_))
        assert _spent(owner, made) == "1/100"
    assert seen[0] == seen[1]
    assert seen[0][:2] == ("done", None)


REFUSED: list[dict[str, Any]] = [
    {"model": "gaussian_nbb"},
    {"target": None},
    {"target": "nothing"},
    {"features": ["nothing"]},
    {"features": ["sex"]},
    {"epsilon": "0"},
    {"epsilon": "much"},
    {"delta": "2"},
    {"settings": ["variance_floor"]},
    {"settings": ["epsilon=100"]},
    {"settings": ["ledger=sqlite"]},
    {"settings": ["random_state=1"]},
    {"settings": ["bounds=[0, 1]"]},
]


def test_what_cannot_be_trained_is_refused_before_any_row_is_read(
    owner: TestClient, ada: TestClient, dataset: str
) -> None:
    for changes in REFUSED:
        assert ask(ada, dataset, "learn.train", **{**WANTED, **changes}).status_code in (400, 403, 404, 422), changes
        assert ada.get(f"{API}/jobs").json()["items"] == [], changes
        assert _spent(owner, dataset) == "0", changes


def test_what_is_no_model_is_refused(ada: TestClient, dataset: str) -> None:
    for model in ("", "{}", "[" * 5000, '{"schema": "cloister.model/1"}'):
        for service, more in (("learn.predict", {}), ("learn.evaluate", {"target": "sex"})):
            refused = ask(ada, dataset, service, model=model, epsilon="1", **more)
            assert refused.status_code in (400, 422), (service, model[:40])


def test_the_forms_can_be_filled_in(ada: TestClient, dataset: str) -> None:
    for service in ("learn.train", "learn.evaluate", "learn.predict"):
        page = ada.get(f"/datasets/{dataset}/services/{service}").text
        assert "Price (epsilon)" in page
        assert "Pay and run" in page
