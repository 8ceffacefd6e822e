from __future__ import annotations

import hashlib
import json
import re
import subprocess
import warnings
from collections.abc import Callable
from copy import deepcopy
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

import cloister.local
from cloister.core.random import ListedRandomSource, SystemRandomSource
from cloister.errors import DataWarning
from cloister.local import Collector, Survey, SurveyQuestion
from cloister.local.survey import SurveyTerms, example_survey, token_id
from cloister.local.survey.levels import LEVELS_ARE_VISIBLE
from tests.support import browser, local_reference as reference

HERE = Path(__file__).parent
CLIENT = Path(cloister.local.__file__).parent / "js"
FOLDERS = {
    "/tests/local/survey/js": HERE / "js",
    "/tests/local/js": HERE.parent / "js",
    "/src/cloister/local/js": CLIENT,
}
DAY = "2026-05-04"
Taker = Callable[[dict[str, Any]], dict[str, Any]]


def in_node(argument: dict[str, Any]) -> dict[str, Any]:
    done = subprocess.run(
        ["node", HERE / "js" / "node.mjs", HERE / "js" / "take.mjs"],
        input=json.dumps(argument),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return dict(json.loads(done.stdout))


def in_chromium(argument: dict[str, Any]) -> dict[str, Any]:
    return dict(browser.run_module("/tests/local/survey/js/take.mjs", argument, folders=FOLDERS))


@pytest.fixture(
    params=[
        pytest.param(in_node, id="node", marks=[pytest.mark.node, pytest.mark.slow]),
        pytest.param(in_chromium, id="chromium", marks=[pytest.mark.chromium, pytest.mark.slow]),
    ]
)
def take(request: pytest.FixtureRequest) -> Taker:
    found: Taker = request.param
    return found


@pytest.fixture
def everything() -> Survey:
    """One question of every kind and protocol that a survey can have, with texts that are not easy."""
    return Survey(
        id="every-kind",
        title='Quotes " and <b>tags</b> \N{SNOWMAN}',
        collector="Example Institute & others",
        purpose="\u2028 line",
        default_level="high",
        questions=(
            SurveyQuestion(id="coins", kind="yes_no", text="Coins?", coins=("1/2", "1/4")),
            SurveyQuestion(id="yes-no", kind="yes_no", text="Yes?", help="Say.", levels={"low": "7/3"}),
            SurveyQuestion(id="few", kind="single_choice", text="Few?", options=("a", 'b "', "Grün")),
            SurveyQuestion(id="many", kind="single_choice", text="Many?", options=tuple(range(40))),
            SurveyQuestion(
                id="hashed", kind="single_choice", text="?", options=(1.5, 2.0), protocol="optimized_local_hashing"
            ),
            SurveyQuestion(
                id="rows", kind="single_choice", text="?", options=tuple("abc"), protocol="hadamard_response"
            ),
            SurveyQuestion(id="some", kind="multiple_choice", text="Some?", options=tuple("abcdef"), most=3),
            SurveyQuestion(id="mean", kind="number", text="Mean?", bounds=("-0.1", "1/3")),
            SurveyQuestion(id="bit", kind="number", text="Bit?", bounds=(0, 10**9), protocol="duchi"),
            SurveyQuestion(id="age", kind="number", text="Age?", bounds=(0, 99), whole=True, bins=(0, 18, 65, 99)),
            SurveyQuestion(
                id="weight", kind="number", text="?", bounds=("0.1", "0.7"), bins=("0.1", "0.3", "1/3", "0.7")
            ),
            SurveyQuestion(id="near", kind="rating", text="Near?", options=(1, 2, 3, 4, 5), protocol="pram"),
        ),
    )


ANSWERS: tuple[dict[str, Any], ...] = (
    {
        "coins": "yes",
        "yes-no": "no",
        "few": "Grün",
        "many": 39,
        "hashed": 2,
        "rows": "b",
        "some": ["f", "a"],
        "mean": "0.2",
        "bit": 123456789.25,
        "age": "17",
        "weight": 1 / 3,
        "near": "5",
    },
    {"yes-no": "yes", "few": 'b "', "some": [], "mean": -7, "age": 65, "weight": 0.3, "bit": 1e9},
    {"yes-no": "yes", "age": "9" * 400 + "/" + "3" * 400, "weight": 0.2, "mean": "1e999", "bit": "-1e999"},
    {"yes-no": "yes", "age": -3, "weight": 5, "some": ["a", "b", "c"], "hashed": 1.5, "coins": None},
)
LEVELS: tuple[Any, ...] = ({}, {"few": "low", "mean": "medium", "some": "off"}, {"age": "low", "weight": "off"})


def in_python(survey: Survey, answers: dict[str, Any], levels: Any, words: list[int], **options: Any) -> dict[str, Any]:
    source = ListedRandomSource(words)
    given = {
        name: Fraction(value) if name == "mean" and isinstance(value, str) else value
        for name, value in answers.items()
        if value is not None
    }
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DataWarning)
        made = survey.answer(given, levels=levels, random_state=source, day=DAY, **options)
    return {"submission": made.to_dict(), "used": source.used}


