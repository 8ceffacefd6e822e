from __future__ import annotations

import json
import math
from collections import Counter
from fractions import Fraction
from itertools import permutations
from typing import Any

import pytest

from cloister.attacks.auditing.exact_check import check_exactly
from cloister.core import exact
from cloister.core.random import SeededRandomSource
from cloister.errors import CloisterError, ParameterError, ParameterTypeError
from cloister.mechanisms import Mechanism, Select, select
from cloister.mechanisms.selection import METHODS
from cloister.testing import distributions, statistics

SPORTS = ("football", "volleyball", "basketball")


def _select(**changes: Any) -> Select:
    return Select(**({"candidates": SPORTS, "score_sensitivity": 1, "epsilon": 1} | changes))


@pytest.mark.parametrize("method", METHODS)
def test_the_clear_winner_wins(method: str) -> None:
    mechanism = _select(method=method)
    assert isinstance(mechanism, Mechanism)
    result = mechanism.release([1000, 3, 2])
    assert (result.index, result.choice) == (0, "football")
    assert result.guarantee == mechanism.guarantee
    assert str(result) == "football, epsilon = 1 per row"
    assert json.loads(json.dumps(result.to_dict()))["choice"] == "football"


def _exponential(scores: list[int], rate: float) -> dict[int, float]:
    weights = [math.exp(rate * score) for score in scores]
    return {index: weight / sum(weights) for index, weight in enumerate(weights)}


def _permute_and_flip(scores: list[int], rate: float) -> dict[int, float]:
    chances = [math.exp(rate * (score - max(scores))) for score in scores]
    found: Counter[int] = Counter()
    orders = list(permutations(range(len(scores))))
    for order in orders:
        left = 1.0
        for index in order:
            found[index] += left * chances[index] / len(orders)  # type: ignore[assignment]
            left *= 1 - chances[index]
    return dict(found)  # type: ignore[arg-type]


@pytest.mark.statistical
@pytest.mark.parametrize("monotone", [False, True])
@pytest.mark.parametrize(("method", "law"), [("exponential", _exponential), ("permute_and_flip", _permute_and_flip)])
def test_choices_follow_the_exact_law(method: str, law: Any, monotone: bool) -> None:
    scores, factor = [2, 3, 1], 1.0 if monotone else 0.5
    mechanism = _select(method=method, monotone=monotone)
    sample = [mechanism.release(scores).index for _ in range(6000)]
    statistics.check_distribution(sample, distributions.categorical(law(scores, factor)))
    for wrong in (0.5, 2.0):
        assert statistics.fit(sample, distributions.categorical(law(scores, factor * wrong))).p_value < 1e-9


def test_permute_and_flip_is_never_worse_than_exponential() -> None:
    for scores in ([2, 3, 1], [0, 0, 5], [1, 1, 1]):
        best = max(scores)
        better, worse = _permute_and_flip(scores, 0.5), _exponential(scores, 0.5)
        expected = [sum(p * scores[i] for i, p in law.items()) for law in (better, worse)]
        assert expected[0] >= expected[1] - 1e-12
        assert best >= expected[0]


def _bounds(scores: tuple[int, ...], rate: Fraction) -> dict[int, tuple[Fraction, Fraction]]:
    weights = [exact.exp_bounds(rate * score) for score in scores]
    low, high = (sum(w[side] for w in weights) for side in (0, 1))
    return {i: (w[0] / high, w[1] / low) for i, w in enumerate(weights)}


@pytest.mark.parametrize("monotone", [False, True])
def test_exact_probabilities_of_all_small_neighbors(monotone: bool) -> None:
    rate = _select(monotone=monotone).rate
    grid = [(0, 0, 0), (0, 1, 2), (2, 0, 1), (5, 0, 0)]
    moves = [(i, j, k) for i in (-1, 0, 1) for j in (-1, 0, 1) for k in (-1, 0, 1)]
    if monotone:
        moves = [move for move in moves if min(move) >= 0]
    pairs = [(d, tuple(x + y for x, y in zip(d, move, strict=True))) for d in grid for move in moves]
    report = check_exactly(lambda scores: _bounds(scores, rate), pairs, epsilon=1)
    report.verify()
    without_factor = check_exactly(lambda scores: _bounds(scores, Fraction(1)), pairs, epsilon=1)
    assert without_factor.refuted is not monotone


