"""Whether reports about numbers look like the work of honest devices, whatever people's numbers are.

A bit of Duchi's has a probability between those at the two bounds, and a cell of the piecewise mechanism one between
those outside and inside of the window; how often the hybrid uses which part is known exactly.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import numpy as np
from numpy.typing import NDArray

from cloister.local.draws import CERTAIN
from cloister.local.estimates import Floats
from cloister.local.numeric.duchi import Bit, Duchi
from cloister.local.numeric.hybrid import Hybrid
from cloister.local.numeric.piecewise import Piecewise
from cloister.local.numeric.window import Window
from cloister.local.output_space import Payload
from cloister.local.plausibility import Finding, Test, equal_parts, outside, tests_of

__all__ = ["CheckedNumber"]

CheckedNumber = Duchi | Piecewise | Hybrid
"""Protocols for one number whose reports can be checked."""

_BINS = 64


@tests_of.register
def _(protocol: Duchi) -> Iterator[Test]:
    low, high = _bits_between(protocol.bit)
    yield partial(_bits, low=low, high=high)


@tests_of.register
def _(protocol: Piecewise) -> Iterator[Test]:
    low, high = _cells_between(protocol.window)
    yield partial(_cells, cells=protocol.window.cells, low=low, high=high)


@tests_of.register
def _(protocol: Hybrid) -> Iterator[Test]:
    share, is_point = protocol.share / CERTAIN, 1
    yield partial(_parts, share=share)
    low, high = (ends * (1 - share) for ends in _bits_between(protocol.bit))
    yield partial(_bits, low=low, high=high, part=0)
    low, high = (ends * share for ends in _cells_between(protocol.window))
    yield partial(_cells, cells=protocol.window.cells, low=low, high=high, part=is_point)


def _bits_between(bit: Bit) -> tuple[Floats, Floats]:
    """Return the least and the largest probability of a 0 and of a 1."""
    low, high = bit.low / CERTAIN, bit.high / CERTAIN
    return np.array([1 - high, low]), np.array([1 - low, high])


def _cells_between(window: Window) -> tuple[Floats, Floats]:
    """Return the least and the largest probability of each of equal ranges of cells."""
    sizes = np.rint(equal_parts(window.cells, _BINS) * window.cells)
    inside, far = float(window.inside) / window.width, float(1 - window.inside) / window.steps
    within = np.minimum(sizes, window.width)
    return sizes * min(inside, far), np.minimum(within * max(inside, far) + (sizes - within) * min(inside, far), 1.0)


def _parts(payload: Payload, *, share: float) -> Finding:
    points = int((payload["part"] == 1).sum())
    chance, _ = outside([points], len(payload), share, share)
    problem = f"{points:,} reports are points rather than bits, of about {share * len(payload):,.0f} expected."
    return Finding("parts", problem, chance)


def _bits(payload: Payload, *, low: Floats, high: Floats, part: int | None = None) -> Finding:
    return _counted(np.bincount(_told(payload, part), minlength=2), len(payload), low, high, name="bits")


def _cells(payload: Payload, *, cells: int, low: Floats, high: Floats, part: int | None = None) -> Finding:
    counts = np.bincount(_told(payload, part) * _BINS // cells, minlength=_BINS)
    return _counted(counts, len(payload), low, high, name="cells")


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
