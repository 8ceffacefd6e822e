"""Answering surveys, without an account: what a browser needs, blind signatures, and submissions.

Nothing about the request is used or kept: no cookie, no address, no time, no kind of browser.
"""

from __future__ import annotations

from typing import Annotated, Any

from fastapi.responses import JSONResponse
from pydantic import Field

from cloister.hub.domain import actions
from cloister.hub.domain.request_body import RequestBody
from cloister.hub.gateway import CurrentAccess, CurrentHub, GuardedRouter
from cloister.hub.services.authorizing import Access
from cloister.hub.services.surveys import answering, code, estimating, inviting, reading, tidying
from cloister.hub.store.models import HubSurvey

router = GuardedRouter(tags=["answers"])

Hexadecimal = Annotated[str, Field(pattern=r"^(?:[0-9a-f]{2}){1,1024}$")]


class Exchange(RequestBody):
    """An invitation, and a blinded message that one signature is wanted for."""

    token: str = Field(min_length=1, max_length=100)
    blinded: Hexadecimal


class Answer(RequestBody):
    """A submission, with what admits one person where the survey is for invited people."""

    submission: dict[str, Any]
    token: str | None = Field(default=None, min_length=1, max_length=100)
    message: Hexadecimal | None = None
    signature: Hexadecimal | None = None


@router.guarded("GET", "/surveys/{survey_id}/page", actions.READ_SURVEY)
def read_page(hub: CurrentHub, access: CurrentAccess) -> dict[str, Any]:
    """Return what a respondent's browser needs to ask and to protect the answers."""
    with hub.store.reading() as session:
        return reading.respondent_page(_survey(session, access))


@router.guarded("GET", "/surveys/{survey_id}/code", actions.READ_SURVEY)
def read_code(hub: CurrentHub, access: CurrentAccess) -> dict[str, Any]:
    """Return every file that the respondent's browser runs, with its hash."""
    with hub.store.reading() as session:
        page = reading.respondent_page(_survey(session, access))
    return {
        "schema": "cloister.survey_code/1",
        "hash": code.code_hash(),
        "published": page["code"]["published"],
        "files": [file.to_dict() for file in code.code_files()],
    }


@router.guarded("GET", "/surveys/{survey_id}/public-estimates", actions.SEE_PUBLIC_ESTIMATES)
def see_public_estimates(hub: CurrentHub, access: CurrentAccess) -> dict[str, Any]:
    """Return the estimates of a survey that shows them to everybody."""
    return estimating.public_estimates(estimating.current(hub.store, "" if access.target is None else access.target.id))


@router.guarded("POST", "/surveys/{survey_id}/tokens/sign", actions.SIGN_INVITATION)
def sign_invitation(hub: CurrentHub, access: CurrentAccess, wanted: Exchange) -> dict[str, Any]:
    """Exchange an invitation for one blind signature; repeating the same request gives the same one."""
    with hub.store.writing() as session:
        survey = _survey(session, access)
        signature = inviting.sign(
            session, survey, token=wanted.token, blinded=bytes.fromhex(wanted.blinded), key=hub.key
        )
    return {"schema": "cloister.blind_signature/1", "signature": signature.hex()}


@router.guarded("POST", "/surveys/{survey_id}/submissions", actions.ANSWER_SURVEY, status_code=201)
def submit(hub: CurrentHub, access: CurrentAccess, answer: Answer) -> JSONResponse:
    """Count a submission, once; one that was counted before is told so and changes nothing."""
    with hub.store.writing() as session:
        survey = _survey(session, access)
        is_new = answering.submit(
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
        tidying.forget_when_due(hub.store, survey.id, count)
    state = "counted" if is_new else "counted before"
    return JSONResponse({"schema": "cloister.receipt/1", "state": state}, status_code=201 if is_new else 200)


def _survey(session: Any, access: Access) -> HubSurvey:
    return reading.find_survey(session, "" if access.target is None else access.target.id)
