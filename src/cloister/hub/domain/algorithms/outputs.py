"""The outputs that a foreign algorithm declares, and how whatever it returned is forced into their public set.

An output has a name, a public shape, and a public set that its values must lie in. Each number becomes a number of
steps of its output's public scale. A *box* output has from 0 to STEPS steps between the lower and the upper bound of
each coordinate; a *norm* output has at most STEPS steps in L1 or L2 around zero. Missing, infinite and undefined
numbers become the public default first.

Privacy: the result lies in the set for every input whatsoever, and the set's diameter is known. So if one person can
change the outputs of one block only, the sum over blocks changes by at most the diameter, which is what noise is
calibrated to. Rounding happens before the sum and sums are of integers, so no floating-point error adds to it.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Annotated, Any, ClassVar, TypeAlias

import numpy as np
from numpy.typing import NDArray
from pydantic import PlainSerializer, PlainValidator

from cloister.core import exact
from cloister.errors import ManifestError, ParameterError
from cloister.hub.domain.algorithms._fields import ManifestPart, Number, line, pair
from cloister.hub.domain.documents import WrittenAs, mistake

__all__ = ["MOST_COORDINATES", "AlgorithmOutput", "Clip", "OutputLayout"]


STEPS = 2**20
"""How many steps lie between the bounds of a coordinate, or between zero and the largest norm."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Clip:
    """One output with its shape and the public set that its values are forced into.

    ``low`` and ``high`` have one entry for each coordinate. ``norm`` is "box", "l1" or "l2"; for norms the entries are
    minus and plus the radius. ``default`` stands in for what is missing.
    """

    name: str
    shape: tuple[int, ...]
    norm: str
    low: NDArray[np.float64]
    high: NDArray[np.float64]
    default: NDArray[np.float64]
    steps: int = STEPS

    @property
    def size(self) -> int:
        """Return the number of coordinates."""
        return math.prod(self.shape)

    @property
    def l1(self) -> Fraction:
        """Return how far apart two results can be in L1, in steps (rounded up)."""
        match self.norm:
            case "box":
                return Fraction(self.size * self.steps)
            case "l1":
                return Fraction(2 * self.steps)
        # A ball in L2 is at most the root of its dimension times as wide in L1, and never wider than its box.
        return min(2 * self.steps * exact.sqrt_bounds(Fraction(self.size))[1], Fraction(2 * self.size * self.steps))

    @property
    def squared_l2(self) -> Fraction:
        """Return how far apart two results can be in L2, squared, in steps."""
        return Fraction(self.size * self.steps**2 if self.norm == "box" else 4 * self.steps**2)

    def to_steps(self, values: NDArray[np.float64] | None) -> NDArray[np.int64]:
        """Return any numbers, or none at all, as steps inside of the set."""
        given = self.default if values is None else np.where(np.isfinite(values), values, self.default)
        if self.norm == "box":
            share = (np.clip(given, self.low, self.high) - self.low) / (self.high - self.low)
            # Division may pass an end by a hair, and the set has to hold for every input whatsoever.
            return np.clip(np.rint(share * self.steps), 0, self.steps).astype(np.int64)
        share = np.clip(given, self.low, self.high) / self.high
        return self._shrunk(np.clip(np.rint(share * self.steps), -self.steps, self.steps).astype(np.int64))

    def from_steps(self, total: NDArray[np.int64], blocks: int) -> NDArray[np.float64]:
        """Return the average that a (noisy) sum of steps over blocks stands for, within the bounds."""
        share = total.astype(np.float64) / (blocks * self.steps)
        if self.norm == "box":
            return np.clip(self.low + share * (self.high - self.low), self.low, self.high).reshape(self.shape)
        return np.clip(share * self.high, self.low, self.high).reshape(self.shape)

    def scale(self, blocks: int) -> NDArray[np.float64]:
        """Return by how much one step moves the average of each coordinate."""
        width = self.high - self.low if self.norm == "box" else self.high
        return np.asarray(width / (blocks * self.steps)).reshape(self.shape)

    def _shrunk(self, steps: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return whole numbers whose norm is at most the limit: scaled down, then rounded towards zero."""
        size = np.abs(steps)
        if self.norm == "l1":
            length = int(size.sum())
        else:
            square = int((size * size).sum())
            # The length is rounded up, so that what it divides cannot stay above the limit.
            length = math.isqrt(square)
            length += length * length < square
        if length <= self.steps:
            return steps
        return np.asarray(np.sign(steps) * (size * self.steps // length), dtype=np.int64)


MOST_COORDINATES = 10_000
_MOST_AXES = 3
_PUBLIC_AXES = "use whole numbers, names of integer parameters, or names of inputs (their number of columns)."


def _read_shape(found: Any) -> tuple[int | str, ...]:  # whatever the file holds
    if not isinstance(found, list) or len(found) > _MOST_AXES:
        raise mistake(
            f"this is not a list of at most {_MOST_AXES} axes.",
            fix="write for example shape: [3], or shape: [] for one number.",
        )
    if not all(isinstance(axis, str) or (type(axis) is int and 1 <= axis <= MOST_COORDINATES) for axis in found):
        raise mistake("this has an axis that is not public.", fix=_PUBLIC_AXES)
    return tuple(found)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Norm(ManifestPart):
    left_out: ClassVar = ("l1", "l2")

    l1: Number | None = None
    l2: Number | None = None


def _read_norm(norm: _Norm) -> tuple[str, Fraction]:
    given = [(name, radius) for name, radius in (("l1", norm.l1), ("l2", norm.l2)) if radius is not None]
    if len(given) != 1:
        raise mistake("this needs one of l1 and l2.", fix="write for example norm: {l1: 1}.")
    if given[0][1] <= 0:
        raise mistake("this is not above 0.", fix="write a positive radius.")
    return given[0]


_Radius: TypeAlias = Annotated[tuple[str, Fraction], WrittenAs(_Norm, _read_norm, lambda norm: _Norm(**dict([norm])))]
_Ends: TypeAlias = Annotated[
    "tuple[Fraction, Fraction] | str",
    PlainValidator(lambda found: found if isinstance(found, str) else pair(found)),
    PlainSerializer(lambda ends: ends if isinstance(ends, str) else list(map(float, ends))),
]


@dataclass(frozen=True, slots=True, kw_only=True)
class AlgorithmOutput(ManifestPart):
    """One declared output.

    Attributes:
        name: what it is called in the answer.
        shape: for each axis a number, the name of an integer parameter, or the name of an input (its columns).
        title: what it is, for people.
        bounds: (lower, upper) of every value, or the name of an input whose columns' bounds apply along the last axis.
        norm: ("l1" or "l2", radius) instead of bounds.
        default: what stands in where a block gave nothing; by default the middle.
    """

    unwritten: ClassVar = ("name",)
    left_out: ClassVar = ("bounds", "norm", "default")

    name: str = ""
    shape: Annotated[tuple[int | str, ...], PlainValidator(_read_shape), PlainSerializer(list)]
    title: Annotated[str, line()] = ""
    bounds: _Ends | None = None
    norm: _Radius | None = None
    default: Number | None = None

    def __post_init__(self) -> None:
        if (self.bounds is None) == (self.norm is None):
            raise ManifestError(
                "This needs either bounds or a norm.",
                fix="write bounds: [0, 1], or norm: {l1: 1}; values are clipped to them before noise is added.",
            )
        if self.default is not None and isinstance(self.bounds, str):
            raise ManifestError(
                "The default cannot be one number for columns of different bounds.",
                fix="leave default out: the middle of each column's bounds is used.",
            )
        if self.default is not None and not self._allows(self.default):
            raise ManifestError("The default is out of bounds.", fix="write a value within the bounds.")

    def check_names(self, *, integers: Collection[str], inputs: Collection[str]) -> None:
        """Raise where an axis or the bounds name anything but integer parameters and inputs of the same manifest."""
        if any(isinstance(axis, str) and axis not in (*integers, *inputs) for axis in self.shape):
            raise ManifestError(f"outputs.{self.name}.shape: this has an axis that is not public.", fix=_PUBLIC_AXES)
        is_last = self.bounds in inputs and bool(self.shape) and self.shape[-1] == self.bounds
        if isinstance(self.bounds, str) and not is_last:
            raise ManifestError(
                f"outputs.{self.name}.bounds: this does not name the input of the last axis.",
                fix="write two numbers, or the name of an input that is also the last axis of the shape.",
            )

    def resolve(self, parameters: Mapping[str, object], column_bounds: Mapping[str, list[tuple[float, float]]]) -> Clip:
        """Return the output with the shape and bounds that public choices give it."""
        shape = tuple(_axis(axis, parameters, column_bounds) for axis in self.shape)
        size = math.prod(shape)
        if not 1 <= size <= MOST_COORDINATES:
            raise ParameterError(
                f'The output "{self.name}" would have {size:,} numbers.',
                fix=f"choose parameters and columns that give from 1 to {MOST_COORDINATES:,}.",
            )
        low, high = self._ends(shape, column_bounds)
        middle = (low + high) / 2 if self.default is None else np.full(size, float(self.default))
        norm = "box" if self.norm is None else self.norm[0]
        return Clip(name=self.name, shape=shape, norm=norm, low=low, high=high, default=middle)

    def _ends(
        self, shape: tuple[int, ...], column_bounds: Mapping[str, list[tuple[float, float]]]
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        if isinstance(self.bounds, str):
            ends = np.array(column_bounds[self.bounds], dtype=np.float64)
            return np.resize(ends[:, 0], math.prod(shape)), np.resize(ends[:, 1], math.prod(shape))
        low, high = self.bounds if self.bounds is not None else (-self._radius, self._radius)
        return np.full(math.prod(shape), float(low)), np.full(math.prod(shape), float(high))

    @property
    def _radius(self) -> Fraction:
        return self.norm[1] if self.norm is not None else Fraction(1)

    def _allows(self, value: Fraction) -> bool:
        if isinstance(self.bounds, tuple):
            return self.bounds[0] <= value <= self.bounds[1]
        return value == 0


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class OutputLayout:
    """All outputs of one run, with their public shapes and sets, in the order in which they are returned."""

    clips: tuple[Clip, ...]

    @property
    def size(self) -> int:
        """Return the number of coordinates of all outputs together."""
        return sum(clip.size for clip in self.clips)

    @property
    def l1(self) -> Fraction:
        """Return how far one block can move the sum of all steps, in L1."""
        return sum((clip.l1 for clip in self.clips), Fraction(0))

    @property
    def squared_l2(self) -> Fraction:
        """Return how far one block can move the sum of all steps, in L2, squared."""
        return sum((clip.squared_l2 for clip in self.clips), Fraction(0))

    def to_steps(self, values: NDArray[np.float64] | None) -> NDArray[np.int64]:
        """Return what one block returned, anything or nothing, as steps inside of the public sets."""
        if values is None or values.shape != (self.size,):
            return np.concatenate([clip.to_steps(None) for clip in self.clips])
        return np.concatenate([clip.to_steps(part) for clip, part in zip(self.clips, self._parts(values), strict=True)])

    def from_steps(self, total: NDArray[np.int64], blocks: int) -> dict[str, NDArray[np.float64]]:
        """Return the averages that a (noisy) sum of steps over blocks stands for."""
        parts = self._parts(total)
        return {clip.name: clip.from_steps(part, blocks) for clip, part in zip(self.clips, parts, strict=True)}

    def _parts(self, values: NDArray[Any]) -> list[NDArray[Any]]:
        return np.split(values, np.cumsum([clip.size for clip in self.clips])[:-1])


def _axis(axis: int | str, parameters: Mapping[str, object], columns: Mapping[str, list[tuple[float, float]]]) -> int:
    if isinstance(axis, int):
        return axis
    if axis in columns:
        return len(columns[axis])
    found = parameters[axis]
    return found if isinstance(found, int) else 0
