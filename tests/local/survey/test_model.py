from __future__ import annotations

import json
import math
from datetime import UTC, date, datetime
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from cloister.core.random import SystemRandomSource
from cloister.errors import CloisterError, OutsideDomainError, ParameterError, SchemaError, SourceNotFoundError
from cloister.local import (
    DirectEncoding,
    OptimizedUnaryEncoding,
    Pram,
    RandomizedResponse,
    Survey,
    UnarySet,
    open_protocol,
)
from cloister.local.numeric.hybrid import Hybrid
from cloister.local.survey import EXAMPLE, SurveyQuestion, example_survey, token_id
from cloister.local.survey._documents import plain_number


def changed(survey: Survey, **facts: Any) -> dict[str, Any]:
    return {**survey.to_dict(), **facts}


def test_protocols_follow_the_kind_of_question_and_the_level() -> None:
    survey = example_survey()
    kinds = {question.id: type(survey.protocol(question.id, "medium")) for question in survey.questions}
    assert kinds == {
        "married": RandomizedResponse,
        "occupation": OptimizedUnaryEncoding,
        "commute": UnarySet,
        "sleep": Hybrid,
        "age": DirectEncoding,
        "satisfaction": DirectEncoding,
    }
    assert type(survey.protocol("occupation", "low")) is DirectEncoding
    assert type(survey.protocol("age", "high")) is OptimizedUnaryEncoding


@pytest.mark.parametrize("epsilon", ["0.05", "0.25", "0.5", "1", "2", "4"])
@pytest.mark.parametrize("size", [3, 5, 6, 10, 11, 14, 100])
def test_single_choices_follow_the_published_rule(size: int, epsilon: str) -> None:
    question = SurveyQuestion(
        id="q", kind="single_choice", text="?", options=tuple(range(size)), levels={"own": epsilon}
    )
    survey = Survey(id="s", title="t", collector="c", questions=(question,))
    few = size < 3 * math.exp(float(epsilon)) + 2
    assert type(survey.protocol("q", "own")) is (DirectEncoding if few else OptimizedUnaryEncoding)


def test_every_protocol_has_exactly_the_epsilon_of_its_level() -> None:
    survey = example_survey()
    for question in survey.questions:
        for level in survey.levels_of(question.id).values():
            if level.epsilon is not None:
                protocol = survey.protocol(question.id, level.name)
                assert protocol.epsilon == level.epsilon
                assert (
                    level.epsilon - Fraction(1, 10**9) <= protocol.epsilon_of() <= level.epsilon + Fraction(1, 10**25)
                )
                assert open_protocol(json.loads(json.dumps(protocol.to_dict()))) == protocol


def test_a_rating_may_use_a_matrix_whose_lies_stay_near() -> None:
    question = SurveyQuestion(id="q", kind="rating", text="?", options=(1, 2, 3, 4), protocol="pram")
    protocol = Survey(id="s", title="t", collector="c", questions=(question,)).protocol("q", "medium")
    assert isinstance(protocol, Pram)
    first = protocol.matrix[0]
    assert first[0] > first[1] > first[2]
    assert protocol.epsilon == 1


def test_coins_are_the_only_level_beside_off() -> None:
    question = SurveyQuestion(id="q", kind="yes_no", text="?", coins=(Fraction(1, 2), Fraction(1, 2)))
    survey = Survey(id="s", title="t", collector="c", questions=(question,))
    assert list(survey.levels_of("q")) == ["off", "coins"]
    assert survey.default_of("q").name == "coins"
    assert math.exp(survey.total().epsilon) == pytest.approx(3, abs=1e-9)
    assert Survey.from_dict(survey.to_dict()) == survey


@pytest.mark.parametrize(
    ("kind", "name"), [("yes_no", "direct_encoding"), ("single_choice", "hybrid"), ("rating", "duchi")]
)
def test_a_protocol_that_does_not_fit_is_refused(kind: str, name: str) -> None:
    question = SurveyQuestion(id="q", kind=kind, text="?", options=(1, 2), protocol=name)
    with pytest.raises(ParameterError, match="leave protocol out"):
        Survey(id="s", title="t", collector="c", questions=(question,))


