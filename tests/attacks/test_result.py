from __future__ import annotations

import json
from typing import Any

import pytest

from cloister.attacks import AttackResult
from cloister.core.confidence import binomial_interval


def outcome(**changes: Any) -> AttackResult:
    fields: dict[str, Any] = {
        "attack": "differencing",
        "assumption": "asks twice",
        "success": 0.9,
        "baseline": 0.2,
        "interval": (0.8, 0.95),
        "confidence": 0.95,
        "trials": 50,
        "queries": 100,
        **changes,
    }
    return AttackResult(**fields)


def test_success_is_never_a_bare_percentage() -> None:
    assert str(outcome()) == "differencing: success 90% (95% interval 80% to 95%), baseline 20%"
    assert outcome().advantage == pytest.approx(0.7)


def test_an_attack_works_only_if_its_whole_interval_is_above_guessing() -> None:
    assert outcome().succeeded
    assert "The attack works: right in 90% of cases" in outcome().verdict
    doubtful = outcome(baseline=0.85)
    assert not doubtful.succeeded
    assert "no more than guessing" in doubtful.verdict
    assert doubtful.verdict.endswith("Others may find more.")


def test_the_summary_names_attacker_cost_control_and_remedy() -> None:
    rows = dict(outcome(control=0.5, mitigation=("add noise",)).summary())
    assert rows["attacker"] == "asks twice"
    assert rows["cost"] == "50 trials, 100 answers seen"
    assert rows["control"] == "50%"
    assert rows["what helps"] == "add noise"
    assert rows["advantage"] == "+70 points"
    assert "control" not in dict(outcome().summary())


def test_json_starts_with_a_version_marker() -> None:
    found = outcome().to_dict()
    assert next(iter(found.items())) == ("schema", "cloister.attack/1")
    assert json.loads(json.dumps(found))["interval"] == [0.8, 0.95]


def test_the_interval_is_that_of_clopper_and_pearson() -> None:
    assert binomial_interval(0, 10, confidence=0.95) == pytest.approx((0, 0.308497), abs=1e-6)
    assert binomial_interval(10, 10, confidence=0.95) == pytest.approx((0.691503, 1), abs=1e-6)


def test_the_chart_has_the_baseline_beside_the_success() -> None:
    figure = outcome(control=0.5).plot()
    assert figure.title == "How often an attacker is right: differencing"
    text = json.dumps(figure.to_dict())
    assert all(word in text for word in ("this attack", "guessing", "control"))
    assert "control" not in json.dumps(outcome().plot().to_dict())


def test_an_attack_that_does_no_better_than_its_control_did_not_work() -> None:
    assert outcome(control=0.5).succeeded
    assert outcome(control=0.5).excess == pytest.approx(0.4)
    assert outcome(control=0.1).excess == pytest.approx(0.7)
    assert not outcome(control=0.85).succeeded
    assert not outcome(control=0.7, control_interval=(0.5, 0.85)).succeeded


def test_a_report_has_outcome_attacker_numbers_and_advice_but_no_records() -> None:
    report = outcome(mitigation=("add noise",), worst=((4711, 0.99),)).report()
    text = report.to_markdown()
    assert report.verdict is not None
    assert report.verdict.status == "bad"
    for words in ("The attack works", "asks twice", "this attack", "guessing", "add noise", "no proof of safety"):
        assert words in text
    assert "4711" not in text + report.to_json()
    assert outcome(baseline=0.9).report().verdict.status == "attention"


def test_a_report_is_written_where_it_is_wanted(tmp_path) -> None:
    outcome().report(tmp_path / "attack.html", title="Our attack")
    assert "Our attack" in (tmp_path / "attack.html").read_text()


def test_too_few_cases_are_no_failure() -> None:
    few = outcome(success=0.5, baseline=0.4, interval=(0.1, 0.9), trials=4)
    assert few.verdict == (
        "This attack was right in 50% of cases, guessing in 40%. There were too few cases to tell (4 trials). "
        "Others may find more."
    )
    enough = outcome(success=0.4, baseline=0.4, interval=(0.35, 0.45))
    assert "no more than guessing" in enough.verdict
    assert "too few" not in enough.verdict
    assert "too few" not in outcome(control=0.9).verdict
