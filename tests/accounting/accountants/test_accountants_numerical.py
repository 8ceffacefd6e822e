from __future__ import annotations

import itertools
import math
from contextlib import suppress
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import example, given, settings, strategies as st

from cloister.accounting import (
    ApproxEvent,
    DiscreteGaussianEvent,
    DiscreteLaplaceEvent,
    Event,
    GaussianAccountant,
    GaussianEvent,
    LaplaceEvent,
    NumericalAccountant,
    PureEvent,
    RepeatedEvent,
)
from cloister.accounting.accountants import _loss_grid as loss_grid, numerical
from cloister.accounting.accountants._dominating_pairs import CONTINUOUS, LaplaceLike, atoms
from cloister.errors import AccountingError
from tests.support.releases import composed
from tests.support.thoroughness import examples

Pair = list[tuple[Fraction, Fraction]]
"""Outputs of a finite mechanism on two neighbors: probabilities under the one and the other."""


def exact_pair(decay: Fraction, steps: int) -> Pair:
    """The discrete Laplace mechanism, outputs with the same ratio merged; decay is exp(-epsilon/steps)."""
    forward = [1 / (1 + decay), *((1 - decay) / (1 + decay) * decay**m for m in range(1, steps))]
    forward.append(decay**steps / (1 + decay))
    return list(zip(forward, reversed(forward), strict=True))


def product(*pairs: Pair) -> Pair:
    return [
        (math.prod(p for p, _ in outputs), math.prod(q for _, q in outputs)) for outputs in itertools.product(*pairs)
    ]


def hockey_stick(pair: Pair, factor: Fraction) -> Fraction:
    return sum((max(Fraction(0), p - factor * q) for p, q in pair), Fraction(0))


def loss_of(steps: int, unit: float) -> list[tuple[float, float]]:
    decay = math.exp(-unit)
    middle = [(1 - decay) / (1 + decay) * decay**m for m in range(1, steps)]
    chances = [1 / (1 + decay), *middle, decay**steps / (1 + decay)]
    return [(unit * (steps - 2 * m), chance) for m, chance in enumerate(chances)]


def brute_force_delta(events: list[DiscreteLaplaceEvent], epsilon: float) -> float:
    # Wide sums, rounded once: a loss of exactly epsilon must not come out above it.
    losses, chances = np.zeros(1, dtype=np.longdouble), np.ones(1)
    for event in events:
        values, weights = np.transpose(loss_of(event.sensitivity, float(1 / event.scale)))
        losses, chances = np.add.outer(losses, values).ravel(), np.outer(chances, weights).ravel()
    beyond = np.minimum(0, epsilon - losses.astype(float))
    return math.fsum(chances * -np.expm1(beyond))


@pytest.mark.parametrize("decay", [Fraction(1, 2), Fraction(9, 10), Fraction(1, 100)])
def test_pairs_are_distributions(decay: Fraction) -> None:
    for steps in (1, 2, 7):
        pair = exact_pair(decay, steps)
        assert sum(p for p, _ in pair) == 1
        assert all(p / q == decay ** (2 * m - steps) for m, (p, q) in enumerate(pair))


@pytest.mark.parametrize("decay", [Fraction(1, 2), Fraction(9, 10), Fraction(1, 100)])
@pytest.mark.parametrize("split", [(1, 1), (1, 2), (2, 2), (1, 4), (1, 1, 1), (2, 1, 3), (5, 3)])
def test_noise_on_a_vector_is_dominated_by_noise_on_a_scalar(decay: Fraction, split: tuple[int, ...]) -> None:
    whole = sum(split)
    spread = product(*(exact_pair(decay, steps) for steps in split))
    for power in range(-whole, whole + 1):
        factor = decay**power
        assert hockey_stick(spread, factor) <= hockey_stick(exact_pair(decay, whole), factor)


