from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass

import pandas as pd
import pytest
from fastapi.testclient import TestClient

from cloister.hub import demo
from cloister.hub.demo import Demo
from cloister.hub.hub import Hub, open_hub
from cloister.hub.settings import Settings
from cloister.learn.persistence import model_of
from tests.hub.conftest import ClientFor, sign_in
from tests.hub.services.helpers import API, PURPOSE, ask, job_of, user_id, work

WANTED = {
    "model": "gaussian_nb",
    "target": "sex",
    "features": ["age", "length_of_stay"],
    "epsilon": "1",
}


@dataclass(frozen=True, slots=True)
class Shown:
    """A hub with the demo in it, and its database as it was then."""

    hub: Hub
    demo: Demo
    kept: sqlite3.Connection


@pytest.fixture(scope="module")
def shown(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shown]:
    folder = tmp_path_factory.mktemp("demo")
    opened = open_hub(Settings(folder=folder / "hub", workers=0))
    with closing(sqlite3.connect(":memory:", check_same_thread=False)) as kept:
        found = demo.fill(opened)
        with closing(sqlite3.connect(opened.settings.folder / "hub.db")) as live:
            live.backup(kept)
        yield Shown(opened, found, kept)
    opened.close()


@pytest.fixture
def hub(shown: Shown) -> Hub:
    """The hub of all these tests, with everything as the demo has left it."""
    with closing(sqlite3.connect(shown.hub.settings.folder / "hub.db")) as live:
        shown.kept.backup(live)
    return shown.hub


@pytest.fixture
def filled(shown: Shown) -> Demo:
    return shown.demo


@pytest.fixture
def uma(hub: Hub, filled: Demo, client_for: ClientFor) -> TestClient:
    client = client_for()
    sign_in(hub, client, user_id(hub, "uma"))
    return client


def test_the_data_user_of_the_demo_can_train_a_model(hub: Hub, filled: Demo, uma: TestClient) -> None:
    page = uma.get(f"/datasets/{filled.dataset_id}").text
    assert f"/datasets/{filled.dataset_id}/services/learn.train" in page
    assert "What to predict" in uma.get(f"/datasets/{filled.dataset_id}/services/learn.train").text
    job = job_of(uma, filled.dataset_id, "learn.train", **WANTED)
    assert work(hub) == 1
    answer = uma.get(f"{API}/jobs/{job}/result")
    assert answer.status_code == 200, answer.text
    model = model_of(answer.json()["document"])
    assert model.guarantee_.brief() == "epsilon = 1 per patient_id"
    assert model.predict(pd.DataFrame({"age": [40], "length_of_stay": [2]}))[0] in ("F", "M")
    assert "PrivateGaussianNB" in uma.get(f"/jobs/{job}").text


def test_training_says_what_to_expect_and_has_its_limit(filled: Demo, uma: TestClient) -> None:
    place = f"{API}/datasets/{filled.dataset_id}/services/learn.train/preview"
    usual, tiny = (
        uma.post(place, json={"parameters": {**WANTED, "epsilon": epsilon}, "purpose": PURPOSE}).json()
        for epsilon in ("1", "0.000001")
    )
    assert "What to expect: with about" in usual["preview"]["text"]
    assert not any("too small to learn anything" in text for text in usual["warnings"])
    assert any("too small to learn anything" in text for text in tiny["warnings"])
    refused = ask(uma, filled.dataset_id, "learn.train", **{**WANTED, "epsilon": "2.2"})
    assert refused.status_code == 409
    assert "only 1.4 is left" in refused.text
