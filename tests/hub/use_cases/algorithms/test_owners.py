"""What owners decide counts, at once: which sources run, on which columns, for whom, until when."""

from __future__ import annotations

import io
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from cloister.hub.domain.policy import AlgorithmReference, ColumnRule, Use
from cloister.hub.domain.roles import AccountRole
from cloister.hub.store.models import AlgorithmAllowance, AlgorithmVersion, AuditEntry
from tests.hub.use_cases.algorithms.conftest import API, World, k_means_version, policy, user_id
from tests.support.hub_datasets import ready_dataset, set_policy, subject

pytestmark = pytest.mark.usefixtures("passing_checks", "instant_slots")


def queued(world: World) -> tuple[dict[str, object], str]:
    """Publish and allow k-means 1.0.0, ask for a run, and return both."""
    made = world.publish(k_means_version())
    assert world.allow(made).status_code == 201
    asked = world.ask()
    assert asked.status_code == 202, asked.text
    return made, str(asked.json()["id"])


def ended(world: World, job_id: str) -> dict[str, object]:
    world.work()
    job: dict[str, object] = world.user.get(f"{API}/jobs/{job_id}").json()
    return job


def test_a_revoked_version_stops_what_waits_in_the_queue(world: World) -> None:
    made, job_id = queued(world)
    assert world.step(made, "revoke").json()["state"] == "revoked"
    job = ended(world, job_id)
    assert job["state"] == "denied"
    assert "is revoked and does not run" in str(job["error"])
    assert world.ask().status_code == 403
    assert world.allow(made).status_code == 409
    assert world.step(made, "restore").status_code == 409


def test_a_version_revoked_while_it_runs_gives_no_result(world: World) -> None:
    made, job_id = queued(world)

    def revoke(share: float, stage: str) -> None:
        if stage == "block 3 of 10":
            assert world.step(made, "revoke").status_code == 200

    world.work(revoke)
    job = world.user.get(f"{API}/jobs/{job_id}").json()
    assert job["state"] == "denied"
    assert world.user.get(f"{API}/jobs/{job_id}/result").status_code == 409


def test_an_owner_who_stops_allowing_a_version_stops_what_waits(world: World) -> None:
    _, job_id = queued(world)
    (allowed,) = world.owner.get(f"{API}/datasets/{world.dataset}/algorithms").json()["items"]
    assert allowed["allowed_by"] == "olga"
    gone = world.owner.delete(f"{API}/datasets/{world.dataset}/algorithms/{allowed['id']}")
    assert gone.status_code == 204
    assert ended(world, job_id)["state"] == "denied"
    assert world.owner.delete(f"{API}/datasets/{world.dataset}/algorithms/{allowed['id']}").status_code == 404


def test_a_permission_ends_by_itself(world: World) -> None:
    made = world.publish(k_means_version())
    past = (datetime.now(UTC) - timedelta(days=1)).isoformat()
    assert world.allow(made, until=past).status_code == 422
    soon = datetime.now(UTC) + timedelta(hours=1)
    assert world.allow(made, until=soon.isoformat()).status_code == 201
    assert world.ask(verb="preview").status_code == 200
    with world.hub.store.writing() as session:
        session.query(AlgorithmAllowance).one().until = soon - timedelta(hours=2)
    assert world.ask(verb="preview").status_code == 403
    assert world.user.get(f"{API}/datasets/{world.dataset}/algorithms").json()["items"] == []


def test_a_deprecated_version_still_runs_and_says_so(world: World) -> None:
    made = world.publish(k_means_version())
    world.allow(made)
    world.step(made, "deprecate")
    assert any("deprecated" in warning for warning in world.ask(verb="preview").json()["warnings"])
    assert world.step(made, "restore").json()["state"] == "published"
    assert not any("deprecated" in warning for warning in world.ask(verb="preview").json()["warnings"])


@pytest.mark.parametrize("how", ["replaced", "replaced with its digest", "damaged"])
def test_sources_that_were_tampered_with_do_not_run(world: World, how: str) -> None:
    _, job_id = queued(world)
    other = k_means_version(title="Something else")
    with world.hub.store.writing() as session:
        version = session.query(AlgorithmVersion).one()
        if how == "damaged":
            path = world.hub.blobs.path(version.blob_id)
            content = bytearray(path.read_bytes())
            content[-1] ^= 1
            path.write_bytes(bytes(content))
        else:
            kept = world.hub.blobs.write(io.BytesIO(other.to_zip()), limit_bytes=2**20)
            version.blob_id, version.wrapped_key = kept.id, kept.wrapped_key
            version.size, version.sealed_digest = kept.size, kept.sha256
            if how == "replaced with its digest":
                version.digest = other.digest
    words = "has not allowed" if how == "replaced with its digest" else "are not the ones that were registered"
    refused = world.ask(fresh=True)
    assert refused.status_code in (403, 409)
    assert words in refused.json()["problem"]
    assert world.spent() == "1"
    job = ended(world, job_id)
    assert job["state"] == "denied"
    assert words in str(job["error"])
    with world.hub.store.reading() as session:
        (entry,) = session.query(AuditEntry).filter_by(action="job.end", target=f"job:{job_id}")
        assert entry.outcome == "refused"


