from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st

from cloister.errors import (
    DataError,
    DuplicateReportError,
    ForeignReportError,
    MalformedReportError,
    ReportError,
    TooFewReportsError,
)
from cloister.local import Collector, Survey, SurveyQuestion
from cloister.local.survey import simulate, token_id
from cloister.local.survey.submissions import MOST_BYTES, parse, read_lines


@pytest.fixture
def collector(survey: Survey) -> Collector:
    return Collector(survey)


@pytest.fixture
def sent(survey: Survey, answers: dict[str, Any]) -> dict[str, Any]:
    return survey.answer(answers, day="2026-05-04").to_dict()


def assert_refused(collector: Collector, submission: Any, error: type[ReportError], words: str) -> None:
    with pytest.raises(error, match=words) as caught:
        collector.add(submission)
    assert caught.value.fix
    assert len(collector) == 0
    assert all(count == 0 for count in collector.counts("color").values())


def test_submissions_are_taken_in_every_form(collector: Collector, survey: Survey, answers: dict[str, Any]) -> None:
    submissions = [survey.answer(answers) for _ in range(4)]
    collector.add(submissions[0])
    collector.add(submissions[1].to_dict())
    collector.add(submissions[2].to_json())
    collector.add(submissions[3].to_json().encode())
    assert len(collector) == 4
    assert collector.counts("color") == {"off": 0, "low": 0, "medium": 4, "high": 0}
    assert repr(collector) == "Collector('small', 4 submissions)"


def test_people_who_leave_out_a_question_are_counted(collector: Collector, survey: Survey) -> None:
    collector.add(survey.answer({"color": "red"}))
    collector.add(survey.answer({"color": "red", "age": 7}, levels={"age": "low"}))
    collector.add(survey.answer({}))
    assert collector.counts("color") == {"off": 1, "low": 0, "medium": 2, "high": 0}
    assert collector.counts("age") == {"off": 2, "low": 1, "medium": 0, "high": 0}


def test_an_id_is_used_once(collector: Collector, sent: dict[str, Any], survey: Survey) -> None:
    collector.add(sent)
    with pytest.raises(DuplicateReportError, match="count the first one only"):
        collector.add({**survey.answer({}).to_dict(), "id": sent["id"]})
    assert len(collector) == 1


def test_a_refused_submission_does_not_use_up_its_id(collector: Collector, sent: dict[str, Any]) -> None:
    assert_refused(collector, {**sent, "reports": [{"question": "color"}]}, ReportError, "does not have")
    collector.add(sent)
    assert len(collector) == 1


def test_only_invited_people_are_admitted(survey: Survey, answers: dict[str, Any]) -> None:
    collector = Collector(survey, admitted=[token_id("one"), token_id("two")])
    collector.add(survey.answer(answers, token="one"))
    with pytest.raises(ForeignReportError, match="not invited"):
        collector.add(survey.answer(answers, token="three"))
    with pytest.raises(DuplicateReportError):
        collector.add(survey.answer(answers, token="one"))
    assert len(collector) == 1


@pytest.mark.parametrize(
    ("part", "value"),
    [("survey", "other"), ("fingerprint", "0" * 64), ("survey", ""), ("fingerprint", "")],
)
def test_other_surveys_and_versions_are_refused(
    collector: Collector, sent: dict[str, Any], part: str, value: str
) -> None:
    assert_refused(collector, {**sent, part: value}, ForeignReportError, "exactly as it was published")


@pytest.mark.parametrize(
    ("part", "value"),
    [
        ("survey", "other"),
        ("question", "colour"),
        ("question", None),
        ("question", ["color"]),
        ("level", "extreme"),
        ("level", "off"),
        ("level", "high"),
        ("protocol", "direct_encoding_2"),
        ("version", 2),
        ("schema", "cloister.report/2"),
        ("epsilon", "2"),
        ("domain_hash", "0" * 64),
        ("fingerprint", "0" * 64),
    ],
)
def test_other_questions_levels_protocols_and_versions_are_refused(
    collector: Collector, sent: dict[str, Any], part: str, value: object
) -> None:
    first, *others = sent["reports"]
    assert_refused(
        collector, {**sent, "reports": [{**first, part: value}, *others]}, ForeignReportError, "does not have"
    )


