"""Private aggregation of what the blocks of a foreign algorithm returned.

Privacy: claim that of the mechanism, under add_remove, replace and user alike, for any foreign code. By `blocks` one
unit changes one block; by `clipping` one block moves the vector of step sums within a set of known diameter.

- ``mean``: the sum of steps gets discrete Laplace noise for the L1 diameter, or Gaussian noise for the L2 diameter;
  dividing by the public number of blocks is post-processing.
- ``median``: for each of d coordinates, one of 257 public values is selected with epsilon / d. Its score is minus the
  number of blocks strictly on its more crowded side, which one block changes by at most 1. The losses add up.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from cloister.accounting.events import Event, PureEvent
from cloister.core import exact
from cloister.core.guarantees import Adjacency, DifferentialPrivacy, PureDP
from cloister.core.random import RandomState, random_source
from cloister.errors import ParameterError
from cloister.hub.domain.algorithms import Layout, PrivacyContract
from cloister.mechanisms import DiscreteLaplace, Gaussian, Select

_CANDIDATES = 257

Values = dict[str, NDArray[np.float64]]


class Aggregation(Protocol):
    """A private summary of the steps of all blocks."""

    @property
    def guarantee(self) -> DifferentialPrivacy:
        """Return what a release promises."""
        ...

    @property
    def event(self) -> Event:
        """Return what a release is for the accountants."""
        ...

    def release(self, steps: NDArray[np.int64], *, random_state: RandomState = None) -> Values:
        """Return the private summary of a matrix with one row for each block."""
        ...

    def margins(self, confidence: object = 0.95) -> Values:
        """Return the half-widths that cover the noise on single numbers with a probability."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Mean:
    """The mean over blocks with noise for the diameter of the public set."""

    layout: Layout
    blocks: int
    mechanism: DiscreteLaplace | Gaussian

    @property
    def guarantee(self) -> DifferentialPrivacy:
        """Return what a release promises."""
        return self.mechanism.guarantee

    @property
    def event(self) -> Event:
        """Return what a release is for the accountants."""
        return self.mechanism.event

    def release(self, steps: NDArray[np.int64], *, random_state: RandomState = None) -> Values:
        """Return the noisy mean of a matrix of steps with one row for each block."""
        total = _checked(steps, self.blocks, self.layout).sum(axis=0)
        noisy = self.mechanism.release(total, random_state=random_state).value
        return self.layout.from_steps(np.asarray(noisy).reshape(self.layout.size), self.blocks)

    def margins(self, confidence: object = 0.95) -> Values:
        """Return the half-widths that cover the noise on single numbers with a probability."""
        steps = self.mechanism.margin(confidence)
        return {clip.name: steps * clip.scale(self.blocks) for clip in self.layout.clips}


@dataclass(frozen=True, slots=True, kw_only=True)
class Median:
    """The median over blocks of each number, selected among public values."""

    layout: Layout
    blocks: int
    epsilon: Fraction
    adjacency: Adjacency
    unit: str

    @property
    def guarantee(self) -> DifferentialPrivacy:
        """Return what a release promises."""
        return PureDP(epsilon=self.epsilon, adjacency=self.adjacency, unit=self.unit)

    @property
    def event(self) -> Event:
        """Return what a release is for the accountants."""
        return PureEvent(epsilon=self.epsilon)

    @property
    def selection(self) -> Select:
        """Return the mechanism that selects the median of one coordinate."""
        return Select(
            candidates=tuple(range(_CANDIDATES)),
            score_sensitivity=Fraction(1),
            epsilon=self.epsilon / self.layout.size,
            adjacency=self.adjacency,
            unit=self.unit,
        )

    def release(self, steps: NDArray[np.int64], *, random_state: RandomState = None) -> Values:
        """Return private medians of a matrix of steps with one row for each block."""
        source, select = random_source(random_state), self.selection
        columns = _checked(steps, self.blocks, self.layout).T
        grids = [_grid(clip.norm, clip.steps) for clip in self.layout.clips for _ in range(clip.size)]
        picked = [
            places[select.release(scores(column, places), random_state=source).index]
            for column, places in zip(columns, grids, strict=True)
        ]
        return self.layout.from_steps(np.array(picked, dtype=np.int64), 1)

    def margins(self, confidence: object = 0.95) -> Values:
        """Return nothing: how far a selected median is off depends on how the blocks lie, which is private."""
        del confidence
        return {}


def scores(column: NDArray[np.int64], places: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return minus the number of blocks strictly on the more crowded side of each place."""
    ordered = np.sort(column)
    below = np.searchsorted(ordered, places, side="left")
    above = ordered.size - np.searchsorted(ordered, places, side="right")
    return np.asarray(-np.maximum(below, above), dtype=np.int64)


def aggregation(
    contract: PrivacyContract,
    layout: Layout,
    *,
    blocks: int,
    epsilon: Fraction,
    delta: Fraction,
    adjacency: Adjacency,
    unit: str,
) -> Aggregation:
    """Return the private summary that a contract promises, from public facts alone."""
    if contract.aggregation == "median":
        return Median(layout=layout, blocks=blocks, epsilon=epsilon, adjacency=adjacency, unit=unit)
    common: Mapping[str, Any] = {"epsilon": epsilon, "adjacency": adjacency, "unit": unit}
    if not contract.is_gaussian:
        return Mean(layout=layout, blocks=blocks, mechanism=DiscreteLaplace(sensitivity=layout.l1, **common))
    mechanism = Gaussian(
        sensitivity=exact.sqrt_bounds(layout.squared_l2)[1],
        delta=delta,
        dimensions=layout.size,
        granularity=Fraction(1),
        **common,
    )
    return Mean(layout=layout, blocks=blocks, mechanism=mechanism)


def _grid(norm: str, steps: int) -> NDArray[np.int64]:
    low = 0 if norm == "box" else -steps
    return np.rint(np.linspace(low, steps, _CANDIDATES)).astype(np.int64)


def _checked(steps: NDArray[np.int64], blocks: int, layout: Layout) -> NDArray[np.int64]:
    if steps.shape != (blocks, layout.size):
        raise ParameterError("The steps are not one row for each block.", fix="pass a matrix of blocks by coordinates.")
    return steps
