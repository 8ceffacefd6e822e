"""Boxes of rows and their noisy moments: the number of rows, the sums of columns, and the sums of products of columns.

Numbers are measured in whole steps from the middle of the box, squares from the middle of their range.

Privacy: claim (epsilon, delta)-DP, or epsilon-DP without a delta, for one row added or removed, which is in one box.
With at most r_i steps from the middle in column i, the row moves the count by 1; the sums by at most sum r_i in L1
and sum r_i**2 in squared L2; the products by at most sum_{i<j} r_i r_j + sum_i ceil(r_i**2 / 2) in L1, and by the sum
of the squares of these in squared L2. The three are paid with a third of the share each. Boxes are fixed before, so
that those of the same share compose in parallel, each with the noise for its own size.

Boxes cut some columns at public midpoints; noisy counts decide which column of a box is halved.

Privacy: on each level every box releases its number of rows and, for each of d columns, how many of them are below
the column's midpoint. A row is in one box of a level and adds at most 1 + d ones to its numbers: 1 + d in L1 and in
squared L2. Levels are paid one after the other; the next ones follow from released numbers.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from cloister.core.random import RandomSource
from cloister.core.whole_rows import Floats, exact_product
from cloister.mechanisms.calibration import NoiseCalibration, StepNoise
from cloister.synth._numeric import UNIT

__all__ = ["Box", "MomentNoise", "NoisyMoments", "cut_into_boxes", "places_in", "plan_moments", "release_moments"]


_THIRD = Fraction(1, 3)


@dataclass(frozen=True, eq=False)
class Box:
    """The first and last step of some columns; public, or released before."""

    lows: NDArray[np.int64]
    highs: NDArray[np.int64]

    @classmethod
    def whole(cls, columns: int) -> Box:
        """Return the box of all rows."""
        return cls(np.full(columns, -UNIT), np.full(columns, UNIT))

    @property
    def middles(self) -> NDArray[np.int64]:
        """Return where numbers are measured from."""
        return np.asarray((self.lows + self.highs) // 2)

    @property
    def reach(self) -> tuple[int, ...]:
        """Return how far numbers can be from the middle."""
        return tuple(map(int, np.maximum(self.highs - self.middles, self.middles - self.lows)))


@dataclass(frozen=True, slots=True)
class MomentNoise:
    """The noise on the count, the sums and the products."""

    count: StepNoise
    sums: StepNoise
    products: StepNoise


@dataclass(frozen=True, eq=False)
class NoisyMoments:
    """Released: the number of rows, the sums of columns and of products, in units of half the range from the middle."""

    count: float
    sums: Floats
    products: Floats

    def __add__(self, other: NoisyMoments) -> NoisyMoments:
        return NoisyMoments(self.count + other.count, self.sums + other.sums, self.products + other.products)


def plan_moments(calibration: NoiseCalibration, share: Fraction, reach: tuple[int, ...]) -> MomentNoise:
    """Return the noise that a share buys for rows that reach so far from the middle."""
    # From the middle of its range a square moves half as far; halves are rounded up, as sensitivities are.
    squares = [-(-(step**2) // 2) for step in reach]
    total, total_squared = sum(reach), sum(step**2 for step in reach)
    # The square of the sum has each pair twice and each square once.
    pairs = (total**2 - total_squared) // 2
    pairs_squared = (total_squared**2 - sum(step**4 for step in reach)) // 2
    return MomentNoise(
        count=calibration.noise(share * _THIRD, sensitivity=1, squared_sensitivity=1),
        sums=calibration.noise(share * _THIRD, sensitivity=max(1, total), squared_sensitivity=max(1, total_squared)),
        products=calibration.noise(
            share * _THIRD,
            sensitivity=max(1, pairs + sum(squares)),
            squared_sensitivity=max(1, pairs_squared + sum(square**2 for square in squares)),
        ),
    )


def release_moments(
    steps: Floats, weights: NDArray[np.int64], box: Box, noise: MomentNoise, source: RandomSource
) -> NoisyMoments:
    """Return the moments of rows that are all in a box, with noise: one draw for each number."""
    middles, reach = box.middles.astype(np.float64), np.array(box.reach, dtype=np.int64)
    apart = steps - middles
    count = int(weights.sum())
    ones, most = np.ones((len(steps), 1)), int(reach.max(initial=1)) or 1
    sums = exact_product(apart, ones, weights, most=most)[:, 0]
    products = exact_product(apart, apart, weights, most=most**2)
    shift = reach**2 // 2
    # The lower triangle holds the same numbers, which would only need more noise.
    above = np.triu_indices(len(reach))
    entries = products[above] - np.where(above[0] == above[1], shift[above[0]], 0) * count
    noisy_count = float(noise.count.add(np.array([count]), source)[0])
    noisy_sums = noise.sums.add(sums, source).astype(np.float64) / UNIT
    full = np.zeros((len(reach), len(reach)))
    full[above] = noise.products.add(entries, source).astype(np.float64)
    # The middles come back with the noisy count, since the exact one is protected.
    full += np.triu(full, 1).T + np.diag(shift * noisy_count)
    return _from_origin(noisy_count, noisy_sums, full / UNIT**2, middles / UNIT)


def _from_origin(count: float, sums: Floats, products: Floats, middles: Floats) -> NoisyMoments:
    """Return moments around the middle of a box as moments around zero."""
    # Products around a middle and the cross terms with it make the products around zero.
    crossed = np.outer(middles, sums)
    return NoisyMoments(
        count, sums + count * middles, products + crossed + crossed.T + count * np.outer(middles, middles)
    )


def cut_into_boxes(
    steps: Floats,
    weights: NDArray[np.int64],
    *,
    levels: int,
    calibration: NoiseCalibration,
    share: Fraction,
    fewest: int,
    source: RandomSource,
) -> list[Box]:
    """Return at most 2**levels boxes that cover everything.

    Args:
        steps: the rows, in whole steps.
        weights: how often each row occurs.
        levels: how often a box is halved.
        calibration: what may be spent.
        share: which part of it.
        fewest: a box is halved where both halves have so many rows, as far as noise can tell.
        source: of the noise.
    """
    width = steps.shape[1]
    noise = calibration.noise(share / levels, sensitivity=1 + width, squared_sensitivity=1 + width)
    open_boxes, done = [Box.whole(width)], []
    for _ in range(levels):
        halves: list[Box] = []
        for box in open_boxes:
            inside = _is_inside(steps, box)
            below = (steps[inside] < box.middles).astype(np.int64)
            counts = np.append(weights[inside].sum(), weights[inside] @ below)
            cut = _halve(box, noise.add(counts, source).astype(np.float64), fewest)
            if cut is None:
                done.append(box)
            else:
                halves += cut
        open_boxes = halves
    return [*done, *open_boxes]


def places_in(steps: Floats, boxes: list[Box]) -> NDArray[np.int64]:
    """Return the box of each row."""
    places = np.zeros(len(steps), dtype=np.int64)
    for place, box in enumerate(boxes):
        places[_is_inside(steps, box)] = place
    return places


def _halve(box: Box, noisy: Floats, fewest: int) -> list[Box] | None:
    """Return two halves of a box along the column that cuts it most evenly, or None if none cuts it well."""
    smaller = np.minimum(noisy[1:], noisy[0] - noisy[1:])
    # A narrower column would leave an empty half.
    smaller[box.highs - box.lows < 2] = -np.inf
    column = int(np.argmax(smaller))
    if smaller[column] < fewest:
        return None
    lower_highs, upper_lows = box.highs.copy(), box.lows.copy()
    lower_highs[column], upper_lows[column] = box.middles[column] - 1, box.middles[column]
    return [Box(box.lows, lower_highs), Box(upper_lows, box.highs)]


def _is_inside(steps: Floats, box: Box) -> NDArray[np.bool_]:
    return np.asarray(((steps >= box.lows) & (steps <= box.highs)).all(axis=1))
