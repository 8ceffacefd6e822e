from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given, strategies as st

from cloister.attacks.auditing.exact_check import UNLISTED, bounds_of
from cloister.core import exact
from cloister.core.guarantees import Adjacency
from cloister.errors import ParameterError, ParameterTypeError, PrivacyRefutedError
from cloister.testing import (
    ExactVerdict,
    all_neighbors,
    check_exactly,
    discrete_laplace_bounds,
    normal_cdf_bounds,
    normalize,
    removals,
)
from cloister.testing.zoo.queries import TABLE, func1, func2, func3, func4


def response(p: Fraction, second: Fraction) -> Any:
    """Binary randomized response: truth with probability p, else a coin."""
    yes = (1 - p) * second

    def law(bit: int) -> dict[int, Fraction]:
        one = yes + p * bit
        return {1: one, 0: 1 - one}

    return law


HALF = Fraction(1, 2)


@pytest.mark.parametrize(
    ("p", "second", "expected"),
    [
        (HALF, HALF, 1.098612),
        (Fraction(4, 5), Fraction(4, 5), 3.044522),
        (HALF, Fraction(3, 4), 1.609438),
        (HALF, Fraction(1), math.inf),
    ],
)
def test_cdp_01_epsilon_of_randomized_response(p: Fraction, second: Fraction, expected: float) -> None:
    report = check_exactly(response(p, second), [(0, 1)], epsilon=1)
    assert report.tight_epsilon == pytest.approx(expected, abs=1e-6)


def test_a_claim_just_below_the_truth_is_refuted_and_just_above_holds() -> None:
    law = response(HALF, HALF)
    low, high = exact.log_bounds(Fraction(3))
    assert check_exactly(law, [(0, 1)], epsilon=high).holds
    assert check_exactly(law, [(0, 1)], epsilon=low - Fraction(1, 10**30)).refuted


def test_cdp_17_a_constant_is_private() -> None:
    report = check_exactly(func1, removals(TABLE), epsilon=0)
    report.verify()
    assert report.tight_epsilon == 0
    assert report.counterexample is None
    assert report.pairs == 4


def test_cdp_17_a_count_plus_ten_is_not() -> None:
    report = check_exactly(func2, removals(TABLE), epsilon=5)
    found = report.counterexample
    assert found is not None
    assert report.tight_epsilon == math.inf
    assert {found.outputs[0], 25 - found.outputs[0]} == {12, 13}  # type: ignore[operator]
    assert (found.probability, found.neighbor_probability) == (1, 0)
    with pytest.raises(PrivacyRefutedError, match="correct the algorithm"):
        report.verify()


def test_cdp_17_the_first_row_is_not() -> None:
    report = check_exactly(func3, removals(TABLE), epsilon=5)
    found = report.counterexample
    assert found is not None
    assert {found.dataset, found.neighbor} == {TABLE, TABLE[1:]}
    assert report.tight_epsilon == math.inf
    assert "has probability 1 on" in str(found)


def test_cdp_17_a_noisy_count_is_private_at_its_epsilon_and_not_below() -> None:
    report = check_exactly(func4, removals(TABLE), epsilon=1)
    report.verify()
    assert report.tight_epsilon == pytest.approx(1, abs=1e-12)
    assert check_exactly(func4, removals(TABLE), epsilon="0.999").refuted


def test_an_output_impossible_on_both_sides_says_nothing() -> None:
    report = check_exactly(lambda bit: {"a": 1, "b": 0}, [(0, 1)], epsilon=0)
    assert report.holds


def test_delta_covers_what_is_possible_on_one_side_only() -> None:
    law = response(HALF, Fraction(1))
    report = check_exactly(law, [(0, 1)], epsilon=0, delta=HALF)
    assert report.holds
    assert report.delta_at(0) == HALF
    assert report.delta_at(3) == HALF
    assert check_exactly(law, [(0, 1)], epsilon=3, delta=Fraction(49, 100)).refuted


