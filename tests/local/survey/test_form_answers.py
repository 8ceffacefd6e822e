from __future__ import annotations

import json
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from cloister.errors import DataWarning, OutsideDomainError
from cloister.local import Survey, SurveyQuestion


def read_answer(asked: SurveyQuestion, value: Any) -> Any:
    return asked.rules.read_answer(asked, value)


def note_of(asked: SurveyQuestion, value: Any) -> str | None:
    return asked.rules.note(asked, value)


def question(**facts: Any) -> SurveyQuestion:
    return SurveyQuestion(**{"id": "q", "kind": "single_choice", "text": "Which?", "options": ("a", "b", "c")} | facts)


RATING = question(kind="rating", options=(1, 2, 3, 4, 5))
STEPS = question(options=(0.5, 1.0))
SWITCH = question(options=(True, False))
PICKS = question(kind="multiple_choice", most=2)
YEARS = question(kind="multiple_choice", most=2, options=(2024, 2025, 2026))
HOURS = question(kind="number", options=(), bounds=(0, 16))
AGE = question(kind="number", options=(), bounds=(0, 100), whole=True)
AGE_BINS = question(kind="number", options=(), bounds=(0, 100), whole=True, bins=(0, 18, 65, 100))


@pytest.mark.parametrize(
    ("asked", "given", "read"),
    [
        (RATING, "4", 4),
        (RATING, " 4 ", 4),
        (RATING, 4, 4),
        (RATING, 4.0, 4),
        (RATING, np.int64(4), 4),
        (question(), "b", "b"),
        (STEPS, "0.5", 0.5),
        (STEPS, "1", 1.0),
        (STEPS, 1, 1.0),
        (question(options=("b", "a")), "a ", "a"),
        (SWITCH, "true", True),
        (SWITCH, False, False),
        (PICKS, ["a", "c"], ["a", "c"]),
        (PICKS, ("a",), ["a"]),
        (PICKS, {"b"}, ["b"]),
        (PICKS, [], []),
        (PICKS, "b", ["b"]),
        (YEARS, ["2024", 2026], [2024, 2026]),
        (HOURS, "7.5", 7.5),
        (HOURS, " 7.5 ", 7.5),
        (HOURS, "15/2", 7.5),
        (HOURS, Decimal("7.5"), 7.5),
        (HOURS, Fraction(15, 2), 7.5),
        (AGE, "33", 33.0),
        (AGE, 33.0, 33.0),
        (AGE_BINS, "33", "18 to 64"),
        (AGE_BINS, 70, "65 to 100"),
    ],
)
def test_answers_may_be_the_text_that_a_form_gives(asked: SurveyQuestion, given: Any, read: Any) -> None:
    found = read_answer(asked, given)
    assert found == read
    assert type(found) is type(read)


@pytest.mark.parametrize(
    ("asked", "given", "problem", "fix"),
    [
        (question(), "zebra", "not one of those that can be given", "answer with one of: a, b, c"),
        (question(), None, "not one of those", "or do not answer"),
        (question(), "", "not one of those", "a, b, c"),
        (question(options=("no", "yes")), True, "not one of those", "no, yes"),
        (RATING, "4.5", "not one of those", "1, 2, 3, 4, 5"),
        (RATING, True, "not one of those", "1, 2, 3, 4, 5"),
        (RATING, "six", "not one of those", "1, 2, 3, 4, 5"),
        (question(options=tuple(range(50, 99))), 1000, "not one of those", "79, ...; or"),
        (PICKS, ["a", "b", "c"], "too many picks", "pick at most 2, each once, of: a, b, c"),
        (PICKS, ["a", "a"], "one of them twice", "pick at most 2"),
        (PICKS, ["a", "zebra"], "not one of those", "pick at most 2"),
        (PICKS, {"a": True}, "not one of those", "pick at most 2"),
        (PICKS, None, "not one of those", "pick at most 2"),
        (HOURS, "seven", "not a number", "answer with a number from 0 to 16, in digits"),
        (HOURS, "7,5", "not a number", "from 0 to 16"),
        (HOURS, None, "not a number", "from 0 to 16"),
        (HOURS, True, "not a number", "from 0 to 16"),
        (HOURS, float("nan"), "not a number", "from 0 to 16"),
        (HOURS, "1e999999", "not a number", "from 0 to 16"),
        (HOURS, [7, 8], "not a number", "from 0 to 16"),
        (AGE, 33.5, "not a whole number", "a whole number from 0 to 100"),
        (AGE_BINS, "33.5", "not a whole number", "a whole number from 0 to 100"),
    ],
)
def test_what_cannot_be_meant_is_refused_in_words_for_a_respondent(
    asked: SurveyQuestion, given: Any, problem: str, fix: str
) -> None:
    with pytest.raises(OutsideDomainError) as caught:
        read_answer(asked, given)
    assert caught.value.problem.startswith('Question "q": ')
    assert problem in caught.value.problem
    assert fix in caught.value.fix
    for word in ("zebra", "seven", "six", "33", "domain", "="):
        assert word not in str(caught.value)


def test_a_respondent_is_told_that_a_number_counts_as_a_bound() -> None:
    for asked in (HOURS, AGE_BINS):
        assert note_of(asked, "7") is None
    note = note_of(HOURS, "17.25")
    assert note == 'Question "q": your answer is outside of 0 to 16, and counts as the nearer of the two.'
    assert note_of(question(), "a") is None


def test_notes_stay_on_the_device() -> None:
    survey = Survey(id="s", title="t", collector="c", questions=(HOURS,))
    (note,) = survey.notes({"q": "-3"})
    assert survey.notes({"q": 3}) == ()
    with pytest.warns(DataWarning, match="counts as the nearer"):
        submission = survey.answer({"q": "-3"})
    assert "nearer" in note
    assert "nearer" not in json.dumps(submission.to_dict())
    assert not survey.answer({"q": -3}, levels="off").reports
