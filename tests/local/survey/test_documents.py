from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import cloister.local
from cloister.local import Collector, Survey, UnarySet, open_protocol
from cloister.local.survey import example_survey
from tests.support import browser, local_vectors as vectors

CLIENT = Path(cloister.local.__file__).parent / "js"
HERE = Path(__file__).parent
FOLDERS = {
    "/tests/local/survey/js": HERE / "js",
    "/tests/local/js": HERE.parent / "js",
    "/src/cloister/local/js": CLIENT,
}


def test_a_page_gets_everything_that_it_needs() -> None:
    survey = example_survey()
    page = json.loads(json.dumps(survey.to_browser()))
    assert page["schema"] == "cloister.survey_page/1"
    assert page["fingerprint"] == survey.fingerprint
    assert page["submission"] == {
        "schema": "cloister.submission/1",
        "survey": survey.id,
        "fingerprint": survey.fingerprint,
    }
    assert page["total"]["epsilon"] == "6"
    assert [question["id"] for question in page["questions"]] == [question.id for question in survey.questions]
    for question in page["questions"]:
        assert question["default_level"] == "medium"
        assert question["optional"] is True
        for level in question["levels"]:
            if level["name"] == "off":
                assert level["protocol"] is None
                continue
            assert open_protocol(level["protocol"]) == survey.protocol(question["id"], level["name"])
            assert level["statement"] == str(survey.statement(question["id"], level["name"]))
            assert level["beliefs"][1]["before"] == 0.1


def test_a_page_never_says_anonymous_nor_what_is_pretended() -> None:
    text = json.dumps(example_survey().to_browser()).lower()
    assert "anonym" not in text
    assert "pretend" not in text


def test_a_page_knows_the_bins_of_a_number(survey: Survey) -> None:
    age = next(question for question in survey.to_browser()["questions"] if question["id"] == "age")
    assert age["bins"] == {"edges": ["0", "18", "65", "100"], "labels": ["0 to 17", "18 to 64", "65 to 100"]}
    assert age["levels"][1]["protocol"]["domain"] == age["bins"]["labels"]


def records() -> list[dict[str, Any]]:
    found = []
    for question in example_survey().to_browser()["questions"]:
        found += [level["protocol"] for level in question["levels"] if level["protocol"]]
    more = UnarySet(domain=[1, 2, 3, 4, 5, 6, 7, 8, 9], epsilon="1/7", most=5).to_dict()
    return [*found, more, UnarySet(domain=["a", "b"], epsilon=20, most=2).to_dict()]


@pytest.mark.chromium
@pytest.mark.slow
def test_the_browser_makes_the_same_reports_for_everything_that_a_survey_asks() -> None:
    choices = [record for record in records() if "domain" in record]
    numbers = [record for record in records() if "bounds" in record]
    cases = vectors.cases(choices, vectors.shipped_device) + vectors.cases(numbers, vectors.reference_device)
    told = browser.run_module("/tests/local/js/replay.mjs", cases, folders=FOLDERS)
    assert told["differences"] == []
    assert told["compared"] == sum(len(case["draws"]) for case in cases) > 500


@pytest.mark.chromium
@pytest.mark.slow
def test_the_collector_takes_what_a_page_sends() -> None:
    survey = example_survey()
    answers: dict[str, Any] = {
        "married": "yes",
        "occupation": "Sales",
        "commute": ["Bicycle", "Car"],
        "sleep": "7.5",
        "age": 65,
        "satisfaction": 4,
    }
    levels = [None, "low", "high", {"commute": "off", "sleep": "low"}]
    tasks = [{"answers": answers, "levels": level, "day": "2026-05-04"} for level in levels]
    told = browser.run_module(
        "/tests/local/survey/js/respond.mjs", {"page": survey.to_browser(), "tasks": tasks}, folders=FOLDERS
    )
    collector = Collector(survey)
    for submission in told:
        collector.add(json.dumps(submission))
    assert collector.counts("occupation") == {"off": 0, "low": 1, "medium": 2, "high": 1}
    assert collector.counts("commute") == {"off": 1, "low": 1, "medium": 1, "high": 1}
    assert collector.counts("satisfaction") == {"off": 0, "medium": 3, "high": 1}
    assert len(collector.estimate().questions) == 6
