from __future__ import annotations

from fractions import Fraction
from typing import Any

import pytest

from cloister.errors import CloisterError, OutsideDomainError, ParameterError, UnsafeMechanismError
from cloister.local.survey import SurveyLevel, SurveyQuestion
from cloister.local.survey.levels import DEFAULT_LEVELS, middle_level, read_levels


def question(**facts: Any) -> SurveyQuestion:
    return SurveyQuestion(**{"id": "q", "kind": "single_choice", "text": "Which?", "options": ("a", "b", "c")} | facts)


@pytest.mark.parametrize("kind", ["text", "free_text", "open", "comment"])
def test_free_text_is_refused_with_a_reason(kind: str) -> None:
    with pytest.raises(UnsafeMechanismError, match="no noise can hide words") as caught:
        question(kind=kind)
    assert "declared options" in caught.value.fix


@pytest.mark.parametrize("name", ["forced_yes", "forced_response"])
def test_a_forced_yes_is_refused_with_a_reason(name: str) -> None:
    with pytest.raises(UnsafeMechanismError, match='a "no" is then certainly the truth'):
        question(kind="yes_no", options=(), protocol=name)


@pytest.mark.parametrize(
    "coins", [{"truth": 0.5, "second": 1}, {"truth": 0.5, "second": 0}, {"truth": 1, "second": 0.5}]
)
def test_coins_that_prove_the_truth_are_refused(coins: dict[str, float]) -> None:
    with pytest.raises(UnsafeMechanismError, match="infinite"):
        question(kind="yes_no", options=(), coins=coins)


def test_fair_coins_have_their_epsilon() -> None:
    made = question(kind="yes_no", options=(), coins={"truth": 0.5, "second": 0.5})
    assert float(made.coin_epsilon) == pytest.approx(1.0986122886681098, abs=1e-12)


@pytest.mark.parametrize(
    ("facts", "words"),
    [
        ({"kind": "singel_choice"}, 'Did you mean "single_choice"'),
        ({"options": ()}, "options: "),
        ({"options": ("a",)}, "from 2 to"),
        ({"options": ("a", "a")}, "once"),
        ({"options": ("a", None)}, "missing"),
        ({"text": ""}, "text"),
        ({"text": "x" * 2000}, "text"),
        ({"id": "What?"}, "small letters"),
        ({"most": 2}, "has no most"),
        ({"bounds": (0, 1)}, "has no bounds"),
        ({"kind": "multiple_choice"}, "most: 3"),
        ({"kind": "multiple_choice", "most": 4}, "most: 3 or less"),
        ({"kind": "yes_no"}, "two options"),
        ({"kind": "yes_no", "options": (), "coins": (0.5,)}, "coins: {truth"),
        ({"kind": "yes_no", "options": (), "coins": (0.5, 0.5), "levels": {"low": 1}}, "only level"),
        ({"kind": "number", "options": ()}, "bounds: [0, 120]"),
        ({"kind": "number", "options": (), "bounds": (5, 1)}, "bounds"),
        ({"kind": "number", "options": (), "bounds": (0, 10), "bins": (0, 10)}, "rising edges"),
        ({"kind": "number", "options": (), "bounds": (0, 10), "bins": (0, 7, 5, 10)}, "rising edges"),
        ({"kind": "number", "options": (), "bounds": (0, 10), "bins": (0, 2.5, 10), "whole": True}, "whole edges"),
        ({"kind": "number", "options": (), "bounds": (0, 10), "bins": "ten"}, "list of edges"),
        ({"kind": "number", "options": (), "bounds": (0, 10), "whole": "yes"}, "true or false"),
        ({"levels": {}}, "levels"),
        ({"levels": {"off": None}}, "levels"),
        ({"levels": {"off": 1}}, "no epsilon"),
        ({"levels": {"low": None}}, "no epsilon"),
        ({"levels": {"low": 0}}, "epsilon"),
        ({"levels": {"low": 50}}, "epsilon"),
        ({"levels": {"so so": 1}}, "small letters"),
        ({"levels": {f"l{n}": 1 for n in range(9)}}, "up to 8"),
        ({"levels": [1, 2]}, "not a mapping"),
        ({"protocol": 7}, "not a name"),
        ({"pretend": {"d": 1}}, "pretend"),
        ({"pretend": {"a": -1}}, "negative"),
        ({"kind": "number", "options": (), "bounds": (0, 10), "pretend": {"mean": 3}}, "mean and a spread"),
    ],
)
def test_what_is_wrong_with_a_question_is_said(facts: dict[str, Any], words: str) -> None:
    with pytest.raises(CloisterError) as caught:
        question(**facts)
    assert words in str(caught.value)


