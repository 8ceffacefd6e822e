from __future__ import annotations

import io
import json
import sys
from pathlib import Path
from typing import Any

import pytest

from cloister.cli import app
from cloister.local import Collector, Survey, SurveyQuestion
from cloister.local.survey import example_survey, token_id

ANSWERS = """
answers:
  married: no
  occupation: sales
  commute: [Car, bicycle]
  sleep: 7.5
  age: 44
  satisfaction: 4
levels: {married: high, sleep: low, satisfaction: off}
"""


@pytest.fixture(autouse=True)
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    example_survey().write("survey.yaml")
    Path("answers.yaml").write_text(ANSWERS, encoding="utf-8")
    return tmp_path


def run(*words: str) -> int:
    return app.run(["survey", "answer", *words])


def typed(monkeypatch: pytest.MonkeyPatch, *lines: str) -> int:
    monkeypatch.setattr(sys, "stdin", io.StringIO("".join(f"{line}\n" for line in lines)))
    return run("survey.yaml", "-o", "sent.json")


def sent() -> dict[str, Any]:
    text = Path("sent.json").read_text("utf-8")
    assert text.count("\n") == 1
    Collector(example_survey()).add(text.strip())
    return dict(json.loads(text))


def levels_sent() -> dict[str, str]:
    return {report["question"]: report["level"] for report in sent()["reports"]}


