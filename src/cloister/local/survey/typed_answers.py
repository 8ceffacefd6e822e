"""Answers as people write them, in a terminal or in a file, before `_form_answers` reads them.

At a terminal options can be given by their number, and several are separated by commas. Errors say what may be
answered, and never repeat what was.
"""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from pathlib import Path
from typing import Any

from cloister.data.schema_file import load_yaml
from cloister.data.text_files import read_text
from cloister.errors import SchemaError
from cloister.local.survey._form_answers import read_answer
from cloister.local.survey.model import Survey
from cloister.local.survey.questions import SurveyQuestion

__all__ = ["read_file", "read_typed"]


_EXAMPLE = "write for example answers: {married: no}, and below it levels: high"


def read_typed(question: SurveyQuestion, text: str) -> Any:  # an answer as `Survey.answer` takes it
    """Return an answer that was typed: an option or its number, several separated by commas or "none", or a number.

    Raises:
        OutsideDomainError: if it is not an answer to the question.

    >>> read_typed(SurveyQuestion(id="q", kind="yes_no", text="?"), "2")
    'yes'
    """
    given: Any = text.strip()
    if question.most is not None:
        parts = [] if _is_none(question, given) else given.split(",")
        given = [_spell_option(question, part, numbered=True) for part in map(str.strip, parts) if part]
    elif not question.is_number:
        given = _spell_option(question, given, numbered=True)
    read_answer(question, given)
    return given


def read_file(survey: Survey, path: str | Path) -> tuple[dict[str, Any], Mapping[str, str] | str | None]:
    """Return the answers and levels of a YAML file: ``answers`` by question, and ``levels`` by question or one for all.

    Raises:
        SchemaError: if it is not such a file.
        ParameterError: if the survey does not have a question.
    """
    values = load_yaml(read_text(path, what="file of answers"), what="file of answers", example=_EXAMPLE)
    if not isinstance(values, Mapping) or not {"answers"} <= set(values) <= {"answers", "levels"}:
        raise SchemaError('The file of answers does not have the part "answers", or has others.', fix=f"{_EXAMPLE}.")
    answers, levels = values["answers"] or {}, values.get("levels")
    if not isinstance(answers, Mapping) or not (levels is None or isinstance(levels, str | Mapping)):
        raise SchemaError("The answers are not a mapping of questions, or the levels are none.", fix=f"{_EXAMPLE}.")
    given = {name: answer for name, answer in answers.items() if answer is not None}
    return {name: _plain(survey.question(name), answer) for name, answer in given.items()}, levels


def _plain(question: SurveyQuestion, given: Any) -> Any:  # values from a file
    if isinstance(given, list):
        return [_plain(question, one) for one in given]
    if isinstance(given, Decimal) and not question.is_number:
        return float(given)
    return _spell_option(question, given) if isinstance(given, str) and not question.is_number else given


def _spell_option(question: SurveyQuestion, text: str, *, numbered: bool = False) -> str:
    """Return the text of an option as the question spells it, or as it is where no option is meant."""
    names = [str(option) for option in question.options]
    if text in names:
        return text
    folded = [name for name in names if name.casefold() == text.casefold()]
    if len(folded) == 1:
        return folded[0]
    are_words = all(isinstance(option, str) for option in question.options)
    is_place = numbered and are_words and text.isascii() and text.isdecimal() and len(text) < 5
    return names[int(text) - 1] if is_place and 1 <= int(text) <= len(names) else text


def _is_none(question: SurveyQuestion, text: str) -> bool:
    return text.casefold() == "none" and "none" not in {str(option).casefold() for option in question.options}
