"""Questions: rows in an engine, public groups, and aggregates, before any price or noise.

Methods of `PrivateTable` and SQL both end here. Everything in a question is public: it holds SQL over the engine's
positional columns, and domains that the schema or the analyst states, never a value from the data.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING, Any

from sqlglot import exp

from cloister.data.engines.base import Engine
from cloister.data.values import StorageType

if TYPE_CHECKING:
    from cloister.queries._aggregates.base import Aggregate

__all__ = ["FixedPointNumber", "GroupKey", "QueryRows", "Question", "RankTarget", "expression_text"]


@dataclass(frozen=True, kw_only=True)
class FixedPointNumber:
    """A number in each row, in fixed point: ``steps`` is SQL for a whole number from ``low`` to ``high``, or NULL.

    The number itself is ``steps * unit``. The SQL must not be able to fail or to leave [low, high] on any row. It gives
    a BIGINT, or a DOUBLE that holds a whole number.
    """

    steps: exp.Expression
    unit: Fraction
    low: int
    high: int
    label: str

    @cached_property
    def text(self) -> str:
        """Return a text that is the same for the same number."""
        return f"{expression_text(self.steps)} * {self.unit}"

    def __str__(self) -> str:
        return f"{self.text} in [{self.low}, {self.high}]"

    @property
    def bounds(self) -> tuple[Fraction, Fraction]:
        """Return the smallest and the largest number that a row can have."""
        return self.low * self.unit, self.high * self.unit

    @property
    def center(self) -> int:
        """Return the middle of the bounds, in steps."""
        return (self.low + self.high) // 2

    @property
    def half_range(self) -> int:
        """Return how far from the middle of the bounds a row can be, in steps."""
        return max(self.high - self.center, self.center - self.low)


@dataclass(frozen=True, slots=True, kw_only=True)
class QueryRows:
    """The rows to aggregate: a source in an engine, a condition, and whom a row is about.

    Attributes:
        engine: where the query runs.
        source: what it selects from; its columns are known by position.
        condition: which rows count; None for all.
        person: SQL for the unit of privacy; None when every row is a unit of its own.
        rows_per_person: how many rows a person can have by construction, as after grouping by person; None: any.
    """

    engine: Engine = field(repr=False, compare=False)
    source: exp.Expression
    condition: exp.Expression | None = None
    person: exp.Expression | None = None
    rows_per_person: int | None = None

    def nobody(self) -> QueryRows:
        """Return the same source without any row: no value of it is looked at, by any engine."""
        return replace(self, condition=exp.false())

    def __str__(self) -> str:
        parts = (self.source, self.condition, self.person)
        return f"{' | '.join('' if part is None else expression_text(part) for part in parts)} | {self.rows_per_person}"


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupKey:
    """A column of groups.

    Attributes:
        name: how the answer calls it.
        group: SQL that the engine groups by; every kind of missing value is NULL.
        type: the type in which the engine returns it.
        values: every value that is shown, as the engine returns it, public; None: keys are chosen privately.
        labels: what is shown in place of the values, such as intervals; None: the values themselves.
    """

    name: str
    group: exp.Expression
    type: StorageType
    values: tuple[Any, ...] | None
    labels: tuple[Any, ...] | None = None

    def __str__(self) -> str:
        return f"{self.name!r} {expression_text(self.group)} {self.type} {self.values!r}"

    @property
    def shown(self) -> tuple[Any, ...] | None:
        """Return what the answer shows for each value."""
        return self.values if self.labels is None else self.labels


@dataclass(frozen=True, slots=True)
class RankTarget:
    """A number that is looked for by its rank: at a fraction of the rows, or near one of the ends.

    Attributes:
        number: what is ranked.
        fraction: the fraction of rows below; 0 and 1 are the ends.
        beyond: at an end, how many rows lie beyond at least; more do if epsilon needs it.
    """

    number: FixedPointNumber
    fraction: Fraction
    beyond: int | None = None

    @property
    def is_extreme(self) -> bool:
        """Return whether it is at one of the ends."""
        return self.fraction in (0, 1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """Aggregates of rows, in groups. Without keys there is one group."""

    rows: QueryRows
    aggregates: tuple[Aggregate, ...]
    keys: tuple[GroupKey, ...] = ()

    def canonical(self) -> str:
        """Return a text that is the same for the same question, to find its answer again."""
        keys = "; ".join(map(str, self.keys))
        return f"{self.rows} || {keys} || {'; '.join(item.canonical() for item in self.aggregates)}"


def expression_text(expression: exp.Expression) -> str:
    """Return SQL that is the same for the same expression."""
    return expression.sql(identify=True, comments=False, copy=False)
