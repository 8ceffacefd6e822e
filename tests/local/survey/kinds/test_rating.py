from __future__ import annotations

import pytest

from cloister.local.survey import SurveyQuestion
from cloister.testing.laws import Law
from tests.support.question_laws import QuestionLaws

LAWS = QuestionLaws(
    question=SurveyQuestion(id="q", kind="rating", text="How good?", options=(1, 2, 3, 4, 5)),
    answers=((1, "1"), (5, "5"), ("4", "4")),
    outside=("secret-4711", None, 6, 2.5),
)


@pytest.mark.parametrize("law", LAWS, ids=str)
def test_law(law: Law) -> None:
    law.verify()
