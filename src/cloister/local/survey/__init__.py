"""Surveys in which respondents need not trust whoever collects: questions, levels, planning, collecting and results.

survey = cloister.local.survey.Survey.read("survey.yaml")
submission = survey.answer({"married": "no"}, levels="high")     # on the respondent's device
collector = cloister.local.survey.Collector(survey)              # on the server
collector.add(submission.to_json())
collector.estimate().report("results.html")
"""

from __future__ import annotations

from cloister.local.survey.collector import Collector
from cloister.local.survey.example import EXAMPLE, example_survey
from cloister.local.survey.intake import Intake
from cloister.local.survey.kinds import QuestionKind
from cloister.local.survey.levels import DEFAULT_LEVELS, OFF, Statement, SurveyLevel, total_statement
from cloister.local.survey.model import Survey
from cloister.local.survey.questions import SurveyQuestion
from cloister.local.survey.results import LevelResult, QuestionResult, SurveyResult
from cloister.local.survey.sample_size import PlanRow, SurveyPlan, plan_survey
from cloister.local.survey.simulation import Simulation, simulate
from cloister.local.survey.submissions import Submission, SurveyTerms, token_id

__all__ = [
    "DEFAULT_LEVELS",
    "EXAMPLE",
    "OFF",
    "Collector",
    "Intake",
    "LevelResult",
    "PlanRow",
    "QuestionKind",
    "QuestionResult",
    "Simulation",
    "Statement",
    "Submission",
    "Survey",
    "SurveyLevel",
    "SurveyPlan",
    "SurveyQuestion",
    "SurveyResult",
    "SurveyTerms",
    "example_survey",
    "plan_survey",
    "simulate",
    "token_id",
    "total_statement",
]
