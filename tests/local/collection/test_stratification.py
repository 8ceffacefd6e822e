from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest

from cloister.errors import ParameterError
from cloister.local.collection.stratification import combine_pooled, combine_stratified, heterogeneity
from cloister.testing import check_distribution, check_golden, load_golden
from cloister.testing.distributions import Distribution
from cloister.testing.samplers import gaussian
from cloister.testing.statistics import fit

GOLDEN = Path(__file__).parents[2] / "golden" / "local" / "stratified_and_pooled.toml"


def test_worked_example() -> None:
    """LDP-16."""

    def both(*, sizes: list[int], values: list[float], variances: list[float]) -> dict[str, float]:
        return {
            "stratified": float(combine_stratified(values, variances, sizes=sizes).value),
            "pooled": float(combine_pooled(values, variances).value),
        }

    check_golden(load_golden(GOLDEN), both)


def test_variances_of_the_worked_example() -> None:
    values, variances, sizes = [0.30, 0.20], [0.0039, 0.0002], [1000, 3000]
    assert float(combine_stratified(values, variances, sizes=sizes).variance) == pytest.approx(
        0.0039 / 16 + 9 * 0.0002 / 16
    )
    assert float(combine_pooled(values, variances).variance) == pytest.approx(1 / (1 / 0.0039 + 1 / 0.0002))
    found = heterogeneity(values, variances)
    assert found is not None
    assert (found.statistic, found.degrees) == (pytest.approx(0.01 / 0.0041), 1)
    assert found.p_value == pytest.approx(math.erfc(math.sqrt(found.statistic / 2)))
    assert not found.differs
    assert "no difference was found" in str(found)


def test_a_single_group_is_itself_and_differs_from_nothing() -> None:
    assert float(combine_stratified([0.3], [0.1], sizes=[7]).value) == 0.3
    assert float(combine_pooled([0.3], [0.1]).value) == pytest.approx(0.3)
    assert heterogeneity([0.3], [0.1]) is None


def test_groups_that_differ_are_found() -> None:
    found = heterogeneity([[0.1, 0.9], [0.5, 0.5]], np.full((2, 2), 1e-4))
    assert found is not None
    assert found.differs
    assert "use the stratified estimate" in str(found)
    assert found.to_dict().keys() == {"statistic", "degrees", "p_value"}


@pytest.mark.statistical
def test_the_statistic_of_equal_groups_is_chi_square() -> None:
    errors = np.array([0.1, 0.02, 0.3])
    samples = 20_000
    values = 0.4 + gaussian(1.0, (3, samples)) * errors[:, None]
    spread = np.broadcast_to((errors**2)[:, None], values.shape)
    center = combine_pooled(values, spread).value
    found = [heterogeneity(values[:, place], spread[:, place]) for place in range(200)]
    assert [each.statistic for each in found if each] == pytest.approx(
        [float((((values - center) / errors[:, None]) ** 2).sum(axis=0)[place]) for place in range(200)]
    )
    statistics = ((values - center) ** 2 / spread).sum(axis=0)

    def exponential(scale: float) -> Distribution:
        return Distribution(cdf=lambda x: -np.expm1(-np.maximum(x, 0) / scale))

    check_distribution(statistics, exponential(2.0))
    assert fit(statistics, exponential(1.6)).p_value < 1e-9
    assert fit(statistics, exponential(2.4)).p_value < 1e-9


def test_bad_groups_are_refused() -> None:
    for values, variances in (([], []), ([1], [1, 2]), ([1], [0]), ([math.nan], [1]), (1, 1), ([1], [math.inf])):
        with pytest.raises(ParameterError, match="give"):
            combine_pooled(values, variances)
    for sizes in ([1], [1, 0], [1, 2, 3]):
        with pytest.raises(ParameterError, match="number of people"):
            combine_stratified([1, 2], [1, 1], sizes=sizes)
