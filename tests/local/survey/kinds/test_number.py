from __future__ import annotations

from fractions import Fraction

import pytest

from cloister.local.survey import SurveyQuestion
from cloister.testing.laws import Law
from tests.support.question_laws import QuestionLaws

LAWS = QuestionLaws(
    question=SurveyQuestion(id="q", kind="number", text="Age?", bounds=(Fraction(0), Fraction(100)), whole=True),
    answers=((0, "0"), (41, "41"), (200, "200")),
    outside=("secret-4711", None, "4.5", [1]),
)

BINS = QuestionLaws(
    question=SurveyQuestion(
        id="q",
        kind="number",
        text="Age?",
        bounds=(Fraction(0), Fraction(100)),
        bins=(Fraction(0), Fraction(18), Fraction(100)),
    ),
    answers=((0, "0"), (17.5, "17.5"), (18, "18"), (200, "200")),
    outside=("secret-4711", None, [1]),
)


@pytest.mark.parametrize("law", [*LAWS, *BINS], ids=str)
def test_law(law: Law) -> None:
    law.verify()
