"""The respondent's pages: the survey itself, and exactly the code that the browser runs for it."""

from __future__ import annotations

import hashlib
from typing import Any

from fastapi import Request
from fastapi.responses import HTMLResponse, Response

from cloister.hub.domain import actions
from cloister.hub.gateway import CurrentAccess, CurrentHub, GuardedRouter
from cloister.hub.hub import Hub
from cloister.hub.services.authorizing import Access
from cloister.hub.services.surveys import code, estimating, reading
from cloister.hub.web import shell
from cloister.hub.web.survey_charts import drawn

router = GuardedRouter()

_IMMUTABLE = {"Cache-Control": "public, max-age=31536000, immutable"}


@shell.page(router, "/s/{survey_id}", actions.READ_SURVEY, twin="/surveys/{survey_id}/page")
def answer_page(request: Request, hub: CurrentHub, access: CurrentAccess) -> HTMLResponse:
    """Show a survey to somebody who answers it."""
    return shell.render(request, "answer.html", **_frame(_page(hub, access)))


@shell.page(router, "/s/{survey_id}/code", actions.READ_SURVEY, twin="/surveys/{survey_id}/code")
def code_page(request: Request, hub: CurrentHub, access: CurrentAccess) -> HTMLResponse:
    """Show every file that the browser runs, with its hash and its text."""
    page = _page(hub, access)
    html = shell.render(request, "answer.html", **_frame(page)).body
    itself = {"sha256": hashlib.sha256(html).hexdigest(), "text": bytes(html).decode()}
    return shell.render(
        request,
        "answer_code.html",
        itself=itself,
        files=[file.to_dict() for file in code.code_files()],
        key=page["key"],
        published=page["code"]["published"],
        **_frame(page),
    )


@shell.page(
    router, "/s/{survey_id}/results", actions.SEE_PUBLIC_ESTIMATES, twin="/surveys/{survey_id}/public-estimates"
)
def public_results(request: Request, hub: CurrentHub, access: CurrentAccess) -> HTMLResponse:
    """Show the estimates of a survey that shows them to everybody."""
    survey = estimating.current(hub.store, "" if access.target is None else access.target.id)
    found = estimating.public_estimates(survey)
    return shell.render(request, "survey_results.html", title=survey.title, found=found, charts=drawn(found))


@router.guarded("GET", "/s/{survey_id}/worker.js", actions.READ_SURVEY)
def worker(request: Request) -> Response:
    """Return the script that keeps the page usable without a connection."""
    file = code.find_code(code.WORKER)
    allowed = {"Service-Worker-Allowed": f"/s/{request.path_params['survey_id']}"}
    return Response(file.content, media_type=file.media_type, headers=allowed)


@router.guarded("GET", "/survey-code/{code_hash}/{name:path}", actions.READ_PUBLIC)
def code_file(code_hash: str, name: str) -> Response:
    """Return one file of the code, under an address that holds the hash of all of it."""
    file = code.find_code(name, code=code_hash)
    return Response(file.content, media_type=file.media_type, headers=_IMMUTABLE)


def _page(hub: Hub, access: Access) -> dict[str, Any]:
    with hub.store.reading() as session:
        return reading.respondent_page(reading.find_survey(session, "" if access.target is None else access.target.id))


def _frame(page: dict[str, Any]) -> dict[str, Any]:
    files = code.code_files()
    return {
        "title": page["title"],
        "address": page["address"],
        "hash": code.code_hash(),
        "published_hash": page["code"]["published"],
        "results_are_public": page["results_are_public"],
        "entry": code.find_code(code.ENTRY),
        "modules": [file for file in files if file.name.endswith(".js") and file.name not in (code.WORKER, code.ENTRY)],
        "styles": [code.find_code(name) for name in ("style.css", "survey.css")],
    }
