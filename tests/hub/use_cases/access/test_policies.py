from __future__ import annotations

import json
from typing import Any

from cloister.accounting.budget import Budget
from cloister.core.exact import number
from cloister.hub.domain.roles import AccountRole
from cloister.hub.store.models import Organisation
from tests.hub.use_cases.access.conftest import API, Scene, role

SHOWN = ["filter", "group_by", "measure"]


def test_a_policy_is_kept_as_it_was_written(scene: Scene) -> None:
    scene.user("ada")
    saved = scene.save(
        discoverable=True,
        two_person=True,
        rows="age >= 18",
        columns={"patient": "forbidden", "age": ["measure"]},
        roles=[role("researchers", "ada", limits={"user": {"epsilon": "1/2"}})],
    )
    document = saved["document"]
    assert saved["version"] == document["version"] == 2
    again = scene.owner.put(f"{scene.place}/policy", json={"based_on": 2, "policy": document}).json()
    assert again["version"] == 2, "what is the same is no new version"
    yaml = "discoverable: true\nroles:\n- name: all\n  members: {everyone: true}\n  rules: []\n"
    for content in (yaml, json.dumps(document | {"rows": "age >= 21", "version": scene.version() + 1})):
        version = scene.version()
        answer = scene.owner.put(f"{scene.place}/policy", json={"based_on": version, "text": content})
        assert answer.status_code == 200, answer.text
        assert answer.json()["version"] == version + 1


def test_a_policy_that_does_not_fit_is_refused_with_its_place(scene: Scene) -> None:
    cases: list[tuple[dict[str, Any], int, str]] = [
        ({"roles": [role("r", "nobody")]}, 422, 'roles[0].members.users[0]: there is no account "nobody".'),
        ({"roles": [role("r") | {"members": {"organisations": ["x"]}}]}, 422, "there is no organisation"),
        ({"roles": [role("r", operations=["query.cuont"])]}, 422, 'Did you mean "query.count"?'),
        ({"columns": {"salary": ["measure"]}}, 422, 'the table has no column "salary"'),
        ({"rows": "salary > 3"}, 422, "salary"),
        ({"rows": "age > 'x'"}, 422, "rows: "),
        ({"rows": "SELECT 1"}, 422, "condition"),
        ({"mode": "sdc"}, 409, 'write mode "dp", or make a new dataset.'),
        ({"object": "ds_other"}, 422, "object: this policy is for another object."),
        ({"version": 7}, 409, "leave the version out"),
        ({"surprise": 1}, 422, '"surprise" is not known here.'),
        ({"terms": {"policies": [{"object": "x", "version": 1, "digest": "d"}]}}, 422, "cannot be changed"),
    ]
    for document, status, told in cases:
        answer = scene.save(status=status, **document)
        assert told in answer["problem"] + answer["fix"]
    assert scene.version() == 1


def test_a_text_that_is_no_policy_is_refused(scene: Scene) -> None:
    twice = '{"discoverable": true, "discoverable": false}'
    for content in (twice, "{", "- a", "a: [", "discoverable: yes", "mode: !!x 1"):
        answer = scene.owner.put(f"{scene.place}/policy", json={"based_on": 1, "text": content})
        assert answer.status_code == 422, answer.text
    assert scene.owner.put(f"{scene.place}/policy", json={"based_on": 1}).status_code == 422
    assert scene.version() == 1


def test_only_the_newest_version_can_be_edited(scene: Scene) -> None:
    scene.save(discoverable=True)
    for send in (
        lambda: scene.owner.put(f"{scene.place}/policy", json={"based_on": 1, "policy": {}}),
        lambda: scene.owner.patch(f"{scene.place}/policy", json={"based_on": 1, "two_person": True}),
        lambda: scene.owner.post(
            f"{scene.place}/policy/template", json={"based_on": 1, "template": "private by default"}
        ),
    ):
        refused = send()
        assert refused.status_code == 409
        assert "version 2 is the newest, not 1" in refused.json()["problem"]
    assert scene.version() == 2