def test_the_policy_decides_before_the_owners_list_is_told(world: World) -> None:
    made = world.publish(k_means_version())
    world.allow(made)
    ada = user_id(world.hub, "ada")
    pinned = (AlgorithmReference("k-means", "1.0.0", made["digest"]),)
    set_policy(world.hub, world.dataset, policy(world.dataset, ada, algorithms=pinned))
    assert world.ask(verb="preview").status_code == 200
    set_policy(
        world.hub,
        world.dataset,
        policy(world.dataset, ada, algorithms=(AlgorithmReference("k-means", "1.0.0", "0" * 64),)),
    )
    refused = world.ask(verb="preview")
    assert refused.status_code == 403
    assert refused.json()["problem"] == "The owner has not allowed this algorithm and version."
    assert world.ask("nothing@1.0.0", verb="preview").json()["problem"] == refused.json()["problem"]
    stranger = world.client_for("eve", AccountRole.DATA_USER, of="east")
    assert world.ask(verb="preview", by=stranger).status_code == 404


def test_unknown_algorithms_and_drafts_are_refused_alike(world: World) -> None:
    world.upload(k_means_version())
    world.work()
    assert world.ask("nothing@1.0.0").status_code == 403
    assert world.ask("k-means@1.0.0").status_code == 403
    assert world.ask("k-means").status_code == 422
    assert world.spent() == "0"


def test_foreign_code_gets_only_columns_that_may_be_used_in_every_way(world: World) -> None:
    world.allow(world.publish(k_means_version()))
    ada = user_id(world.hub, "ada")
    hidden = policy(world.dataset, ada, hidden=("age",))
    set_policy(world.hub, world.dataset, hidden)
    unknown = world.ask(verb="preview")
    assert 'no column "age"' in unknown.json()["problem"]
    assert world.ask(verb="preview", columns=("nothing",)).status_code == unknown.status_code
    partly = policy(world.dataset, ada)
    limited = ColumnRule(uses=frozenset({Use.FILTER, Use.MEASURE}))
    columns = type(partly.columns)(named=(("age", limited),), others=partly.columns.others)
    set_policy(world.hub, world.dataset, partly.next_version(columns=columns))
    assert world.ask(verb="preview").status_code == 403


def test_persons_are_protected_where_their_column_is_hidden(world: World) -> None:
    owner, ada = user_id(world.hub, "olga"), user_id(world.hub, "ada")
    dataset = ready_dataset(
        world.hub, subject(world.hub, owner), name="persons", unit="patient", max_rows_per_unit=3, epsilon="3"
    )
    set_policy(world.hub, dataset, policy(dataset, ada, hidden=("patient",)))
    other = type(world)(**{**vars(world), "dataset": dataset})
    assert other.allow(other.publish(k_means_version())).status_code == 201
    asked = other.ask()
    assert asked.status_code == 202, asked.text
    assert ended(other, asked.json()["id"])["state"] == "done"
    result = world.user.get(f"{API}/jobs/{asked.json()['id']}/result").json()
    assert (result["guarantee"]["unit"], result["guarantee"]["adjacency"]) == ("patient", "user")
    assert 'no column "patient"' in other.ask(verb="preview", columns=("patient",)).json()["problem"]


def test_prices_and_refusals_do_not_depend_on_rows(world: World) -> None:
    """The same question about an empty table is planned to the same text."""
    owner, ada = user_id(world.hub, "olga"), user_id(world.hub, "ada")
    world.allow(world.publish(k_means_version()))
    one = "patient,age,sex,diagnosis\np1,20,F,flu\n"
    dataset = ready_dataset(world.hub, subject(world.hub, owner), name="one", content=one)
    set_policy(world.hub, dataset, policy(dataset, ada))
    small = type(world)(**{**vars(world), "dataset": dataset})
    (allowed,) = world.owner.get(f"{API}/datasets/{world.dataset}/algorithms").json()["items"]
    small.allow({"name": "k-means", "version": "1.0.0", "digest": allowed["digest"]})
    assert small.ask(verb="preview").json() == world.ask(verb="preview").json()


BAD_CHOICES: list[tuple[dict[str, Any], str]] = [
    ({"blocks": 3}, "runs on 10 to 200 blocks"),
    ({"blocks": 200}, "3,600 are the most"),
    ({"parameters": {"groups": 99}}, 'parameter "groups" is not allowed'),
    ({"parameters": {"groups": True}}, 'parameter "groups" is not allowed'),
    ({"inputs": {"other": ["age"]}}, 'no input "other"'),
    ({"epsilon": None}, "needs epsilon"),
    ({"epsilon": "0"}, "epsilon"),
    ({"columns": ("sex",)}, "does not hold numbers"),
]


def test_choices_are_refused_before_anything_is_spent(world: World) -> None:
    world.allow(world.publish(k_means_version()))
    for changes, words in BAD_CHOICES:
        refused = world.ask(**changes)
        assert refused.status_code == 422
        assert words in refused.json()["problem"]
    assert world.spent() == "0"


def test_a_deleted_dataset_keeps_no_permissions(world: World) -> None:
    world.allow(world.publish(k_means_version()))
    assert world.owner.delete(f"{API}/datasets/{world.dataset}").status_code == 204
    with world.hub.store.reading() as session:
        assert session.query(AlgorithmAllowance).count() == 0


def test_only_owners_of_a_dataset_allow(world: World) -> None:
    made = world.publish(k_means_version())
    body = {"algorithm": "k-means@1.0.0", "digest": made["digest"], "has_read": True}
    path = f"{API}/datasets/{world.dataset}/algorithms"
    assert world.user.post(path, json=body).status_code == 403
    assert world.provider.post(path, json=body).status_code == 403
    foreign = world.client_for("otto", AccountRole.DATA_OWNER, of="west")
    assert foreign.post(path, json=body).status_code == 404
    assert world.owner.post(path, json=body).status_code == 201
