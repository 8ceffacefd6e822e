"""Terms: row expressions with a type, and with what is public about their values."""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any, TypeAlias

from sqlglot import exp

from cloister.data.columns import MOST_CATEGORIES
from cloister.data.engines.base import literal
from cloister.data.engines.predicates import Operand, OperandFamily
from cloister.data.values import StorageType
from cloister.errors import MissingBoundsError, UnsafeQueryError
from cloister.queries._question import FixedPointNumber, GroupKey
from cloister.queries.catalog import to_fixed_point
from cloister.queries.sql import _fixed_arithmetic as fixed_arithmetic

__all__ = ["Measured", "Term", "TermDomain", "unknown_domain"]

_EXACT_IN_DOUBLE = 2**53
_SMALLEST_UNIT = Fraction(1, 10**60)

STORAGES = {
    OperandFamily.NUMBER: StorageType.INTEGER,
    OperandFamily.TEXT: StorageType.TEXT,
    OperandFamily.DATE: StorageType.DATE,
    OperandFamily.TIME: StorageType.TIMESTAMP,
    OperandFamily.TRUTH: StorageType.BOOLEAN,
}

Change: TypeAlias = Callable[[exp.Expression], exp.Expression]
Span: TypeAlias = tuple[dt.date, dt.date]
Limits: TypeAlias = tuple[Fraction | None, Fraction | None]


@dataclass(frozen=True, slots=True)
class TermDomain:
    """Every value that a term can have, as the engine returns it, and what is shown in its place."""

    values: tuple[Any, ...]
    labels: tuple[Any, ...]

    @classmethod
    def of(cls, values: Iterable[Any]) -> TermDomain:
        """Return a domain in which values stand for themselves, each once."""
        distinct = tuple(dict.fromkeys(values))
        return cls(distinct, distinct)


def unknown_domain() -> TermDomain | None:
    """Return no domain."""
    return None


def unknown_span() -> Span | None:
    """Return no first and last day."""
    return None


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """A number as it is stored, which public limits make a `FixedPointNumber` when arithmetic needs one.

    Attributes:
        stored: SQL for the value.
        storage: integer or real.
        label: how messages call it.
        limits: its public limits; raises an error with a fix where they are not to be had.
        low: a lower limit that the query states.
        high: an upper limit that the query states.
        unit: what one step of the stored number is worth.
    """

    stored: exp.Expression
    storage: StorageType
    label: str
    limits: Callable[[], Limits]
    low: Fraction | None = None
    high: Fraction | None = None
    unit: Fraction = Fraction(1)

    def limited(self, bound: Fraction, *, largest: bool) -> Measured:
        """Return GREATEST (or LEAST) of the number and a bound."""
        if largest:
            # A lower limit above the upper one pushes it along, as GREATEST around LEAST does.
            high = None if self.high is None else max(self.high, bound)
            return replace(self, low=bound if self.low is None else max(self.low, bound), high=high)
        low = None if self.low is None else min(self.low, bound)
        return replace(self, high=bound if self.high is None else min(self.high, bound), low=low)

    def can_be(self, bound: Fraction) -> bool:
        """Return whether a number of this type can equal a bound, so that it is not rounded away."""
        return self.storage is StorageType.REAL or (bound / self.unit).denominator == 1

    @property
    def is_plain(self) -> bool:
        """Return whether it is as it is stored: the query states no limits, and it is not a number of steps."""
        return self.low is None and self.high is None and self.unit == 1

    def number(self, *, exactly: bool) -> FixedPointNumber:
        """Return the number in fixed point; ``exactly`` keeps whole numbers whole."""
        low, high = self._bounds()
        if low >= high:
            return self._only(low)
        if self.unit != 1:
            return self._steps(low, high)
        granularity = 1 if exactly and self.storage is StorageType.INTEGER else None
        return to_fixed_point(self.stored, self.storage, self.label, bounds=(low, high), granularity=granularity)

    def _only(self, value: Fraction) -> FixedPointNumber:
        """Return the one number that limits leave; missing where the stored one is."""
        present: exp.Expression = exp.Not(this=exp.Is(this=self.stored, expression=exp.Null()))
        # NaN counts as missing, and engines that can order it put it above infinity.
        if self.storage is StorageType.REAL:
            present = exp.LTE(this=self.stored, expression=literal(math.inf, StorageType.REAL))
        number = fixed_arithmetic.as_number(value, label=self.label)
        return replace(number, steps=fixed_arithmetic.case([(present, number.steps)]))

    def _steps(self, low: Fraction, high: Fraction) -> FixedPointNumber:
        """Return a stored number of steps within limits, which are rounded inward to whole steps."""
        ends = Fraction(math.ceil(low / self.unit)), Fraction(math.floor(high / self.unit))
        if ends[0] >= ends[1]:
            return self._only(ends[0] * self.unit)
        number = to_fixed_point(self.stored, self.storage, self.label, bounds=ends, granularity=1)
        return replace(number, unit=self.unit)

    def _bounds(self) -> tuple[Fraction, Fraction]:
        known = self.low, self.high
        low, high = known if None not in known else _within(known, self.limits())
        if low is None or high is None:
            raise limits_error(self.label, has_low=low is not None)
        return low, high


