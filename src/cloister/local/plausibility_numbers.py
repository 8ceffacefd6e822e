"""Whether reports about numbers look like the work of honest devices, whatever people's numbers are.

A bit of Duchi's has a probability between those at the two bounds, and a cell of a sliding window one between those
outside and inside of the window. A number with noise is above any threshold more often the larger it was: the share of
reports above lies between that of everybody at the lower bound and that of everybody at the upper one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from cloister.local.draws import CERTAIN
from cloister.local.estimates import Floats
from cloister.local.output_space import Payload
from cloister.local.plausibility import Finding, equal_parts, outside

if TYPE_CHECKING:
    from cloister.local.numeric.duchi import Bit
    from cloister.local.numeric.window import Window

__all__ = [
    "bits",
    "bits_between",
    "cells",
    "cells_between",
    "cells_of_numbers",
    "corners",
    "noise",
    "parts",
    "which_numbers",
]

_BINS = 64
_SCALES = 12
"""How many scales beyond the bounds thresholds for noisy numbers are set: 3 reports in a million are beyond."""


def bits_between(bit: Bit) -> tuple[Floats, Floats]:
    """Return the least and the largest probability of a 0 and of a 1."""
    low, high = bit.low / CERTAIN, bit.high / CERTAIN
    return np.array([1 - high, low]), np.array([1 - low, high])


def cells_between(window: Window) -> tuple[Floats, Floats]:
    """Return the least and the largest probability of each of equal ranges of cells."""
    sizes = np.rint(equal_parts(window.cells, _BINS) * window.cells)
    inside, far = float(window.inside) / window.width, float(1 - window.inside) / window.steps
    within = np.minimum(sizes, window.width)
    return sizes * min(inside, far), np.minimum(within * max(inside, far) + (sizes - within) * min(inside, far), 1.0)


def parts(payload: Payload, *, share: float) -> Finding:
    """Compare how often the public coin chose a point with its law."""
    points = int((payload["part"] == 1).sum())
    chance, _ = outside([points], len(payload), share, share)
    problem = f"{points:,} reports are points rather than bits, of about {share * len(payload):,.0f} expected."
    return Finding("parts", problem, chance)


def bits(payload: Payload, *, low: Floats, high: Floats, part: int | None = None) -> Finding:
    """Compare how often each bit was sent with everybody at either bound."""
    return _counted(np.bincount(_told(payload, part), minlength=2), len(payload), low, high, name="bits")


def cells(payload: Payload, *, count: int, low: Floats, high: Floats, part: int | None = None) -> Finding:
    """Compare how many reports are in each of equal ranges of cells with windows beside and around it."""
    counts = np.bincount(_told(payload, part) * _BINS // count, minlength=_BINS)
    return _counted(counts, len(payload), low, high, name="cells")


def cells_of_numbers(payload: Payload, *, window: Window) -> Finding:
    """Compare the cells of several reported numbers, place by place in the report."""
    low, high = cells_between(window)
    bins = payload["y"].astype(np.int64) * _BINS // window.cells + _BINS * np.arange(payload["y"].shape[1])
    counts = np.bincount(bins.ravel(), minlength=_BINS * payload["y"].shape[1])
    repeats = payload["y"].shape[1]
    return _counted(counts, len(payload), np.tile(low, repeats), np.tile(high, repeats), name="cells")


def which_numbers(payload: Payload, *, dimensions: int, share: float) -> Finding:
    """Compare how often each number is spoken about, which does not depend on what anybody's numbers are."""
    counts = np.bincount(payload["numbers"].ravel(), minlength=dimensions)
    same = np.full(dimensions, share)
    return _counted(counts, len(payload), same, same, name="numbers")


def corners(payload: Payload, *, dimensions: int, size: float) -> Finding:
    """Compare how often each bit is set: with ``(1 + x / size) / 2`` for a number x in [-1, 1]."""
    ones = np.unpackbits(payload["y"], axis=1, count=dimensions, bitorder="little").sum(axis=0, dtype=np.int64)
    low, high = (np.full(dimensions, (1 + end / size) / 2) for end in (-1, 1))
    return _counted(ones, len(payload), low, high, name="bits")


def noise(payload: Payload, *, scale: float, ends: tuple[int, int]) -> Finding:
    """Compare how many reports are at or above each of some thresholds with what either end would give."""
    told = payload["y"].reshape(len(payload), -1).astype(np.float64)
    beyond = _SCALES * scale
    thresholds = np.unique(np.rint(np.linspace(ends[0] - beyond, ends[1] + beyond, _BINS)))
    counts = np.array([(told >= threshold).sum(axis=0) for threshold in thresholds])
    low, high = (np.broadcast_to(_reaches(thresholds - end, scale)[:, None], counts.shape) for end in ends)
    return _counted(counts.ravel(), len(payload), low.ravel(), high.ravel(), name="noise")


def _reaches(distance: Floats, scale: float) -> Floats:
    """Return how often discrete Laplace noise is at least a whole number."""
    with_one = 1 + np.exp(-1 / scale)
    above, below = np.exp(-np.maximum(distance, 0) / scale), np.exp(-np.maximum(1 - distance, 0) / scale)
    return np.asarray(np.where(distance > 0, above / with_one, 1 - below / with_one))


def _told(payload: Payload, part: int | None) -> NDArray[np.int64]:
    rows = payload if part is None else payload[payload["part"] == part]
    return np.asarray(rows["y"].astype(np.int64))


def _counted(counts: NDArray[np.int64], n: int, low: Floats, high: Floats, *, name: str) -> Finding:
    chance, place = outside(counts, n, low, high)
    problem = (
        f"{int(counts[place]):,} reports say much the same; honest devices send between about {low[place] * n:,.0f} "
        f"and {high[place] * n:,.0f} such, whatever people's numbers are."
    )
    return Finding(name, problem, chance)
