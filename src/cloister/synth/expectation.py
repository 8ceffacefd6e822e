"""How exact a fit will be, before it is paid: from the noise and the number of cells alone."""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

from cloister.errors import PrivacyParameterWarning
from cloister.mechanisms.allowance import StepNoise

__all__ = ["Expectation", "warn_of_noise"]

_MEAN_ABSOLUTE = math.sqrt(2 / math.pi)
_TOO_MUCH = 0.5
_WITHIN = 1.96
"""How many standard deviations cover normal noise 95% of the time."""


@dataclass(frozen=True, slots=True)
class Expectation:
    """The noise on one measured marginal.

    Attributes:
        what: which marginal.
        cells: its number of cells.
        deviation: the standard deviation of the noise on each of its counts.
        half_width: what covers that noise 95% of the time; None takes it for normal.
    """

    what: str
    cells: int
    deviation: float
    half_width: float | None = None

    @classmethod
    def of(cls, what: str, cells: int, noise: StepNoise) -> Self:
        """Return what to expect of one noise on each count."""
        return cls(what, cells, noise.deviation, noise.margin(0.95))

    @property
    def margin(self) -> float:
        """Return what covers the noise on each count 95% of the time."""
        return _WITHIN * self.deviation if self.half_width is None else self.half_width

    def error(self, rows: int) -> float:
        """Return the expected total variation distance from noise alone, at most 1, for a number of rows.

        It is that of the noisy counts as they are; estimation from several marginals usually does better.
        """
        return min(1.0, 0.5 * self.cells * _MEAN_ABSOLUTE * self.deviation / max(1, rows))

    def to_dict(self) -> dict[str, Any]:
        """Return JSON-ready values."""
        return {"what": self.what, "cells": self.cells, "deviation": self.deviation}

    def __str__(self) -> str:
        return f"{self.what}: {self.cells:,} counts, each ± {self.margin:,.1f} (95%)"


def warn_of_noise(expectations: Sequence[Expectation], rows: int | None) -> None:
    """Warn where noise will drown what is measured, before anything is paid."""
    if rows is None:
        return
    drowned = [item for item in expectations if item.error(rows) > _TOO_MUCH]
    if drowned:
        worst = max(drowned, key=lambda item: item.error(rows))
        warnings.warn(
            f"Noise will drown what is measured ({worst.what}: {worst.cells:,} counts, each with noise of about "
            f"{worst.deviation:,.0f}, for about {rows:,} rows): ask for fewer columns or bins, or a larger epsilon.",
            PrivacyParameterWarning,
            stacklevel=4,
        )
