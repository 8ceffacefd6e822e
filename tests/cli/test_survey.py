from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from cloister.cli import app, survey as cli_survey
from cloister.cli.commands import CommandOutput
from cloister.local import Collector, Survey
from cloister.local.survey import example_survey


@pytest.fixture(autouse=True)
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    example_survey().write("survey.yaml")
    return tmp_path


def run(*words: str) -> int:
    return app.run(["survey", *words])


def document(capsys: pytest.CaptureFixture[str]) -> dict[str, Any]:
    return json.loads(capsys.readouterr().out)


def simulated(capsys: pytest.CaptureFixture[str], *options: str) -> str:
    assert run("simulate", "survey.yaml", "--respondents", "300", "-o", "made-up.jsonl", *options) == 0
    return capsys.readouterr().out


def test_a_new_survey_is_an_example_that_works(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("new", "own.yaml") == 0
    shown = capsys.readouterr().out
    assert "6 questions" in shown
    assert "survey plan own.yaml --margin 2" in shown
    text = Path("own.yaml").read_text("utf-8")
    assert text.count("#") > 15
    assert Survey.read("own.yaml") == example_survey()


def test_a_file_that_is_there_is_not_replaced(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("new", "survey.yaml") == 2
    assert "--force" in capsys.readouterr().err
    assert run("new", "survey.yaml", "--force", "--json") == 0
    assert document(capsys)["survey"]["id"] == "life-and-work-2026"
    assert run("new", "survey.txt") == 2
    assert ".yaml" in capsys.readouterr().err


def test_a_plan_for_a_margin(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("plan", "survey.yaml", "--margin", "2") == 0
    shown = capsys.readouterr().out
    assert "155,262 people have to take part" in shown
    assert "152,861 are enough for answers that hardly anybody gives" in shown
    assert "35,368" in shown
    assert "medium (preselected)" in shown
    assert "at most 2.72" in shown


def test_a_plan_for_respondents(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("plan", "survey.yaml", "--respondents", "35368", "--mix", "low=0.5,medium=0.5") == 0
    shown = capsys.readouterr().out
    assert "If people choose levels as in the mix, 35,368 people give margins of" in shown
    assert "± 2 points" in shown
    assert "as mixed" in shown


ONE_CHOICE = """\
schema: cloister.survey/1
id: one
title: One
collector: Example Institute
levels: {off: null, low: 4}
questions:
  - {id: color, kind: single_choice, text: "Which color?", options: [a, b, c, d, e, f]}
  - {id: hours, kind: number, text: "How long?", bounds: [0, 20], levels: {own: 4}}
"""


def test_the_headline_of_a_plan_is_for_any_answer(capsys: pytest.CaptureFixture[str]) -> None:
    Path("one.yaml").write_text(ONE_CHOICE, encoding="utf-8")
    assert run("plan", "one.yaml", "--margin", "1") == 0
    head = capsys.readouterr().out.split("People needed")[0]
    assert "11,875 people" in head
    assert "784 are enough for answers that hardly anybody gives" in head
    assert run("plan", "one.yaml", "--respondents", "1000") == 0
    head = capsys.readouterr().out.split("Margins, for")[0]
    assert "± 3.45 points or better" in head
    assert "± 0.885 points for answers that hardly anybody gives" in head


def test_questions_that_lack_a_level_of_the_mix_are_named(capsys: pytest.CaptureFixture[str]) -> None:
    Path("one.yaml").write_text(ONE_CHOICE, encoding="utf-8")
    assert run("plan", "one.yaml", "--respondents", "1000", "--mix", "off=0.2,low=0.8") == 0
    shown = capsys.readouterr().out
    assert 'The question "hours" does not have the levels off and low of the mix: it is planned at "own".' in shown
    assert run("plan", "one.yaml", "--respondents", "1000", "--mix", "own=1") == 0
    assert 'The question "color" does not have the level own of the mix' in capsys.readouterr().out


def test_a_mean_that_is_hardest_is_told_in_parts_of_its_range(capsys: pytest.CaptureFixture[str]) -> None:
    text = ONE_CHOICE.replace("own: 4", "own: 0.25")
    Path("one.yaml").write_text(text, encoding="utf-8")
    assert run("plan", "one.yaml", "--respondents", "1000") == 0
    assert "% of its range) or better" in capsys.readouterr().out


def test_a_plan_in_json(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("plan", "survey.yaml", "--margin", "2", "--json") == 0
    rows = document(capsys)["rows"]
    found = {(row["question"], row["level"]): row["respondents"] for row in rows}
    assert found["occupation", "low"] == 223
    assert found["occupation", "medium"] == 35368
    assert found["married", "medium"] == 11243


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ([], "--margin 2 to learn"),
        (["--margin", "2", "--respondents", "10"], "--margin 2 to learn"),
        (["--margin", "two"], "margin"),
        (["--margin", "-1"], "margin"),
        (["--respondents", "0"], "respondents"),
        (["--margin", "2", "--mix", "low"], "--mix off=0.1"),
        (["--margin", "2", "--mix", "low=0.5,low=0.5"], "--mix off=0.1"),
        (["--margin", "2", "--mix", "low=0.5"], "add up to 1"),
        (["--margin", "2", "--mix", "lo=1"], 'Did you mean "low"'),
    ],
)
def test_plans_that_make_no_sense_are_refused(
    capsys: pytest.CaptureFixture[str], options: list[str], words: str
) -> None:
    assert run("plan", "survey.yaml", *options) == 2
    assert words in capsys.readouterr().err


def test_a_rehearsal_shows_the_truth_beside_the_estimate(capsys: pytest.CaptureFixture[str]) -> None:
    shown = simulated(capsys)
    assert "Made-up people who took part: 300" in shown
    assert "truth" in shown
    assert "of 33 truths lie within the margins" in shown
    assert "survey aggregate survey.yaml made-up.jsonl" in shown
    lines = Path("made-up.jsonl").read_text("utf-8").splitlines()
    assert len(lines) == 300
    assert json.loads(lines[0])["schema"] == "cloister.submission/1"


def test_a_rehearsal_in_json(capsys: pytest.CaptureFixture[str]) -> None:
    told = json.loads(simulated(capsys, "--json", "--mix", "off=0.5,low=0.5"))
    assert told["schema"] == "cloister.survey_simulation/1"
    assert sum(item["truth"] for item in told["truth"]["married"]) == pytest.approx(1)
    assert told["result"]["questions"][0]["off"] > 50


def test_submissions_are_not_replaced_unless_forced(capsys: pytest.CaptureFixture[str]) -> None:
    simulated(capsys)
    assert run("simulate", "survey.yaml", "--respondents", "5", "-o", "made-up.jsonl") == 2
    assert "--force" in capsys.readouterr().err
    assert run("simulate", "survey.yaml", "--respondents", "5", "-o", "made-up.jsonl", "--force") == 0
    assert len(Path("made-up.jsonl").read_text("utf-8").splitlines()) == 5
    assert run("simulate", "survey.yaml", "--respondents", "5", "-o", "made-up.csv") == 2
    assert ".jsonl" in capsys.readouterr().err


def test_reports_are_aggregated_into_a_report(capsys: pytest.CaptureFixture[str]) -> None:
    simulated(capsys)
    assert run("aggregate", "survey.yaml", "made-up.jsonl", "--report", "results.html") == 0
    shown = capsys.readouterr().out
    assert "300 people took part" in shown
    assert "Are you married? (300 answered, 0 did not)" in shown
    assert "Mean rating" in shown
    assert "at most a factor 404" in shown
    assert "The report is in results.html." in shown
    assert "What the collector could learn about you" in Path("results.html").read_text("utf-8")


def test_margins_stand_beside_estimates_and_mending_is_explained(capsys: pytest.CaptureFixture[str]) -> None:
    survey = example_survey()
    lines = [survey.answer({"married": "yes"}, levels={"married": "low"}).to_json() for _ in range(400)]
    Path("many.jsonl").write_text("\n".join(lines), encoding="utf-8")
    assert run("aggregate", "survey.yaml", "many.jsonl") == 0
    shown = capsys.readouterr().out
    assert '"Before mending" is what the reports say' in shown
    row = next(line for line in shown.splitlines() if line.startswith("yes "))
    assert re.fullmatch(r"yes +\d+\.\d% +± 1\.\d +\d+\.\d%", row.strip())


def test_far_too_few_reports_say_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    survey = example_survey()
    line = survey.answer({"married": "yes", "sleep": 7, "satisfaction": 4}, levels="medium").to_json()
    Path("few.jsonl").write_text(line, encoding="utf-8")
    assert run("aggregate", "survey.yaml", "few.jsonl", "--report", "few.md") == 0
    shown = capsys.readouterr().out
    assert "1 person took part." in shown
    assert shown.count("too few reports to say anything") == 2 + 1 + 5
    page = Path("few.md").read_text("utf-8")
    assert "From 1 report;" in page
    assert page.count("too few reports to say anything") == 2 + 1 + 5
    assert "1 reports" not in page


def test_what_is_refused_is_counted_and_said(capsys: pytest.CaptureFixture[str]) -> None:
    simulated(capsys)
    lines = Path("made-up.jsonl").read_text("utf-8").splitlines()
    Path("more.jsonl").write_text("\n".join([lines[0], "{", "plain yes"]), encoding="utf-8")
    assert run("aggregate", "survey.yaml", "made-up.jsonl", "more.jsonl", "--json") == 0
    captured = capsys.readouterr()
    told = json.loads(captured.out)
    assert told["submissions"] == 300
    assert sorted(told["refused"].values()) == [1, 2]
    notes = [json.loads(line)["text"] for line in captured.err.splitlines()]
    assert notes == [
        "2 submissions left out: not something that this survey's devices make.",
        "1 submission left out: the same id came twice.",
    ]


def test_genuine_reports_are_said_to_look_genuine(capsys: pytest.CaptureFixture[str]) -> None:
    simulated(capsys)
    assert run("aggregate", "survey.yaml", "made-up.jsonl") == 0
    captured = capsys.readouterr()
    assert "Nothing odd: they look like those that the survey's devices send." in captured.out
    assert "Fewer than 1 in a million surveys" in captured.out
    assert "If 1 in 100 people were fake" in captured.out
    assert "9.1 points (a share)" in captured.out
    assert "do not look" not in captured.out + captured.err


def test_an_attack_is_said_in_words_json_and_the_report(capsys: pytest.CaptureFixture[str]) -> None:
    survey = example_survey()
    lines = []
    for _ in range(400):
        sent = survey.answer({"occupation": "Sales", "married": "no"}).to_dict()
        sent["reports"][1]["y"] = "1" * 14
        lines.append(json.dumps(sent))
    simulated(capsys)
    Path("fake.jsonl").write_text("\n".join(lines), encoding="utf-8")
    words = ["aggregate", "survey.yaml", "made-up.jsonl", "fake.jsonl"]
    assert run(*words, "--report", "results.md") == 0
    captured = capsys.readouterr()
    assert "No: these reports do not look like those that the survey's devices send." in captured.out
    assert '- "occupation" at level medium: ' in captured.out
    assert '- "married"' not in captured.out
    assert 'Reports do not look like those of the survey\'s devices: "occupation".' in captured.err
    page = Path("results.md").read_text("utf-8")
    assert "Whether the reports look genuine" in page
    assert "Some reports do not look like those that the survey's devices send" in page
    assert run(*words, "--json") == 0
    captured = capsys.readouterr()
    told = json.loads(captured.out)
    assert told["plausible"] is False
    assert told["questions"][1]["levels"][1]["check"]["verdict"] == "implausible"
    assert told["questions"][0]["levels"][1]["check"]["verdict"] == "plausible"
    assert told["questions"][1]["poisoning"]["fake_share"] == 0.01


def test_a_changed_survey_takes_no_old_submissions(capsys: pytest.CaptureFixture[str]) -> None:
    simulated(capsys)
    text = Path("survey.yaml").read_text("utf-8")
    Path("changed.yaml").write_text(text.replace("Are you married?", "Were you ever married?"), encoding="utf-8")
    assert run("aggregate", "changed.yaml", "made-up.jsonl") == 2
    told = capsys.readouterr().err
    assert "300 submissions left out: for another survey" in told
    assert "none is for the survey in changed.yaml" in told
    assert "very file that was published" in told


def test_a_folder_that_a_collector_kept_is_read(capsys: pytest.CaptureFixture[str]) -> None:
    simulated(capsys)
    collector = Collector(example_survey())
    collector.add_lines(Path("made-up.jsonl").read_text("utf-8").splitlines())
    collector.save("kept")
    assert run("aggregate", "survey.yaml", "kept", "--json") == 0
    from_folder = document(capsys)
    assert run("aggregate", "survey.yaml", "made-up.jsonl", "--json") == 0
    assert from_folder == document(capsys)


def test_nobody_answering_a_question_is_said(capsys: pytest.CaptureFixture[str]) -> None:
    survey = example_survey()
    lines = [survey.answer({"married": "yes"}).to_json() for _ in range(5)]
    Path("few.jsonl").write_text("\n".join(lines), encoding="utf-8")
    assert run("aggregate", "survey.yaml", "few.jsonl") == 0
    assert 'Nobody answered "sleep"' in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["aggregate", "survey.yaml", "none.jsonl"], "check the path"),
        (["aggregate", "none.yaml", "survey.yaml"], "check the path"),
        (["aggregate", "survey.yaml"], "SUBMISSIONS"),
        (["aggregate", "survey.yaml", "made-up.jsonl", "--report", "survey.yaml"], "would replace what is read"),
        (["aggregate", "survey.yaml", "made-up.jsonl", "--report", "odd.txt"], ".html"),
        (["plan", "broken.yaml", "--margin", "2"], "cloister survey new"),
        (["plan", "free-text.yaml", "--margin", "2"], "no noise can hide words"),
        (["paln"], 'Did you mean "plan"'),
    ],
)
def test_wrong_files_and_commands_are_misuse(capsys: pytest.CaptureFixture[str], words: list[str], told: str) -> None:
    Path("broken.yaml").write_text("questions: [", encoding="utf-8")
    text = Path("survey.yaml").read_text("utf-8").replace("kind: yes_no", "kind: free_text")
    Path("free-text.yaml").write_text(text, encoding="utf-8")
    assert run(*words) == 2
    assert told in capsys.readouterr().err


