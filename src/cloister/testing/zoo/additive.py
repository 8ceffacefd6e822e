"""Broken additive noise: the wrong scale, the wrong law, the wrong bits, or one draw where many are needed."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from itertools import pairwise
from typing import Any

import numpy as np

from cloister.attacks.auditing.exact_check import Bounds, normal_cdf_bounds
from cloister.core import exact
from cloister.core.guarantees import Adjacency, ApproxDP, PureDP
from cloister.testing import samplers
from cloister.testing.distributions import Floats
from cloister.testing.statistics import Integers
from cloister.testing.zoo.exhibit import Exhibit, Way

__all__ = ["ADDITIVE", "truncated_laplace"]

_CLAIM = PureDP(epsilon=Fraction(1))
_FIXED_POINT = Fraction("1.61156026")
"""Slightly above the scale at which Laplace noise truncated to [0, 10] is 1-private for sensitivity 1."""


def truncated_laplace(scale: Fraction) -> Callable[[Fraction], dict[Fraction, Bounds]]:
    """Return the density of Laplace noise redrawn until the answer is in [0, 10], at points 1/4 apart."""
    low, high = Fraction(0), Fraction(10)

    def density(answer: Fraction) -> dict[Fraction, Bounds]:
        tails = exact.exp_bounds((low - answer) / scale), exact.exp_bounds((answer - high) / scale)
        mass = tuple(1 - (tails[0][end] + tails[1][end]) / 2 for end in (1, 0))
        points = (Fraction(step, 4) for step in range(41))
        heights = {point: exact.exp_bounds(-abs(point - answer) / scale) for point in points}
        return {point: (height[0] / mass[1], height[1] / mass[0]) for point, height in heights.items()}

    return density


def _shared_noise(counts: tuple[int, ...], size: int) -> Integers:
    """Add one draw to all counts."""
    return np.array(counts) + samplers.discrete_laplace(1.0, size)[:, None]


def _independent_noise(counts: tuple[int, ...], size: int) -> Integers:
    return np.array(counts) + samplers.discrete_laplace(1.0, (size, len(counts)))


def _float_laplace(answer: float, size: int) -> Floats:
    return answer + samplers.laplace(1.0, size)


def _lattice_laplace(answer: float, size: int) -> Floats:
    """Round to a grid of 2**-10 and add discrete noise there."""
    steps = 1024
    return np.asarray((round(answer * steps) + samplers.discrete_laplace(1.0 * steps, size)) / steps)


def _fine_bits(outputs: Floats) -> Floats:
    """Return 1 where a small output is not a multiple of 2**-53, which one plus something never is."""
    scaled = outputs * 2.0**53
    return np.asarray((np.abs(outputs) < 0.25) & (scaled != np.round(scaled)), dtype=np.float64)


def _gaussian_cells(sigma: Fraction) -> Callable[[int], dict[int, Bounds]]:
    """Return Gaussian noise as the probabilities of cells; one edge is where the privacy loss of 0 and 1 is 10."""
    edges = sorted({*(Fraction(step, 4) for step in range(-12, 17)), 10 * sigma**2 + Fraction(1, 2)})

    def law(answer: int) -> dict[int, Bounds]:
        zero, one = (Fraction(0), Fraction(0)), (Fraction(1), Fraction(1))
        levels = [zero, *(normal_cdf_bounds((edge - answer) / sigma) for edge in edges), one]
        return {
            cell: (max(above[0] - below[1], Fraction(0)), above[1] - below[0])
            for cell, (below, above) in enumerate(pairwise(levels))
        }

    return law


Vector = tuple[Fraction, ...]
_ORIGIN: Vector = (Fraction(0),) * 4
_HALVES: Vector = (Fraction(1, 2),) * 4
_PLACES: tuple[Vector, ...] = (
    _ORIGIN,
    _HALVES,
    tuple(3 * half for half in _HALVES),
    tuple(-half for half in _HALVES),
    (Fraction(1), Fraction(0), Fraction(-1), Fraction(2)),
)


def _coordinate_laplace(answer: Vector) -> dict[Vector, Bounds]:
    """Return the density of i.i.d. Laplace noise of scale (L2 sensitivity) / epsilon."""
    return {
        place: exact.exp_bounds(-sum((abs(x - y) for x, y in zip(place, answer, strict=True)), Fraction(0)))
        for place in _PLACES
    }


def _spherical_laplace(answer: Vector) -> dict[Vector, Bounds]:
    """Return the density proportional to exp(-epsilon * L2 distance)."""
    densities = {}
    for place in _PLACES:
        square = sum(((x - y) ** 2 for x, y in zip(place, answer, strict=True)), Fraction(0))
        near, far = exact.sqrt_bounds(square)
        densities[place] = (exact.exp_bounds(-far)[0], exact.exp_bounds(-near)[1])
    return densities


_ROWS = ((1.0, 0.0), (0.0, 1.0), (0.6, 0.8), (0.8, -0.6))
_NEWCOMER = (math.sqrt(0.5), math.sqrt(0.5))


def _moments(rows: Any) -> Floats:
    table = np.array(rows)
    return np.asarray(table.T @ table)


def _wishart(rows: Any, size: int) -> Floats:
    """Add Wishart noise with d + 1 degrees of freedom and scale 3 / (2 n epsilon); release the upper triangle."""
    factors = samplers.gaussian(math.sqrt(3 / (2 * len(rows))), (size, 3, 2))
    return _triangle(_moments(rows) + np.einsum("nki,nkj->nij", factors, factors))


def _symmetric_laplace(rows: Any, size: int) -> Floats:
    """Add Laplace noise to the upper triangle, whose L1 sensitivity is 3/2 for rows of length 1."""
    return _triangle(_moments(rows)) + samplers.laplace(1.5, (size, 3))


def _triangle(matrices: Floats) -> Floats:
    return np.stack([matrices[..., 0, 0], matrices[..., 0, 1], matrices[..., 1, 1]], axis=-1)


def _least_eigenvalue(outputs: Floats) -> Floats:
    """Return the least eigenvalue of an output less the moments with the newcomer: Wishart noise is never below 0."""
    a, b, c = (outputs - _triangle(_moments((*_ROWS, _NEWCOMER)))).T
    return np.asarray((a + c) / 2 - np.sqrt(((a - c) / 2) ** 2 + b**2))


ADDITIVE: tuple[Exhibit, ...] = (
    Exhibit(
        name="redrawn_laplace",
        reference="E12",
        flaw="redrawing until the answer is inside its bounds, at scale sensitivity/epsilon, divides by a mass that "
        "depends on the data: epsilon is 1.48985, not 1.",
        claimed=_CLAIM,
        way=Way.DENSITIES,
        neighbors=tuple((Fraction(answer), Fraction(answer + 1)) for answer in (0, 4, 9)),
        broken=truncated_laplace(Fraction(1)),
        corrected=truncated_laplace(_FIXED_POINT),
    ),
    Exhibit(
        name="shared_scalar_noise",
        reference="E10",
        flaw="one draw is added to a whole vector, so differences of counts are exact "
        "(Chang, Zhuang and Samaraweera, listing 6.12).",
        claimed=_CLAIM,
        way=Way.STATISTICAL,
        neighbors=(((5, 7, 4), (6, 7, 4)),),
        broken=_shared_noise,
        corrected=_independent_noise,
    ),
    Exhibit(
        name="floating_point_laplace",
        reference="E7",
        flaw="the low-order bits of a floating-point sum tell which answer the noise was added to (Mironov 2012).",
        claimed=_CLAIM,
        way=Way.STATISTICAL,
        neighbors=((0.0, 1.0),),
        broken=_float_laplace,
        corrected=_lattice_laplace,
        features={"has fine bits": _fine_bits, "output": lambda outputs: outputs},
    ),
    Exhibit(
        name="classic_gaussian_large_epsilon",
        reference="E14",
        flaw="sigma = sqrt(2 ln(1.25/delta))/epsilon is proven below epsilon 1 only; at 10 the true delta is 2.27e-5.",
        claimed=ApproxDP(epsilon=Fraction(10), delta=Fraction(1, 10**5)),
        way=Way.EXACT,
        neighbors=((0, 1),),
        broken=_gaussian_cells(Fraction("0.484481")),
        corrected=_gaussian_cells(Fraction("0.49989")),
    ),
    Exhibit(
        name="vector_laplace_of_l2_sensitivity",
        reference="E19",
        flaw="i.i.d. Laplace noise needs the L1 sensitivity, here twice the L2 sensitivity that was used.",
        claimed=_CLAIM,
        way=Way.DENSITIES,
        neighbors=((_ORIGIN, _HALVES),),
        broken=_coordinate_laplace,
        corrected=_spherical_laplace,
    ),
    Exhibit(
        name="wishart_noise",
        reference="E20",
        flaw="Wishart noise is never negative, so some matrices are possible without a person, impossible with them.",
        claimed=PureDP(epsilon=Fraction(1), adjacency=Adjacency.ADD_REMOVE),
        way=Way.STATISTICAL,
        neighbors=((_ROWS, (*_ROWS, _NEWCOMER)),),
        broken=_wishart,
        corrected=_symmetric_laplace,
        features={"least eigenvalue": _least_eigenvalue},
    ),
)