def test_versions_say_what_they_changed(scene: Scene) -> None:
    scene.user("ada")
    scene.save(discoverable=True, roles=[role("researchers", "ada")])
    scene.save(discoverable=True, columns={"patient": "forbidden"}, rows="age > 17", roles=[role("researchers")])
    listed = scene.owner.get(f"{scene.place}/policy/versions").json()["items"]
    assert [item["version"] for item in listed] == [3, 2, 1]
    assert listed[0]["changes"] == [
        "only rows with age > 17 count.",
        "column patient: hidden (before: see that it exists, select rows by it, group by it and measure it).",
        "In the role researchers: ada is out.",
    ]
    assert listed[1]["changes"] == [
        "Everybody can find the data now.",
        "The data may be used for research (before: no purpose).",
        "The role researchers is new.",
        "In the role researchers: ada is in.",
        "In the role researchers: now “may count rows and ask for sums, means and groups”.",
    ]
    assert listed[0]["author"] == "olga"
    second = scene.owner.get(f"{scene.place}/policy/versions/2").json()["document"]
    assert second["roles"][0]["members"]["users"] == ["ada"]
    assert scene.owner.get(f"{scene.place}/policy/versions/9").status_code == 404
    page = scene.owner.get(f"{scene.place}/policy/versions?limit=1").json()
    assert scene.owner.get(f"{scene.place}/policy/versions?limit=5&after={page['next']}").json()["items"] == listed[1:]


def test_parts_of_a_policy_can_be_changed_alone(scene: Scene) -> None:
    scene.user("ada")
    terms = {"purposes": ["research"], "retention_days": 30}
    column = {"uses": ["measure"], "terms": {"purposes": ["research.health"]}}
    scene.save(
        terms=terms, columns={"age": column}, roles=[role("researchers", "ada", not_before="2026-01-01T00:00:00+00:00")]
    )
    changed = scene.owner.patch(
        f"{scene.place}/policy",
        json={
            "based_on": 2,
            "discoverable": True,
            "purposes": ["teaching", "research.health"],
            "columns": {"age": ["filter"], "patient": []},
            "other_columns": ["group_by"],
            "rows": "age > 3",
            "roles": [
                {"name": "researchers", "operations": ["query.count"], "limits": {"user": {"epsilon": "0.5"}}},
                {"name": "trainers", "operations": ["ml.train"], "rows": "sex = 'F'"},
            ],
        },
    )
    assert changed.status_code == 200, changed.text
    document = changed.json()["document"]
    assert document["terms"] == {"purposes": ["research.health", "teaching"], "retention_days": 30}
    assert document["columns"]["age"] == {"uses": ["visible", "filter"], "terms": {"purposes": ["research.health"]}}
    assert document["columns"]["patient"] == "forbidden"
    assert document["other_columns"] == ["visible", "group_by"]
    assert document["roles"][0]["members"] == {"users": ["ada"]}
    assert document["roles"][0]["rules"] == [
        {
            "effect": "allow",
            "operations": ["query.count"],
            "not_before": "2026-01-01T00:00:00+00:00",
            "limits": {"user": {"epsilon": "1/2"}},
        }
    ]
    assert document["roles"][1]["rows"] == "sex = 'F'"
    for body, told in (
        ({"roles": [{"name": "trainers", "operations": ["policy.edit"]}]}, "in the JSON of the policy"),
        ({"columns": {"salary": ["measure"]}}, "salary"),
        ({"purposes": ["Anything goes"]}, "purpose"),
    ):
        refused = scene.owner.patch(f"{scene.place}/policy", json={"based_on": 3, **body})
        assert refused.status_code == 422
        assert told in refused.json()["problem"] + refused.json()["fix"]
    gone = scene.owner.patch(
        f"{scene.place}/policy", json={"based_on": 3, "rows": "", "roles": [{"name": "trainers", "remove": True}]}
    ).json()
    assert [item["name"] for item in gone["roles"]] == ["researchers"]
    assert gone["rows"] is None


