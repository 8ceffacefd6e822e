from __future__ import annotations

import json
import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from cloister.attacks import AttackResult, AuditDetails, audit_dp
from cloister.errors import ParameterError, ParameterTypeError, PrivacyRefutedError
from cloister.mechanisms import DiscreteLaplace, Select
from cloister.testing import discrete_laplace_bounds, samplers
from cloister.testing.neighbors import removals
from cloister.testing.zoo.queries import TABLE, func1, func2, func3, func4

SURE = 1 - 1e-9
FULL, LESS = {"north": 5, "south": 1}, {"north": 5, "south": 0}


def noise(scale: float = 1.0) -> float:
    return float(samplers.laplace(scale, 1)[0])


def two_coins(answer: str) -> dict[str, Fraction]:
    return {answer: Fraction(3, 4), "no" if answer == "yes" else "yes": Fraction(1, 4)}


class Law:
    """A mechanism that knows its distribution."""

    def distribution(self, answer: str) -> dict[str, Fraction]:
        return two_coins(answer)


# exact ----------------------------------------------------------------------------------------------------------------


def test_rational_probabilities_are_audited_exactly() -> None:
    result = audit_dp(two_coins, ("yes", "no"), epsilon="1.1")
    result.verify()
    assert (result.mode, result.outcome) == ("exact", "holds")
    assert result.tight_epsilon == pytest.approx(math.log(3))
    assert result.success == result.interval[0] == result.interval[1] == 0.75
    assert result.limit == pytest.approx(0.75026, abs=1e-5)
    assert "Private as claimed on the 1 pairs" in result.verdict


@pytest.mark.parametrize("mechanism", [Law(), two_coins])
def test_a_refuted_claim_comes_with_a_counterexample(mechanism: Any) -> None:
    result = audit_dp(mechanism, ("yes", "no"), epsilon=1)
    assert result.refuted
    found = result.counterexample
    assert found is not None
    assert (found.probability, found.neighbor_probability) == (Fraction(3, 4), Fraction(1, 4))
    assert found.outputs == (found.dataset,)
    with pytest.raises(PrivacyRefutedError, match=r"claim epsilon >= 1\.099"):
        result.verify()
    assert "correct the sensitivity" in dict(result.summary())["what helps"]


@pytest.mark.parametrize(("function", "epsilon", "tight"), [(func1, 0, 0), (func2, 5, math.inf), (func3, 5, math.inf)])
def test_the_canonical_functions(function: Callable[[Any], Any], epsilon: int, tight: float) -> None:
    result = audit_dp(function, list(removals(TABLE)), epsilon=epsilon, mode="exact")
    assert result.tight_epsilon == tight
    assert result.refuted == (tight > epsilon)
    assert ("no finite epsilon" in result.verdict) == (tight == math.inf)


def test_a_noisy_count_is_private_at_its_epsilon_and_not_below() -> None:
    assert audit_dp(func4, list(removals(TABLE)), epsilon=1).outcome == "holds"
    assert audit_dp(func4, list(removals(TABLE)), epsilon="0.999").refuted


def test_the_hockey_stick_curve_falls_to_zero_at_the_tight_epsilon() -> None:
    curve = audit_dp(two_coins, ("yes", "no"), epsilon=1).curve
    deltas = [delta for _, delta in curve]
    assert curve[0] == (0, 0.5)
    assert deltas == sorted(deltas, reverse=True)
    assert curve[-1][0] == pytest.approx(math.log(3))
    assert deltas[-1] == pytest.approx(0, abs=1e-12)


def test_bounds_that_are_too_wide_are_undecided_and_do_not_pass() -> None:
    def law(bit: int) -> dict[int, Any]:
        return {bit: (Fraction(1, 2), Fraction(4, 5)), 1 - bit: (Fraction(1, 5), Fraction(1, 2))}

    result = audit_dp(law, (0, 1), epsilon=1)
    assert result.outcome == "undecided"
    assert "Undecided" in result.verdict
    with pytest.raises(PrivacyRefutedError, match="certified bounds"):
        result.verify()