def test_a_refuted_delta_lists_all_outputs_that_count() -> None:
    def law(bit: int) -> dict[str, Fraction]:
        shares = [4, 4, 4, 4, 1, 1, 1, 1] if bit else [1, 1, 1, 1, 4, 4, 4, 4]
        return {name: Fraction(share, 20) for name, share in zip("abcdefgh", shares, strict=True)}

    report = check_exactly(law, [(0, 1)], epsilon=0, delta=Fraction(1, 2))
    assert report.counterexample is not None
    assert len(report.counterexample.outputs) == 4
    assert "..." in str(report.counterexample)
    assert "delta = 0.5" in repr(report)
    assert report.delta_at(0) == Fraction(3, 5)


@given(st.lists(st.integers(0, 9), min_size=2, max_size=5), st.lists(st.integers(0, 9), min_size=2, max_size=5))
def test_the_tight_epsilon_is_where_delta_is_reached(first: list[int], second: list[int]) -> None:
    laws = []
    for weights in (first, second):
        total = sum(weights) + 1
        laws.append({i: Fraction(weight, total) for i, weight in enumerate([*weights, 1])})
    delta = Fraction(1, 20)
    report = check_exactly(lambda bit: laws[bit], [(0, 1)], epsilon=1, delta=delta)
    if math.isfinite(report.tight_epsilon):
        assert check_exactly(
            lambda bit: laws[bit], [(0, 1)], epsilon=report.tight_epsilon, delta=delta, tolerance=0
        ).holds
        assert report.delta_at(report.tight_epsilon) <= delta
        if report.tight_epsilon > 1e-6:
            assert report.delta_at(report.tight_epsilon * 0.999) > delta
    else:
        assert report.delta_at(50) > delta
    assert report.holds == (report.tight_epsilon <= 1)


def test_wide_bounds_leave_it_undecided() -> None:
    def law(bit: int) -> dict[int, Any]:
        return {bit: (Fraction(1, 2), Fraction(4, 5)), 1 - bit: (Fraction(1, 5), HALF)}

    report = check_exactly(law, [(0, 1)], epsilon=1)
    assert report.verdict is ExactVerdict.UNDECIDED
    assert not report.holds
    assert not report.refuted
    with pytest.raises(PrivacyRefutedError, match="certified bounds of more digits"):
        report.verify()


def test_floats_are_read_as_narrow_intervals() -> None:
    def law(bit: int) -> dict[int, float]:
        return {bit: 0.75, 1 - bit: 0.25, 7: 0.0}

    assert check_exactly(law, [(0, 1)], epsilon=math.log(3)).holds
    assert check_exactly(law, [(0, 1)], epsilon=1.0986).refuted
    assert bounds_of(0.0) == (0, 0)
    low, high = bounds_of(0.1)
    assert low < Fraction(1, 10) < high


def test_datasets_that_cannot_be_keys_are_accepted() -> None:
    assert check_exactly(lambda rows: {len(rows) * 0: 1}, [([1], [])], epsilon=0).holds


@pytest.mark.parametrize(
    ("outputs", "fix"),
    [
        ({"a": Fraction(1, 3)}, "list every output"),
        ({"a": Fraction(4, 3)}, "list every output"),
        ({"a": -1, "b": 2}, "0 <= low <= high"),
        ({"a": (Fraction(1), Fraction(0))}, "0 <= low <= high"),
        ({"a": math.nan}, "finite number"),
    ],
)
def test_what_is_not_a_distribution_is_refused(outputs: Any, fix: str) -> None:
    with pytest.raises(ParameterError, match=fix):
        check_exactly(lambda _: outputs, [(0, 1)], epsilon=1)


def test_a_triple_is_not_a_pair_of_bounds() -> None:
    with pytest.raises(ParameterTypeError, match=r"\(low, high\)"):
        bounds_of((1, 2, 3))


def test_no_neighbors_prove_nothing() -> None:
    with pytest.raises(ParameterError, match="at least one pair"):
        check_exactly(func1, [], epsilon=1)


def test_densities_decide_pure_privacy_only() -> None:
    with pytest.raises(ParameterError, match="probabilities of cells"):
        check_exactly(func1, [(0, 1)], epsilon=1, delta=0.1, densities=True)


def test_weights_that_may_all_vanish_are_refused() -> None:
    with pytest.raises(ParameterError, match="at least one weight"):
        normalize({"a": 0, "b": (0, 1)})  # type: ignore[dict-item]


