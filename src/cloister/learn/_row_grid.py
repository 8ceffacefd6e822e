"""A grid of whole steps for rows of several columns, and how long a row can be on it.

Sums and products of rows are released with noise on whole numbers, so that rounding never decides how far neighbors are
apart. Numbers are counted from the middle of their bounds, indicator columns of a category from 0: a row has one of
them at most, so a category of many values moves the sums as little as one of few.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from cloister.core.postprocessing import project_to_simplex
from cloister.core.whole_rows import Floats, limit_norms
from cloister.errors import ParameterError
from cloister.learn._encoding import Encoding
from cloister.learn._features import Categorical

__all__ = ["SCALES", "RowBounds", "RowGrid", "grid_of"]

SCALES = ("range", "given")
"""How distances are measured: in units of public ranges, or as the numbers are given."""

BITS = 15
"""A unit is 2**BITS steps."""

_FARTHEST = 2.0**31
"""How many steps a number can be from the origin."""

_AT_A_TIME = 2**11
"""How many rows are worked on at a time: few enough to stay in the cache."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RowBounds:
    """How large a row can be, in whole steps: the sums of its absolute values, squares and fourth powers."""

    total: int
    squares: int
    fourths: int
    largest: int

    def limited(self, most: int, width: int) -> RowBounds:
        """Return the bounds of rows that are shrunk to a Euclidean norm of so many steps."""
        squares = min(self.squares, most**2)
        return RowBounds(
            # The sum of absolute values is at most the root of the width times the norm, rounded up.
            total=min(self.total, math.isqrt(width * squares) + 1),
            squares=squares,
            fourths=min(self.fourths, squares * min(self.largest, most) ** 2),
            largest=min(self.largest, most),
        )


@dataclass(frozen=True, eq=False)
class RowGrid:
    """Where step 0 of each column is, how large a step is, and which steps there are."""

    origins: Floats
    sizes: Floats
    lows: NDArray[np.int64]
    highs: NDArray[np.int64]
    parts: tuple[slice, ...]
    """The columns of each feature; of several columns, a row has at most one that is not 0."""
    steps_per_unit: float

    @cached_property
    def limits(self) -> NDArray[np.int64]:
        """Return the largest distance from the origin, of each column."""
        return np.maximum(np.abs(self.lows), np.abs(self.highs))

    @cached_property
    def row_bounds(self) -> RowBounds:
        """Return how large a row can be."""
        # Of the columns of a category a row has one, so that only the largest of them counts.
        reach = [int(self.limits[part].max()) for part in self.parts]
        return RowBounds(
            total=sum(reach),
            squares=sum(limit**2 for limit in reach),
            fourths=sum(limit**4 for limit in reach),
            largest=max(reach),
        )

    def steps(self, features: Floats, *, most: int | None = None) -> Floats:
        """Return encoded rows in whole steps, each clipped by itself, and shrunk to a norm of ``most`` if there is one.

        What lies outside of the bounds is clipped; an indicator is 0 or 1 already.
        """
        steps = np.empty(features.shape)
        # Otherwise a huge number would overflow, and the warning of it would say that there is one.
        nearest, farthest = self.origins + (self.lows - 1) * self.sizes, self.origins + (self.highs + 1) * self.sizes
        per_step, lows, highs = 1 / self.sizes, self.lows.astype(np.float64), self.highs.astype(np.float64)
        for start in range(0, len(steps), _AT_A_TIME):
            part = steps[start : start + _AT_A_TIME]
            np.clip(features[start : start + _AT_A_TIME], nearest, farthest, out=part)
            np.subtract(part, self.origins, out=part)
            np.multiply(part, per_step, out=part)
            np.rint(part, out=part)
            np.maximum(part, lows, out=part)
            np.minimum(part, highs, out=part)
        return steps if most is None else limit_norms(steps, most=most)

    def column_steps(self, place: int, column: Floats) -> Floats:
        """Return one encoded column in whole steps, as `steps` does for all."""
        low, high, size = float(self.lows[place]), float(self.highs[place]), self.sizes[place]
        nearest, farthest = self.origins[place] + (low - 1) * size, self.origins[place] + (high + 1) * size
        steps = np.minimum(np.maximum(column, nearest), farthest)
        steps -= self.origins[place]
        steps *= 1 / size
        np.rint(steps, out=steps)
        return np.asarray(np.minimum(np.maximum(steps, low, out=steps), high, out=steps))

    def values(self, steps: Floats) -> Floats:
        """Return rows of steps as values of the columns."""
        return np.asarray(self.origins + steps * self.sizes)

    def inside(self, centers: Floats) -> Floats:
        """Return the nearest points at which the mean of some rows can lie, in steps."""
        nearest = np.clip(centers, self.lows, self.highs)
        for part in self.parts:
            top = float(self.highs[part.start])
            if part.stop - part.start > 1:
                # The shares of a category's values in some rows add up to one at most.
                for row in np.flatnonzero(nearest[:, part].sum(axis=1) > top):
                    nearest[row, part] = project_to_simplex(centers[row, part], total=top)
        return np.asarray(nearest)

    def structure(self) -> NDArray[np.bool_]:
        """Return which pairs of columns can both differ from 0 in a row."""
        possible = np.ones((len(self.origins), len(self.origins)), dtype=np.bool_)
        for part in self.parts:
            possible[part, part] = np.eye(part.stop - part.start, dtype=np.bool_)
        return possible


def grid_of(encoding: Encoding, *, scale: str, origin: str = "inside") -> RowGrid:
    """Return the grid of encoded columns.

    Args:
        encoding: the public facts about the columns.
        scale: "range" measures each number in units of its public range, "given" all in the units they have.
        origin: what values are counted from: the middle of numbers but 0 for indicators ("inside"), the middle of all
            columns ("middle"), or 0 for all ("zero").
    """
    lows, highs = encoding.bounds
    indicator = np.array(
        [isinstance(feature, Categorical) for feature in encoding.features for _ in range(_width(feature))]
    )
    origins = (lows + highs) / 2
    if origin != "middle":
        origins = np.where(indicator | (origin == "zero"), 0.0, origins)
    reach = np.maximum(np.abs(lows - origins), np.abs(highs - origins))
    units = highs - lows if scale == "range" else np.full(len(lows), reach.max())
    sizes = units / 2**BITS
    # Ends are rounded outward, so that the bounds themselves lie on the grid.
    ends = np.floor((lows - origins) / sizes), np.ceil((highs - origins) / sizes)
    if max(np.abs(end).max() for end in ends) > _FARTHEST:
        raise ParameterError(
            "The bounds of a column are too far from 0 beside the range between them.",
            fix='measure from the middle with center="public", or in the units as given with scale="given".',
        )
    return RowGrid(
        origins=origins,
        sizes=sizes,
        lows=ends[0].astype(np.int64),
        highs=ends[1].astype(np.int64),
        parts=_parts(encoding, grouped=origin != "middle"),
        steps_per_unit=2.0**BITS if scale == "range" else float(1 / sizes[0]),
    )


def _width(feature: object) -> int:
    return len(feature.values) if isinstance(feature, Categorical) else 1


def _parts(encoding: Encoding, *, grouped: bool) -> tuple[slice, ...]:
    parts, start = [], 0
    for feature in encoding.features:
        width = _width(feature)
        parts += [slice(start, start + width)] if grouped else [slice(at, at + 1) for at in range(start, start + width)]
        start += width
    return tuple(parts)
