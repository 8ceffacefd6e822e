from __future__ import annotations

import pytest

from cloister.local.survey import SurveyQuestion
from cloister.testing.laws import Law
from tests.support.question_laws import QuestionLaws

LAWS = QuestionLaws(
    question=SurveyQuestion(id="q", kind="yes_no", text="Are you married?"),
    answers=(("yes", "yes"), ("no", "1"), ("yes", "YES")),
    outside=("secret-4711", None, 7, ["yes"]),
)


@pytest.mark.parametrize("law", LAWS, ids=str)
def test_law(law: Law) -> None:
    law.verify()
