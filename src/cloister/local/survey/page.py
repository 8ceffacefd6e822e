"""What a browser gets: questions, options, levels, statements and protocol records, as one JSON document.

The page shows the questions, perturbs with the record of the chosen level (``local/js`` checks every record before it
is used), and sends a submission. Nothing else about a respondent is needed, and nothing else is accepted.
"""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from cloister.core import exact
from cloister.local.survey.levels import OFF, Level
from cloister.local.survey.questions import Question
from cloister.local.survey.statements import LEVELS_ARE_VISIBLE, Statement
from cloister.local.survey.submissions import SCHEMA as SUBMISSION

if TYPE_CHECKING:
    from cloister.local.survey.model import Survey

__all__ = ["page_of"]

_SCHEMA = "cloister.survey_page/1"


def page_of(survey: Survey) -> dict[str, Any]:
    """Return everything that a page needs, as JSON-ready values.

    A number with bins is reported as the label of its bin: the bin whose lower edge is the last one that is not above
    the number; numbers outside of the bounds belong to the first or the last bin. Edges are exact texts. The definition
    is the text that the fingerprint is the hash of, so that a browser can check that it was given what was published.
    """
    return {
        "schema": _SCHEMA,
        "survey": survey.id,
        "fingerprint": survey.fingerprint,
        "definition": survey.definition,
        "title": survey.title,
        "collector": survey.collector,
        "purpose": survey.purpose,
        "notice": LEVELS_ARE_VISIBLE,
        "total": {"epsilon": exact.text(survey.total().epsilon), **survey.total().to_dict()},
        "terms": None if survey.terms is None else asdict(survey.terms),
        "submission": {"schema": SUBMISSION, "survey": survey.id, "fingerprint": survey.fingerprint},
        "questions": [_question(survey, question) for question in survey.questions],
    }


def _question(survey: Survey, question: Question) -> dict[str, Any]:
    levels = survey.levels_of(question.id)
    return {
        "id": question.id,
        "kind": str(question.kind),
        "text": question.text,
        "help": question.help,
        "options": list(question.options),
        "most": question.most,
        "bounds": None if question.bounds is None else [exact.text(end) for end in question.bounds],
        "whole": question.whole,
        "bins": None if not question.bins else _bins(question),
        "optional": OFF in levels,
        "default_level": survey.default_of(question.id).name,
        "levels": [_level(survey, question, level) for level in levels.values()],
    }


def _bins(question: Question) -> dict[str, list[str]]:
    return {"edges": [exact.text(edge) for edge in question.bins], "labels": list(question.bin_labels)}


def _level(survey: Survey, question: Question, level: Level) -> dict[str, Any]:
    record = None if level.epsilon is None else survey.protocol(question.id, level.name).to_dict()
    return {
        "name": level.name,
        "epsilon": exact.text(level.loss),
        **Statement(level.loss).to_dict(),
        "protocol": record,
    }