def test_exact_json_is_complete_and_quotes_no_data() -> None:
    found = audit_dp(func3, list(removals(TABLE)), epsilon=1, mode="exact").to_dict()
    text = json.dumps(found, allow_nan=False)
    assert found["schema"] == "cloister.dp_audit/1"
    assert found["tight_epsilon"] == "inf"
    assert "Frank" not in text


def test_errors_quote_neither_datasets_nor_outputs() -> None:
    result = audit_dp(func3, list(removals(TABLE)), epsilon=1, mode="exact")
    with pytest.raises(PrivacyRefutedError) as caught:
        result.verify()
    assert "Frank" not in str(caught.value)
    assert "Frank" not in repr(result)


@pytest.mark.parametrize("law", [lambda _: {"a": 1}, lambda _: {"a": 0.25, "b": 0.75}])
def test_shares_are_not_taken_for_probabilities_without_asking(law: Any) -> None:
    with pytest.raises(ParameterError, match='mode="exact" if they are probabilities'):
        audit_dp(law, (0, 1), epsilon=1)
    assert audit_dp(law, (0, 1), epsilon=1, mode="exact").outcome == "holds"
    assert audit_dp(law, (0, 1), epsilon=1, mode="statistical", samples=100).outcome == "not refuted"


def test_noisy_shares_are_seen_to_be_outputs() -> None:
    def shares(_: int) -> dict[str, float]:
        share = float(samplers.uniform(1)[0])
        return {"a": share, "b": 1 - share}

    assert audit_dp(shares, (0, 1), epsilon=1, samples=500, confidence=SURE).mode == "statistical"


@pytest.mark.parametrize("mechanism", [lambda _: 5, 5, DiscreteLaplace(sensitivity=1, epsilon=1)])
def test_an_exact_audit_needs_probabilities(mechanism: Any) -> None:
    with pytest.raises(ParameterTypeError, match=r"return \{output: probability"):
        audit_dp(mechanism, (0, 1), epsilon=1, mode="exact")


# statistical ----------------------------------------------------------------------------------------------------------


@pytest.mark.statistical
def test_a_mechanism_is_audited_by_its_releases() -> None:
    result = audit_dp(DiscreteLaplace(sensitivity=1, epsilon=1), (5, 6), epsilon=1, confidence=SURE)
    result.verify()
    assert (result.mode, result.outcome) == ("statistical", "not refuted")
    assert 0.5 < result.epsilon_lower <= 1
    assert result.success < result.limit + 0.05
    assert result.curve == ()
    assert result.counterexample is None
    assert "That is no proof" in result.verdict
    assert "is not refuted: the outputs show at least" in str(result)


@pytest.mark.statistical
def test_half_the_noise_is_refuted_with_a_few_thousand_samples() -> None:
    result = audit_dp(DiscreteLaplace(sensitivity=1, epsilon=2), (5, 6), epsilon=1, samples=3_000)
    assert result.refuted
    found = result.counterexample
    assert found is not None
    assert found.probability > math.e * found.neighbor_probability
    assert "99.9% confidence" in result.verdict
    with pytest.raises(PrivacyRefutedError, match="counterexample says where"):
        result.verify()


@pytest.mark.statistical
def test_a_choice_of_words_is_audited() -> None:
    for scores, refuted in (([3, 4], False), ([0, 9], True)):
        neighbor = scores[::-1] if refuted else [4, 3]
        choice = Select(candidates=("a", "b"), score_sensitivity=1, epsilon=1)
        assert audit_dp(choice, (scores, neighbor), epsilon=1, samples=1_000, confidence=SURE).refuted == refuted


@pytest.mark.statistical
def test_many_outputs_at_once() -> None:
    def counts(answer: int, size: int) -> Any:
        return answer + samplers.discrete_laplace(1, size)

    result = audit_dp(counts, [(0, 1), (1, 2)], epsilon=1, delta=0.01, confidence=SURE)
    assert not result.refuted
    assert (result.trials, result.pairs) == (50_000, 2)
    assert "delta = 0.01" in result.verdict
    assert audit_dp(counts, (0, 3), epsilon=1).refuted


