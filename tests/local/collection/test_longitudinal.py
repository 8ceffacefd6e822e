from __future__ import annotations

import functools
import itertools
import json
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from cloister.core import exact
from cloister.core.random import SeededRandomSource, random_source
from cloister.errors import (
    BudgetExceededError,
    ForeignReportError,
    OutsideDomainError,
    ParameterError,
    ParameterTypeError,
)
from cloister.local import DirectEncoding, DuchiVector, RepeatedQuestion, SquareWave
from cloister.local.collection.longitudinal import RepeatedDevice
from cloister.local.draws import SourceDraws, law_of


def law_of_life(question: RepeatedQuestion, life: tuple[int, ...]) -> dict[bytes, Fraction]:
    """The exact law of all reports that one device makes of a sequence of values."""

    def device(draws: Any) -> bytes:
        person = question.enroll()
        return b"".join(person.perturb(np.array([code]), draws).tobytes() for code in life)

    return law_of(device)


@pytest.mark.parametrize(("size", "times"), [(2, 1), (2, 3), (3, 2)])
def test_all_reports_together_cost_the_whole_budget(size: int, times: int) -> None:
    question = RepeatedQuestion(size, epsilon="1.5", times=times, protocol=DirectEncoding)
    laws = [law_of_life(question, life) for life in itertools.product(range(size), repeat=times)]
    worst = max(one[sent] / other[sent] for one in laws for other in laws for sent in one)
    low, high = exact.log_bounds(worst)
    assert Fraction(3, 2) - Fraction(1, 10**9) <= high
    assert low <= Fraction(3, 2)
    assert question.guarantee.epsilon == Fraction(3, 2)
    assert abs(question.epsilon_of() - Fraction(3, 2)) < Fraction(1, 10**9)


def test_the_report_after_the_last_is_refused() -> None:
    """LDP-17."""
    question = RepeatedQuestion(["no", "yes"], epsilon=2, times=4)
    assert question.protocol.epsilon == Fraction(1, 2)
    device = question.enroll()
    for left in (3, 2, 1, 0):
        device.report("yes")
        assert device.left == left
    with pytest.raises(BudgetExceededError, match="only 0 is left: all 4 reports") as caught:
        device.report("no")
    assert "a new budget" in caught.value.fix
    assert device.made == 4


def test_the_state_is_counted_on_after_it_was_stored() -> None:
    question = RepeatedQuestion(["no", "yes"], epsilon=2, times=2)
    device = question.enroll()
    device.report("yes")
    state = json.loads(json.dumps(device.to_dict()))
    assert "yes" not in json.dumps(state)
    again = RepeatedDevice.from_dict(question, state)
    again.report("no")
    with pytest.raises(BudgetExceededError):
        again.report("no")
    assert repr(again) == "RepeatedDevice(0 of 2 reports left)"


def test_states_of_other_questions_are_refused() -> None:
    question = RepeatedQuestion(2, epsilon=2, times=2)
    other = RepeatedQuestion(2, epsilon=2, times=3).enroll().to_dict()
    with pytest.raises(ForeignReportError, match="enrolled for"):
        RepeatedDevice.from_dict(question, other)
    for bad in ({}, None, "state", {**question.enroll().to_dict(), "schema": "x"}):
        with pytest.raises(ParameterTypeError, match="to_dict"):
            RepeatedDevice.from_dict(question, bad)  # type: ignore[arg-type]
    for made in (-1, None, "1"):
        with pytest.raises((ParameterError, ParameterTypeError), match="made"):
            RepeatedDevice.from_dict(question, {**question.enroll().to_dict(), "made": made})


def test_values_outside_of_the_domain_cost_nothing() -> None:
    device = RepeatedQuestion(["no", "yes"], epsilon=2, times=1).enroll()
    with pytest.raises(OutsideDomainError):
        device.report("perhaps")
    with pytest.raises(ParameterTypeError, match="one person"):
        device.report(["no", "yes"])
    assert device.left == 1


def test_estimates_state_both_readings() -> None:
    question = RepeatedQuestion(["no", "yes"], epsilon=2, times=4)
    reports = [question.enroll().report(value) for value in ["no", "yes"] * 50]
    estimate = question.estimate(reports)
    assert estimate.guarantee.brief() == "epsilon = 2 per person"
    assert "at most 4 reports" in estimate.guarantee.explain()
    assert estimate.notes == ("each single report alone: epsilon = 0.5",)
    assert question.report_guarantee.brief() == "epsilon = 0.5 per report"
    seeded = question.enroll().report("no", random_state=SeededRandomSource(1))
    assert not question.estimate([*reports, seeded]).guarantee.holds


def test_times_are_declared() -> None:
    for bad in (0, -1, 1.5, None):
        with pytest.raises((ParameterError, ParameterTypeError), match="times"):
            RepeatedQuestion(2, epsilon=1, times=bad)  # type: ignore[arg-type]
    with pytest.raises(ParameterError, match="epsilon"):
        RepeatedQuestion(2, epsilon=1, times=10**7)


def test_a_device_counts_every_report_that_it_makes() -> None:
    device = RepeatedQuestion(2, epsilon=1, times=2).enroll()
    with pytest.raises(ParameterTypeError, match="one value at a time"):
        device.perturb(np.array([0, 1, 1]), SourceDraws(random_source()))
    assert device.made == 0


def test_distributions_and_vectors_can_be_asked_repeatedly() -> None:
    wave = RepeatedQuestion(functools.partial(SquareWave, bounds=(0, 1)), epsilon=1, times=2)
    found = wave.estimate(wave.protocol.randomize([0.1, 0.7] * 50))
    assert found.guarantee == found.mean.guarantee == wave.guarantee
    vector = RepeatedQuestion(functools.partial(DuchiVector, bounds=[(0, 1), (0, 1)]), epsilon=1, times=2)
    means = vector.estimate(vector.protocol.randomize([[0.1, 0.7]] * 50))
    assert {each.guarantee for each in (means, *means)} == {vector.guarantee}


def test_a_question_resumes_its_devices() -> None:
    question = RepeatedQuestion(["no", "yes"], epsilon=1, times=3)
    device = question.enroll()
    device.report("yes")
    again = question.resume(device.to_dict())
    assert isinstance(again, RepeatedDevice)
    assert again.left == 2
    with pytest.raises(ForeignReportError):
        RepeatedQuestion(["no", "yes"], epsilon=1, times=9).resume(device.to_dict())