def test_a_browser_sends_what_python_sends(take: Taker, everything: Survey) -> None:
    source = SystemRandomSource()
    tasks: list[dict[str, Any]] = []
    expected = []
    for answers in ANSWERS:
        for levels in LEVELS:
            for token in ({}, {"token": " fern-otter-41 "}):
                for first in (0, 2**64 - 1, None):
                    words = [int(word) for word in source.words(150)]
                    words[0] = words[0] if first is None else first
                    options = {**token, "day": DAY}
                    texts = [str(word) for word in words]
                    tasks.append({"answers": answers, "levels": levels, "options": options, "words": texts})
                    expected.append(in_python(everything, answers, levels, words, **token))
    told = take({"page": everything.to_browser(), "tasks": tasks})
    assert told["sent"] == expected
    assert len(expected) == 72


def test_a_browser_shows_what_python_states(take: Taker, everything: Survey) -> None:
    survey = example_survey()
    told = take({"page": survey.to_browser(), "totals": [None, "off", {"married": "low", "sleep": "off"}]})
    assert [one["statement"] for one in told["totals"]] == [
        str(survey.total()),
        str(survey.total("off")),
        str(survey.total({"married": "low", "sleep": "off"})),
    ]
    assert told["totals"][0]["epsilon"] == 6
    shown = take({"page": everything.to_browser()})["shown"]
    assert (shown["notice"], shown["title"]) == (LEVELS_ARE_VISIBLE, everything.title)
    assert shown["fingerprint"] == everything.fingerprint
    for question in shown["questions"]:
        assert question["preselected"] == everything.default_of(question["id"]).name
        for level in question["levels"]:
            statement = everything.statement(question["id"], level["name"])
            assert level["statement"] == str(statement)
            assert level["oddsFactor"] == pytest.approx(statement.factor, rel=1e-12)
            assert Fraction(level["stated"]) == statement.epsilon
    assert "anonym" not in json.dumps(shown)


def test_the_collector_takes_what_a_browser_sends(take: Taker) -> None:
    survey = example_survey()
    answers = {
        "married": "yes",
        "occupation": "Sales",
        "commute": ["Bicycle", "Car"],
        "sleep": "7.5",
        "age": "65",
        "satisfaction": 4,
    }
    tasks: list[dict[str, Any]] = [
        {"answers": answers},
        {"answers": answers, "levels": {"married": "low", "commute": "off"}},
        {"answers": answers, "levels": "off"},
        {"answers": answers, "options": {"token": "moss-heron-07"}},
    ]
    told = take({"page": survey.to_browser(), "tasks": tasks})["sent"]
    collector = Collector(survey)
    for one in told:
        collector.add(json.dumps(one["submission"]))
    assert len(collector) == 4
    assert collector.counts("married") == {"off": 1, "low": 1, "medium": 2, "high": 0}
    assert collector.counts("commute") == {"off": 2, "low": 0, "medium": 2, "high": 0}
    assert told[3]["submission"]["id"] == token_id("moss-heron-07")
    assert len({one["submission"]["id"] for one in told}) == 4
    assert {len(one["submission"]) for one in told} == {6}
    assert told[2]["submission"]["reports"] == []


