from __future__ import annotations

import json
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import KNeighborsClassifier
from sklearn.tree import DecisionTreeClassifier

import cloister as cl
from cloister.attacks import AttackResult, GatePolicy, gate
from cloister.attacks.gating import decide, judgments
from cloister.attacks.gating.findings import Stand
from cloister.core.guarantees import ApproxDP, PureDP, RenyiDP, ZeroConcentratedDP
from cloister.errors import ParameterError, ParameterTypeError
from tests.attacks.gating.releases import anonymized, correlated, patients, table

POLICY = GatePolicy(max_certain=0.01)


def stands(result) -> dict[str, str]:
    return {finding.attack: str(finding.stand) for finding in result.findings}


def test_a_homogeneous_release_is_refused_with_the_reason() -> None:
    result = gate(anonymized(patients(known_by_place=True)))
    assert not result.publish
    assert stands(result)["homogeneity of illness"] == "broken"
    assert "follows with certainty from their class" in result.verdict
    assert result.verdict.startswith("Do not publish.")


def test_a_diverse_release_passes() -> None:
    models = cl.LDiversity("illness", l=3), cl.TCloseness("illness", t=0.5)
    result = gate(anonymized(patients(), *models))
    assert result.publish
    assert {name for name, stand in stands(result).items() if stand != "held"} == {"own warnings"}
    assert "Nothing that was tried speaks against publishing." in str(result)
    assert "linkage" in result.verdict


def test_a_smaller_class_than_the_policy_asks_for_is_refused() -> None:
    release = anonymized(patients(), cl.LDiversity("illness", l=3))
    result = gate(release, policy=GatePolicy(max_match=0.01))
    assert stands(result)["linkage"] == "broken"
    assert "1% allowed" in result.verdict


def test_two_tables_of_correlated_people_are_refused() -> None:
    frame = correlated()
    models = [cl.LDiversity("illness", l=2, kind="frequency")]
    release = cl.anonymize(table_of(frame), models=models, algorithm="anatomy")
    result = gate(release)
    assert not result.publish
    assert stands(result) == {"learning over groups": "broken"}
    again = gate((release.quasi, release.sensitive), original=frame)
    assert not again.publish


def table_of(frame: pd.DataFrame):
    opened = cl.open_table(frame)
    schema = cl.Schema.infer(opened).confirm().with_role("job", "quasi").with_role("age", "quasi")
    return opened.with_schema(schema.with_role("illness", "sensitive"))


def test_copied_rows_are_refused_and_independent_ones_pass() -> None:
    people = patients(3000).sample(frac=1, random_state=3, ignore_index=True)
    people["weight"] = (people.index * 7919 % 90_001) / 1000
    original, control, fresh = (people.iloc[start : start + 1000].reset_index(drop=True) for start in (0, 1000, 2000))
    copied = pd.concat([fresh.iloc[:700], original.iloc[:300]], ignore_index=True)
    clean = gate(fresh, original=original, control=control, kind="synthetic table", sensitive="illness")
    assert clean.publish
    assert stands(clean)["promise"] == "told"
    bad = gate(copied, original=original, control=control, kind="synthetic table", sensitive="illness")
    assert not bad.publish
    assert stands(bad)["singling out"] == "broken"


def test_without_control_only_a_promise_that_holds_lets_a_synthetic_table_pass() -> None:
    frame, people = patients(1200)[600:].assign(age=lambda data: (data["age"] * 7) % 60 + 20), patients()
    asked = {"original": people, "kind": "synthetic table", "sensitive": "illness"}
    assert "(a control)" in gate(frame, **asked).verdict
    assert gate(frame, guarantee=PureDP(epsilon=1), **asked).publish
    assert gate(frame, guarantee=ApproxDP(epsilon=1, delta=1e-6), **asked).publish
    assert gate(frame, guarantee=ZeroConcentratedDP(rho=0.1), **asked).publish
    assert not gate(people, guarantee=PureDP(epsilon=1), **asked).publish
    for weak in (
        PureDP(epsilon=100),
        ApproxDP(epsilon=1, delta=0.5),
        ZeroConcentratedDP(rho=50),
        RenyiDP(alpha=2, epsilon=1),
        PureDP(epsilon=1, unit="cell"),
    ):
        assert not gate(frame, guarantee=weak, **asked).publish
    seeded = cl.synth.IndependentMarginals(epsilon=1, random_state=1)
    with pytest.warns(cl.errors.SeededRandomnessWarning):
        promise = seeded.fit(table(frame)).guarantee_
    assert not gate(frame, guarantee=promise, **asked).publish


