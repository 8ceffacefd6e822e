"""The base of synthesizers for tables of numbers, with at most one column of classes.

Numbers are put on a public grid first: 2**12 whole steps from the middle of their bounds to either end, what lies
outside at the nearest end. What is measured are counts and sums of whole numbers, so that rounding decides nothing.
Synthetic numbers are drawn as real numbers, clipped to the bounds, and rounded where the column has whole numbers.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from scipy import special

from cloister.core.random import RandomSource
from cloister.core.whole_rows import Floats, whole_steps
from cloister.data.schema import Schema
from cloister.data.table import Table
from cloister.data.values import StorageType
from cloister.errors import ParameterError
from cloister.synth._domain import DomainAttribute, TableDomain
from cloister.synth.base import SynthesisFacts, Synthesizer
from cloister.synth.conditions import allowed_cells
from cloister.synth.constraints import Determines, SumOf
from cloister.synth.expectation import Expectation

__all__ = ["UNIT", "NumberNoise", "NumericRows", "NumericSynthesizer", "choose_by_weight", "standard_normals"]

_BITS = 12
UNIT: int = 2**_BITS
"""How many steps there are from the middle of a column's bounds to an end."""

_NUMBERS = (StorageType.INTEGER, StorageType.REAL)
_TRIES = 200
_BATCH = 2**14


@dataclass(frozen=True, slots=True)
class NumberNoise(Expectation):
    """The noise on numbers that are given in units of half the range of their columns; ``cells`` counts them."""

    def error(self, rows: int) -> float:
        """Return the noise as a share of half the range, at most 1; the number of rows is in it already."""
        del rows
        return min(1.0, self.deviation)

    def __str__(self) -> str:
        return f"{self.what}: {self.cells:,} numbers, each ± {self.margin:.2g} times half its range (95%)"


@dataclass(frozen=True, slots=True, eq=False)
class NumericRows:
    """Distinct rows in whole steps, their class (the number of classes for none), and how often each occurs. Protected.

    A missing number is in the middle; ``whole`` says which rows have none.
    """

    steps: Floats
    classes: NDArray[np.int64]
    weights: NDArray[np.int64]
    whole: NDArray[np.bool_]

    def __repr__(self) -> str:
        return f"NumericRows(columns={self.steps.shape[1]})"

    def kept(self, chosen: NDArray[np.bool_]) -> NumericRows:
        """Return some of the rows."""
        return NumericRows(self.steps[chosen], self.classes[chosen], self.weights[chosen], self.whole[chosen])