def test_the_example_is_read_and_written_without_a_change(tmp_path: Path) -> None:
    survey = example_survey()
    for name in ("survey.yaml", "survey.json"):
        survey.write(tmp_path / name)
        assert Survey.read(tmp_path / name) == survey
        assert Survey.read(tmp_path / name).to_dict() == survey.to_dict()
    assert survey.to_dict()["schema"] == "cloister.survey/1"
    (tmp_path / "own.yaml").write_text(EXAMPLE, encoding="utf-8")
    assert Survey.read(tmp_path / "own.yaml").fingerprint == survey.fingerprint


def test_numbers_of_a_file_stay_exact(tmp_path: Path) -> None:
    for name, text in (("a.yaml", "levels: {own: 0.1}"), ("a.json", '{"levels": {"own": 0.1}}')):
        head = (
            'schema: cloister.survey/1\nid: a\ntitle: t\ncollector: c\nquestions: [{id: q, kind: yes_no, text: "?"}]\n'
        )
        values = {"schema": "cloister.survey/1", "id": "a", "title": "t", "collector": "c"}
        full = {**values, "questions": [{"id": "q", "kind": "yes_no", "text": "?"}]}
        content = head + text if name.endswith("yaml") else json.dumps(full)[:-1] + ", " + text[1:]
        (tmp_path / name).write_text(content, encoding="utf-8")
        assert Survey.read(tmp_path / name).levels_of("q")["own"].epsilon == Fraction(1, 10)


@pytest.mark.parametrize(
    ("value", "plain"),
    [(Fraction(1, 3), "1/3"), (Fraction(1, 4), 0.25), (Fraction(7), 7), (Fraction(1, 10**9), "0.000000001")],
)
def test_plain_numbers_are_exact(value: Fraction, plain: object) -> None:
    assert plain_number(value) == plain
    assert Fraction(str(plain)) == value


def test_the_fingerprint_changes_with_what_respondents_see_and_not_with_rehearsals() -> None:
    survey = example_survey()
    values = survey.to_dict()
    values["questions"][0]["pretend"] = {"no": 1.0, "yes": 1.0}
    assert Survey.from_dict(values).fingerprint == survey.fingerprint
    values["questions"][0]["text"] = "Have you ever been married?"
    assert Survey.from_dict(values).fingerprint != survey.fingerprint


@pytest.mark.parametrize(
    ("facts", "words"),
    [
        ({"schema": "cloister.survey/2"}, "schema: cloister.survey/1"),
        ({"schema": None}, "schema: cloister.survey/1"),
        ({"id": None}, "has no id"),
        ({"id": "Not A Name"}, "small letters"),
        ({"title": None}, "has no title"),
        ({"collector": ""}, "collector"),
        ({"colector": "x"}, 'Did you mean "collector"'),
        ({"questions": []}, "from 1 to"),
        ({"questions": "none"}, "not a list"),
        ({"questions": [7]}, "not a mapping"),
        ({"questions": [{"id": "a", "text": "?"}]}, "Question 1 has no kind"),
        ({"questions": [{"id": "a", "kind": "yes_no", "text": "?", "option": []}]}, 'Did you mean "options"'),
        ({"questions": [{"id": "a", "kind": "yes_no", "text": "?"}] * 2}, "id of its own"),
        ({"questions": [{"id": "a", "kind": "yes_no", "text": "?"}] * 2}, 'Two questions have the id "a"'),
        ({"default_level": "secret"}, "use off, low, medium, high"),
        ({"default_level": "secret"}, 'default_level "secret"'),
        ({"default_level": "meduim"}, 'Did you mean "medium"'),
        ({"levels": {"off": None, "low": 30}}, "epsilon"),
        ({"levels": {"low": 400}}, "write for example low: 1"),
        ({"levels": {"medium": "one"}}, 'level "medium" is not a number from 0.000001 to 20'),
        (
            {"questions": [{"id": "a", "kind": "yes_no", "text": "?", "levels": {"b": "x"}}]},
            'Question "a": The epsilon',
        ),
        ({"questions": [{"id": "A b", "kind": "yes_no", "text": "?"}]}, 'Question 1: "A b"'),
    ],
)
def test_what_is_wrong_with_a_survey_is_said(survey: Survey, facts: dict[str, Any], words: str) -> None:
    with pytest.raises(CloisterError) as caught:
        Survey.from_dict(changed(survey, **facts))
    assert words in str(caught.value)


