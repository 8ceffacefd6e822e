"""Pages of those who ask: the list, the builder, and one survey with its estimates."""

from __future__ import annotations

from fastapi import Query, Request
from fastapi.responses import HTMLResponse

from cloister.hub.domain import actions
from cloister.hub.domain.surveys import Admission
from cloister.hub.gateway import CurrentAccess, CurrentHub, GuardedRouter
from cloister.hub.services.surveys import drafting, estimating, reading
from cloister.hub.web import shell
from cloister.hub.web.survey_charts import drawn
from cloister.local.survey.questions import QuestionKind

router = GuardedRouter()

_ADMISSIONS = [
    (str(one), words, one.sentence)
    for one, words in (
        (Admission.EVERYBODY, "Everybody with the link"),
        (Admission.BLIND, "Invited people, unlinkable (blind signatures)"),
        (Admission.LINKS, "Invited people, simple one-time links"),
    )
]
_KINDS = [(str(kind), str(kind).replace("_", " ").replace("yes no", "yes or no")) for kind in QuestionKind]


@shell.page(router, "/surveys", actions.LIST_SURVEYS, twin="/surveys")
def surveys(
    request: Request,
    hub: CurrentHub,
    access: CurrentAccess,
    after: str | None = Query(default=None, pattern="^[a-z0-9_]{1,64}$"),
) -> HTMLResponse:
    """Show the surveys of one's own organisation."""
    with hub.store.reading() as session:
        found = reading.list_surveys(session, access.person, after=after)
    can_ask = bool(actions.CREATE_SURVEY.roles & access.person.roles)
    return shell.render(request, "surveys.html", title="Surveys", found=found, can_ask=can_ask)


@shell.page(router, "/surveys/new", actions.CHECK_SURVEY, twin="/surveys")
def new_survey(request: Request) -> HTMLResponse:
    """Show the builder, empty or filled from another survey (``?from=``)."""
    return shell.render(
        request, "survey_new.html", title="New survey", admissions=_ADMISSIONS, kinds=_KINDS, least=drafting.LEAST
    )


@shell.page(router, "/surveys/{survey_id}", actions.SEE_SURVEY, twin="/surveys/{survey_id}")
def one_survey(request: Request, hub: CurrentHub, access: CurrentAccess) -> HTMLResponse:
    """Show a survey, how it goes, and what the reports say together."""
    survey = estimating.current(hub.store, "" if access.target is None else access.target.id)
    with hub.store.reading() as session:
        described = reading.describe(session, survey)
    found = estimating.estimates(survey)
    relations = frozenset() if access.target is None else access.target.relations(access.person)
    return shell.render(
        request,
        "survey.html",
        title=survey.title,
        survey=described,
        link=f"{hub.settings.address}{described['address']}",
        found=found,
        charts=drawn(found),
        can_change=bool(relations & actions.EDIT_SURVEY.relations),
    )
