from __future__ import annotations

import json
import math
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from numpy.typing import NDArray

from cloister.core.guarantees import LocalDP
from cloister.core.random import SeededRandomSource
from cloister.errors import (
    ForeignReportError,
    MalformedReportError,
    OutsideDomainError,
    ParameterError,
    ParameterTypeError,
    TooFewReportsError,
)
from cloister.local import (
    LEVELS,
    DirectEncoding,
    Duchi,
    LeveledQuestion,
    MeanEstimate,
    OptimizedUnaryEncoding,
    PrivacyLevels,
    RandomizedResponse,
    SquareWave,
    SummationHistogramEncoding,
)
from cloister.local.collection.levels import LEVEL_IS_VISIBLE
from cloister.local.collection.stratification import combine, combine_pooled, combine_stratified, heterogeneity
from cloister.local.reports import Reports
from cloister.testing.samplers import uniform
from tests.local.collection.spread import assert_scatters

DOMAIN = ["no", "perhaps", "yes"]


def test_the_default_levels_are_those_of_the_specification() -> None:
    assert LEVELS.epsilons == {"off": None, "low": 4, "medium": 1, "high": Fraction(1, 4)}
    question = LeveledQuestion(DOMAIN)
    assert {level: protocol.epsilon for level, protocol in question.protocols.items()} == {
        "low": 4,
        "medium": 1,
        "high": Fraction(1, 4),
    }
    assert repr(question) == "LeveledQuestion(low 4, medium 1, high 0.25)"


def test_a_persons_total_is_the_sum_or_the_largest_under_sampling() -> None:
    chosen = {"age": "low", "income": "high", "health": "off", "vote": "medium"}
    assert LEVELS.total(chosen) == Fraction(21, 4)
    assert LEVELS.total(chosen, method="sample_one") == 4
    assert LEVELS.total({}) == LEVELS.total({}, method="sample_one") == LEVELS.total({"age": "off"}) == 0
    for bad in ({"age": "lwo"}, {"age": None}):
        with pytest.raises(ParameterError, match="off, low, medium, high"):
            LEVELS.total(bad)  # type: ignore[arg-type]


def test_levels_are_debiased_by_themselves_and_weighted_by_their_people() -> None:
    """People who say yes choose the stronger level; the stratified estimate stands that, the pooled one does not."""
    question = LeveledQuestion(DOMAIN, levels={"off": None, "low": 4, "high": 1}, protocol=DirectEncoding)
    values = ["no"] * 60_000 + ["yes"] * 40_000
    levels = ["low"] * 60_000 + ["high"] * 40_000
    estimate = question.estimate(question.randomize(values, levels=levels))
    shares, errors = estimate.stratified.frequencies, estimate.stratified.frequency_errors
    assert abs(shares["yes"] - 0.4) < 6.2 * errors["yes"]
    assert abs(estimate.pooled.frequencies["yes"] - 0.4) > 0.2
    assert estimate.heterogeneity is not None
    assert estimate.heterogeneity.p_value < 1e-9
    assert {level: each.reports for level, each in estimate.strata.items()} == {"low": 60_000, "high": 40_000}


def shares_of(protocol: RandomizedResponse, answers: NDArray[np.bool_]) -> NDArray[np.float64]:
    """The estimated share of yes in each row of answers."""
    p, q = map(float, protocol.probabilities)
    told = protocol.randomize(answers.ravel()).payload["y"].reshape(answers.shape)
    return np.asarray((told.mean(axis=1) - q) / (p - q))


ROUNDS = 12_000
SIZES = {"low": 80, "high": 40}
ASKED = {"low": RandomizedResponse(epsilon=3), "high": RandomizedResponse(epsilon=2)}


