from __future__ import annotations

import json
import math
from typing import Any

import numpy as np
import pytest
from scipy import special

from cloister.core.random import SystemRandomSource
from cloister.errors import TooFewReportsError
from cloister.local import (
    Collector,
    DirectEncoding,
    OptimizedUnaryEncoding,
    Pram,
    RandomizedResponse,
    Survey,
    SurveyQuestion,
)
from cloister.local.draws import law_of
from cloister.local.survey import SurveyResult, example_survey, simulate
from cloister.local.survey.kinds.rating import mean_rating
from cloister.local.survey.results import format_mean

SIGMAS = 6.2
"""A normal estimate is further off with a probability of 6e-10."""


def asked(**facts: Any) -> Survey:
    question = SurveyQuestion(**{"id": "q", "kind": "single_choice", "text": "?", "options": ("a", "b", "c")} | facts)
    return Survey(id="s", title="t", collector="c", questions=(question,))


def collected(survey: Survey, answers: dict[str, list[Any]]) -> SurveyResult:
    """The result of people who answer the only question at given levels."""
    collector = Collector(survey)
    (question,) = survey.questions
    for level, values in answers.items():
        for value in values:
            collector.add(survey.answer({question.id: value}, levels=level))
    return collector.estimate()


@pytest.mark.statistical
def test_estimates_of_all_kinds_come_near_the_truth() -> None:
    survey = example_survey()
    made = simulate(survey, respondents=6000, mix={"off": 0.1, "low": 0.5, "medium": 0.4})
    collector = Collector(survey)
    assert collector.add_lines(made.lines()).accepted == 6000
    result = collector.estimate()
    assert len(result.questions) == 6
    for one in result.questions:
        margins = one.margins()
        for name, raw in one.raw.items():
            assert abs(raw - made.truth[one.question.id][name]) <= SIGMAS / 1.96 * margins[name]


@pytest.mark.statistical
@pytest.mark.slow
def test_margins_are_as_wide_as_the_errors_are_large() -> None:
    survey = asked(kind="yes_no", options=())
    squares = 0.0
    for _ in range(150):
        made = simulate(survey, respondents=100, mix={"low": 0.4, "medium": 0.6})
        collector = Collector(survey)
        collector.add_lines(made.lines())
        one = collector.estimate()["q"]
        squares += ((one.raw["yes"] - made.truth["q"]["yes"]) / (one.margins()["yes"] / 1.959964)) ** 2
    assert is_chi_square(squares, degrees=150)
    assert not is_chi_square(squares / 4, degrees=150)
    assert not is_chi_square(squares * 4, degrees=150)


def is_chi_square(statistic: float, *, degrees: int) -> bool:
    """Whether a sum of squared standardized errors is not too small and not too large, with a false alarm of 1e-9."""
    return bool(special.chdtr(degrees, statistic) > 5e-10 and special.chdtrc(degrees, statistic) > 5e-10)


def test_levels_are_weighed_by_their_reports() -> None:
    result = collected(asked(kind="yes_no", options=()), {"low": ["yes"] * 30, "high": ["no"] * 10})["q"]
    parts = {level.name: level.estimate for level in result.levels if level.reports}
    expected = (30 * parts["low"].frequencies["yes"] + 10 * parts["high"].frequencies["yes"]) / 40
    assert result.raw["yes"] == pytest.approx(expected)
    variance = (parts["low"].standard_errors["yes"] ** 2 + parts["high"].standard_errors["yes"] ** 2) / 40**2
    assert result.margins()["yes"] == pytest.approx(1.959964 * math.sqrt(variance), rel=1e-6)


def test_the_wider_margin_adds_the_draw_of_respondents() -> None:
    result = collected(asked(), {"medium": ["a"] * 200})["q"]
    share = min(max(result.raw["a"], 0), 1)
    noise = result.margins()["a"] / 1.959964
    expected = 1.959964 * math.sqrt(noise**2 + share * (1 - share) / 200)
    assert result.wider()["a"] == pytest.approx(expected, rel=1e-6)


