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
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cloister.core import exact
from cloister.errors import ManifestError, ParameterError
from cloister.hub.domain.algorithms._sections import ManifestSection, finite, pair

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
_NORMS = ("l1", "l2")


@dataclass(frozen=True, slots=True, kw_only=True)
class AlgorithmOutput:
    """One declared output.

    Attributes:
        name: what it is called in the answer.
        shape: for each axis a number, the name of an integer parameter, or the name of an input (its columns).
        bounds: (lower, upper) of every value, or the name of an input whose columns' bounds apply along the last axis.
        norm: ("l1" or "l2", radius) instead of bounds.
        default: what stands in where a block gave nothing; by default the middle.
        title: what it is, for people.
    """

    name: str
    shape: tuple[int | str, ...]
    bounds: tuple[Fraction, Fraction] | str | None = None
    norm: tuple[str, Fraction] | None = None
    default: Fraction | None = None
    title: str = ""

    @classmethod
    def read(cls, name: str, values: object, *, integers: Collection[str], inputs: Collection[str]) -> AlgorithmOutput:
        """Return the output that plain values state."""
        section = ManifestSection(
            values, where=f"outputs.{name}", known=("shape", "bounds", "norm", "default", "title")
        )
        shape = _shape(section, (*integers, *inputs))
        if section.has("bounds") == section.has("norm"):
            raise ManifestError(
                f"{section.where} needs either bounds or a norm.",
                fix="write bounds: [0, 1], or norm: {l1: 1}; values are clipped to them before noise is added.",
            )
        output = cls(
            name=name,
            shape=shape,
            bounds=_bounds(section, inputs, shape) if section.has("bounds") else None,
            norm=_norm(section) if section.has("norm") else None,
            default=section.number("default") if section.has("default") else None,
            title=section.text("title", name),
        )
        if output.default is not None and isinstance(output.bounds, str):
            raise ManifestError(
                f"{section.path('default')} cannot be one number for columns of different bounds.",
                fix="leave default out: the middle of each column's bounds is used.",
            )
        if output.default is not None and not output._allows(output.default):
            raise ManifestError(f"{section.path('default')} is out of bounds.", fix="write a value within the bounds.")
        return output

    def to_dict(self) -> dict[str, Any]:
        """Return the plain values that `read` takes."""
        values: dict[str, Any] = {"shape": list(self.shape), "title": self.title}
        if isinstance(self.bounds, str):
            values["bounds"] = self.bounds
        elif self.bounds is not None:
            values["bounds"] = [float(end) for end in self.bounds]
        if self.norm is not None:
            values["norm"] = {self.norm[0]: float(self.norm[1])}
        if self.default is not None:
            values["default"] = float(self.default)
        return values

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


def _shape(section: ManifestSection, names: Collection[str]) -> tuple[int | str, ...]:
    found = section.any("shape")
    if not isinstance(found, list) or len(found) > _MOST_AXES:
        raise ManifestError(
            f"{section.path('shape')} is not a list of at most {_MOST_AXES} axes.",
            fix="write for example shape: [3], or shape: [] for one number.",
        )
    for axis in found:
        fine = axis in names if isinstance(axis, str) else type(axis) is int and 1 <= axis <= MOST_COORDINATES
        if not fine:
            raise ManifestError(
                f"{section.path('shape')} has an axis that is not public.",
                fix="use whole numbers, names of integer parameters, or names of inputs (their number of columns).",
            )
    return tuple(found)


def _bounds(
    section: ManifestSection, inputs: Collection[str], shape: tuple[int | str, ...]
) -> tuple[Fraction, Fraction] | str:
    found = section.any("bounds")
    if not isinstance(found, str):
        return pair(found, section.path("bounds"))
    if found not in inputs or not shape or shape[-1] != found:
        raise ManifestError(
            f"{section.path('bounds')} does not name the input of the last axis.",
            fix="write two numbers, or the name of an input that is also the last axis of the shape.",
        )
    return found


def _norm(section: ManifestSection) -> tuple[str, Fraction]:
    inner = ManifestSection(section.any("norm"), where=section.path("norm"), known=_NORMS)
    given = [kind for kind in _NORMS if inner.has(kind)]
    if len(given) != 1:
        raise ManifestError(f"{inner.where} needs one of l1 and l2.", fix="write for example norm: {l1: 1}.")
    radius = finite(inner.any(given[0]), inner.path(given[0]))
    if radius <= 0:
        raise ManifestError(f"{inner.where} is not above 0.", fix="write a positive radius.")
    return given[0], radius