def test_an_attack_that_was_not_run_speaks_against_publishing(monkeypatch: pytest.MonkeyPatch) -> None:
    moments = iter([0.0, 500.0, 1000.0, 1500.0, 2000.0, 2500.0])
    monkeypatch.setattr(decide.time, "monotonic", lambda: next(moments))
    result = gate(anonymized(patients(), cl.LDiversity("illness", l=3)))
    assert not result.publish
    assert {finding.stand for finding in result.findings if finding.is_needed} >= {Stand.NOT_RUN}
    assert "the time limit was over" in result.verdict


def test_an_attack_that_fails_speaks_against_publishing() -> None:
    result = gate(patients(), original=patients(), kind="anonymized table", quasi_identifiers="nothing")
    assert not result.publish
    assert all("could not be run" in reason for reason in result.reasons)


def test_the_report_joins_the_releases_own_and_names_nobody() -> None:
    release = anonymized(patients(known_by_place=True))
    result = gate(release)
    report = result.report(title="Before publishing")
    assert report.title == "Before publishing"
    assert report.verdict is not None
    assert report.verdict.status == "bad"
    own = {section.title for section in release.report().sections}
    assert own < {section.title for section in report.sections}
    assert "The gate" in report.to_markdown()
    assert json.loads(json.dumps(result.to_dict()))["schema"] == "cloister.gate/1"
    assert "worst" not in json.dumps(result.to_dict())


def test_the_result_prints_draws_and_writes_itself(tmp_path) -> None:
    release = anonymized(patients(), cl.LDiversity("illness", l=3))
    result = gate(release)
    rows = dict(result.summary())
    assert rows["decision"] == "nothing that was tried speaks against publishing"
    assert "linkage" in json.dumps(result.plot().to_dict())
    result.report(tmp_path / "gate.html")
    assert "The gate" in (tmp_path / "gate.html").read_text()


def test_progress_is_told_in_order() -> None:
    told = []
    gate(anonymized(patients()), progress=lambda share, attack: told.append((share, attack)))
    assert [share for share, _ in told] == sorted(share for share, _ in told)
    assert told[-1][1] == "linkage by distance"


def test_a_policy_has_known_limits_within_their_range() -> None:
    assert GatePolicy.from_dict({"max_match": 0.1}).to_dict()["max_match"] == 0.1
    with pytest.raises(ParameterError, match="max_match, max_certain"):
        GatePolicy.from_dict({"max_matches": 0.1})
    with pytest.raises(ParameterError, match="max_match"):
        GatePolicy(max_match=2)
    with pytest.raises(ParameterTypeError, match="GatePolicy"):
        gate(patients(), policy={"max_match": 0.1})  # type: ignore[arg-type]


def test_what_kind_of_release_it_is_must_be_said_where_it_cannot_be_seen() -> None:
    with pytest.raises(ParameterError, match='kind="anonymized table"'):
        gate(patients(), original=patients())
    with pytest.raises(ParameterError, match="original="):
        gate(patients(), kind="synthetic table")
    with pytest.raises(ParameterError, match="quasi_identifiers="):
        gate(patients(), original=patients(), kind="anonymized table")


def _digits(rows: int, start: int):
    place = np.arange(start, start + rows)
    features = np.stack([np.sin(place * step) for step in (1.3, 2.9, 4.7, 6.1)], axis=1)
    return features, (place * 7 % 3 == 0).astype(int)


