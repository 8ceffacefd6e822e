from __future__ import annotations

import pytest

from cloister.accounting import shuffling
from cloister.core.guarantees import AllOf, LocalDP, guarantee_from_dict
from cloister.errors import ParameterError
from cloister.local import LeveledQuestion, RandomizedResponse, SeveralAttributes, SquareWave, shuffled
from cloister.local.collection.shuffle_model import central_guarantee


def test_the_central_promise_stands_next_to_the_local_one() -> None:
    protocol = RandomizedResponse(epsilon=1)
    estimate = shuffled(protocol.estimate(protocol.randomize([True, False] * 50_000)), delta="1e-6")
    assert isinstance(estimate.guarantee, AllOf)
    local, central = estimate.guarantee.parts
    assert local == protocol.guarantee
    assert central == shuffling(protocol.guarantee, reports=100_000, delta="1e-6")
    assert estimate.guarantee.brief() == "epsilon = 1 per report; epsilon = 0.0725549, delta = 1e-06 per report"
    rows = dict(estimate.summary())
    assert "shuffled and stays secret" in rows["promise"]
    assert rows["note"].endswith("centrally, next to epsilon = 1 locally.")
    assert guarantee_from_dict(estimate.to_dict()["guarantee"]) == estimate.guarantee


@pytest.mark.parametrize("reports", [1, 2, 100])
def test_too_few_reports_are_told_and_change_nothing(reports: int) -> None:
    protocol = RandomizedResponse(epsilon=1)
    before = protocol.estimate(protocol.randomize([True] * reports))
    after = shuffled(before, delta="1e-6")
    assert after.guarantee == before.guarantee
    assert "too few reports; collect at least" in after.notes[-1]
    assert after.counts == before.counts


def test_no_gain_is_told() -> None:
    central, words = central_guarantee(LocalDP(epsilon="1/100"), reports=236, delta="1e-6")
    assert central is None
    assert "adds nothing" in words


def test_everybody_who_was_asked_one_of_several_is_in_one_crowd() -> None:
    people = SeveralAttributes({"a": 2, "b": 2}, epsilon=1)
    table = {"a": [0, 1] * 5_000, "b": [0, 1] * 5_000}
    estimate = shuffled(people.estimate(people.randomize(table))["a"], delta="1e-6")
    central = estimate.guarantee.parts[1]  # type: ignore[attr-defined]
    assert central.epsilon == shuffling(people.guarantee, reports=10_000, delta="1e-6").epsilon
    assert central.unit == "person"


def test_levels_are_no_crowd_for_each_other() -> None:
    question = LeveledQuestion(["no", "yes"])
    estimate = question.estimate(question.randomize(["no", "yes"] * 5_000, levels=["high", "medium"] * 5_000))
    with pytest.raises(ParameterError, match="level by level"):
        shuffled(estimate.stratified, delta="1e-6")
    assert isinstance(shuffled(estimate.strata["high"], delta="1e-6").guarantee, AllOf)


def test_bad_input_is_refused() -> None:
    protocol = RandomizedResponse(epsilon=1)
    estimate = protocol.estimate(protocol.randomize([True] * 100_000))
    for delta in (0, 1, -1):
        with pytest.raises(ParameterError, match="delta"):
            shuffled(estimate, delta=delta)
    with pytest.raises(ParameterError, match="as the protocol returned it"):
        shuffled(shuffled(estimate, delta="1e-6"), delta="1e-6")


def test_a_distribution_and_its_mean_state_the_same_promise() -> None:
    protocol = SquareWave(bounds=(0, 1), epsilon=1)
    found = shuffled(protocol.estimate(protocol.randomize([0.2, 0.7] * 20_000)), delta="1e-6")
    assert isinstance(found.guarantee, AllOf)
    assert found.mean.guarantee == found.guarantee