def test_mistakes_of_a_file_name_the_file(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    values = changed(example_survey(), default_level="secret")
    path.write_text(json.dumps(values), encoding="utf-8")
    with pytest.raises(ParameterError, match=r"a\.json"):
        Survey.read(path)


def test_files_that_are_no_surveys(tmp_path: Path) -> None:
    with pytest.raises(SourceNotFoundError):
        Survey.read(tmp_path / "none.yaml")
    for name, text in (("a.yaml", "[1, 2"), ("a.json", "{"), ("b.yaml", "")):
        (tmp_path / name).write_text(text, encoding="utf-8")
        with pytest.raises(SchemaError, match="survey"):
            Survey.read(tmp_path / name)
    with pytest.raises(ParameterError, match="questions"):
        Survey(id="a", title="t", collector="c", questions=("?",))


def test_totals_add_up_over_questions(survey: Survey) -> None:
    assert survey.total("high").epsilon == Fraction(5, 4)
    assert survey.total({"age": "off", "color": "low"}).epsilon == 4 + 3
    assert survey.total("off").epsilon == 0


def test_unknown_questions_and_levels_are_refused(survey: Survey) -> None:
    with pytest.raises(ParameterError, match='Did you mean "married"'):
        survey.question("maried")
    with pytest.raises(ParameterError, match="use off, low, medium, high"):
        survey.level("married", "extreme")
    with pytest.raises(ParameterError, match="nothing is sent"):
        survey.protocol("married", "off")


def test_a_device_sends_reports_and_nothing_else(survey: Survey, answers: dict[str, Any]) -> None:
    submission = survey.answer(answers, levels={"age": "off", "color": "high"}, day="2026-05-04")
    sent = submission.to_dict()
    assert set(sent) == {"schema", "survey", "fingerprint", "id", "day", "reports"}
    assert sent["schema"] == "cloister.submission/1"
    assert [report["question"] for report in sent["reports"]] == ["married", "color", "ways", "stars"]
    for report in sent["reports"]:
        names = {"schema", "protocol", "version", "epsilon", "domain_hash", "fingerprint", "y"}
        assert set(report) == names | {"survey", "question", "level"}
    assert sent["reports"][1]["level"] == "high"
    assert "yes" not in json.dumps(sent)
    assert repr(submission).count("reports") == 0


def test_ids_are_one_time_and_tokens_are_hashed(survey: Survey, answers: dict[str, Any]) -> None:
    first, second = survey.answer(answers), survey.answer(answers)
    assert first.id != second.id
    assert survey.answer(answers, token="fern-otter-41").id == token_id("fern-otter-41") == token_id(" fern-otter-41 ")
    with pytest.raises(CloisterError, match="token"):
        survey.answer(answers, token=" ")


def test_a_day_may_be_a_date(survey: Survey) -> None:
    assert survey.answer({}, day=date(2026, 5, 4)).day == "2026-05-04"
    before, day, after = datetime.now(UTC).date(), survey.answer({}).day, datetime.now(UTC).date()
    assert day in {before.isoformat(), after.isoformat()}


@pytest.mark.parametrize("day", [datetime(2026, 5, 4, tzinfo=UTC), "2026-05-04T10:00", "yesterday", "2026-13-01", 7])
def test_a_day_is_no_moment(survey: Survey, day: object) -> None:
    with pytest.raises(ParameterError, match="2026-05-04"):
        survey.answer({}, day=day)


@pytest.mark.parametrize(
    "wrong",
    [{"married": "perhaps"}, {"color": None}, {"ways": ["bus", "bike", "car"]}, {"age": "old"}, {"stars": "six"}],
)
def test_answers_that_are_not_declared_are_refused_and_not_repeated(survey: Survey, wrong: dict[str, Any]) -> None:
    with pytest.raises(OutsideDomainError) as caught:
        survey.answer(wrong, random_state=SystemRandomSource())
    name, value = next(iter(wrong.items()))
    assert f'"{name}"' in str(caught.value)
    assert str(value) not in str(caught.value) or value is None


def test_a_question_without_off_must_be_answered() -> None:
    question = SurveyQuestion(id="q", kind="yes_no", text="?", levels={"low": 4})
    survey = Survey(id="s", title="t", collector="c", questions=(question,))
    with pytest.raises(ParameterError, match="must be answered"):
        survey.answer({})
    with pytest.raises(ParameterError, match="does not have this question"):
        survey.answer({"q": "yes", "r": "no"})
    assert len(survey.answer({"q": "yes"}).reports) == 1
