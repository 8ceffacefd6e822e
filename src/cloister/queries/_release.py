"""Answers to a plan: exact numbers from the engine, noise, and estimates that follow from the noisy numbers alone.

`measure` is the only function here that sees protected numbers; what it returns is private and may be stored.
`estimate` turns it into answers and their errors, and gives the same whenever it is called again.
"""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sqlglot import exp

from cloister.core.random import RandomSource
from cloister.data.values import StorageType
from cloister.errors import InternalError
from cloister.mechanisms.base import ROOM
from cloister.queries._aggregates import Aggregate
from cloister.queries._cells import Component, ExactCells, Ranked
from cloister.queries._contribution import Contribution
from cloister.queries._exact_core import ExactCore
from cloister.queries._measurements import Measurement
from cloister.queries._query_plan import QueryPlan
from cloister.queries._question import FixedPointNumber, GroupKey, QueryRows, RankTarget
from cloister.queries._uncertainty import Linear, Noise, Uncertainty, Unknown
from cloister.queries.answers import Estimate
from cloister.queries.ranks import RankSelection

__all__ = ["Noisy", "NoisyMeasurements", "NoisyVector", "estimate", "measure"]


@dataclass(frozen=True, slots=True)
class Noisy:
    """Private numbers: noisy vectors in steps, chosen ranks, and the groups that were chosen privately."""

    vectors: dict[str, NDArray[Any]]
    ranks: tuple[NDArray[np.int64], ...]
    shown: tuple[list[Any], ...] | None

    def to_dict(self) -> dict[str, Any]:
        """Return JSON-ready values."""
        return {
            "vectors": {name: vector.tolist() for name, vector in self.vectors.items()},
            "ranks": [chosen.tolist() for chosen in self.ranks],
            "shown": None if self.shown is None else [[_to_json(item) for item in column] for column in self.shown],
        }

    @classmethod
    def from_dict(cls, values: dict[str, Any], keys: Sequence[GroupKey]) -> Noisy:
        """Return what `to_dict` wrote."""
        shown = values["shown"]
        return cls(
            {name: _array(vector) for name, vector in values["vectors"].items()},
            tuple(np.array(chosen, dtype=np.int64) for chosen in values["ranks"]),
            None
            if shown is None
            else tuple([_from_json(item, key) for item in column] for column, key in zip(shown, keys, strict=True)),
        )


def measure(
    plan: QueryPlan, contribution: Contribution, source: RandomSource, *, rows: QueryRows | None = None
) -> Noisy:
    """Return the noisy numbers of a plan, about its own rows or others. The budget must have been charged before."""
    # Plan and noise stay those of the question whatever rows it runs on, also when it runs on nobody's after a
    # failure.
    question = plan.question if rows is None else replace(plan.question, rows=rows)
    core = ExactCore(question, contribution, plan.design.reach)
    cells = core.cells(plan.design.components) if plan.design.measurements else None
    ranks = tuple(
        _choose(core.ranks(ranking.number), chooser, source)
        for ranking, chooser in zip(plan.design.rankings, plan.rankings, strict=True)
    )
    if cells is None:
        return Noisy({}, ranks, None)
    if plan.threshold is None:
        return Noisy(_noisy(plan, cells, source), ranks, None)
    return _select(plan, contribution, cells, source)


def _noisy(plan: QueryPlan, cells: ExactCells, source: RandomSource) -> dict[str, NDArray[Any]]:
    return {
        name: plan.noises[name].add(measurement.vector(cells), source)
        for name, measurement in plan.design.measurements.items()
    }


def _select(plan: QueryPlan, contribution: Contribution, cells: ExactCells, source: RandomSource) -> Noisy:
    """Keep the groups whose noisy count reaches the threshold, in the order of their keys."""
    vectors = _noisy(plan, cells, source)
    counts = vectors["units" if contribution.is_person else "rows"][0]
    if plan.threshold is None:
        raise InternalError("there is no threshold for groups.")
    # Noisy counts alone decide which groups are seen, and all vectors are cut to the same groups.
    kept = np.flatnonzero(counts >= plan.threshold)
    return Noisy(
        {name: vector[:, kept] for name, vector in vectors.items()},
        (),
        tuple([column[row] for row in kept] for column in cells.shown),
    )


