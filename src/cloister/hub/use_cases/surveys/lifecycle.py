"""The life of a survey: written, opened, closed, deleted.

A survey file comes from a builder or as text; it is checked, planned, and kept as a draft. Opening a survey freezes it,
and closing it deletes whatever could still connect anything.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from decimal import Decimal
from typing import Any

from sqlalchemy import delete
from sqlalchemy.orm import Session

from cloister.crypto.blind_signatures import BlindSigningKey
from cloister.crypto.keys import DataKey, MasterKey
from cloister.crypto.sealed_data import seal, unseal
from cloister.data.schema_file import load_yaml
from cloister.errors import ConflictError, ForbiddenError, ParameterError, SchemaError, TooLargeError
from cloister.hub.domain.lifecycles import Admission, SurveyState
from cloister.hub.domain.roles import AccessSubject
from cloister.hub.store.models import (
    HubSurvey,
    SurveyInvitation,
    SurveyReport,
    SurveySignature,
    SurveyUsedId,
    new_id,
    now,
)
from cloister.hub.store.models.base import random_text
from cloister.hub.use_cases.surveys.browser_code import code_hash
from cloister.hub.use_cases.surveys.catalogue import open_document, opening_day
from cloister.local.survey.levels import OFF
from cloister.local.survey.model import Survey
from cloister.local.survey.sample_size import plan_survey
from cloister.local.survey.submissions import SurveyTerms

SLUG_BYTES = 15
MOST_CHARACTERS = 500_000
LEAST = 30
"""Below how many reports nothing is estimated, unless the survey says otherwise."""

SMALLEST_LEAST, LARGEST_LEAST = 10, 100_000


def read_document(document: Mapping[str, Any] | str) -> Survey:
    """Return the survey of a document, or of the text of a survey file.

    Raises:
        SchemaError: if it is not a survey file.
        ParameterError: if something in it cannot be asked, or not in a browser.
    """
    survey = _open_document(document)
    survey.check_browsers()
    return survey


def _open_document(document: Mapping[str, Any] | str) -> Survey:
    if not isinstance(document, str):
        return Survey.from_dict(json.loads(_write_document(document), parse_float=Decimal))
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
    person: AccessSubject,
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
    survey.document = _write_document(asked.to_dict())
    survey.fingerprint = asked.fingerprint
    survey.admission = str(admission)
    survey.results_are_public = results_are_public
    survey.least = least


def _write_document(document: Mapping[str, Any]) -> str:
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


_PURPOSE = "survey signing key"


def publish(survey: HubSurvey, *, key: MasterKey) -> None:
    """Open a draft: from now on neither its questions nor its terms change, and its code is named."""
    if survey.state != SurveyState.DRAFT:
        raise ConflictError("This survey was published already.", fix="make a new survey from it.")
    survey.state = SurveyState.OPEN
    # The day alone: a moment could be held against what somebody saw of the network.
    survey.opened = now().replace(hour=0, minute=0, second=0)
    survey.code_hash = code_hash()
    if survey.admission == Admission.BLIND:
        _make_key(survey, key)
    # After the key was made, since its fingerprint is part of the terms.
    _state_terms(survey)


def _state_terms(survey: HubSurvey) -> None:
    """Write into the survey, and so under its fingerprint, who may answer, by which key, and the day of submissions."""
    asked = replace(
        open_document(survey.document),
        terms=SurveyTerms(
            admission=survey.admission,
            sentence=Admission(survey.admission).sentence,
            day=opening_day(survey) or "",
            key=None if survey.public_key is None else json.loads(survey.public_key)["fingerprint"],
        ),
    )
    survey.document, survey.fingerprint = json.dumps(asked.to_dict(), ensure_ascii=False), asked.fingerprint


def close(session: Session, survey: HubSurvey) -> None:
    """Close a survey for good, and delete invitations, used ids, used signatures and the signing key."""
    if survey.state != SurveyState.OPEN:
        raise ConflictError("This survey is not open.", fix="publish it first, or leave it closed.")
    survey.state = SurveyState.CLOSED
    survey.closed = now().replace(hour=0, minute=0, second=0)
    survey.wrapped_key = survey.signing_key = None
    for model in (SurveyUsedId, SurveyInvitation, SurveySignature):
        session.execute(delete(model).where(model.survey_id == survey.id))


def delete_survey(session: Session, survey: HubSurvey) -> None:
    """Delete a survey and everything that was kept of answers to it."""
    for model in (SurveyUsedId, SurveyInvitation, SurveySignature, SurveyReport):
        session.execute(delete(model).where(model.survey_id == survey.id))
    session.delete(survey)


def signing_key(survey: HubSurvey, *, key: MasterKey) -> BlindSigningKey:
    """Return the key that signs for an open survey."""
    if survey.wrapped_key is None or survey.signing_key is None:
        raise ConflictError("This survey signs nothing.", fix="answer it without a signature.")
    data_key = key.unwrap(survey.wrapped_key, purpose=_PURPOSE, object_id=survey.id)
    return BlindSigningKey.from_bytes(unseal(survey.signing_key, key=data_key, associated=survey.id.encode()))


def _make_key(survey: HubSurvey, key: MasterKey) -> None:
    made, data_key = BlindSigningKey.generate(), DataKey.generate()
    survey.wrapped_key = key.wrap(data_key, purpose=_PURPOSE, object_id=survey.id)
    survey.signing_key = seal(made.to_bytes(), key=data_key, associated=survey.id.encode())
    survey.public_key = json.dumps(made.public.to_dict())