def test_normalized_bounds_hold_the_true_value() -> None:
    e = exact.exp_bounds(Fraction(1), digits=8)
    low, high = normalize({"a": e, "b": 1, "c": 0})["a"]
    assert low < Fraction(math.e / (math.e + 1)) < high
    assert high - low < Fraction(1, 10**6)


@pytest.mark.parametrize("value", ["0", "1/3", "1", "5", "-7/2", "12"])
def test_normal_bounds_agree_with_a_second_way(value: str) -> None:
    low, high = normal_cdf_bounds(Fraction(value))
    assert 0 <= high - low < Fraction(1, 10**30)
    assert float(low) == pytest.approx(math.erfc(-float(Fraction(value)) / math.sqrt(2)) / 2, rel=1e-13)


def test_discrete_laplace_bounds_match_the_closed_form() -> None:
    law = discrete_laplace_bounds(2, scale=Fraction(1), window=(-10, 14))
    assert float(law[2][0]) == pytest.approx(0.462117, abs=1e-6)
    assert sum(low for low, _ in law.values()) <= 1 <= sum(high for _, high in law.values())
    with pytest.raises(ParameterError, match="around the center"):
        discrete_laplace_bounds(14, scale=Fraction(1), window=(-10, 14))


def test_all_neighbors_under_both_relations() -> None:
    removed = list(all_neighbors("ab", max_rows=2))
    assert set(removed) == {
        (("a",), ()),
        (("b",), ()),
        (("a", "a"), ("a",)),
        (("a", "b"), ("a",)),
        (("a", "b"), ("b",)),
        (("b", "b"), ("b",)),
    }
    assert len(removed) == 6
    changed = list(all_neighbors("ab", max_rows=2, adjacency=Adjacency.REPLACE))
    assert changed == [(("a",), ("b",)), (("a", "a"), ("a", "b")), (("a", "b"), ("b", "b"))]


@pytest.mark.parametrize("ordered", [False, True])
def test_every_replaced_pair_comes_once(*, ordered: bool) -> None:
    pairs = [
        frozenset(pair)
        for pair in all_neighbors("abc", min_rows=3, max_rows=3, adjacency=Adjacency.REPLACE, ordered=ordered)
    ]
    assert len(pairs) == len(set(pairs)) == (81 if ordered else 18)


def test_ordered_datasets_lose_any_row() -> None:
    pairs = list(all_neighbors("ab", min_rows=1, max_rows=2, ordered=True))
    assert (("b", "a"), ("a",)) in pairs
    assert (("b", "a"), ("b",)) in pairs


def test_other_relations_need_more_than_rows() -> None:
    with pytest.raises(ParameterError, match="list the pairs yourself"):
        list(all_neighbors("ab", max_rows=2, adjacency=Adjacency.NODE))
    with pytest.raises(ParameterError, match="the rows that are possible"):
        list(all_neighbors("", max_rows=2))


def test_probability_that_is_not_listed_is_an_output_of_its_own() -> None:
    missing = Fraction(1, 2 * 10**9)
    laws = {"a": {0: 1 - missing}, "b": {0: Fraction(1)}}
    report = check_exactly(laws.__getitem__, [("a", "b")], epsilon=5)
    assert report.refuted
    assert report.tight_epsilon == math.inf
    assert report.counterexample is not None
    assert report.counterexample.outputs == (UNLISTED,)
    assert check_exactly(laws.__getitem__, [("a", "b")], epsilon=5, delta=missing).holds


def test_bounds_that_may_add_up_to_one_leave_nothing_out() -> None:
    laws = {"a": {0: (HALF - Fraction(1, 10**12), HALF), 1: HALF}, "b": {0: HALF, 1: HALF}}
    assert check_exactly(laws.__getitem__, [("a", "b")], epsilon=1).holds


@pytest.mark.parametrize("pair", [(1, True), (0.0, -0.0), ((1,), (1.0,))])
def test_datasets_that_are_equal_but_not_the_same_are_told_apart(pair: tuple[Any, Any]) -> None:
    report = check_exactly(lambda dataset: {repr(dataset): Fraction(1)}, [pair], epsilon=1)
    assert report.refuted
