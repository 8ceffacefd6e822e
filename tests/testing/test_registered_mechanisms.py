"""Every registered mechanism keeps every law of its family."""

from __future__ import annotations

from typing import Any

import pytest

from cloister import mechanisms as m
from cloister.testing import MechanismLaws
from tests.support.members import gather

pytestmark = pytest.mark.statistical

LAWS = {
    "discrete_laplace": MechanismLaws(
        factory=lambda epsilon: m.DiscreteLaplace(sensitivity=1, epsilon=epsilon),
        vector_factory=lambda epsilon, _: m.DiscreteLaplace(sensitivity=1, epsilon=epsilon),
        incomplete=(lambda: m.DiscreteLaplace(epsilon=1),),  # type: ignore[call-arg]
    ),
    "laplace": MechanismLaws(
        factory=lambda epsilon: m.Laplace(sensitivity=1, epsilon=epsilon),
        value=0.0,
        vector_factory=lambda epsilon, size: m.Laplace(sensitivity=1, epsilon=epsilon, dimensions=size),
        incomplete=(lambda: m.Laplace(epsilon=1),),  # type: ignore[call-arg]
    ),
    "approximate_laplace": MechanismLaws(
        factory=lambda epsilon: m.ApproximateLaplace(sensitivity=1, epsilon=epsilon, delta=0.01),
        value=0.0,
        incomplete=(lambda: m.ApproximateLaplace(epsilon=1, delta=0.01),),  # type: ignore[call-arg]
    ),
    "clamped_laplace": MechanismLaws(
        factory=lambda epsilon: m.ClampedLaplace(sensitivity=1, epsilon=epsilon, bounds=(0, 10)),
        value=5.0,
        shift=None,
        secret=None,
        incomplete=(lambda: m.ClampedLaplace(sensitivity=1, epsilon=1),),  # type: ignore[call-arg]
    ),
    "truncated_laplace": MechanismLaws(
        factory=lambda epsilon: m.TruncatedLaplace(sensitivity=1, epsilon=epsilon, bounds=(0, 10)),
        value=5.0,
        shift=None,
        secret=None,
        incomplete=(lambda: m.TruncatedLaplace(sensitivity=1, epsilon=1),),  # type: ignore[call-arg]
        samples=200,
    ),
    "discrete_gaussian": MechanismLaws(
        factory=lambda rho: m.DiscreteGaussian(sensitivity=1, rho=rho),
        parameter="rho",
        vector_factory=lambda rho, _: m.DiscreteGaussian(sensitivity=1, rho=rho),
        incomplete=(lambda: m.DiscreteGaussian(rho=1),),  # type: ignore[call-arg]
    ),
    "gaussian": MechanismLaws(
        factory=lambda epsilon: m.Gaussian(sensitivity=1, epsilon=epsilon, delta=1e-5),
        value=0.0,
        vector_factory=lambda epsilon, size: m.Gaussian(sensitivity=1, epsilon=epsilon, delta=1e-5, dimensions=size),
        incomplete=(lambda: m.Gaussian(epsilon=1, delta=1e-5),),  # type: ignore[call-arg]
    ),
    "staircase": MechanismLaws(
        factory=lambda epsilon: m.Staircase(sensitivity=1, epsilon=epsilon),
        value=0.0,
        incomplete=(lambda: m.Staircase(epsilon=1),),  # type: ignore[call-arg]
    ),
    "vector_laplace": MechanismLaws(
        factory=lambda epsilon: m.VectorLaplace(sensitivity=1, epsilon=epsilon, dimensions=1),
        value=0.0,
        incomplete=(lambda: m.VectorLaplace(epsilon=1, dimensions=2),),  # type: ignore[call-arg]
    ),
    "select": MechanismLaws(
        factory=lambda epsilon: m.Select(candidates=("a", "b", "c"), score_sensitivity=1, epsilon=epsilon),
        value=(1, 2, 3),
        secret=None,
        incomplete=(lambda: m.Select(candidates=("a", "b"), epsilon=1),),  # type: ignore[call-arg]
    ),
    "sparse_vector": MechanismLaws(
        factory=lambda epsilon: m.SparseVector(threshold=10, sensitivity=1, epsilon=epsilon),
        value=(8.0, 9.0, 11.0),
        secret=None,
        incomplete=(lambda: m.SparseVector(threshold=10, epsilon=1),),  # type: ignore[call-arg]
    ),
    "randomized_response": MechanismLaws(
        factory=m.BinaryRandomizedResponse.for_epsilon,
        value=1,
        shift=None,
        secret=None,
    ),
    **gather("mechanisms", "LAWS"),
}


def test_every_registered_mechanism_is_here() -> None:
    assert set(LAWS) == set(m.mechanisms)


@pytest.mark.parametrize(
    "law",
    [
        pytest.param(law, id=f"{name}-{law}", marks=[pytest.mark.slow] if name == "truncated_laplace" else [])
        for name, laws in LAWS.items()
        for law in laws
    ],
)
def test_laws(law: Any) -> None:
    law.verify()
