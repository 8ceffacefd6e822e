"""Counts read from a noisy histogram, with what the noise of several cells adds up to."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from statistics import NormalDist
from typing import Any, ClassVar

from cloister.core import validation
from cloister.core.result import Result
from cloister.errors import InternalError
from cloister.mechanisms.noise_laws import laplace_standard_deviation, sum_half_width

__all__ = ["RangeCount", "cells_half_width"]

_MANY = 4096
"""From how many cells on the sum of their noise counts as normal; its kurtosis is 3 + 3 / cells."""

_FINE = 64
"""How many points a scale has at least, where noise is laid out."""


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
        single = laplace_standard_deviation(Fraction(self.scale)) if self.noise == "laplace" else self.scale
        return math.sqrt(self.cells) * single

    def margin(self, confidence: object = 0.95) -> float:
        """Return the half-width that covers the noise with a probability."""
        level = float(validation.check_confidence(confidence))
        return float(cells_half_width(self.noise, self.scale, self.cells, level))

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


@lru_cache(maxsize=1024)
def cells_half_width(noise: str, scale: float, cells: int, confidence: float) -> int:
    """Return what covers the sum of independent discrete noises with a probability, rounded up.

    Laplace noise is convolved on its own lattice, on a coarser one where the scale is large.
    """
    if not cells:
        return 0
    if noise == "gaussian" or cells >= _MANY:
        single = scale if noise == "gaussian" else laplace_standard_deviation(Fraction(scale))
        return math.ceil(math.sqrt(cells) * single * NormalDist().inv_cdf((1 + confidence) / 2)) + 1
    step = max(1, int(scale / _FINE))
    steps = sum_half_width([(noise, scale / step)] * cells, confidence)
    if steps is None:
        raise InternalError("the noise of cells was laid out too finely.")
    return (steps + (step > 1)) * step