def _within(stated: Limits, public: Limits) -> Limits:
    """Clamp public limits as the query does; a side that is not public is as stated."""
    low, high = (end if end is not None else given for end, given in zip(public, stated, strict=True))
    first, last = stated
    if first is not None:
        low, high = (None if end is None else max(end, first) for end in (low, high))
    if last is not None:
        low, high = (None if end is None else min(end, last) for end in (low, high))
    return low, high


Numeric: TypeAlias = Fraction | FixedPointNumber | Measured


@dataclass(frozen=True, slots=True, kw_only=True)
class Term(Operand):
    """A row expression.

    Attributes:
        sql: its value, in the storage type; for a computed `FixedPointNumber`, its steps.
        storage: the type of ``sql``.
        label: how answers and messages call it.
        numeric: a constant, a computed number, or a stored one; None for other types.
        domain: gives its public values.
        span: gives the first and the last day of a date or time, where they are public.
        is_person: whether it is the unit of privacy.
        is_ordered: whether texts are in the order of code points.
    """

    storage: StorageType
    label: str
    numeric: Numeric | None = None
    domain: Callable[[], TermDomain | None] = field(default=unknown_domain)
    span: Callable[[], Span | None] = field(default=unknown_span)
    is_person: bool = False
    is_ordered: bool = True

    def rewritten(self, change: Change) -> Term:
        """Return the same term over other SQL; a constant that the change can make missing is one no longer."""
        numeric = self.numeric
        if isinstance(numeric, Fraction):
            number = fixed_arithmetic.as_number(numeric, label=self.label)
            steps = change(number.steps)
            numeric = numeric if steps == number.steps else replace(number, steps=steps)
        elif isinstance(numeric, FixedPointNumber):
            numeric = replace(numeric, steps=change(numeric.steps))
        elif isinstance(numeric, Measured):
            numeric = replace(numeric, stored=change(numeric.stored))
        return replace(self, sql=change(self.sql), numeric=numeric)

    def export(self, name: str) -> Term:
        """Return the term as a column of a subquery that selects its SQL under a name."""
        return self.rewritten(lambda _: exp.column(name, quoted=True))

    @property
    def value(self) -> fixed_arithmetic.Value:
        """Return the number for arithmetic.

        Raises:
            MissingBoundsError: if it needs limits that are not public.
        """
        if isinstance(self.numeric, Measured):
            number = self.numeric.number(exactly=True)
            return replace(number, steps=fixed_arithmetic.bigint(number.steps)) if self._is_real else number
        if self.numeric is None:
            raise not_a_number(self.label, self.family)
        return self.numeric

    @property
    def _is_real(self) -> bool:
        return isinstance(self.numeric, Measured) and self.numeric.storage is StorageType.REAL

    def number(self) -> FixedPointNumber:
        """Return the number to aggregate.

        Raises:
            UnsafeQueryError: if it is the same in every row, or no number.
        """
        if isinstance(self.numeric, Measured):
            return self.numeric.number(exactly=False)
        number = replace(fixed_arithmetic.as_number(self.value, label=self.label), label=self.label)
        check_unit(number)
        return number

    @property
    def text(self) -> str:
        """Return a text that is the same for the same term: steps of another unit are another number."""
        unit = self.numeric.unit if isinstance(self.numeric, FixedPointNumber | Measured) else None
        return f"{self.sql.sql(comments=False, copy=False)} {self.family} {unit}"

    def settle_limits(self) -> Term:
        """Return the term with limits that the query states applied to its SQL."""
        limited = isinstance(self.numeric, Measured) and not self.numeric.is_plain
        return term_of_value(self.value, self.label) if limited else self

    @property
    def settled_text(self) -> str:
        """Return the text of the term with its limits applied."""
        return self.settle_limits().text

    def key(self, name: str) -> GroupKey:
        """Return the term as a column of groups."""
        term = self.settle_limits()
        domain = term.domain()
        if domain is None:
            group, storage = _readable(term)
            return GroupKey(name=name, group=group, type=storage, values=None)
        labels = None if domain.values == domain.labels else domain.labels
        return GroupKey(name=name, group=term.sql, type=term.storage, values=domain.values, labels=labels)