@pytest.mark.statistical
@pytest.mark.parametrize("monotone", [False, True])
def test_the_noisy_maximum_follows_its_law(monotone: bool) -> None:
    """With two candidates and a lead of two: the difference of two Laplace numbers decides."""
    mechanism = Select(candidates=("a", "b"), score_sensitivity=1, epsilon=1, method="laplace_max", monotone=monotone)
    scale, lead = (1.0 if monotone else 2.0), 2.0
    lose = math.exp(-lead / scale) * (2 + lead / scale) / 4
    wins = sum(mechanism.release([7.0, 5.0]).index == 0 for _ in range(2000))
    assert abs(wins - 2000 * (1 - lose)) < 6.2 * math.sqrt(2000 * lose * (1 - lose))


def test_a_seed_taints_and_repeats() -> None:
    first, second = (_select().release([1, 1, 1], random_state=SeededRandomSource(4)) for _ in range(2))
    assert first.index == second.index
    assert not first.guarantee.holds


def test_select_is_one_call() -> None:
    result = select([50, 1], candidates=["a", "b"], score_sensitivity=1, epsilon=1, monotone=True, method="gumbel")
    assert result.choice == "a"


def test_the_shortfall_is_the_textbook_bound() -> None:
    assert _select().shortfall(0.05) == pytest.approx(2 * math.log(3 / 0.05))


def test_extreme_scores_cause_no_warning() -> None:
    for method in METHODS:
        assert _select(method=method).release([1.7e308, -1.7e308, 0.0]).choice == "football"


@pytest.mark.parametrize("base", [2**53 + 1, 2**62, 2**63 + 1024, 10**400], ids=["53", "62", "63", "400"])
def test_huge_counts_keep_their_differences(base: int) -> None:
    small, large = (_select().probabilities(scores) for scores in ([2, 1, 0], [base + 2, base + 1, base]))
    assert large == pytest.approx(small, rel=1e-12)
    assert _select(epsilon=1000).release([base + 2, base + 1, base]).choice == "football"


def test_score_differences_beyond_floats_are_exact() -> None:
    """Neighbors 2e307 apart at a sensitivity of 1e308 hardly differ, though the difference of the scores overflows."""
    mechanism = Select(candidates=("a", "b"), score_sensitivity=10**308, epsilon=1)
    near, far = (mechanism.probabilities([score, -score])[1] for score in (8e307, 1e308))
    assert near == pytest.approx(1 / (1 + math.exp(0.8)))
    assert far == pytest.approx(1 / (1 + math.e))
    tiny = Select(candidates=("a", "b"), score_sensitivity=10**400, epsilon=1)
    assert tiny.probabilities([1e308, -1e308]) == pytest.approx([0.5, 0.5])


@pytest.mark.parametrize("bad", [[1, 2], [1.0, math.nan, 2.0], [1.0, math.inf, 2.0], 5])
def test_odd_scores_are_refused(bad: object) -> None:
    with pytest.raises(ParameterError, match="Fix:"):
        _select().release(bad)


def test_scores_must_be_numbers() -> None:
    with pytest.raises(ParameterTypeError, match="array of numbers"):
        _select().release(["a", "b", "c"])


@pytest.mark.parametrize(
    ("changes", "fix"),
    [
        ({"candidates": ()}, "public list"),
        ({"candidates": "abc"}, 'candidates=\\["a", "b"\\]'),
        ({"score_sensitivity": 0}, "positive score_sensitivity"),
        ({"epsilon": -1}, "epsilon=0.5"),
        ({"method": "gumble"}, 'mean "gumbel"'),
    ],
)
def test_bad_parameters_are_refused_with_a_fix(changes: dict[str, Any], fix: str) -> None:
    with pytest.raises(CloisterError, match=fix):
        _select(**changes)
