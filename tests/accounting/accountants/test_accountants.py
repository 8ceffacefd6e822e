from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import example, given, settings, strategies as st

import cloister.accounting as accounting
from cloister.accounting import (
    Accountant,
    ApproxEvent,
    DiscreteGaussianEvent,
    DiscreteLaplaceEvent,
    Event,
    GaussianAccountant,
    GaussianEvent,
    LaplaceEvent,
    NumericalAccountant,
    PureAccountant,
    PureEvent,
    RenyiAccountant,
    RepeatedEvent,
    SequenceEvent,
    SubsampledEvent,
    ZeroConcentratedAccountant,
    ZeroConcentratedEvent,
    advanced,
    compare,
)
from cloister.accounting.accountants import accountant_named
from cloister.accounting.accountants.base import approx_loss, describe, tally
from cloister.core.guarantees import ApproxDP, PureDP
from cloister.errors import (
    AccountingError,
    InternalError,
    ParameterError,
    ParameterTypeError,
    UnsupportedEventError,
)
from tests.support.releases import composed

LAPLACE = RepeatedEvent(event=LaplaceEvent(noise_multiplier=10), count=100)
GAUSSIAN = RepeatedEvent(event=GaussianEvent(squared_multiplier=100), count=100)
OWN = ("pure", "zero_concentrated", "gaussian", "renyi", "numerical")

epsilons = st.fractions(min_value=Fraction(1, 100), max_value=2)
laplace_like = st.one_of(
    st.builds(PureEvent, epsilon=epsilons),
    st.builds(LaplaceEvent, noise_multiplier=epsilons),
    st.builds(DiscreteLaplaceEvent, scale=epsilons.map(lambda e: 20 * e), sensitivity=st.integers(1, 20)),
    st.builds(GaussianEvent, squared_multiplier=epsilons),
    st.builds(ApproxEvent, epsilon=epsilons, delta=st.just(Fraction(1, 10**9))),
)
workloads = st.lists(laplace_like, min_size=1, max_size=5)


def test_cdp_14_composition_targets() -> None:
    assert composed(LAPLACE, delta=0).epsilon == composed(LAPLACE).epsilon == 10
    assert float(advanced(PureDP(epsilon=0.1), count=100, slack=1e-6).epsilon) == pytest.approx(6.30823, abs=1e-5)
    assert float(composed(LAPLACE, delta=1e-6).epsilon) == pytest.approx(4.6927, abs=5e-5)
    simple = ZeroConcentratedAccountant(method="simple").epsilon(GAUSSIAN, delta=1e-5)
    assert float(simple) == pytest.approx(5.29853, abs=1e-5)
    assert float(composed(GAUSSIAN, delta=1e-5).epsilon) == pytest.approx(4.3772, abs=5e-5)
    assert float(NumericalAccountant().epsilon(GAUSSIAN, delta=1e-5)) == pytest.approx(4.3772, rel=1e-4)


def test_events_are_tallied_through_sequences_and_repetitions() -> None:
    one, two = PureEvent(epsilon=1), PureEvent(epsilon=2)
    nested = SequenceEvent(events=(one, RepeatedEvent(event=SequenceEvent(events=(one, two)), count=3)))
    assert tally([nested, [two], RepeatedEvent(event=one, count=0)]) == {one: 4, two: 4}
    assert tally(SubsampledEvent(rate=1, event=one)) == {one: 1}
    assert tally(SubsampledEvent(rate=0, event=one)) == {}
    counts = tally(one)
    assert tally(counts) is counts
    for wrong in ("events", {"schema": "x"}, 3):
        with pytest.raises(ParameterTypeError, match="PureEvent"):
            tally(wrong)  # type: ignore[arg-type]


@settings(max_examples=6)
@given(workloads, st.randoms())
def test_order_does_not_matter(events: list[Event], shuffler: Any) -> None:
    shuffled = list(events)
    shuffler.shuffle(shuffled)
    for name, epsilon in compare(events, delta=1e-6).items():
        assert float(compare(shuffled, delta=1e-6)[name]) == pytest.approx(float(epsilon), rel=2e-4)


