"""Opening a survey, which freezes it, and closing it, which deletes whatever could still connect anything."""

from __future__ import annotations

import json
from dataclasses import replace

from sqlalchemy import delete
from sqlalchemy.orm import Session

from cloister.crypto.blind_signatures import BlindSigningKey
from cloister.crypto.keys import DataKey, MasterKey
from cloister.crypto.sealing import seal, unseal
from cloister.errors import ConflictError
from cloister.hub.domain.surveys import Admission, SurveyState
from cloister.hub.services.surveys.code import code_hash
from cloister.hub.services.surveys.reading import open_document, opening_day
from cloister.hub.store.models import HubSurvey, SurveyInvitation, SurveyReport, SurveySignature, SurveyUsedId, now
from cloister.local.survey.terms import Terms

_PURPOSE = "survey signing key"


def publish(survey: HubSurvey, *, key: MasterKey) -> None:
    """Open a draft: from now on neither its questions nor its terms change, and its code is named."""
    if survey.state != SurveyState.DRAFT:
        raise ConflictError("This survey was published already.", fix="make a new survey from it.")
    survey.state = SurveyState.OPEN
    survey.opened = now().replace(hour=0, minute=0, second=0)
    survey.code_hash = code_hash()
    if survey.admission == Admission.BLIND:
        _make_key(survey, key)
    _state_terms(survey)


def _state_terms(survey: HubSurvey) -> None:
    """Write into the survey, and so under its fingerprint, who may answer, by which key, and the day of submissions."""
    asked = replace(
        open_document(survey.document),
        terms=Terms(
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
