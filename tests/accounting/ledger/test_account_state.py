from __future__ import annotations

from fractions import Fraction
from typing import Any

import pytest

from cloister.accounting import (
    ApproxEvent,
    Budget,
    DiscreteLaplaceEvent,
    Event,
    GaussianEvent,
    LaplaceEvent,
    PureEvent,
    RepeatedEvent,
    SequenceEvent,
    SubsampledEvent,
    ZeroConcentratedEvent,
    open_ledger,
)
from cloister.accounting.ledger import Ledger
from cloister.core.guarantees import (
    SEEDED_RANDOMNESS,
    Adjacency,
    ApproxDP,
    Guarantee,
    LocalDP,
    PureDP,
    RenyiDP,
    ZeroConcentratedDP,
)
from cloister.errors import (
    AccountingError,
    AccountMismatchError,
    BudgetExceededError,
    ParameterError,
    ParameterTypeError,
)
from cloister.mechanisms import DiscreteGaussian, Gaussian, Laplace
from cloister.mechanisms.calibration import NoiseCalibration

GAUSSIAN = GaussianEvent(squared_multiplier=100)  # (1, 1e-6)-private with a wide margin


@pytest.fixture
def ledger() -> Ledger:
    ledger = open_ledger("memory:")
    ledger.open_account("epsilon", budget=Budget(epsilon=10, delta=0.1), unit="patient")
    ledger.open_account("rho", budget=Budget(rho=10, delta=0.1), unit="patient")
    return ledger


@pytest.mark.parametrize(
    ("event", "cost"),
    [
        (PureEvent(epsilon=0.9), Budget(epsilon=0.9)),
        (LaplaceEvent(noise_multiplier=10), Budget(epsilon=0.1)),
        (DiscreteLaplaceEvent(scale=10, sensitivity=3), Budget(epsilon=0.3)),
        (ApproxEvent(epsilon=1, delta=1e-6), Budget(epsilon=1, delta=1e-6)),
        (RepeatedEvent(event=PureEvent(epsilon=0.3), count=3), Budget(epsilon=0.9)),
        (SequenceEvent(events=(PureEvent(epsilon=0.3), LaplaceEvent(noise_multiplier=10))), Budget(epsilon=0.4)),
        (GAUSSIAN, Budget(epsilon=1, delta=1e-6)),
        (SubsampledEvent(rate=0.5, event=GAUSSIAN), Budget(epsilon=0.5, delta=1e-6)),
        (SequenceEvent(events=(PureEvent(epsilon=0.5), GAUSSIAN)), Budget(epsilon=1.5, delta=1e-6)),
        (PureEvent(epsilon=1), Budget(rho=0.5)),
        (GAUSSIAN, Budget(rho=0.005)),
        (ZeroConcentratedEvent(rho=0.5, delta=1e-6), Budget(rho=0.5, delta=1e-6)),
        (ApproxEvent(epsilon=1, delta=1e-6), Budget(rho=0.5, delta=1e-6)),
    ],
)
def test_a_cost_must_cover_its_event(ledger: Ledger, event: Event, cost: Budget) -> None:
    tenth = Budget(**{cost.measure: cost.amount / 10}, delta=cost.delta)
    with pytest.raises(AccountingError, match="in place of the cost"):
        ledger.spend(cost.measure, cost=tenth, event=event)
    if cost.delta:
        with pytest.raises(AccountingError, match="in place of the cost"):
            ledger.spend(cost.measure, cost=Budget(**{cost.measure: cost.amount}), event=event)
    assert ledger.spent(cost.measure).amount == 0
    assert ledger.spend(cost.measure, cost=cost, event=event).cost == cost


@pytest.mark.parametrize(
    ("event", "cost"),
    [
        (SubsampledEvent(rate=0.1, event=GAUSSIAN), Budget(rho=9)),
        (SubsampledEvent(rate=0.1, event=RepeatedEvent(event=GAUSSIAN, count=2)), Budget(epsilon=9, delta=0.01)),
        (RepeatedEvent(event=ZeroConcentratedEvent(rho=0, delta=0.5), count=2), Budget(rho=9, delta=0.05)),
        (GaussianEvent(squared_multiplier=1e-9), Budget(epsilon=1, delta=0.01)),
    ],
)
def test_an_event_of_unknown_or_endless_cost_is_refused(ledger: Ledger, event: Event, cost: Budget) -> None:
    with pytest.raises(AccountingError, match="in place of the cost"):
        ledger.spend(cost.measure, cost=cost, event=event)


