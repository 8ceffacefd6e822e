from __future__ import annotations

import math
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from cloister.errors import ParameterError
from cloister.local import Survey, SurveyQuestion, protocols
from cloister.local.survey import example_survey, plan_survey
from cloister.local.survey.sample_size import margin_for, respondents_for, share_variance
from cloister.testing import check_golden, load_goldens

FOLDER = Path(__file__).parents[2] / "golden" / "local"


def needed(protocol: str, size: int, epsilon: int, share: object, margin: float) -> int:
    made: Any = protocols.get(protocol)(domain=list(range(size)), epsilon=epsilon)
    return respondents_for(share_variance(made, share), margin)


@pytest.mark.parametrize("golden", [one for one in load_goldens(FOLDER) if one.name == "survey_planner"], ids=str)
def test_the_worked_planner_example(golden: Any) -> None:
    check_golden(golden, needed)


def test_the_worked_planner_example_backwards() -> None:
    (golden,) = (one for one in load_goldens(FOLDER) if one.name == "survey_planner")
    for case in golden.cases:
        asked = case.inputs
        made: Any = protocols.get(asked["protocol"])(domain=list(range(asked["size"])), epsilon=asked["epsilon"])
        margin = margin_for(share_variance(made, asked["share"]), case.expected)
        assert margin == pytest.approx(0.02, rel=2e-3)


def test_variances_are_those_of_the_formulas() -> None:
    grr: Any = protocols.get("direct_encoding")(domain=14, epsilon=1)
    assert share_variance(grr, 0) == pytest.approx((12 + math.e) / (math.e - 1) ** 2, rel=1e-9)
    rr: Any = protocols.get("randomized_response")(epsilon=1)
    p = math.e / (math.e + 1)
    assert share_variance(rr, "worst") == pytest.approx(0.25 / (2 * p - 1) ** 2, rel=1e-9)
    assert share_variance(rr, 0.5) == share_variance(rr, "worst")


@pytest.mark.parametrize("epsilon", [0.25, 1, 4])
@pytest.mark.parametrize("name", ["direct_encoding", "optimized_unary_encoding", "randomized_response"])
def test_no_share_is_worse_than_the_worst(name: str, epsilon: float) -> None:
    domain = 2 if name == "randomized_response" else 9
    protocol: Any = protocols.get(name)(domain=[str(place) for place in range(domain)], epsilon=epsilon)
    worst = share_variance(protocol, "worst")
    assert max(share_variance(protocol, Fraction(place, 50)) for place in range(51)) <= worst * (1 + 1e-12)


def test_a_plan_for_a_margin_and_for_respondents_agree(survey: Survey) -> None:
    wanted = plan_survey(survey, margin=2)
    for row in wanted.rows:
        for worst in (False, True):
            people = row.respondents(2, worst=worst)
            assert row.margin(people, worst=worst) <= 2 < row.margin(max(people - 1, 1), worst=worst) + 1e-9 * people


def test_the_row_that_decides_is_the_preselected_one() -> None:
    plan = plan_survey(example_survey(), margin=2)
    assert (plan.hardest.question, plan.hardest.level) == ("commute", "medium")
    assert {row.level for row in plan.expected} == {"medium"}
    assert len(plan.expected) == 6


def test_margins_of_a_mean_are_parts_of_its_range() -> None:
    plan = plan_survey(example_survey(), margin=2)
    row = next(row for row in plan.rows if (row.question, row.level) == ("sleep", "medium"))
    assert row.in_units(2) == "± 0.32"
    assert row.respondents(2) == row.respondents(2, worst=True)
    protocol: Any = example_survey().protocol("sleep", "medium")
    assert row.respondents(2) == protocol.respondents(0.32)


def test_a_mix_of_levels_has_the_mean_of_their_variances(survey: Survey) -> None:
    plan = plan_survey(survey, respondents=1000, mix={"low": 0.5, "medium": "0.5"})
    rows = {row.level: row for row in plan.rows if row.question == "color"}
    assert rows["as mixed"].usual == pytest.approx((rows["low"].usual + rows["medium"].usual) / 2)
    assert plan.hardest.level == "as mixed"


def test_people_who_do_not_answer_make_the_margin_wider(survey: Survey) -> None:
    plan = plan_survey(survey, respondents=1000, mix={"off": "1/4", "medium": "3/4"})
    rows = {row.level: row for row in plan.rows if row.question == "color"}
    assert rows["as mixed"].margin(1000) == pytest.approx(rows["medium"].margin(750))


def test_questions_with_levels_of_their_own_are_planned_without_the_mix() -> None:
    questions = (
        SurveyQuestion(id="a", kind="yes_no", text="?"),
        SurveyQuestion(id="b", kind="yes_no", text="?", levels={"own": 2}),
    )
    plan = plan_survey(
        Survey(id="s", title="t", collector="c", questions=questions), margin=1, mix={"low": 0.5, "high": 0.5}
    )
    assert [(row.question, row.level) for row in plan.expected] == [("a", "as mixed"), ("b", "own")]

    assert dict(plan.lacking) == {"b": ("low", "high")}
    assert plan.to_dict()["lacking"] == {"b": ["low", "high"]}


def test_the_hardest_question_is_the_one_whose_worst_answer_takes_the_most_people() -> None:
    questions = (
        SurveyQuestion(id="few", kind="single_choice", text="?", options=tuple("abcdef"), levels={"low": 4}),
        SurveyQuestion(id="coin", kind="yes_no", text="?", levels={"low": 3}),
    )
    plan = plan_survey(Survey(id="s", title="t", collector="c", questions=questions), margin=1)
    assert plan.hardest.question == "few"
    assert plan.hardest.respondents(1, worst=True) == 11875


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({}, "respondents=2000, or margin=2"),
        ({"respondents": 10, "margin": 2}, "respondents=2000, or margin=2"),
        ({"respondents": 0}, "at least 1"),
        ({"margin": 0}, "above 0"),
        ({"margin": 2, "mix": {"low": 0.5}}, "add up to 1"),
        ({"margin": 2, "mix": {"lwo": 1}}, 'Did you mean "low"'),
        ({"margin": 2, "mix": {"off": 1}}, "nobody answers"),
    ],
)
def test_plans_that_make_no_sense_are_refused(survey: Survey, options: dict[str, Any], words: str) -> None:
    with pytest.raises(ParameterError) as caught:
        plan_survey(survey, **options)
    assert words in str(caught.value)


def test_plans_are_json_ready(survey: Survey) -> None:
    by_margin = plan_survey(survey, margin=2).to_dict()
    assert by_margin["schema"] == "cloister.survey_plan/1"
    assert by_margin["rows"][1]["respondents"] == 11243
    by_people = plan_survey(survey, respondents=11243, mix={"high": 1}).to_dict()
    assert by_people["rows"][1]["margin"] == pytest.approx(2, abs=1e-3)
    assert by_people["mix"] == {"high": 1.0}
