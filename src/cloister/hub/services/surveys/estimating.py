"""What everybody together answered, as far as the reports that arrived tell.

Estimates cost no budget: every report was protected before it was sent, and the sentence about that is shown beside
them. They are made anew only when enough new submissions are there, so that nobody who watches the numbers sees a
single report arrive, and none is made from a few reports.
"""

from __future__ import annotations

import json
from typing import Any

import numpy as np
from sqlalchemy import func, select
from sqlalchemy.orm import Session

from cloister.errors import NotFoundError
from cloister.hub.domain.surveys import SurveyState
from cloister.hub.services.surveys.reading import count_submissions, find_survey, open_document
from cloister.hub.store.database import Store
from cloister.hub.store.models import HubSurvey, SurveyReport
from cloister.local.estimates import MeanEstimate
from cloister.local.reports import Reports
from cloister.local.survey.levels import OFF
from cloister.local.survey.model import Survey
from cloister.local.survey.results import (
    TOO_FEW,
    LevelResult,
    QuestionResult,
    SurveyResult,
    estimate_survey,
    margins_of,
    values_of,
)
from cloister.plotting import Figure

STEP = 10
"""How many new submissions change the estimates."""

_SCHEMA = "cloister.survey_estimates/1"
_SENTENCE = (
    "These are estimates from reports that were changed at random on the respondents' own devices. The hub never saw "
    "an answer. Estimating costs no privacy beyond what each respondent chose."
)


def is_due(session: Session, survey: HubSurvey) -> bool:
    """Return whether the kept estimates are to be made anew."""
    count = count_submissions(session, survey)
    if count < survey.least or count == survey.estimated:
        return False
    return survey.estimates is None or count >= survey.estimated + STEP or survey.state == SurveyState.CLOSED


def evaluate(session: Session, survey: HubSurvey) -> None:
    """Make the estimates of all submissions that there are, and keep them."""
    count = count_submissions(session, survey)
    result = _estimate(session, survey, count)
    asked = open_document(survey.document)
    answered = {one.question.id: one for one in result.questions}
    questions = [
        _question(asked, answered.get(question.id), question.id, least=survey.least) for question in asked.questions
    ]
    survey.estimates = json.dumps(
        {"is_plausible": result.is_plausible, "statement": str(result.statement()), "questions": questions},
        ensure_ascii=False,
    )
    survey.estimated = count


def current(store: Store, survey_id: str) -> HubSurvey:
    """Return a survey with estimates that are as new as they are shown."""
    with store.reading() as session:
        survey = find_survey(session, survey_id)
        if not is_due(session, survey):
            return survey
    with store.writing() as session:
        survey = find_survey(session, survey_id)
        if is_due(session, survey):
            evaluate(session, survey)
        return survey


def estimates(survey: HubSurvey) -> dict[str, Any]:
    """Return the kept estimates, or that there are too few submissions for any."""
    head = {
        "schema": _SCHEMA,
        "id": survey.id,
        "title": survey.title,
        "state": survey.state,
        "least": survey.least,
        "step": STEP,
        "sentence": _SENTENCE,
    }
    if survey.estimates is None:
        return {**head, "submissions": None, "is_plausible": None, "statement": None, "questions": []}
    return {**head, "submissions": survey.estimated, **json.loads(survey.estimates)}


def public_estimates(survey: HubSurvey) -> dict[str, Any]:
    """Return the estimates of a survey that shows them to everybody."""
    if survey.state == SurveyState.DRAFT or not survey.results_are_public:
        raise NotFoundError("This survey does not show its estimates to everybody.", fix="ask those who run it.")
    return estimates(survey)


def chart(found: dict[str, Any], question: str) -> Figure:
    """Return the chart of a question from kept estimates."""
    for one in found["questions"]:
        if one["question"] == question and one["chart"] is not None:
            return Figure.from_dict(one["chart"])
    raise NotFoundError("There is no chart of this question.", fix="wait for more reports.")


def _estimate(session: Session, survey: HubSurvey, count: int) -> SurveyResult:
    asked = open_document(survey.document)
    reports = _bags(session, survey, asked)
    counts = {}
    for question in asked.questions:
        levels = {level: len(bag) for (name, level), bag in reports.items() if name == question.id}
        counts[question.id] = {OFF: count - sum(levels.values()), **levels}
    return estimate_survey(asked, reports=reports, counts=counts, days={"": count}, refused={})


def _bags(session: Session, survey: HubSurvey, asked: Survey) -> dict[tuple[str, str], Reports]:
    """Return all reports by question and level; equal ones are counted by the database."""
    columns = SurveyReport.question, SurveyReport.level, SurveyReport.value
    rows = session.execute(
        select(*columns, func.count()).where(SurveyReport.survey_id == survey.id).group_by(*columns).order_by(*columns)
    )
    said: dict[tuple[str, str], list[tuple[Any, int]]] = {}
    for name, level, value, times in rows:
        said.setdefault((name, level), []).append((json.loads(value), times))
    bags = {}
    for question in asked.questions:
        for level in asked.levels_of(question.id):
            if level != OFF:
                place = (question.id, level)
                protocol = asked.protocol(*place)
                values = said.get(place, [])
                parsed = protocol.output_space.parse([value for value, _ in values])
                bags[place] = Reports(protocol, np.repeat(parsed, [times for _, times in values]))
    return bags


def _question(asked: Survey, result: QuestionResult | None, name: str, *, least: int) -> dict[str, Any]:
    question = asked.question(name)
    reports = 0 if result is None else result.reports
    head: dict[str, Any] = {
        "question": name,
        "text": question.text,
        "kind": str(question.kind),
        "reports": reports,
        "is_ready": reports >= least,
    }
    if result is None or reports < least:
        return {**head, "off": None, "guarantee": None, "values": [], "levels": [], "alarms": [], "chart": None}
    margins, mended, wider, telling = result.margins(), result.mended, result.wider(), result.telling()
    return {
        **head,
        "off": result.off,
        "guarantee": result.guarantee.explain(),
        "values": [
            {
                "value": value,
                "raw": raw,
                "margin": margins[value],
                "interval": [raw - margins[value], raw + margins[value]],
                "wider_margin": wider[value],
                "mended": mended[value],
                "written": result.written(raw, margins[value]),
                "shown": result.written(mended[value], margins[value]) if telling[value] else TOO_FEW,
                "is_telling": telling[value],
            }
            for value, raw in result.raw.items()
        ],
        "mean": _mean(result.mean),
        "difference": result.difference,
        "poisoning": result.poisoning.to_dict(),
        "levels": [_level(result, level, least=least) for level in result.levels],
        "alarms": [{"level": level, "reason": reason} for level, reason in result.alarms],
        "chart": result.plot().to_dict(),
    }


def _level(result: QuestionResult, level: LevelResult, *, least: int) -> dict[str, Any]:
    """Return the estimate of one level, unless there are too few reports of it."""
    values = []
    if level.estimate is not None and level.reports >= least:
        margins = margins_of(level.estimate)
        values = [
            {"value": value, "raw": raw, "margin": margins[value], "written": result.written(raw, margins[value])}
            for value, raw in values_of(level.estimate).items()
        ]
    return {
        "level": level.name,
        "reports": level.reports,
        "guarantee": level.protocol.guarantee.explain(),
        "protocol": level.protocol.name,
        "values": values,
    }


def _mean(mean: MeanEstimate | None) -> dict[str, float] | None:
    return None if mean is None else {"value": mean.value, "margin": mean.margin()}