def test_a_sample_is_not_charged_to_an_account_under_replace(ledger: Ledger) -> None:
    ledger.open_account("replaced", budget=Budget(epsilon=1), adjacency=Adjacency.REPLACE)
    with pytest.raises(AccountingError, match="add_remove"):
        ledger.spend("replaced", cost=Budget(epsilon=1), event=SubsampledEvent(rate=0.1, event=PureEvent(epsilon=0.1)))


@pytest.mark.parametrize(
    ("guarantee", "cost"),
    [
        (PureDP(epsilon=1, unit="patient"), Budget(epsilon=1)),
        (ApproxDP(epsilon=1, delta=1e-6, unit="patient"), Budget(epsilon=1, delta=1e-6)),
        (PureDP(epsilon=1, unit="patient"), Budget(rho=0.5)),
        (ZeroConcentratedDP(rho=0.25, unit="patient"), Budget(rho=0.25)),
    ],
)
def test_a_guarantee_is_charged_by_its_numbers(ledger: Ledger, guarantee: Any, cost: Budget) -> None:
    assert ledger.spend(cost.measure, guarantee=guarantee).cost == cost
    assert ledger.spent(cost.measure) == cost


@pytest.mark.parametrize("dataset", ["epsilon", "rho"])
@pytest.mark.parametrize("epsilon", ["0.3", "1", "2.1828"])
def test_a_mechanism_is_charged_by_its_own_promise(ledger: Ledger, dataset: str, epsilon: str) -> None:
    for mechanism in (
        Laplace(epsilon=epsilon, sensitivity=1, unit="patient"),
        Gaussian(epsilon=epsilon, delta=1e-6, sensitivity=1, unit="patient"),
        Gaussian(epsilon=epsilon, delta=0.01, sensitivity=1, unit="patient"),
    ):
        receipt = ledger.spend(dataset, guarantee=mechanism.guarantee, event=mechanism.event)
        assert receipt.cost == Budget(**{dataset: 1}).cost_of(mechanism.guarantee)
    gaussian = DiscreteGaussian(rho=0.1, sensitivity=1, unit="patient")
    assert ledger.spend("rho", guarantee=gaussian.guarantee, event=gaussian.event).cost == Budget(rho=0.1)


@pytest.mark.parametrize(
    ("guarantee", "error", "fix"),
    [
        (PureDP(epsilon=1), AccountMismatchError, "unit='patient'"),
        (PureDP(epsilon=1, unit="patient", adjacency="replace"), AccountMismatchError, "adjacency='add_remove'"),
        (PureDP(epsilon=1, unit="patient", caveats=(SEEDED_RANDOMNESS,)), AccountingError, "such as a seed"),
        (ZeroConcentratedDP(rho=1, unit="patient"), AccountingError, "rho="),
        (RenyiDP(alpha=2, epsilon=1, unit="patient"), AccountingError, "release under epsilon"),
        (LocalDP(epsilon=1), ParameterTypeError, "mechanism.guarantee"),
        (PureDP(epsilon=0, unit="patient"), ParameterError, "above zero"),
        (PureDP(epsilon=11, unit="patient"), BudgetExceededError, "epsilon <= 10"),
    ],
)
def test_a_guarantee_that_does_not_fit_is_refused(
    ledger: Ledger, guarantee: Guarantee, error: type[Exception], fix: str
) -> None:
    with pytest.raises(error, match=fix):
        ledger.spend("epsilon", guarantee=guarantee)  # type: ignore[arg-type]
    assert ledger.spent("epsilon").amount == 0


def test_a_spend_takes_a_cost_or_a_guarantee(ledger: Ledger) -> None:
    for both in ({}, {"cost": Budget(epsilon=1), "guarantee": PureDP(epsilon=1, unit="patient")}):
        with pytest.raises(ParameterError, match="guarantee=mechanism.guarantee"):
            ledger.spend("epsilon", **both)  # type: ignore[arg-type]


@pytest.mark.parametrize("epsilon", [Fraction(1, 10), 1, 10])
@pytest.mark.parametrize("digits", [6, 9])
def test_the_largest_rho_of_a_guarantee_is_covered_by_it(epsilon: Fraction, digits: int) -> None:
    calibration = NoiseCalibration.of(epsilon=Fraction(epsilon), delta=Fraction(1, 10**digits))
    with open_ledger("memory:") as ledger:
        ledger.open_account("people", budget=Budget(epsilon=100, delta=Fraction(1, 2)))
        ledger.spend("people", guarantee=calibration.guarantee(), event=ZeroConcentratedEvent(rho=calibration.rho))
        assert ledger.spent("people").amount == epsilon
        with pytest.raises(AccountingError, match="takes more"):
            ledger.spend(
                "people", guarantee=calibration.guarantee(), event=ZeroConcentratedEvent(rho=calibration.rho * 2)
            )
