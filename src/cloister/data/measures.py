"""Measures: sums that a frequency table carries beside its counts, exact and the same on every engine.

A value is clamped to public bounds and rounded to a whole number of steps of a public ``granularity``, a power of two:
``floor((x + granularity / 2) / granularity)``. Division by a power of two is exact in binary floating point, so every
engine gets the same whole number, and sums of whole numbers do not depend on the order of rows. Missing values
contribute nothing; infinities are clamped.

What the steps may be is public: ``steps(...)`` gives the smallest and largest contribution of one row, from which a
mechanism takes its sensitivity.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, TypeAlias

from sqlglot import exp

from cloister.core import exact, validation
from cloister.data.engines.base import SQL_TYPES, literal
from cloister.data.values import StorageType
from cloister.errors import MissingBoundsError, ParameterError, ParameterTypeError

__all__ = ["CountPresent", "Measure", "Sum", "SumOfSquares"]

_INT64 = 2**63
_ROW_BITS = 33
"""Sums are planned for up to 2**33 rows."""
# So much may each of 2**33 rows add before a decimal of 38 digits overflows.
_LARGEST_EXACT = 10**38 >> _ROW_BITS
_DOUBLE_EXACT = 2**53


@dataclass(frozen=True, slots=True, init=False)
class Sum:
    """The sum of a column, each value clamped to ``bounds`` and rounded to steps of ``granularity``.

    Without bounds the column must hold integers, and every value counts as it is.
    """

    column: str
    bounds: tuple[Fraction, Fraction] | None = None
    granularity: Fraction = Fraction(1)

    power = 1

    def __init__(self, column: str, *, bounds: Any = None, granularity: Any = 1) -> None:
        checked = None if bounds is None else validation.check_bounds(bounds)
        object.__setattr__(self, "column", column)
        object.__setattr__(self, "bounds", checked)
        object.__setattr__(self, "granularity", _power_of_two(granularity))
        # Steps have to be whole in doubles, or rounding would depend on the engine.
        if checked is not None and max(map(abs, checked)) > _DOUBLE_EXACT * min(self.granularity, Fraction(1)):
            raise self._too_fine()

    @property
    def unit(self) -> Fraction:
        """Return what one unit of the sum is worth."""
        return self.granularity**self.power

    def steps(self, storage: StorageType) -> tuple[int, int]:
        """Return the smallest and the largest number that one row may add."""
        low, high = self.step_bounds(storage)
        if self.power == 1:
            # A row without a value adds nothing, so that zero is always among the steps.
            return min(low, 0), max(high, 0)
        return 0, max(low * low, high * high)

    def check(self, storage: StorageType) -> None:
        """Refuse what could not be summed exactly, from public facts alone."""
        if storage not in (StorageType.INTEGER, StorageType.REAL):
            raise ParameterTypeError(
                f'"{self.column}" holds {storage} values, which cannot be summed.',
                fix="sum a numeric column, or count it with CountPresent.",
            )
        if self.bounds is None and (storage is not StorageType.INTEGER or self.granularity != 1):
            raise MissingBoundsError(
                f'The sum of "{self.column}" needs public bounds.',
                fix=f'write for example {type(self).__name__}("{self.column}", bounds=(0, 110)).',
            )
        if max(map(abs, self.steps(storage))) > _LARGEST_EXACT:
            raise self._too_fine()

    def is_wide(self, storage: StorageType) -> bool:
        """Return whether the bounds allow sums beyond 64 bits."""
        return max(map(abs, self.steps(storage))) > _INT64 >> _ROW_BITS

    def contribution(self, value: exp.Expression, storage: StorageType) -> exp.Expression:
        """Return SQL for what one row adds: a whole number, or NULL."""
        step = self._steps_of(value, storage)
        if self.power == 1:
            return step
        if self.is_wide(storage):
            # 19 digits hold every step, and the product of two fits into 38.
            step = exp.cast(step, "DECIMAL(19, 0)")
        return exp.Mul(this=step, expression=step.copy())

    def step_bounds(self, storage: StorageType) -> tuple[int, int]:
        """Return the bounds in whole steps."""
        if self.bounds is None:
            return -_INT64, _INT64 - 1
        low, high = self.bounds
        return self._round_bound(low, storage), self._round_bound(high, storage)

    def _round_bound(self, bound: Fraction, storage: StorageType) -> int:
        """Round a bound half up, exactly as the engine rounds the values next to it."""
        if storage is StorageType.INTEGER and self.granularity <= 1:
            return math.floor(bound / self.granularity + Fraction(1, 2))
        step = float(self.granularity)
        return math.floor((float(bound) + step / 2) / step)

    def _steps_of(self, value: exp.Expression, storage: StorageType) -> exp.Expression:
        if self.bounds is None:
            return value
        steps = self.step_bounds(storage)
        if storage is StorageType.INTEGER:
            return _clamp_integer(value, self.bounds, steps, self._integer_steps(value))
        kind = StorageType.REAL if self._fits_doubles(storage) else StorageType.INTEGER
        return _round_in_sql(_clamp_real(value, self.bounds), self.granularity, kind)

    def _fits_doubles(self, storage: StorageType) -> bool:
        """Return whether sums of whole numbers stay exact in doubles, which are faster to add than wide integers."""
        return max(map(abs, self.steps(storage))) <= _DOUBLE_EXACT >> _ROW_BITS

    def _integer_steps(self, value: exp.Expression) -> exp.Expression:
        if self.granularity == 1:
            return value.copy()
        if self.granularity < 1:
            return exp.Mul(this=value.copy(), expression=literal(int(1 / self.granularity), StorageType.INTEGER))
        return _round_in_sql(exp.cast(value.copy(), "DOUBLE"), self.granularity, StorageType.INTEGER)

    def _too_fine(self) -> ParameterError:
        return ParameterError(
            f'The bounds of "{self.column}" are too wide for its granularity to be summed exactly.',
            fix="use a coarser granularity or narrower bounds.",
        )


@dataclass(frozen=True, slots=True, init=False)
class SumOfSquares(Sum):
    """The sum of squared steps of a column: in units of the squared granularity."""

    power = 2


@dataclass(frozen=True, slots=True)
class CountPresent:
    """The number of rows in which a column is not missing."""

    column: str

    @property
    def unit(self) -> Fraction:
        """Return 1."""
        return Fraction(1)

    def steps(self, storage: StorageType) -> tuple[int, int]:  # noqa: ARG002  # the same for every type
        """Return (0, 1)."""
        return 0, 1

    def check(self, storage: StorageType) -> None:
        """Accept every type."""

    def is_wide(self, storage: StorageType) -> bool:  # noqa: ARG002  # the same for every type
        """Return False."""
        return False

    def contribution(self, value: exp.Expression, storage: StorageType) -> exp.Expression:  # noqa: ARG002
        """Return 1 for a value that is there, NULL for a missing one."""
        present = exp.Not(this=exp.Is(this=value, expression=exp.Null()))
        return exp.Case().when(present, literal(1, StorageType.INTEGER))


Measure: TypeAlias = Sum | SumOfSquares | CountPresent


def _power_of_two(granularity: Any) -> Fraction:
    step = validation.check_positive(granularity, name="granularity")
    if exact.power_of_two_below(step) != step:
        near = exact.power_of_two_below(step)
        raise ParameterError("granularity is not a power of two.", fix=f"use for example granularity={float(near):g}.")
    if not Fraction(1, 2**60) <= step <= 2**60:
        raise ParameterError("granularity is out of range.", fix="use a power of two from 2**-60 to 2**60.")
    return step


def _round_in_sql(value: exp.Expression, granularity: Fraction, kind: StorageType) -> exp.Expression:
    """Return the step of a value as a whole number of a kind; the half comes first, since that sum never underflows."""
    half: exp.Expression = exp.Add(this=value.copy(), expression=literal(float(granularity / 2), StorageType.REAL))
    steps = half
    if granularity != 1:
        steps = exp.Mul(this=exp.paren(half), expression=literal(float(1 / granularity), StorageType.REAL))
    return exp.cast(exp.Floor(this=steps), SQL_TYPES[kind])


def _clamp_integer(
    value: exp.Expression, bounds: tuple[Fraction, Fraction], steps: tuple[int, int], inside: exp.Expression
) -> exp.Expression:
    """Clamp by comparisons, so that NULL stays NULL."""
    first, last = (literal(step, StorageType.INTEGER) for step in steps)
    # Compared as whole numbers: large ones would be rounded on the way to doubles.
    below = exp.LT(this=value.copy(), expression=literal(math.ceil(bounds[0]), StorageType.INTEGER))
    above = exp.GT(this=value.copy(), expression=literal(math.floor(bounds[1]), StorageType.INTEGER))
    return exp.Case().when(below, first).when(above, last).else_(inside)


def _clamp_real(value: exp.Expression, bounds: tuple[Fraction, Fraction]) -> exp.Expression:
    """Clamp by comparisons, so that NULL stays NULL; NaN orders above infinity on every engine, and becomes NULL."""
    low, high, end = (literal(float(bound), StorageType.REAL) for bound in (*bounds, math.inf))
    below = exp.LT(this=value.copy(), expression=low.copy())
    above = exp.GT(this=value.copy(), expression=high.copy())
    finite = exp.Case().when(exp.LTE(this=value.copy(), expression=end), high)
    return exp.Case().when(below, low).when(above, finite).else_(value.copy())
