from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from cloister.errors import ParameterError, StatisticalError
from cloister.testing import (
    check_distribution,
    check_independent,
    check_same_distribution,
    check_scale,
    distributions,
    samplers,
)
from cloister.testing.statistics import LEAST_EXPECTED, SAMPLES, _levels, fit, fit_two

pytestmark = pytest.mark.statistical


@pytest.mark.parametrize(
    ("draw", "law"),
    [
        (samplers.laplace, distributions.laplace),
        (samplers.gaussian, distributions.gaussian),
        (samplers.exponential, distributions.exponential),
        (samplers.discrete_laplace, distributions.discrete_laplace),
    ],
)
@pytest.mark.parametrize("scale", [0.7, 40.0])
def test_the_right_scale_passes_and_both_wrong_scales_are_refuted(draw: Any, law: Any, scale: float) -> None:
    check_scale(lambda size: draw(scale, size), law, scale=scale)


@pytest.mark.parametrize("factor", [0.95, 1.05])
def test_a_scale_five_percent_off_is_seen(factor: float) -> None:
    refuted = [fit(samplers.laplace(factor, SAMPLES), distributions.laplace(1)).p_value < 1e-9 for _ in range(40)]
    assert sum(refuted) >= 34


def test_p_values_of_a_true_law_are_uniform() -> None:
    values = [fit(samplers.gaussian(1, 5000), distributions.gaussian(1)).p_value for _ in range(400)]
    check_distribution(np.array(values), distributions.uniform(0, 1))


def test_a_shifted_location_is_refuted() -> None:
    sample = samplers.laplace(1, SAMPLES)
    check_distribution(sample + 3, distributions.laplace(1, location=3))
    with pytest.raises(StatisticalError, match="do not retry"):
        check_distribution(sample + 3.1, distributions.laplace(1, location=3))


def test_a_cut_tail_is_refuted() -> None:
    sample = np.clip(samplers.laplace(1, SAMPLES), -5, 5)
    with pytest.raises(StatisticalError, match=r"The clipped noise does not follow .* chi-square"):
        check_distribution(sample, distributions.laplace(1), what="The clipped noise")


def test_a_pmf_is_summed_up_around_its_center() -> None:
    sample = 1000 + samplers.discrete_laplace(30, SAMPLES)
    ratio = np.exp(-1 / 30)
    law = distributions.discrete(lambda k: (1 - ratio) / (1 + ratio) * ratio ** np.abs(k - 1000.0), center=990)
    check_distribution(sample, law)
    assert fit(sample + 3, law).p_value < 1e-9


def test_a_pmf_that_does_not_add_up_is_refused() -> None:
    with pytest.raises(ParameterError, match="give center="):
        distributions.discrete(lambda k: 0.25 * (k == 0))


def test_a_law_needs_one_description() -> None:
    with pytest.raises(ParameterError, match=r"continuous\(cdf\)"):
        distributions.Distribution()


@pytest.mark.parametrize("weights", [{"a": 0.5}, {"a": 1.5, "b": -0.5}])
def test_probabilities_must_add_up(weights: Any) -> None:
    with pytest.raises(ParameterError, match="every value with its probability"):
        distributions.categorical(weights)


def test_categories_are_compared_one_by_one() -> None:
    sample = np.array(["no", "yes", "yes", "maybe"])[(samplers.uniform(SAMPLES) * 4).astype(int)]
    law = {"yes": 0.5, "no": 0.25, "maybe": 0.25, "never": 0.0}
    check_distribution(sample, distributions.categorical(law))
    assert fit(sample, distributions.categorical({**law, "yes": 0.47, "no": 0.28})).p_value < 1e-9


def test_an_impossible_value_refutes_at_once() -> None:
    outcome = fit(np.array([0] * 500 + [1] * 499 + [2]), distributions.categorical({0: 0.5, 1: 0.5}))
    assert outcome.impossible
    assert str(outcome) == "a value of probability zero was drawn"


def test_a_finer_lattice_than_the_law_has_refutes_at_once() -> None:
    sample = samplers.discrete_laplace(40.0, SAMPLES)
    assert not fit(sample.astype(np.float64), distributions.discrete_laplace(40.0)).impossible
    finer = np.append(sample, 0.25)
    assert fit(finer, distributions.discrete_laplace(40.0)).impossible
    assert not fit(finer, distributions.laplace(40.0)).impossible
    tenths = distributions.Distribution(
        cdf=lambda values: np.clip((np.floor(values * 10 + 0.5) + 1) / 4, 0, 1), lattice=0.1
    )
    assert not fit(np.repeat([0.0, 0.1, 0.2, 0.1 * 3], 100), tenths).impossible


