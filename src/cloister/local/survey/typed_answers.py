"""Answers as people write them, in a terminal or in a file, before their question's kind reads them.

At a terminal options can be given by their number, and several are separated by commas. Errors say what may be
answered, and never repeat what was.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from cloister.data.schema_file import load_yaml
from cloister.data.text_files import read_text
from cloister.errors import SchemaError
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
    given = question.rules.read_typed(question, text.strip())
    question.rules.read_answer(question, given)
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
    asked = {name: (survey.question(name), answer) for name, answer in answers.items() if answer is not None}
    return {name: question.rules.spell(question, answer) for name, (question, answer) in asked.items()}, levels
