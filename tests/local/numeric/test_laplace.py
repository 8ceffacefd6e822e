"""Noise on steps: its law is that of the exact sampler, folded into a public range."""

from __future__ import annotations

from fractions import Fraction
from itertools import combinations, product
from typing import Any

import numpy as np
import pytest

from cloister.attacks.auditing.exact_check import Bounds, discrete_laplace_bounds
from cloister.errors import InternalError, ParameterError
from cloister.local import LaplaceVector, LocalLaplace
from cloister.local.draws import law_of
from cloister.testing import check_distribution, check_exactly, check_scale, distributions
from tests.local.numeric.helpers import variance_is


def law_of_step(protocol: LocalLaplace, step: int) -> dict[int, Bounds]:
    field = protocol.output_space.fields[0]
    return discrete_laplace_bounds(step, scale=protocol.scale, window=(field.low, field.high))  # type: ignore[union-attr]


@pytest.mark.parametrize(("epsilon", "steps"), [(1, 2), (Fraction(1, 2), 1), (4, 5)])
def test_ldp_01_the_folded_law_has_exactly_its_epsilon(epsilon: Any, steps: int) -> None:
    protocol = LocalLaplace(bounds=(0, 1), epsilon=epsilon, steps=steps)
    pairs = list(combinations(range(steps + 1), 2))
    report = check_exactly(lambda step: law_of_step(protocol, step), pairs, epsilon=epsilon)
    report.verify()
    assert report.tight_epsilon == pytest.approx(float(epsilon), abs=1e-9)


def test_a_scale_for_half_of_the_bounds_is_refuted() -> None:
    protocol = LocalLaplace(bounds=(0, 1), epsilon=2, steps=4)
    report = check_exactly(lambda step: law_of_step(protocol, step), [(0, 4)], epsilon=1)
    assert report.refuted
    assert report.tight_epsilon == pytest.approx(2, abs=1e-9)


def test_ldp_01_a_vector_costs_the_epsilon_of_all_its_numbers() -> None:
    protocol = LaplaceVector(bounds=[(0, 1), (0, 1)], epsilon=16, steps=1)
    assert protocol.scale == Fraction(1, 8)
    field = protocol.output_space.fields[0]
    one = [
        discrete_laplace_bounds(step, scale=protocol.scale, window=(field.low, field.high))  # type: ignore[union-attr]
        for step in (0, 1)
    ]

    def joint(steps: tuple[int, int]) -> dict[tuple[int, int], Bounds]:
        first, second = one[steps[0]], one[steps[1]]
        return {(a, b): (p[0] * q[0], p[1] * q[1]) for (a, p), (b, q) in product(first.items(), second.items())}

    report = check_exactly(joint, list(combinations(product((0, 1), repeat=2), 2)), epsilon=16)
    report.verify()
    assert report.tight_epsilon == pytest.approx(16, abs=1e-9)


@pytest.mark.statistical
@pytest.mark.parametrize("steps", [2, 2**16])
def test_reports_have_discrete_laplace_noise_of_the_stated_scale(steps: int) -> None:
    protocol = LocalLaplace(bounds=(0, 1), epsilon=1, steps=steps)

    def noise(size: int) -> Any:
        return protocol.randomize(np.ones(size)).payload["y"].astype(np.int64) - steps

    check_scale(noise, distributions.discrete_laplace, scale=float(protocol.scale))


@pytest.mark.statistical
def test_every_number_of_a_vector_has_noise_of_its_own() -> None:
    protocol = LaplaceVector(bounds=[(-1, 1)] * 3, epsilon=2)
    reports = protocol.randomize(np.zeros((50_000, 3)))
    noise = reports.payload["y"].astype(np.int64) - protocol.steps // 2
    for column in noise.T:
        check_distribution(column, distributions.discrete_laplace(float(protocol.scale)))
    assert abs(np.corrcoef(noise.T)[np.triu_indices(3, 1)]).max() < 6.2 / np.sqrt(50_000)
    for column in protocol.debias(reports).T:
        assert variance_is(column, 8 * 3**2 / 2**2)
        assert not variance_is(1.1 * column, 8 * 3**2 / 2**2)


def test_noise_of_the_continuous_law_is_met() -> None:
    assert LocalLaplace(bounds=(-1, 1), epsilon=1).variance() == pytest.approx(8, rel=1e-8)
    assert LaplaceVector(bounds=[(-1, 1)] * 5, epsilon=2).variance() == pytest.approx([8 * 25 / 4] * 5, rel=1e-8)


def test_reports_stay_in_the_public_range() -> None:
    protocol = LocalLaplace(bounds=(0, 1), epsilon=20, steps=1)
    assert protocol.output_space.to_dict()["fields"][0] == {"name": "y", "kind": "integer", "low": -2, "high": 3}
    folded = protocol.randomize(np.zeros(200_000)).payload["y"]
    assert folded.min() >= -2


def test_noise_beyond_64_bits_is_refused() -> None:
    with pytest.raises(ParameterError, match="use fewer"):
        LaplaceVector(bounds=[(0, 1)] * 2000, epsilon="1/1000000", steps=2**31)


def test_noise_is_not_a_sequence_of_decisions() -> None:
    protocol = LocalLaplace(bounds=(0, 1), epsilon=1, steps=1)
    with pytest.raises(InternalError, match="decision by decision"):
        law_of(lambda draws: protocol.perturb(np.array([0]), draws).tobytes())