@pytest.mark.statistical
def test_the_stratified_estimate_scatters_around_the_respondents_whatever_their_level_says() -> None:
    truth = {"low": 20, "high": 30}
    answers = {level: np.arange(size) < truth[level] for level, size in SIZES.items()}
    shares = [shares_of(ASKED[level], np.tile(answers[level], (ROUNDS, 1))) for level in SIZES]
    noise = [ASKED[level].variance(truth[level] / size) / size for level, size in SIZES.items()]
    spread = np.repeat(np.array(noise)[:, None], ROUNDS, axis=1)
    found = combine_stratified(shares, spread, sizes=list(SIZES.values()))
    assert_scatters(found.value - 50 / 120, math.sqrt(found.variance[0]))
    assert abs(combine_pooled(shares, spread).value.mean() - 50 / 120) > 0.05


@pytest.mark.statistical
def test_the_pooled_estimate_scatters_less_around_a_population_that_chooses_levels_blindly() -> None:
    shares = [shares_of(ASKED[level], uniform((ROUNDS, size)) < 0.3) for level, size in SIZES.items()]
    spread = [(ASKED[level].variance(0.3) + 0.3 * 0.7) / size for level, size in SIZES.items()]
    variances = np.repeat(np.array(spread)[:, None], ROUNDS, axis=1)
    found, other = combine_pooled(shares, variances), combine_stratified(shares, variances, sizes=list(SIZES.values()))
    assert_scatters(found.value - 0.3, math.sqrt(found.variance[0]))
    assert found.variance[0] < other.variance[0]


def test_the_pooled_error_does_not_shrink_with_a_stratified_share_below_zero() -> None:
    """A tenth says yes; 2 reports at a strict level pull the stratified share below 0, where errors are smallest."""
    question = LeveledQuestion(["a", "b", "c"], levels={"low": 6, "high": "1/100"}, protocol=DirectEncoding)
    clear, vague = question.at("low"), question.at("high")
    told = [clear.output_space.rows(y=np.array([0] * 10 + [1] * 90)), vague.output_space.rows(y=np.array([1, 1]))]
    strata = {
        level: protocol.estimate(Reports(protocol, rows))
        for level, protocol, rows in zip(("low", "high"), (clear, vague), told, strict=True)
    }
    found = combine(strata, protocols={"low": clear, "high": vague}, guarantee=LocalDP(epsilon=6))
    assert found.stratified.raw_counts[0] < 0  # type: ignore[union-attr]
    honest = np.sqrt((clear.variance(0.1) + 0.09) / 100)  # type: ignore[attr-defined]
    assert found.pooled.raw_errors[0] / 102 == pytest.approx(honest, rel=0.05)  # type: ignore[union-attr]


@pytest.mark.parametrize("kind", [DirectEncoding, OptimizedUnaryEncoding, SummationHistogramEncoding])
def test_estimates_combine_their_strata_as_the_formulas_say(kind: Any) -> None:
    question = LeveledQuestion(DOMAIN, levels={"low": 3, "high": 1}, protocol=kind)
    found = question.estimate(question.randomize(DOMAIN * 100, levels=["low", "high", "low", "low"] * 75))
    shares = [each.raw_counts / each.reports for each in found.strata.values()]  # type: ignore[union-attr]
    noise = [(each.raw_errors / each.reports) ** 2 for each in found.strata.values()]  # type: ignore[union-attr]
    sizes = [each.reports for each in found.strata.values()]
    expected = combine_stratified(shares, noise, sizes=sizes)
    assert sizes == [225, 75]
    assert found.stratified.raw_counts == pytest.approx(300 * expected.value)  # type: ignore[union-attr]
    assert found.stratified.raw_errors == pytest.approx(300 * np.sqrt(expected.variance))  # type: ignore[union-attr]

    def spread_at(common: Any) -> Any:  # an array: levels by values
        return np.array(
            [
                [(question.at(level).variance(share) + share * (1 - share)) / size for share in np.clip(common, 0, 1)]  # type: ignore[attr-defined]
                for level, size in zip(("low", "high"), sizes, strict=True)
            ]
        )

    spread = spread_at(expected.value)
    together = combine_pooled(shares, spread)
    variance = ((together.variance / spread) ** 2 * spread_at(together.value)).sum(axis=0)
    assert found.pooled.raw_counts == pytest.approx(300 * together.value)  # type: ignore[union-attr]
    assert found.pooled.raw_errors == pytest.approx(300 * np.sqrt(variance))  # type: ignore[union-attr]
    test = heterogeneity(shares, spread)
    assert test is not None
    assert found.heterogeneity is not None
    assert found.heterogeneity.to_dict() == pytest.approx(test.to_dict())