SPELLED_OTHERWISE = (
    {"many": 3, "some": ["f", "a"], "mean": "0.25", "bit": "3", "age": "17", "near": "5", "few": "a"},
    {"many": "3", "some": ["a", "f"], "mean": "1/4", "bit": "3.0", "age": 17, "near": 5, "few": "a"},
    {"many": " 3 ", "some": ["f", "a"], "mean": 0.25, "bit": 3, "age": "9", "near": " 5", "few": "a"},
)
"""The same answers, spelled otherwise; 9 and 17 are in the same bin."""


def test_the_same_answer_gives_the_same_report_within_one_memory(take: Taker, everything: Survey) -> None:
    good = {"yes-no": "no"}
    tasks = [{"answers": {**good, **one}, "remembers": True} for one in SPELLED_OTHERWISE]
    other: dict[str, Any] = {"answers": {**good, "bit": 3, "many": 4}, "remembers": True, "levels": {"bit": "low"}}
    fresh = {"answers": {**good, **SPELLED_OTHERWISE[0]}}
    sent = take({"page": everything.to_browser(), "tasks": [*tasks, other, *[fresh] * 8]})["sent"]
    reports = [one["submission"]["reports"] for one in sent]
    assert reports[0] == reports[1] == reports[2]
    assert len({one["submission"]["id"] for one in sent}) == len(sent)
    assert {report["question"] for report in reports[0]} == {"yes-no", *SPELLED_OTHERWISE[0]}
    assert [one["level"] for one in reports[3] if one["question"] == "bit"] == ["low"]
    assert len({json.dumps(one) for one in reports[4:]}) > 1, "without a memory, everything is drawn anew"


def test_a_browser_takes_the_terms_from_under_the_fingerprint(take: Taker, everything: Survey) -> None:
    terms = SurveyTerms(admission="blind", sentence="Invited people, once.", day=DAY, key="a" * 64)
    page = replace(everything, terms=terms).to_browser()
    good = {"yes-no": "no"}
    changes: list[Any] = [{"admission": "links"}, {"sentence": "All."}, {"day": "2026-05-05"}, {"key": "b" * 64}]
    wrong = [page | {"terms": page["terms"] | change} for change in [*changes, {"key": None}, {"token": "me"}]]
    wrong += [page | {"terms": None}, everything.to_browser() | {"terms": page["terms"]}]
    tasks = [{"answers": good}, {"answers": good, "options": {"day": "2026-05-05"}}]
    told = take({"page": page, "tasks": tasks, "wrong": wrong})
    assert told["shown"]["terms"] == page["terms"]
    assert told["sent"][0]["submission"]["day"] == DAY
    assert told["sent"][1]["refused"] == "Every submission to this survey states the same day."
    published = "The page does not ask what was published under its fingerprint."
    parts = "The survey has unknown or missing parts."
    assert told["refused"] == [published] * 5 + [parts] + [published] * 2


def test_wrong_answers_and_levels_are_refused_and_never_quoted(take: Taker, everything: Survey) -> None:
    good = {"yes-no": "no"}
    wrong: list[tuple[dict[str, Any], str]] = [
        ({"answers": {}}, "A question that must be answered is not."),
        ({"answers": {"yes-no": "4711"}}, "The answer is missing or not among the declared ones."),
        ({"answers": {**good, "many": "44"}}, "The answer is missing or not among the declared ones."),
        ({"answers": {**good, "some": ["a", "b", "c", "d"]}}, "There are too many answers."),
        ({"answers": {**good, "some": ["a", "a"]}}, "An answer is given twice."),
        ({"answers": {**good, "some": "a"}}, "The answers are not a list."),
        ({"answers": {**good, "age": "many"}}, "The answer is not a finite number."),
        ({"answers": {**good, "mean": True}}, "The answer is not a finite number."),
        ({"answers": {**good, "few": {"a": 1}}}, "The answer is missing or not among the declared ones."),
        ({"answers": {**good, "some": [None]}}, "The answer is missing or not among the declared ones."),
        ({"answers": {**good, "comment": "it was me"}}, "The survey does not have such a question."),
        ({"answers": good, "levels": {"other": "low"}}, "The survey does not have such a question."),
        ({"answers": good, "levels": {"few": "lowest"}}, "A question does not have the chosen level."),
        ({"answers": good, "levels": {"yes-no": "off"}}, "A question does not have the chosen level."),
        ({"answers": good, "levels": {"few": "constructor"}}, "A question does not have the chosen level."),
        ({"answers": good, "options": {"token": " "}}, "The token is not a text."),
        ({"answers": good, "options": {"day": "2026-05-04T10:00"}}, "The day is not a date without a time."),
    ]
    told = take({"page": everything.to_browser(), "tasks": [task for task, _ in wrong]})
    assert [one.get("refused") for one in told["sent"]] == [problem for _, problem in wrong]


