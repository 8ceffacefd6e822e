"""Questions: rows in an engine, public groups, and aggregates, before any price or noise.

Methods of `PrivateTable` and SQL both end here. Everything in a question is public: it holds SQL over the engine's
positional columns, and domains that the schema or the analyst states, never a value from the data.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property
from typing import Any, ClassVar, TypeAlias

from sqlglot import exp

from cloister.data.engines.base import Engine
from cloister.data.values import StorageType

__all__ = [
    "Aggregate",
    "CountDistinct",
    "CountPresent",
    "CountRows",
    "CountUnits",
    "Extreme",
    "FixedPointNumber",
    "GroupKey",
    "Mean",
    "Quantile",
    "QueryRows",
    "Question",
    "StandardDeviation",
    "Total",
    "Variance",
    "describe",
]


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
        return f"{_sql(self.steps)} * {self.unit}"

    def __str__(self) -> str:
        return f"{self.text} in [{self.low}, {self.high}]"

    @property
    def bounds(self) -> tuple[Fraction, Fraction]:
        """Return the smallest and the largest number that a row can have."""
        return self.low * self.unit, self.high * self.unit


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
        return f"{' | '.join('' if part is None else _sql(part) for part in parts)} | {self.rows_per_person}"


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
        return f"{self.name!r} {_sql(self.group)} {self.type} {self.values!r}"

    @property
    def shown(self) -> tuple[Any, ...] | None:
        """Return what the answer shows for each value."""
        return self.values if self.labels is None else self.labels


@dataclass(frozen=True, slots=True)
class CountRows:
    """COUNT(*): how many rows."""

    label: ClassVar[str] = "rows"


@dataclass(frozen=True, slots=True)
class CountUnits:
    """COUNT(DISTINCT person): how many units of privacy."""

    label: ClassVar[str] = "units"


@dataclass(frozen=True, slots=True)
class CountPresent:
    """COUNT(x): how many rows in which SQL is not NULL."""

    of: exp.Expression
    label: str


@dataclass(frozen=True, slots=True)
class CountDistinct:
    """COUNT(DISTINCT x): how many different values that are not NULL."""

    of: exp.Expression
    label: str


@dataclass(frozen=True, slots=True)
class Total:
    """SUM(x)."""

    of: FixedPointNumber


@dataclass(frozen=True, slots=True)
class Mean:
    """AVG(x)."""

    of: FixedPointNumber


@dataclass(frozen=True, slots=True)
class Variance:
    """VAR_POP(x), or VAR_SAMP(x) with ``sample``."""

    of: FixedPointNumber
    sample: bool = True


@dataclass(frozen=True, slots=True)
class StandardDeviation:
    """STDDEV_POP(x), or STDDEV_SAMP(x) with ``sample``."""

    of: FixedPointNumber
    sample: bool = True


@dataclass(frozen=True, slots=True)
class Quantile:
    """The value below which a fraction ``q`` of the rows lies, 0 < q < 1."""

    of: FixedPointNumber
    q: Fraction


@dataclass(frozen=True, slots=True)
class Extreme:
    """MIN(x) or MAX(x): a value that only a few rows lie beyond: ``beyond``, or more if epsilon needs it."""

    of: FixedPointNumber
    largest: bool
    beyond: int | None = None


Aggregate: TypeAlias = (
    CountRows
    | CountUnits
    | CountPresent
    | CountDistinct
    | Total
    | Mean
    | Variance
    | StandardDeviation
    | Quantile
    | Extreme
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """Aggregates of rows, in groups. Without keys there is one group."""

    rows: QueryRows
    aggregates: tuple[Aggregate, ...]
    keys: tuple[GroupKey, ...] = ()

    def canonical(self) -> str:
        """Return a text that is the same for the same question, to find its answer again."""
        keys = "; ".join(map(str, self.keys))
        return f"{self.rows} || {keys} || {'; '.join(map(describe, self.aggregates))}"


def describe(aggregate: Aggregate) -> str:
    """Return a text that is the same for the same aggregate."""
    match aggregate:
        case CountPresent(of=of) | CountDistinct(of=of):
            inner = _sql(of)
        case Total(of=number) | Mean(of=number):
            inner = str(number)
        case Variance(of=number, sample=sample) | StandardDeviation(of=number, sample=sample):
            inner = f"{number}, {sample}"
        case Quantile(of=number, q=q):
            inner = f"{number}, {q}"
        case Extreme(of=number, largest=largest, beyond=beyond):
            inner = f"{number}, {largest}, {beyond}"
        case _:
            inner = ""
    return f"{type(aggregate).__name__}({inner})"


def _sql(expression: exp.Expression) -> str:
    return expression.sql(identify=True, comments=False, copy=False)
