from __future__ import annotations

import json
import math
import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from fastapi.testclient import TestClient
from sqlalchemy import event

from cloister.hub.hub import Hub
from cloister.hub.use_cases.surveys import catalogue, estimates, submissions as surveys_submissions
from cloister.local.reports import header
from cloister.local.survey import Collector, Survey, simulate
from tests.hub.conftest import ClientFor
from tests.hub.use_cases.surveys.conftest import DOCUMENT, Publish, asked_in, slug_of

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
        survey = catalogue.find_survey(session, survey_id)
        for one in submissions:
            assert surveys_submissions.submit(session, survey, submission=one.to_dict())


@pytest.mark.slow
@pytest.mark.statistical
def test_ten_thousand_respondents_are_estimated_within_bounds(asker: TestClient, publish: Publish, hub: Hub) -> None:
    people = 10_000
    survey = publish(PRETENDED)
    asked = asked_in(survey)
    made = simulate(asked, respondents=people, day=survey["opened"], mix={"low": 0.1, "medium": 0.7, "off": 0.2})
    _take(hub, survey["id"], made.submissions[:300])
    with hub.store.writing() as session:
        surveys_submissions.submit_many(session, catalogue.find_survey(session, survey["id"]), made.submissions[300:])
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
    survey = publish(PRETENDED, least=20)
    asked = asked_in(survey)
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
    assert asker.get(path).json() == found | {"state": "closed"}, "closing tells nothing about the last few"


