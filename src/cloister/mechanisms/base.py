"""What every mechanism offers, and the answer that it gives.

A mechanism is a frozen value that knows only public numbers. `Mechanism.release` is the one place where a private
value goes in; the answer that comes out carries the guarantee, the event for the accountants and the margin of error.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, ClassVar, Generic, Protocol, TypeAlias, TypeVar, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from cloister.accounting.events import Event, PureEvent
from cloister.core.exact import Number
from cloister.core.guarantees import Adjacency, DifferentialPrivacy, Guarantee, PureDP
from cloister.core.random import RandomSource, RandomState, caveats_of, random_source
from cloister.core.registry import Registry
from cloister.core.result import Result
from cloister.core.wordings import format_estimate
from cloister.errors import ParameterError, ParameterTypeError

Value_co = TypeVar("Value_co", bound="float | NDArray[Any]", covariant=True)
Numbers: TypeAlias = "Sequence[Any] | NDArray[Any]"

ROOM = 2**62
"""Integers up to here leave room for noise in 64 bits."""

_EXACT_IN_DOUBLE = (np.float16, np.float32, np.float64)

mechanisms: Registry[type[Any]] = Registry("mechanism")
"""Every mechanism by name."""


@runtime_checkable
class Mechanism(Protocol):
    """Something that turns a private value into a private answer."""

    @property
    def guarantee(self) -> DifferentialPrivacy:
        """Return what a release promises."""
        ...

    @property
    def event(self) -> Event:
        """Return what a release is for the accountants."""
        ...

    def release(self, value: Any, *, random_state: RandomState = None) -> Any:
        """Return a private answer about a private value."""
        ...


@runtime_checkable
class AdditiveNoise(Protocol):
    """A mechanism that adds noise of a known law to each coordinate."""

    @property
    def standard_deviation(self) -> float:
        """Return the standard deviation of the noise on one coordinate."""
        ...

    def margin(self, confidence: Number = 0.95) -> float:
        """Return the half-width that covers the noise on one coordinate with a probability."""
        ...


class PurePromise:
    """The promise of a mechanism that is epsilon-private and of which the accountants need to know no more."""

    __slots__ = ()

    epsilon: Fraction
    adjacency: Adjacency
    unit: str

    @property
    def guarantee(self) -> PureDP:
        """Return what a release promises."""
        return PureDP(epsilon=self.epsilon, adjacency=self.adjacency, unit=self.unit)

    @property
    def event(self) -> Event:
        """Return what a release is for the accountants."""
        return PureEvent(epsilon=self.epsilon)


@dataclass(frozen=True, slots=True, kw_only=True)
class NoisyAnswer(Result, Generic[Value_co]):
    """A number, or a vector of numbers, with noise of a known size."""

    schema: ClassVar[str] = "cloister.answer/1"

    value: Value_co
    mechanism: AdditiveNoise = field(repr=False)
    event: Event = field(repr=False)

    def margin(self, confidence: Number = 0.95) -> float:
        """Return the half-width that covers the error of one coordinate with a probability."""
        return self.mechanism.margin(confidence)

    def interval(self, confidence: Number = 0.95) -> tuple[Any, Any]:
        """Return (low, high), each of the shape of the value."""
        value: Any = self.value  # NumPy adds to numbers and arrays alike
        margin = self.margin(confidence)
        return value - margin, value + margin

    def __str__(self) -> str:
        margin = self.margin()
        shown = _format_value(self.value, margin)
        return f"{shown} ± {format_estimate(margin, margin)} (95%), {self.guarantee.brief()}"

    def _fields(self) -> dict[str, Any]:
        value = self.value.tolist() if isinstance(self.value, np.ndarray) else self.value
        return {
            "value": value,
            "margin": {"confidence": 0.95, "half_width": self.margin()},
            "standard_deviation": self.mechanism.standard_deviation,
            "mechanism": type(self.mechanism).__name__,
            "event": self.event.to_dict(),
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection(Result):
    """The element that was chosen; scores stay inside."""

    schema: ClassVar[str] = "cloister.selection/1"

    index: int
    choice: Any
    event: Event = field(repr=False)

    def __str__(self) -> str:
        return f"{self.choice}, {self.guarantee.brief()}"

    def _fields(self) -> dict[str, Any]:
        return {"index": self.index, "choice": self.choice, "event": self.event.to_dict()}


def open_source(random_state: RandomState, guarantee: Guarantee) -> tuple[RandomSource, Any]:
    """Return the random source and the guarantee, tainted where the source is predictable."""
    source = random_source(random_state)
    return source, guarantee.with_caveat(*caveats_of(source))


def private_integers(value: object) -> NDArray[Any]:
    """Return a private value as an array of integers, Python's own where 64 bits leave no room; never quotes it."""
    array = exact_numbers(value)
    if not _holds_integers(array):
        raise ParameterTypeError(
            "Integer noise needs a whole number or an array of them.",
            fix="pass an int or an integer array; for real numbers use the Laplace or Gaussian mechanism.",
        )
    return array


