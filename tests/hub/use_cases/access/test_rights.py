from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from cloister.hub.domain.roles import AccountRole
from cloister.hub.store.models import User
from tests.hub.use_cases.access.conftest import API, Scene, role
from tests.support.hub_datasets import ready_dataset, subject


@pytest.fixture
def figure(scene: Scene) -> Scene:
    """The worked example: R1 of U1 and U2 may query, R2 of U3 may train with A1."""
    for name in ("u1", "u2", "u3", "u4"):
        scene.user(name)
    trains = role("R2", "u3", operations=["ml.train"], algorithms=["a1@1.0.0"])
    scene.save(discoverable=True, roles=[role("R1", "u1", "u2"), trains])
    return scene


def test_two_roles_of_one_dataset(figure: Scene) -> None:
    expected = {
        ("u1", "query.sql"): 202,
        ("u2", "query.sql"): 202,
        ("u3", "a1"): 202,
        ("u3", "query.sql"): 403,
        ("u1", "a1"): 403,
        ("u3", "a2"): 403,
        ("u4", "query.sql"): 403,
        ("u4", "a1"): 403,
    }
    found = {case: figure.run(figure.user(case[0]), case[1]).status_code for case in expected}
    assert found == expected
    runs = [outcome for action, outcome in figure.audit() if action == "service.run"]
    assert runs.count("refused") == list(expected.values()).count(403)


def test_a_person_may_ask_whether_they_may(figure: Scene) -> None:
    cases: list[tuple[str, dict[str, str], bool, str]] = [
        ("u1", {"operation": "query.count", "purpose": "research.health"}, True, "You may do this."),
        ("u1", {"operation": "query.count", "purpose": "commercial"}, False, "The owner has not allowed this purpose."),
        ("u1", {"operation": "query.count"}, False, "Say what this is for."),
        ("u3", {"operation": "ml.train", "purpose": "research", "algorithm": "a1@1.0.0"}, True, "You may do this."),
        (
            "u3",
            {"operation": "ml.train", "purpose": "research", "algorithm": "a1@1.1.0"},
            False,
            "The owner has not allowed this algorithm and version.",
        ),
        (
            "u4",
            {"operation": "query.count", "purpose": "research"},
            False,
            "You have no access to this; you can ask its owner for it.",
        ),
    ]
    for user, asked, allowed, reason in cases:
        answer = figure.user(user).get(f"{figure.place}/access/decision", params=asked).json()
        assert (answer["allowed"], answer["reason"]) == (allowed, reason), asked
        assert "R1" not in str(answer)
        assert "R2" not in str(answer)


def test_the_owner_reads_the_whole_reason(figure: Scene) -> None:
    asked = {"person": "u3", "operation": "query.count", "purpose": "research"}
    answer = figure.owner.get(f"{figure.place}/policy/decision", params=asked).json()
    assert answer["reason"] == (
        "query.count was refused to u3, who is in the role R2, because its rules allow ml.train, not query.count."
    )
    assert figure.user("u3").get(f"{figure.place}/policy/decision", params=asked).status_code == 403


def test_standing_tells_what_concerns_the_person_and_nothing_else(figure: Scene) -> None:
    standing = figure.user("u3").get(f"{figure.place}/access").json()
    assert [item["operation"] for item in standing["may"]] == ["ml.train"]
    assert standing["may"][0]["algorithms"] == ["a1@1.0.0"]
    assert standing["may"][0]["purposes"] == ["research"]
    assert "R2" not in str(standing)
    assert "u1" not in str(standing)
    assert figure.user("u4").get(f"{figure.place}/access").json()["may"] == []


def test_owning_one_dataset_gives_nothing_on_another(scene: Scene) -> None:
    other = scene.user("otto", AccountRole.DATA_OWNER, AccountRole.DATA_USER, of="south")
    with scene.hub.store.reading() as session:
        otto = str(session.query(User.id).filter_by(name="otto").scalar())
    own = ready_dataset(scene.hub, subject(scene.hub, otto))
    asked = {"parameters": {"sql": "SELECT COUNT(*) AS n FROM data", "epsilon": "0.1"}, "purpose": "research"}
    assert other.post(f"{API}/datasets/{own}/services/query.sql/runs", json=asked).status_code == 202
    assert scene.run(other).status_code == 404
    scene.save(discoverable=True)
    assert scene.run(other).status_code == 403
    scene.save(discoverable=True, roles=[role("guests", "otto")])
    assert scene.run(other).status_code == 202
    for path in ("policy", "ledger", "audit"):
        assert other.get(f"{scene.place}/{path}").status_code == 403


def test_a_purpose_outside_of_the_terms_is_refused(scene: Scene) -> None:
    ada = scene.user("ada")
    scene.save(roles=[role("researchers", "ada")])
    expected = {"research": 202, "research.health": 202, "teaching": 403, "": 403}
    assert {purpose: scene.run(ada, purpose=purpose).status_code for purpose in expected} == expected