@pytest.mark.parametrize("decay", [Fraction(1, 2), Fraction(9, 10)])
def test_two_coordinates_have_the_stated_curve(decay: Fraction) -> None:
    for first, second in itertools.product(range(1, 5), repeat=2):
        pair = product(exact_pair(decay, first), exact_pair(decay, second))
        for m in range((first + second) // 2 + 1):
            factor = decay ** (2 * m - first - second)
            share = min(m, first, second) * (1 - decay) / (1 + decay)
            assert hockey_stick(pair, factor) == 1 - decay**m * (1 + share)


@pytest.mark.parametrize("decay", [Fraction(1, 2), Fraction(9, 10)])
def test_closer_neighbors_and_finer_lattices_lose_less(decay: Fraction) -> None:
    for power in range(-13, 14):
        factor = decay ** Fraction(power).numerator
        for steps in range(1, 6):
            assert hockey_stick(exact_pair(decay, steps), factor) <= hockey_stick(exact_pair(decay, steps + 1), factor)
            for times in (2, 3):
                fine, coarse = exact_pair(decay, steps * times), exact_pair(decay**times, steps)
                assert hockey_stick(fine, factor) <= hockey_stick(coarse, factor)


def test_the_same_lattice_with_more_epsilon_loses_more() -> None:
    for steps in range(1, 6):
        for power in range(-26, 27):
            factor = Fraction(1, 2) ** power
            weak, strong = exact_pair(Fraction(1, 2), steps), exact_pair(Fraction(1, 8), steps)
            assert hockey_stick(weak, factor) <= hockey_stick(strong, factor)


@pytest.mark.parametrize("epsilon", [1e-200, 1e-9, 1e3, 1e6])
@pytest.mark.parametrize("steps", [1, 7, CONTINUOUS])
def test_extreme_sizes_are_handled(epsilon: float, steps: int) -> None:
    size = Fraction(epsilon)
    kind: dict[int, Event] = {
        1: PureEvent(epsilon=size),
        7: DiscreteLaplaceEvent(scale=7 / size, sensitivity=7),
        CONTINUOUS: LaplaceEvent(noise_multiplier=1 / size),
    }
    for count in (1, 1000):
        events = RepeatedEvent(event=kind[steps], count=count)
        assert count * epsilon * 0.1 <= float(composed(events, delta=1e-6).epsilon) <= count * epsilon or epsilon < 1e-6
        with suppress(AccountingError):
            assert 0 <= NumericalAccountant().delta(events, epsilon=1) <= 1
    assert NumericalAccountant().epsilon(GaussianEvent(squared_multiplier=10**300), delta=1e-6) < 1e-6


def test_continuous_noise_is_dominated_by_any_lattice() -> None:
    for steps in (1, 2, 5, 50):
        losses, chances = atoms(LaplaceLike(1.0, steps))
        for t in np.linspace(-1, 1, 41):
            lattice = float(np.sum(chances * np.maximum(0, -np.expm1(t - losses))))
            assert lattice >= -math.expm1((t - 1) / 2) - 1e-15


@settings(max_examples=examples(150, usual=60))
@example(
    [DiscreteLaplaceEvent(scale=Fraction(1, 2), sensitivity=1), DiscreteLaplaceEvent(scale=11, sensitivity=1)],
    0.99609375,
)
@given(
    st.lists(
        st.builds(
            DiscreteLaplaceEvent,
            scale=st.fractions(min_value=Fraction(1, 2), max_value=20, max_denominator=100),
            sensitivity=st.integers(1, 5),
        ),
        min_size=1,
        max_size=4,
    ),
    st.floats(0, 1),
)
def test_never_below_enumeration_and_close_to_it(events: list[DiscreteLaplaceEvent], share: float) -> None:
    most = float(sum(event.epsilon for event in events))
    epsilon = share * most
    exact = brute_force_delta(events, epsilon)
    accountant = NumericalAccountant()
    assert float(accountant.delta(events, epsilon=epsilon)) >= exact * (1 - 1e-12)
    if 1e-9 < exact < 0.9:
        found = float(accountant.epsilon(events, delta=exact))
        assert brute_force_delta(events, found) <= exact * (1 + 1e-9)
        assert found <= epsilon + 2e-3 * most


@pytest.mark.parametrize("delta", [1e-3, 1e-9, 1e-30, 1e-80])
@pytest.mark.parametrize("count", [1, 10, 10_000])
def test_gaussian_noise_agrees_with_the_closed_form_at_any_depth(delta: float, count: int) -> None:
    events = RepeatedEvent(event=GaussianEvent(squared_multiplier=25), count=count)
    exact = float(GaussianAccountant().epsilon(events, delta=delta))
    assert 1 <= float(NumericalAccountant().epsilon(events, delta=delta)) / exact < 1.001
    assert 1 <= float(NumericalAccountant().delta(events, epsilon=exact)) / delta < 1.05


@pytest.mark.parametrize("delta", [0.3, 1e-2, 1e-6])
def test_one_laplace_release_agrees_with_its_profile(delta: float) -> None:
    exact = 2 + 2 * math.log1p(-delta)
    found = float(NumericalAccountant().epsilon(LaplaceEvent(noise_multiplier=0.5), delta=delta))
    assert exact <= found <= exact + 1e-3


@pytest.mark.parametrize("epsilon", [0.5, 2, 8])
@pytest.mark.parametrize("delta", [0.3, 0.1, 1e-2, 1e-4, 1e-8])
def test_one_coin_flip_agrees_with_its_profile(epsilon: float, delta: float) -> None:
    exact = max(0.0, math.log(max(1.0, math.exp(epsilon) - delta * (1 + math.exp(epsilon)))))
    found = float(NumericalAccountant().epsilon(PureEvent(epsilon=epsilon), delta=delta))
    assert exact - 1e-12 <= found <= exact + 1e-3


def test_many_coin_flips_agree_with_the_binomial_distribution() -> None:
    from scipy.special import gammaln

    count, unit = 10_000, 0.05
    truth = 1 / (1 + math.exp(-unit))
    heads = np.arange(count + 1)
    log_chances = gammaln(count + 1) - gammaln(heads + 1) - gammaln(count - heads + 1)
    log_chances = log_chances + heads * math.log(truth) + (count - heads) * math.log1p(-truth)
    events = RepeatedEvent(event=PureEvent(epsilon="0.05"), count=count)
    for epsilon in (20.0, 35.0, 60.0):
        gains = np.maximum(0, -np.expm1(np.minimum(0, epsilon - unit * (2 * heads - count))))
        exact = float(np.sum(np.exp(log_chances) * gains))
        assert 1 <= float(NumericalAccountant().delta(events, epsilon=epsilon)) / exact < 1.01


def test_slack_of_approximate_releases_is_added() -> None:
    plain, rough = PureEvent(epsilon=0.1), ApproxEvent(epsilon=0.1, delta=1e-8)
    accountant = NumericalAccountant()
    with_slack = accountant.delta([rough] * 10, epsilon=0.5)
    assert float(with_slack - accountant.delta([plain] * 10, epsilon=0.5)) == pytest.approx(1e-7)
    assert accountant.delta([rough] * 10, epsilon=1.01) == Fraction(1, 10**7)
    assert accountant.delta([rough, PureEvent(epsilon=0)], epsilon=1) == Fraction(1, 10**8)
    assert accountant.epsilon([rough] * 10, delta=1e-6) > accountant.epsilon([plain] * 10, delta=1e-6)
    for delta in (1e-7, 1e-9):
        with pytest.raises(AccountingError, match="delta above 1e-07"):
            accountant.epsilon([rough] * 10, delta=delta)


def test_lattice_gaussians_carry_their_slack() -> None:
    event = DiscreteGaussianEvent(squared_sigma=1000, squared_sensitivity=1)
    accountant = NumericalAccountant()
    assert 1 <= accountant.epsilon(event, delta=1e-6) / GaussianAccountant().epsilon(event, delta=1e-6) < 1.001
    assert accountant.epsilon(event, delta=0.9) == GaussianAccountant().epsilon(event, delta=0.9)
    assert accountant.epsilon(PureEvent(epsilon=0.1), delta=0.9) == 0


def test_nothing_is_claimed_below_the_window() -> None:
    tilted = loss_grid.Tilted(0.0, 0.0, 10, 0.1, np.array([0.5, 0.5]), 0.0, 0.0)
    assert tilted.delta(0.5) == 1
    assert tilted.delta(1.05) == pytest.approx(0.5 * -math.expm1(-0.05))


def test_a_window_that_is_too_narrow_grows(monkeypatch: pytest.MonkeyPatch) -> None:
    events = [LaplaceEvent(noise_multiplier=10)] * 100
    usual = NumericalAccountant().epsilon(events, delta=1e-6)
    monkeypatch.setattr(numerical, "_REACH", 0.01)
    assert float(NumericalAccountant().epsilon(events, delta=1e-6)) == pytest.approx(float(usual), rel=1e-6)


def test_losses_far_below_the_mean_are_counted() -> None:
    events = RepeatedEvent(event=PureEvent(epsilon=1), count=1000)
    assert 0.99 < float(NumericalAccountant().delta(events, epsilon=10)) <= 1


def test_too_small_a_delta_is_refused() -> None:
    with pytest.raises(AccountingError, match="delta above 1e-100"):
        NumericalAccountant().epsilon(PureEvent(epsilon=1), delta=1e-200)


def test_workloads_that_need_too_fine_a_grid_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    accountant = NumericalAccountant()
    with pytest.raises(AccountingError, match='accountant="renyi"'):
        accountant.epsilon(RepeatedEvent(event=PureEvent(epsilon=0.1), count=10**10), delta=1e-6)
    monkeypatch.setattr(loss_grid, "LARGEST_TRANSFORM", 20)
    for event in (GaussianEvent(squared_multiplier=1), LaplaceEvent(noise_multiplier=1)):
        with pytest.raises(AccountingError, match='accountant="renyi"'):
            accountant.epsilon([event] * 100, delta=1e-6)


def many(kind: str, count: int = 300) -> list[Event]:
    scales = [Fraction(500 + 37 * i, 50) for i in range(count)]
    match kind:
        case "laplace":
            return [LaplaceEvent(noise_multiplier=scale) for scale in scales]
        case "lattice":
            return [DiscreteLaplaceEvent(scale=100 * scale, sensitivity=100 + i % 7) for i, scale in enumerate(scales)]
        case "coarse":
            return [DiscreteLaplaceEvent(scale=scale, sensitivity=1 + i % 3) for i, scale in enumerate(scales)]
        case _:
            return [PureEvent(epsilon=1 / scale) for scale in scales]


@pytest.mark.parametrize("kind", ["laplace", "lattice", "coarse", "pure"])
def test_thinning_costs_little_and_never_helps(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    events = many(kind)
    thinned = float(NumericalAccountant().epsilon(events, delta=1e-6))
    monkeypatch.setattr(numerical, "MOST_GROUPS", 1000)
    exact = float(NumericalAccountant().epsilon(events, delta=1e-6))
    assert 0.9995 <= thinned / exact <= 1.02


def test_merging_steps_dominates() -> None:
    assert LaplaceLike(1.0, 5).with_steps_near(10) == LaplaceLike(1.0, 5)
    assert LaplaceLike(1.0, CONTINUOUS).with_steps_near(10) == LaplaceLike(1.0, 10)
    merged = LaplaceLike(1.0, 1001).with_steps_near(64)
    assert 32 < merged.steps <= 64
    assert 1 <= merged.epsilon < 1.02


def test_mixed_workloads_are_at_least_as_bad_as_their_parts() -> None:
    mixed = [*many("laplace", 100), *[GaussianEvent(squared_multiplier=900)] * 100, PureEvent(epsilon=0.01)]
    whole = composed(mixed, delta=1e-6).epsilon
    assert whole > composed(mixed[:100], delta=1e-6).epsilon
    assert whole > composed(mixed[100:200], delta=1e-6).epsilon
    assert whole < composed(mixed, delta=1e-6, accountant="renyi").epsilon


def test_a_tiny_gaussian_beside_large_releases_is_rounded_up() -> None:
    events = [
        RepeatedEvent(event=LaplaceEvent(noise_multiplier=1), count=100),
        GaussianEvent(squared_multiplier=10**24),
    ]
    alone = NumericalAccountant().epsilon(events[:1], delta=1e-6)
    assert 1 <= NumericalAccountant().epsilon(events, delta=1e-6) / alone < 1.001