PROTECTION = "The page states another protection."
PUBLISHED = "The page does not ask what was published under its fingerprint."
PARTS = "The survey has unknown or missing parts."
TOTAL = "The preselected levels protect otherwise than the page states."


def sealed(page: dict[str, Any]) -> dict[str, Any]:
    """A page of a dishonest server that at least hashes its definition right."""
    fingerprint = hashlib.sha256(page["definition"].encode()).hexdigest()
    return {**page, "fingerprint": fingerprint, "submission": {**page["submission"], "fingerprint": fingerprint}}


def changed(page: dict[str, Any], *path: Any, to: Any) -> dict[str, Any]:
    made = deepcopy(page)
    place: Any = made
    for step in path[:-1]:
        place = place[step]
    place[path[-1]] = to
    return made


def hostile(page: dict[str, Any]) -> list[tuple[dict[str, Any], str]]:
    """Pages of servers that lie, each with the reason for which it must be refused."""
    first, levels = page["questions"][0], page["questions"][0]["levels"]
    low, medium, high = levels[1:]
    age = page["questions"][4]["levels"]
    definition = json.loads(page["definition"])
    weak = deepcopy(medium["protocol"])
    weak["params"] = low["protocol"]["params"]
    weaker = {**high, "protocol": low["protocol"]}
    return [
        (changed(page, "questions", 0, "levels", 2, "epsilon", to="1/2"), PROTECTION),
        (changed(page, "questions", 0, "levels", 2, "odds_factor", to=1.28), PROTECTION),
        (changed(page, "questions", 0, "levels", 2, "statement", to=high["statement"]), PROTECTION),
        (changed(page, "questions", 0, "levels", 0, "statement", to="Nothing to see."), PROTECTION),
        (changed(page, "questions", 0, "levels", 3, to=weaker), PROTECTION),
        (changed(page, "questions", 0, "levels", 3, to={**low, "name": "high"}), PUBLISHED),
        (
            changed(page, "questions", 0, "levels", 2, "protocol", to=reference.sealed(weak)),
            "The protocol protects less than it states.",
        ),
        (
            changed(page, "questions", 0, "levels", 2, "protocol", "epsilon", to="4"),
            "The protocol does not have its stated hashes.",
        ),
        (
            changed(page, "questions", 0, "levels", 2, "protocol", to=age[2]["protocol"]),
            "A protocol is for other answers than its question.",
        ),
        (
            changed(page, "questions", 3, "levels", 2, "protocol", to=medium["protocol"]),
            "A protocol is for other answers than its question.",
        ),
        (changed(page, "questions", 2, "most", to=1), "A protocol is for another kind of question."),
        (
            changed(page, "questions", 0, "options", to=["yes", "no"]),
            "A protocol is for other answers than its question.",
        ),
        (changed(page, "questions", 0, "default_level", to="low"), TOTAL),
        (changed(page, "total", "epsilon", to="3"), TOTAL),
        (changed(page, "total", "odds_factor", to=20.0), TOTAL),
        (
            changed(
                changed(changed(page, "questions", 0, "default_level", to="low"), "total", "epsilon", to="9"),
                "total",
                "odds_factor",
                to=8103.083927575384,
            ),
            PUBLISHED,
        ),
        (
            changed(page, "questions", 0, "default_level", to="lowest"),
            "The preselected level is none of the question's.",
        ),
        (
            changed(page, "questions", 0, "optional", to=False),
            "The page does not say whether a question must be answered.",
        ),
        (changed(page, "questions", 0, "levels", to=[*levels, low]), "A question has a level twice."),
        (
            changed(page, "questions", 0, "levels", to=levels[1:]),
            "The page does not say whether a question must be answered.",
        ),
        (changed(page, "questions", to=[*page["questions"], first]), "The survey has a question twice."),
        (changed(page, "questions", to=page["questions"][1:]), TOTAL),
        (changed(page, "questions", to=[]), "The survey has no list of questions."),
        (changed(page, "questions", 0, "text", to="Were you ever married?"), PUBLISHED),
        (changed(page, "questions", 0, "help", to="Answer as your neighbour would."), PUBLISHED),
        (changed(page, "questions", 4, "bins", "edges", 1, to="30"), PUBLISHED),
        (changed(page, "questions", 4, "bins", "edges", 1, to="50"), "The bins of a number are not in order."),
        (changed(page, "title", to="Another title"), PUBLISHED),
        (changed(page, "collector", to="Somebody else"), PUBLISHED),
        (changed(page, "fingerprint", to="0" * 64), "The page would send a submission to another survey."),
        (
            changed(changed(page, "fingerprint", to="0" * 64), "submission", "fingerprint", to="0" * 64),
            "The survey does not have its stated fingerprint.",
        ),
        (changed(page, "submission", "survey", to="other"), "The page would send a submission to another survey."),
        (changed(page, "submission", "cookie", to="4711"), PARTS),
        (changed(page, "submission", "reports", to=[{"y": 1}]), PARTS),
        (changed(page, "questions", 0, "tracking", to=1), PARTS),
        (changed(page, "questions", 0, "levels", 1, "note", to=1), PARTS),
        (changed(page, "definition", to=page["definition"] + " "), "The survey does not have its stated fingerprint."),
        (sealed({**page, "definition": json.dumps({**definition, "title": "x"})}), PUBLISHED),
        (sealed({**page, "definition": "{"}), PUBLISHED),
        (sealed({**page, "definition": "null"}), PUBLISHED),
        (changed(page, "questions", 0, "kind", to="free_text"), "A question or its kind is unknown."),
        (changed(page, "title", to=["x"]), "A text of the survey is none."),
        (changed(page, "schema", to="cloister.survey_page/2"), "This is not a survey of a known schema."),
    ]


