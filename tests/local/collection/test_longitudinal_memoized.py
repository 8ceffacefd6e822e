from __future__ import annotations

import itertools
import json
import math
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np
import pytest

from cloister.core import exact
from cloister.core.random import SeededRandomSource
from cloister.errors import (
    BudgetExceededError,
    ForeignReportError,
    MalformedReportError,
    ParameterError,
    ParameterTypeError,
)
from cloister.local import (
    DirectEncoding,
    DuchiVector,
    MemoizedQuestion,
    OptimizedUnaryEncoding,
    SymmetricUnaryEncoding,
)
from cloister.local.collection.longitudinal import CHANGES_SHOW, MemoizedDevice
from cloister.local.draws import law_of
from cloister.local.frequency.support import debias_supports
from tests.local.collection.spread import assert_scatters


def law_of_life(question: MemoizedQuestion, life: tuple[int, ...]) -> dict[bytes, Fraction]:
    """The exact law of all reports that one device makes of a sequence of values."""

    def device(draws: Any) -> bytes:
        person = question.enroll()
        return b"".join(person.perturb(np.array([code]), draws).tobytes() for code in life)

    return law_of(device)


def pattern(life: tuple[int, ...]) -> tuple[int, ...]:
    """Which values of a life are the same."""
    return tuple(life.index(value) for value in life)


def epsilon_between(laws: list[dict[bytes, Fraction]]) -> float:
    worst = Fraction(1)
    for one, other in itertools.permutations(laws, 2):
        for sent, chance in one.items():
            if sent not in other:
                return math.inf
            worst = max(worst, chance / other[sent])
    return float(exact.log_bounds(worst)[1])


def test_lives_of_one_pattern_cost_epsilon_for_each_distinct_value() -> None:
    question = MemoizedQuestion(3, epsilon="0.8", distinct=2, protocol=DirectEncoding)
    lives = [life for life in itertools.product(range(3), repeat=3) if len(set(life)) <= 2]
    costs = {}
    for shape in {pattern(life) for life in lives}:
        costs[shape] = epsilon_between([law_of_life(question, life) for life in lives if pattern(life) == shape])
    assert costs.pop((0, 0, 0)) == pytest.approx(0.8, abs=1e-9)
    assert len(costs) == 3
    for cost in costs.values():
        assert cost == pytest.approx(1.6, abs=1e-9)
        assert cost <= float(question.guarantee.epsilon) + 1e-15


def test_changes_show_beyond_any_epsilon_and_the_guarantee_says_so() -> None:
    question = MemoizedQuestion(2, epsilon=1, distinct=2, protocol=DirectEncoding)
    assert epsilon_between([law_of_life(question, (0, 0)), law_of_life(question, (0, 1))]) == math.inf
    assert CHANGES_SHOW in question.guarantee.assumptions
    assert "replayed reports show it" in question.guarantee.explain()


def test_a_second_layer_covers_single_changes_only_in_part() -> None:
    question = MemoizedQuestion(2, epsilon=1, distinct=2, instantaneous="1/2")
    kept, moved = law_of_life(question, (0, 0)), law_of_life(question, (0, 1))
    assert 0 < epsilon_between([kept, moved]) <= 2 * 0.5


def test_replays_are_the_same_and_distinct_values_are_bounded() -> None:
    question = MemoizedQuestion(["a", "b", "c"], epsilon=1, distinct=2)
    device = question.enroll()
    first = {value: device.report(value).y for value in ("a", "b")}
    assert all(device.report(value).y == first[value] for value in ("a", "b") * 20)
    with pytest.raises(BudgetExceededError, match="all 2 distinct values") as caught:
        device.report("c")
    assert "distinct=" in caught.value.fix
    assert device.report("a").y == first["a"]
    assert question.guarantee.brief() == "epsilon = 2 per person"
    assert MemoizedQuestion(["a", "b", "c"], epsilon=1, distinct=10).distinct == 3


@pytest.mark.parametrize("kind", [DirectEncoding, OptimizedUnaryEncoding])
def test_the_state_replays_after_it_was_stored(kind: Any) -> None:
    question = MemoizedQuestion(["a", "b", "c"], epsilon=1, distinct=3, protocol=kind)
    device = question.enroll()
    first = device.report("b").y
    again = MemoizedDevice.from_dict(question, json.loads(json.dumps(device.to_dict())))
    assert all(again.report("b").y == first for _ in range(20))
    assert repr(again) == "MemoizedDevice(at most 3 distinct values)"


def test_states_of_other_questions_and_broken_ones_are_refused() -> None:
    question = MemoizedQuestion(3, epsilon=1, distinct=2, protocol=DirectEncoding)
    other = MemoizedQuestion(3, epsilon=1, distinct=3, protocol=DirectEncoding).enroll().to_dict()
    with pytest.raises(ForeignReportError, match="enrolled for"):
        MemoizedDevice.from_dict(question, other)
    state = question.enroll().to_dict()
    for bad in ([[0, 3]], [[0]], 7, [[0, "1"]]):
        with pytest.raises(MalformedReportError):
            MemoizedDevice.from_dict(question, {**state, "answers": bad})
    with pytest.raises(ParameterTypeError, match="to_dict"):
        MemoizedDevice.from_dict(question, {})