def test_no_answer_is_counted_and_not_looked_at() -> None:
    question = LeveledQuestion(DOMAIN)
    for values in (["no", None, "yes"] * 20, pd.Series(["no", None, "yes"] * 20), pa.array(["no", None, "yes"] * 20)):
        reports = question.randomize(values, levels=["low", "off", "high"] * 20)
        assert len(reports) == 60
        estimate = question.estimate(reports)
        assert (estimate.answered, estimate.skipped) == (40, 20)
    with pytest.raises(OutsideDomainError):
        question.randomize(["no", None], levels=["low", "low"])
    with pytest.raises(TooFewReportsError, match="collect more"):
        question.estimate(question.randomize([None, None], levels="off"))


def test_one_person_and_one_level_for_all() -> None:
    question = LeveledQuestion(DOMAIN)
    assert repr(question.randomize("no", levels="low")) == "LeveledReports(low 1)"
    assert repr(question.randomize(None, levels="off")) == "LeveledReports(off 1)"
    assert len(question.randomize(["no", "yes"], levels="high").parts["high"]) == 2
    assert len(LeveledQuestion(3).randomize(np.array([0, 2]), levels=np.array(["low", "off"]))) == 2
    assert len(LeveledQuestion([0.5, 1.5]).randomize([0.5, None], levels=["low", "off"])) == 2


def test_every_form_gives_the_same_estimate() -> None:
    question = LeveledQuestion(DOMAIN)
    values, levels = DOMAIN * 40, ["low", "medium", "high", "off"] * 30
    first, second = (question.randomize(values, levels=levels) for _ in range(2))
    both = first + second
    expected = question.estimate(both).to_dict()
    assert json.loads(json.dumps(expected)) == expected
    for form in ([first, second], both.to_dicts(), both.to_json_lines(), both.to_json_lines().splitlines()):
        assert question.estimate(form).to_dict() == expected
    assert {report["level"] for report in both.to_dicts()} == {"low", "medium", "high", "off"}


def test_reports_must_be_of_the_protocol_of_their_level() -> None:
    question = LeveledQuestion(DOMAIN)
    low = question.randomize("no", levels="low").to_dicts()[0]
    with pytest.raises(ForeignReportError, match="by themselves"):
        question.estimate([{**low, "level": "high"}])
    other = LeveledQuestion(["no", "yes", "perhaps"])
    for foreign in (other.randomize("no", levels="low"), other.randomize("no", levels="low").to_dicts()):
        with pytest.raises(ForeignReportError):
            question.estimate(foreign)
    with pytest.raises(ForeignReportError):
        question.randomize("no", levels="low") + other.randomize("no", levels="low")
    wrong: list[Any] = [{**low, "level": "lwo"}, {**low, "level": ["low"]}, {**low, "level": "off"}, {}, 7, None, "{"]
    for bad in wrong:
        with pytest.raises(MalformedReportError):
            question.estimate([bad])
    with pytest.raises(ParameterTypeError, match="randomize returned"):
        question.estimate(7)