def _choose(ranked: Sequence[Ranked], chooser: RankSelection, source: RandomSource) -> NDArray[np.int64]:
    return np.array([chooser.release(item.positions, item.weights, random_state=source) for item in ranked])


# Estimates -----------------------------------------------------------------------------------------------------------


def estimate(plan: QueryPlan, noisy: Noisy) -> tuple[list[Estimate], list[Estimate]]:
    """Return the columns of groups and those of aggregates, in the order of the question."""
    keys = plan.question.keys
    shown = noisy.shown if noisy.shown is not None else _all_groups(keys)
    columns = [Estimate.key(key.name, column) for key, column in zip(keys, shown, strict=True)]
    measured = NoisyMeasurements(plan, noisy)
    return columns, [_estimate(item, measured) for item in plan.question.aggregates]


def _estimate(aggregate: Aggregate, measured: NoisyMeasurements) -> Estimate:
    values, error = aggregate.answer(measured)
    return Estimate(name=aggregate.name, values=values, error=error)


@dataclass(frozen=True, slots=True)
class NoisyVector:
    """One noisy number per group, and the independent noises in each of them."""

    values: NDArray[np.float64]
    noises: tuple[Noise, ...]

    def times(self, factor: float) -> NoisyVector:
        """Return a multiple."""
        return NoisyVector(factor * self.values, tuple(noise.times(factor) for noise in self.noises))

    def plus(self, other: NoisyVector) -> NoisyVector:
        """Return the sum with another vector, whose noises are others."""
        return NoisyVector(self.values + other.values, self.noises + other.noises)