@settings(max_examples=6)
@given(workloads)
def test_more_releases_never_lose_less(events: list[Event]) -> None:
    more = compare([*events, events[0]], delta=1e-6)
    for name, epsilon in compare(events, delta=1e-6).items():
        assert float(more[name]) >= float(epsilon) * (1 - 2e-4)


@settings(max_examples=6)
@example([PureEvent(epsilon=0.01), GaussianEvent(squared_multiplier=0.01)], "numerical")
@example([PureEvent(epsilon=0.01), LaplaceEvent(noise_multiplier=0.01)], "numerical")
@given(workloads, st.sampled_from(OWN))
def test_epsilon_and_delta_are_inverse(events: list[Event], name: str) -> None:
    accountant = accountant_named(name)
    if not all(accountant.supports(event) for event in events):
        return
    epsilon = accountant.epsilon(events, delta=1e-4)
    assert float(accountant.delta(events, epsilon=epsilon)) <= 1e-4 * 1.01
    assert accountant.delta(events, epsilon=0) >= accountant.delta(events, epsilon=epsilon)


@settings(max_examples=6)
@given(workloads)
def test_automatic_is_the_best_of_the_valid_ones(events: list[Event]) -> None:
    best = min(compare(events, delta=1e-6).values())
    assert float(composed(events, delta=1e-6).epsilon) <= float(best) * (1 + 1e-3)


@pytest.mark.parametrize("name", OWN)
def test_nothing_costs_nothing(name: str) -> None:
    accountant: Accountant = accountant_named(name)
    assert accountant.epsilon([], delta=1e-6) == 0
    assert accountant.delta([], epsilon=1) <= 0 or name == "renyi"
    assert composed([], delta=1e-6) == ApproxDP(epsilon=0, delta=1e-6)
    assert composed([]) == PureDP(epsilon=0)


def test_pure_sums() -> None:
    events = [ApproxEvent(epsilon=0.1, delta=1e-6), DiscreteLaplaceEvent(scale=10, sensitivity=2)] * 2
    accountant = PureAccountant()
    assert accountant.epsilon(events, delta=2e-6) == Fraction(6, 10)
    assert accountant.delta(events, epsilon=0.6) == Fraction(2, 10**6)
    with pytest.raises(AccountingError, match="delta above 2e-06"):
        accountant.epsilon(events, delta=1e-6)
    response = accountant.delta(PureEvent(epsilon=1), epsilon=0.5)
    assert float(response) == pytest.approx((math.e - math.exp(0.5)) / (1 + math.e), rel=1e-12)


def test_samples_cost_their_amplified_epsilon() -> None:
    sampled = SubsampledEvent(rate=0.1, event=ApproxEvent(epsilon=1, delta=1e-6))
    expected = math.log1p(0.1 * math.expm1(1))
    assert float(PureAccountant().epsilon(sampled, delta=1e-6)) == pytest.approx(expected)
    assert PureAccountant().delta(sampled, epsilon=1) == Fraction(1, 10**7)
    with pytest.raises(InternalError, match="no epsilon"):
        approx_loss(GaussianEvent(squared_multiplier=1))


def test_gaussians_are_one_gaussian() -> None:
    accountant = GaussianAccountant()
    several = [GaussianEvent(squared_multiplier=4), GaussianEvent(squared_multiplier="4/3")]
    together = accountant.epsilon(GaussianEvent(squared_multiplier=1), delta=1e-6)
    assert float(accountant.epsilon(several, delta=1e-6)) == pytest.approx(float(together), rel=1e-12)
    assert accountant.epsilon(several, delta=0.9) == 0
    assert accountant.delta(several, epsilon=1000) == 0
    with pytest.raises(ParameterError, match="delta"):
        accountant.epsilon(several, delta=0)


