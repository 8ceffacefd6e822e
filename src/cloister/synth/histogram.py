"""One joint histogram over some columns: every declared cell with noise, kept as it is.

The noisy cells answer any number of range counts without bias: the sum of m cells has a standard deviation of at most
sqrt(2 m) / epsilon for Laplace noise. Rows are drawn from the cells after they were brought to be not negative and to
add up to the noisy total (`cloister.core.postprocessing.norm_sub`); plain clipping would add half a noise scale to each
empty cell. The number of rows is the sum of the same cells, and costs nothing more.

After the histograms of Dwork, McSherry, Nissim and Smith (2006), with the analytic Gaussian noise of Balle and
Wang (2018) where there is a delta.

Privacy: cells are the product of the declared values, empty or not, so that they say nothing about the rows. Each row
is in one cell. Adding or removing m rows moves the counts by at most m in L1 and in L2; replacing a row moves two
cells by one: 2 in L1, sqrt(2) in L2. Each cell has noise of its own. This is one release, so that the whole budget
buys one Laplace or Gaussian mechanism; of the two ways to calibrate Gaussian noise, by (epsilon, delta) and by rho,
the one with less noise is used, which depends on the parameters alone.

A `RangeCount` is read from the noisy cells, with what the noise of several cells adds up to.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from statistics import NormalDist
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from cloister.accounting.events import Event, PureEvent
from cloister.core import validation
from cloister.core.exact import Number
from cloister.core.guarantees import Guarantee
from cloister.core.postprocessing import norm_sub
from cloister.core.result import Result
from cloister.errors import InternalError, ParameterError
from cloister.mechanisms.calibration import NoiseCalibration, StepNoise
from cloister.mechanisms.step_noise import LaplaceSteps, laplace_standard_deviation, sum_half_width
from cloister.synth.base import SynthesisFacts, synthesizers
from cloister.synth.conditions import whole_cells
from cloister.synth.expectation import Expectation
from cloister.synth.inference._estimation import NoisyMarginal
from cloister.synth.inference._junction_tree import junction_tree
from cloister.synth.inference._marginal_model import MarginalModel
from cloister.synth.marginal_based import MarginalFit, MarginalSynthesizer, PrivacyFilter, possible_cells

__all__ = ["HistogramSynthesizer", "RangeCount", "cells_half_width"]


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

    def margin(self, confidence: Number = 0.95) -> float:
        """Return the half-width that covers the noise with a probability."""
        level = float(validation.check_confidence(confidence))
        return float(cells_half_width(self.noise, self.scale, self.cells, level))

    def interval(self, confidence: Number = 0.95) -> tuple[float, float]:
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
    # On a coarser lattice one more step covers what laying the noise out on it may hide.
    return (steps + (step > 1)) * step


Cells = NDArray[np.bool_]

MOST_CELLS = 10**7
_FEW = 3.0
"""How many deviations of its noise a count of missing values must have to be believed."""


@synthesizers.register("histogram")
@dataclass(kw_only=True, eq=False, repr=False)
class HistogramSynthesizer(MarginalSynthesizer):
    """All columns together in one histogram: exact about how few columns hang together, and answers range counts.

    The number of cells is the product of all columns' and may be ten million at most. For more than two or three
    columns use `SpanningTree` or `AdaptiveMarginals`.

    >>> HistogramSynthesizer(epsilon=0.5, columns=["age", "sex"])
    HistogramSynthesizer(epsilon=0.5, columns=['age', 'sex'])
    """

    def count(self, conditions: Mapping[str, Any] | None = None) -> RangeCount:
        """Return how many rows meet conditions, with its standard error; costs nothing, as often as wanted.

        The answer is the sum of the noisy cells as they were released, without bias.

        Args:
            conditions: as for `sample`; ranges must be of whole bins.
        """
        domain, (seen,) = self.fitted_facts.domain, self.measurements_
        chosen = [np.ones(size, dtype=np.bool_) for size in domain.sizes]
        for name, given in self._wanted(conditions).items():
            chosen[domain.positions([name])[0]] &= whole_cells(domain[name], given)
        part = np.ix_(*chosen)
        possible = possible_cells(self.fitted_facts)[part]
        noise = _noise(self._calibration())
        return RangeCount(
            value=round(float(seen.values[part][possible].sum())),
            cells=int(possible.sum()),
            scale=float(noise.scale) if isinstance(noise, LaplaceSteps) else noise.deviation,
            noise="laplace" if isinstance(noise, LaplaceSteps) else "gaussian",
            guarantee=self.guarantee_,
        )

    def _promise(self, facts: SynthesisFacts) -> tuple[Guarantee, Event | None]:
        calibration = self._calibration()
        event = PureEvent(epsilon=calibration.budget.amount) if calibration.is_pure else _noise(calibration).event
        return calibration.guarantee(assumptions=facts.assumptions), event

    def _expectations(self, facts: SynthesisFacts) -> tuple[Expectation, ...]:
        cells = facts.domain.cells
        if cells > MOST_CELLS:
            raise ParameterError(
                f"A histogram of these columns has {cells:,} cells; {MOST_CELLS:,} are possible.",
                fix="name fewer columns or bins, or use SpanningTree, which takes any number of columns.",
            )
        return (Expectation.of(" x ".join(facts.domain.names), cells, _noise(self._calibration())),)

    def _modeled(self, work: MarginalFit) -> MarginalModel:
        columns = tuple(range(len(work.facts.domain.names)))
        label, noise = " x ".join(work.facts.domain.names), _noise(work.privacy_filter.calibration)
        seen = work.privacy_filter.measure(work.counts, columns, Fraction(1), work.source, label=label, noise=noise)
        work.seen.append(seen)
        possible = possible_cells(work.facts) & _believable_cells(work.facts, seen)
        cells = np.zeros(seen.values.shape)
        total = max(1.0, float(seen.values[possible].sum()))
        cells[possible] = norm_sub(seen.values[possible], total=total) / total
        return MarginalModel(junction_tree(work.facts.domain.sizes, [columns]), (cells,), total)


def _noise(calibration: NoiseCalibration) -> StepNoise:
    """Return the noise that the whole budget buys for one histogram."""
    privacy_filter = PrivacyFilter(calibration)
    concentrated = privacy_filter.noise(Fraction(1))
    if calibration.is_pure:
        return concentrated
    unit = NoiseCalibration.of(epsilon=calibration.budget.amount, delta=calibration.budget.delta)
    tight = unit.gaussian(Fraction(1), squared_sensitivity=privacy_filter.squared_move)
    return min(tight, concentrated, key=lambda noise: noise.deviation)


def _believable_cells(facts: SynthesisFacts, seen: NoisyMarginal) -> Cells:
    """Return all cells but those of missing values of columns that miss no more than noise would show."""
    believed = np.ones(seen.values.shape, dtype=np.bool_)
    for axis, attribute in enumerate(facts.domain.attributes):
        missing = np.take(seen.values, [-1], axis=axis)
        if not attribute.complete and missing.sum() < _FEW * seen.deviation * math.sqrt(missing.size):
            believed[(slice(None),) * axis + (-1,)] = False
    return believed
