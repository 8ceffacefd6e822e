from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from cloister.errors import ForeignReportError, ParameterError, SchemaError
from cloister.local import Collector, Survey
from cloister.local.survey import SurveyTerms, simulate

TERMS = SurveyTerms(admission="blind", sentence="Invited people, once.", day="2026-05-04", key="a" * 64)


def test_every_part_of_the_terms_is_under_the_fingerprint(survey: Survey) -> None:
    changes: list[dict[str, Any]] = [
        {},
        {"admission": "links"},
        {"sentence": "Everybody."},
        {"day": "2026-05-05"},
        {"key": "b" * 64},
        {"key": None},
    ]
    made = [replace(survey, terms=replace(TERMS, **change)) for change in changes]
    assert len({one.fingerprint for one in (survey, *made)}) == len(changes) + 1


@pytest.mark.parametrize("ending", ["yaml", "json"])
def test_terms_are_read_as_they_were_written(survey: Survey, tmp_path: Path, ending: str) -> None:
    published = replace(survey, terms=TERMS)
    published.write(tmp_path / f"survey.{ending}")
    again = Survey.read(tmp_path / f"survey.{ending}")
    assert again.terms == TERMS
    assert again.fingerprint == published.fingerprint
    (tmp_path / "day.yaml").write_text(
        (tmp_path / f"survey.{ending}").read_text().replace("'2026-05-04'", "2026-05-04")
    )
    assert Survey.read(tmp_path / "day.yaml").terms == TERMS


def test_every_submission_states_the_day_of_the_terms(survey: Survey, answers: dict[str, object]) -> None:
    published = replace(survey, terms=TERMS)
    made = published.answer(answers)
    assert made.day == published.answer(answers, day="2026-05-04").day == TERMS.day
    assert {one.day for one in simulate(published, respondents=3).submissions} == {TERMS.day}
    with pytest.raises(ParameterError, match="leave day out"):
        published.answer(answers, day="2026-05-05")
    with pytest.raises(ForeignReportError, match="day of the survey's terms"):
        Collector(published).add(replace(made, day="2026-05-05"))
    assert published.to_browser()["terms"]["key"] == TERMS.key


def test_terms_that_are_none_are_refused() -> None:
    with pytest.raises(ParameterError, match="64 hexadecimal digits"):
        replace(TERMS, key="short")
    for wrong in ({}, [], {**TERMS.to_dict(), "token": "1"}):
        with pytest.raises(SchemaError, match="admission, sentence and day"):
            SurveyTerms.from_dict(wrong)