def test_mended_shares_are_possible() -> None:
    result = collected(asked(), {"high": ["a", "b", "c"] * 20})["q"]
    assert sum(result.mended.values()) == pytest.approx(1)
    assert min(result.mended.values()) >= 0


def test_intervals_lie_around_the_raw_shares() -> None:
    result = collected(asked(), {"medium": ["a", "b", "c"] * 20})["q"]
    for name, (low, high) in result.intervals(0.5).items():
        assert (low + high) / 2 == pytest.approx(result.raw[name])
        assert high - low == pytest.approx(2 * 0.6744898 * result.margins()[name] / 1.959964, rel=1e-6)


def test_picks_are_mended_one_by_one() -> None:
    survey = asked(kind="multiple_choice", most=3, levels={"weak": 20, "strong": 10})
    result = collected(survey, {"weak": [["a", "b", "c"]] * 100, "strong": [["a", "b"]] * 20})["q"]
    assert sum(result.mended.values()) > 2.5
    assert max(result.mended.values()) <= 1


def test_a_mean_of_one_report_has_the_widest_error() -> None:
    survey = asked(kind="number", options=(), bounds=(0, 10))
    alone = collected(survey, {"medium": [5]})["q"]
    protocol: Any = survey.protocol("q", "medium")
    assert alone.margins()["mean"] == pytest.approx(1.959964 * math.sqrt(protocol.spread()), rel=1e-6)
    assert 0 <= alone.mended["mean"] <= 10
    both = collected(survey, {"medium": [5], "low": [5] * 50})["q"]
    assert both.reports == 51
    assert both.wider() == both.margins()


def test_levels_that_differ_are_noticed() -> None:
    survey = asked(kind="yes_no", options=(), levels={"weak": 20, "strong": 19})
    apart = collected(survey, {"weak": ["yes"] * 200, "strong": ["no"] * 200})["q"]
    assert apart.difference is not None
    assert apart.difference < 1e-9
    assert collected(survey, {"weak": ["yes"] * 20})["q"].difference is None


@pytest.mark.statistical
@pytest.mark.parametrize("kind", ["direct", "unary", "near", "far"])
def test_mean_ratings_are_unbiased(kind: str) -> None:
    options = [1, 2, 3, 4, 5]
    protocol = {
        "direct": DirectEncoding(domain=options, epsilon=1),
        "unary": OptimizedUnaryEncoding(domain=options, epsilon=1),
        "near": Pram(domain=options, epsilon=1, kind="ordinal"),
        "far": Pram(domain=options, epsilon=1),
    }[kind]
    people = [1] * 2000 + [4] * 5000 + [5] * 3000
    found = mean_rating(protocol.randomize(people, random_state=SystemRandomSource()), options)
    assert found is not None
    assert abs(found.value - np.mean(people)) <= SIGMAS * found.standard_error
    shares = np.asarray(protocol.estimate(protocol.randomize(people)).frequencies)
    assert found.standard_error < 0.2
    assert shares @ options == pytest.approx(found.value, abs=2 * SIGMAS * found.standard_error)


def test_the_mean_rating_is_that_of_the_estimated_shares() -> None:
    for protocol in (DirectEncoding(domain=[1, 2, 3], epsilon=1), Pram(domain=[1, 2, 3], epsilon=1, kind="ordinal")):
        reports = protocol.randomize([1, 2, 3, 3] * 100)
        shares = np.asarray(protocol.estimate(reports).frequencies)
        found = mean_rating(reports, (1, 2, 3))
        assert found is not None
        assert found.value == pytest.approx(float(shares @ [1, 2, 3]))


@pytest.mark.parametrize("kind", [DirectEncoding, OptimizedUnaryEncoding, Pram])
def test_equal_reports_are_no_certainty(kind: Any) -> None:
    protocol = kind(domain=[1, 2, 3], epsilon=1)
    reports = protocol.randomize([1, 1])
    found = mean_rating(reports[:1] + reports[:1], (1, 2, 3))
    assert found is not None
    assert found.standard_error > 0.5


