"""The intake by itself, over a store that remembers every call."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

import numpy as np
import pytest

from cloister.errors import ForeignReportError, MalformedReportError
from cloister.local.survey import Collector, Submission, Survey
from cloister.local.survey.intake import SubmissionIntake
from cloister.local.survey.submission_checks import Checker, Place


class Recorder:
    """A store that keeps what it is given, call by call."""

    def __init__(self, survey: Survey) -> None:
        self.survey = survey
        self.calls: list[tuple[str, Any]] = []

    def used(self, ids: Collection[str]) -> set[str]:
        return {one for one in ids for name, given in self.calls if name == "use" and one in given}

    def use(self, ids: Collection[str]) -> None:
        self.calls.append(("use", list(ids)))

    def keep(self, reports: Mapping[Place, Any]) -> None:
        self.calls.append(("keep", dict(reports)))

    def count(self, days: Mapping[str, int]) -> None:
        self.calls.append(("count", dict(days)))

    def days(self) -> Mapping[str, int]:
        found: dict[str, int] = {}
        for name, given in self.calls:
            for day, number in given.items() if name == "count" else ():
                found[day] = found.get(day, 0) + number
        return found

    def bags(self) -> dict[Place, Any]:
        kept = [given for name, given in self.calls if name == "keep"]
        empty = {place: np.empty(0, self.survey.protocol(*place).output_space.dtype) for place in _places(self.survey)}
        return {
            place: np.concatenate([rows, *(one[place] for one in kept if place in one)])
            for place, rows in empty.items()
        }


def _places(survey: Survey) -> tuple[Place, ...]:
    return Checker(survey).places


def _intake(survey: Survey, **options: Any) -> tuple[SubmissionIntake, Recorder]:
    store = Recorder(survey)
    return SubmissionIntake(Checker(survey), store, **options), store


def test_ids_and_reports_reach_the_store_apart(survey: Survey, answers: dict[str, Any]) -> None:
    intake, store = _intake(survey)
    submission = survey.answer(answers)
    assert intake.take(submission.to_json())
    assert [name for name, _ in store.calls] == ["use", "keep", "count"]
    assert [submission.id in repr(given) for _, given in store.calls] == [True, False, False]
    intake.take_many([survey.answer(answers) for _ in range(3)])
    assert [name for name, _ in store.calls[3:]] == ["use", "keep", "count"]
    # Nothing of one person lies together: each question and level has its own rows.
    assert all(len(rows) <= 3 for rows in store.calls[4][1].values())


def test_what_was_used_is_counted_once_and_its_invitation_is_not_asked_for(
    survey: Survey, answers: dict[str, Any]
) -> None:
    asked: list[Submission] = []
    intake, store = _intake(survey, admit=asked.append)
    submission = survey.answer(answers)
    assert [intake.take(submission) for _ in range(3)] == [True, False, False]
    assert intake.take_many([submission, submission]).reasons() == {"the same id came twice": 2}
    assert asked == [submission]
    assert sum(store.days().values()) == 1


def test_whoever_is_not_admitted_leaves_nothing(survey: Survey, answers: dict[str, Any]) -> None:
    def refuse(_submission: Submission) -> None:
        raise ForeignReportError("Not invited.", fix="ask for an invitation.")

    intake, store = _intake(survey, admit=refuse)
    with pytest.raises(ForeignReportError):
        intake.take(survey.answer(answers))
    assert store.calls == []
    assert intake.take_many([survey.answer(answers)]).accepted == 0
    assert [given for name, given in store.calls if name != "keep"] == [[], {}]
    assert not any(len(rows) for rows in store.bags().values())


def test_what_no_device_makes_uses_up_no_id_and_asks_for_no_invitation(survey: Survey, answers: dict[str, Any]) -> None:
    asked: list[Submission] = []
    intake, store = _intake(survey, admit=asked.append)
    good = survey.answer(answers).to_dict()
    wrong = good | {"reports": [{**good["reports"][0], "y": "yes"}, *good["reports"][1:]]}
    with pytest.raises(MalformedReportError) as caught:
        intake.take(wrong)
    assert "yes" not in str(caught.value)
    assert intake.take_many([wrong]).refused == 1
    assert (asked, store.used([good["id"]])) == ([], set())
    assert intake.take(good)


def test_one_by_one_and_together_the_same_is_kept(survey: Survey, answers: dict[str, Any]) -> None:
    made = [survey.answer(answers, day="2026-05-04") for _ in range(20)]
    one, many, collector = _intake(survey)[0], _intake(survey)[0], Collector(survey)
    assert all(one.take(each) for each in made)
    assert many.take_many(made).accepted == collector.add_lines([each.to_json() for each in made]).accepted == 20
    found = [each.estimate().to_dict() for each in (one, many, collector)]
    assert found[0] == found[1]
    assert found[0]["submissions"] == found[2]["submissions"] == 20
    assert [each["reports"] for each in found[0]["questions"]] == [each["reports"] for each in found[2]["questions"]]
