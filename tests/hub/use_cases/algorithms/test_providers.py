"""What providers can send, change and see: bad zips are refused, versions stay as they are, and usage is a number."""

from __future__ import annotations

import io
import zipfile
from typing import Any

import pytest

from cloister.hub.domain.algorithms import Artifact
from cloister.hub.domain.roles import AccountRole
from cloister.hub.store.models import AlgorithmVersion, HubAlgorithm, Job
from cloister.hub.use_cases.algorithms.sandbox_checks import MOST_WAITING
from tests.hub.use_cases.algorithms.conftest import API, World, k_means_version, send_zip
from tests.support.foreign import with_wall

pytestmark = pytest.mark.usefixtures("passing_checks", "instant_slots")


def zipped(files: dict[str, bytes], *, kind: int = zipfile.ZIP_DEFLATED) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", kind) as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return buffer.getvalue()


def linked(files: dict[str, bytes]) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, content in files.items():
            archive.writestr(name, content)
        link = zipfile.ZipInfo("link.py")
        link.external_attr = 0o120777 << 16
        archive.writestr(link, "/etc/passwd")
    return buffer.getvalue()


def bad_zips() -> dict[str, bytes]:
    files = dict(k_means_version().files)
    return {
        "no zip": b"PK\x03\x04 nothing",
        "empty": b"",
        "bomb": zipped({**files, "zeros.txt": b"0" * 40_000_000}),
        "many": zipped({**files, **{f"f{n}.txt": b"" for n in range(300)}}),
        "above": zipped({**files, "../../evil.py": b""}),
        "absolute": zipped({**files, "/tmp/evil.py": b""}),
        "backslash": zipped({**files, "..\\evil.py": b""}),
        "link": linked(files),
        "compiled": zipped({**files, "fast.so": b"\x7fELF"}),
        "no manifest": zipped({"clustering.py": files["clustering.py"]}),
        "no entry point": zipped({"manifest.yaml": files["manifest.yaml"]}),
        "aliases": zipped({**files, "manifest.yaml": b"a: &a [1]\nb: *a\n"}),
    }


def test_bad_zips_are_refused_and_leave_nothing(world: World) -> None:
    for name, packed in bad_zips().items():
        refused = send_zip(world.provider, f"{API}/algorithms", packed)
        assert refused.status_code == 422, (name, refused.text)
        assert refused.json()["fix"]
        assert "passwd" not in refused.text
    with world.hub.store.reading() as session:
        assert session.query(HubAlgorithm).count() == 0
        assert session.query(Job).count() == 0


def test_large_zips_are_refused_by_their_size(world: World) -> None:
    files = {**k_means_version().files, "noise.txt": bytes(range(32, 127)) * 12_000}
    packed = zipped(files, kind=zipfile.ZIP_STORED)
    assert send_zip(world.provider, f"{API}/algorithms", packed).status_code == 413
    assert send_zip(world.provider, f"{API}/algorithms/alg_1/versions", packed).status_code == 413


def test_a_refused_upload_leaves_no_file(world: World) -> None:
    world.publish(k_means_version())
    before = sorted(path.name for path in (world.hub.settings.folder / "blobs").iterdir())
    assert send_zip(world.provider, f"{API}/algorithms", k_means_version().to_zip()).status_code == 409
    assert sorted(path.name for path in (world.hub.settings.folder / "blobs").iterdir()) == before


def test_stored_sources_are_sealed(world: World) -> None:
    world.upload(k_means_version())
    for path in (world.hub.settings.folder / "blobs").iterdir():
        assert b"def fit" not in path.read_bytes()


def test_a_published_version_never_changes_and_a_draft_may(world: World) -> None:
    made = world.upload(k_means_version())
    changed = world.upload(k_means_version(title="Better"), to=made["id"])
    assert changed["digest"] != made["digest"]
    world.work()
    jobs = {job["id"]: job for job in world.provider.get(f"{API}/jobs").json()["items"]}
    assert jobs[made["job"]]["state"] == "failed"
    assert "replaced" in jobs[made["job"]]["error"]["problem"]
    assert jobs[changed["job"]]["state"] == "done"
    assert world.step(made, "send_back").json()["state"] == "draft"
    assert world.step(made, "publish").status_code == 409
    world.provider.post(f"{API}/algorithms/{made['id']}/versions/1.0.0/checks")
    world.work()
    assert world.step(made, "publish").status_code == 200
    path = f"{API}/algorithms/{made['id']}/versions"
    refused = send_zip(world.provider, path, k_means_version().to_zip())
    assert refused.status_code == 409
    assert "never changes" in refused.json()["problem"]
    assert world.provider.post(f"{path}/1.0.0/checks").status_code == 409
    with world.hub.store.reading() as session:
        assert session.query(AlgorithmVersion).one().digest == changed["digest"]