def test_bad_levels_are_refused() -> None:
    question = LeveledQuestion(DOMAIN)
    for levels in (["lwo", "low"], [None, "low"]):
        with pytest.raises(ParameterError, match="use one of off, low, medium, high"):
            question.randomize(["no", "yes"], levels=levels)
    with pytest.raises(ParameterError, match="one level for each"):
        question.randomize(["no", "yes"], levels=["low"])
    with pytest.raises(ParameterError, match="low, medium, high"):
        question.at("off")
    for bad in (None, ["low"], {1: 2}):
        with pytest.raises(ParameterTypeError, match='"off": None'):
            PrivacyLevels(bad)
    for empty in ({}, {"off": None}):
        with pytest.raises(ParameterError, match='"off": None'):
            PrivacyLevels(empty)
    for epsilon in (0, -1, 21, math.inf):
        with pytest.raises(ParameterError):
            PrivacyLevels({"low": epsilon})


def test_the_promise_warns_that_the_level_shows() -> None:
    question = LeveledQuestion(DOMAIN)
    estimate = question.estimate(question.randomize(DOMAIN * 30, levels=["medium", "high", "off"] * 30))
    assert LEVEL_IS_VISIBLE in estimate.guarantee.caveats
    assert estimate.guarantee.holds
    assert estimate.guarantee.brief() == "epsilon = 1 per report"
    rows = dict(estimate.summary())
    assert "the chosen level is visible" in rows["promise"]
    assert rows["levels"] == "medium 30, high 30, no answer 30"
    assert "pooled" in rows["yes"]
    assert "p = " in rows["do levels differ?"]
    assert "stratified over 2 levels; 30 gave no answer" in str(estimate)
    assert estimate.plot().to_dict()
    seeded = question.randomize(DOMAIN, levels="low", random_state=SeededRandomSource(1))
    assert not question.estimate(seeded).guarantee.holds
    assert dict(question.estimate(seeded).summary())["do levels differ?"] == "only one level was chosen"


def test_means_are_combined_like_shares() -> None:
    """LDP-16, on estimates of a mean."""
    protocols = LeveledQuestion(DOMAIN).protocols
    promise = LocalDP(epsilon=4)
    strata = {
        level: MeanEstimate(
            value=value,
            standard_error=math.sqrt(variance),
            reports=reports,
            bounds=(0.0, 1.0),
            protocol="piecewise",
            guarantee=promise,
        )
        for level, value, variance, reports in (("medium", 0.30, 0.0039, 1000), ("low", 0.20, 0.0002, 3000))
    }
    found = combine(strata, protocols=protocols, guarantee=promise)
    assert found.stratified.value == pytest.approx(0.225)  # type: ignore[union-attr]
    assert found.pooled.value == pytest.approx(0.20488, abs=5e-6)  # type: ignore[union-attr]
    assert found.answered == 4000
    assert found.heterogeneity is not None
    assert found.heterogeneity.statistic == pytest.approx(0.01 / 0.0041)
    assert dict(found.summary())["mean"].startswith("0.225 ± ")
    assert found.plot().to_dict()
    assert found.to_dict()["pooled"]["value"] == found.pooled.value  # type: ignore[union-attr]


def test_distributions_of_different_levels_are_left_apart() -> None:
    question = LeveledQuestion(lambda epsilon: SquareWave(bounds=(0, 1), epsilon=epsilon))
    reports = question.randomize([0.1, 0.7] * 50, levels=["low", "high"] * 50)
    with pytest.raises(ParameterTypeError, match="by itself"):
        question.estimate(reports)
    assert question.at("low").estimate(question.read(reports).parts["low"]).reports == 50


def test_masked_values_are_missing_unless_nothing_is_answered() -> None:
    question, values = LeveledQuestion(DOMAIN), np.ma.masked_array(["no", "yes"], mask=[False, True])
    with pytest.raises(OutsideDomainError, match="no answer"):
        question.randomize(values, levels="low")
    assert len(question.randomize(values, levels=["low", "off"])) == 2
    numbers = LeveledQuestion(lambda *, epsilon: Duchi(bounds=(0, 1), epsilon=epsilon))
    with pytest.raises(OutsideDomainError, match="missing"):
        numbers.randomize(np.ma.masked_array([0.5, 1.0], mask=[True, False]), levels="low")
