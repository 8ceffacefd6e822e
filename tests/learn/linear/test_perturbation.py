from __future__ import annotations

import math
from fractions import Fraction
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from scipy.special import gammainc, ndtr

from cloister.core.random import random_source
from cloister.errors import ParameterError
from cloister.learn._encoding import encoding_of
from cloister.learn._rows import WeightedRows
from cloister.learn.linear._design import UNIT, LinearDesign
from cloister.learn.linear._perturbation import (
    epsilon_of_term,
    learn_perturbed,
    output_noise,
    plan_objective,
    plan_output,
    row_length,
)
from cloister.testing.distributions import Distribution, continuous, gaussian, laplace
from cloister.testing.statistics import check_scale
from tests.learn.linear.draws import Draws

DELTA = Fraction(1, 10**5)
TOL = Fraction(1, 10**6)


def design(columns: int) -> LinearDesign:
    return LinearDesign.of(encoding_of([f"x{place}" for place in range(columns)], bounds=(-1, 1)), constant=UNIT)


def objective(columns: int, epsilon: Any, delta: Fraction = Fraction(0), strength: Fraction | None = None) -> Any:
    return plan_objective(
        design(columns), epsilon=Fraction(epsilon), delta=delta, strength=strength, tol=TOL, rows=20_000
    )


def test_ml_07_epsilon_left_for_the_linear_term() -> None:
    # n = 1000 and lambda = 0.01: strength 10; replacing a row is removing one and adding one, half of epsilon each.
    strength, left = epsilon_of_term(Fraction(1, 2), Fraction(10))
    assert strength == 10
    assert 2 * float(left) == pytest.approx(0.950615, abs=1e-6)
    assert 2 * float(left) == pytest.approx(1 - 2 * math.log(1 + 0.25 / 10), abs=1e-12)


def test_the_other_branch_raises_the_strength_and_leaves_half() -> None:
    # The textbook: Delta = c / (n (e**(epsilon/4) - 1)) - lambda, and half of epsilon for the term.
    strength, left = epsilon_of_term(Fraction(1, 2), Fraction(1, 100))
    assert float(strength) == pytest.approx(0.25 / (math.exp(0.25) - 1))
    assert float(left) == pytest.approx(0.25)


def test_the_noise_of_the_term_never_grows_with_epsilon() -> None:
    for columns, delta in ((5, Fraction(0)), (30, DELTA)):
        for strength in (None, Fraction(1, 3)):
            plans = [objective(columns, Fraction(place, 20), delta, strength) for place in range(8, 32, 2)]
            assert all(after.term.length <= before.term.length for before, after in pairwise(plans))
            assert all(after.strength <= before.strength for before, after in pairwise(plans))


def test_the_shortest_term_is_taken() -> None:
    assert objective(5, 1).term.name == "spherical"
    assert objective(30, 1).term.name == "Laplace"
    assert objective(30, 1, DELTA).term.name == "Gaussian"


@pytest.mark.parametrize(("columns", "delta"), [(5, Fraction(0)), (30, Fraction(0)), (30, DELTA)])
def test_what_the_term_and_the_volume_cost_is_within_epsilon(columns: int, delta: Fraction) -> None:
    plan = objective(columns, 1, delta)
    width, length = columns + 1, row_length(design(columns))
    volume, step = math.log(1 + 1 / (4 * float(plan.strength))), float(plan.term.step)
    if plan.term.name == "Gaussian":
        sigma, room = step * 2**40, 0.99 - volume
        assert 2 * ndtr(-(room * sigma - 1 / (2 * sigma))) <= float(delta) * 0.99
        assert 2 * ndtr(-(room * sigma * 0.999 - 1 / (2 * sigma))) > float(delta) * 0.98
        return
    rate = {"spherical": width, "Laplace": math.sqrt(2 * width)}[plan.term.name] / plan.term.length
    apart = 1.0 if plan.term.name == "spherical" else design(columns).norm / length
    total = volume + rate * apart + 2 * width * rate * step
    assert total == pytest.approx(0.99, rel=1e-7)
    assert total <= 0.99 + 1e-12