def test_a_permanent_report_from_a_seed_breaks_all_replays() -> None:
    question = MemoizedQuestion(["a", "b"], epsilon=1, distinct=1)
    device = question.enroll()
    device.report("a", random_state=SeededRandomSource(1))
    again = MemoizedDevice.from_dict(question, device.to_dict())
    assert not question.estimate([again.report("a")]).guarantee.holds
    assert question.estimate([question.enroll().report("a")]).guarantee.holds


@pytest.mark.parametrize("size", [2, 4])
def test_one_report_through_both_layers_has_the_stated_law(size: int) -> None:
    question = MemoizedQuestion(size, epsilon=2, distinct=1, instantaneous=1)
    laws = [law_of_life(question, (code,)) for code in range(size)]
    p, q = question.probabilities()
    for code, law in enumerate(laws):
        assert {sent: chance == (p if sent[0] == code else q) for sent, chance in law.items()} == dict.fromkeys(
            law, True
        )
    assert epsilon_between(laws) == pytest.approx(float(question.report_guarantee.epsilon), abs=1e-15)
    assert question.report_guarantee.epsilon < 1
    assert question.report_guarantee.unit == "report"


@pytest.mark.slow
@pytest.mark.statistical
@pytest.mark.parametrize("instantaneous", [None, 2])
def test_estimates_scatter_as_their_errors_say(instantaneous: object) -> None:
    question = MemoizedQuestion(3, epsilon=2, distinct=2, protocol=DirectEncoding, instantaneous=instantaneous)
    groups, people = 12_000, 100
    truth = np.repeat([0, 1, 2], [30, 50, 20])
    (reports,) = question.randomize([np.tile(truth, groups)])
    parts = [reports[start : start + people] for start in range(0, groups * people, people)]
    p, q = map(float, question.probabilities())
    error = math.sqrt((0.3 * p * (1 - p) + 0.7 * q * (1 - q)) / (p - q) ** 2 / people)
    undo = partial(
        debias_supports, domain=range(3), probabilities=question.probabilities(), guarantee=question.guarantee
    )
    found = [undo(part) for part in parts]
    assert found[0].counts == question.estimate(parts[0]).counts
    assert_scatters([each.raw_counts[0] / people - 0.3 for each in found], error)


def test_many_people_at_many_times_do_as_their_devices_would() -> None:
    question = MemoizedQuestion(["a", "b", "c"], epsilon=1, distinct=2, protocol=DirectEncoding)
    people = 3000
    before, after = np.array(["a", "b", "c"] * (people // 3)), np.array(["a", "c", "c"] * (people // 3))
    first, second, third = question.randomize([before, after, before])
    kept = before == after
    assert (first.payload["y"] == third.payload["y"]).all()
    assert (first.payload["y"][kept] == second.payload["y"][kept]).all()
    assert not (first.payload["y"][~kept] == second.payload["y"][~kept]).all()
    assert question.estimate(first).frequencies.keys() == {"a", "b", "c"}
    with pytest.raises(BudgetExceededError):
        question.randomize([["a"], ["b"], ["c"]])


def test_estimates_state_the_person_and_the_report() -> None:
    question = MemoizedQuestion(["a", "b"], epsilon=2, distinct=2, instantaneous=1)
    estimate = question.estimate(question.randomize([["a", "b"] * 100])[0])
    assert estimate.domain == ("a", "b")
    assert estimate.guarantee.brief() == "epsilon = 4 per person"
    assert estimate.notes[0].startswith("each single report alone: epsilon = 0.7")
    record = question.to_dict()
    assert record["instantaneous"]["name"] == record["permanent"]["name"] == "direct_encoding"
    assert MemoizedQuestion(2, epsilon=1, distinct=1).to_dict()["instantaneous"] is None


def test_bad_agreements_are_refused() -> None:
    given = SymmetricUnaryEncoding(domain=3, epsilon=1)
    with pytest.raises(ParameterError, match="leave out instantaneous"):
        MemoizedQuestion(given, epsilon=1, distinct=1, instantaneous=1)
    for bad in (0, None, "many"):
        with pytest.raises((ParameterError, ParameterTypeError), match="distinct"):
            MemoizedQuestion(2, epsilon=1, distinct=bad)  # type: ignore[arg-type]


def test_vectors_are_simulated_device_by_device() -> None:
    question = MemoizedQuestion(partial(DuchiVector, bounds=[(0, 1), (0, 1)]), epsilon=1, distinct=2)
    with pytest.raises(ParameterTypeError, match="one by one"):
        question.randomize([[[0.1, 0.2], [0.3, 0.4]]])
    means = question.estimate([question.enroll().report([0.1, 0.2]) for _ in range(20)])
    assert {each.guarantee for each in (means, *means)} == {question.guarantee}


def test_a_question_resumes_its_devices() -> None:
    question = MemoizedQuestion(list(range(50)), epsilon=1, distinct=1)
    device = question.enroll()
    first = device.report(7)
    again = question.resume(json.loads(json.dumps(device.to_dict())))
    assert isinstance(again, MemoizedDevice)
    assert again.report(7).y == first.y
    with pytest.raises(BudgetExceededError):
        again.report(8)