def grouped(rows: dict[str, int], *, scale: float = 1.0, only_present: bool = False, ranked: bool = False) -> Any:
    names = sorted(rows, key=rows.__getitem__) if ranked else list(rows)
    return [{"region": name, "n": rows[name] + noise(scale)} for name in names if rows[name] or not only_present]


@pytest.mark.statistical
def test_groups_with_public_keys_pass() -> None:
    audit_dp(grouped, (FULL, LESS), epsilon=1, samples=2_000, confidence=SURE).verify()


@pytest.mark.statistical
def test_groups_that_appear_only_with_somebody_in_them_are_refuted() -> None:
    result = audit_dp(
        lambda rows: grouped(rows, only_present=True), (FULL, LESS), epsilon=1, samples=1_000, confidence=SURE
    )
    assert result.refuted
    assert result.counterexample is not None
    assert "keys of output" in result.counterexample.outputs[0]


@pytest.mark.statistical
def test_groups_in_the_order_of_their_true_counts_are_refuted() -> None:
    pair = ({"north": 5, "south": 5, "west": 6}, {"north": 5, "south": 5, "west": 4})
    result = audit_dp(lambda rows: grouped(rows, scale=9, ranked=True), pair, epsilon=1, samples=1_000)
    assert result.refuted
    assert result.counterexample is not None
    assert "order of output" in result.counterexample.outputs[0]


@pytest.mark.statistical
def test_numeric_keys_that_come_from_the_data_are_refuted() -> None:
    def by_year(years: tuple[int, ...]) -> Any:
        return {"year": list(years), "n": [5 + noise() for _ in years]}

    for keys in ((), ("year",)):
        assert audit_dp(by_year, ((2024, 2025), (2024,)), epsilon=1, samples=500, keys=keys).refuted


@pytest.mark.statistical
def test_a_leak_that_is_spread_over_many_numbers_is_found() -> None:
    def vector(answer: int, size: int) -> Any:
        return answer + samplers.laplace(2.0, (size, 6))

    result = audit_dp(vector, (0, 1), epsilon=1)
    assert result.refuted
    assert result.counterexample is not None
    assert audit_dp(vector, (0, 1), epsilon=3, confidence=SURE).outcome == "not refuted"


@pytest.mark.statistical
@pytest.mark.parametrize(
    "silent", [None, "n/a", math.nan, (), {"none": 5.0}], ids=["none", "word", "nan", "empty", "other"]
)
def test_an_answer_that_is_withheld_on_one_side_only_is_refuted(silent: Any) -> None:
    def mechanism(answer: int) -> Any:
        return silent if answer and noise() > 0 else noise()

    for pair in ((0, 1), (1, 0)):
        assert audit_dp(mechanism, pair, epsilon=1, samples=1_000, confidence=SURE).refuted
        assert not audit_dp(lambda _: mechanism(1), pair, epsilon=1, samples=1_000, confidence=SURE).refuted


@pytest.mark.statistical
def test_what_is_rare_elsewhere_counts_as_much_as_what_is_common() -> None:
    def mechanism(answer: int) -> Any:
        return noise() if answer and noise() > 0 else 7.0

    result = audit_dp(mechanism, (0, 1), epsilon=1, samples=1_000, confidence=SURE)
    assert result.refuted
    assert result.counterexample is not None
    assert "!=" in result.counterexample.outputs[0]


def test_answers_that_are_never_there_are_audited_too() -> None:
    assert audit_dp(lambda _: None, (0, 1), epsilon=0, samples=100).outcome == "not refuted"


@pytest.mark.statistical
def test_wide_answers_are_searched_where_they_differ() -> None:
    def wide(position: int, size: int) -> Any:
        values = samplers.laplace(1.0, (size, 100))
        values[:, 77] += 90 * position
        return values

    result = audit_dp(wide, (0, 1), epsilon=1, samples=500)
    assert result.refuted
    assert result.counterexample is not None
    assert "output[77]" in result.counterexample.outputs[0]