@pytest.mark.parametrize("value", [1, 2, 3])
@pytest.mark.parametrize("kind", [DirectEncoding, OptimizedUnaryEncoding, Pram])
def test_readings_have_the_expectation_and_at_least_the_variance_that_is_stated(kind: Any, value: int) -> None:
    protocol = kind(domain=[1, 2, 3], epsilon=1)
    law = law_of(lambda draws: protocol.perturb(np.array([value - 1]), draws).tobytes())
    rows = np.frombuffer(b"".join(law), protocol.output_space.dtype)
    readings, least = protocol.score_readings(rows, np.array([1.0, 2.0, 3.0]))
    chances = np.array([float(chance) for chance in law.values()])
    assert chances @ readings == pytest.approx(value, abs=1e-9)
    assert chances @ readings**2 - value**2 >= least - 1e-9


def test_words_have_no_mean() -> None:
    reports = DirectEncoding(domain=["bad", "good"], epsilon=1).randomize(["bad", "good"] * 10)
    assert mean_rating(reports, ("bad", "good")) is None
    assert mean_rating(RandomizedResponse(domain=[1, 2], epsilon=1).randomize([1, 2]), (1, 2)) is None


def test_ratings_carry_their_mean() -> None:
    result = collected(asked(kind="rating", options=(1, 2, 3)), {"low": [3] * 40, "medium": [1] * 20})["q"]
    assert result.mean is not None
    assert result.mean.reports == 60
    assert collected(asked(kind="rating", options=("bad", "good")), {"low": ["bad"] * 40})["q"].mean is None


def test_a_margin_of_half_of_what_is_possible_says_nothing() -> None:
    few = collected(asked(kind="number", options=(), bounds=(0, 10)), {"medium": [3.0]})["q"]
    many = collected(asked(kind="number", options=(), bounds=(0, 10)), {"low": [3.0] * 300})["q"]
    assert few.margins()["mean"] > 5 > many.margins()["mean"]
    assert (few.telling(), many.telling()) == ({"mean": False}, {"mean": True})
    assert few.estimated() == {"mean": "too few reports to say anything"}
    assert many.estimated()["mean"] == many.parts(many.mended["mean"], many.margins()["mean"])[0]


def test_the_mean_of_too_few_ratings_is_not_told() -> None:
    few = collected(asked(kind="rating", options=(1, 2, 3)), {"medium": [3, 1]})["q"]
    assert few.mean is not None
    assert format_mean(few.mean).startswith("too few reports to say anything (± ")


def test_unanswered_questions_are_named(survey: Survey) -> None:
    collector = Collector(survey)
    collector.add(survey.answer({"color": "red"}))
    result = collector.estimate()
    assert result.unanswered == ("married", "ways", "age", "stars")
    with pytest.raises(TooFewReportsError, match="Nobody answered"):
        result["age"]
    assert result["color"].off == 0


def test_results_are_json_ready_and_print(survey: Survey, answers: dict[str, Any]) -> None:
    collector = Collector(survey)
    for level in ("low", "medium", "high"):
        collector.add(survey.answer(answers, levels=level, day="2026-05-04"))
    result = collector.estimate()
    told = json.loads(json.dumps(result.to_dict()))
    assert told["schema"] == "cloister.survey_result/1"
    assert told["days"] == {"2026-05-04": 3}
    assert [one["question"] for one in told["questions"]] == ["married", "color", "ways", "age", "stars"]
    assert {"value", "raw", "margin", "wider_margin", "mended"} == set(told["questions"][0]["values"][0])
    assert told["questions"][0]["levels"][0]["shuffled"] is None
    assert str(result) == "A small survey: 3 submissions, 5 questions answered"
    assert dict(result.summary())["submissions"] == "3"
    assert "people who answered" in dict(result["color"].summary())
    assert "color" in str(result["color"])


def test_shuffled_reports_are_priced_where_the_bound_is_proven() -> None:
    survey = asked(kind="yes_no", options=())
    collector = Collector(survey)
    collector.add_lines(simulate(survey, respondents=3000).lines())
    level = next(level for level in collector.estimate()["q"].levels if level.name == "medium")
    assert level.shuffled is not None
    assert 0 < level.shuffled.epsilon < 1