def test_templates(scene: Scene) -> None:
    research = scene.owner.post(
        f"{scene.place}/policy/template", json={"based_on": 1, "template": "research by request"}
    ).json()
    assert research["discoverable"] is True
    assert {item["name"]: bool(item["uses"]) for item in research["columns"]}["patient"] is False
    own = scene.owner.post(
        f"{scene.place}/policy/template", json={"based_on": 2, "template": "open to one's organisation", "hidden": []}
    ).json()
    assert own["roles"][0]["groups"] == ["everybody of north"]
    assert scene.run(scene.user("nora", of="north"), purpose="teaching").status_code == 202
    assert scene.run(scene.user("ada")).status_code == 404
    unknown = scene.owner.post(f"{scene.place}/policy/template", json={"based_on": 3, "template": "wide open"})
    assert "research by request" in unknown.json()["fix"]


def test_members_come_and_go_at_once(scene: Scene) -> None:
    ada = scene.user("ada")
    scene.save(roles=[role("researchers"), role("south") | {"members": {"organisations": ["south"]}}])
    assert scene.run(ada).status_code == 202
    body = {"role": "researchers", "person": "ada", "until": "2090-01-01", "budget": {"epsilon": "0.2"}}
    added = scene.owner.put(f"{scene.place}/policy/members", json=body).json()
    assert added["roles"][0]["people"][0]["until"] == "2090-01-01T23:59:59+00:00"
    assert "The owner of Visits has changed what you may do." in scene.notices(ada)
    assert scene.run(ada, sql="SELECT AVG(age) AS x FROM data", epsilon="0.15").status_code == 409
    gone = scene.owner.post(f"{scene.place}/policy/revocations", json={"person": "ada"}).json()
    assert gone["still_in"] == ["south"]
    for body, status in (({"role": "nobody", "person": "ada"}, 422), ({"role": "researchers", "person": "eva"}, 422)):
        assert scene.owner.put(f"{scene.place}/policy/members", json=body).status_code == status


def test_the_mode_is_chosen_by_the_policy_until_the_dataset_is_open(scene: Scene) -> None:
    made = scene.owner.post(f"{API}/datasets", json={"name": "draft"}).json()["id"]
    place = f"{API}/datasets/{made}"
    saved = scene.owner.put(f"{place}/policy", json={"based_on": 1, "policy": {"mode": "sdc"}})
    assert saved.json()["mode"] == scene.owner.get(place).json()["mode"] == "sdc"


def test_limits_are_in_the_measure_of_the_budget(scene: Scene) -> None:
    made = scene.owner.post(f"{API}/datasets", json={"name": "rho"}).json()["id"]
    with scene.hub.store.writing() as session:
        ledger = scene.hub.store.ledger(session)
        ledger.open_account(made, budget=Budget(rho=number("1/2")), unit="row", adjacency="add_remove")
    place = f"{API}/datasets/{made}/policy"
    limited = role("researchers", limits={"user": {"epsilon": "1"}})
    refused = scene.owner.put(place, json={"based_on": 1, "policy": {"roles": [limited]}})
    assert "roles[0].rules[0].limits.user: the limit is in epsilon" in refused.json()["problem"]
    started = scene.owner.post(f"{place}/template", json={"based_on": 1, "template": "research by request"})
    assert started.json()["roles"][0]["limits"] == {}
    early = scene.owner.put(place, json={"based_on": 2, "policy": {"columns": {"age": SHOWN}}})
    assert early.status_code == 409
    assert early.json()["fix"] == "upload a CSV or Parquet file first."


def test_names_and_identifiers_mean_the_same(scene: Scene) -> None:
    scene.user("ada")
    with scene.hub.store.reading() as session:
        south = session.query(Organisation).filter_by(name="south").one().id
    members = {"users": ["ada"], "organisations": [south]}
    saved = scene.save(roles=[role("researchers") | {"members": members}])
    assert saved["document"]["roles"][0]["members"] == {"users": ["ada"], "organisations": ["south"]}
    identifier = saved["roles"][0]["people"][0]["id"]
    twice = role("researchers", "ada", identifier)
    assert "somebody is there twice" in scene.save(status=422, roles=[twice])["problem"]


def test_a_token_without_the_scope_changes_no_policy(scene: Scene) -> None:
    reader = scene.user("nora", AccountRole.DATA_USER, of="north")
    assert reader.put(f"{scene.place}/policy", json={"based_on": 1, "policy": {}}).status_code == 403
