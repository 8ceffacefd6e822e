"""Pages of surveys: for those who ask, and for those who answer.

Those who ask have the list, the builder, and one survey with its estimates. The respondent's pages are the survey
itself, and exactly the code that the browser runs for it.
"""

from __future__ import annotations

import hashlib
from typing import Any

from fastapi import Query, Request
from fastapi.responses import HTMLResponse, Response

from cloister.hub.domain import actions
from cloister.hub.domain.lifecycles import Admission
from cloister.hub.domain.roles import AccountRole
from cloister.hub.gateway import CurrentAccess, CurrentHub, GuardedRouter
from cloister.hub.hub import Hub
from cloister.hub.use_cases.authorization import Access
from cloister.hub.use_cases.surveys import browser_code, catalogue, estimates, lifecycle
from cloister.hub.web import shell
from cloister.hub.web.display import draw_questions
from cloister.local.survey.kinds import list_kinds

router = GuardedRouter()

_ADMISSIONS = [
    (str(one), words, one.sentence)
    for one, words in (
        (Admission.EVERYBODY, "Everybody with the link"),
        (Admission.BLIND, "Invited people, unlinkable (blind signatures)"),
        (Admission.LINKS, "Invited people, simple one-time links"),
    )
]


@shell.page(
    router,
    "/surveys",
    actions.LIST_SURVEYS,
    twin="/surveys",
    menu=shell.MenuEntry(30, "Surveys", (AccountRole.DATA_OWNER, AccountRole.DATA_USER)),
)
def surveys(
    request: Request,
    hub: CurrentHub,
    access: CurrentAccess,
    after: str | None = Query(default=None, pattern="^[a-z0-9_]{1,64}$"),
) -> HTMLResponse:
    """Show the surveys of one's own organisation."""
    with hub.store.reading() as session:
        found = catalogue.list_surveys(session, access.person, after=after)
    can_ask = bool(actions.CREATE_SURVEY.roles & access.person.roles)
    return shell.render(request, "surveys.html", title="Surveys", found=found, can_ask=can_ask)


@shell.page(router, "/surveys/new", actions.CHECK_SURVEY, twin="/surveys")
def new_survey(request: Request) -> HTMLResponse:
    """Show the builder, empty or filled from another survey (``?from=``)."""
    return shell.render(
        request,
        "survey_new.html",
        title="New survey",
        admissions=_ADMISSIONS,
        kinds=list_kinds(),
        least=lifecycle.LEAST,
    )


@shell.page(router, "/surveys/{survey_id}", actions.SEE_SURVEY, twin="/surveys/{survey_id}")
def one_survey(request: Request, hub: CurrentHub, access: CurrentAccess) -> HTMLResponse:
    """Show a survey, how it goes, and what the reports say together."""
    survey = estimates.current(hub.store, "" if access.target is None else access.target.id)
    with hub.store.reading() as session:
        described = catalogue.describe(session, survey)
    found = estimates.estimates(survey)
    relations = frozenset() if access.target is None else access.target.relations(access.person)
    return shell.render(
        request,
        "survey.html",
        title=survey.title,
        survey=described,
        link=f"{hub.settings.address}{described['address']}",
        found=found,
        charts=draw_questions(found),
        can_change=bool(relations & actions.EDIT_SURVEY.relations),
    )


respondent_router = GuardedRouter()

_IMMUTABLE = {"Cache-Control": "public, max-age=31536000, immutable"}


@shell.page(respondent_router, "/s/{survey_id}", actions.READ_SURVEY, twin="/surveys/{survey_id}/page")
def answer_page(request: Request, hub: CurrentHub, access: CurrentAccess) -> HTMLResponse:
    """Show a survey to somebody who answers it."""
    return shell.render(request, "answer.html", **_frame(_page(hub, access)))


@shell.page(respondent_router, "/s/{survey_id}/code", actions.READ_SURVEY, twin="/surveys/{survey_id}/code")
def code_page(request: Request, hub: CurrentHub, access: CurrentAccess) -> HTMLResponse:
    """Show every file that the browser runs, with its hash and its text."""
    page = _page(hub, access)
    html = shell.render(request, "answer.html", **_frame(page)).body
    itself = {"sha256": hashlib.sha256(html).hexdigest(), "text": bytes(html).decode()}
    return shell.render(
        request,
        "answer_code.html",
        itself=itself,
        files=[file.to_dict() for file in browser_code.code_files()],
        key=page["key"],
        published=page["code"]["published"],
        **_frame(page),
    )


@shell.page(
    respondent_router,
    "/s/{survey_id}/results",
    actions.SEE_PUBLIC_ESTIMATES,
    twin="/surveys/{survey_id}/public-estimates",
)
def public_results(request: Request, hub: CurrentHub, access: CurrentAccess) -> HTMLResponse:
    """Show the estimates of a survey that shows them to everybody."""
    survey = estimates.current(hub.store, "" if access.target is None else access.target.id)
    found = estimates.public_estimates(survey)
    return shell.render(request, "survey_results.html", title=survey.title, found=found, charts=draw_questions(found))


@respondent_router.guarded("GET", "/s/{survey_id}/worker.js", actions.READ_SURVEY)
def worker(request: Request) -> Response:
    """Return the script that keeps the page usable without a connection."""
    file = browser_code.find_code(browser_code.WORKER)
    allowed = {"Service-Worker-Allowed": f"/s/{request.path_params['survey_id']}"}
    return Response(file.content, media_type=file.media_type, headers=allowed)


@respondent_router.guarded("GET", "/survey-code/{code_hash}/{name:path}", actions.READ_PUBLIC)
def code_file(code_hash: str, name: str) -> Response:
    """Return one file of the code, under an address that holds the hash of all of it."""
    file = browser_code.find_code(name, code=code_hash)
    return Response(file.content, media_type=file.media_type, headers=_IMMUTABLE)


def _page(hub: Hub, access: Access) -> dict[str, Any]:
    with hub.store.reading() as session:
        return catalogue.respondent_page(
            catalogue.find_survey(session, "" if access.target is None else access.target.id)
        )


def _frame(page: dict[str, Any]) -> dict[str, Any]:
    files = browser_code.code_files()
    return {
        "title": page["title"],
        "address": page["address"],
        "hash": browser_code.code_hash(),
        "published_hash": page["code"]["published"],
        "results_are_public": page["results_are_public"],
        "entry": browser_code.find_code(browser_code.ENTRY),
        "modules": [
            file
            for file in files
            if file.name.endswith(".js") and file.name not in (browser_code.WORKER, browser_code.ENTRY)
        ],
        "styles": [browser_code.find_code(name) for name in ("style.css", "survey.css")],
    }
