"""What was sealed is not as it was kept: nothing is answered from it, and it is an incident."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from pathlib import Path

import pytest
from fastapi.testclient import TestClient

from cloister.hub import workers
from cloister.hub.domain.roles import AccountRole
from cloister.hub.hub import Hub
from cloister.hub.store.models import DatasetVersion, Job, NoticeRecord, ResultRecord
from cloister.hub.use_cases import notices
from cloister.hub.workers import Worker
from tests.hub.conftest import ClientFor
from tests.hub.services.helpers import API, allow, job_of, user_id, work
from tests.support.hub_datasets import ready_dataset, subject

COUNT = {"sql": "SELECT AVG(age) AS age FROM data", "epsilon": "0.5"}


@pytest.fixture
def people(client_for: ClientFor) -> dict[str, TestClient]:
    return {
        "olga": client_for("olga", AccountRole.DATA_OWNER),
        "ada": client_for("ada", AccountRole.DATA_USER, of="south"),
        "ann": client_for("ann", AccountRole.AUDITOR, of="elsewhere"),
        "otto": client_for("otto", AccountRole.OPERATOR, of="elsewhere"),
    }


@pytest.fixture
def dataset(hub: Hub, people: dict[str, TestClient]) -> str:
    made = ready_dataset(hub, subject(hub, user_id(hub, "olga")))
    allow(hub, made, user_id(hub, "ada"))
    return made


def told(hub: Hub) -> set[str]:
    """Return who was told of damage."""
    with hub.store.reading() as session:
        found = session.query(NoticeRecord).filter(NoticeRecord.text.contains("is damaged")).all()
    names = {user_id(hub, name): name for name in ("olga", "ada", "ann", "otto")}
    assert len(found) == len({notice.user_id for notice in found}), "each once"
    return {names[notice.user_id] for notice in found}


def entries(people: dict[str, TestClient]) -> list[str]:
    """Return what the incidents in the audit log are about."""
    found = people["ann"].get(f"{API}/audit", params={"action": notices.ACTION}).json()["items"]
    return [entry["target"] for entry in found]


def flip(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)


@pytest.mark.parametrize("harm", [flip, lambda path: path.write_bytes(path.read_bytes()[:-40])])
def test_work_on_damaged_rows_fails_in_words_and_is_recorded(
    hub: Hub, people: dict[str, TestClient], dataset: str, harm: Callable[[Path], object]
) -> None:
    with hub.store.reading() as session:
        harm(hub.blobs.path(str(session.query(DatasetVersion).one().blob_id)))
    jobs = [job_of(people["ada"], dataset, "query.sql", **COUNT, fresh=True) for _ in range(2)]
    work(hub)
    for job in jobs:
        seen = people["ada"].get(f"{API}/jobs/{job}").json()
        assert (seen["state"], seen["error"]) == ("failed", notices.DAMAGED)
        assert people["ada"].get(f"{API}/jobs/{job}/result").status_code == 409
    assert entries(people) == [f"dataset:{dataset}"]
    assert told(hub) == {"olga", "ann", "otto"}
    assert people["ann"].get(f"{API}/audit/verification").status_code == 200


def test_work_whose_file_is_missing_is_given_back_and_done_for_the_same_payment_when_the_file_is_there(
    hub: Hub, people: dict[str, TestClient], dataset: str
) -> None:
    with hub.store.reading() as session:
        file = hub.blobs.path(str(session.query(DatasetVersion).one().blob_id))
    hidden = file.rename(file.with_name("hidden"))
    job = job_of(people["ada"], dataset, "query.sql", **COUNT, fresh=True)
    here, elsewhere = Worker(hub, name="here"), Worker(hub, name="elsewhere")
    assert here.work_once()
    assert people["ada"].get(f"{API}/jobs/{job}").json()["state"] == "queued"
    assert not here.work_once(), "who does not have the file does not claim the work again and again"
    hidden.rename(file)
    assert elsewhere.work_once()
    assert people["ada"].get(f"{API}/jobs/{job}").json()["state"] == "done"
    with hub.store.reading() as session:
        assert hub.store.ledger(session).remaining(dataset).amount == Fraction(5, 2), "paid once"
        assert session.get_one(Job, job).losses == 0
    assert entries(people) == [f"dataset:{dataset}"]
    assert told(hub) == {"olga", "ann", "otto"}


def test_a_worker_looks_again_for_missing_files_after_a_while(
    hub: Hub, people: dict[str, TestClient], dataset: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(workers, "AGAIN_SECONDS", 0.0)
    with hub.store.reading() as session:
        hub.blobs.path(str(session.query(DatasetVersion).one().blob_id)).unlink()
    job_of(people["ada"], dataset, "query.sql", **COUNT, fresh=True)
    here = Worker(hub)
    assert [here.work_once() for _ in range(5)] == [True] * 5


def test_a_worker_whose_folder_is_not_the_hubs_claims_nothing(
    hub: Hub, people: dict[str, TestClient], dataset: str
) -> None:
    job_of(people["ada"], dataset, "query.sql", **COUNT, fresh=True)
    identity = hub.settings.folder / "identity"
    away = identity.rename(identity.with_name("away"))
    assert not Worker(hub).work_once()
    away.rename(identity)
    assert Worker(hub).work_once()


def test_a_changed_result_is_not_shown_and_is_recorded(hub: Hub, people: dict[str, TestClient], dataset: str) -> None:
    job = job_of(people["ada"], dataset, "query.sql", **COUNT)
    work(hub)
    assert people["ada"].get(f"{API}/jobs/{job}/result").status_code == 200
    with hub.store.writing() as session:
        result = session.query(ResultRecord).filter_by(job_id=job).one()
        result.sealed = result.sealed[:-1] + bytes([result.sealed[-1] ^ 1])
    for _ in range(2):
        for path in ("/result", "/files/answer.csv"):
            refused = people["ada"].get(f"{API}/jobs/{job}{path}")
            assert (refused.status_code, refused.json()["error"]) == (500, "DecryptionError")
    assert entries(people) == [f"job:{job}"]
    assert told(hub) == {"olga", "ann", "otto"}


def test_an_earlier_answer_that_was_changed_is_not_given_again(
    hub: Hub, people: dict[str, TestClient], dataset: str
) -> None:
    job = job_of(people["ada"], dataset, "query.sql", **COUNT)
    work(hub)
    with hub.store.writing() as session:
        session.query(ResultRecord).filter_by(job_id=job).one().sealed = b"\1" + bytes(60)
    place = f"{API}/datasets/{dataset}/services/query.sql/runs"
    again = people["ada"].post(place, json={"parameters": COUNT, "purpose": "research.health"})
    assert again.status_code == 500
    assert entries(people) == [f"dataset:{dataset}"]
