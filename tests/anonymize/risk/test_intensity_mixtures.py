from __future__ import annotations

import numpy as np
import pytest
from scipy import integrate, special

from cloister.anonymize.risk._intensity_mixtures import (
    LARGEST,
    IntensityGrid,
    curvature,
    fit_gamma,
    fit_lognormal,
    minimize,
)

GRID = IntensityGrid.standard()


def test_counts_at_a_point_are_poisson_and_add_up() -> None:
    point = 120
    mean = GRID.means[point]
    expected = [special.pdtr(size, mean) - special.pdtr(size - 1, mean) for size in range(1, LARGEST + 1)]
    assert GRID.counts[:LARGEST, point] == pytest.approx(expected, abs=1e-12)
    assert GRID.counts.sum(axis=0) == pytest.approx(GRID.present)


def test_the_mean_of_one_over_a_population_count() -> None:
    rate = 0.25
    table = GRID.inverse_population(rate)
    for point in (100, 140, 165):
        unseen = GRID.means[point] * (1 - rate) / rate
        for size in (1, 2, 7, 30):
            sizes = np.arange(2000)
            law = np.exp(sizes * np.log(unseen) - unseen - special.gammaln(sizes + 1))
            assert table[size - 1, point] == pytest.approx((law / (size + sizes)).sum(), rel=1e-6)


def test_large_populations_are_one_over_their_mean() -> None:
    assert GRID.inverse_population(0.001)[0, -1] == pytest.approx(0.001 / 1e3 / 0.999, rel=0.01)


def test_the_gamma_family_finds_its_own_parameters() -> None:
    """Counts with the exact probabilities of a negative binomial law of shape 0.7."""
    shape, decay = 0.7, 0.5
    sizes = np.arange(1, 2000)
    log_law = special.gammaln(sizes + shape) - special.gammaln(sizes + 1) - sizes * np.log1p(decay)
    law = np.exp(log_law)
    counts = np.append(law[:LARGEST], law[LARGEST:].sum())
    found = fit_gamma(GRID, 1e4 * counts[None, :] / counts.sum())
    assert found.parameters == pytest.approx([shape, np.log(decay)], abs=0.01)


def test_the_lognormal_family_finds_its_own_parameters() -> None:
    middle, spread = -0.5, np.log(1.2)
    density = np.exp(-0.5 * ((GRID.log_means - middle) / np.exp(spread)) ** 2)
    counts = GRID.counts @ density
    found = fit_lognormal(GRID, 1e4 * counts[None, :] / counts.sum())
    assert found.parameters == pytest.approx([middle, spread], abs=0.01)


def test_the_line_is_found() -> None:
    line = np.linspace(-1.5, 1.5, 12)
    wanted = np.array([-1.0, -0.2, 1.1, 0.1])
    density = np.exp(
        -0.5
        * ((GRID.log_means - wanted[0] - wanted[2] * line[:, None]) / np.exp(wanted[1] + wanted[3] * line)[:, None])
        ** 2
    )
    table = density @ GRID.counts.T
    found = fit_lognormal(GRID, 1e4 * table / table.sum(), line)
    assert found.parameters == pytest.approx(wanted, abs=0.02)
    assert (np.linalg.eigvalsh(found.covariance()) > 0).all()


def test_gradients_are_those_of_the_likelihood() -> None:
    line = np.array([-1.0, 0.0, 1.0])
    table = 1.0 + np.arange(3 * (LARGEST + 1)).reshape(3, -1) % 7
    for fitted in (fit_gamma(GRID, table), fit_lognormal(GRID, table), fit_lognormal(GRID, table, line)):
        inside = fitted.parameters + 0.01
        step = 1e-6 * np.eye(len(inside))
        present = lambda at, fitted=fitted: _loss(table, fitted.weights(at))  # noqa: E731
        numeric = [(present(inside + row) - present(inside - row)) / 2e-6 for row in step]
        assert fitted.gradient(inside) == pytest.approx(numeric, rel=1e-3, abs=1e-3)


def _loss(table: np.ndarray, weights: np.ndarray) -> float:
    counts, present = weights @ GRID.counts.T, weights @ GRID.present
    return float((table.sum(axis=1) * np.log(present)).sum() - (table * np.log(counts)).sum())


def test_newton_finds_a_bounded_minimum() -> None:
    def loss(at: np.ndarray) -> tuple[float, np.ndarray]:
        x, y = at
        value = (1 - x) ** 2 + 10 * (y - x**2) ** 2
        return float(value), np.array([-2 * (1 - x) - 40 * x * (y - x**2), 20 * (y - x**2)])

    free, value = minimize(loss, np.array([-1.0, 2.0]), bounds=[(-5, 5), (-5, 5)])
    assert free == pytest.approx([1, 1], abs=1e-3)
    assert value == pytest.approx(0, abs=1e-6)
    pressed, _ = minimize(loss, np.array([-1.0, 2.0]), bounds=[(-5, 0.5), (-5, 5)])
    assert pressed == pytest.approx([0.5, 0.25], abs=1e-3)
    assert curvature(lambda at: loss(at)[1], np.array([1.0, 1.0])) == pytest.approx(
        np.array([[82, -40], [-40, 20]]), rel=1e-3
    )


def test_a_start_that_presses_against_every_bound_stays() -> None:
    found, _ = minimize(lambda at: (float(at.sum()), np.ones(2)), np.zeros(2), bounds=[(0, 1), (0, 1)])
    assert found.tolist() == [0, 0]


def test_integrals_on_the_grid_are_exact_enough() -> None:
    """The grid's sum for a narrow law agrees with a fine integral."""
    density = np.exp(-0.5 * ((GRID.log_means + 1) / 0.12) ** 2)
    found = (density @ GRID.counts[0]) / (density @ GRID.present)
    law = lambda x, row: np.exp(-0.5 * ((x + 1) / 0.12) ** 2) * row(np.exp(x))  # noqa: E731
    once = integrate.quad(lambda x: law(x, lambda mean: mean * np.exp(-mean)), -3, 1)[0]
    present = integrate.quad(lambda x: law(x, lambda mean: -np.expm1(-mean)), -3, 1)[0]
    assert found == pytest.approx(once / present, rel=1e-4)