class NoisyMeasurements:
    """What was measured, with its noise: what `Aggregate.answer` computes an answer and its error from."""

    def __init__(self, plan: QueryPlan, noisy: Noisy) -> None:
        self._plan, self._noisy = plan, noisy
        self._scale = plan.design.reach.scale

    # Counts ----------------------------------------------------------------------------------------------------------

    def rows(self) -> tuple[NDArray[Any], Uncertainty]:
        """Return how many rows there are."""
        if "rows" in self._noisy.vectors:
            return self._counts("rows")
        split = next(name for name, item in self._plan.design.measurements.items() if item.rest_of is not None)
        return self._counts(split, parts=(0, 1))

    def units(self) -> tuple[NDArray[Any], Uncertainty]:
        """Return how many units of privacy there are."""
        return self._counts("units") if "units" in self._noisy.vectors else self.rows()

    def present(self, of: exp.Expression) -> tuple[NDArray[Any], Uncertainty]:
        """Return in how many rows something is not NULL."""
        return self._counts(Component.of_value("present", of).name)

    def distinct(self, of: exp.Expression) -> tuple[NDArray[Any], Uncertainty]:
        """Return how many different values something has."""
        return self._counts(Component.of_value("distinct", of).name)

    def _counts(self, name: str, *, parts: tuple[int, ...] = (0,)) -> tuple[NDArray[Any], Uncertainty]:
        """Return whole counts: the parts of a measurement added up."""
        vector = self._noisy.vectors[name]
        steps = sum(vector[part] for part in parts)
        noises = (self._law(name),) * len(parts)
        scale = self._measurement(name).unit.denominator
        is_fine = self._plan.noises[name].refinement > 1
        if scale == 1 and not is_fine:
            return np.asarray(steps), Linear(noises, vector.shape[1])
        # Whole steps are rounded as integers, since floats would lose the last digits of large counts.
        counts = _nearest(steps, scale) if is_fine else np.asarray((steps + scale // 2) // scale)
        if scale == 1:
            return counts, Linear(noises, vector.shape[1], is_whole=True)
        return counts, Linear(noises, vector.shape[1], rounding=0.5)

    # Sums ------------------------------------------------------------------------------------------------------------

    def counts(self, number: FixedPointNumber) -> NoisyVector:
        """Return how many values of a number there are, not rounded."""
        return self._vector(f"present {number.text}")

    def totals(self, number: FixedPointNumber) -> NoisyVector:
        """Return the sums of a number around its `center`."""
        return self._vector(f"total {number.text}")

    def squares(self, number: FixedPointNumber) -> NoisyVector:
        """Return the sums of what the squares of a number, around the middle of its bounds, exceed `middle` by."""
        return self._vector(f"square {number.text}")

    def center(self, number: FixedPointNumber) -> int:
        """Return around what a number was summed, in steps: the middle of its bounds, or 0."""
        return self._measurement(f"total {number.text}").component.center

    def middle(self, number: FixedPointNumber) -> float:
        """Return around what squares were summed: the middle of what they can be."""
        measurement = self._measurement(f"square {number.text}")
        # The unit is the worth of one step of weight, and counts are in rows, of `scale` steps each.
        return float(measurement.offset * measurement.unit) * self._scale

    def _vector(self, name: str) -> NoisyVector:
        return NoisyVector(_floats(self._noisy.vectors[name][0], self._measurement(name).unit), (self._law(name),))

    # Ranks -----------------------------------------------------------------------------------------------------------

    def rank(self, target: RankTarget) -> tuple[NDArray[Any], Uncertainty]:
        """Return the number that was chosen by its rank; its error is one in rank."""
        place = [ranking.target for ranking in self._plan.design.rankings].index(target)
        chosen = self._noisy.ranks[place]
        unit = target.number.unit
        values = chosen if unit == 1 else _floats(chosen, unit)
        rows = self._plan.rankings[place].rank_margin() / self._scale
        return values, Unknown(len(chosen), f"within {rows:,.0f} rows in rank")

    def _measurement(self, name: str) -> Measurement:
        return self._plan.design.measurements[name]

    def _law(self, name: str) -> Noise:
        return self._plan.noises[name].law(self._measurement(name).unit)


def _floats(steps: NDArray[Any], unit: Fraction) -> NDArray[np.float64]:
    """Return noisy steps as numbers; rounding here touches only what is private already."""
    # A division by a power of two changes the exponent alone, and needs no fraction for each number.
    if unit.numerator == 1 and unit.denominator & (unit.denominator - 1) == 0 and steps.dtype != object:
        return np.ldexp(steps.astype(np.float64), 1 - unit.denominator.bit_length())
    return np.array([_float(Fraction(step) * unit) for step in steps.tolist()], dtype=np.float64)


def _nearest(steps: Any, scale: int) -> NDArray[Any]:
    """Return the nearest whole numbers to steps on a finer lattice, halves upward; large ones as Python's own."""
    rounded = np.floor(np.asarray(steps, dtype=np.float64) / scale + 0.5)
    if (np.abs(rounded) < ROOM).all():
        return rounded.astype(np.int64)
    return np.array([int(number) for number in rounded.tolist()], dtype=object)


def _float(value: Fraction) -> float:
    try:
        return float(value)
    except OverflowError:
        return math.copysign(math.inf, value)


def _all_groups(keys: Sequence[GroupKey]) -> tuple[list[Any], ...]:
    """Return what is shown of every combination of public values, the last key changing fastest."""
    combinations = list(product(*(key.shown or () for key in keys)))
    return tuple([row[position] for row in combinations] for position in range(len(keys)))


def _array(vector: list[list[int | float]]) -> NDArray[Any]:
    """Return steps as they were: floats on a finer lattice, else whole numbers, large ones as Python's own."""
    array = np.array(vector, dtype=object)
    if any(isinstance(item, float) for item in array.flat):
        return array.astype(np.float64)
    fits = all(abs(item) < 2**63 for item in array.flat)
    return array.astype(np.int64) if fits else array


def _to_json(item: Any) -> Any:
    if isinstance(item, float) and not math.isfinite(item):
        return str(item)
    return item if isinstance(item, str | int | float | bool) or item is None else str(item)


def _from_json(item: Any, key: GroupKey) -> Any:
    if key.labels is not None:
        names = {_to_json(label): label for label in key.labels}
        return names.get(item, item)
    readers: dict[StorageType, Any] = {
        StorageType.DATE: dt.date.fromisoformat,
        StorageType.TIMESTAMP: dt.datetime.fromisoformat,
        StorageType.REAL: float,
    }
    return readers[key.type](item) if key.type in readers else item
