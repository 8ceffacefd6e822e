"""Counts read from a noisy histogram, with what the noise of several cells adds up to."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from statistics import NormalDist
from typing import Any, ClassVar

import numpy as np

from cloister.core import validation
from cloister.core.result import Result

__all__ = ["RangeCount", "laplace_deviation", "sum_half_width"]

_MANY = 4096
"""From how many cells on the sum of their noise counts as normal; its kurtosis is 3 + 3 / cells."""

_FINE = 64
"""How many points a scale has at least, where noise is laid out."""

_REACH = 40


@dataclass(frozen=True, slots=True, kw_only=True)
class RangeCount(Result):
    """How many rows meet some conditions, as a noisy histogram has it.

    Attributes:
        value: the sum of the noisy cells: without bias, and below 0 now and then.
        cells: how many cells were added up.
        scale: of the Laplace noise on each cell, or the standard deviation of the Gaussian noise.
        noise: "laplace" or "gaussian".
    """

    schema: ClassVar[str] = "cloister.range_count/1"

    value: int
    cells: int
    scale: float
    noise: str

    @property
    def deviation(self) -> float:
        """Return the standard deviation of the noise."""
        single = laplace_deviation(self.scale) if self.noise == "laplace" else self.scale
        return math.sqrt(self.cells) * single

    def margin(self, confidence: object = 0.95) -> float:
        """Return the half-width that covers the noise with a probability."""
        level = float(validation.check_confidence(confidence))
        return float(sum_half_width(self.noise, self.scale, self.cells, level))

    def interval(self, confidence: object = 0.95) -> tuple[float, float]:
        """Return (low, high)."""
        margin = self.margin(confidence)
        return self.value - margin, self.value + margin

    def __str__(self) -> str:
        return f"{self.value:,} ± {self.margin():,.0f} (95%), {self.guarantee.brief()}"

    def _fields(self) -> dict[str, Any]:
        return {
            "value": self.value,
            "cells": self.cells,
            "deviation": self.deviation,
            "margin": {"confidence": 0.95, "half_width": self.margin()},
        }


def laplace_deviation(scale: float) -> float:
    """Return the standard deviation of discrete Laplace noise: a little below sqrt(2) times its scale.

    >>> round(laplace_deviation(1.0), 4)
    1.357
    """
    ratio = math.exp(-1 / scale)
    return math.sqrt(2 * ratio) / -math.expm1(-1 / scale)


@lru_cache(maxsize=1024)
def sum_half_width(noise: str, scale: float, cells: int, confidence: float) -> int:
    """Return what covers the sum of independent discrete noises with a probability, rounded up.

    Laplace noise is convolved on its own lattice, on a coarser one where the scale is large.
    """
    if not cells:
        return 0
    if noise == "gaussian" or cells >= _MANY:
        deviation = math.sqrt(cells) * (scale if noise == "gaussian" else laplace_deviation(scale))
        return math.ceil(deviation * NormalDist().inv_cdf((1 + confidence) / 2)) + 1
    step = max(1, int(scale / _FINE))
    inside = _covered(scale / step, cells)
    return int(np.searchsorted(inside, confidence) + (step > 1)) * step


def _covered(scale: float, cells: int) -> Any:
    """Return the probability that the sum of discrete Laplace noises is at most 0, 1, 2, ... from 0."""
    size = 2 ** math.ceil(math.log2(2 * _REACH * math.sqrt(cells) * laplace_deviation(scale) + 64))
    turns = np.cos(2 * np.pi * np.arange(size // 2 + 1) / size)
    ratio = math.exp(-1 / scale)
    spectrum = ((1 - ratio) ** 2 / (1 - 2 * ratio * turns + ratio**2)) ** cells
    masses = np.fft.irfft(spectrum, size)
    return np.cumsum(np.concatenate([masses[:1], 2 * masses[1 : size // 2]]))