def test_hostile_pages_are_refused(take: Taker) -> None:
    page = example_survey().to_browser()
    wrong = hostile(page)
    told = take({"page": page, "wrong": [one for one, _ in wrong] + [None, 7, [], {}]})
    assert told["refused"][: len(wrong)] == [problem for _, problem in wrong]
    assert set(told["refused"][len(wrong) :]) == {"This is not a survey of a known schema."}


def test_texts_are_data(take: Taker) -> None:
    question = SurveyQuestion(
        id="q", kind="yes_no", text="<img src=x onerror=alert(1)>", options=("<script>", "</script>")
    )
    survey = Survey(id="s", title="<h1>", collector="</title>", questions=(question,))
    told = take({"page": survey.to_browser(), "tasks": [{"answers": {"q": "<script>"}}]})
    assert told["shown"]["questions"][0]["text"] == question.text
    Collector(survey).add(told["sent"][0]["submission"])


@pytest.mark.chromium
@pytest.mark.slow
def test_the_survey_page_of_the_how_to_works(tmp_path: Path) -> None:
    text = (HERE.parents[2] / "docs" / "how-to" / "ask-in-the-browser.md").read_text("utf-8")
    scripts = re.findall(r"^```js\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    survey = example_survey()
    levels = {"married": "low", "occupation": "off", "commute": "off", "sleep": "high", "age": "off"}
    (tmp_path / "questions.js").write_text(scripts[1], "utf-8")
    (tmp_path / "page.json").write_text(json.dumps(survey.to_browser()), "utf-8")
    answers = dict.fromkeys((question.id for question in survey.questions), "") | {"married": "yes", "sleep": "8"}
    fields = answers | {f"{name}-level": level for name, level in {**levels, "satisfaction": "medium"}.items()}
    folders = FOLDERS | {"/page/cloister": CLIENT, "/page": tmp_path}
    told = browser.run_module("/tests/local/survey/js/page.mjs", {"fields": fields}, folders=folders)
    assert (told["method"], told["address"]) == ("POST", "submissions")
    assert told["total"] == str(survey.total({**levels, "satisfaction": "medium"}))
    assert json.loads(told["shown"]) == json.loads(told["body"])
    collector = Collector(survey)
    collector.add(told["body"])
    assert {question.id: collector.counts(question.id)["off"] for question in survey.questions} == {
        "married": 0,
        "occupation": 1,
        "commute": 1,
        "sleep": 0,
        "age": 1,
        "satisfaction": 1,
    }