def test_questions_with_few_reports_are_left_out(asker: TestClient, publish: Publish, hub: Hub) -> None:
    survey = publish(least=10)
    asked = asked_in(survey)
    _take(hub, survey["id"], [asked.answer({"smoke": "no"}, levels="low", day=survey["opened"]) for _ in range(12)])
    _take(hub, survey["id"], [asked.answer({"job": "Crafts"}, levels="high", day=survey["opened"]) for _ in range(9)])
    found = asker.get(f"/api/v1/surveys/{survey['id']}/estimates").json()
    smoke, job, way, _ = found["questions"]
    assert (smoke["is_ready"], smoke["reports"], smoke["off"]) == (True, 12, 9)
    assert "factor of 54.6" in smoke["guarantee"]
    assert {level["level"]: bool(level["values"]) for level in smoke["levels"]} == {
        "low": True,
        "medium": False,
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
    nobody = client_for()
    hidden, shown = publish(least=10), publish(least=10, results_are_public=True)
    for survey in (hidden, shown):
        _take(hub, survey["id"], [asked_in(survey).answer({"smoke": "no"}, levels="low") for _ in range(12)])
    assert nobody.get(f"/api/v1/surveys/{slug_of(hidden)}/public-estimates").status_code == 404
    assert nobody.get(f"{hidden['address']}/results").status_code == 404
    found = nobody.get(f"/api/v1/surveys/{slug_of(shown)}/public-estimates")
    assert found.json() == asker.get(f"/api/v1/surveys/{shown['id']}/estimates").json()
    assert "<svg" in nobody.get(f"{shown['address']}/results").text
    assert f"{shown['address']}/results" in nobody.get(shown["address"]).text
    assert "/results" not in nobody.get(hidden["address"]).text


def _statements(hub: Hub) -> tuple[list[str], Callable[[], None]]:
    """Return the list that all statements to the database are written to from now on, and what ends that."""
    said: list[str] = []

    def write(connection: Any, cursor: Any, statement: str, *rest: Any) -> None:
        said.append(" ".join(statement.split()))

    event.listen(hub.store.engine, "before_cursor_execute", write)
    return said, lambda: event.remove(hub.store.engine, "before_cursor_execute", write)


def _transactions(said: list[str]) -> list[list[str]]:
    found: list[list[str]] = []
    for statement in said:
        if statement.startswith("BEGIN") or not found:
            found.append([])
        found[-1].append(statement)
    return found


def test_a_submission_looks_at_no_more_rows_than_its_own(client_for: ClientFor, publish: Publish, hub: Hub) -> None:
    nobody, survey = client_for(), publish(least=10)
    asked = asked_in(survey)
    lengths = []
    for _ in range(6):
        said, stop = _statements(hub)
        body = {"submission": asked.answer({"smoke": "no"}, day=survey["opened"]).to_dict()}
        assert nobody.post(f"/api/v1/surveys/{slug_of(survey)}/submissions", json=body).status_code == 201
        stop()
        lengths.append(len(said))
        assert not [one for one in said if "count(" in one.lower() or "FROM survey_reports" in one]
    assert len(set(lengths)) == 1
    with hub.store.reading() as session:
        assert catalogue.find_survey(session, survey["id"]).submissions == 6


def test_estimates_are_made_outside_of_what_writes_and_once_for_each_batch(
    client_for: ClientFor, publish: Publish, hub: Hub
) -> None:
    nobody, survey = client_for(), publish(least=10, results_are_public=True)
    asked = asked_in(survey)
    path = f"/api/v1/surveys/{slug_of(survey)}/public-estimates"
    for number, submissions in ((10, 10), (19, 10), (20, 20), (20, 20)):
        with hub.store.reading() as session:
            missing = number - catalogue.find_survey(session, survey["id"]).submissions
        _take(hub, survey["id"], [asked.answer({"smoke": "no"}, day=survey["opened"]) for _ in range(missing)])
        said, stop = _statements(hub)
        assert nobody.get(path).json()["submissions"] == submissions
        stop()
        evaluations = [one for one in _transactions(said) if any("FROM survey_reports" in line for line in one)]
        writing = [one for one in _transactions(said) if one[0] == "BEGIN IMMEDIATE" and len(one) > 1]
        is_new = missing > 0 and submissions == number
        assert (len(evaluations), len(writing)) == ((1, 1) if is_new else (0, 0))
        assert not [one for one in evaluations if one in writing]
    assert estimates.step_after(100_000) == 1000


def test_while_somebody_makes_estimates_others_get_those_before(
    client_for: ClientFor, publish: Publish, hub: Hub, monkeypatch: pytest.MonkeyPatch
) -> None:
    nobody, survey = client_for(), publish(least=10, results_are_public=True)
    asked = asked_in(survey)
    _take(hub, survey["id"], [asked.answer({"smoke": "no"}, day=survey["opened"]) for _ in range(10)])
    path, busy = f"/api/v1/surveys/{slug_of(survey)}/public-estimates", threading.Lock()
    monkeypatch.setattr(estimates, "_TURN", busy)
    with busy:
        assert nobody.get(path).json()["submissions"] is None
    assert nobody.get(path).json()["submissions"] == 10


def test_of_a_question_and_of_a_level_no_single_report_is_seen_to_arrive(
    asker: TestClient, publish: Publish, hub: Hub
) -> None:
    survey = publish(least=10)
    asked = asked_in(survey)

    def arrive(**counts: int) -> dict[str, dict[str, Any]]:
        made = [
            asked.answer({name: "no" if name == "smoke" else "Office"}, levels=level, day=survey["opened"])
            for place, count in counts.items()
            for name, level in [place.split("_")]
            for _ in range(count)
        ]
        _take(hub, survey["id"], made)
        found = asker.get(f"/api/v1/surveys/{survey['id']}/estimates").json()
        return {one["question"]: one for one in found["questions"]}

    first = arrive(smoke_low=20, job_low=20, smoke_medium=20)
    then = arrive(smoke_low=9, job_low=1)
    assert then["job"] == first["job"], "one more answer to a question is not shown"
    assert then["smoke"] == first["smoke"], "nor are nine"
    last = arrive(smoke_low=9, smoke_medium=1)
    assert last["smoke"]["reports"] == 59
    assert last["smoke"]["values"] != first["smoke"]["values"]
    assert last["smoke"]["levels"] == first["smoke"]["levels"], "one more at a level would show in the difference"
    assert arrive(smoke_low=1, smoke_medium=9)["smoke"]["levels"] != first["smoke"]["levels"]
