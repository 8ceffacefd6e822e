"""Sample and aggregate: blocks of inputs by fresh private coins, and their results as a noisy mean or a median.

Blocks are the inputs of a run as plain matrices. Every person (every row, where rows are protected) draws its block
independently and uniformly. Privacy: fix the coins of everybody else. Adding, removing or changing one person then
changes one block only, whatever block that person draws; and since the coins are independent of the data, the same
holds for the mixture over all coins. Numbering persons one after the other would not do under add/remove, where one row
less renumbers all rows after it.

Aggregation, privacy: claim that of the mechanism, under add_remove, replace and user alike, for any foreign code. By
the above one unit changes one block; by the clipping of `cloister.hub.domain.algorithms.outputs` one block moves the
vector of step sums within a set of known diameter.

- ``mean``: the sum of steps gets discrete Laplace noise for the L1 diameter, or Gaussian noise for the L2 diameter;
  dividing by the public number of blocks is post-processing.
- ``median``: for each of d coordinates, one of 257 public values is selected with epsilon / d. Its score is minus the
  number of blocks strictly on its more crowded side, which one block changes by at most 1. The losses add up.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from cloister.accounting.events import Event, PureEvent
from cloister.core import exact
from cloister.core.exact import Number
from cloister.core.guarantees import Adjacency, DifferentialPrivacy, PureDP
from cloister.core.random import RandomSource, RandomState, integers_below, random_source
from cloister.errors import DataError, ParameterError
from cloister.hub.domain.algorithms import OutputLayout, PrivacyContract
from cloister.mechanisms import DiscreteLaplace, Gaussian, Select

Inputs = Mapping[str, NDArray[np.float64]]
"""The matrix of each input: one row per row of the data, one column per chosen column."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SandboxBlock:
    """What one process gets: its rows, and public facts."""

    inputs: Inputs
    parameters: Mapping[str, object]
    bounds: Mapping[str, Sequence[tuple[float, float]]]
    outputs: tuple[tuple[str, tuple[int, ...]], ...]
    entrypoint: str

    def __repr__(self) -> str:
        return f"<Block for {self.entrypoint}>"

    def encode(self, *, size: int) -> bytes:
        """Return the bytes that the confined process reads: a length, a JSON header, and the matrices."""
        header = {
            "entry": self.entrypoint,
            "inputs": [[name, *matrix.shape] for name, matrix in self.inputs.items()],
            "parameters": dict(self.parameters),
            "bounds": {name: [list(pair) for pair in pairs] for name, pairs in self.bounds.items()},
            "outputs": [[name, list(shape)] for name, shape in self.outputs],
            "size": size,
        }
        text = json.dumps(header).encode()
        matrices = [np.ascontiguousarray(matrix, dtype="<f8").tobytes() for matrix in self.inputs.values()]
        return b"".join([len(text).to_bytes(8, "little"), text, *matrices])


def numeric_column(column: pa.ChunkedArray, bounds: tuple[float, float]) -> NDArray[np.float64]:
    """Return a column of numbers, clamped to public bounds; what is missing or undefined is NaN.

    Raises:
        DataError: if the column's type holds no numbers.
    """
    kind = column.type
    if not (
        pa.types.is_integer(kind)
        or pa.types.is_floating(kind)
        or pa.types.is_decimal(kind)
        or pa.types.is_boolean(kind)
    ):
        raise DataError("A column that should hold numbers is of another type.", fix="choose numeric columns.")
    numbers = pc.cast(column, pa.float64(), safe=False).to_numpy()
    with np.errstate(invalid="ignore"):
        return np.clip(np.asarray(numbers, dtype=np.float64), *bounds)


def category_column(column: pa.ChunkedArray, categories: Sequence[object]) -> NDArray[np.float64]:
    """Return the place of each value among the public categories; others are NaN.

    Raises:
        DataError: if the categories are not of the column's type.
    """
    plain = column.cast(column.type.value_type) if pa.types.is_dictionary(column.type) else column
    try:
        known = pa.array(list(categories)).cast(plain.type)
    except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError):
        raise DataError(
            "The categories of a column are not of its type.", fix="mend the categories in the schema."
        ) from None
    return np.asarray(pc.cast(pc.index_in(plain, value_set=known), pa.float64()).to_numpy(), dtype=np.float64)


def persons_of(column: pa.ChunkedArray) -> NDArray[np.int64]:
    """Return a number for each row that is the same for rows of the same person; missing keys count as one person."""
    if pa.types.is_floating(column.type) or pa.types.is_nested(column.type):
        raise DataError("Persons are named by a column of floating or nested type.", fix="use whole numbers or text.")
    encoded = column if pa.types.is_dictionary(column.type) else pc.dictionary_encode(column, null_encoding="encode")
    codes = encoded.combine_chunks()
    merged = codes.chunk(0) if isinstance(codes, pa.ChunkedArray) else codes
    return np.asarray(pc.fill_null(merged.indices, -1).to_numpy(zero_copy_only=False), dtype=np.int64) + 1


