"""Surveys over HTTP: writing, publishing, inviting, closing, estimates, and answering.

Answering is without an account: what a browser needs, blind signatures, and submissions. Nothing about such a request
is used or kept: no cookie, no address, no time, no kind of browser.
"""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import Query
from fastapi.responses import JSONResponse, Response
from pydantic import Field

from cloister.hub.domain import actions
from cloister.hub.domain.lifecycles import Admission
from cloister.hub.domain.untrusted_input import RequestBody
from cloister.hub.gateway import CurrentAccess, CurrentHub, GuardedRouter
from cloister.hub.hub import Hub
from cloister.hub.store.arrival_order import forget_order
from cloister.hub.store.models import HubSurvey
from cloister.hub.use_cases.authorization import Access
from cloister.hub.use_cases.surveys import browser_code, catalogue, estimates, invitations, lifecycle, submissions

router = GuardedRouter(tags=["surveys"])


class SurveyDraft(RequestBody):
    """A survey as it is written: the survey file as values or as text, and who may answer."""

    document: dict[str, Any] | str = Field(description="a survey file: its values, or its YAML or JSON text")
    admission: Admission = Field(default=Admission.EVERYBODY, description="who may answer")
    results_are_public: bool = Field(default=False, description="whether everybody may see the estimates")
    least: int = Field(default=lifecycle.LEAST, description="below how many reports nothing is estimated")


class SurveyToCheck(RequestBody):
    """A survey to look at before it is kept; for a margin in percent, or for a number of respondents."""

    document: dict[str, Any] | str
    margin: float | None = Field(default=None, gt=0, le=100, allow_inf_nan=False)
    respondents: int | None = Field(default=None, ge=1, le=10**9)


class Invitations(RequestBody):
    """How many invitations are wanted."""

    count: int = Field(ge=1, le=invitations.MOST_AT_ONCE)


@router.guarded("GET", "/surveys", actions.LIST_SURVEYS)
def list_surveys(
    hub: CurrentHub,
    access: CurrentAccess,
    limit: int = Query(default=50, ge=1, le=100),
    after: str | None = Query(default=None, pattern="^[a-z0-9_]{1,64}$"),
) -> dict[str, Any]:
    """List the surveys of one's own organisation."""
    with hub.store.reading() as session:
        return catalogue.list_surveys(session, access.person, limit=limit, after=after)


@router.guarded("POST", "/surveys", actions.CREATE_SURVEY, status_code=201)
def create_survey(hub: CurrentHub, access: CurrentAccess, draft: SurveyDraft) -> dict[str, Any]:
    """Keep a draft."""
    with hub.store.writing() as session:
        survey = lifecycle.create_survey(session, access.person, **_parts(draft))
        return catalogue.describe(session, survey)


@router.guarded("POST", "/surveys/check", actions.CHECK_SURVEY)
def check_survey(draft: SurveyToCheck) -> dict[str, Any]:
    """Return what respondents would be told and how many of them are needed; nothing is kept."""
    return lifecycle.preview(draft.document, margin=draft.margin, respondents=draft.respondents)


@router.guarded("GET", "/surveys/{survey_id}", actions.SEE_SURVEY)
def see_survey(hub: CurrentHub, access: CurrentAccess) -> dict[str, Any]:
    """Return a survey: its questions, its state and how many people took part."""
    with hub.store.reading() as session:
        return catalogue.describe(session, _survey(session, access))


@router.guarded("PUT", "/surveys/{survey_id}", actions.EDIT_SURVEY)
def change_survey(hub: CurrentHub, access: CurrentAccess, draft: SurveyDraft) -> dict[str, Any]:
    """Change a draft."""
    with hub.store.writing() as session:
        survey = _survey(session, access)
        lifecycle.change_survey(survey, **_parts(draft))
        return catalogue.describe(session, survey)


@router.guarded("DELETE", "/surveys/{survey_id}", actions.DELETE_SURVEY)
def delete_survey(hub: CurrentHub, access: CurrentAccess) -> dict[str, Any]:
    """Delete a survey and all reports for good."""
    with hub.store.writing() as session:
        survey = _survey(session, access)
        lifecycle.delete_survey(session, survey)
    forget_order(hub.store)
    return {"schema": "cloister.deleted/1", "id": survey.id}


@router.guarded("POST", "/surveys/{survey_id}/publish", actions.PUBLISH_SURVEY)
def publish_survey(hub: CurrentHub, access: CurrentAccess) -> dict[str, Any]:
    """Open a survey to answers; from now on it does not change."""
    with hub.store.writing() as session:
        survey = _survey(session, access)
        lifecycle.publish(survey, key=hub.key)
        return catalogue.describe(session, survey)


@router.guarded("POST", "/surveys/{survey_id}/close", actions.CLOSE_SURVEY)
def close_survey(hub: CurrentHub, access: CurrentAccess) -> dict[str, Any]:
    """Close a survey for good, and delete whatever could still connect an invitation with anything."""
    with hub.store.writing() as session:
        survey = _survey(session, access)
        lifecycle.close(session, survey)
        described = catalogue.describe(session, survey)
    forget_order(hub.store, survey_id=survey.id)
    return described