def test_answers_of_a_file_become_a_submission(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("survey.yaml", "-o", "sent.json", "--answers", "answers.yaml", "--token", "fern-otter-41") == 0
    shown = capsys.readouterr().out
    assert levels_sent() == {
        "married": "high",
        "occupation": "medium",
        "commute": "medium",
        "sleep": "low",
        "age": "medium",
    }
    assert sent()["id"] == token_id("fern-otter-41")
    survey = example_survey()
    left = {"married": "high", "sleep": "low", "satisfaction": "off"}
    assert str(survey.total(left)) in shown
    assert "Not answered, which the collector sees: satisfaction." in shown
    assert "Nothing was sent" in shown
    exact = shown[shown.index("exactly:") + len("exactly:") : shown.index("\n}\n") + 2]
    assert json.loads(exact) == sent()


def test_true_answers_are_not_printed(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("survey.yaml", "-o", "sent.json", "--answers", "answers.yaml") == 0
    shown = capsys.readouterr().out
    for answer in ("sales", "bicycle", "Sales", "Bicycle", "7.5"):
        assert answer not in shown


def test_what_was_typed_is_written_nowhere(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(place / "home"))
    assert typed(monkeypatch, "each", "off", "off", "off", "low", "off", "off", "7.34521", "y") == 0
    assert levels_sent() == {"sleep": "low"}
    files = [path for path in place.rglob("*") if path.is_file()]
    assert sorted(path.name for path in files) == ["answers.yaml", "sent.json", "survey.yaml"]
    assert not any(b"34521" in path.read_bytes() for path in files)


def test_json_says_the_same(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("survey.yaml", "-o", "sent.json", "--answers", "answers.yaml", "--json") == 0
    told = json.loads(capsys.readouterr().out)
    assert told["schema"] == "cloister.survey_answer/1"
    assert told["submission"] == sent()
    assert told["file"] == "sent.json"
    assert told["odds_factor"] > 1000
    assert run("survey.yaml", "-o", "other.json", "--json") == 2
    assert "--answers" in capsys.readouterr().err


def test_one_level_for_all_questions(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    assert typed(monkeypatch, "high", "yes", "11", "none", "8", "", "5", "y") == 0
    shown = capsys.readouterr().out
    assert set(levels_sent().values()) == {"high"}
    assert set(levels_sent()) == {"married", "occupation", "commute", "sleep", "satisfaction"}
    assert shown.index("How strongly should your answers be protected?") < shown.index("Are you married?")
    assert "high: Whatever you answer, the collector's odds about your true answer can change" in shown
    assert shown.index('"cloister.submission/1"') < shown.index("Write this to sent.json?")
    assert "can change by at most a factor 4.49." in shown  # four answers at 1/4, the rating at 1/2


def test_a_level_for_each_question(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    levels = ["low", "off", "off", "", "off", "high"]
    assert typed(monkeypatch, "each", *levels, "no", "6.5", "3", "y") == 0
    assert levels_sent() == {"married": "low", "sleep": "medium", "satisfaction": "high"}
    assert "What is your occupation?" not in capsys.readouterr().out


def test_a_question_without_the_level_is_asked_for_its_own(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert typed(monkeypatch, "low", "high", "no", "", "", "", "", "4", "y") == 0
    assert levels_sent() == {"married": "low", "satisfaction": "high"}
    assert "Level for question 6 (satisfaction)" in capsys.readouterr().out


def test_answers_that_cannot_be_read_are_asked_again(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    lines = [
        "medium",
        "perhaps-4711",
        "yes",
        "15",
        "1",
        "1,2,3",
        "1,1",
        "1,2",
        "tonight",
        "7",
        "old",
        "30",
        "6",
        "5",
        "y",
    ]
    assert typed(monkeypatch, *lines) == 0
    shown = capsys.readouterr().out
    assert len(levels_sent()) == 6
    assert shown.count("not one of those that can be given. Please answer with one of: ") == 3
    assert shown.count("too many picks, or one of them twice. Please pick at most 2") == 2
    assert shown.count("the answer is not a number. Please answer with a number from 0 to 16") == 1
    assert shown.count("the answer is not a whole number. Please answer with a whole number") == 1
    assert "4711" not in shown


def test_a_number_out_of_bounds_is_noted_before_it_is_written(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert typed(monkeypatch, "high", "", "", "", "", "7", "", "n") == 1
    assert "outside of 16 to 100, and counts as the nearer of the two" in capsys.readouterr().err


def test_nothing_is_written_unless_agreed(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    assert typed(monkeypatch, "off", "n") == 1
    assert "Nothing was written." in capsys.readouterr().out
    assert not Path("sent.json").exists()
    assert typed(monkeypatch, "high", "yes") == 130  # the input ended
    assert not Path("sent.json").exists()


def test_a_question_that_must_be_answered_is_asked_until_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    question = SurveyQuestion(id="q", kind="yes_no", text="?", help="Really.", levels={"low": 4})
    Survey(id="s", title="t", collector="c", questions=(question,)).write("survey.yaml", overwrite=True)
    assert typed(monkeypatch, "", "", "", "yes", "y") == 0
    assert json.loads(Path("sent.json").read_text("utf-8"))["reports"][0]["level"] == "low"


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("answers: {married: perhaps-4711}", 'Question "married": the answer is not one of those'),
        ("answers: {sleep: perhaps-4711}", 'Question "sleep": the answer is not a number.'),
        ("answers: {commute: [Car, Bicycle, On foot]}", "pick at most 2"),
        ("answers: {commute: {Car: 1}}", "not one of those that can be given"),
        ("answers: {maried: no}", 'Did you mean "married"'),
        ("answers: {married: no}\nlevels: {married: hihg}", 'Did you mean "high"'),
        ("answers: {married: no}\nlevels: 7", "answers: {married: no}"),
        ("married: no", "answers: {married: no}"),
        ("answers: {married: no}\nname: me", "answers: {married: no}"),
        ("answers: [", "not valid YAML"),
        ("", "answers: {married: no}"),
    ],
)
def test_wrong_files_of_answers_are_misuse(capsys: pytest.CaptureFixture[str], text: str, told: str) -> None:
    Path("answers.yaml").write_text(text, encoding="utf-8")
    assert run("survey.yaml", "-o", "sent.json", "--answers", "answers.yaml") == 2
    shown = capsys.readouterr().err
    assert told in shown
    assert "4711" not in shown
    assert not Path("sent.json").exists()


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["survey.yaml", "-o", "survey.yaml"], "would replace what is read"),
        (["survey.yaml", "-o", "odd.txt"], ".json"),
        (["survey.yaml"], "--output"),
        (["none.yaml", "-o", "sent.json"], "check the path"),
        (["survey.yaml", "-o", "sent.json", "--answers", "none.yaml"], "check the path"),
        (["survey.yaml", "-o", "there.json", "--answers", "answers.yaml"], "--force"),
    ],
)
def test_wrong_targets_and_files_are_misuse(capsys: pytest.CaptureFixture[str], words: list[str], told: str) -> None:
    Path("there.json").write_text("{}", encoding="utf-8")
    assert run(*words) == 2
    assert told in capsys.readouterr().err


def test_the_command_explains_itself(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("--help") == 0
    assert "Nothing is sent" in " ".join(capsys.readouterr().out.split())
    assert app.run(["survey"]) == 0
    assert "answer" in capsys.readouterr().out
