"""How exact a fit will be and what it would cost, before it is paid: from the noise and the number of cells alone.

No row is read.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

from cloister.accounting.events import Event
from cloister.core.guarantees import Guarantee
from cloister.errors import PrivacyParameterWarning
from cloister.mechanisms.calibration import StepNoise

__all__ = ["Expectation", "SynthesisPreview", "warn_of_noise"]


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


_ADVICE = (
    "Groups of rows that are much larger than the noise keep their size; smaller ones drown in it. Estimation from "
    "several measurements usually does better."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class SynthesisPreview:
    """A fit that was not made.

    Attributes:
        guarantee: what it would promise, and cost.
        event: what it would be for accountants; None where nothing is private.
        columns: the columns of the synthetic table.
        expectations: how exact what is measured would be.
    """

    guarantee: Guarantee
    event: Event | None
    columns: tuple[str, ...]
    expectations: tuple[Expectation, ...]

    def summary(self) -> list[tuple[str, str]]:
        """Return how exact the measured counts would be, one row for each."""
        return [(item.what, _noise(item)) for item in self.expectations]

    def explain(self) -> str:
        """Return in plain words how exact a fit would be."""
        if not self.expectations:
            return "How exact the rows will be is not known beforehand."
        lines = [f"- {what}: {noise}" for what, noise in self.summary()]
        return "\n".join(["Rows are drawn from counts with noise. How far each count may be off:", *lines, _ADVICE])

    def to_dict(self) -> dict[str, Any]:
        """Return JSON-ready values."""
        return {
            "schema": "cloister.synthesis_preview/1",
            "guarantee": self.guarantee.to_dict(),
            "columns": list(self.columns),
            "expected": [item.to_dict() for item in self.expectations],
        }


def _noise(item: Expectation) -> str:
    shown = f"{item.margin:,.0f}" if item.margin >= 10 else f"{item.margin:.2g}"
    return f"± {shown} rows (95%) on each of {item.cells:,} counts"