@pytest.mark.parametrize("y", ["yes", True, None, -1, 2, 1.0, [1], {"y": 1}, "1", 10**30])
def test_whatever_a_device_cannot_report_is_refused(collector: Collector, sent: dict[str, Any], y: object) -> None:
    first, *others = sent["reports"]
    assert_refused(collector, {**sent, "reports": [*others, {**first, "y": y}]}, MalformedReportError, "plain answers")


@pytest.mark.parametrize("bits", ["101", "10101", "10 1", "1021", 5, "", ["1", "0", "1", "0"]])
def test_bits_of_another_length_are_refused(collector: Collector, sent: dict[str, Any], bits: object) -> None:
    reports = [{**report, "y": bits} if report["question"] == "ways" else report for report in sent["reports"]]
    assert_refused(collector, {**sent, "reports": reports}, MalformedReportError, "plain answers")


def test_a_question_is_answered_once(collector: Collector, survey: Survey, sent: dict[str, Any]) -> None:
    again = survey.answer({"color": "red"}, levels="high").to_dict()["reports"]
    for further in (again, sent["reports"][:1]):
        assert_refused(collector, {**sent, "reports": [*sent["reports"], *further]}, MalformedReportError, "twice")


def test_a_question_without_off_must_be_answered() -> None:
    question = SurveyQuestion(id="q", kind="yes_no", text="?", levels={"low": 4})
    survey = Survey(id="s", title="t", collector="c", questions=(question,))
    collector, sent = Collector(survey), survey.answer({"q": "no"}).to_dict()
    with pytest.raises(MalformedReportError, match="must be answered"):
        collector.add({**sent, "reports": []})
    collector.add(sent)
    assert collector.counts("q") == {"off": 0, "low": 1}


@pytest.mark.parametrize(
    "change",
    [
        {"ip": "10.0.0.1"},
        {"comment": "it was me"},
        {"day": "2026-05-04T10:11:12"},
        {"day": "2026-02-30"},
        {"day": 20260504},
        {"id": "me@example.org"},
        {"id": "ABCDEF" * 8},
        {"id": "ab"},
        {"id": "a" * 65},
        {"reports": {}},
        {"reports": ["yes"]},
        {"schema": "cloister.submission/2"},
    ],
)
def test_nothing_but_the_form_is_accepted(collector: Collector, sent: dict[str, Any], change: dict[str, Any]) -> None:
    assert_refused(collector, {**sent, **change}, MalformedReportError, "A submission")


def test_parts_may_neither_be_missing_nor_added(collector: Collector, sent: dict[str, Any]) -> None:
    for name in sent:
        short = {key: value for key, value in sent.items() if key != name}
        assert_refused(collector, short, MalformedReportError, "another form")
    first, *others = sent["reports"]
    assert_refused(collector, {**sent, "reports": [{**first, "note": "hi"}, *others]}, MalformedReportError, "added")
    bare = {key: value for key, value in first.items() if key != "y"}
    assert_refused(collector, {**sent, "reports": [bare, *others]}, MalformedReportError, "missing")


