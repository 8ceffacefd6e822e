from __future__ import annotations

import json
import math
from typing import Any

import numpy as np
import pytest
from fastapi.testclient import TestClient

from cloister.hub.hub import Hub
from cloister.hub.services.surveys import answering, reading
from cloister.local.reports import header
from cloister.local.survey import Collector, Survey, simulate
from tests.hub.conftest import ClientFor
from tests.hub.surveys.conftest import DOCUMENT, Publish, slug_of

FALSE_ALARM = 1e-9
PRETENDED = DOCUMENT | {
    "questions": [
        DOCUMENT["questions"][0] | {"pretend": {"no": 0.9, "yes": 0.1}},
        DOCUMENT["questions"][1]
        | {"pretend": {"Care and health": 1, "Teaching": 1, "Office": 16, "Crafts": 1, "Something else": 1}},
        DOCUMENT["questions"][2] | {"pretend": {"On foot": 0.2, "Bicycle": 0.2, "Bus or train": 0.4, "Car": 0.1}},
        DOCUMENT["questions"][3] | {"pretend": {"mean": 7, "spread": 1.5}},
    ]
}


def _take(hub: Hub, survey_id: str, submissions: Any) -> None:
    with hub.store.writing() as session:
        survey = reading.find_survey(session, survey_id)
        for one in submissions:
            assert answering.submit(session, survey, submission=one.to_dict())


@pytest.mark.slow
@pytest.mark.statistical
def test_ten_thousand_respondents_are_estimated_within_bounds(asker: TestClient, publish: Publish, hub: Hub) -> None:
    people = 10_000
    survey, asked = publish(PRETENDED), Survey.from_dict(PRETENDED)
    made = simulate(asked, respondents=people, day=survey["opened"], mix={"low": 0.1, "medium": 0.7, "off": 0.2})
    _take(hub, survey["id"], made.submissions)
    found = asker.get(f"/api/v1/surveys/{survey['id']}/estimates").json()
    assert found["submissions"] == people
    assert found["is_plausible"]
    collector = Collector(asked)
    collector.add_lines(made.lines())
    library = collector.estimate()
    for one in found["questions"]:
        same = library[one["question"]]
        assert one["reports"] == same.reports
        assert one["off"] == same.off
        assert {value["value"]: value["raw"] for value in one["values"]} == pytest.approx(dict(same.raw))
        assert {level["level"]: level["reports"] for level in one["levels"]} == {
            level.name: level.reports for level in same.levels
        }
    for one in found["questions"][:2]:
        counts = {level["level"]: level["reports"] for level in one["levels"]}
        squares = sum(
            count * _share_range(asked.protocol(one["question"], level)) ** 2 for level, count in counts.items()
        )
        bound = math.sqrt(math.log(2 / FALSE_ALARM) / 2 * squares) / one["reports"]
        truth = made.truth[one["question"]]
        for value in one["values"]:
            assert abs(value["raw"] - truth[value["value"]]) < bound
            assert value["interval"][0] < value["raw"] < value["interval"][1]
        naive = _naive(hub, survey["id"], one["question"], asked)
        assert any(abs(naive[name] - share) > bound for name, share in truth.items())


def _share_range(protocol: Any) -> float:
    """Return how far the parts of two reports in an estimated share can be apart, by estimating from one of each."""
    parts = [protocol.estimate(protocol.read([_report(protocol, y)])).frequencies for y in range(len(protocol.domain))]
    return max(max(part.values()) for part in parts) - min(min(part.values()) for part in parts)


def _report(protocol: Any, y: int) -> dict[str, Any]:
    return {**header(protocol), "y": y}


def _naive(hub: Hub, survey_id: str, question: str, asked: Survey) -> dict[Any, float]:
    """Return what somebody would read who took reports for answers."""
    with hub.store.engine.connect() as connection:
        rows = connection.exec_driver_sql(
            "SELECT value FROM survey_reports WHERE survey_id = ? AND question = ?", (survey_id, question)
        ).scalars()
        values = [int(json.loads(value)) for value in rows]
    shares = np.bincount(values, minlength=len(asked.question(question).answers)) / len(values)
    return dict(zip(asked.question(question).answers, shares.tolist(), strict=True))


