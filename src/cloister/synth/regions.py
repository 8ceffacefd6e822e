"""Boxes that cut some columns at public midpoints; noisy counts decide which column of a box is halved.

Privacy: on each level every box releases its number of rows and, for each of d columns, how many of them are below the
column's midpoint. A row is in one box of a level and adds at most 1 + d ones to its numbers: 1 + d in L1 and in squared
L2. Levels are paid one after the other; the next ones follow from released numbers.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from cloister.core.random import RandomSource
from cloister.core.whole_rows import Floats
from cloister.mechanisms.allowance import Allowance
from cloister.synth.moments import Box

__all__ = ["cut_into_boxes", "places_in"]


def cut_into_boxes(
    steps: Floats,
    weights: NDArray[np.int64],
    *,
    levels: int,
    allowance: Allowance,
    share: Fraction,
    fewest: int,
    source: RandomSource,
) -> list[Box]:
    """Return at most 2**levels boxes that cover everything.

    Args:
        steps: the rows, in whole steps.
        weights: how often each row occurs.
        levels: how often a box is halved.
        allowance: what may be spent.
        share: which part of it.
        fewest: a box is halved where both halves have so many rows, as far as noise can tell.
        source: of the noise.
    """
    width = steps.shape[1]
    noise = allowance.noise(share / levels, sensitivity=1 + width, squared_sensitivity=1 + width)
    open_boxes, done = [Box.whole(width)], []
    for _ in range(levels):
        halves: list[Box] = []
        for box in open_boxes:
            inside = _is_inside(steps, box)
            below = (steps[inside] < box.middles).astype(np.int64)
            counts = np.append(weights[inside].sum(), weights[inside] @ below)
            cut = _halved(box, noise.add(counts, source).astype(np.float64), fewest)
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


def _halved(box: Box, noisy: Floats, fewest: int) -> list[Box] | None:
    """Return two halves of a box along the column that cuts it most evenly, or None if none cuts it well."""
    smaller = np.minimum(noisy[1:], noisy[0] - noisy[1:])
    smaller[box.highs - box.lows < 2] = -np.inf
    column = int(np.argmax(smaller))
    if smaller[column] < fewest:
        return None
    lower_highs, upper_lows = box.highs.copy(), box.lows.copy()
    lower_highs[column], upper_lows[column] = box.middles[column] - 1, box.middles[column]
    return [Box(box.lows, lower_highs), Box(upper_lows, box.highs)]


def _is_inside(steps: Floats, box: Box) -> NDArray[np.bool_]:
    return np.asarray(((steps >= box.lows) & (steps <= box.highs)).all(axis=1))