def _readable(term: Term) -> tuple[exp.Expression, StorageType]:
    """Return a value as it is to be shown: a computed number in place of its steps."""
    number = term.numeric
    if not isinstance(number, FixedPointNumber) or number.unit == 1:
        return term.sql, term.storage
    check_unit(number)
    if number.unit.denominator == 1:
        return fixed_arithmetic.in_unit(number, Fraction(1)).steps, StorageType.INTEGER
    steps = exp.Cast(this=number.steps, to=exp.DataType.build("DOUBLE"))
    if max(number.unit.as_integer_ratio()) > _EXACT_IN_DOUBLE:
        factor = literal(float(number.unit), StorageType.REAL)
        return exp.Mul(this=steps, expression=factor), StorageType.REAL
    # Times the numerator and over the denominator comes closest to the exact number; a factor that is itself
    # rounded would not.
    times, over = (literal(float(part), StorageType.REAL) for part in number.unit.as_integer_ratio())
    return exp.Div(this=exp.Paren(this=exp.Mul(this=steps, expression=times)), expression=over), StorageType.REAL


def check_unit(number: FixedPointNumber) -> None:
    """Refuse steps that are too large or too small for ordinary floating point."""
    if not _SMALLEST_UNIT <= number.unit <= 1 / _SMALLEST_UNIT:
        raise UnsafeQueryError(
            f'"{number.label}" has too large or too small a factor.', fix="multiply the aggregate instead."
        )


def constant(value: Fraction, label: str) -> Term:
    """Return a number that is the same in every row."""
    number = fixed_arithmetic.as_number(value, label=label)
    return Term(
        sql=number.steps,
        family=OperandFamily.NUMBER,
        storage=StorageType.INTEGER,
        label=label,
        numeric=value,
        domain=lambda: _range(number),
    )


def term_of_value(value: fixed_arithmetic.Value, label: str, *, domain: TermDomain | None = None) -> Term:
    """Return the result of arithmetic."""
    if isinstance(value, Fraction):
        return constant(value, label)
    number = replace(value, label=label)
    known = (lambda: domain) if domain is not None else (lambda: _range(number))
    return Term(
        sql=number.steps,
        family=OperandFamily.NUMBER,
        storage=StorageType.INTEGER,
        label=label,
        numeric=number,
        domain=known,
    )


def term_of_stored(
    measured: Measured, *, sql: exp.Expression, domain: Callable[[], TermDomain | None] = unknown_domain
) -> Term:
    """Return a number as it is stored."""
    return Term(
        sql=sql,
        family=OperandFamily.NUMBER,
        storage=measured.storage,
        label=measured.label,
        numeric=measured,
        domain=domain,
    )


def to_number(number: Fraction) -> int | float:
    """Return a number as people read it."""
    return int(number) if number.denominator == 1 else float(number)


def _range(number: FixedPointNumber) -> TermDomain | None:
    """Return every number from a range; None where an answer could not show them all."""
    if number.high - number.low >= MOST_CATEGORIES:
        return None
    steps = tuple(range(number.low, number.high + 1))
    times, over = number.unit.as_integer_ratio()
    # A quotient of integers is the nearest double, as `to_number` has it, and much faster than a fraction for each.
    return TermDomain(
        steps, tuple(step * times // over if step * times % over == 0 else step * times / over for step in steps)
    )


def limits_error(label: str, *, has_low: bool) -> MissingBoundsError:
    """Return the error for a number without public limits."""
    limited = f"LEAST({label}, 20)" if has_low else f"CLAMP({label}, 0, 100)"
    return MissingBoundsError(
        f'"{label}" has no public limits, and reading them from the data would not be private.',
        fix=f"state limits that are known without looking: {limited} in the query, or the bounds in the schema.",
    )


def same_everywhere(label: str) -> UnsafeQueryError:
    """Return the error for a number that is the same in every row."""
    return UnsafeQueryError(
        f'"{label}" is the same number in every row.', fix="use COUNT(*), or an expression that depends on the row."
    )


def not_a_number(label: str, family: OperandFamily) -> UnsafeQueryError:
    """Return the error for an operand of arithmetic that is no number."""
    advice = {
        OperandFamily.TRUTH: f"write CASE WHEN {label} THEN 1 ELSE 0 END, or COUNT(*) FILTER (WHERE {label}).",
        OperandFamily.DATE: f"use YEAR({label}), MONTH({label}) or DAY({label}), or compare it with a date.",
        OperandFamily.TIME: f"use YEAR({label}), MONTH({label}) or DAY({label}), or compare it with a time.",
    }
    return UnsafeQueryError(
        f'"{label}" is {family}, not a number.', fix=advice.get(family, "use a numeric column, or count this one.")
    )
