"""The lattice on which noise is added, multiples of a public power of two, and the mechanisms that add it there.

A real query is rounded to the lattice, integer noise is added to the number of steps, and the sum is scaled back.
Rounding half a step up is monotone and commutes with whole steps, so neighbors at most s apart stay within ceil(s/g)
steps, which rounding half to even would not give.
With d coordinates each can gain up to one step: at most s/g + d steps in L1 and s/g + sqrt(d) in L2.
"""

from __future__ import annotations

import math
import sys
from abc import abstractmethod
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, overload

import numpy as np
from numpy.typing import NDArray

from cloister.accounting.events import Event
from cloister.core import exact, validation
from cloister.core.exact import Number
from cloister.core.guarantees import Adjacency, DifferentialPrivacy
from cloister.core.random import RandomState
from cloister.errors import ParameterError
from cloister.mechanisms.base import (
    ROOM,
    NoisyAnswer,
    Numbers,
    open_source,
    private_integers,
    private_reals,
    unwrap,
    with_room,
)
from cloister.mechanisms.sampling.discrete_noise import Sampler

_STEPS_PER_SCALE = 2**20
_HALF = Fraction(1, 2)


@dataclass(frozen=True, slots=True)
class NoiseLattice:
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
        # Scaling by a power of two is exact; what underflows is nearest to zero anyway, and what overflows goes the
        # exact way.
        with np.errstate(over="ignore", under="ignore"):
            scaled = np.ldexp(values, -self._exponent)
        if not (np.abs(scaled) < ROOM).all():
            return None
        whole = np.floor(scaled)
        # Adding a half before the floor would itself round: 0.49999999999999994 + 0.5 is 1.0 in doubles.
        return np.asarray(whole + (scaled - whole >= 0.5), dtype=np.int64)

    def _integer_steps(self, values: NDArray[Any]) -> NDArray[np.int64] | None:
        factor = 1 / self.granularity
        # A granularity above 1 would need a division, which is left to the exact way.
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
        # Rounding may add a step to each coordinate: with a step this small, all of them cost a thousandth at most.
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
    # Rounding adds less than one step to what each coordinate moves, and the sum of steps is whole.
    return int(sensitivity / granularity) + dimensions


def steps_apart_l2(sensitivity: Fraction, granularity: Fraction, dimensions: int) -> Fraction:
    """Return how many steps neighbors are apart at most, in L2, after rounding."""
    if dimensions == 1:
        return Fraction(exact.ceil_div(sensitivity, granularity))
    return sensitivity / granularity + exact.sqrt_bounds(Fraction(dimensions))[1]


@dataclass(frozen=True, slots=True, kw_only=True)
class LatticeNoise:
    """Integer noise added to the number of lattice steps of a value.

    ``sensitivity`` is how far neighboring datasets can move the value; it has no default, since only the caller knows.
    """

    sensitivity: Fraction
    adjacency: Adjacency = Adjacency.ADD_REMOVE
    unit: str = "row"

    def __post_init__(self) -> None:
        sensitivity = validation.check_positive(self.sensitivity, name="sensitivity")
        object.__setattr__(self, "sensitivity", sensitivity)
        object.__setattr__(self, "adjacency", Adjacency(self.adjacency))

    @property
    @abstractmethod
    def guarantee(self) -> DifferentialPrivacy:
        """Return what a release promises."""

    @property
    @abstractmethod
    def event(self) -> Event:
        """Return what a release is for the accountants."""

    @property
    @abstractmethod
    def standard_deviation(self) -> float:
        """Return the standard deviation of the noise on one coordinate."""

    @abstractmethod
    def margin(self, confidence: Number = 0.95) -> float:
        """Return the half-width that covers the noise on one coordinate with a probability."""

    @abstractmethod
    def _sampler(self) -> Sampler: ...

    @abstractmethod
    def _to_steps(self, value: object) -> NDArray[Any]: ...

    @abstractmethod
    def _from_steps(self, steps: NDArray[Any]) -> NDArray[Any]: ...

    @overload
    def release(self, value: float, *, random_state: RandomState = None) -> NoisyAnswer[float]: ...
    @overload
    def release(self, value: Numbers, *, random_state: RandomState = None) -> NoisyAnswer[NDArray[Any]]: ...
    def release(self, value: object, *, random_state: RandomState = None) -> NoisyAnswer[Any]:
        """Return the value with independent noise on every coordinate."""
        source, guarantee = open_source(random_state, self.guarantee)
        steps = self._to_steps(value)
        noisy = steps.ravel() + self._sampler().draw(source, steps.size)
        answer = unwrap(self._from_steps(noisy).reshape(steps.shape))
        return NoisyAnswer(value=answer, guarantee=guarantee, mechanism=self, event=self.event)


@dataclass(frozen=True, slots=True, kw_only=True)
class IntegerNoise(LatticeNoise):
    """Noise on whole numbers, such as counts: the lattice is the integers."""

    def _to_steps(self, value: object) -> NDArray[Any]:
        return private_integers(value)

    def _from_steps(self, steps: NDArray[Any]) -> NDArray[Any]:
        return steps


@dataclass(frozen=True, slots=True, kw_only=True)
class RealNoise(LatticeNoise):
    """Noise on real numbers, rounded to a lattice of public granularity."""

    dimensions: int = 1
    granularity: Fraction | None = None

    def __post_init__(self) -> None:
        LatticeNoise.__post_init__(self)
        dimensions = validation.check_count(self.dimensions, name="dimensions", at_least=1)
        object.__setattr__(self, "dimensions", dimensions)

    @property
    def lattice(self) -> NoiseLattice:
        """Return the lattice that values are rounded to."""
        return NoiseLattice(Fraction(self.granularity or 1))

    def _choose_granularity(self, scale: Fraction) -> None:
        """Settle the granularity, given the scale that the noise will have."""
        granularity = choose_granularity(
            self.granularity, scale=scale, sensitivity=self.sensitivity, dimensions=self.dimensions
        )
        object.__setattr__(self, "granularity", granularity)

    def _to_steps(self, value: object) -> NDArray[Any]:
        return self.lattice.steps(private_reals(value, dimensions=self.dimensions))

    def _from_steps(self, steps: NDArray[Any]) -> NDArray[Any]:
        return self.lattice.values(steps)
