from __future__ import annotations

import pytest

from cloister.local.survey import SurveyQuestion
from cloister.testing.laws import Law
from tests.support.question_laws import QuestionLaws

LAWS = QuestionLaws(
    question=SurveyQuestion(id="q", kind="multiple_choice", text="How?", options=("bus", "bike", "car"), most=2),
    answers=((["bus", "car"], "1, car"), ([], "none"), (["bike"], "bike")),
    outside=(["secret-4711"], ["bus", "bus"], ["bus", "bike", "car"], {"bus": 1}),
)


@pytest.mark.parametrize("law", LAWS, ids=str)
def test_law(law: Law) -> None:
    law.verify()
