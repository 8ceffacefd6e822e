"""The tables that a query may name: private ones on one engine, and public ones without protected rows.

Their columns are here as questions need them: a bounded number in fixed point, or a key with its public values.
Bounds and categories come from the caller or from the confirmed schema. Nothing is read from the data.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import pyarrow as pa
from sqlglot import exp

from cloister.core import exact, validation
from cloister.core.wordings import a_or_an
from cloister.data.bins import ColumnBins
from cloister.data.engines.aggregation import as_stored
from cloister.data.engines.base import value
from cloister.data.measures import Sum
from cloister.data.schema import Schema
from cloister.data.table import Table
from cloister.data.values import StorageType
from cloister.errors import MissingBoundsError, ParameterError, ParameterTypeError, UnknownColumnError
from cloister.queries._question import FixedPointNumber, GroupKey

__all__ = ["Catalog", "column_key", "column_number", "position_of", "present_value", "to_fixed_point"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Catalog:
    """Tables by the name that SQL uses.

    Attributes:
        private: tables with protected rows; `data` is the first.
        person: the column that names the unit of privacy in every private table; None when rows are the unit.
        public: tables that everybody may see.
    """

    private: Mapping[str, Table]
    person: str | None = None
    public: Mapping[str, pa.Table] = field(default_factory=dict)

    def canonical(self) -> str:
        """Return a text that is the same for the same tables: names, columns in order, types and public domains."""
        return json.dumps([self.person, *(_describe_table(name, table) for name, table in self.private.items())])


def _describe_table(name: str, table: Table) -> list[Any]:
    columns = [[column, str(storage)] for column, storage in table.types.items()]
    schema = None if table.schema is None else table.schema.to_dict()
    return [name, columns, list(table.engine.missing), schema]


_STEPS = 2**20
_WHOLE_STEPS = 2**40
_NUMERIC = (StorageType.INTEGER, StorageType.REAL)


def position_of(table: Table, name: str) -> int:
    """Return the position of a column that the schema (or, without one, the table) has."""
    known = table.columns if table.schema is None else table.schema.names
    if name not in known:
        raise UnknownColumnError(str(name), known)
    return table.columns.index(name)


def person_value(table: Table, name: str) -> exp.Expression:
    """Return SQL for the column that names the unit of privacy, which may be one that the schema does not show."""
    if name not in table.columns:
        raise UnknownColumnError(str(name), table.columns)
    return value(table.engine, table.columns.index(name))


def present_value(table: Table, name: str) -> exp.Expression:
    """Return SQL for a column in which every kind of missing value is NULL."""
    return value(table.engine, position_of(table, name))


def column_number(
    table: Table, name: str, *, bounds: object = None, granularity: object = None, is_squared: bool = False
) -> FixedPointNumber:
    """Return a numeric column, clamped to public bounds and rounded to steps of a public granularity.

    Args:
        table: the table.
        name: the column.
        bounds: its public bounds; by default those of the schema.
        granularity: a power of two; by default 1 for whole numbers, about a millionth of the range otherwise.
        is_squared: whether its squares will be summed, for which wide bounds need coarser steps.
    """
    position = position_of(table, name)
    storage = table.engine.types[position]
    if storage not in _NUMERIC:
        raise ParameterTypeError(
            f'"{name}" holds {storage} values, which are not numbers.',
            fix="use a numeric column, or count this one.",
        )
    limits = _bounds(table.schema, name, bounds)
    if granularity is None:
        granularity = _granularity(limits, storage, is_squared=is_squared)
    return to_fixed_point(table.engine.stored(position), storage, name, bounds=limits, granularity=granularity)


def to_fixed_point(
    stored: exp.Expression,
    storage: StorageType,
    label: str,
    *,
    bounds: tuple[Fraction, Fraction],
    granularity: object = None,
) -> FixedPointNumber:
    """Return SQL for an integer or real number, clamped to public bounds and rounded to steps."""
    step = _granularity(bounds, storage, is_squared=False) if granularity is None else granularity
    measure = Sum(label, bounds=bounds, granularity=step)
    measure.check(storage)
    low, high = measure.step_bounds(storage)
    steps = measure.contribution(stored, storage)
    return FixedPointNumber(steps=steps, unit=measure.unit, low=low, high=high, label=label)


def column_key(
    table: Table, name: str, *, bins: Sequence[Any] | None = None, values: Sequence[Any] | None = None
) -> GroupKey:
    """Return a column to group by, with its public values: bins, values that are given, or the schema's categories.

    Whole numbers with public bounds of at most a thousand values need no categories. Without any public domain the key
    has no values, and has to be chosen privately.
    """
    position = position_of(table, name)
    engine, storage = table.engine, table.engine.types[position]
    column = value(engine, position)
    if bins is not None:
        cut = ColumnBins.of(name, bins, storage)
        numbers = tuple(range(len(cut.intervals)))
        return GroupKey(
            name=name, group=cut.code(column), type=StorageType.INTEGER, values=numbers, labels=cut.intervals
        )
    domain = tuple(values) if values is not None else _domain(table.schema, name, storage)
    if domain is None:
        return GroupKey(name=name, group=column, type=storage, values=None)
    stored = [(as_stored(item, storage), item) for item in domain]
    usable = [(found, item) for found, item in stored if found is not None]
    if len({found for found, _ in usable}) < len(usable):
        raise ParameterError(f'The values given for "{name}" repeat one.', fix="list every value once.")
    if not usable:
        raise MissingBoundsError(
            f'None of the values given for "{name}" can occur in {a_or_an(storage)} column.',
            fix=f"list values of the type {storage}.",
        )
    return GroupKey(
        name=name,
        group=column,
        type=storage,
        values=tuple(found for found, _ in usable),
        labels=tuple(item for _, item in usable),
    )


def _bounds(schema: Schema | None, name: str, given: object) -> tuple[Fraction, Fraction]:
    if given is not None:
        return validation.check_bounds(given)
    if schema is None:
        raise MissingBoundsError(
            f'The bounds of "{name}" are not known, and reading them from the data would not be private.',
            fix=f'give public bounds, such as bounds=(0, 110), or a schema; private.quantile("{name}", 0.99, ...) with '
            "wide bounds finds narrower ones at a price.",
        )
    low, high = schema.bounds_of(name)
    if not isinstance(low, Fraction) or not isinstance(high, Fraction):
        raise ParameterTypeError(f'The bounds of "{name}" are dates, not numbers.', fix="use a numeric column.")
    return low, high


def _granularity(bounds: tuple[Fraction, Fraction], storage: StorageType, *, is_squared: bool) -> Fraction:
    """Return steps of which the range has about a million; whole ones for whole numbers, unless they are too many."""
    widest = max(bounds[1] - bounds[0], max(map(abs, bounds)) / 2**20)
    is_whole = storage is StorageType.INTEGER
    steps = _WHOLE_STEPS if is_whole and not is_squared else _STEPS
    step = exact.power_of_two_below(widest / steps)
    step = step if step * steps >= widest else 2 * step
    return max(step, Fraction(1)) if is_whole else step


def _domain(schema: Schema | None, name: str, storage: StorageType) -> tuple[Any, ...] | None:
    if storage is StorageType.BOOLEAN:
        return (False, True)
    column = None if schema is None else schema[name]
    if schema is None or column is None:
        return None
    if column.categories is not None:
        return schema.categories_of(name)
    if storage is StorageType.INTEGER and column.bounds is not None:
        low, high = schema.bounds_of(name)
        if isinstance(low, Fraction) and isinstance(high, Fraction) and high - low < 1000:
            return tuple(range(-int(-low // 1), int(high // 1) + 1))
    return None