def test_a_name_belongs_to_whoever_had_it_first(world: World) -> None:
    made = world.publish(k_means_version())
    rival = world.client_for("rita", AccountRole.ALGORITHM_PROVIDER, of="rivals")
    assert send_zip(rival, f"{API}/algorithms", k_means_version("2.0.0").to_zip()).status_code == 409
    path = f"{API}/algorithms/{made['id']}/versions"
    assert send_zip(rival, path, k_means_version("2.0.0").to_zip()).status_code == 403
    assert rival.post(f"{path}/1.0.0/steps", json={"step": "revoke"}).status_code == 403
    assert rival.get(f"{API}/algorithms/{made['id']}/usage").status_code == 403
    colleague = world.client_for("paul", AccountRole.ALGORITHM_PROVIDER, of="methods")
    assert send_zip(colleague, path, k_means_version("2.0.0").to_zip()).status_code == 201
    former = world.client_for("fred", AccountRole.DATA_USER, of="methods")
    assert send_zip(former, path, k_means_version("3.0.0").to_zip()).status_code == 403


def test_a_version_of_another_algorithm_is_refused(world: World) -> None:
    made = world.upload(k_means_version())
    files = dict(k_means_version("1.1.0").files)
    files["manifest.yaml"] = files["manifest.yaml"].replace(b"id: k-means", b"id: k-medians")
    refused = send_zip(world.provider, f"{API}/algorithms/{made['id']}/versions", Artifact.from_files(files).to_zip())
    assert refused.status_code == 422
    assert "id: k-means" in refused.json()["fix"]


def test_drafts_are_for_their_providers_only(world: World) -> None:
    made = world.publish(k_means_version())
    world.upload(k_means_version("1.1.0"), to=made["id"])
    seen = [item["version"] for item in world.owner.get(f"{API}/algorithms/{made['id']}").json()["versions"]]
    own = [item["version"] for item in world.provider.get(f"{API}/algorithms/{made['id']}").json()["versions"]]
    assert (seen, own) == (["1.0.0"], ["1.1.0", "1.0.0"])
    assert world.owner.get(f"{API}/algorithms/{made['id']}/versions/1.1.0").status_code == 404
    (listed,) = world.owner.get(f"{API}/algorithms").json()["items"]
    assert listed["newest"] == "1.0.0"
    assert world.owner.get(f"{API}/algorithms?own=true").json()["items"] == []
    colleague = world.client_for("dora", AccountRole.DATA_OWNER, of="methods")
    assert colleague.get(f"{API}/algorithms/{made['id']}/versions/1.1.0").status_code == 404


def test_unpublished_algorithms_do_not_exist_for_others(world: World) -> None:
    made = world.upload(k_means_version())
    colleague = world.client_for("dora", AccountRole.DATA_OWNER, of="methods")
    for client in (world.owner, world.user, colleague):
        assert client.get(f"{API}/algorithms").json()["items"] == []
        assert client.get(f"{API}/algorithms/{made['id']}").status_code == 404
        assert client.get(f"{API}/algorithms/{made['id']}/versions/1.0.0").status_code == 404


def test_checks_that_would_take_too_long_are_refused(world: World) -> None:
    slow = with_wall(k_means_version(), 600)
    refused = send_zip(world.provider, f"{API}/algorithms", slow.to_zip())
    assert refused.status_code == 422
    assert "wall_seconds" in refused.json()["fix"]


def test_a_provider_cannot_fill_the_queue_with_checks(world: World) -> None:
    made = world.upload(k_means_version())
    path = f"{API}/algorithms/{made['id']}/versions/1.0.0/checks"
    codes = [world.provider.post(path).status_code for _ in range(MOST_WAITING)]
    assert codes == [202] * (MOST_WAITING - 1) + [429]


def test_a_provider_sees_how_often_and_nothing_else(world: World) -> None:
    made = world.publish(k_means_version())
    world.allow(made)
    for _ in range(2):
        assert world.ask(fresh=True).status_code == 202
    world.work()
    jobs = world.user.get(f"{API}/jobs").json()["items"]
    assert [job["state"] for job in jobs] == ["done", "done"]
    (counted,) = world.provider.get(f"{API}/algorithms/{made['id']}/usage").json()["items"]
    assert (counted["version"], counted["runs"], sum(counted["months"].values())) == ("1.0.0", 2, 2)
    for job in jobs:
        for part in ("", "/result", "/files/answer.csv", "/report"):
            assert world.provider.get(f"{API}/jobs/{job['id']}{part}").status_code == 404
    for path in (f"{API}/datasets/{world.dataset}", f"{API}/datasets/{world.dataset}/algorithms"):
        assert world.provider.get(path).status_code == 404
    addresses = [
        f"{API}/algorithms",
        f"{API}/algorithms/{made['id']}",
        f"{API}/algorithms/{made['id']}/versions/1.0.0",
        f"{API}/algorithms/{made['id']}/usage",
        f"{API}/jobs",
        f"{API}/home",
        "/algorithms",
        f"/algorithms/{made['id']}",
        f"/algorithms/{made['id']}/versions/1.0.0",
    ]
    secrets: list[Any] = [world.dataset, "Visits", "visits", "ada", "olga", "north", "south", *(j["id"] for j in jobs)]
    for address in addresses:
        answer = world.provider.get(address)
        assert answer.status_code == 200, (address, answer.text)
        assert not [word for word in secrets if word in answer.text], address
