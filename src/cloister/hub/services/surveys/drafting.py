"""Writing surveys: a survey file from a builder or as text, checked, planned, kept as a draft."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from decimal import Decimal
from typing import Any

from sqlalchemy.orm import Session

from cloister.data.schema_file import load_yaml
from cloister.errors import ConflictError, ForbiddenError, ParameterError, SchemaError, TooLargeError
from cloister.hub.domain.roles import Subject
from cloister.hub.domain.surveys import Admission, SurveyState
from cloister.hub.store.models import HubSurvey, new_id
from cloister.hub.store.models.base import random_text
from cloister.local.survey.levels import OFF
from cloister.local.survey.model import Survey
from cloister.local.survey.planning import plan_survey

SLUG_BYTES = 15
MOST_CHARACTERS = 500_000
LEAST = 30
"""Below how many reports nothing is estimated, unless the survey says otherwise."""

SMALLEST_LEAST, LARGEST_LEAST = 10, 100_000


def read_document(document: Mapping[str, Any] | str) -> Survey:
    """Return the survey of a document, or of the text of a survey file.

    Raises:
        SchemaError: if it is not a survey file.
        ParameterError: if something in it cannot be asked.
    """
    if not isinstance(document, str):
        return Survey.from_dict(json.loads(_written(document), parse_float=Decimal))
    if len(document) > MOST_CHARACTERS:
        raise TooLargeError("The survey file is too long.", fix="ask fewer questions, with fewer options.")
    values = _json_or_none(document)
    if values is None:
        values = load_yaml(document, what="survey", example="write a survey with the builder, and change that")
    return Survey.from_dict(values)


def preview(
    document: Mapping[str, Any] | str, *, margin: float | None = None, respondents: int | None = None
) -> dict[str, Any]:
    """Return what respondents would be told, and how many of them a margin takes. Nothing is kept."""
    survey = read_document(document)
    by_default = margin is None and respondents is None
    plan = plan_survey(survey, margin=2 if by_default else margin, respondents=respondents)
    rows: list[dict[str, Any]] = [
        {
            "question": row.question,
            "level": row.level,
            "preselected": row.preselected,
            "margin": row.in_units(
                plan.margin if plan.margin is not None else row.margin(respondents or 1, worst=True)
            ),
            "respondents": row.respondents(plan.margin, worst=True) if plan.margin is not None else respondents,
        }
        for row in plan.rows
    ]
    hardest = plan.hardest
    return {
        "schema": "cloister.survey_preview/1",
        "fingerprint": survey.fingerprint,
        "document": survey.to_dict(),
        "statement": str(survey.total()),
        "questions": [
            {
                "id": question.id,
                "text": question.text,
                "levels": [
                    {
                        "name": name,
                        "statement": str(survey.statement(question.id, name)),
                        "protocol": None if name == OFF else survey.protocol(question.id, name).name,
                    }
                    for name in survey.levels_of(question.id)
                ],
            }
            for question in survey.questions
        ],
        "plan": {
            "hardest": hardest.question,
            "respondents": max(row["respondents"] for row in rows if row["preselected"]),
            "rows": rows,
        },
    }


def create_survey(
    session: Session,
    person: Subject,
    *,
    document: Mapping[str, Any] | str,
    admission: Admission,
    results_are_public: bool = False,
    least: int = LEAST,
) -> HubSurvey:
    """Keep a draft."""
    if person.organisation_id is None:
        raise ForbiddenError("You belong to no organisation.", fix="ask the hub's operator to add you to one.")
    asked = read_document(document)
    survey = HubSurvey(
        id=new_id("survey"),
        slug=random_text(SLUG_BYTES),
        organisation_id=person.organisation_id,
        author_id=person.user_id,
    )
    _fill(survey, asked, admission=admission, results_are_public=results_are_public, least=least)
    session.add(survey)
    session.flush()
    return survey


def change_survey(
    survey: HubSurvey,
    *,
    document: Mapping[str, Any] | str,
    admission: Admission,
    results_are_public: bool,
    least: int,
) -> None:
    """Change a draft; what was published stays as it is."""
    if survey.state != SurveyState.DRAFT:
        raise ConflictError("A survey that was published cannot be changed.", fix="make a new survey from it.")
    _fill(survey, read_document(document), admission=admission, results_are_public=results_are_public, least=least)


def _fill(survey: HubSurvey, asked: Survey, *, admission: Admission, results_are_public: bool, least: int) -> None:
    if not SMALLEST_LEAST <= least <= LARGEST_LEAST:
        raise ParameterError(
            f"Estimates need at least {SMALLEST_LEAST} reports, and no more than {LARGEST_LEAST:,}.",
            fix=f"write for example {LEAST}.",
        )
    asked = replace(asked, terms=None)  # Those of a copied survey were its own; publishing states new ones.
    survey.title = asked.title
    survey.document = _written(asked.to_dict())
    survey.fingerprint = asked.fingerprint
    survey.admission = str(admission)
    survey.results_are_public = results_are_public
    survey.least = least


def _written(document: Mapping[str, Any]) -> str:
    try:
        text = json.dumps(document, ensure_ascii=False, allow_nan=False)
        text.encode()
    except (TypeError, ValueError, RecursionError):
        raise SchemaError("The survey is not made of plain values.", fix="send JSON.") from None
    if len(text) > MOST_CHARACTERS:
        raise TooLargeError("The survey file is too long.", fix="ask fewer questions, with fewer options.")
    return text


def _json_or_none(text: str) -> Any:
    try:
        return json.loads(text, parse_float=Decimal)
    except (ValueError, RecursionError):
        return None