def test_discrete_gaussian_noise_is_accepted_when_wide_enough() -> None:
    accountant = GaussianAccountant()
    wide = DiscreteGaussianEvent(squared_sigma=64, squared_sensitivity=2)
    assert accountant.supports(wide)
    stand_in = GaussianEvent(squared_multiplier=30)
    epsilon = accountant.epsilon(wide, delta=1e-6)
    assert epsilon > accountant.epsilon(stand_in, delta=1e-6)
    assert float(epsilon) == pytest.approx(float(accountant.epsilon(stand_in, delta=1e-6)))
    assert accountant.delta(wide, epsilon=1) > accountant.delta(stand_in, epsilon=1)
    narrow = DiscreteGaussianEvent(squared_sigma=63, squared_sensitivity=2)
    with pytest.raises(UnsupportedEventError, match="use compose"):
        accountant.epsilon(narrow, delta=1e-6)
    found = composed(narrow, delta=1e-6).epsilon
    assert (
        found
        == ZeroConcentratedAccountant().epsilon(narrow, delta=1e-6)
        <= RenyiAccountant().epsilon(narrow, delta=1e-6)
    )


@pytest.mark.parametrize("distance", [1, 3])
def test_the_stand_in_of_discrete_gaussian_noise_dominates_it(distance: int) -> None:
    squared = 64.0
    support = range(-120, 121)
    weights = {k: math.exp(-k * k / (2 * squared)) for k in range(-130, 131)}
    total = math.fsum(weights.values())
    event = DiscreteGaussianEvent(squared_sigma=64, squared_sensitivity=distance**2)
    for epsilon in (0.0, 0.1, 0.3, 1.0):
        exact = math.fsum(
            max(0.0, weights[k] - math.exp(epsilon) * weights.get(k - distance, 0.0)) / total for k in support
        )
        assert exact * (1 - 1e-9) <= float(GaussianAccountant().delta(event, epsilon=epsilon))


def test_zero_concentrated_details() -> None:
    accountant = ZeroConcentratedAccountant()
    events = [
        ZeroConcentratedEvent(rho=0.1, delta=1e-7),
        DiscreteGaussianEvent(squared_sigma=10, squared_sensitivity=2),
        PureEvent(epsilon=1),
    ]
    assert accountant.rho(events).rho == Fraction(7, 10)
    assert accountant.rho(events).delta == Fraction(1, 10**7)
    assert accountant.delta(ZeroConcentratedEvent(rho=0, delta=0.1), epsilon=1) == Fraction(1, 10)
    with pytest.raises(ParameterError, match="fewer events"):
        accountant.rho([ZeroConcentratedEvent(rho=0.1, delta=0.5)] * 2)


def test_compose_answers_in_guarantees() -> None:
    promise = composed(LAPLACE, delta=1e-6, unit="patient", adjacency="user")
    assert isinstance(promise, ApproxDP)
    assert (promise.unit, promise.adjacency, promise.delta) == ("patient", "user", Fraction(1, 10**6))
    assert float(composed(LAPLACE, epsilon=promise.epsilon).delta) <= 1.001e-6
    assert composed(LAPLACE, delta=1e-6, accountant=PureAccountant()).epsilon == 10
    assert composed(LAPLACE, delta=1e-6, accountant="pure").epsilon == 10


@pytest.mark.parametrize(
    ("arguments", "fix"),
    [
        ({"delta": 1e-6, "epsilon": 1}, "leave one of them out"),
        ({"delta": 1e-6, "accountant": "renji"}, "auto, pure"),
        ({"delta": 1e-6, "adjacency": "neighbor"}, "add_remove"),
        ({"delta": 1}, "delta=1e-6"),
    ],
)
def test_compose_refuses_odd_questions(arguments: dict[str, Any], fix: str) -> None:
    with pytest.raises(ParameterError, match=fix):
        composed(LAPLACE, **arguments)


def test_compose_refuses_what_nobody_knows() -> None:
    sample_of_many = SubsampledEvent(rate=0.1, event=RepeatedEvent(event=PureEvent(epsilon=1), count=2))
    assert describe(sample_of_many) == "poisson_subsampled(repeated)"
    with pytest.raises(UnsupportedEventError, match="describe what ran"):
        composed(sample_of_many, delta=1e-6)
    with pytest.raises(UnsupportedEventError, match="give a delta, for example compose.*delta=1e-6"):
        composed(GAUSSIAN)
    with pytest.raises(AccountingError, match=r"delta above 0\.01"):
        composed([ZeroConcentratedEvent(rho=1, delta=1e-2)], delta=1e-6)
    with pytest.raises(AccountingError, match="delta above"):
        composed([ApproxEvent(epsilon=1, delta=1e-3)], delta=1e-6)
    with pytest.raises(AccountingError, match="larger epsilon"):
        composed(ZeroConcentratedEvent(rho=10**6), epsilon=0)