def test_access_ends_by_itself(scene: Scene) -> None:
    ada = scene.user("ada")
    soon, past = (datetime.now(UTC) + timedelta(days=step) for step in (1, -1))
    scene.save(discoverable=True, roles=[role("researchers", {"user": "ada", "until": soon.isoformat()})])
    assert scene.run(ada).status_code == 202
    scene.save(discoverable=True, roles=[role("researchers", {"user": "ada", "until": past.isoformat()})])
    refused = scene.run(ada)
    assert refused.status_code == 403
    assert refused.json()["problem"] == "You have no access to this; you can ask its owner for it."


def _error(answer: Any) -> tuple[int, dict[str, Any]]:
    return answer.status_code, answer.json()


def test_a_hidden_column_is_like_one_that_does_not_exist(scene: Scene) -> None:
    scene.user("manager"), scene.user("clerk")
    shown = ["filter", "group_by", "measure"]
    clerk = role("clerks", "clerk") | {"columns": {"age": "forbidden", "patient": "forbidden"}, "other_columns": shown}
    scene.save(roles=[role("managers", "manager"), clerk])
    assert '"age"' not in scene.user("clerk").get(scene.place).text
    for sql in ("AVG(age) AS x", "COUNT(*) AS x", "MAX(age) AS x"):
        hidden = f"SELECT {sql} FROM data WHERE age > 30"
        missing = hidden.replace("age", "agx")
        answers = [scene.run(scene.user("clerk"), sql=text) for text in (hidden, missing)]
        texts = [answer.text.replace("agx", "age") for answer in answers]
        assert [answer.status_code for answer in answers] == [422, 422]
        assert texts[0] == texts[1]
        previews = [
            scene.user("clerk").post(
                f"{scene.place}/services/query.sql/preview",
                json={"parameters": {"sql": text, "epsilon": "0.1"}, "purpose": "research"},
            )
            for text in (hidden, missing)
        ]
        assert previews[0].text == previews[1].text.replace("agx", "age")
        if "MAX" not in sql:
            assert scene.run(scene.user("manager"), sql=hidden).status_code == 202


def test_rows_depend_on_an_attribute_of_the_person(scene: Scene) -> None:
    for name, attributes in (("fay", {"sex": "F"}), ("max", {"sex": "M"}), ("sam", {})):
        scene.user(name)
        with scene.hub.store.writing() as session:
            session.query(User).filter_by(name=name).one().attributes = attributes
    rows = role("halves", "fay", "max", "sam") | {"rows": "sex = :sex"}
    scene.save(roles=[rows])
    counted = {}
    for name in ("fay", "max"):
        sql = "SELECT sex, COUNT(*) AS n FROM data GROUP BY sex"
        job = scene.run(scene.user(name), sql=sql, epsilon="1")
        assert job.status_code == 202, job.text
        scene.work()
        result = scene.user(name).get(f"{API}/jobs/{job.json()['id']}/result").json()["document"]
        values = {column["name"]: column["values"] for column in result["columns"]}
        counted[name] = dict(zip(values["sex"], values["n"], strict=True))
    # 60 rows of each; noise of scale 1 passes 25 once in 10^10 times.
    assert counted["fay"]["F"] > 35 > 25 > counted["fay"]["M"]
    assert counted["max"]["M"] > 35 > 25 > counted["max"]["F"]
    refused = scene.run(scene.user("sam"))
    assert refused.status_code == 403
    assert refused.json()["problem"] == "Your account lacks an attribute that the owner's policy needs."


def test_an_outsider_sees_only_what_is_discoverable(scene: Scene) -> None:
    eve = scene.user("eve")
    for path in ("", "/access", "/access/decision?operation=query.count", "/policy", "/policy/versions", "/audit"):
        hidden, missing = (eve.get(f"{API}/datasets/{item}{path}") for item in (scene.dataset, "ds_nothing"))
        assert _error(hidden) == _error(missing)
    missing = eve.get(f"{API}/datasets/ds_nothing/access")
    asked = eve.post(f"{scene.place}/requests", json={"purpose": "research", "operations": ["query.count"]})
    assert _error(asked) == _error(missing)
    assert eve.get(f"{API}/catalogue").json()["items"] == []
    scene.save(discoverable=True)
    entry = eve.get(scene.place).json()
    assert entry["columns"] == []
    assert [item["id"] for item in eve.get(f"{API}/catalogue").json()["items"]] == [scene.dataset]
    for path in ("/policy", "/policy/versions", "/audit", "/ledger", "/profiles"):
        assert eve.get(f"{scene.place}{path}").status_code == 403
    assert eve.put(f"{scene.place}/policy", json={"based_on": 2, "policy": {}}).status_code == 403