@dataclass(kw_only=True, eq=False, repr=False)
class NumericSynthesizer(Synthesizer):
    """A synthesizer of numbers.

    Args:
        label: the one column that may have public categories, such as the classes of a classification.
    """

    label: str | None = None

    def declared(self, table: Table) -> SynthesisFacts:
        """Return what is public about a table, or refuse columns that are neither numbers nor the label."""
        if self.bins is not None:
            raise ParameterError(
                f"{type(self).__name__} does not cut numbers into bins.", fix="leave bins out, or use SpanningTree."
            )
        facts = super().declared(table)
        if self.label is not None:
            facts.domain.positions([self.label])
        for item in facts.constraints:
            if not isinstance(item, SumOf) and not (isinstance(item, Determines) and item.by == self.label):
                raise ParameterError(
                    f"{type(self).__name__} cannot keep every constraint: only sums, and what follows from the label.",
                    fix="drop the others, or use AdaptiveMarginals.",
                )
        domain = TableDomain(tuple(self._declared_column(item, facts.schema) for item in facts.domain.attributes))
        if not any(item.is_binned for item in domain.attributes):
            raise ParameterError(
                f"{type(self).__name__} needs at least one column of numbers.",
                fix="add one, or use SpanningTree or AdaptiveMarginals.",
            )
        return replace(facts, domain=domain)

    def _declared_column(self, item: DomainAttribute, schema: Schema) -> DomainAttribute:
        if item.name == self.label:
            if item.is_binned:
                raise ParameterError(
                    f'The label "{item.name}" has no public categories.',
                    fix="list its categories in the schema, or leave label out.",
                )
            return replace(item, complete=True)
        if item.storage not in _NUMBERS or schema[item.name].categories is not None:
            raise ParameterError(
                f'Column "{item.name}" is not a number with public bounds, which is all that {type(self).__name__} can '
                "model besides one label.",
                fix=f'use SpanningTree or AdaptiveMarginals, leave it out of columns, or write label="{item.name}".',
            )
        low, high = map(Fraction, schema.bounds_of(item.name))  # type: ignore[arg-type]  # bounds of a number
        edges = (
            (math.ceil(low), math.floor(high) + 1) if item.storage is StorageType.INTEGER else map(float, (low, high))
        )
        return DomainAttribute(item.name, item.storage, edges=tuple(edges), complete=True)

    # Reading ---------------------------------------------------------------------------------------------------------

    def _read(self, facts: SynthesisFacts, table: Table) -> NumericRows:
        """Return the rows on the grid; each is put there by itself."""
        label = label_of(facts.domain)
        read = [*numbers_of(facts.domain), *(() if label is None else (label,))]
        counted = table.with_schema(None).frequencies([item.name for item in read])
        columns, whole = [], np.ones(len(counted), dtype=np.bool_)
        for place, item in enumerate(numbers_of(facts.domain)):
            values = np.array([math.nan if value is None else float(value) for value in counted.decoders[place]])
            low, high = scale_of(item)
            steps = whole_steps(values, lows=np.array(low), highs=np.array(high), bits=_BITS)
            codes = counted.codes[:, place]
            columns.append(steps[codes])
            whole &= ~np.isnan(values)[codes]
        classes = np.zeros(len(counted), dtype=np.int64)
        if label is not None:
            classes = label.codes(counted.decoders[-1])[counted.codes[:, -1]]
        return NumericRows(np.column_stack(columns), classes, np.array(counted.weights), whole)

    # Drawing ---------------------------------------------------------------------------------------------------------

    @abstractmethod
    def _draw_numbers(
        self, count: int, classes: NDArray[np.bool_], source: RandomSource
    ) -> tuple[Floats, NDArray[np.int64]]:
        """Return numbers in units of half the range from the middle, and classes, of which only some are wanted."""

    def _draw(self, count: int, conditions: dict[str, Any], source: RandomSource) -> dict[str, Any]:
        domain = self.fitted_facts.domain
        label = label_of(domain)
        wanted = {name: allowed_cells(domain[name], given) for name, given in conditions.items()}
        classes = np.ones(1 if label is None else label.size, dtype=np.bool_)
        if label is not None and label.name in wanted:
            classes = wanted.pop(label.name)[0]
        limits = {name: between for name, (_, between) in wanted.items() if between is not None}
        drawn = self._drawn_within(count, limits, classes, source)
        return {
            item.name: item.decode(drawn[item.name].astype(np.int64), source)
            if item is label
            else pa.array(
                drawn[item.name].astype(np.int64) if item.storage is StorageType.INTEGER else drawn[item.name]
            )
            for item in domain.attributes
        }

    def _drawn_within(
        self, count: int, limits: Mapping[str, Any], classes: NDArray[np.bool_], source: RandomSource
    ) -> dict[str, Floats]:
        """Return columns of values, drawn again where a row does not meet the limits."""
        parts: list[dict[str, Floats]] = []
        found = 0
        for _ in range(_TRIES):
            # Conditions keep few rows, so that more are drawn at a time.
            columns = self._columns(count if not limits else max(count, _BATCH), classes, source)
            if not limits:
                return columns
            inside = np.ones(len(next(iter(columns.values()))), dtype=np.bool_)
            for name, (low, high) in limits.items():
                inside &= (columns[name] >= float(low)) & (columns[name] <= float(high))
            parts.append({name: values[inside] for name, values in columns.items()})
            found += int(inside.sum())
            if found >= count:
                return {name: np.concatenate([part[name] for part in parts])[:count] for name in columns}
        raise ParameterError(
            "Hardly any synthetic row meets the conditions.", fix="ask for wider ranges, or for fewer conditions."
        )

    def _columns(self, count: int, classes: NDArray[np.bool_], source: RandomSource) -> dict[str, Floats]:
        domain = self.fitted_facts.domain
        numbers, labels = self._draw_numbers(count, classes, source)
        columns = {item.name: values_of(item, numbers[:, place]) for place, item in enumerate(numbers_of(domain))}
        label = label_of(domain)
        return columns if label is None else {**columns, label.name: labels.astype(np.float64)}


def numbers_of(domain: TableDomain) -> tuple[DomainAttribute, ...]:
    """Return the columns of numbers."""
    return tuple(item for item in domain.attributes if item.is_binned)


def label_of(domain: TableDomain) -> DomainAttribute | None:
    """Return the column of classes, if there is one."""
    return next((item for item in domain.attributes if not item.is_binned), None)


def scale_of(item: DomainAttribute) -> tuple[float, float]:
    """Return the values at either end of the grid; those of a single value are one apart."""
    # The last edge of whole numbers is one behind the last value.
    low, high = float(item.edges[0]), float(item.edges[-1]) - (item.storage is StorageType.INTEGER)
    return low, high if high > low else low + 1.0


def values_of(item: DomainAttribute, numbers: Floats) -> Floats:
    """Return values of a column, inside of its bounds."""
    low, high = scale_of(item)
    values = (low + high) / 2 + numbers * ((high - low) / 2)
    if item.storage is StorageType.INTEGER:
        values = np.rint(values)
    return np.clip(values, low, float(item.edges[-1]) - (item.storage is StorageType.INTEGER))


def standard_normals(source: RandomSource, shape: tuple[int, ...]) -> Floats:
    """Return standard normal numbers; no promise rests on their exact law."""
    words = source.words(math.prod(shape)) >> np.uint64(12)
    # Half a step keeps 0 and 1 out, at which the quantile is infinite.
    return np.asarray(special.ndtri((words.astype(np.float64) + 0.5) * 2.0**-52)).reshape(shape)


def choose_by_weight(weights: Floats, points: Floats) -> NDArray[np.int64]:
    """Return a position for each point in [0, 1), by weights; evenly where all are zero."""
    positive = np.maximum(weights, 0.0)
    reach = np.cumsum(positive if positive.sum() > 0 else np.ones(len(weights)))
    places = np.searchsorted(reach / reach[-1], points, side="right")
    return np.minimum(places, len(weights) - 1)
