from __future__ import annotations

import math
from fractions import Fraction
from itertools import product
from typing import Any

import pytest
from hypothesis import given, strategies as st

from cloister.core import exact
from cloister.core.guarantees import Adjacency
from cloister.errors import CloisterError, ParameterError
from cloister.mechanisms import Selection
from cloister.queries.choices import RandomDictator, random_dictatorship
from cloister.testing import MechanismLaws, all_neighbors, check_exactly, distributions, statistics

ALTERNATIVES = ("yes", "no", "abstain")


def _dictator(**changes: Any) -> RandomDictator:
    return RandomDictator(**({"alternatives": ALTERNATIVES} | changes))


def _law(mechanism: RandomDictator, votes: tuple[int, ...]) -> dict[Any, Fraction]:
    counts = [votes.count(choice) for choice in range(len(ALTERNATIVES))]
    return dict(zip(ALTERNATIVES, mechanism.probabilities(counts), strict=True))


@pytest.mark.parametrize("adjacency", [Adjacency.ADD_REMOVE, Adjacency.REPLACE])
@pytest.mark.parametrize("phantom", ["1/10", 1, "7/3"])
def test_the_exact_law_is_private_for_all_small_elections(phantom: Any, adjacency: Adjacency) -> None:
    mechanism = _dictator(phantom=phantom, adjacency=adjacency)
    neighbors = list(all_neighbors(range(3), max_rows=4, adjacency=adjacency))
    check_exactly(lambda votes: _law(mechanism, votes), neighbors, epsilon=mechanism.epsilon).verify()


@pytest.mark.parametrize(("phantom", "votes"), [(1, 200), ("1/10", 2000)])
def test_the_stated_epsilon_is_approached_but_by_rounding(phantom: Any, votes: int) -> None:
    """A lone vote among many others is what tells most."""
    mechanism = _dictator(phantom=phantom)
    pair = ([votes, 0, 0], [votes, 1, 0])
    laws = {id(counts): dict(enumerate(mechanism.probabilities(counts))) for counts in pair}
    report = check_exactly(lambda counts: laws[id(counts)], [pair], epsilon=mechanism.epsilon)
    report.verify()
    assert report.tight_epsilon == pytest.approx(float(mechanism.epsilon), rel=0.01)
    assert check_exactly(lambda counts: laws[id(counts)], [pair], epsilon=mechanism.epsilon * Fraction(9, 10)).refuted


def test_one_phantom_vote_costs_the_logarithm_of_two() -> None:
    mechanism = _dictator(phantom=1)
    assert float(mechanism.epsilon) == pytest.approx(math.log(2))
    assert mechanism.epsilon >= exact.log_bounds(Fraction(2))[0]
    assert mechanism.probabilities([3, 1, 0]) == (Fraction(4, 7), Fraction(2, 7), Fraction(1, 7))


@given(st.fractions(min_value="1/1000", max_value=20, max_denominator=1000))
def test_an_epsilon_gives_enough_phantom_votes_and_hardly_more(epsilon: Fraction) -> None:
    mechanism = _dictator(epsilon=epsilon)
    needed = exact.log_bounds(1 + 1 / mechanism.phantom)[1]
    assert epsilon * (1 - Fraction(1, 10**12)) <= needed <= epsilon
    assert mechanism.epsilon == mechanism.guarantee.epsilon == epsilon


def test_a_tiny_epsilon_needs_very_many_phantoms() -> None:
    assert _dictator(epsilon=Fraction(1, 10**100)).phantom >= 10**99


@pytest.mark.statistical
def test_elections_follow_the_exact_law() -> None:
    mechanism, counts = _dictator(phantom="1/2"), [5, 3, 0]
    sample = [mechanism.release(counts).index for _ in range(5000)]
    statistics.check_distribution(sample, distributions.categorical(_floats(mechanism, counts)))
    for wrong in ("1/8", 2):
        law = distributions.categorical(_floats(_dictator(phantom=wrong), counts))
        assert statistics.fit(sample, law).p_value < 1e-9


def _floats(mechanism: RandomDictator, counts: list[int]) -> dict[int, float]:
    return {index: float(chance) for index, chance in enumerate(mechanism.probabilities(counts))}


@pytest.mark.parametrize(
    "law",
    MechanismLaws(
        factory=lambda epsilon: _dictator(epsilon=epsilon),
        value=[3, 2, 1],
        secret=None,
        bad_values=([1, 2], [1.5, 2, 3], [-1, 2, 3], "secret-4711", None),
        incomplete=(_dictator, lambda: _dictator(epsilon=1, phantom=1), lambda: RandomDictator(epsilon=1)),
    ),
    ids=str,
)
def test_laws_of_mechanisms(law: Any) -> None:
    law.verify()


def test_an_election_in_one_call() -> None:
    result = random_dictatorship({"a": 10**30, "b": 0}, epsilon=2)
    assert isinstance(result, Selection)
    assert result.choice == "a"
    assert str(result) == "a, epsilon = 2 per vote"
    winners = {random_dictatorship(dict.fromkeys("ab", 1), phantom=1).choice for _ in range(100)}
    assert winners == {"a", "b"}


@pytest.mark.parametrize(
    ("call", "fix"),
    [
        (lambda: random_dictatorship([3, 1], phantom=1), "votes={"),  # type: ignore[arg-type]
        (lambda: random_dictatorship({}, phantom=1), "public list"),
        (lambda: random_dictatorship({"a": 1}), "phantom= or epsilon="),
        (lambda: _dictator(phantom=0), "positive phantom"),
        (lambda: _dictator(phantom=1, adjacency="edge"), 'adjacency="add_remove"'),
        (lambda: _dictator(phantom=1, alternatives="yes"), "alternatives="),
    ],
)
def test_bad_parameters_are_refused_with_a_fix(call: Any, fix: str) -> None:
    with pytest.raises(CloisterError, match=fix):
        call()


def test_votes_are_not_quoted() -> None:
    for bad in product([-4711], [4712], [4713]):
        with pytest.raises(ParameterError) as caught:
            _dictator(phantom=1).release(list(bad))
        assert "471" not in str(caught.value)
