from __future__ import annotations

import json
import math
from collections.abc import Callable
from fractions import Fraction
from functools import cache
from typing import Any

import numpy as np
import pytest
from hypothesis import given, strategies as st
from scipy.special import bdtr, gammainc

from cloister.accounting.events import DiscreteLaplaceEvent, GaussianEvent, PureEvent
from cloister.core import exact
from cloister.core.guarantees import ApproxDP, PureDP, ZeroConcentratedDP
from cloister.core.random import SeededRandomSource, SystemRandomSource
from cloister.errors import CloisterError, ParameterError, ParameterTypeError
from cloister.mechanisms import (
    AdditiveNoise,
    ApproximateLaplace,
    ClampedLaplace,
    DiscreteGaussian,
    DiscreteLaplace,
    Gaussian,
    Laplace,
    Mechanism,
    Select,
    Staircase,
    TruncatedLaplace,
    VectorLaplace,
    mechanisms,
    truncated_laplace_scale,
)
from cloister.mechanisms.laplace import discrete_laplace_delta
from cloister.mechanisms.lattice import NoiseLattice, steps_apart_l1, steps_apart_l2
from cloister.mechanisms.sampling import coins
from cloister.mechanisms.sampling.discrete_noise import discrete_gaussian
from cloister.mechanisms.sampling.inversion import FixedPointInterval
from cloister.mechanisms.step_noise import gaussian_half_width, laplace_half_width
from cloister.testing import distributions, statistics
from tests.support.thoroughness import audited

SOURCE = SystemRandomSource()

EVERY: list[Any] = [
    DiscreteLaplace(sensitivity=1, epsilon=0.5),
    Laplace(sensitivity=3, epsilon=0.5),
    DiscreteGaussian(sensitivity=1, rho=0.05),
    Gaussian(sensitivity=3, epsilon=0.5, delta=1e-6),
    Gaussian(sensitivity=3, epsilon=0.5, delta=1e-6, calibration="classic"),
    ApproximateLaplace(sensitivity=3, epsilon=0.5, delta=0.01),
    ApproximateLaplace(sensitivity=3, epsilon=0.5, delta=0.01, mode="generic"),
    Staircase(sensitivity=3, epsilon=0.5),
    Staircase(sensitivity=3, epsilon=3, gamma=0.3),
    ClampedLaplace(sensitivity=3, epsilon=0.5, bounds=(-1000, 1000)),
    TruncatedLaplace(sensitivity=3, epsilon=0.5, bounds=(0, 1000)),
    TruncatedLaplace(sensitivity=3, epsilon=0.5, delta=0.01, bounds=(0, 1000)),
    VectorLaplace(sensitivity=3, epsilon=0.5),
]


def _id(mechanism: Any) -> str:
    return type(mechanism).__name__


@pytest.mark.parametrize("mechanism", EVERY, ids=_id)
def test_an_answer_carries_its_guarantee_margin_and_event(mechanism: Any) -> None:
    assert isinstance(mechanism, Mechanism)
    assert isinstance(mechanism, AdditiveNoise)
    answer = mechanism.release(500)
    assert answer.guarantee == mechanism.guarantee
    assert answer.guarantee.holds
    assert answer.event == mechanism.event
    assert 0 < answer.margin(0.5) <= answer.margin(0.95) <= answer.margin(0.99)
    assert "±" in str(answer)
    low, high = answer.interval(0.95)
    assert low < answer.value < high
    exported = json.loads(json.dumps(answer.to_dict()))
    assert exported["schema"] == "cloister.answer/1"
    assert exported["mechanism"] == type(mechanism).__name__


