from __future__ import annotations

import math
from fractions import Fraction

import pytest

from cloister.accounting.conversions import (
    classic_gaussian_multiplier,
    gaussian_delta,
    gaussian_epsilon,
    gaussian_multiplier,
)
from cloister.errors import ParameterError


@pytest.mark.parametrize(("epsilon", "delta"), [(0.01, 1e-9), (1, 1e-6), (20, 1e-3)])
def test_the_analytic_multiplier_is_enough_and_hardly_more(epsilon: float, delta: float) -> None:
    multiplier = float(gaussian_multiplier(epsilon, delta))
    assert gaussian_delta(1 / multiplier, epsilon) <= delta * (1 + 1e-9)
    assert gaussian_delta(1 / (multiplier * (1 - 1e-6)), epsilon) > delta


def test_the_classic_multiplier_is_the_formula_where_it_holds() -> None:
    expected = math.sqrt(2 * math.log(1.25e5)) / 0.5
    assert float(classic_gaussian_multiplier(0.5, 1e-5)) == pytest.approx(expected, rel=1e-12)
    with pytest.raises(ParameterError, match="analytic"):
        classic_gaussian_multiplier(1, 1e-5)


def test_hardly_any_noise_is_refused_instead_of_searched_forever() -> None:
    with pytest.raises(ValueError, match="use more noise"):
        gaussian_epsilon(1e7, 1e-6)


def test_a_delta_beyond_floats_is_refused() -> None:
    with pytest.raises(ValueError, match="at least 1e-300"):
        gaussian_multiplier(1, Fraction(1, 10**301))
