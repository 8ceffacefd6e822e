from __future__ import annotations

import pytest

from cloister.local.survey import Question, Survey


@pytest.fixture
def survey() -> Survey:
    return Survey(
        id="small",
        title="A small survey",
        collector="Example Institute",
        questions=(
            Question(id="married", kind="yes_no", text="Are you married?"),
            Question(id="color", kind="single_choice", text="Which color?", options=("red", "green", "blue")),
            Question(id="ways", kind="multiple_choice", text="How?", options=("bus", "bike", "car", "train"), most=2),
            Question(id="age", kind="number", text="Age?", bounds=(0, 100), whole=True, bins=(0, 18, 65, 100)),
            Question(id="stars", kind="rating", text="How good?", options=(1, 2, 3, 4, 5)),
        ),
    )


ANSWERS = {"married": "yes", "color": "blue", "ways": ["bus", "car"], "age": 41, "stars": 4}


@pytest.fixture
def answers() -> dict[str, object]:
    return dict(ANSWERS)