@pytest.fixture
def kept_powers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let thousands of truncated draws compute each exponential once."""
    monkeypatch.setattr(FixedPointInterval, "exp_of_minus", cache(FixedPointInterval.exp_of_minus))


@pytest.mark.statistical
@pytest.mark.usefixtures("kept_powers")
@pytest.mark.parametrize("mechanism", EVERY, ids=_id)
def test_margins_cover_and_standard_deviations_are_right(mechanism: Any) -> None:
    size = 4000 if isinstance(mechanism, TruncatedLaplace) else 20_000
    errors = _errors(mechanism, size)
    for confidence in (0.5, 0.95):
        inside = int((np.abs(errors) <= mechanism.margin(confidence)).sum())
        assert bdtr(inside, size, confidence) > statistics.FALSE_ALARM
    tolerance = 0.35 if size == 4000 else 0.12
    assert errors.std() == pytest.approx(mechanism.standard_deviation, rel=tolerance)


def _errors(mechanism: Any, size: int) -> Any:
    if isinstance(mechanism, TruncatedLaplace):
        place = mechanism._step_of(500)
        return np.array([mechanism._draw(SOURCE, place) for _ in range(size)]) * float(mechanism.granularity) - 500
    granularity = 1 if isinstance(mechanism, DiscreteLaplace | DiscreteGaussian) else mechanism.lattice.granularity
    return mechanism._sampler().draw(SOURCE, size) * float(granularity)


@pytest.mark.parametrize("mechanism", EVERY, ids=_id)
def test_a_seed_repeats_and_taints(mechanism: Any) -> None:
    first = mechanism.release(500, random_state=SeededRandomSource(3))
    second = mechanism.release(500, random_state=SeededRandomSource(3))
    assert first.value == second.value
    assert not first.guarantee.holds


@pytest.mark.parametrize("mechanism", EVERY, ids=_id)
@pytest.mark.parametrize("bad", [math.nan, math.inf, "many", None])
def test_odd_values_are_refused_without_quoting_them(mechanism: Any, bad: object) -> None:
    with pytest.raises(CloisterError, match="Fix:"):
        mechanism.release(bad)


@pytest.mark.statistical
@pytest.mark.parametrize(
    ("mechanism", "law", "scale"),
    [
        (EVERY[1], distributions.laplace, 6.0),
        (EVERY[3], distributions.gaussian, EVERY[3].standard_deviation),
        (EVERY[5], distributions.laplace, EVERY[5].scale),
        (EVERY[12], distributions.laplace, 6.0),
    ],
    ids=["laplace", "gaussian", "approximate", "vector of one"],
)
def test_fine_lattices_follow_the_continuous_law(mechanism: Any, law: Any, scale: float) -> None:
    statistics.check_scale(lambda size: _errors(mechanism, size), law, scale=scale)


@pytest.mark.statistical
@pytest.mark.parametrize("gamma", [None, 0.3])
def test_the_staircase_follows_its_law(gamma: float | None) -> None:
    mechanism = Staircase(sensitivity=2, epsilon=1, gamma=gamma)
    share = mechanism.high_steps / mechanism.steps_apart

    def law(scale: float) -> distributions.Distribution:
        return distributions.continuous(lambda values: _staircase_cdf(np.asarray(values) / scale, share, 1.0))

    statistics.check_scale(lambda size: _errors(mechanism, size), law, scale=2.0)


def _staircase_cdf(values: Any, share: float, epsilon: float) -> Any:
    fall = math.exp(-epsilon)
    magnitude = np.abs(values)
    stair = np.floor(magnitude)
    place = magnitude - stair
    high, low = share, (1 - share) * fall
    within = np.where(place <= share, place, share + (place - share) * fall) / (high + low)
    inside = 1 - fall**stair + fall**stair * (1 - fall) * within
    return 0.5 + np.sign(values) * inside / 2


def test_the_vector_noise_has_uniform_direction_and_gamma_length() -> None:
    mechanism = VectorLaplace(sensitivity=1, epsilon=1, dimensions=4)
    draws = _errors(mechanism, 80_000).reshape(-1, 4)
    statistics.check_distribution(
        np.sqrt((draws**2).sum(axis=1)), distributions.continuous(lambda r: gammainc(4, np.maximum(r, 0)))
    )
    angle = np.arctan2(draws[:, 0], draws[:, 1])
    statistics.check_distribution(angle, distributions.uniform(-math.pi, math.pi))


@pytest.mark.statistical
def test_the_exact_decision_has_the_same_law_as_the_float_filter(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(coins, "MARGIN", 2.0)
    vectors = _errors(VectorLaplace(sensitivity=1, epsilon=1, dimensions=2), 1000).reshape(-1, 2)
    lengths = np.sqrt((vectors**2).sum(axis=1))
    statistics.check_distribution(lengths, distributions.continuous(lambda r: gammainc(2, np.maximum(r, 0))))
    counts = discrete_gaussian(Fraction(500) ** 2).draw(SOURCE, 1000)
    statistics.check_distribution(counts, distributions.gaussian(500.0))
    chooser = Select(candidates=("a", "b"), score_sensitivity=1, epsilon=2)
    wins = sum(chooser.release([1, 0]).index == 0 for _ in range(500))
    likely = 1 - math.exp(-1) / 2
    assert abs(wins - 500 * likely) < 6.2 * math.sqrt(500 * likely * (1 - likely))


@pytest.mark.parametrize(
    ("mechanism", "margin"),
    [
        (DiscreteLaplace(sensitivity=1, epsilon=0.5), "± 6 (95%)"),
        (Laplace(sensitivity=1, epsilon=1), "± 3.0 (95%)"),
        (Laplace(sensitivity=1000, epsilon=1), "± 2,996 (95%)"),
    ],
)
def test_answers_print_as_many_digits_as_they_deserve(mechanism: Any, margin: str) -> None:
    assert margin in str(mechanism.release(5000))


def test_vectors_in_vectors_out() -> None:
    answer = Laplace(sensitivity=1, epsilon=1, dimensions=8).release(np.arange(8.0))
    assert answer.value.shape == (8,)
    assert "..." in str(answer)
    assert len(answer.to_dict()["value"]) == 8
    counts = DiscreteLaplace(sensitivity=1, epsilon=1).release([[1, 2], [3, 4]])
    assert counts.value.shape == (2, 2)
    assert str(counts).startswith("[")
    exact_vector = VectorLaplace(sensitivity=1, epsilon=1, dimensions=3).release([1.0, 2.0, 3.0])
    assert exact_vector.value.shape == (3,)


def test_a_wrong_number_of_coordinates_is_refused() -> None:
    with pytest.raises(ParameterError, match="dimensions=3"):
        Laplace(sensitivity=1, epsilon=1).release([1.0, 2.0, 3.0])


def test_integer_noise_refuses_reals() -> None:
    with pytest.raises(ParameterTypeError, match="use the Laplace or Gaussian mechanism"):
        DiscreteLaplace(sensitivity=1, epsilon=1).release(1.5)
    with pytest.raises(ParameterTypeError, match="pass integers or floats"):
        DiscreteLaplace(sensitivity=1, epsilon=1).release(np.array([1, None], dtype=object))


@pytest.mark.parametrize("value", [10**30, np.uint64(2**64 - 1), -(2**63)])
def test_huge_integers_keep_their_digits(value: Any) -> None:
    answer = DiscreteLaplace(sensitivity=1, epsilon=1).release(value)
    assert abs(answer.value - int(value)) < 1000
    assert isinstance(answer.value, int)


@pytest.mark.parametrize("value", [1e13, 1e300, -1e308, 2**70, 2**60])
@pytest.mark.parametrize("epsilon", [1, 1000])
def test_huge_reals_keep_their_digits(value: float, epsilon: int) -> None:
    answer = Laplace(sensitivity=1, epsilon=epsilon).release(value)
    assert answer.value == pytest.approx(float(value), rel=1e-12)


def test_the_largest_float_does_not_overflow() -> None:
    answer = Laplace(sensitivity=1e300, epsilon=1e-9).release([1.7e308])
    assert np.isfinite(answer.value).all()


@pytest.mark.parametrize("epsilon", [1e-13, 1e-20, 1e-30])
def test_tiny_epsilons_give_huge_noise_and_no_error(epsilon: float) -> None:
    for mechanism in (
        Laplace(sensitivity=1, epsilon=epsilon),
        Staircase(sensitivity=1, epsilon=epsilon),
        DiscreteLaplace(sensitivity=1, epsilon=epsilon),
    ):
        values = [abs(float(mechanism.release(0).value)) for _ in range(200)]
        assert 0.3 < np.mean(values) * epsilon < 3


HALVES = [(0.5, 1.5), (-0.5, 0.5), (1.5, 2.5), (-2.5, -1.5)]


@pytest.mark.parametrize(("first", "second"), HALVES)
def test_neighbors_at_half_steps_stay_within_the_stated_steps(first: float, second: float) -> None:
    for mechanism in (
        Laplace(sensitivity=1, epsilon=1, granularity=1),
        Gaussian(sensitivity=1, epsilon=1, delta=1e-5, granularity=1),
    ):
        assert abs(int(mechanism._to_steps(first)) - int(mechanism._to_steps(second))) == 1
    truncated = TruncatedLaplace(bounds=(0, 16384), sensitivity=1, epsilon=1)
    assert abs(truncated._step_of(first + 10) - truncated._step_of(second + 10)) == 1


@given(st.integers(min_value=-(2**70), max_value=2**70), st.integers(min_value=0, max_value=3))
def test_neighboring_integers_stay_within_the_stated_steps(value: int, power: int) -> None:
    mechanism = Laplace(sensitivity=2, epsilon=1, granularity=2**power)
    apart = int(mechanism._to_steps(value + 2)) - int(mechanism._to_steps(value))
    assert 0 <= apart <= mechanism.steps_apart


@pytest.mark.parametrize("base", [2**53 + 1, 2**63 + 1024, 2**70])
@pytest.mark.parametrize("other", [-1, 0.5])
def test_neighbors_in_lists_are_not_rounded_apart(base: int, other: float) -> None:
    mechanism = Laplace(sensitivity=1, epsilon=1, dimensions=2)
    here, there = (mechanism._to_steps([base + step, other]) for step in (0, 1))
    assert int(there[0]) - int(here[0]) == 1 / mechanism.lattice.granularity
    assert here[1] == there[1]


@pytest.mark.parametrize("zero", [0, 0.0, [0]])
def test_zero_at_a_tiny_granularity_is_like_any_other_value(zero: Any) -> None:
    for mechanism in (Laplace(sensitivity=1e-13, epsilon=1), Staircase(sensitivity=1e-14, epsilon=1)):
        assert np.abs(mechanism.release(zero).value).max() < 1


@pytest.mark.parametrize("bad", [np.ma.masked_array([1.0], mask=[True]), np.timedelta64(1), [1, "a"], [[1], [2, 3]]])
def test_masks_times_and_texts_are_no_numbers(bad: Any) -> None:
    with pytest.raises((TypeError, ValueError), match="Fix:"):
        Laplace(sensitivity=1, epsilon=1).release(bad)
    with pytest.raises((TypeError, ValueError), match="Fix:"):
        DiscreteLaplace(sensitivity=1, epsilon=1).release(bad)


def test_nothing_in_nothing_out() -> None:
    assert DiscreteLaplace(sensitivity=1, epsilon=1).release([]).value.size == 0


def test_a_list_with_an_infinity_beside_integers_is_refused() -> None:
    with pytest.raises(ParameterError, match="drop missing ones"):
        Laplace(sensitivity=1, epsilon=1, dimensions=2).release([1, math.inf])


def test_wider_floats_are_refused_since_rounding_them_could_part_neighbors() -> None:
    with pytest.raises(ParameterTypeError, match="double precision"):
        Laplace(sensitivity=1, epsilon=1).release(np.longdouble(1))
    assert Laplace(sensitivity=1, epsilon=1).release(np.float32(1)).value < 1000


def test_fractional_sensitivity_of_whole_numbers_rounds_up() -> None:
    assert DiscreteLaplace(sensitivity=1.5, epsilon=1).scale == 2


def test_guarantees_are_of_the_stated_kind() -> None:
    assert Laplace(sensitivity=1, epsilon=0.1, unit="patient").guarantee == PureDP(epsilon=0.1, unit="patient")
    assert DiscreteGaussian(sensitivity=2, rho=0.1).guarantee == ZeroConcentratedDP(rho=0.1)
    assert Gaussian(sensitivity=1, epsilon=1, delta=1e-6).guarantee == ApproxDP(epsilon=1, delta=1e-6)
    assert TruncatedLaplace(bounds=(0, 1), sensitivity=1, epsilon=1, delta=0.1).guarantee == ApproxDP(
        epsilon=1, delta=0.1
    )


def test_events_say_what_ran() -> None:
    assert DiscreteLaplace(sensitivity=2, epsilon=0.1).event == DiscreteLaplaceEvent(scale=20, sensitivity=2)
    event = Laplace(sensitivity=1, epsilon=0.1).event
    assert isinstance(event, DiscreteLaplaceEvent)
    assert event.epsilon == Fraction(1, 10)
    gaussian = Gaussian(sensitivity=1, epsilon=1, delta=1e-5).event
    assert isinstance(gaussian, GaussianEvent)
    assert math.sqrt(gaussian.squared_multiplier) == pytest.approx(3.730632, abs=1e-5)
    truncated = TruncatedLaplace(bounds=(0, 1), sensitivity=1, epsilon=1, delta=0.1).event
    assert isinstance(truncated, PureEvent)
    assert float(truncated.epsilon) == pytest.approx(1 - math.log(0.9))


@given(
    st.fractions(min_value=Fraction(1, 1000), max_value=1000, max_denominator=1000),
    st.integers(min_value=-10, max_value=10),
    st.lists(st.fractions(min_value=-100, max_value=100, max_denominator=1000), min_size=1, max_size=5),
    st.data(),
)
def test_rounding_never_exceeds_the_stated_steps(
    change: Fraction, power: int, first: list[Fraction], data: st.DataObject
) -> None:
    granularity, count = Fraction(2) ** power, len(first)
    shares = data.draw(st.lists(st.fractions(min_value=-1, max_value=1), min_size=count, max_size=count))
    total = sum(map(abs, shares)) or 1
    second = [a + change * share / max(total, 1) for a, share in zip(first, shares, strict=True)]
    lattice = NoiseLattice(granularity)
    here, there = (lattice.steps(np.array([float(v) for v in values])) for values in (first, second))
    apart = np.abs(here - there)
    slack = 1 if any(Fraction(float(v)) != v for v in (*first, *second)) else 0
    assert apart.sum() <= steps_apart_l1(change, granularity, count) + slack
    assert (apart**2).sum() <= (steps_apart_l2(change, granularity, count) + slack) ** 2


@given(st.floats(min_value=-1e9, max_value=1e9), st.integers(min_value=-20, max_value=10))
def test_lattice_values_are_the_nearest_multiples(value: float, power: int) -> None:
    lattice = NoiseLattice(Fraction(2) ** power)
    back = lattice.values(lattice.steps(np.array(value)))
    assert abs(float(back) - value) <= 2.0**power / 2


@given(st.fractions(min_value=Fraction(1, 10), max_value=50), st.floats(min_value=0.01, max_value=0.999))
def test_laplace_half_widths_are_the_smallest(scale: Fraction, confidence: float) -> None:
    steps = laplace_half_width(scale, confidence)
    a = math.exp(-1 / float(scale))
    assert 2 * a ** (steps + 1) / (1 + a) <= (1 - confidence) * (1 + 1e-9)
    if steps:
        assert 2 * a**steps / (1 + a) >= (1 - confidence) * (1 - 1e-9)


@pytest.mark.parametrize("sigma", [0.3, 1, 7.5, 900, 5000])
def test_gaussian_half_widths_cover(sigma: float) -> None:
    squared = Fraction(sigma) ** 2
    steps = gaussian_half_width(squared, 0.95)
    places = np.arange(-20 * math.ceil(sigma) - 5, 20 * math.ceil(sigma) + 6)
    weights = np.exp(-(places**2) / (2 * float(squared)))
    inside = weights[np.abs(places) <= steps].sum() / weights.sum()
    assert inside >= 0.95
    assert steps <= 1.97 * sigma + 2


@given(
    st.integers(min_value=1, max_value=60),
    st.fractions(min_value=Fraction(1, 2), max_value=40, max_denominator=100),
    st.fractions(min_value=Fraction(1, 100), max_value=3, max_denominator=100),
)
def test_the_lattice_delta_is_that_of_the_sum(steps: int, scale: Fraction, epsilon: Fraction) -> None:
    bound = discrete_laplace_delta(scale=scale, steps_apart=steps, epsilon=epsilon)
    a = math.exp(-1 / float(scale))
    places = np.arange(-steps - 2500, 2 * steps + 2500)
    p, q = ((1 - a) / (1 + a) * a ** np.abs(places - center) for center in (0, steps))
    assert float(bound) == pytest.approx(np.maximum(p - math.exp(float(epsilon)) * q, 0).sum(), abs=1e-9)


def test_the_tight_laplace_keeps_its_promise_on_the_lattice() -> None:
    mechanism = ApproximateLaplace(sensitivity=1, epsilon=0.5, delta=0.1)
    delta = discrete_laplace_delta(
        scale=mechanism.steps_scale, steps_apart=mechanism.steps_apart, epsilon=mechanism.epsilon
    )
    assert Fraction(99999, 10**6) < delta <= Fraction(1, 10)


@pytest.mark.parametrize(("bounds", "change"), [((0, 10), 1), ((0, 10), 10), ((-5, 45), 20)])
def test_the_truncated_law_is_private_on_its_lattice(bounds: tuple[int, int], change: int) -> None:
    """Every ratio of exact probabilities between neighbors is at most exp(epsilon), at the extreme and other pairs."""
    mechanism = TruncatedLaplace(bounds=bounds, sensitivity=change, epsilon=1)
    apart, last = mechanism._steps_apart(), 2**14
    scale = mechanism.steps_scale
    limit = exact.exp_bounds(Fraction(1))[1]

    def mass(place: int) -> tuple[Fraction, Fraction]:
        a = exact.exp_bounds(-1 / scale)
        ends = [exact.exp_bounds(-k / scale) for k in (place + 1, last - place + 1)]
        low, high = (1 + a[s] - sum(end[1 - s] for end in ends) for s in (0, 1))
        return low, high

    for place in {0, 1, 100, max(0, last // 2 - apart), max(0, last - apart)}:
        other = min(place + apart, last)
        shift = exact.exp_bounds((other - place) / scale)[1]
        for here, there in ((place, other), (other, place)):
            assert shift * mass(there)[1] / mass(here)[0] <= limit


def test_the_ordinary_scale_would_not_do_for_truncation() -> None:
    assert truncated_laplace_scale(bounds=(0, 10), sensitivity=1, epsilon=1) > 1.6
    assert truncated_laplace_scale(bounds=(0, 10), sensitivity=1, epsilon=1, delta=0.1) < 1.6


@pytest.mark.statistical
@pytest.mark.no_cover  # tracing would double its time; the margins above go through the same lines
@pytest.mark.usefixtures("kept_powers")
@pytest.mark.parametrize("value", audited([0, 2, 10], but=[2, 10]))
def test_the_truncated_law_is_followed(value: int) -> None:
    mechanism = TruncatedLaplace(bounds=(0, 10), sensitivity=1, epsilon=1)
    place = mechanism._step_of(value)
    sample = np.array([mechanism._draw(SOURCE, place) for _ in range(4000)]) * float(mechanism.granularity)

    def law(scale: float) -> distributions.Distribution:
        untruncated = distributions.laplace(scale, location=value).cdf
        low, high = (float(untruncated(np.array([end]))[0]) for end in (0.0, 10.0))
        return distributions.continuous(lambda x: np.clip((untruncated(x) - low) / (high - low), 0, 1))

    statistics.check_distribution(sample, law(mechanism.scale))
    for wrong in (0.7, 1.5):
        assert statistics.fit(sample, law(mechanism.scale * wrong)).p_value < statistics.FALSE_ALARM


def test_clamped_answers_stay_in_bounds() -> None:
    mechanism = ClampedLaplace(bounds=(0, 10), sensitivity=10, epsilon=0.1)
    answers = [mechanism.release(5.0).value for _ in range(200)]
    assert min(answers) == 0
    assert max(answers) == 10


@given(st.fractions(min_value=Fraction(1, 50), max_value=5), st.fractions(min_value=Fraction(11, 10), max_value=10))
def test_more_epsilon_never_more_noise(epsilon: Fraction, factor: Fraction) -> None:
    for make in (
        lambda e: DiscreteLaplace(sensitivity=1, epsilon=e),
        lambda e: Laplace(sensitivity=1, epsilon=e),
        lambda e: Staircase(sensitivity=1, epsilon=e),
        lambda e: Gaussian(sensitivity=1, epsilon=e, delta=1e-6),
        lambda e: VectorLaplace(sensitivity=1, epsilon=e, dimensions=2),
        lambda e: ApproximateLaplace(sensitivity=1, epsilon=e, delta=1e-3),
    ):
        less, more = make(epsilon), make(epsilon * factor)
        assert more.standard_deviation <= less.standard_deviation * (1 + 1e-9)
        assert more.margin() <= less.margin() * (1 + 1e-6)


@pytest.mark.parametrize(
    ("make", "fix"),
    [
        (lambda: Laplace(sensitivity=0, epsilon=1), "positive sensitivity"),
        (lambda: Laplace(sensitivity=math.inf, epsilon=1), "finite"),
        (lambda: Laplace(sensitivity=1, epsilon=0), "epsilon=0.5"),
        (lambda: Laplace(sensitivity=1, epsilon=math.nan), "finite"),
        (lambda: Laplace(sensitivity=1, epsilon=1, granularity=0.3), "granularity=0.25"),
        (lambda: Laplace(sensitivity=1, epsilon=1, dimensions=0), "dimensions=1"),
        (lambda: Gaussian(sensitivity=1, epsilon=1, delta=0), "delta=1e-6"),
        (lambda: Gaussian(sensitivity=1, epsilon=1e-12, delta=1e-6), "at least 1e-9"),
        (lambda: Gaussian(sensitivity=1, epsilon=1, delta=Fraction(1, 10**301)), "at least 1e-300"),
        (lambda: Laplace(sensitivity=1, epsilon=1, adjacency="usr"), 'mean "user"'),
        (lambda: Gaussian(sensitivity=1, epsilon=2, delta=1e-6, calibration="classic"), 'calibration="analytic"'),
        (lambda: Gaussian(sensitivity=1, epsilon=2, delta=1e-6, calibration="clasic"), 'mean "classic"'),
        (lambda: ApproximateLaplace(sensitivity=1, epsilon=1, delta=0.1, dimensions=2), 'mode="generic"'),
        (lambda: Staircase(sensitivity=1, epsilon=1, dimensions=2), "use Laplace for vectors"),
        (lambda: TruncatedLaplace(bounds=(0, 1), sensitivity=2, epsilon=1), "sensitivity <= width"),
        (lambda: ClampedLaplace(bounds=(1, 0), sensitivity=1, epsilon=1), "smaller number first"),
        (lambda: VectorLaplace(sensitivity=1, epsilon=1, dimensions=13), "use Gaussian"),
    ],
)
def test_bad_parameters_are_refused_with_a_fix(make: Callable[[], object], fix: str) -> None:
    with pytest.raises(ParameterError, match=fix):
        make()


def test_a_sensitivity_is_never_assumed() -> None:
    with pytest.raises(TypeError, match="sensitivity"):
        Laplace(epsilon=1)  # type: ignore[call-arg]


def test_a_given_granularity_is_used() -> None:
    mechanism = Laplace(sensitivity=3, epsilon=1, granularity=0.5)
    assert mechanism.steps_apart == 6
    assert (mechanism.release(1.0).value * 2) % 1 == 0


def test_every_mechanism_is_registered() -> None:
    assert {type(mechanism) for mechanism in EVERY} <= {member for _, member in mechanisms.items()}