def assign(persons: NDArray[np.int64] | int, blocks: int, source: RandomSource) -> NDArray[np.int64]:
    """Return the block of each row: one independent uniform draw per person, or per row where a number is given."""
    if isinstance(persons, int):
        return integers_below(source, blocks, persons)
    drawn = integers_below(source, blocks, int(persons.max(initial=-1)) + 1)
    return drawn[persons]


def split(inputs: Inputs, owners: NDArray[np.int64], blocks: int) -> Iterator[dict[str, NDArray[np.float64]]]:
    """Yield the rows of each block, also of those that got none, in the order of the data."""
    order = np.argsort(owners, kind="stable")
    ends = np.searchsorted(owners[order], np.arange(blocks + 1))
    # Blocks without rows are given out as well: how many there are must not depend on the data.
    for block in range(blocks):
        rows = order[ends[block] : ends[block + 1]]
        yield {name: matrix[rows] for name, matrix in inputs.items()}


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

    def margins(self, confidence: Number = 0.95) -> Values:
        """Return the half-widths that cover the noise on single numbers with a probability."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class BlockMean:
    """The mean over blocks with noise for the diameter of the public set."""

    layout: OutputLayout
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
        total = _check_steps(steps, self.blocks, self.layout).sum(axis=0)
        noisy = self.mechanism.release(total, random_state=random_state).value
        return self.layout.from_steps(np.asarray(noisy).reshape(self.layout.size), self.blocks)

    def margins(self, confidence: Number = 0.95) -> Values:
        """Return the half-widths that cover the noise on single numbers with a probability."""
        steps = self.mechanism.margin(confidence)
        return {clip.name: steps * clip.scale(self.blocks) for clip in self.layout.clips}


@dataclass(frozen=True, slots=True, kw_only=True)
class BlockMedian:
    """The median over blocks of each number, selected among public values."""

    layout: OutputLayout
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
        columns = _check_steps(steps, self.blocks, self.layout).T
        grids = [_grid(clip.norm, clip.steps) for clip in self.layout.clips for _ in range(clip.size)]
        picked = [
            places[select.release(scores(column, places), random_state=source).index]
            for column, places in zip(columns, grids, strict=True)
        ]
        return self.layout.from_steps(np.array(picked, dtype=np.int64), 1)

    def margins(self, confidence: Number = 0.95) -> Values:
        """Return nothing: how far a selected median is off depends on how the blocks lie, which is private."""
        del confidence
        return {}


def scores(column: NDArray[np.int64], places: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return minus the number of blocks strictly on the more crowded side of each place."""
    ordered = np.sort(column)
    below = np.searchsorted(ordered, places, side="left")
    above = ordered.size - np.searchsorted(ordered, places, side="right")
    return np.asarray(-np.maximum(below, above), dtype=np.int64)


def choose_aggregation(
    contract: PrivacyContract,
    layout: OutputLayout,
    *,
    blocks: int,
    epsilon: Fraction,
    delta: Fraction,
    adjacency: Adjacency,
    unit: str,
) -> Aggregation:
    """Return the private summary that a contract promises, from public facts alone."""
    if contract.aggregation == "median":
        return BlockMedian(layout=layout, blocks=blocks, epsilon=epsilon, adjacency=adjacency, unit=unit)
    common: Mapping[str, Any] = {"epsilon": epsilon, "adjacency": adjacency, "unit": unit}
    if not contract.is_gaussian:
        return BlockMean(layout=layout, blocks=blocks, mechanism=DiscreteLaplace(sensitivity=layout.l1, **common))
    mechanism = Gaussian(
        # The root is rounded up: a sensitivity may be too large, and never too small.
        sensitivity=exact.sqrt_bounds(layout.squared_l2)[1],
        delta=delta,
        dimensions=layout.size,
        granularity=Fraction(1),
        **common,
    )
    return BlockMean(layout=layout, blocks=blocks, mechanism=mechanism)


def _grid(norm: str, steps: int) -> NDArray[np.int64]:
    low = 0 if norm == "box" else -steps
    return np.rint(np.linspace(low, steps, _CANDIDATES)).astype(np.int64)


def _check_steps(steps: NDArray[np.int64], blocks: int, layout: OutputLayout) -> NDArray[np.int64]:
    if steps.shape != (blocks, layout.size):
        raise ParameterError("The steps are not one row for each block.", fix="pass a matrix of blocks by coordinates.")
    return steps
