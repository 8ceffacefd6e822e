"""What everybody together answered, as far as the reports that arrived tell.

Estimates cost no budget: every report was protected before it was sent, and the sentence about that is shown beside
them. None is made from a few reports, and they are made anew in batches: only when enough new submissions are there, of
a question only when that many people have answered it since, of its levels only when that holds for each level that
changed. So nobody who watches the numbers sees a single report arrive. Closing a survey changes nothing about that: the
last few submissions may stay outside of the last estimates.

The work is done on a snapshot, outside of any transaction that writes, by one request at a time.
"""

from __future__ import annotations

import json
import threading
from typing import Any

from sqlalchemy.orm import Session

from cloister.errors import NotFoundError
from cloister.hub.domain.lifecycles import SurveyState
from cloister.hub.store.database import Store
from cloister.hub.store.models import HubSurvey
from cloister.hub.use_cases.surveys._stored_submissions import StoredSubmissions
from cloister.hub.use_cases.surveys.catalogue import checker_of, find_survey, open_document
from cloister.local.estimates import MeanEstimate
from cloister.local.survey.intake import SubmissionIntake
from cloister.local.survey.model import Survey
from cloister.local.survey.results import (
    TOO_FEW,
    LevelResult,
    QuestionResult,
    margins_of,
    mend_estimate,
    values_of,
)
from cloister.plotting import Figure

STEP = 10
"""How many new submissions change the estimates, at least."""

SHARE = 100
"""With many submissions, one in so many more is needed: evaluating takes longer then."""

_TURN = threading.Lock()
"""Held by the one request of this process that makes estimates."""

_SCHEMA = "cloister.survey_estimates/1"
_SENTENCE = (
    "These are estimates from reports that were changed at random on the respondents' own devices. The hub never saw "
    "an answer. Estimating costs no privacy beyond what each respondent chose."
)


def step_after(estimated: int) -> int:
    """Return how many more submissions change estimates that were made from so many."""
    return max(STEP, estimated // SHARE)


def is_due(survey: HubSurvey) -> bool:
    """Return whether the kept estimates are to be made anew: a matter of how many submissions there are, alone."""
    if survey.estimates is None:
        return survey.submissions >= survey.least
    return survey.submissions >= survey.estimated + step_after(survey.estimated)


def current(store: Store, survey_id: str) -> HubSurvey:
    """Return a survey with estimates that are as new as they are shown; while others make them, with those before."""
    with store.reading(snapshot=True) as session:
        survey = find_survey(session, survey_id)
        if not is_due(survey) or not _TURN.acquire(blocking=False):
            return survey
        try:
            made = _evaluate(session, survey)
        finally:
            _TURN.release()
    with store.writing() as session:
        kept = find_survey(session, survey_id)
        # Somebody else may have been here in the meantime: what they made stays, if it is as new.
        if kept.estimates is None or kept.estimated < survey.submissions:
            kept.estimates, kept.estimated = made, survey.submissions
        return kept


def _evaluate(session: Session, survey: HubSurvey) -> str:
    """Return the estimates of all submissions that there are, as they are kept."""
    result = SubmissionIntake(checker_of(survey.document), StoredSubmissions(session, survey)).estimate()
    asked = open_document(survey.document)
    answered = {one.question.id: one for one in result.questions}
    before = {one["question"]: one for one in estimates(survey)["questions"]}
    questions = [
        _hold_back(
            before.get(question.id),
            _question(asked, answered.get(question.id), question.id, least=survey.least),
        )
        for question in asked.questions
    ]
    return json.dumps(
        {"is_plausible": result.is_plausible, "statement": str(result.statement()), "questions": questions},
        ensure_ascii=False,
    )


def _hold_back(before: dict[str, Any] | None, now: dict[str, Any]) -> dict[str, Any]:
    """Return what is told of a question: as before until enough reports are new, and so of its levels."""
    if before is None or not before["is_ready"]:
        return now
    if now["reports"] < before["reports"] + STEP:
        return before
    known = {level["level"]: level["reports"] for level in before["levels"]}
    more = [level["reports"] - known[level["level"]] for level in now["levels"]]
    if all(new == 0 or new >= STEP for new in more):
        return now
    # All levels but one, beside the whole, would give the one: so the levels change together or not at all.
    return now | {"levels": before["levels"], "difference": before["difference"]}


def estimates(survey: HubSurvey) -> dict[str, Any]:
    """Return the kept estimates, or that there are too few submissions for any."""
    head = {
        "schema": _SCHEMA,
        "id": survey.id,
        "title": survey.title,
        "state": survey.state,
        "least": survey.least,
        "step": step_after(survey.estimated),
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
                "written": result.format_value(raw, margins[value]),
                "shown": result.format_value(mended[value], margins[value]) if telling[value] else TOO_FEW,
                "is_telling": telling[value],
            }
            for value, raw in result.raw.items()
        ],
        "mean": _mean(result.mean),
        "difference": result.difference,
        "poisoning": result.poisoning.to_dict(),
        "levels": [_level(result, level, least=least) for level in result.levels],
        "alarms": [{"level": level, "reason": reason} for level, reason in result.alarms],
        "chart": result.plot().to_dict() if any(telling.values()) else None,
    }


def _level(result: QuestionResult, level: LevelResult, *, least: int) -> dict[str, Any]:
    """Return the estimate of one level, unless there are too few reports of it."""
    values = []
    if level.estimate is not None and level.reports >= least:
        margins, mended = margins_of(level.estimate), mend_estimate(level.estimate)
        values = [
            {
                "value": value,
                "raw": raw,
                "margin": margins[value],
                "mended": mended[value],
                "written": result.format_value(raw, margins[value]),
                "shown": result.format_value(mended[value], margins[value]),
            }
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
