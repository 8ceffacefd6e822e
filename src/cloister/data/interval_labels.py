"""Reading intervals back from the names that people give them: ``[30, 35)``, ``30-34``, ``<30``, ``>=65``, ``90+``.

A name with brackets says itself which ends belong to it. A name with a dash includes both ends, but two neighbors may
share one (``30-35`` and ``35-40``), because many published hierarchies are written that way.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from cloister.core.exact import text_of_number

_NUMBER = r"[-+]?[0-9]{1,40}(?:\.[0-9]{1,40})?"
_BRACKETS = re.compile(rf"([\[\](])\s*({_NUMBER})\s*[,;]\s*({_NUMBER})\s*([\])\[])")
_DASH = re.compile(rf"({_NUMBER})\s*(?:-|\u2013|\.\.|\bto\b)\s*({_NUMBER})")
_ONE_SIDED = re.compile(rf"(<=|>=|<|>|\u2264|\u2265)\s*({_NUMBER})|({_NUMBER})\s*\+")
_PLAIN = re.compile(_NUMBER)


@dataclass(frozen=True, slots=True)
class LabelInterval:
    """A range of numbers; an end that is None has no limit."""

    low: Fraction | int | None
    high: Fraction | int | None
    low_closed: bool = True
    high_closed: bool = False

    def contains(self, value: Fraction | int) -> bool:
        """Return whether a number lies inside."""
        if self.low is not None and (value < self.low or (value == self.low and not self.low_closed)):
            return False
        return self.high is None or value < self.high or (value == self.high and self.high_closed)

    @property
    def is_point(self) -> bool:
        """Return whether only one number lies inside."""
        return self.low is not None and self.low == self.high

    def overlaps(self, other: LabelInterval) -> bool:
        """Return whether both share more than an end, or one is a number inside the other."""
        for point, whole in ((self, other), (other, self)):
            if point.is_point and point.low is not None:
                return whole.contains(point.low)
        low = max((end for end in (self.low, other.low) if end is not None), default=None)
        high = min((end for end in (self.high, other.high) if end is not None), default=None)
        return low is None or high is None or low < high


def interval_name(low: Fraction | int, high: Fraction | int) -> str:
    """Return the name of the half-open interval from low up to, not including, high."""
    return f"[{text_of_number(low)}, {text_of_number(high)})"


def number_in(label: str) -> Fraction | int | None:
    """Return the number that a label is, if it is one."""
    return _number(label) if _PLAIN.fullmatch(label) else None


def _number(text: str) -> Fraction | int:
    """Return a whole number as an int, which is much faster to compute with."""
    return int(text) if text.isdigit() else Fraction(text)


def interval_in(label: str) -> LabelInterval | None:
    """Return the interval that a label names, or None for any other name (also for reversed ends)."""
    if match := _BRACKETS.fullmatch(label):
        left, low, high, right = match.groups()
        return _drop_reversed(LabelInterval(_number(low), _number(high), left == "[", right == "]"))
    if match := _DASH.fullmatch(label):
        return _drop_reversed(LabelInterval(_number(match[1]), _number(match[2]), high_closed=True))
    if match := _ONE_SIDED.fullmatch(label):
        return _one_sided(match[1] or ">=", _number(match[2] or match[3]))
    return None


def _drop_reversed(interval: LabelInterval) -> LabelInterval | None:
    return (
        interval if interval.low is not None and interval.high is not None and interval.low <= interval.high else None
    )


def _one_sided(sign: str, end: Fraction | int) -> LabelInterval:
    closed = sign in ("<=", ">=", "\u2264", "\u2265")
    if sign in ("<", "<=", "\u2264"):
        return LabelInterval(None, end, high_closed=closed)
    return LabelInterval(end, None, low_closed=closed)


def first_overlap(labels: Iterable[str]) -> tuple[str, str] | None:
    """Return two of the labels whose numbers overlap, or None. Labels that are no intervals are passed over."""
    named = [(label, part) for label in labels if (part := _interval_or_point(label)) is not None]
    lowest = min((part.low for _, part in named if part.low is not None), default=Fraction(0)) - 1
    named.sort(key=lambda item: (lowest if item[1].low is None else item[1].low, not item[1].is_point))
    # In the order of their lower ends two overlap only if two neighbors do.
    for (label, part), (next_label, next_part) in itertools.pairwise(named):
        if part.overlaps(next_part):
            return label, next_label
    return None


def _interval_or_point(label: str) -> LabelInterval | None:
    value = number_in(label)
    return interval_in(label) if value is None else LabelInterval(value, value, high_closed=True)


class IntervalIndex:
    """Finds the interval of many numbers at once, among intervals that do not overlap."""

    def __init__(self, intervals: Iterable[tuple[int, LabelInterval]]) -> None:
        ordered = sorted(intervals, key=lambda item: (item[1].low is not None, item[1].low or 0))
        parts = [part for _, part in ordered]
        self._codes = np.array([code for code, _ in ordered], dtype=np.int64)
        self._low = np.array([-np.inf if part.low is None else float(part.low) for part in parts])
        self._high = np.array([np.inf if part.high is None else float(part.high) for part in parts])
        self._low_closed = np.array([part.low_closed for part in parts])
        self._high_closed = np.array([part.high_closed for part in parts])

    def locate(self, values: NDArray[np.float64], *, otherwise: int) -> NDArray[np.int64]:
        """Return the code of the interval around each number, or ``otherwise``."""
        after = np.searchsorted(self._low, values, side="right") - 1
        result = np.full(values.shape, otherwise, dtype=np.int64)
        # A number at a shared end lies in two intervals: the upper one is written last, and wins.
        for place in (np.maximum(after - 1, 0), np.maximum(after, 0)):
            inside = self._inside(place, values)
            result[inside] = self._codes[place[inside]]
        return result

    def _inside(self, place: NDArray[np.intp], values: NDArray[np.float64]) -> NDArray[np.bool_]:
        low, high = self._low[place], self._high[place]
        above = (values > low) | ((values == low) & self._low_closed[place])
        below = (values < high) | ((values == high) & self._high_closed[place])
        return np.asarray(above & below & np.isfinite(values))
