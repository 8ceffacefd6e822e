"""Broken local randomizers: each changes one person's value before anyone sees it."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from itertools import combinations, product
from typing import Any

import numpy as np

from cloister.attacks.auditing.exact_check import Bounds, normalize
from cloister.core import exact
from cloister.core.guarantees import LocalDP
from cloister.testing import samplers
from cloister.testing.distributions import Floats
from cloister.testing.zoo.exhibit import Exhibit, Way

__all__ = ["LOCAL"]

_E = exact.exp_bounds(Fraction(1))
_CLAIM = LocalDP(epsilon=Fraction(1))
_VALUES = 4

Signs = tuple[int, ...]
Point = tuple[Fraction, ...]


def _off_by_one(value: int) -> dict[int, Bounds]:
    """Lie with (value + s) mod d for s in 0 .. d-2 instead of 1 .. d-1."""
    lies = [(value + step) % _VALUES for step in range(_VALUES - 1)]
    weights = {lie: (Fraction(1), Fraction(1)) for lie in lies}
    weights[value] = (_E[0] + 1, _E[1] + 1)
    return normalize(weights)


def _direct_encoding(value: int) -> dict[int, Bounds]:
    return normalize({output: _E if output == value else 1 for output in range(_VALUES)})


def _one_sided(answer: str) -> dict[str, Fraction]:
    """Heads: say Yes; tails: say the truth."""
    half = Fraction(1, 2)
    return {"Yes": Fraction(1)} if answer == "Yes" else {"Yes": half, "No": half}


def _two_sided(answer: str) -> dict[str, Bounds]:
    return normalize({output: _E if output == answer else 1 for output in ("Yes", "No")})


def _duchi(agrees: Callable[[int], list[str]], plus: Bounds) -> Callable[[Point], dict[Signs, Bounds]]:
    """Return Duchi's randomizer in two dimensions.

    Args:
        agrees: the halves ("plus", "minus") that an output belongs to, by its inner product with the rounded point.
        plus: the probability of the half that agrees.
    """
    corners = list(product((-1, 1), repeat=2))

    def law(point: Point) -> dict[Signs, Bounds]:
        total = {corner: [Fraction(0), Fraction(0)] for corner in corners}
        for rounded in corners:
            weight = math.prod((1 + sign * coordinate) / 2 for sign, coordinate in zip(rounded, point, strict=True))
            halves = {output: agrees(int(np.dot(output, rounded))) for output in corners}
            for half, chance in (("plus", plus), ("minus", (1 - plus[1], 1 - plus[0]))):
                members = [output for output in corners if half in halves[output]]
                for output in members:
                    total[output][0] += weight * chance[0] / len(members)
                    total[output][1] += weight * chance[1] / len(members)
        return {output: (low, high) for output, (low, high) in total.items()}

    return law


def _strict(inner: int) -> list[str]:
    return ["plus"] if inner > 0 else ["minus"]


def _overlapping(inner: int) -> list[str]:
    return ["plus"] * (inner >= 0) + ["minus"] * (inner <= 0)


_COIN = (_E[0] / (_E[0] + 1), _E[1] / (_E[1] + 1))
_RIGHT_COIN = (_E[0] / (_E[0] + 3), _E[1] / (_E[1] + 3))
_POINTS: tuple[Point, ...] = (
    *(tuple(map(Fraction, corner)) for corner in product((-1, 1), repeat=2)),
    (Fraction(0), Fraction(0)),
    (Fraction(1, 2), Fraction(-1, 3)),
)


def _piecewise(side: Callable[[float, float], float]) -> Callable[[float, int], Floats]:
    """Return the Piecewise randomizer at epsilon 1, given the probability of the left outer piece by its lengths."""
    root = math.exp(0.5)
    end = (root + 1) / (root - 1)

    def randomize(value: float, size: int) -> Floats:
        left = (end + 1) * value / 2 - (end - 1) / 2
        right = left + end - 1
        inner, goes_left, position = (samplers.uniform(size) for _ in range(3))
        chance = side(left + end, max(end - right, 0.0))
        outer = np.where(goes_left < chance, -end + position * (left + end), right + position * max(end - right, 0.0))
        return np.where(inner < root / (root + 1), left + position * (right - left), outer)

    return randomize


def _pairs(values: tuple[Any, ...]) -> tuple[tuple[Any, Any], ...]:
    return tuple(combinations(values, 2))


LOCAL: tuple[Exhibit, ...] = (
    Exhibit(
        name="direct_encoding_off_by_one",
        reference="L6",
        flaw="the lie is drawn from 0 .. d-2, so one value is never reported for a given truth "
        "(Chang, Zhuang and Samaraweera, listing 4.7).",
        claimed=_CLAIM,
        way=Way.EXACT,
        neighbors=_pairs(tuple(range(_VALUES))),
        broken=_off_by_one,
        corrected=_direct_encoding,
    ),
    Exhibit(
        name="one_sided_randomized_response",
        reference="E9, L4",
        flaw='heads say "Yes", tails tell the truth: a "No" is certainly true.',
        claimed=_CLAIM,
        way=Way.EXACT,
        neighbors=(("Yes", "No"),),
        broken=_one_sided,
        corrected=_two_sided,
    ),
    Exhibit(
        name="duchi_even_dimension",
        reference="L14",
        flaw="the halves have different sizes in an even dimension, but the coin is that of equal halves "
        "(Chang, Zhuang and Samaraweera, listing 5.3): epsilon is 2.0986, not 1.",
        claimed=_CLAIM,
        way=Way.EXACT,
        neighbors=_pairs(_POINTS),
        broken=_duchi(_strict, _COIN),
        corrected=_duchi(_strict, _RIGHT_COIN),
    ),
    Exhibit(
        name="duchi_overlapping_halves",
        reference="L14",
        flaw="both halves hold the outputs orthogonal to the rounded point: epsilon is ln(e + 1), not 1.",
        claimed=_CLAIM,
        way=Way.EXACT,
        neighbors=_pairs(_POINTS),
        broken=_duchi(_overlapping, _COIN),
        corrected=_duchi(_strict, _RIGHT_COIN),
    ),
    Exhibit(
        name="piecewise_endpoint_mass",
        reference="L12",
        flaw="left and right outer piece are equally likely whatever their lengths, so an empty piece gives its end a "
        "point mass (Chang, Zhuang and Samaraweera, listing 5.4).",
        claimed=_CLAIM,
        way=Way.STATISTICAL,
        neighbors=((1.0, -1.0), (1.0, 0.5)),
        broken=_piecewise(lambda _left, _right: 0.5),
        corrected=_piecewise(lambda left, right: left / (left + right)),
    ),
)
