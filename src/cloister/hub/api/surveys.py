"""Surveys: writing, publishing, inviting, closing, and what the reports say together."""

from __future__ import annotations

from typing import Any

from fastapi import Query
from fastapi.responses import Response
from pydantic import Field

from cloister.hub.domain import actions
from cloister.hub.domain.request_body import RequestBody
from cloister.hub.domain.surveys import Admission
from cloister.hub.gateway import CurrentAccess, CurrentHub, GuardedRouter
from cloister.hub.hub import Hub
from cloister.hub.services.authorizing import Access
from cloister.hub.services.surveys import drafting, estimating, inviting, publishing, reading
from cloister.hub.store.forgetting_order import forget_order
from cloister.hub.store.models import HubSurvey

router = GuardedRouter(tags=["surveys"])


class SurveyDraft(RequestBody):
    """A survey as it is written: the survey file as values or as text, and who may answer."""

    document: dict[str, Any] | str = Field(description="a survey file: its values, or its YAML or JSON text")
    admission: Admission = Field(default=Admission.EVERYBODY, description="who may answer")
    results_are_public: bool = Field(default=False, description="whether everybody may see the estimates")
    least: int = Field(default=drafting.LEAST, description="below how many reports nothing is estimated")


class SurveyToCheck(RequestBody):
    """A survey to look at before it is kept; for a margin in percent, or for a number of respondents."""

    document: dict[str, Any] | str
    margin: float | None = Field(default=None, gt=0, le=100, allow_inf_nan=False)
    respondents: int | None = Field(default=None, ge=1, le=10**9)


class Invitations(RequestBody):
    """How many invitations are wanted."""

    count: int = Field(ge=1, le=inviting.MOST_AT_ONCE)


@router.guarded("GET", "/surveys", actions.LIST_SURVEYS)
def list_surveys(
    hub: CurrentHub,
    access: CurrentAccess,
    limit: int = Query(default=50, ge=1, le=100),
    after: str | None = Query(default=None, pattern="^[a-z0-9_]{1,64}$"),
) -> dict[str, Any]:
    """List the surveys of one's own organisation."""
    with hub.store.reading() as session:
        return reading.list_surveys(session, access.person, limit=limit, after=after)


@router.guarded("POST", "/surveys", actions.CREATE_SURVEY, status_code=201)
def create_survey(hub: CurrentHub, access: CurrentAccess, draft: SurveyDraft) -> dict[str, Any]:
    """Keep a draft."""
    with hub.store.writing() as session:
        survey = drafting.create_survey(session, access.person, **_parts(draft))
        return reading.describe(session, survey)


@router.guarded("POST", "/surveys/check", actions.CHECK_SURVEY)
def check_survey(draft: SurveyToCheck) -> dict[str, Any]:
    """Return what respondents would be told and how many of them are needed; nothing is kept."""
    return drafting.preview(draft.document, margin=draft.margin, respondents=draft.respondents)


@router.guarded("GET", "/surveys/{survey_id}", actions.SEE_SURVEY)
def see_survey(hub: CurrentHub, access: CurrentAccess) -> dict[str, Any]:
    """Return a survey: its questions, its state and how many people took part."""
    with hub.store.reading() as session:
        return reading.describe(session, _survey(session, access))


@router.guarded("PUT", "/surveys/{survey_id}", actions.EDIT_SURVEY)
def change_survey(hub: CurrentHub, access: CurrentAccess, draft: SurveyDraft) -> dict[str, Any]:
    """Change a draft."""
    with hub.store.writing() as session:
        survey = _survey(session, access)
        drafting.change_survey(survey, **_parts(draft))
        return reading.describe(session, survey)


@router.guarded("DELETE", "/surveys/{survey_id}", actions.DELETE_SURVEY)
def delete_survey(hub: CurrentHub, access: CurrentAccess) -> dict[str, Any]:
    """Delete a survey and all reports for good."""
    with hub.store.writing() as session:
        survey = _survey(session, access)
        publishing.delete_survey(session, survey)
    forget_order(hub.store)
    return {"schema": "cloister.deleted/1", "id": survey.id}


@router.guarded("POST", "/surveys/{survey_id}/publish", actions.PUBLISH_SURVEY)
def publish_survey(hub: CurrentHub, access: CurrentAccess) -> dict[str, Any]:
    """Open a survey to answers; from now on it does not change."""
    with hub.store.writing() as session:
        survey = _survey(session, access)
        publishing.publish(survey, key=hub.key)
        return reading.describe(session, survey)


@router.guarded("POST", "/surveys/{survey_id}/close", actions.CLOSE_SURVEY)
def close_survey(hub: CurrentHub, access: CurrentAccess) -> dict[str, Any]:
    """Close a survey for good, and delete whatever could still connect an invitation with anything."""
    with hub.store.writing() as session:
        survey = _survey(session, access)
        publishing.close(session, survey)
        described = reading.describe(session, survey)
    forget_order(hub.store, survey_id=survey.id)
    return described


@router.guarded("POST", "/surveys/{survey_id}/tokens", actions.INVITE_TO_SURVEY, status_code=201)
def make_invitations(hub: CurrentHub, access: CurrentAccess, wanted: Invitations) -> dict[str, Any]:
    """Make one-time links, which are shown now and never again."""
    with hub.store.writing() as session:
        survey = _survey(session, access)
        tokens = inviting.invite(session, survey, count=wanted.count)
        address = f"{hub.settings.address}/s/{survey.slug}"
    return {"schema": "cloister.invitations/1", "items": [f"{address}#{token}" for token in tokens]}


@router.guarded("GET", "/surveys/{survey_id}/estimates", actions.SEE_ESTIMATES)
def see_estimates(hub: CurrentHub, access: CurrentAccess) -> dict[str, Any]:
    """Return what everybody together answered, with margins, by question and by level."""
    return estimating.estimates(_current(hub, access))


@router.guarded("GET", "/surveys/{survey_id}/estimates/{question}.svg", actions.SEE_ESTIMATES, response_class=Response)
def see_chart(hub: CurrentHub, access: CurrentAccess, question: str) -> Response:
    """Return the chart of a question as SVG."""
    figure = estimating.chart(estimating.estimates(_current(hub, access)), question)
    return Response(figure.to_svg(), media_type="image/svg+xml")


def _current(hub: Hub, access: Access) -> HubSurvey:
    return estimating.current(hub.store, "" if access.target is None else access.target.id)


def _survey(session: Any, access: Access) -> HubSurvey:
    return reading.find_survey(session, "" if access.target is None else access.target.id)


def _parts(draft: SurveyDraft) -> dict[str, Any]:
    return {
        "document": draft.document,
        "admission": draft.admission,
        "results_are_public": draft.results_are_public,
        "least": draft.least,
    }