def test_progress_is_shown_on_a_terminal(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    simulated(capsys)
    assert run("aggregate", "survey.yaml", "made-up.jsonl", "--report", "r.md") == 0


def test_progress_tells_how_far_the_reading_is(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    told: list[tuple[float, str]] = []

    @contextmanager
    def progress(_self: CommandOutput, _text: str) -> Iterator[Any]:
        yield lambda share, what: told.append((share, what))

    monkeypatch.setattr(CommandOutput, "progress", progress)
    monkeypatch.setattr(cli_survey, "_NOW_AND_THEN", 100)
    simulated(capsys)
    assert [share for share, what in told if what == "writing submissions"] == pytest.approx([0, 1 / 3, 2 / 3])
    assert [share for share, what in told if what == "reading submissions"] == pytest.approx([0, 1 / 3, 2 / 3])
    told.clear()
    assert run("aggregate", "survey.yaml", "made-up.jsonl") == 0
    shares = [share for share, what in told if what == "made-up.jsonl"]
    assert shares == pytest.approx([0, 1 / 3, 2 / 3], abs=0.01)


def test_the_group_explains_itself(capsys: pytest.CaptureFixture[str]) -> None:
    assert run() == 0
    shown = capsys.readouterr().out
    assert "..." not in shown.partition("Commands:")[2]
    for verb in ("new", "plan", "simulate", "aggregate"):
        assert verb in shown
        assert run(verb, "--help") == 0
        assert "Example:" in capsys.readouterr().out