@pytest.mark.slow
def test_a_model_that_remembers_its_rows_is_refused() -> None:
    members, others = _digits(300, 0), _digits(300, 1000)
    learned = RandomForestClassifier(20, random_state=0).fit(*members)
    found = gate(learned, original=members, control=others)
    assert found.kind == "model"
    assert stands(found) == {"promise": "told", "stored records": "held", "membership": "broken"}
    copied = gate(KNeighborsClassifier(1).fit(*members), original=members, control=others)
    assert stands(copied)["stored records"] == "broken"


@pytest.mark.slow
def test_a_private_model_within_its_promise_passes() -> None:
    members, others = _digits(300, 0), _digits(300, 1000)
    learned = cl.learn.PrivateTree(epsilon=1, bounds=(-1, 1), classes=[0, 1]).fit(*members)
    found = gate(learned, original=members, control=others)
    assert found.publish
    assert "epsilon" in found.promise


@pytest.mark.slow
def test_a_promise_is_no_excuse_for_an_attack_that_works() -> None:
    members, others = _digits(300, 0), _digits(300, 1000)
    learned = DecisionTreeClassifier(random_state=0).fit(*members)
    learned.guarantee_ = PureDP(epsilon=10)
    assert stands(gate(learned, original=members, control=others))["membership"] == "broken"


def test_too_few_rows_decide_nothing() -> None:
    members, others = _digits(12, 0), _digits(12, 1000)
    found = gate(LogisticRegression().fit(*members), original=members, control=others)
    assert not found.publish
    assert stands(found)["membership"] in {"not run", "broken"}


def test_a_model_needs_rows_of_both_kinds() -> None:
    learned = KNeighborsClassifier(1).fit(*_digits(30, 0))
    for control in (None, (), _digits(30, 0)):
        with pytest.raises(ParameterError, match="control="):
            gate(learned, original=_digits(30, 0), control=control)


def described(frame: pd.DataFrame, **roles: str) -> Any:
    opened = cl.open_table(frame)
    schema = cl.Schema.infer(opened).confirm()
    for name, role in roles.items():
        schema = schema.with_role(name, role)
    return opened.with_schema(schema)


def test_a_column_that_names_people_or_that_nothing_describes_is_refused() -> None:
    frame = patients()
    frame["name"] = [f"person {place}" for place in range(len(frame))]
    original = described(frame, age="quasi", district="quasi", illness="sensitive", name="identifier")
    for shown, words in ((frame, "names people"), (frame.rename(columns={"name": "alias"}), "does not describe")):
        found = gate(shown, original=original, kind="anonymized table")
        assert stands(found)["columns"] == "broken"
        assert words in found.verdict
        assert "person 7" not in json.dumps(found.to_dict())


def test_people_who_fit_no_row_were_not_tried() -> None:
    frame = patients()
    original = described(frame, age="quasi", district="quasi", illness="sensitive")
    shown = frame.assign(age=[f"{age} years" for age in frame["age"]])
    found = gate(shown, original=original, kind="anonymized table")
    assert stands(found)["linkage"] == "not run"
    assert "fit no released row" in found.verdict


def test_a_release_of_means_is_attacked_by_distance() -> None:
    frame = patients(300)[["age"]].assign(weight=np.arange(300) * 7919 % 901 / 10)
    table = described(frame, age="quasi", weight="quasi")
    found = gate(cl.anonymize(table, models=[cl.KAnonymity(k=2)], algorithm="mdav"))
    assert "linkage" not in stands(found)
    assert stands(found)["linkage by distance"] == "broken"


def test_rows_of_one_person_are_not_taken_for_a_crowd() -> None:
    frame = patients().assign(person=lambda data: [f"p{age}" for age in data["age"]])
    original = described(frame, age="quasi", district="quasi", illness="sensitive", person="identifier")
    found = gate(frame.drop(columns="person"), original=original, kind="anonymized table")
    assert stands(found)["rows of one person"] == "broken"
    assert not found.publish


def test_groups_of_one_value_are_refused() -> None:
    quasi = pd.DataFrame({"age": [1, 2, 3, 4], "GroupID": [0, 0, 1, 1]})
    second = pd.DataFrame({"GroupID": [0, 1, 1], "illness": ["flu", "flu", "cold"], "Count": [2, 1, 1]})
    truth = pd.DataFrame({"age": [1, 2, 3, 4], "illness": ["flu", "flu", "flu", "cold"]})
    found = gate((quasi, second), original=truth)
    assert stands(found)["homogeneous groups"] == "broken"


