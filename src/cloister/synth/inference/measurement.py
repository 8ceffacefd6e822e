"""Noisy marginals: what was released of the data, and all that estimation knows."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from cloister.synth.inference.beliefs import Floats

__all__ = ["Measurement", "merged", "total_of"]


@dataclass(frozen=True, slots=True, eq=False)
class Measurement:
    """The noisy counts of one marginal.

    Attributes:
        columns: the positions of its columns, in order.
        values: the noisy counts, one axis per column.
        deviation: the standard deviation of the noise on each count.
    """

    columns: tuple[int, ...]
    values: Floats
    deviation: float


def merged(measurements: Sequence[Measurement]) -> list[Measurement]:
    """Return one measurement per set of columns: repeated ones averaged by the inverse of their variance."""
    groups: dict[tuple[int, ...], list[Measurement]] = {}
    for item in measurements:
        groups.setdefault(item.columns, []).append(item)
    return [items[0] if len(items) == 1 else _average(items) for items in groups.values()]


def _average(items: Sequence[Measurement]) -> Measurement:
    weights = [item.deviation**-2 for item in items]
    values = sum(weight * item.values for weight, item in zip(weights, items, strict=True)) / sum(weights)
    return Measurement(items[0].columns, np.asarray(values), math.sqrt(1 / sum(weights)))


def total_of(measurements: Sequence[Measurement]) -> float:
    """Return the number of rows as the measurements have it: their sums, weighted by the inverse of their variance."""
    weights = [1 / (item.values.size * item.deviation**2) for item in measurements]
    total = sum(weight * float(item.values.sum()) for weight, item in zip(weights, measurements, strict=True))
    return max(1.0, total / sum(weights))
