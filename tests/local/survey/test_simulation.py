from __future__ import annotations

import itertools
from typing import Any

import pytest

from cloister.core.random import SystemRandomSource
from cloister.errors import ParameterError
from cloister.local import Collector, Survey, SurveyQuestion
from cloister.local.survey import simulate


def question(**facts: Any) -> SurveyQuestion:
    return SurveyQuestion(**{"id": "q", "kind": "single_choice", "text": "?", "options": ("a", "b", "c")} | facts)


def drawn(made: SurveyQuestion, count: int = 20_000) -> Any:
    return made.rules.draw(made, count, SystemRandomSource())


def test_stated_shares_are_what_is_drawn() -> None:
    answers = drawn(question(pretend={"a": 3, "c": 1}))
    assert set(answers) == {"a", "c"}
    assert answers.count("a") / 20_000 == pytest.approx(0.75, abs=0.02)


def test_shares_fall_where_none_are_stated() -> None:
    assert question().rules.stated_pretend(question()) == (1, 1 / 2, 1 / 3)
    answers = drawn(question())
    assert answers.count("a") > answers.count("b") > answers.count("c")


def test_numbers_stay_within_their_bounds() -> None:
    made = question(kind="number", options=(), bounds=("0.5", 9), whole=True, pretend={"mean": 4, "spread": 3})
    answers = drawn(made)
    assert (min(answers), max(answers)) == (1, 9)
    assert all(float(answer).is_integer() for answer in answers)
    assert sum(answers) / 20_000 == pytest.approx(4.2, abs=0.2)
    number = question(kind="number", options=(), bounds=(0, 12))
    assert number.rules.stated_pretend(number) == (6, 2)


def test_picks_are_different_and_not_too_many() -> None:
    answers = drawn(question(kind="multiple_choice", most=2, pretend={"a": 8, "b": 1, "c": 0}), 5000)
    assert {len(picks) for picks in answers} == {0, 1, 2}
    assert all(len(set(picks)) == len(picks) for picks in answers)
    flat = list(itertools.chain.from_iterable(answers))
    assert flat.count("a") > flat.count("b") > flat.count("c") == 0


@pytest.mark.parametrize(
    ("shares", "most"),
    [((0.9, 0.9, 0.0), 2), ((0.5, 0.25, 0.1), 1), ((1, 1, 1), 3), ((0.3, 0.3, 0.4), 1), ((0.7, 0.6, 0.5), 2)],
)
def test_picks_of_at_most_one_are_shares_of_people(shares: tuple[float, ...], most: int) -> None:
    stated = dict(zip("abc", shares, strict=True))
    answers = drawn(question(kind="multiple_choice", most=most, pretend=stated))
    assert max(map(len, answers)) <= most
    assert all(len(set(picks)) == len(picks) for picks in answers)
    flat = list(itertools.chain.from_iterable(answers))
    for option, share in stated.items():
        assert flat.count(option) / 20_000 == pytest.approx(share, abs=0.025)


def test_shares_of_picks_that_most_does_not_allow_are_refused() -> None:
    with pytest.raises(ParameterError, match="more than 1 options on average"):
        question(kind="multiple_choice", most=1, pretend={"a": 0.9, "b": 0.9})


def test_everybody_keeps_what_is_preselected_unless_told_otherwise(survey: Survey) -> None:
    made = simulate(survey, respondents=20, day="2026-05-04")
    assert {report["level"] for one in made.submissions for report in one.reports} == {"medium"}
    assert {one.day for one in made.submissions} == {"2026-05-04"}
    assert len({one.id for one in made.submissions}) == 20


def test_a_person_keeps_one_level_for_all_questions(survey: Survey) -> None:
    made = simulate(survey, respondents=200, mix={"off": 0.2, "low": 0.4, "high": 0.4})
    levels = [{report["level"] for report in one.reports} for one in made.submissions]
    assert all(len(found) <= 1 for found in levels)
    assert set().union(*levels) == {"low", "high"}
    assert any(not found for found in levels)


def test_lines_are_what_submissions_write(survey: Survey) -> None:
    made = simulate(survey, respondents=50, mix={"off": 0.2, "low": 0.4, "high": 0.4})
    assert len(made) == 50
    assert [one.to_json() for one in made.submissions] == list(made.lines())
    assert Collector(survey).add_lines(made.lines()).accepted == 50


def test_the_truth_is_about_those_who_answered(survey: Survey) -> None:
    made = simulate(survey, respondents=500)
    assert list(made.truth) == ["married", "color", "ways", "age", "stars"]
    assert sum(made.truth["color"].values()) == pytest.approx(1)
    assert list(made.truth["age"]) == ["0 to 17", "18 to 64", "65 to 100"]
    assert 0.5 < sum(made.truth["ways"].values()) < 1.5
    assert len(list(made.lines())) == 500


def test_questions_that_nobody_answers_have_no_truth() -> None:
    questions = (question(), question(id="r", levels={"off": None, "own": 1}, default_level="off"))
    made = simulate(Survey(id="s", title="t", collector="c", questions=questions), respondents=5)
    assert made.truth["r"] == {}


def test_wrong_mixes_are_refused(survey: Survey) -> None:
    with pytest.raises(ParameterError, match="add up to 1"):
        simulate(survey, respondents=5, mix={"low": 0.9})
    with pytest.raises(ParameterError, match="at least 1"):
        simulate(survey, respondents=0)
