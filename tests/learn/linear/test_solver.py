from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from cloister.learn.linear.design import UNIT
from cloister.learn.linear.solver import Objective, minimum


def objective(*, strength: float = 0.5, term: tuple[float, float] = (0.3, -4.0), repeat: int = 1) -> Objective:
    steps = np.array([[UNIT, 0], [UNIT // 2, 1000], [-UNIT, 5], [17, -3000]], dtype=float)
    return Objective(
        steps=np.tile(steps, (repeat, 1)),
        length=UNIT,
        signs=np.tile([1.0, -1.0, -1.0, 1.0], repeat),
        weights=np.tile(np.array([1, 2, 3, 1000]), repeat),
        strength=strength,
        term=np.array(term),
    )


def exact_gradient(problem: Objective, at: np.ndarray) -> list[float]:  # type: ignore[type-arg]
    """The gradient in rationals, but for the exponential, which has 60 digits."""
    from decimal import Decimal, localcontext

    with localcontext() as context:
        context.prec = 60
        total = [
            Decimal(problem.strength) * Decimal(float(w)) + Decimal(float(b))
            for w, b in zip(at, problem.term, strict=True)
        ]
        for row, sign, weight in zip(problem.steps, problem.signs, problem.weights, strict=True):
            logit = sum(Fraction(float(x)) / problem.length * Fraction(float(w)) for x, w in zip(row, at, strict=True))
            margin = Decimal(int(sign)) * Decimal(logit.numerator) / Decimal(logit.denominator)
            residual = -Decimal(int(sign)) / (1 + margin.exp())
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
    assert true <= problem.certified(found) <= 1e-6


def test_a_certificate_is_never_too_good() -> None:
    problem = objective()
    for at in (np.zeros(2), np.array([0.123, 7.0]), np.array([-300.0, 12.0])):
        true = float(np.linalg.norm(exact_gradient(problem, at)))
        assert true <= problem.certified(at) <= true * (1 + 1e-8) + 1e-8


def test_without_enough_iterations_or_digits_nothing_is_given() -> None:
    assert minimum(objective(), tol=1e-6, max_iter=1) is None
    assert minimum(objective(repeat=50), tol=1e-13, max_iter=100) is None


def test_when_nothing_goes_down_the_full_step_is_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    values = iter(range(10**6))
    monkeypatch.setattr(Objective, "value", lambda self, at: float(next(values)))
    problem = objective(strength=50.0)
    assert minimum(problem, tol=1e-6, max_iter=50) is not None