def test_output_covers_the_distance_from_the_exact_minimum() -> None:
    plan = objective(5, 1)
    assert plan.output.sensitivity == 2 * TOL / plan.strength
    assert plan.output.epsilon == Fraction(1, 100)
    assert plan.largest_gradient < float(TOL)
    assert [type(step.event).__name__ for step in plan.steps] == ["PureEvent", "PureEvent"]
    output = plan_output(design(5), epsilon=Fraction(1), delta=Fraction(0), strength=Fraction(4), tol=TOL, rows=20_000)
    assert output.output.sensitivity == (1 + 2 * TOL) / 4
    assert output.largest_gradient == float(TOL)


def test_each_kind_of_noise_on_weights() -> None:
    kinds = [(5, Fraction(0), "VectorLaplace"), (30, Fraction(0), "Laplace"), (30, DELTA, "Gaussian")]
    for width, delta, name in kinds:
        noise = output_noise(Fraction(1), width=width, epsilon=Fraction(1), delta=delta)
        assert type(noise).__name__ == name
    assert output_noise(Fraction(1), width=16, epsilon=Fraction(1), delta=Fraction(0)).sensitivity == pytest.approx(4)


def test_a_lattice_that_is_too_coarse_is_refused() -> None:
    with pytest.raises(ParameterError, match="larger tol"):
        plan_objective(
            design(2), epsilon=Fraction(1), delta=Fraction(0), strength=None, tol=Fraction(1, 10**10), rows=100
        )


def test_gaussian_terms_are_left_out_where_their_lattice_would_cost_too_much() -> None:
    assert objective(30, 200, DELTA).term.name == "Laplace"


@pytest.mark.parametrize("strength", [Fraction(1, 2), Fraction(3)])
def test_one_row_moves_the_minimum_by_at_most_one_over_the_strength(strength: Fraction) -> None:
    draws, most = Draws(7), 0.0
    plan = plan_output(design(1), epsilon=Fraction(10**6), delta=Fraction(0), strength=strength, tol=TOL, rows=20_000)
    for _ in range(40):
        features, target = draws.choice([-1.0, 0.4, 1.0], 5, 1), draws.choice([0, 1], 5)
        found = [
            learn_perturbed(
                design(1),
                WeightedRows(features[:size], target[:size], np.ones(size, dtype=np.int64)),
                plan,
                random_source(None),
                place=1,
                max_iter=100,
            )[0]
            for size in (4, 5)
        ]
        most = max(most, float(np.linalg.norm(found[0] - found[1])) * row_length(design(1)) / UNIT)
    assert 0.3 / float(strength) < most <= 1 / float(strength) + 1e-4


def gamma_law(shape: int, scale: float) -> Distribution:
    return continuous(lambda x: gammainc(shape, np.maximum(x, 0.0) / scale))


@pytest.mark.statistical
@pytest.mark.slow
def test_ml_08_the_length_of_output_noise_has_the_gamma_law() -> None:
    # n = 1000, lambda = 0.01, epsilon = 1 under replacement: half of epsilon for one row, Gamma(d, 2 / (n lambda)).
    plan = plan_output(
        design(2), epsilon=Fraction(1, 2), delta=Fraction(0), strength=Fraction(10), tol=TOL, rows=20_000
    )

    def draw(size: int) -> Any:
        noisy = plan.output._sampler().draw(random_source(None), 3 * size).reshape(size, 3)
        return np.linalg.norm(noisy * float(plan.output.lattice.granularity), axis=1)

    check_scale(draw, lambda scale: gamma_law(3, scale), scale=2 / 10, size=20_000)


@pytest.mark.statistical
@pytest.mark.parametrize(("columns", "delta"), [(2, Fraction(0)), (30, Fraction(0)), (30, DELTA)])
def test_the_linear_term_has_the_length_that_is_stated(columns: int, delta: Fraction) -> None:
    plan, width = objective(columns, 1, delta), columns + 1
    scale = (
        plan.term.length
        / {"spherical": width, "Laplace": math.sqrt(2 * width), "Gaussian": math.sqrt(width)}[plan.term.name]
    )

    def draw(size: int) -> Any:
        if plan.term.name == "spherical":
            return np.linalg.norm(coefficients(width * size).reshape(size, width), axis=1)
        return coefficients(size)

    def coefficients(count: int) -> Any:
        return plan.term.draw(random_source(None), count).astype(np.float64) * float(plan.term.step)

    laws = {"spherical": lambda s: gamma_law(width, s), "Laplace": laplace, "Gaussian": gaussian}
    check_scale(draw, laws[plan.term.name], scale=scale, size=30_000)
