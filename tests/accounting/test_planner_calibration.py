from __future__ import annotations

import math
from fractions import Fraction

import pytest

from cloister.accounting import Event, GaussianEvent, PureEvent, RepeatedEvent, SequenceEvent, SubsampledEvent, planner
from cloister.accounting.conversions import gaussian_multiplier
from cloister.accounting.planner import calibrate_multiplier
from cloister.errors import AccountingError, ParameterError
from tests.support.releases import composed


def plain(squared: Fraction) -> Event:
    return GaussianEvent(squared_multiplier=squared)


def steps(squared: Fraction) -> Event:
    return RepeatedEvent(event=SubsampledEvent(rate=Fraction(1, 20), event=plain(squared)), count=100)


@pytest.mark.parametrize("epsilon", ["0.01", "1", "50"])
def test_one_release_needs_what_is_known_in_closed_form(epsilon: str) -> None:
    found = math.sqrt(calibrate_multiplier(plain, epsilon=Fraction(epsilon), delta=1e-6))
    known = float(gaussian_multiplier(Fraction(epsilon), 1e-6))
    assert known * (1 - 1e-12) <= found <= 1.001 * known


@pytest.mark.parametrize("epsilon", ["0.05", "1", "8"])
def test_the_plan_keeps_its_promise_and_wastes_little(epsilon: str) -> None:
    squared = calibrate_multiplier(steps, epsilon=Fraction(epsilon), delta=1e-6)
    assert composed(steps(squared), epsilon=Fraction(epsilon)).delta <= Fraction(1, 10**6)
    assert composed(steps(squared * Fraction(99, 100)), epsilon=Fraction(epsilon)).delta > Fraction(1, 10**6)


def test_what_no_noise_can_mend_is_refused() -> None:
    def spent(squared: Fraction) -> Event:
        return SequenceEvent(events=(PureEvent(epsilon=2), plain(squared)))

    with pytest.raises(ParameterError, match="larger epsilon"):
        calibrate_multiplier(spent, epsilon=1, delta=1e-6)


def test_hardly_any_noise_is_not_searched_for() -> None:
    assert calibrate_multiplier(plain, epsilon=10**4, delta=0.1) <= Fraction(1, 60)


def test_bad_numbers_are_refused() -> None:
    with pytest.raises(ParameterError, match="delta"):
        calibrate_multiplier(plain, epsilon=1, delta=0)


def test_a_search_that_is_cut_short_errs_towards_more_noise(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(planner, "_MOST_TRIALS", 1)
    squared = calibrate_multiplier(steps, epsilon=1, delta=1e-6)
    assert composed(steps(squared), epsilon=1).delta <= Fraction(1, 10**6)


def test_noise_that_no_accountant_answers_for_is_too_little() -> None:
    def demanding(squared: Fraction) -> Event:
        if squared < 100:
            raise AccountingError("There is too little noise to tell.", fix="use more noise.")
        return plain(squared)

    assert 100 <= calibrate_multiplier(demanding, epsilon=1, delta=1e-6) < 110