def test_swapped_answers_are_an_attack_that_works() -> None:
    result = AttackResult(
        attack="x",
        assumption="x",
        success=0.0,
        baseline=0.5,
        interval=(0.0, 0.03),
        confidence=0.99,
        trials=1,
        queries=1,
    )
    judged = judgments.judge_groups(result, policy=GatePolicy())
    assert not judged.holds
    assert "turns them around" in judged.sentence


def test_copies_are_found_without_a_control_whatever_is_promised() -> None:
    frame = patients().assign(weight=np.arange(600) * 7919 % 90_001 / 1000)
    asked = {"original": frame, "kind": "synthetic table", "guarantee": PureDP(epsilon=1), "sensitive": "illness"}
    found = gate(frame, **asked)
    assert stands(found)["copies"] == "broken"
    mixed = frame.assign(weight=frame["weight"].to_numpy()[::-1])
    assert 'Of the values of "weight" that are somebody\'s own, 600 of 600' in gate(mixed, **asked).verdict


def test_a_part_of_the_columns_that_was_copied_is_found() -> None:
    people = patients(3000).sample(frac=1, random_state=3, ignore_index=True)
    people["zip"] = people.index * 7919 % 400
    people["note"] = people.index * 31 // 7 % 9
    original, control, fresh = (people.iloc[start : start + 1000].reset_index(drop=True) for start in (0, 1000, 2000))
    shown = fresh.assign(age=original["age"], zip=original["zip"], illness=original["illness"])
    asked = {"control": control, "kind": "synthetic table", "sensitive": "illness"}
    others = {"district": "insensitive", "note": "insensitive"}
    table = described(original, age="quasi", zip="quasi", illness="sensitive", **others)
    found = gate(shown, original=table, **asked)
    assert stands(found)["inference of illness from quasi-identifiers"] == "broken"


def test_odd_input_is_refused_or_speaks_against_publishing() -> None:
    with pytest.raises(ParameterTypeError, match="guarantee"):
        gate(patients(), original=patients(), kind="synthetic table", guarantee="trust me")  # type: ignore[arg-type]
    huge = patients().assign(age=[10**30 + place for place in range(600)])
    found = gate(huge, original=huge, kind="synthetic table", guarantee=PureDP(epsilon=1), control=huge[:5])
    assert not found.publish


def test_nothing_is_tried_on_a_column_that_is_not_sensitive_and_this_is_told() -> None:
    frame = patients(known_by_place=True)
    table = described(frame, age="quasi", district="quasi", illness="insensitive")
    found = gate(cl.anonymize(table, models=[cl.KAnonymity(k=5)], algorithm="mondrian"))
    assert stands(found)["sensitive columns"] == "told"


def test_a_rare_value_is_found_also_where_another_one_is_common() -> None:
    place = np.arange(2000)
    illness = np.where(place < 99, "hiv", "none")
    frame = pd.DataFrame({"age": np.where(place < 100, 30, 31 + place % 4), "illness": illness})
    found = gate(
        frame, original=frame, kind="anonymized table", quasi_identifiers=["age"], sensitive="illness", policy=POLICY
    )
    assert stands(found)["belief in illness"] == "broken"


def test_whole_numbers_beyond_floats_are_compared_and_never_quoted() -> None:
    frame = patients().assign(account=[2**60 + place for place in range(600)])
    asked = {"original": frame, "kind": "synthetic table", "guarantee": PureDP(epsilon=1), "sensitive": "illness"}
    found = gate(frame, **asked)
    assert stands(found)["copies"] == "broken"
    assert str(2**60)[:10] not in json.dumps(found.to_dict())


def test_what_cannot_be_looked_at_speaks_against_publishing(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*asked: Any) -> Any:
        raise ValueError("cancer of p7")

    monkeypatch.setattr(decide, "screen_release", broken)
    found = gate(anonymized(patients(), cl.LDiversity("illness", l=3)))
    assert not found.publish
    assert "p7" not in json.dumps(found.to_dict())
