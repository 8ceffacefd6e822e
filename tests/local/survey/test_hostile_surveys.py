"""Surveys, answers and reports that somebody wrote by mistake or on purpose: one clear error, soon."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from cloister.errors import CloisterError, ForeignReportError, OutsideDomainError, ParameterError
from cloister.local.survey import Collector, Survey, SurveyQuestion, plan_survey

LONE = "\ud800"


def question(**facts: Any) -> SurveyQuestion:
    return SurveyQuestion(**{"id": "q", "kind": "yes_no", "text": "Really?"} | facts)


def number(**facts: Any) -> SurveyQuestion:
    return question(kind="number", bounds=(0, 10), **facts)


def survey_of(*questions: SurveyQuestion, **facts: Any) -> Survey:
    return Survey(**{"id": "s", "title": "S", "collector": "C", "questions": questions} | facts)


def laughs() -> list[Any]:
    """Return what a few lines of YAML with anchors make: a list whose text has 9**10 words."""
    found: list[Any] = ["lol"] * 9
    for _ in range(9):
        found = [found] * 9
    return found


@pytest.mark.parametrize("kind", [laughs(), 10**5000, None, 3], ids=["laughs", "digits", "nothing", "number"])
def test_a_kind_that_is_no_text_is_refused_without_writing_it_out(kind: object) -> None:
    with pytest.raises(CloisterError, match="no kind of question"):
        question(kind=kind)


@pytest.mark.parametrize("level", [[], {}, ["off"], 10**5000, 1], ids=["list", "mapping", "name", "digits", "number"])
def test_a_default_level_that_is_no_name_is_refused(level: Any) -> None:
    with pytest.raises(ParameterError, match="which is not a name"):
        survey_of(question(default_level=level))
    with pytest.raises(ParameterError, match="which is not a name"):
        survey_of(question(), default_level=level)


@pytest.mark.parametrize("count", [1001, 10**8, 2**70])
def test_too_many_bins_are_refused_before_they_are_made(count: int) -> None:
    with pytest.raises(ParameterError, match="too many bins"):
        number(bins=count)


@pytest.mark.parametrize(
    "facts",
    [{"most": 0}, {"most": ""}, {"most": []}, {"bins": 0}, {"bins": {}}, {"bounds": 0}, {"bounds": ""}, {"bounds": {}}],
)
def test_empty_facts_of_another_kind_are_refused(facts: dict[str, Any]) -> None:
    with pytest.raises(ParameterError, match="has no"):
        question(**facts)


@pytest.mark.parametrize("facts", [{"bounds": ()}, {"most": ()}, {"bins": ()}, {"coins": ()}, {"coins": None}])
def test_absent_facts_of_another_kind_are_fine(facts: dict[str, Any]) -> None:
    made = question(kind="rating", options=(1, 2), **facts)
    assert made == question(kind="rating", options=(1, 2))


@pytest.mark.parametrize("name", ["text", "help"])
def test_text_that_cannot_be_written_is_refused(name: str) -> None:
    with pytest.raises(ParameterError, match="is not a text"):
        question(**{name: LONE})
    with pytest.raises(ParameterError, match="is not a text"):
        survey_of(question(), title=LONE)


def test_options_that_cannot_be_written_are_refused() -> None:
    with pytest.raises(ParameterError, match="options"):
        question(options=("a", LONE))


def test_shares_to_pretend_beyond_floating_point_are_refused() -> None:
    with pytest.raises(ParameterError, match="pretend"):
        question(pretend={"no": 1e308, "yes": 1e308})


@pytest.mark.parametrize("margin", ["1e-300", "1e300", 101, "1e-9"])
def test_a_margin_that_nobody_can_want_is_refused(margin: object) -> None:
    with pytest.raises(ParameterError, match="between"):
        plan_survey(survey_of(question()), margin=margin)


def test_bounds_beyond_floating_point_are_refused_before_a_plan() -> None:
    with pytest.raises(ParameterError, match="too large"):
        survey_of(question(kind="number", bounds=(0, "1e200")))


@pytest.mark.parametrize(
    ("kind", "answer"),
    [("married", ["yes", "no"]), ("married", []), ("color", ["red", ["blue"]]), ("age", [3, 7]), ("age", [1, [2]])],
)
def test_one_person_gives_one_answer(survey: Survey, kind: str, answer: object) -> None:
    with pytest.raises(OutsideDomainError, match=f'Question "{kind}"'):
        survey.answer({kind: answer})


def test_one_person_picks_one_list(survey: Survey) -> None:
    with pytest.raises(OutsideDomainError, match='Question "ways"'):
        survey.answer({"ways": [["bus"], ["car"]]})


@pytest.mark.parametrize("answer", [[3, 4], [], [[1, 2]]])
def test_one_person_gives_one_number(answer: object) -> None:
    with pytest.raises(OutsideDomainError, match='Question "q"'):
        survey_of(number()).answer({"q": answer})


@pytest.mark.parametrize("version", [True, 1.0])
def test_a_header_of_other_types_is_refused(survey: Survey, answers: dict[str, object], version: object) -> None:
    values = survey.answer(answers).to_dict()
    values["reports"][0]["version"] = version
    with pytest.raises(ForeignReportError):
        Collector(survey).add(values)


def test_the_promise_of_a_survey_is_about_all_answers_of_a_person(survey: Survey, answers: dict[str, object]) -> None:
    collector = Collector(survey)
    collector.add(survey.answer(answers, levels="medium"))
    collector.add(survey.answer({"married": "no"}, levels="low"))
    promise = collector.estimate().guarantee
    assert promise.unit == "person"
    assert promise.to_dict()["epsilon"] == "8"  # low once, medium four times


@pytest.mark.parametrize("bad", ["T\x1b[2J", "T\x9b31m", "T\x07", "a\u202eb", "a\u2066b"])
def test_texts_do_not_command_a_terminal(bad: str) -> None:
    for facts in ({"text": bad}, {"help": bad}):
        with pytest.raises(ParameterError, match="see what is written"):
            question(**facts)
    with pytest.raises(ParameterError, match="see what is written"):
        survey_of(question(), title=bad)
    with pytest.raises(ParameterError, match="as people should read them"):
        question(kind="single_choice", options=("a", bad))


def test_texts_are_on_one_line_and_options_can_be_told_apart() -> None:
    assert survey_of(question(), purpose="Why.\n  And\thow.").purpose == "Why. And how."
    for options in (("a", " a"), ("a", " "), ("a", "b\nc")):
        with pytest.raises(ParameterError, match="as people should read them"):
            question(kind="single_choice", options=options)


def test_json_surveys_say_everything_once_and_are_not_endless(tmp_path: Path) -> None:
    twice, long = tmp_path / "twice.json", tmp_path / "long.yaml"
    twice.write_text('{"schema": "cloister.survey/1", "id": "a", "levels": {"low": 1, "low": 15}}', encoding="utf-8")
    with pytest.raises(CloisterError, match="there twice"):
        Survey.read(twice)
    long.write_text("#" * 5_000_000, encoding="utf-8")
    with pytest.raises(CloisterError, match="longer than"):
        Survey.read(long)