def test_damaged_json_is_refused(collector: Collector, sent: dict[str, Any]) -> None:
    text = json.dumps(sent)
    repeated = text.replace('"day"', '"id": "' + "0" * 32 + '", "day"')
    deep = "[" * 100_000
    for bad in (
        text[:-1],
        text[: len(text) // 2],
        "",
        "null",
        "[]",
        repeated,
        text.replace('"y": ', '"y": NaN, "z": '),
        deep,
    ):
        assert_refused(collector, bad, MalformedReportError, "A submission")
    assert_refused(collector, text + " " * MOST_BYTES, MalformedReportError, "too long")
    assert_refused(collector, text.encode()[:-2] + b"\xff}", MalformedReportError, "not JSON")


@settings(max_examples=200, deadline=None)
@given(data=st.data())
def test_no_damage_makes_anything_but_a_report_error(data: st.DataObject) -> None:
    question = SurveyQuestion(id="q", kind="single_choice", text="?", options=("a", "b", "c"))
    survey = Survey(id="s", title="t", collector="c", questions=(question,))
    text = bytearray(survey.answer({"q": "a"}).to_json().encode())
    for _ in range(data.draw(st.integers(1, 4))):
        place = data.draw(st.integers(0, len(text) - 1))
        text[place] = data.draw(st.integers(0, 255))
    collector = Collector(survey)
    try:
        collector.add(bytes(text))
    except ReportError:
        taken = 0
    else:
        parse(bytes(text))
        taken = 1
    assert len(collector) == sum(collector.counts("q").values()) == taken


def test_errors_do_not_repeat_what_was_sent(collector: Collector, sent: dict[str, Any]) -> None:
    for change in (
        {"secret-4711": 1},
        {"id": "secret-4711"},
        {"survey": "secret-4711"},
        {"reports": [{"y": "secret-4711"}]},
    ):
        with pytest.raises(ReportError) as caught:
            collector.add({**sent, **change})
        assert "secret-4711" not in str(caught.value)


def test_lines_are_taken_and_the_refused_are_counted(collector: Collector, survey: Survey, answers: Any) -> None:
    line = survey.answer(answers).to_json()
    other = json.dumps({**json.loads(line), "survey": "other"})
    intake = collector.add_lines([line, "", line, "{}", other, "\n"])
    assert (intake.accepted, intake.refused) == (1, 3)
    assert sorted(intake.reasons().values()) == [1, 1, 1]
    assert collector.refused == intake.reasons()


def test_lines_and_single_submissions_are_judged_alike(survey: Survey, sent: dict[str, Any]) -> None:
    """Every kind of wrong submission among good ones: whatever `add` refuses is left out, and nothing else."""
    first, *others = sent["reports"]
    text = json.dumps(sent)
    wrong = [
        *(json.dumps({**sent, "reports": [{**first, **change}, *others]}) for change in WRONG_PARTS),
        *(json.dumps({**sent, "reports": [*others, {**first, "y": y}]}) for y in (True, 2, -1, 1.0, None, "1", 10**30)),
        *(json.dumps({**sent, "reports": [*sent["reports"], again]}) for again in sent["reports"]),
        *(json.dumps({**sent, **change}) for change in ({"ip": "::1"}, {"day": "2026-13-01"}, {"survey": "x"})),
        text.replace('"y": ', '"y": 0, "y": ', 1),
        text.replace('"y": ', '"y" : 0, "y": ', 1),
        text.replace('"day"', '"\\u0069d": "' + "0" * 32 + '", "day"'),
        text.replace("[", '["three", ', 1),
        text.replace("}, {", "}, 7, {", 1),
        text[:-1],
        text.replace('"y": ', '"y": NaN, "z": '),
    ]
    good = [survey.answer({"color": "red"}).to_json() for _ in range(len(wrong))]
    collector, single = Collector(survey), Collector(survey)
    intake = collector.add_lines(line for pair in zip(wrong, good, strict=True) for line in pair)
    for line in wrong:
        with pytest.raises(ReportError):
            single.add(line)
    assert (intake.accepted, intake.refused) == (len(good), len(wrong))
    assert len(collector) == collector.counts("color")["medium"] == len(good)
    assert collector.counts("married")["medium"] == 0
    assert "unusable" not in intake


WRONG_PARTS: tuple[dict[str, Any], ...] = (
    {"version": True},
    {"version": 1.0},
    {"version": 2},
    {"survey": "other"},
    {"question": ["married"]},
    {"level": "high"},
    {"epsilon": 1},
    {"fingerprint": "0" * 64},
    {"note": "hi"},
)


def test_lines_are_the_same_in_every_encoding_of_json(survey: Survey, answers: dict[str, Any]) -> None:
    lines = [survey.answer(answers).to_json() for _ in range(5)]
    spaced = json.dumps(json.loads(lines[0]), indent=1).replace("\n", " ").replace('":', '" :')
    escaped = lines[1].replace("cloister.submission", "\\u0063loister.submission")
    forms = [spaced, escaped, lines[2].encode("utf-16"), b"\xef\xbb\xbf" + lines[3].encode(), f"  {lines[4]}\r\n"]
    assert Collector(survey).add_lines(forms).accepted == 5


def test_what_is_kept_cannot_be_linked(survey: Survey, answers: dict[str, Any], tmp_path: Path) -> None:
    collector, ids = Collector(survey), []
    for _ in range(50):
        submission = survey.answer(answers, day="2026-05-04")
        ids.append(submission.id)
        collector.add(submission)
    collector.save(tmp_path)
    kept, used = ((tmp_path / name).read_text("utf-8") for name in ("reports.json", "used-ids.json"))
    assert not any(identifier in kept or identifier in used for identifier in ids)
    assert set(json.loads(kept)) == {"schema", "survey", "fingerprint", "days", "bags"}
    assert set(json.loads(used)) == {"schema", "survey", "fingerprint", "used"}
    assert json.loads(used)["used"] == sorted(json.loads(used)["used"])
    for question in survey.questions:
        rows = collector.reports(question.id, "medium").payload
        assert [row.tobytes() for row in rows] == sorted(row.tobytes() for row in rows)


def test_what_is_kept_is_read_again(survey: Survey, answers: dict[str, Any], tmp_path: Path) -> None:
    collector = Collector(survey)
    for level in ("low", "medium", "medium"):
        last = survey.answer(answers, levels=level)
        collector.add(last)
    collector.save(tmp_path)
    with pytest.raises(DataError, match="overwrite"):
        collector.save(tmp_path)
    again = Collector.load(survey, tmp_path)
    assert len(again) == 3
    assert again.counts("ways") == collector.counts("ways")
    assert again.estimate().to_dict() == collector.estimate().to_dict()
    with pytest.raises(DuplicateReportError):
        again.add(last)
    again.add(survey.answer(answers))
    assert again.counts("ways")["medium"] == 3


@pytest.mark.parametrize("name", ["reports.json", "used-ids.json"])
def test_damaged_collections_are_refused(survey: Survey, answers: dict[str, Any], tmp_path: Path, name: str) -> None:
    collector = Collector(survey)
    collector.add(survey.answer(answers))
    collector.save(tmp_path)
    values = json.loads((tmp_path / name).read_text("utf-8"))
    part = "bags" if name == "reports.json" else "used"
    broken = [{"question": "color", "level": "medium", "reports": "AAAA"}]
    for bad in (
        "{",
        json.dumps({**values, part: 7}),
        json.dumps({**values, part: broken}),
        json.dumps({"schema": "x"}),
    ):
        (tmp_path / name).write_text(bad, encoding="utf-8")
        with pytest.raises(DataError):
            Collector.load(survey, tmp_path)


def test_many_reports_are_kept_together(survey: Survey) -> None:
    collector = Collector(survey)
    for submission in simulate(survey, respondents=5000).submissions:
        collector.add(submission)
    assert collector.counts("married")["medium"] == 5000
    assert len(collector.reports("married", "medium")) == 5000


def test_nothing_can_be_estimated_from_nothing(collector: Collector) -> None:
    with pytest.raises(TooFewReportsError, match="planner"):
        collector.estimate()


def test_a_line_that_is_too_long_is_cut_and_the_next_one_is_read(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_bytes(b"short\n" + b"x" * (3 * MOST_BYTES) + b"\nlast")
    assert [len(line) for line in read_lines(path)] == [6, MOST_BYTES + 1, 4]
    with pytest.raises(DataError):
        list(read_lines(tmp_path))
