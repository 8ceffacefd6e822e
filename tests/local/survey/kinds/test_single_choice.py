from __future__ import annotations

import pytest

from cloister.local.survey import SurveyQuestion
from cloister.testing.laws import Law
from tests.support.question_laws import QuestionLaws

LAWS = QuestionLaws(
    question=SurveyQuestion(id="q", kind="single_choice", text="Which color?", options=("red", "green", "blue")),
    answers=(("red", "1"), ("blue", "Blue"), ("green", "green")),
    outside=("secret-4711", None, 4, ["red", "blue"]),
)


@pytest.mark.parametrize("law", LAWS, ids=str)
def test_law(law: Law) -> None:
    law.verify()