@pytest.mark.parametrize(
    ("facts", "problem", "fix"),
    [
        ({"kind": "number", "options": (), "bounds": (5, 1)}, "reversed", "bounds: [1, 5]"),
        ({"kind": "number", "options": (), "bounds": (5, 5)}, "empty", "such as [0, 110]"),
        ({"kind": "number", "options": (), "bounds": (5,)}, "pair", "bounds: [0, 110]"),
        ({"kind": "number", "options": (), "bounds": (0, 9), "bins": 1}, "at least 2", "bins: 2"),
        ({"kind": "multiple_choice", "most": 0}, "at least 1", "most: 1"),
        ({"options": "a, b"}, "options are not a list", "options: [first, second]"),
        ({"options": ("a", "a")}, "options are empty or repeat", "every option once"),
        ({"levels": {"low": 400}}, 'level "low"', "low: 1"),
        ({"levels": {"medium": "one"}}, 'level "medium"', "medium: 1"),
        ({"levels": {"So so": 1}}, '"So so"', "up to 64"),
    ],
)
def test_what_is_wrong_is_named_and_mended_in_the_words_of_the_file(
    facts: dict[str, Any], problem: str, fix: str
) -> None:
    with pytest.raises(CloisterError) as caught:
        question(**facts)
    assert caught.value.problem.startswith('Question "q": ')
    assert problem in caught.value.problem
    assert fix in caught.value.fix
    assert "=" not in caught.value.fix


def test_bins_hold_their_lower_edge_and_the_last_one_both() -> None:
    ages = question(kind="number", options=(), bounds=(0, 99), whole=True, bins=(0, 18, 65, 99))
    assert ages.bin_labels == ("0 to 17", "18 to 64", "65 to 99")
    found = ages.encode_answers([-5, 0, 17, 18, 64.5, 65, 99, 1000])
    assert found == ["0 to 17"] * 3 + ["18 to 64"] * 2 + ["65 to 99"] * 3
    assert ages.encode_answers(18) == "18 to 64"
    real = question(kind="number", options=(), bounds=(0, 1), bins=(0, Fraction(1, 3), "0.5", 1))
    assert real.bin_labels == ("0 to under 1/3", "1/3 to under 0.5", "0.5 to 1")


def test_bins_may_be_a_number_of_equal_ones() -> None:
    made = question(kind="number", options=(), bounds=(0, 10), whole=True, bins=5)
    assert made.bins == (0, 2, 4, 6, 8, 10)


@pytest.mark.parametrize("answer", ["forty", None, float("nan"), True])
def test_what_is_no_number_is_refused_and_not_repeated(answer: object) -> None:
    ages = question(kind="number", options=(), bounds=(0, 99), bins=(0, 18, 99))
    with pytest.raises(OutsideDomainError) as caught:
        ages.encode_answers(answer)
    assert "forty" not in str(caught.value)


def test_default_levels() -> None:
    assert {level.name: level.epsilon for level in DEFAULT_LEVELS} == {
        "off": None,
        "low": 4,
        "medium": 1,
        "high": Fraction(1, 4),
    }
    assert middle_level(DEFAULT_LEVELS).name == "medium"


def test_the_middle_of_two_levels_is_the_more_private_one() -> None:
    assert middle_level(read_levels({"a": 2, "b": 1})).name == "b"


def test_a_level_costs_its_epsilon_and_off_nothing() -> None:
    assert SurveyLevel("off", None).loss == 0
    assert SurveyLevel("low", "1/3").loss == Fraction(1, 3)  # type: ignore[arg-type]  # text is read


def test_repeated_levels_are_refused() -> None:
    with pytest.raises(ParameterError, match="repeat"):
        read_levels((SurveyLevel("low", Fraction(1)), SurveyLevel("low", Fraction(2))))