def test_a_few_reports_are_not_estimated_and_a_single_one_is_not_seen_to_arrive(
    asker: TestClient, publish: Publish, hub: Hub
) -> None:
    survey, asked = publish(PRETENDED, least=20), Survey.from_dict(PRETENDED)
    path = f"/api/v1/surveys/{survey['id']}/estimates"
    crowd = iter(simulate(asked, respondents=60, day=survey["opened"]).submissions)

    def arrive(count: int) -> dict[str, Any]:
        _take(hub, survey["id"], [next(crowd) for _ in range(count)])
        found: dict[str, Any] = asker.get(path).json()
        return found

    assert arrive(0)["submissions"] is None
    assert arrive(19)["questions"] == []
    first = arrive(1)
    assert first["submissions"] == 20
    assert arrive(9) == first
    assert arrive(1)["submissions"] == 30
    skipping = [asked.answer({"smoke": "no"}, day=survey["opened"]) for _ in range(12)]
    _take(hub, survey["id"], skipping)
    found = asker.get(path).json()
    assert [one["reports"] for one in found["questions"]] == [42, 30, 30, 30]
    arrive(3)
    asker.post(f"/api/v1/surveys/{survey['id']}/close")
    assert asker.get(path).json()["submissions"] == 45


def test_questions_with_few_reports_are_left_out(asker: TestClient, publish: Publish, hub: Hub) -> None:
    survey, asked = publish(least=10), Survey.from_dict(DOCUMENT)
    _take(hub, survey["id"], [asked.answer({"smoke": "no"}, day=survey["opened"]) for _ in range(12)])
    _take(hub, survey["id"], [asked.answer({"job": "Crafts"}, levels="high", day=survey["opened"]) for _ in range(9)])
    found = asker.get(f"/api/v1/surveys/{survey['id']}/estimates").json()
    smoke, job, way, _ = found["questions"]
    assert (smoke["is_ready"], smoke["reports"], smoke["off"]) == (True, 12, 9)
    assert "factor of 2.72" in smoke["guarantee"]
    assert {level["level"]: bool(level["values"]) for level in smoke["levels"]} == {
        "low": False,
        "medium": True,
        "high": False,
    }
    assert (job["is_ready"], job["reports"], job["values"], job["chart"]) == (False, 9, [], None)
    assert (way["is_ready"], way["reports"]) == (False, 0)
    page = asker.get(f"/surveys/{survey['id']}")
    assert page.text.count("<svg") == 1
    assert "too few to say anything" in page.text
    chart = asker.get(f"/api/v1/surveys/{survey['id']}/estimates/smoke.svg")
    assert (chart.status_code, chart.headers["content-type"]) == (200, "image/svg+xml")
    assert asker.get(f"/api/v1/surveys/{survey['id']}/estimates/job.svg").status_code == 404


def test_everybody_sees_estimates_only_where_the_survey_says_so(
    asker: TestClient, publish: Publish, client_for: ClientFor, hub: Hub
) -> None:
    nobody, asked = client_for(), Survey.from_dict(DOCUMENT)
    hidden, shown = publish(least=10), publish(least=10, results_are_public=True)
    for survey in (hidden, shown):
        _take(hub, survey["id"], [asked.answer({"smoke": "no"}, day=survey["opened"]) for _ in range(12)])
    assert nobody.get(f"/api/v1/surveys/{slug_of(hidden)}/public-estimates").status_code == 404
    assert nobody.get(f"{hidden['address']}/results").status_code == 404
    found = nobody.get(f"/api/v1/surveys/{slug_of(shown)}/public-estimates")
    assert found.json() == asker.get(f"/api/v1/surveys/{shown['id']}/estimates").json()
    assert "<svg" in nobody.get(f"{shown['address']}/results").text
    assert f"{shown['address']}/results" in nobody.get(shown["address"]).text
    assert "/results" not in nobody.get(hidden["address"]).text
