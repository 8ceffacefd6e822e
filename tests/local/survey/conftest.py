from __future__ import annotations

import pytest

from cloister.local.survey import Survey, SurveyQuestion


@pytest.fixture
def survey() -> Survey:
    return Survey(
        id="small",
        title="A small survey",
        collector="Example Institute",
        questions=(
            SurveyQuestion(id="married", kind="yes_no", text="Are you married?"),
            SurveyQuestion(id="color", kind="single_choice", text="Which color?", options=("red", "green", "blue")),
            SurveyQuestion(
                id="ways", kind="multiple_choice", text="How?", options=("bus", "bike", "car", "train"), most=2
            ),
            SurveyQuestion(id="age", kind="number", text="Age?", bounds=(0, 100), whole=True, bins=(0, 18, 65, 100)),
            SurveyQuestion(id="stars", kind="rating", text="How good?", options=(1, 2, 3, 4, 5)),
        ),
    )


ANSWERS = {"married": "yes", "color": "blue", "ways": ["bus", "car"], "age": 41, "stars": 4}


@pytest.fixture
def answers() -> dict[str, object]:
    return dict(ANSWERS)
