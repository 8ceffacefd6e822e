from __future__ import annotations

import re
from importlib import resources
from pathlib import Path
from typing import Any

import pytest

from cloister.errors import InternalError, LawViolatedError, OutsideDomainError, ParameterError
from cloister.local import DirectEncoding
from cloister.local.estimates import ByValue
from cloister.local.survey import QuestionKind, Survey, SurveyQuestion
from cloister.local.survey.kinds import list_kinds
from cloister.local.survey.kinds.base import register
from cloister.local.survey.kinds.single_choice import SingleChoice
from docs import generated
from tests.support.question_laws import QuestionLaws

BROWSER = Path(str(resources.files("cloister.local"))) / "js" / "kinds"
EXPORTED = ("answers", "control", "fits", "hint", "read", "reported")
NAMES = [kind.name for kind in list_kinds()]


@pytest.mark.parametrize("name", NAMES)
def test_every_kind_keeps_the_laws_in_a_module_of_its_own(name: str) -> None:
    text = (Path(__file__).parent / f"test_{name}.py").read_text("utf-8")
    assert "QuestionLaws(" in text
    assert f'kind="{name}"' in text


@pytest.mark.parametrize("name", NAMES)
def test_every_kind_has_its_half_in_the_browser(name: str) -> None:
    text = (BROWSER / f"{name}.js").read_text("utf-8")
    exported = set(re.findall(r"^export (?:function|const) (\w+)", text, re.MULTILINE))
    exported |= {
        one.strip() for found in re.findall(r"^export \{(.*?)\}", text, re.MULTILINE) for one in found.split(",")
    }
    assert exported == set(EXPORTED)


def test_browsers_know_the_same_kinds_and_no_others() -> None:
    assert {path.stem for path in BROWSER.glob("*.js")} == {*NAMES, "index"}
    assert (BROWSER / "index.js").read_text("utf-8") == generated.browser_kinds(), "run `make generated`"


@pytest.mark.parametrize("missing", sorted(QuestionKind.__abstractmethods__))
def test_a_kind_that_forgets_something_cannot_be_registered(missing: str) -> None:
    said: dict[str, Any] = {name: getattr(SingleChoice, name) for name in QuestionKind.__abstractmethods__ - {missing}}
    kind: Any = type("Toy", (QuestionKind,), {"name": "toy", "words": "toy", "facts": (), **said})
    with pytest.raises(TypeError, match=missing):
        register(kind)


def test_a_name_is_taken_once() -> None:
    with pytest.raises(InternalError, match="single_choice"):
        register(SingleChoice)


def test_kinds_are_listed_in_the_order_of_the_example() -> None:
    assert NAMES[:5] == ["yes_no", "single_choice", "multiple_choice", "number", "rating"]


def _asked() -> Survey:
    question = SurveyQuestion(
        id="q", kind="single_choice", text="?", options=("a", "b", "c"), protocol="direct_encoding"
    )
    return Survey(id="s", title="?", collector="Example Institute", questions=(question,))


def test_a_protocol_that_browsers_do_not_know_is_refused_for_pages(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(DirectEncoding, "in_browsers", False)
    with pytest.raises(
        ParameterError, match='Question "q": browsers do not know the protocol "direct_encoding"'
    ) as caught:
        _asked().to_browser()
    assert "cloister survey answer" in caught.value.fix
    assert _asked().answer({"q": "a"}).reports


def test_a_kind_without_its_other_half_is_refused_for_pages(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(SingleChoice, "in_browsers", False)
    with pytest.raises(ParameterError, match='browsers do not know the kind "single_choice"'):
        _asked().to_browser()


def _quote(_kind: Any, _question: SurveyQuestion, value: Any) -> Any:
    raise OutsideDomainError(f"{value} is odd.", fix="give another answer.")


BROKEN: list[tuple[str, Any, str]] = [
    ("read_answer", _quote, "what_is_no_answer_is_refused_and_not_told"),
    ("read_answer", lambda _kind, _question, _value: "a", "what_is_no_answer_is_refused_and_not_told"),
    ("read_answer", lambda _kind, _question, _value: "a", "a_browser_sends_what_python_sends"),
    ("spell", lambda _kind, _question, _given, **_: "c", "answers_are_reported"),
    ("truth", lambda _kind, _question, _answers: ByValue({"a": 1.0}), "a_rehearsal_is_collected_whole"),
    ("single_answers", lambda _kind, _question, answers: ["c" for _ in answers], "a_rehearsal_is_collected_whole"),
    ("prompt", lambda _kind, _question: " ", "it_can_be_planned_and_prompted"),
]


@pytest.mark.node
@pytest.mark.parametrize(("method", "broken", "law"), BROKEN, ids=[f"{method}: {law}" for method, _, law in BROKEN])
def test_a_broken_kind_is_refuted(method: str, broken: Any, law: str, monkeypatch: pytest.MonkeyPatch) -> None:
    question = SurveyQuestion(id="q", kind="single_choice", text="?", options=("a", "b", "c"), pretend={"a": 1})  # type: ignore[arg-type]  # as in a file
    laws = QuestionLaws(question=question, answers=(("a", "1"), ("b", "B")), outside=("secret-4711",))
    (found,) = [each for each in laws if each.name == law]
    found.verify()
    monkeypatch.setattr(SingleChoice, method, broken, raising=True)
    with pytest.raises(LawViolatedError):
        found.verify()
