from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

from cloister.local import Collector, Reports, Survey, SurveyQuestion
from cloister.local.survey import _fake_reports, example_survey, simulate
from cloister.local.survey._fake_reports import FALSE_ALARM, check_all, movement

HONEST = 4000


@pytest.fixture(autouse=True)
def _no_alarm_by_chance(monkeypatch: pytest.MonkeyPatch) -> None:
    """Suspect genuine reports ten thousand times more rarely than surveys do: tests run often."""
    monkeypatch.setattr(_fake_reports, "FALSE_ALARM", FALSE_ALARM / 10_000)


def filled(survey: Survey, **options: Any) -> Collector:
    collector = Collector(survey)
    collector.add_lines(simulate(survey, respondents=HONEST, **options).lines())
    return collector


@pytest.fixture(scope="module")
def honest_lines() -> list[str]:
    return list(simulate(example_survey(), respondents=HONEST).lines())


def attacked(
    survey: Survey, honest: list[str], question: str, y: Any, *, fakes: int, level: str = "medium"
) -> Collector:
    """Honest people, and fake ones whose report to one question is always the same."""
    collector = Collector(survey)
    sent = survey.answer({question: _any(survey.question(question))}, levels={question: level}).to_dict()
    sent["reports"][0]["y"] = y
    lines = [*honest, *(json.dumps({**sent, "id": f"{number:032x}"}) for number in range(fakes))]
    assert collector.add_lines(lines).accepted == len(lines)
    return collector


def _any(question: SurveyQuestion) -> Any:
    if question.bounds is not None:
        return float(question.bounds[0])
    return [question.options[0]] if question.most else question.options[0]


def test_genuine_reports_raise_no_alarm() -> None:
    result = filled(example_survey(), mix={"low": 0.3, "medium": 0.4, "high": 0.3}).estimate()
    assert result.is_plausible
    assert all(not one.alarms for one in result.questions)
    checks = [level.check for one in result.questions for level in one.levels if level.check is not None]
    assert len(checks) == 17
    assert sum(check.false_alarm for check in checks) == pytest.approx(float(FALSE_ALARM) / 10_000)


@pytest.mark.parametrize(
    "answers",
    [
        {"married": "yes", "occupation": "Sales", "commute": [], "sleep": 0, "age": 16, "satisfaction": 5},
        {"married": "no", "occupation": "Security", "commute": ["Car", "Bicycle"], "sleep": 16, "age": 99},
    ],
)
def test_odd_but_true_answers_raise_no_alarm(answers: dict[str, Any]) -> None:
    """Everybody has the same extreme answers: that is possible, and devices made the reports."""
    survey = example_survey()
    reports = {
        (name, level): survey.protocol(name, level).randomize([survey.question(name).encode_answers(value)] * 5000)
        for name, value in answers.items()
        for level in survey.levels_of(name)
        if level != "off"
    }
    assert all(check.is_plausible for check in check_all(reports).values())


@pytest.mark.parametrize(
    ("question", "y", "test"),
    [
        ("occupation", "1" * 14, "ones"),
        ("commute", "1" * 5, "ones"),
        ("commute", "0" * 5, "ones"),
        ("sleep", None, "cells"),
        ("sleep", [0, 1], "parts"),
    ],
)
def test_an_attack_is_found_where_it_happens(question: str, y: Any, test: str, honest_lines: list[str]) -> None:
    survey = example_survey()
    if y is None:
        y = [1, survey.protocol("sleep", "medium").output_space.to_dict()["fields"][1]["high"]]
    result = attacked(survey, honest_lines, question, y, fakes=1500).estimate()
    assert not result.is_plausible
    assert {one.question.id for one in result.questions if one.alarms} == {question}
    assert [level for level, _ in result[question].alarms][:1] == ["medium"]
    check = next(level.check for level in result[question].levels if level.name == "medium")
    assert check is not None
    assert test in {finding.name for finding in check.alarms}
    told = result.to_dict()
    assert told["plausible"] is False
    assert told["false_alarm"] == 1e-6
    assert "Some reports do not look like" in json.dumps(result.report().to_dict())


@pytest.mark.parametrize("protocol", ["duchi", "piecewise", "hybrid"])
def test_fake_numbers_are_found(protocol: str) -> None:
    question = SurveyQuestion(id="n", kind="number", text="?", bounds=(0, 10), protocol=protocol)
    survey = Survey(id="s", title="t", collector="c", questions=(question,))
    made = survey.protocol("n", "medium")
    honest = made.randomize(np.linspace(0, 10, 4000))
    top = np.sort(honest.payload, order=list(honest.payload.dtype.names or ()))[-1:]
    fake = Reports(made, np.concatenate([honest.payload[:1500], np.repeat(top, 4500)]))
    checks = check_all({("n", "medium"): fake, ("n", "low"): survey.protocol("n", "low").randomize([3.0] * 4000)})
    assert not checks["n", "medium"].is_plausible
    assert checks["n", "low"].is_plausible


def test_fake_people_move_an_estimate_up_to_the_bound_and_not_beyond() -> None:
    """Look at what single reports count, at the level where they count most."""
    survey = example_survey()
    for name, level in (("occupation", "high"), ("married", "high"), ("sleep", "high"), ("satisfaction", "high")):
        protocol: Any = survey.protocol(name, level)
        bound = movement(survey, name, fake_share=1)
        rows = protocol.randomize([survey.question(name).encode_answers(_any(survey.question(name)))] * 300)
        if survey.question(name).is_mean:
            low, high = protocol.grid.ends
            readings = protocol.debias(rows)
            assert readings.max() - low == pytest.approx(bound.up)
            assert high - readings.min() == pytest.approx(bound.down)
            continue
        shares = [protocol.estimate(rows[place : place + 1]).frequencies for place in range(300)]
        values = [share for one in shares for share in one.values()]
        assert max(values) == pytest.approx(bound.up)
        assert -min(values) == pytest.approx(bound.down)


def test_a_hundredth_of_fake_people_moves_a_hundredth_of_the_bound(survey: Survey) -> None:
    full, hundredth = movement(survey, "color", fake_share=1), movement(survey, "color")
    assert hundredth.share == 0.01
    assert hundredth.most == pytest.approx(full.most / 100)
    assert hundredth.to_dict() == {"fake_share": 0.01, "up": hundredth.up, "down": hundredth.down}