@router.guarded("POST", "/surveys/{survey_id}/tokens", actions.INVITE_TO_SURVEY, status_code=201)
def make_invitations(hub: CurrentHub, access: CurrentAccess, wanted: Invitations) -> dict[str, Any]:
    """Make one-time links, which are shown now and never again."""
    with hub.store.writing() as session:
        survey = _survey(session, access)
        tokens = invitations.invite(session, survey, count=wanted.count)
        address = f"{hub.settings.address}/s/{survey.slug}"
    return {"schema": "cloister.invitations/1", "items": [f"{address}#{token}" for token in tokens]}


@router.guarded("GET", "/surveys/{survey_id}/estimates", actions.SEE_ESTIMATES)
def see_estimates(hub: CurrentHub, access: CurrentAccess) -> dict[str, Any]:
    """Return what everybody together answered, with margins, by question and by level."""
    return estimates.estimates(_current(hub, access))


@router.guarded("GET", "/surveys/{survey_id}/estimates/{question}.svg", actions.SEE_ESTIMATES, response_class=Response)
def see_chart(hub: CurrentHub, access: CurrentAccess, question: str) -> Response:
    """Return the chart of a question as SVG."""
    figure = estimates.chart(estimates.estimates(_current(hub, access)), question)
    return Response(figure.to_svg(), media_type="image/svg+xml")


def _current(hub: Hub, access: Access) -> HubSurvey:
    return estimates.current(hub.store, "" if access.target is None else access.target.id)


def _survey(session: Any, access: Access) -> HubSurvey:
    return catalogue.find_survey(session, "" if access.target is None else access.target.id)


def _parts(draft: SurveyDraft) -> dict[str, Any]:
    return {
        "document": draft.document,
        "admission": draft.admission,
        "results_are_public": draft.results_are_public,
        "least": draft.least,
    }


answers_router = GuardedRouter(tags=["answers"])

Hexadecimal = Annotated[str, Field(pattern=r"^(?:[0-9a-f]{2}){1,1024}$")]


class Exchange(RequestBody):
    """An invitation, and a blinded message that one signature is wanted for."""

    token: str = Field(min_length=1, max_length=100)
    blinded: Hexadecimal


class SurveySubmission(RequestBody):
    """A submission, with what admits one person where the survey is for invited people."""

    submission: dict[str, Any]
    token: str | None = Field(default=None, min_length=1, max_length=100)
    message: Hexadecimal | None = None
    signature: Hexadecimal | None = None


@answers_router.guarded("GET", "/surveys/{survey_id}/page", actions.READ_SURVEY)
def read_page(hub: CurrentHub, access: CurrentAccess) -> dict[str, Any]:
    """Return what a respondent's browser needs to ask and to protect the answers."""
    with hub.store.reading() as session:
        return catalogue.respondent_page(_survey(session, access))


@answers_router.guarded("GET", "/surveys/{survey_id}/code", actions.READ_SURVEY)
def read_code(hub: CurrentHub, access: CurrentAccess) -> dict[str, Any]:
    """Return every file that the respondent's browser runs, with its hash."""
    with hub.store.reading() as session:
        page = catalogue.respondent_page(_survey(session, access))
    return {
        "schema": "cloister.survey_code/1",
        "hash": browser_code.code_hash(),
        "published": page["code"]["published"],
        "files": [file.to_dict() for file in browser_code.code_files()],
    }


@answers_router.guarded("GET", "/surveys/{survey_id}/public-estimates", actions.SEE_PUBLIC_ESTIMATES)
def see_public_estimates(hub: CurrentHub, access: CurrentAccess) -> dict[str, Any]:
    """Return the estimates of a survey that shows them to everybody."""
    return estimates.public_estimates(_current(hub, access))


@answers_router.guarded("POST", "/surveys/{survey_id}/tokens/sign", actions.SIGN_INVITATION)
def sign_invitation(hub: CurrentHub, access: CurrentAccess, wanted: Exchange) -> dict[str, Any]:
    """Exchange an invitation for one blind signature; repeating the same request gives the same one."""
    with hub.store.writing() as session:
        survey = _survey(session, access)
        signature = invitations.sign(
            session, survey, token=wanted.token, blinded=bytes.fromhex(wanted.blinded), key=hub.key
        )
    return {"schema": "cloister.blind_signature/1", "signature": signature.hex()}


@answers_router.guarded("POST", "/surveys/{survey_id}/submissions", actions.ANSWER_SURVEY, status_code=201)
def submit(hub: CurrentHub, access: CurrentAccess, answer: SurveySubmission) -> JSONResponse:
    """Count a submission, once; one that was counted before is told so and changes nothing."""
    with hub.store.writing() as session:
        survey = _survey(session, access)
        is_new = submissions.submit(
            session,
            survey,
            submission=answer.submission,
            token=answer.token,
            message=None if answer.message is None else bytes.fromhex(answer.message),
            signature=None if answer.signature is None else bytes.fromhex(answer.signature),
        )
        session.flush()
        count = survey.submissions
    if is_new:
        submissions.forget_when_due(hub.store, survey.id, count)
    state = "counted" if is_new else "counted before"
    return JSONResponse({"schema": "cloister.receipt/1", "state": state}, status_code=201 if is_new else 200)
