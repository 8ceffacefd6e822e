"""One joint histogram over some columns: every declared cell with noise, kept as it is.

The noisy cells answer any number of range counts without bias: the sum of m cells has a standard deviation of at most
sqrt(2 m) / epsilon for Laplace noise. Rows are drawn from the cells after they were brought to be not negative and to
add up to the noisy total (`cloister.core.simplex.norm_sub`); plain clipping would add half a noise scale to each empty
cell. The number of rows is the sum of the same cells, and costs nothing more.

After the histograms of Dwork, McSherry, Nissim and Smith (2006), with the analytic Gaussian noise of Balle and
Wang (2018) where there is a delta.

Privacy: cells are the product of the declared values, empty or not, so that they say nothing about the rows. Each row
is in one cell. Adding or removing m rows moves the counts by at most m in L1 and in L2; replacing a row moves two cells
by one: 2 in L1, sqrt(2) in L2. Each cell has noise of its own. This is one release, so that the whole budget buys one
Laplace or Gaussian mechanism; of the two ways to calibrate Gaussian noise, by (epsilon, delta) and by rho, the one with
less noise is used, which depends on the parameters alone.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cloister.accounting.events import Event, PureEvent
from cloister.core.guarantees import Guarantee
from cloister.core.simplex import norm_sub
from cloister.errors import ParameterError
from cloister.mechanisms.allowance import Allowance, StepNoise
from cloister.mechanisms.step_noise import LaplaceSteps
from cloister.synth.base import Facts, synthesizers
from cloister.synth.conditions import whole_cells
from cloister.synth.expectation import Expectation
from cloister.synth.inference.junction_tree import junction_tree
from cloister.synth.inference.measurement import Measurement
from cloister.synth.inference.model import MarginalModel
from cloister.synth.marginal_based import MarginalSynthesizer, Work, possible_cells
from cloister.synth.range_counts import RangeCount
from cloister.synth.spending import Purse

__all__ = ["HistogramSynthesizer"]

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
        noise = _noise(self._allowance())
        return RangeCount(
            value=round(float(seen.values[part][possible].sum())),
            cells=int(possible.sum()),
            scale=float(noise.scale) if isinstance(noise, LaplaceSteps) else noise.deviation,
            noise="laplace" if isinstance(noise, LaplaceSteps) else "gaussian",
            guarantee=self.guarantee_,
        )

    def _promise(self, facts: Facts) -> tuple[Guarantee, Event | None]:
        allowance = self._allowance()
        event = PureEvent(epsilon=allowance.total_epsilon) if allowance.is_pure else _noise(allowance).event
        return allowance.guarantee(assumptions=facts.assumptions), event

    def _expectations(self, facts: Facts) -> tuple[Expectation, ...]:
        cells = facts.domain.cells
        if cells > MOST_CELLS:
            raise ParameterError(
                f"A histogram of these columns has {cells:,} cells; {MOST_CELLS:,} are possible.",
                fix="name fewer columns or bins, or use SpanningTree, which takes any number of columns.",
            )
        return (Expectation.of(" x ".join(facts.domain.names), cells, _noise(self._allowance())),)

    def _modeled(self, work: Work) -> MarginalModel:
        columns = tuple(range(len(work.facts.domain.names)))
        label, noise = " x ".join(work.facts.domain.names), _noise(work.purse.allowance)
        seen = work.purse.measure(work.counts, columns, Fraction(1), work.source, label=label, noise=noise)
        work.seen.append(seen)
        possible = possible_cells(work.facts) & _believed(work.facts, seen)
        cells = np.zeros(seen.values.shape)
        total = max(1.0, float(seen.values[possible].sum()))
        cells[possible] = norm_sub(seen.values[possible], total=total) / total
        return MarginalModel(junction_tree(work.facts.domain.sizes, [columns]), (cells,), total)


def _noise(allowance: Allowance) -> StepNoise:
    """Return the noise that the whole budget buys for one histogram."""
    purse = Purse(allowance)
    concentrated = purse.noise(Fraction(1))
    if allowance.is_pure:
        return concentrated
    unit = Allowance(total_epsilon=allowance.total_epsilon, total_delta=allowance.total_delta)
    tight = unit.gaussian(Fraction(1), squared_sensitivity=purse.squared_move)
    return min(tight, concentrated, key=lambda noise: noise.deviation)


def _believed(facts: Facts, seen: Measurement) -> Cells:
    """Return all cells but those of missing values of columns that miss no more than noise would show."""
    believed = np.ones(seen.values.shape, dtype=np.bool_)
    for axis, attribute in enumerate(facts.domain.attributes):
        missing = np.take(seen.values, [-1], axis=axis)
        if not attribute.complete and missing.sum() < _FEW * seen.deviation * math.sqrt(missing.size):
            believed[(slice(None),) * axis + (-1,)] = False
    return believed
