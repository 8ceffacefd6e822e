"""The lattice on which noise is added: multiples of a public power of two.

A real query is rounded to the lattice, integer noise is added to the number of steps, and the sum is scaled back.
Rounding half a step up is monotone and commutes with whole steps, so neighbors at most s apart stay within ceil(s/g)
steps, which rounding half to even would not give.
With d coordinates each can gain up to one step: at most s/g + d steps in L1 and s/g + sqrt(d) in L2.
"""

from __future__ import annotations

import math
import sys
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cloister.core import exact, validation
from cloister.errors import ParameterError
from cloister.mechanisms.base import ROOM, with_room

_STEPS_PER_SCALE = 2**20
_HALF = Fraction(1, 2)


@dataclass(frozen=True, slots=True)
class Lattice:
    """Multiples of a granularity."""

    granularity: Fraction

    def steps(self, values: NDArray[Any]) -> NDArray[Any]:
        """Return floats or integers as whole steps, half a step rounding up; Python integers where 64 bits are few.

        Rounding half to even would not do: it can take neighbors one step apart two steps apart.
        """
        quickly = self._float_steps(values) if values.dtype == np.float64 else self._integer_steps(values)
        if quickly is not None:
            return quickly
        rounded = [math.floor(Fraction(value) / self.granularity + _HALF) for value in values.ravel().tolist()]
        return with_room(np.array(rounded, dtype=object).reshape(values.shape))

    def _float_steps(self, values: NDArray[np.float64]) -> NDArray[np.int64] | None:
        with np.errstate(over="ignore", under="ignore"):
            scaled = np.ldexp(values, -self._exponent)
        if not (np.abs(scaled) < ROOM).all():
            return None
        whole = np.floor(scaled)
        return np.asarray(whole + (scaled - whole >= 0.5), dtype=np.int64)

    def _integer_steps(self, values: NDArray[Any]) -> NDArray[np.int64] | None:
        factor = 1 / self.granularity
        if values.dtype == object or factor.denominator != 1 or factor.numerator > ROOM:
            return None
        if not (np.abs(values) <= ROOM // factor.numerator).all():
            return None
        return np.asarray(values * factor.numerator, dtype=np.int64)

    def values(self, steps: NDArray[Any]) -> NDArray[np.float64]:
        """Return steps as values; rounding here touches only what is already private."""
        if steps.dtype == object:
            exactly = [_nearest_float(step * self.granularity) for step in steps.ravel().tolist()]
            return np.array(exactly).reshape(steps.shape)
        return np.ldexp(steps.astype(np.float64), self._exponent)

    @property
    def _exponent(self) -> int:
        return self.granularity.numerator.bit_length() - self.granularity.denominator.bit_length()


def _nearest_float(value: Fraction) -> float:
    largest = Fraction(sys.float_info.max)
    return float(min(max(value, -largest), largest))


def choose_granularity(given: object | None, *, scale: Fraction, sensitivity: Fraction, dimensions: int) -> Fraction:
    """Return a given granularity if it is a power of two, else one that costs at most a thousandth of the noise."""
    if given is None:
        finest = min(scale, sensitivity) / _STEPS_PER_SCALE
        return exact.power_of_two_below(min(finest, sensitivity / (2**10 * dimensions)))
    granularity = validation.check_positive(given, name="granularity")
    if exact.power_of_two_below(granularity) != granularity:
        near = float(exact.power_of_two_below(granularity))
        raise ParameterError("The granularity must be a power of two.", fix=f"use granularity={near:g}.")
    return granularity


def steps_apart_l1(sensitivity: Fraction, granularity: Fraction, dimensions: int) -> int:
    """Return how many steps neighbors are apart at most, in L1, after rounding."""
    if dimensions == 1:
        return exact.ceil_div(sensitivity, granularity)
    return int(sensitivity / granularity) + dimensions


def steps_apart_l2(sensitivity: Fraction, granularity: Fraction, dimensions: int) -> Fraction:
    """Return how many steps neighbors are apart at most, in L2, after rounding."""
    if dimensions == 1:
        return Fraction(exact.ceil_div(sensitivity, granularity))
    return sensitivity / granularity + exact.sqrt_bounds(Fraction(dimensions))[1]