def test_rare_categories_are_joined() -> None:
    sample = np.repeat([0, 1, 2, 3], [500, 490, 5, 5])
    outcome = fit(sample, distributions.categorical({0: 0.5, 1: 0.49, 2: 0.005, 3: 0.005}))
    assert outcome.degrees == 1


def test_a_constant_law_cannot_be_tested() -> None:
    with pytest.raises(ParameterError, match="draw more samples"):
        fit(np.zeros(1000), distributions.categorical({0.0: 1.0}))


@pytest.mark.parametrize("size", [100, 1000, 50_000, 1_000_000])
def test_every_bin_expects_enough(size: int) -> None:
    widths = np.diff(np.concatenate([[0], _levels(size), [1]]))
    assert widths.min() * size >= LEAST_EXPECTED * 0.999


@pytest.mark.parametrize("sample", [[], [[1.0, 2.0]]])
def test_a_sample_is_one_row(sample: Any) -> None:
    with pytest.raises(ParameterError, match="one-dimensional"):
        check_distribution(np.array(sample), distributions.laplace(1))


def test_a_sample_with_nan_is_refuted() -> None:
    with pytest.raises(StatisticalError, match="check the sampler"):
        check_distribution(np.array([1.0, np.nan]), distributions.laplace(1))


def test_a_test_that_cannot_see_the_scale_is_refused() -> None:
    with pytest.raises(StatisticalError, match="would miss a bug"):
        check_scale(lambda size: samplers.laplace(1, size), distributions.laplace, scale=1, size=400)


def test_two_samples_of_one_law_agree_and_of_two_laws_differ() -> None:
    first, second = samplers.laplace(1, 4 * SAMPLES), samplers.laplace(1, 2 * SAMPLES)
    check_same_distribution(first, second)
    for factor in (0.9, 1.1):
        with pytest.raises(StatisticalError, match="check what makes the two differ"):
            check_same_distribution(first, second * factor)


def test_two_samples_of_few_values_are_compared_by_value() -> None:
    first, second = np.repeat([0, 1, 2], [500, 500, 1]), np.repeat([0, 1], [500, 500])
    assert fit_two(first, second).p_value > 0.1
    assert fit_two(first, np.repeat([0, 1], [900, 100])).p_value < 1e-9
    assert fit_two(np.zeros(50), np.ones(60)).p_value < 1e-9


@pytest.mark.parametrize(
    ("first", "second"),
    [(np.zeros(50), np.zeros(60)), (np.arange(10.0), np.arange(10.0)), (np.arange(9.0), np.arange(9999.0))],
)
def test_two_samples_that_show_nothing_are_refused(first: Any, second: Any) -> None:
    with pytest.raises(ParameterError, match="draw more samples"):
        check_same_distribution(first, second)


def test_cdp_19_vector_noise_has_independent_draws() -> None:
    check_independent(samplers.laplace(1, (20_000, 4)))
    shared = samplers.laplace(1, (20_000, 1)) + np.zeros(4)
    with pytest.raises(StatisticalError, match="one independent value per coordinate"):
        check_independent(shared)


def test_wide_vectors_are_compared_with_their_neighbors() -> None:
    sample = samplers.laplace(1, (2_000, 30))
    check_independent(sample)
    sample[:, 20] = sample[:, 19] + 0.1 * sample[:, 20]
    with pytest.raises(StatisticalError, match="coordinates 19 and 20"):
        check_independent(sample)


def test_a_coordinate_without_noise_is_found() -> None:
    sample = samplers.laplace(1, (1000, 2))
    sample[:, 1] = 5
    with pytest.raises(StatisticalError, match="missing in coordinate 1"):
        check_independent(sample)


def test_noise_that_is_nearly_always_zero_shows_nothing() -> None:
    sample = np.zeros((1000, 2))
    sample[0, 0] = sample[1, 1] = 1
    with pytest.raises(ParameterError, match="draw more samples"):
        check_independent(sample)


def test_dependence_is_seen_where_one_value_outweighs_all_others() -> None:
    column = np.repeat([-2.0, -1.0, 0.0, 1.0, 2.0], [10, 990, 8000, 990, 10])
    with pytest.raises(StatisticalError, match="not independent"):
        check_independent(np.stack([column, column], axis=1))


@pytest.mark.parametrize("size", [2, 10, 30])
def test_independence_needs_enough_draws(size: int) -> None:
    with pytest.raises(ParameterError, match="draw more samples"):
        check_independent(np.repeat(np.arange(float(size))[:, None], 2, axis=1))


@pytest.mark.parametrize("shape", [(10,), (10, 1)])
def test_independence_needs_columns(shape: tuple[int, ...]) -> None:
    with pytest.raises(ParameterError, match=r"shape \(n, k\)"):
        check_independent(np.ones(shape))
