from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest

from cloister.core.random import ListedRandomSource, SystemRandomSource
from cloister.errors import OutsideDomainError, ParameterError
from cloister.local import open_protocol
from cloister.local.draws import law_of
from cloister.local.frequency.unary import UnarySet


def sets(size: int, most: int) -> list[frozenset[int]]:
    return [frozenset(picks) for count in range(most + 1) for picks in itertools.combinations(range(size), count)]


@pytest.mark.parametrize(("size", "most"), [(2, 1), (3, 1), (3, 2), (3, 3), (4, 2)])
@pytest.mark.parametrize("epsilon", [0.25, 1, 4])
def test_the_devices_law_has_the_epsilon_asked_for(size: int, most: int, epsilon: float) -> None:
    protocol = UnarySet(domain=size, epsilon=epsilon, most=most)
    laws = []
    for picks in sets(size, most):
        row, _ = protocol.encode(picks)
        laws.append(law_of(lambda draws, row=row: protocol.perturb(row, draws)["bits"].tobytes()))
    worst = max(one[y] / other[y] for one in laws for other in laws for y in one)
    assert worst == protocol.likelihood_ratio
    assert protocol.epsilon - 10**-9 <= math.log(worst) <= protocol.epsilon + 10**-12


def test_each_bit_has_its_share_of_the_budget() -> None:
    protocol = UnarySet(domain=10, epsilon=2, most=3)
    keep, flip = protocol.probabilities
    assert keep + flip == 1
    assert math.log(keep / flip) == pytest.approx(2 / 6, abs=1e-12)


def test_spending_the_whole_budget_on_every_bit_would_cost_more() -> None:
    careless = UnarySet(domain=4, epsilon=1, most=1).likelihood_ratio ** Fraction(4, 2)
    assert math.log(careless) == pytest.approx(2, abs=1e-9)


def test_bits_follow_the_draws_in_the_order_of_the_domain() -> None:
    protocol = UnarySet(domain=["a", "b", "c"], epsilon=math.log(3) * 2, most=1)
    draws = ListedRandomSource([int(share * 2**64) for share in (0.74, 0.26, 0.24)])
    assert protocol.randomize({"a"}, random_state=draws).y == "101"


def test_one_persons_picks_and_many_peoples() -> None:
    protocol = UnarySet(domain=["a", "b", "c"], epsilon=20, most=2)
    for single in (set(), [], ["a"], ("a", "b"), frozenset({"c"})):
        assert len(protocol.randomize(single)) == 1
    assert len(protocol.randomize([["a"], [], {"b", "c"}])) == 3
    assert len(protocol.randomize([{"a"}])) == 1
    assert len(protocol.randomize(["a"]).y) == 3


@pytest.mark.parametrize(
    "picks",
    [
        ["d"],
        ["a", "a"],
        ["a", "b", "c"],
        "a",
        1,
        [["a"], ["a", "b", "c"]],
        [None],
        [["a"], "ab"],
        [["a"], {"a": False, "b": True}],
        [{"a": False}],
    ],
)
def test_picks_that_the_question_does_not_allow_are_refused(picks: object) -> None:
    protocol = UnarySet(domain=["a", "b", "c"], epsilon=1, most=2)
    with pytest.raises(OutsideDomainError):
        protocol.randomize(picks)


@pytest.mark.parametrize("most", [0, 4])
def test_nobody_can_pick_more_than_there_are(most: int) -> None:
    with pytest.raises(ParameterError, match="most="):
        UnarySet(domain=3, epsilon=1, most=most)


def test_the_record_makes_the_same_protocol() -> None:
    protocol = UnarySet(domain=["a", "b", "c"], epsilon="1/3", most=2)
    assert open_protocol(protocol.to_dict()) == protocol
    assert set(protocol.to_dict()["params"]) == {"keep", "flip", "most"}


def test_counts_come_back_within_their_errors() -> None:
    protocol = UnarySet(domain=17, epsilon=3, most=3)
    people = [[0, 1, 16]] * 3000 + [[0]] * 2000 + [[]] * 15_000
    reports = protocol.randomize(people, random_state=SystemRandomSource())
    estimate = protocol.estimate(protocol.read(reports.to_bytes()))
    truth = np.array([5000, 3000, *[0] * 14, 3000])
    assert (np.abs(estimate.raw_counts - truth) < 7 * estimate.raw_errors).all()
    assert estimate.raw_errors[0] == pytest.approx(math.sqrt(20_000 * protocol.variance()), rel=1e-9)


def test_counts_are_clipped_and_not_made_to_add_up() -> None:
    protocol = UnarySet(domain=3, epsilon=4, most=3)
    estimate = protocol.estimate(protocol.randomize([[0, 1, 2]] * 5000))
    mended = estimate.consistent()
    assert max(mended.counts.values()) <= 5000
    assert sum(mended.counts.values()) > 14_000
    assert mended.to_dict()["schema"] == "cloister.local_picks/1"
