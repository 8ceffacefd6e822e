from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from cloister.local import Collector, Survey, SurveyQuestion
from cloister.local.survey import SurveyResult, example_survey, simulate
from cloister.local.survey.results import TOO_FEW


@pytest.fixture(scope="module")
def result() -> SurveyResult:
    survey = example_survey()
    collector = Collector(survey)
    collector.add_lines(simulate(survey, respondents=900, mix={"off": 0.05, "low": 0.1, "medium": 0.85}).lines())
    collector.add_lines(["{}"])
    return collector.estimate()


def collected(survey: Survey, answers: dict[str, Any], levels: list[str]) -> SurveyResult:
    collector = Collector(survey)
    for level in levels:
        collector.add(survey.answer(answers, levels=level))
    return collector.estimate()


def test_the_report_says_what_came_out_and_what_could_be_learned(result: SurveyResult, tmp_path: Path) -> None:
    for ending in ("html", "md", "json"):
        result.report(tmp_path / f"report.{ending}")
    text = (tmp_path / "report.md").read_text("utf-8")
    assert "What the collector could learn about you" in text
    for question in result.survey.questions:
        assert question.text in text
    assert "54.6" in text
    assert "at most a factor 404" in text
    assert "Refused: not something that this survey's devices make" in text
    assert "Epsilon if shuffled" in text
    assert "1 further submission was refused" in text
    assert json.loads((tmp_path / "report.json").read_text("utf-8"))["schema"] == "cloister.report_page/1"
    page = (tmp_path / "report.html").read_text("utf-8")
    assert page.count("percent of the people who answered") >= 5
    assert "estimated mean" in page


def test_a_survey_that_nobody_answers_still_has_a_report(survey: Survey) -> None:
    text = collected(survey, {}, ["low"]).report().to_markdown()
    assert "Questions that nobody answered" in text
    assert "Epsilon if shuffled" not in text


def test_the_head_of_the_report_shows_the_total_and_no_verdict(result: SurveyResult) -> None:
    cover = result.report().to_markdown().split("What was answered")[0]
    assert "a factor 404" in cover
    assert "every question at its preselected level" in cover
    assert not any(figure.status.word for figure in result.report().figures)
    assert f"\n\n{result.survey.purpose}\n\n" in cover


def test_charts_are_titled_and_say_what_they_show(result: SurveyResult) -> None:
    for one in result.questions:
        chart = json.dumps(one.plot().to_dict(), ensure_ascii=False)
        assert one.question.text in chart
        assert '"estimates from' in chart
        assert '"raw estimates from' in json.dumps(one.plot(raw=True).to_dict(), ensure_ascii=False)
    page = result.report().to_html()
    assert "Estimated shares" not in page
    assert page.count("The chart shows the mended estimates") == len(result.questions)


def test_margins_of_charts_and_tables_have_the_same_digits(result: SurveyResult) -> None:
    one = result["occupation"]
    columns, rows = one.plot().to_table()
    text = result.report().to_markdown()
    for row in rows:
        reads = next(str(cell) for cell in row if "±" in str(cell))
        share, margin = reads.split(" ± ")
        assert re.search(rf"\| {re.escape(share)}% \| [^|]+% \| ± {re.escape(margin)} \|", text)
    assert columns


def test_a_chart_draws_what_the_table_says_and_raw_numbers_on_request(survey: Survey) -> None:
    # Some estimate is below zero in most samples, and has to be: until then they are drawn again.
    drawn = (collected(survey, {"married": "yes", "color": "red"}, ["low"] * 40)["color"] for _ in range(100))
    one = next(found for found in drawn if min(found.raw.values()) < 0)
    for raw, shares in ((False, one.mended), (True, one.raw)):
        _, rows = one.plot(raw=raw).to_table()
        assert [f"{shown}" for _, shown in rows] == [
            one.format_value(share, one.margins()[name]).replace("%", "") for name, share in shares.items()
        ]
    few = collected(survey, {"color": "red"}, ["high"] * 3)["color"]
    assert TOO_FEW in json.dumps(few.plot().to_dict())
    assert TOO_FEW not in json.dumps(one.plot().to_dict())


def test_a_value_that_the_table_does_not_state_is_not_drawn(survey: Survey, monkeypatch: pytest.MonkeyPatch) -> None:
    one = collected(survey, {"color": "red"}, ["low"] * 40)["color"]
    monkeypatch.setattr(type(one), "telling", lambda self: {name: name != "blue" for name in self.raw})
    assert one.estimated()["blue"] == TOO_FEW
    assert "no value" in json.dumps(one.plot().to_dict())


def test_no_report_says_anonymous(result: SurveyResult) -> None:
    assert "anonym" not in result.report().to_markdown().lower()


def test_the_sharper_guess_is_shown_where_there_are_several_levels(survey: Survey) -> None:
    one = collected(survey, {"color": "red"}, ["low"] * 3).report().to_markdown()
    several = collected(survey, {"color": "red"}, ["low", "low", "high"]).report().to_markdown()
    assert "Sharper guess" not in one
    assert "Sharper guess" in several
    assert "no more difference than chance explains" in several


def test_levels_that_differ_are_warned_of() -> None:
    question = SurveyQuestion(id="q", kind="yes_no", text="?", levels={"weak": 20, "strong": 19})
    survey = Survey(id="s", title="t", collector="c", questions=(question,))
    collector = Collector(survey)
    for level, answer in [("weak", "yes")] * 60 + [("strong", "no")] * 60:
        collector.add(survey.answer({"q": answer}, levels=level))
    assert "more than chance explains" in collector.estimate().report().to_markdown()


def test_unanswered_questions_are_listed_and_texts_cannot_break_the_page() -> None:
    nasty = "<script>alert(1)</script> **bold** [x](y)"
    questions = (
        SurveyQuestion(id="q", kind="yes_no", text=nasty, options=("<b>no</b>", "*yes*")),
        SurveyQuestion(id="r", kind="yes_no", text=nasty + "?"),
    )
    survey = Survey(id="s", title=nasty, collector=nasty, purpose=nasty, questions=questions)
    made = collected(survey, {"q": "*yes*"}, ["low"] * 5).report()
    assert "Questions that nobody answered" in made.to_markdown()
    page = made.to_html()
    assert "<script>" not in page
    assert "<b>no</b>" not in page
    assert "&lt;script&gt;alert(1)&lt;/script&gt; **bold**" in page


def test_charts_show_margins(result: SurveyResult) -> None:
    bars = result.plot("married").to_dict()
    assert "Are you married?" in json.dumps(bars)
    mean = json.dumps(result.plot("sleep").to_dict())
    assert "level low" in mean
    assert "everybody" in mean