def private_reals(value: object, *, dimensions: int) -> NDArray[Any]:
    """Return a private value as finite numbers of the declared length, unrounded; never quotes it."""
    array = exact_numbers(value)
    if array.size != dimensions:
        raise ParameterError(
            f"The value has {array.size} coordinates, but the mechanism was made for {dimensions}.",
            fix=f"pass dimensions={array.size} when you make the mechanism.",
        )
    return array


def exact_numbers(value: object) -> NDArray[Any]:
    """Return finite numbers as 64-bit floats, 64-bit integers with room for noise, or Python's own; never rounded.

    Lists are looked at one by one: NumPy would round integers that it finds beside floats or beyond 64 bits, which
    could take neighbors apart.
    """
    array: NDArray[Any] = np.asarray(value) if hasattr(value, "__array__") else np.asarray(value, dtype=object)
    if isinstance(value, np.ma.MaskedArray):
        raise ParameterTypeError("The value has a mask.", fix="fill or drop masked values first.")
    if array.dtype == object:
        array = _from_python(array)
    if array.dtype.kind in "iu" or _holds_integers(array):
        return with_room(array)
    # Wider floats would be rounded to doubles, by which neighbors could move further apart than declared.
    if array.dtype != object and array.dtype not in _EXACT_IN_DOUBLE:
        raise ParameterTypeError(
            "The value is not a number or an array of numbers of at most double precision.",
            fix="pass integers or floats; round wider ones to public steps first.",
        )
    if not _is_finite(array):
        raise ParameterError(
            "The value is not finite.", fix="clamp values to public bounds and drop missing ones before adding noise."
        )
    return array if array.dtype == object else array.astype(np.float64)


def _is_finite(array: NDArray[Any]) -> bool:
    if array.dtype == object:
        return all(math.isfinite(item) for item in array.flat if isinstance(item, float))
    return bool(np.isfinite(array).all())


def with_room(array: NDArray[Any]) -> NDArray[Any]:
    """Return integers as 64 bits where that leaves room for noise, else as Python's own."""
    # Two comparisons, since abs() of the least int64 is negative.
    fits = bool(((array <= ROOM) & (array >= -ROOM)).all())
    return array.astype(np.int64 if fits else object)


def _from_python(array: NDArray[Any]) -> NDArray[Any]:
    """Return Python's numbers as floats where all are floats, else one by one; the rest as text, to be refused."""
    items = [item.item() if isinstance(item, np.generic) else item for item in array.flat]
    if all(type(item) is float for item in items) and items:
        return np.array(items).reshape(array.shape)
    if not all(type(item) in (int, float) for item in items):
        return np.array("refused")
    # Given a list, NumPy would look for a common type and round some of the numbers.
    exactly = np.empty(len(items), dtype=object)
    exactly[:] = items
    return exactly.reshape(array.shape)


def _holds_integers(array: NDArray[Any]) -> bool:
    return array.dtype == np.int64 or (array.dtype == object and all(type(item) is int for item in array.flat))


def unwrap(array: NDArray[Any]) -> Any:
    """Return a Python number for a scalar, the array itself otherwise."""
    return array.item() if array.ndim == 0 else array


def _format_value(value: Any, margin: float) -> str:
    if isinstance(value, np.ndarray):
        first = ", ".join(format_estimate(item, margin) for item in value.flat[:6])
        return f"[{first}, ...]" if value.size > 6 else f"[{first}]"
    return format_estimate(value, margin)
