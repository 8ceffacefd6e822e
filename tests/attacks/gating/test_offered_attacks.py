from __future__ import annotations

from typing import Any

import pytest

from cloister.attacks import AttackResult, GatePolicy, gate
from cloister.attacks.gating import _batteries as batteries
from cloister.attacks.gating.judgments import judge_excess
from cloister.attacks.release_attacks import Given, ReleaseAttack
from cloister.core.registry import Registry
from tests.attacks.gating.releases import anonymized, patients
from tests.attacks.synthetic.populations import people


def _result(**changes: Any) -> AttackResult:
    fields: dict[str, Any] = {
        "attack": "trial",
        "assumption": "tries",
        "success": 0.5,
        "baseline": 0.1,
        "interval": (0.45, 0.55),
        "confidence": 0.95,
        "trials": 100,
        "queries": 1,
        **changes,
    }
    return AttackResult(**fields)


@pytest.mark.parametrize(
    ("changes", "holds", "decides"),
    [
        ({}, False, True),
        ({"control": 0.42}, True, True),
        ({"control": 0.3, "control_interval": (0.2, 0.41)}, True, True),
        ({"control": 0.3, "control_interval": (0.2, 0.39)}, False, True),
        ({"interval": (0.1, 0.9), "success": 0.4}, True, False),
    ],
    ids=["beyond guessing", "no more than the control", "control uncertain", "beyond the control", "few cases"],
)
def test_an_excess_is_beyond_guessing_and_the_control(changes: dict[str, Any], holds: bool, decides: bool) -> None:
    judged = judge_excess(_result(**changes), policy=GatePolicy(max_excess=0.05))
    assert (judged.holds, judged.decides) == (holds, decides)
    assert "5 points more are allowed" in judged.sentence


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    """Offer one attack on each kind of table, and return what each is given."""
    given: list[dict[str, Any]] = []

    def inside(release: Any, *, sensitive: Any = None, quasi_identifiers: Any = None, original: Any = None) -> Any:
        given.append({"release": release, Given.SENSITIVE: sensitive, "quasi": quasi_identifiers, "original": original})
        return _result()

    def made_up(original: Any, synthetic: Any, *, control: Any = None, confidence: object = 0.5) -> Any:
        given.append({"original": original, "synthetic": synthetic, "control": control, "confidence": confidence})
        return _result()

    offered: Registry[ReleaseAttack] = Registry("attack")
    words = {"summary": "Try.", "example": "data.csv"}
    takes = ("release", "original", "quasi_identifiers", "sensitive")
    for name, judge in (("trial", judge_excess), ("not-judged", None)):
        entry = ReleaseAttack(name=name, kind="anonymized table", run=inside, takes=takes, judge=judge, **words)
        offered.register(name)(entry)
    takes = ("original", "synthetic", "control")
    offered.register("made-up")(
        ReleaseAttack(name="made-up", kind="synthetic table", run=made_up, takes=takes, judge=judge_excess, **words)
    )
    monkeypatch.setattr(batteries, "release_attacks", offered)
    return given


def test_the_gate_runs_what_is_offered_with_a_judge_for_each_sensitive_column(asked: list[dict[str, Any]]) -> None:
    release = anonymized(patients())
    found = gate(release)
    stands = {finding.attack: finding.stand for finding in found.findings}
    assert stands["trial of illness"] == "broken"
    assert not any(name.startswith("not judged") for name in stands)
    assert asked == [{"release": release, "sensitive": "illness", "quasi": None, "original": None}]


def test_without_a_control_what_is_offered_is_only_told(asked: list[dict[str, Any]]) -> None:
    original, made, control = (people(60, seed=seed) for seed in (1, 2, 3))
    for others, stand in ((None, "told"), (control, "broken")):
        found = gate(made, original=original, control=others, kind="synthetic table")
        assert {finding.attack: finding.stand for finding in found.findings}["made up"] == stand
    level = GatePolicy().confidence
    assert [(given["control"] is None, given["confidence"]) for given in asked] == [(True, level), (False, level)]
