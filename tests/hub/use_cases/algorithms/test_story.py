"""A provider publishes k-means 1.0.0, an owner allows it, a user runs it, and 1.1.0 waits for the owner."""

from __future__ import annotations

import pytest

from cloister.errors import SandboxUnavailableError
from cloister.hub.sandbox.runner import Isolation
from cloister.hub.use_cases.algorithms import sandbox_checks
from tests.hub.use_cases.algorithms.conftest import API, World, k_means_version, raw_rows, send_zip


@pytest.mark.usefixtures("instant_slots")
def test_from_the_provider_to_the_answer(world: World) -> None:
    made = world.upload(k_means_version())
    version = f"{API}/algorithms/{made['id']}/versions/1.0.0"
    assert world.step(made, "publish").status_code == 409
    assert world.owner.get(f"{API}/algorithms/{made['id']}").status_code == 404
    world.work()
    assert world.provider.get(f"{API}/jobs/{made['job']}").json()["state"] == "done"
    checked = world.provider.get(version).json()
    assert (checked["state"], checked["report"]["passed"]) == ("checked", True)
    assert checked["report"]["isolation"]
    assert world.step(made, "publish").json()["state"] == "published"

    read = world.owner.get(version).json()
    assert "def fit(" in {file["name"]: file["text"] for file in read["files"]}["clustering.py"]
    assert read["manifest"]["privacy"]["contract"] == "sample_and_aggregate"
    assert world.ask(verb="preview").status_code == 403
    assert world.allow(made, has_read=False).status_code == 422
    assert world.allow(made, digest="0" * 64).status_code == 409
    assert world.allow(made).status_code == 201

    seen = world.ask(verb="preview").json()
    assert seen["cost"]["epsilon"] == "1"
    assert "noise of at most" in seen["preview"]["text"]
    job = world.ask()
    assert job.status_code == 202, job.text
    told: list[tuple[float, str]] = []
    world.work(lambda share, stage: told.append((share, stage)))
    assert [stage for _, stage in told if stage.startswith("block")] == [f"block {n} of 10" for n in range(1, 11)]
    assert [share for share, _ in told] == sorted(share for share, _ in told)
    result = world.user.get(f"{API}/jobs/{job.json()['id']}/result").json()
    document = result["document"]
    assert (document["algorithm"], document["version"], document["digest"]) == ("k-means", "1.0.0", made["digest"])
    assert [len(row) for row in document["values"]["centers"]] == [1, 1]
    assert all(0 <= row[0] <= 110 for row in document["values"]["centers"])
    assert result["guarantee"]["epsilon"] == "1"
    assert result["provenance"]["used"] == f"k-means@1.0.0#{made['digest']}"
    assert [name for name, _ in result["summary"]] == ["centers 1, age", "centers 2, age"]
    assert world.spent() == "1"
    assert world.ask().json()["state"] == "done"
    assert world.spent() == "1"

    later = world.publish(k_means_version("1.1.0"), to=made["id"])
    assert later["digest"] != made["digest"]
    refused = world.ask("k-means@1.1.0")
    assert refused.status_code == 403
    assert "has not allowed version 1.1.0" in refused.json()["problem"]
    assert world.spent() == "1"
    assert "runs on your data only after" in world.owner.get(f"{API}/home").text
    assert world.allow(later).status_code == 201
    assert world.ask("k-means@1.1.0", verb="preview").status_code == 200


def test_an_algorithm_that_gives_out_rows_is_rejected(world: World) -> None:
    made = world.upload(raw_rows())
    world.work()
    found = world.provider.get(f"{API}/algorithms/{made['id']}/versions/1.0.0").json()
    assert (found["state"], found["report"]["passed"]) == ("draft", False)
    assert any("has shape (200, 1); (3, 1) is declared" in item["text"] for item in found["report"]["findings"])
    assert world.step(made, "publish").status_code == 409
    assert world.allow(made).status_code == 404
    assert world.ask().status_code == 403


@pytest.mark.usefixtures("passing_checks", "instant_slots")
def test_even_what_passed_the_checks_cannot_give_out_rows(world: World) -> None:
    """The second gate: whatever runs, the answer has the declared shape, its bounds and the platform's noise."""
    made = world.publish(raw_rows())
    world.allow(made)
    asked = world.ask(epsilon=None)
    world.work()
    job = world.user.get(f"{API}/jobs/{asked.json()['id']}").json()
    assert job["state"] == "done", job
    document = world.user.get(f"{API}/jobs/{job['id']}/result").json()["document"]
    assert [len(row) for row in document["values"]["centers"]] == [1, 1]
    assert job["receipt"]["cost"]["epsilon"] == "1"


@pytest.mark.usefixtures("passing_checks")
def test_a_machine_without_walls_says_so_before_anything_is_spent(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = world.publish(k_means_version())
    world.allow(made)
    monkeypatch.setattr(sandbox_checks, "_known", [])
    monkeypatch.setattr(sandbox_checks.runner, "detect_isolation", lambda: Isolation(problems=("no seccomp",)))
    refused = world.ask()
    assert refused.status_code == 501
    assert "no seccomp" in refused.json()["problem"]
    assert world.spent() == "0"
    with pytest.raises(SandboxUnavailableError):
        sandbox_checks.require_isolation()


def test_checks_on_a_machine_without_walls_fail_in_words(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(artifact: object) -> None:
        Isolation(problems=(f"nothing for {type(artifact).__name__}",)).require()

    monkeypatch.setattr(sandbox_checks, "check_artifact", refuse)
    made = world.upload(k_means_version())
    world.work()
    job = world.provider.get(f"{API}/jobs/{made['job']}").json()
    assert job["state"] == "failed"
    assert "Foreign algorithms do not run here" in job["error"]["problem"]
    again = world.provider.post(f"{API}/algorithms/{made['id']}/versions/1.0.0/checks")
    assert again.status_code == 202
    assert send_zip(world.provider, f"{API}/algorithms", b"x", "text/csv").status_code == 422
