"""Finding surveys, and showing them to those who ask and to those who answer."""

from __future__ import annotations

import json
from decimal import Decimal
from functools import lru_cache
from typing import Any

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from cloister.errors import NotFoundError
from cloister.hub.domain.lifecycles import Admission, SurveyState
from cloister.hub.domain.roles import AccessSubject
from cloister.hub.store.models import HubSurvey, SurveyInvitation
from cloister.hub.use_cases.surveys.browser_code import code_files, code_hash
from cloister.local.survey.model import Survey
from cloister.local.survey.submission_checks import Checker

MOST_LISTED = 100


def find_survey(session: Session, survey_id: str) -> HubSurvey:
    """Return a survey by its id."""
    found = session.get(HubSurvey, survey_id)
    if found is None:
        raise NotFoundError("There is no such survey, or you may not see it.", fix="check the address.")
    return found


@lru_cache(maxsize=64)
def open_document(document: str) -> Survey:
    """Return the survey of a stored document."""
    return Survey.from_dict(json.loads(document, parse_float=Decimal))


@lru_cache(maxsize=64)
def checker_of(document: str) -> Checker:
    """Return what checks submissions to a stored document."""
    return Checker(open_document(document))


@lru_cache(maxsize=64)
def _browser_page(document: str) -> dict[str, Any]:
    return open_document(document).to_browser()


def list_surveys(
    session: Session, person: AccessSubject, *, limit: int = MOST_LISTED, after: str | None = None
) -> dict[str, Any]:
    """Return the surveys of a person's organisation, the newest first."""
    wanted = select(HubSurvey).where(HubSurvey.organisation_id == (person.organisation_id or ""))
    last = None if after is None else session.get(HubSurvey, after)
    if last is not None:
        older = (HubSurvey.created < last.created) | ((HubSurvey.created == last.created) & (HubSurvey.id < last.id))
        wanted = wanted.where(older)
    size = max(1, min(limit, MOST_LISTED))
    found = list(session.scalars(wanted.order_by(HubSurvey.created.desc(), HubSurvey.id.desc()).limit(size + 1)))
    return {
        "schema": "cloister.surveys/1",
        "items": [summary(survey) for survey in found[:size]],
        "next": found[size - 1].id if len(found) > size else None,
    }


def summary(survey: HubSurvey) -> dict[str, Any]:
    """Return what a list shows of a survey."""
    return {
        "id": survey.id,
        "title": survey.title,
        "state": survey.state,
        "admission": survey.admission,
        "author": survey.author.display_name or survey.author.name,
        "created": survey.created.date().isoformat(),
        "submissions": survey.submissions,
    }


def describe(session: Session, survey: HubSurvey) -> dict[str, Any]:
    """Return everything about a survey except its reports."""
    asked = open_document(survey.document)
    invited = select(func.count()).select_from(SurveyInvitation).where(SurveyInvitation.survey_id == survey.id)
    used = invited.where(SurveyInvitation.is_used)
    return {
        "schema": "cloister.survey_entry/1",
        **summary(survey),
        "address": f"/s/{survey.slug}",
        "admission_sentence": Admission(survey.admission).sentence,
        "results_are_public": survey.results_are_public,
        "least": survey.least,
        "opened": None if survey.opened is None else survey.opened.date().isoformat(),
        "closed": None if survey.closed is None else survey.closed.date().isoformat(),
        "fingerprint": survey.fingerprint,
        "code_hash": code_hash(),
        "published_code_hash": survey.code_hash or None,
        "invitations": {"made": session.scalar(invited) or 0, "used": session.scalar(used) or 0},
        "statement": str(asked.total()),
        "document": json.loads(survey.document),
    }


def respondent_page(survey: HubSurvey) -> dict[str, Any]:
    """Return everything that a respondent's browser needs. Drafts are not shown, closed surveys ask nothing."""
    if survey.state == SurveyState.DRAFT:
        raise NotFoundError("There is no such survey, or you may not see it.", fix="check the address.")
    is_open = survey.state == SurveyState.OPEN
    return {
        "schema": "cloister.answer_page/1",
        "address": survey.slug,
        "state": survey.state,
        "title": survey.title,
        "admission": {"kind": survey.admission, "sentence": Admission(survey.admission).sentence},
        "key": None if survey.public_key is None else json.loads(survey.public_key),
        "day": opening_day(survey),
        "code": {
            "hash": code_hash(),
            "published": survey.code_hash,
            "files": [file.name for file in code_files()],
        },
        "results_are_public": survey.results_are_public,
        "page": _browser_page(survey.document) if is_open else None,
    }


def opening_day(survey: HubSurvey) -> str | None:
    """Return the day that every submission carries: that of the opening, so that none says when somebody answered."""
    return None if survey.opened is None else survey.opened.date().isoformat()