def test_samples_are_for_adding_and_removing() -> None:
    sampled = SubsampledEvent(rate=0.1, event=GaussianEvent(squared_multiplier=4))
    assert composed(sampled, delta=1e-6).epsilon > 0
    with pytest.raises(AccountingError, match="add_remove"):
        composed(sampled, delta=1e-6, adjacency="replace")


def test_automatic_asks_renyi_where_the_numerical_one_is_loose_or_silent() -> None:
    noise = LaplaceEvent(noise_multiplier=1)
    rates = [Fraction(1, 100 + place) for place in range(70)]
    sampled = [RepeatedEvent(event=SubsampledEvent(rate=rate, event=noise), count=15) for rate in rates]
    answers = compare(sampled, delta=1e-6)
    assert composed(sampled, delta=1e-6).epsilon == answers["renyi"] < answers["numerical"]
    extreme = [PureEvent(epsilon=30), RepeatedEvent(event=PureEvent(epsilon=1e-5), count=10**10)]
    assert "numerical" not in compare(extreme, delta=1e-6)
    assert composed(extreme, delta=1e-6).epsilon == RenyiAccountant().epsilon(extreme, delta=1e-6)


def test_the_public_surface_is_lazy_and_complete() -> None:
    for name in accounting.__all__:
        assert getattr(accounting, name) is not None
    assert dir(accounting) == sorted(accounting.__all__)
    with pytest.raises(AttributeError, match="nothing_here"):
        _ = accounting.nothing_here


def test_many_gaussian_releases_of_hardly_any_loss_still_lose_something() -> None:
    events = RepeatedEvent(event=GaussianEvent(squared_multiplier=Fraction(10) ** 326), count=10**300)
    for accountant in (GaussianAccountant(), RenyiAccountant()):
        assert accountant.delta(events, epsilon=0) >= Fraction(398, 10**16)
    assert GaussianAccountant().epsilon(events, delta=1e-15) > 0
    assert RenyiAccountant().divergence(events, order=2) >= Fraction(1, 10**26)


@pytest.mark.parametrize("squared", [Fraction(1, 10**13), Fraction(1, 10**400)])
def test_gaussian_releases_without_noise_are_refused(squared: Fraction) -> None:
    event = GaussianEvent(squared_multiplier=squared)
    for events in ([event], [event, PureEvent(epsilon=1)]):
        with pytest.raises(AccountingError, match="larger noise multiplier"):
            composed(events, delta=1e-6, accountant="gaussian" if len(events) == 1 else "numerical")


def test_a_sample_of_a_release_that_is_concentrated_only_up_to_delta_is_refused() -> None:
    rough = SubsampledEvent(rate=0.1, event=ZeroConcentratedEvent(rho=0.1, delta=1e-8))
    with pytest.raises(UnsupportedEventError, match="describe what ran"):
        composed(rough, delta=1e-6)
    assert composed(SubsampledEvent(rate=0.1, event=ZeroConcentratedEvent(rho=0.1)), delta=1e-6).epsilon > 0


def test_a_sample_of_an_approximate_release_is_bounded_by_its_amplified_epsilon() -> None:
    event = SubsampledEvent(rate=0.1, event=ApproxEvent(epsilon=1, delta=1e-9))
    as_pure = SubsampledEvent(rate=0.1, event=PureEvent(epsilon=1))
    divergence = RenyiAccountant().divergence(event, order=8)
    assert RenyiAccountant().divergence(as_pure, order=8) <= divergence <= approx_loss(event)[0]
    assert divergence == RenyiAccountant().divergence(PureEvent(epsilon=approx_loss(event)[0]), order=8)
