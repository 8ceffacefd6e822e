from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from cloister.learn.linear._design import UNIT
from cloister.learn.linear._solver import STRONGEST, WEAKEST, Objective, digits_for, minimum
from tests.learn.linear.draws import Draws


def objective(*, strength: float = 0.5, term: tuple[float, float] = (0.3, -4.0), repeat: int = 1) -> Objective:
    steps = np.array([[UNIT, 0], [UNIT // 2, 1000], [-UNIT, 5], [17, -3000]], dtype=float)
    return of_rows(
        np.tile(steps, (repeat, 1)),
        np.tile([1.0, -1.0, -1.0, 1.0], repeat),
        weights=np.tile(np.array([1, 2, 3, 1000]), repeat),
        strength=strength,
        term=term,
    )


def of_rows(steps: Any, signs: Any, *, weights: Any = None, strength: float = 0.001, term: Any = None) -> Objective:
    width = steps.shape[1]
    digits = digits_for(strength=Fraction(strength), tol=Fraction(1, 10**6), width=width)
    return Objective(
        steps=steps,
        length=int(np.ceil(np.sqrt((steps**2).sum(axis=1).max(initial=1.0)))) + 1,
        signs=np.asarray(signs, dtype=float),
        weights=np.ones(len(steps), dtype=np.int64) if weights is None else np.asarray(weights),
        strength=Fraction(strength),
        term=point((0.0,) * width if term is None else term, digits),
        digits=digits,
    )


def point(numbers: Any, digits: int) -> tuple[int, ...]:
    return tuple(round(Fraction(float(item)) * 2**digits) for item in numbers)


def certified(problem: Objective, at: tuple[int, ...]) -> float:
    return problem.gradient(problem.margins(at), at)[1]


def exact_gradient(problem: Objective, at: tuple[int, ...]) -> list[float]:
    """The gradient in rationals, but for the exponential, which has 60 digits."""
    from decimal import Decimal, localcontext

    with localcontext() as context:
        context.prec = 60
        unit, strength = Decimal(2) ** -problem.digits, Decimal(float(problem.strength))
        total = [(strength * w + b) * unit for w, b in zip(at, problem.term, strict=True)]
        for row, sign, weight in zip(problem.steps, problem.signs, problem.weights, strict=True):
            whole = sum(int(x) * w for x, w in zip(row, at, strict=True))
            logit = Fraction(whole, problem.length * 2**problem.digits)
            margin = Decimal(int(sign)) * Decimal(logit.numerator) / Decimal(logit.denominator)
            residual = -Decimal(int(sign)) / (1 + min(margin, Decimal(5000)).exp())  # beyond, it is nothing
            total = [
                item + int(weight) * residual * Decimal(float(x)) / problem.length
                for item, x in zip(total, row, strict=True)
            ]
        return [float(item) for item in total]


@pytest.mark.parametrize("term", [(0.0, 0.0), (0.3, -4.0), (100.0, -2000.0)])
@pytest.mark.parametrize("strength", [0.03, 1.0, 50.0])
def test_the_minimum_is_found_and_certified(term: tuple[float, float], strength: float) -> None:
    problem = objective(strength=strength, term=term)
    found = minimum(problem, tol=1e-6, max_iter=200)
    assert found is not None
    true = float(np.linalg.norm(exact_gradient(problem, found)))
    assert true <= certified(problem, found) <= 1e-6


@pytest.mark.parametrize("at", [(0.0, 0.0), (0.123, 7.0), (-300.0, 12.0), (3e9, -5e8), (1e-9, 2e30)])
def test_a_certificate_is_never_too_good(at: tuple[float, float]) -> None:
    problem = objective()
    place = point(at, problem.digits)
    true = float(np.linalg.norm(exact_gradient(problem, place)))
    assert true <= certified(problem, place) <= true * (1 + 1e-8) + 1e-8


def test_without_enough_iterations_or_digits_nothing_is_given() -> None:
    assert minimum(objective(), tol=1e-6, max_iter=1) is None
    assert minimum(objective(repeat=50), tol=1e-13, max_iter=100) is None


def test_when_no_value_goes_down_the_safe_step_is_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    values = iter(range(10**6))
    monkeypatch.setattr(Objective, "value", lambda self, at, margins: (float(next(values)), 0.0))
    assert minimum(objective(strength=0.03, term=(0.0, 0.0)), tol=1e-6, max_iter=200) is not None


# Rows cannot keep the minimum from being found ---------------------------------------------------------------------


def hostile_rows(rows: int, width: int) -> Iterator[tuple[str, Any, Any]]:
    """Rows that are hard to separate, or too easy, or of very different sizes."""
    draws = Draws(3)
    numbers, sides = draws.uniform(rows, width), draws.choice([-1.0, 1.0], rows)
    steps = np.rint(numbers * UNIT)
    normal = np.where(numbers[:width, 0] > 0, 1.0, -0.7)[:width]
    yield "separable", steps, np.where(steps @ normal > 0, 1.0, -1.0)
    yield "random", steps, sides
    yield "nothing", np.zeros((rows, width)), sides
    tiny = np.zeros((rows, width))
    tiny[:, 0], tiny[:, -1] = sides, UNIT
    yield "told apart by one step", tiny, sides
    twins = steps.copy()
    twins[:, 1] = twins[:, 0] + sides
    yield "told apart by a difference of one step", twins, sides
    sizes = np.rint(np.sign(numbers) * 2.0 ** np.rint(12 * np.abs(numbers)))
    yield "of all sizes", sizes, np.where(sizes @ normal > 0, 1.0, -1.0)
    lonely = np.zeros((rows, width))
    lonely[0, 0], lonely[1:, -1] = UNIT, UNIT
    yield "one row apart", lonely, np.where(np.arange(rows) == 0, -1.0, 1.0)


@pytest.mark.parametrize("copies", [1, 50_000])
@pytest.mark.parametrize("strength", [float(WEAKEST), 1.0, float(STRONGEST)])
@pytest.mark.parametrize("term", [0.0, 30.0, 1e8])
def test_no_rows_keep_the_minimum_from_being_found(copies: int, strength: float, term: float) -> None:
    for name, steps, signs in hostile_rows(200, 12):
        linear = term * np.where(np.arange(12) % 3, 1.0, -0.5)
        problem = of_rows(steps, signs, weights=np.full(200, copies), strength=strength, term=linear)
        found = minimum(problem, tol=0.75e-6, max_iter=60)
        assert found is not None, name
        assert np.isfinite(problem.floats(found)).all()


@pytest.mark.slow
def test_fifty_thousand_rows_of_forty_features_do_not_either() -> None:
    for name, steps, signs in hostile_rows(50_000, 40):
        assert minimum(of_rows(steps, signs), tol=0.75e-6, max_iter=60) is not None, name