@pytest.mark.statistical
def test_wide_grouped_answers_are_searched_where_they_differ() -> None:
    def wide(last: str) -> Any:
        return {**{str(i): (noise() if i % 9 == 0 else "same") for i in range(70)}, "last": last, "blank": None}

    result = audit_dp(wide, ("a", "b"), epsilon=1, samples=200)
    assert result.refuted


@pytest.mark.statistical
def test_features_of_ones_own() -> None:
    def mechanism(answer: int, size: int) -> Any:
        return np.floor(samplers.laplace(100, size)) + answer / 2

    features = {"fraction": lambda outputs: outputs % 1, "label": lambda outputs: [None] * len(outputs)}
    result = audit_dp(mechanism, (0, 1), epsilon=1, features=features)
    assert result.refuted
    assert result.counterexample is not None
    assert "fraction" in result.counterexample.outputs[0]


@pytest.mark.parametrize("count", [0, 7])
def test_so_many_outputs_as_asked(count: int) -> None:
    with pytest.raises(ParameterError, match="one item per output"):
        audit_dp(lambda answer, size: [0] * count, (0, 1), epsilon=1, samples=100)
    with pytest.raises(ParameterError, match="one item per output"):
        audit_dp(lambda answer, size: 5, (0, 1), epsilon=1, samples=100)


@pytest.mark.parametrize(
    ("parameters", "fix"),
    [
        ({"mode": "exakt"}, 'Did you mean "exact"'),
        ({"samples": 10}, "samples=100"),
        ({"confidence": 1}, "confidence=0.95"),
        ({"epsilon": -1}, "smaller is more private"),
    ],
)
def test_bad_parameters_are_refused_with_a_fix(parameters: Any, fix: str) -> None:
    with pytest.raises(ParameterError, match=fix):
        audit_dp(lambda _: noise(), (0, 1), **{"epsilon": 1, **parameters})


def test_bad_subjects_are_refused_with_a_fix() -> None:
    with pytest.raises(ParameterTypeError, match="returns one output"):
        audit_dp(5, (0, 1), epsilon=1)
    with pytest.raises(ParameterError, match=r"\(dataset, neighbor\)"):
        audit_dp(two_coins, [], epsilon=1)


def test_no_claim_allows_more_than_certainty() -> None:
    def limit(epsilon: object, delta: object) -> float:
        return audit_dp(lambda _: {0: Fraction(1)}, (0, 1), epsilon=epsilon, delta=delta).limit

    assert limit(0, 0) == 0.5
    assert limit(5000, 0) == 1
    assert limit(0, "0.5") == 0.75


def test_the_counterexample_of_a_summary_is_for_the_custodian() -> None:
    rows = dict(audit_dp(discrete, (3, 9), epsilon=1).summary())
    assert rows["counterexample"].startswith("outputs with ")
    assert rows["limit"] == "73.11% success is what the claim allows"


def discrete(count: int) -> Any:
    return discrete_laplace_bounds(count, scale=Fraction(1), window=(-5, 20))


def test_a_result_is_a_value() -> None:
    result = audit_dp(two_coins, ("yes", "no"), epsilon=1)
    assert isinstance(result, AttackResult)
    assert isinstance(result.details, AuditDetails)
    with pytest.raises(AttributeError):
        result.details.epsilon = Fraction(5)  # type: ignore[misc]


def test_the_chart_shows_what_the_claim_allows() -> None:
    text = json.dumps(audit_dp(two_coins, ("yes", "no"), epsilon=1).plot().to_dict())
    assert "most that the claim allows" in text
    assert "guessing" in text


def test_a_claim_that_holds_is_no_success_of_the_attacker() -> None:
    holds, refuted = (audit_dp(two_coins, ("yes", "no"), epsilon=epsilon) for epsilon in (2, 0.1))
    assert not holds.succeeded
    assert holds.report().verdict.status == "attention"
    assert refuted.succeeded
    assert refuted.report().verdict.status == "bad"
