"""Formulas over noisy answers: post-processing, which costs nothing, with a margin of error by interval arithmetic.

The margins of the noisy columns in a formula hold together with the stated confidence (each one alone with more, by
the union bound), so the interval of the formula is conservative. A division by something that could be zero has an
infinite margin; a division by zero gives NaN, as does a missing value.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from cloister.core import validation
from cloister.core.exact import Number
from cloister.queries.answers import Estimate

__all__ = ["Derived", "Formula", "NoisyAnswers"]

Floats: TypeAlias = NDArray[np.float64]
Interval: TypeAlias = tuple[Floats, Floats]


@dataclass(frozen=True, slots=True, eq=False)
class NoisyAnswers:
    """The columns of groups and of noisy aggregates that a question gave."""

    keys: tuple[Estimate, ...]
    aggregates: tuple[Estimate, ...]

    def __len__(self) -> int:
        columns = self.aggregates or self.keys
        return len(columns[0].values) if columns else 0

    def take(self, rows: NDArray[np.int64]) -> NoisyAnswers:
        """Return some of the rows, in an order."""
        return NoisyAnswers(
            tuple(key.take(rows) for key in self.keys), tuple(item.take(rows) for item in self.aggregates)
        )


class Formula(Protocol):
    """A column computed from answers."""

    @property
    def parts(self) -> tuple[Formula, ...]:
        """Return the formulas inside."""
        ...

    def values(self, answers: NoisyAnswers) -> NDArray[Any]:
        """Return the value in each row; missing ones are NaN, or None among values that are not numbers."""
        ...

    def interval(self, answers: NoisyAnswers, confidence: Fraction) -> Interval:
        """Return what contains the true value in each row, if the noisy columns are within their margins."""
        ...


@dataclass(frozen=True, slots=True)
class Literal:
    """The same value in every row."""

    value: Any
    parts: tuple[Formula, ...] = ()

    def values(self, answers: NoisyAnswers) -> NDArray[Any]:
        """Return the value, repeated."""
        if isinstance(self.value, Fraction):
            return np.full(len(answers), float(self.value))
        column = np.empty(len(answers), dtype=object)
        column[:] = self.value
        return column

    def interval(self, answers: NoisyAnswers, confidence: Fraction) -> Interval:  # noqa: ARG002  # certain
        """Return the value as both ends."""
        return _exactly(self.values(answers))


@dataclass(frozen=True, slots=True)
class KeyColumn:
    """A column of groups."""

    index: int
    parts: tuple[Formula, ...] = ()

    def values(self, answers: NoisyAnswers) -> NDArray[Any]:
        """Return the groups."""
        return answers.keys[self.index].values

    def interval(self, answers: NoisyAnswers, confidence: Fraction) -> Interval:  # noqa: ARG002  # certain
        """Return the groups as both ends."""
        return _exactly(self.values(answers))


@dataclass(frozen=True, slots=True)
class NoisyColumn:
    """A noisy aggregate."""

    index: int
    parts: tuple[Formula, ...] = ()

    def values(self, answers: NoisyAnswers) -> NDArray[Any]:
        """Return the noisy values."""
        return as_floats(answers.aggregates[self.index].values)

    def interval(self, answers: NoisyAnswers, confidence: Fraction) -> Interval:
        """Return the values within their margins."""
        margins = answers.aggregates[self.index].margins(confidence)
        values = self.values(answers)
        return values - margins, values + margins


@dataclass(frozen=True, slots=True)
class Arithmetic:
    """Two formulas joined by + - * or /."""

    sign: str
    parts: tuple[Formula, Formula]

    def values(self, answers: NoisyAnswers) -> NDArray[Any]:
        """Return the results; NaN for a division by zero."""
        left, right = (as_floats(part.values(answers)) for part in self.parts)
        with np.errstate(all="ignore"):
            if self.sign == "/":
                return np.where(right == 0, np.nan, left / np.where(right == 0, 1.0, right))
            return np.asarray(_ARITHMETIC[self.sign](left, right))

    def interval(self, answers: NoisyAnswers, confidence: Fraction) -> Interval:
        """Return the least and the largest result of the ends."""
        (a, b), (c, d) = (part.interval(answers, confidence) for part in self.parts)
        with np.errstate(all="ignore"):
            match self.sign:
                case "+":
                    return a + c, b + d
                case "-":
                    return a - d, b - c
                case "*":
                    ends = np.stack([a * c, a * d, b * c, b * d])
                    return np.min(ends, axis=0), np.max(ends, axis=0)
                case _:
                    ends = np.stack([a / c, a / d, b / c, b / d])
                    unsure = (c <= 0) & (d >= 0)
                    low, high = np.min(ends, axis=0), np.max(ends, axis=0)
                    return np.where(unsure, -np.inf, low), np.where(unsure, np.inf, high)


@dataclass(frozen=True, slots=True)
class Applied:
    """A function of one formula, such as ROUND(x, 1)."""

    name: str
    parts: tuple[Formula]
    decimals: int = 0

    def values(self, answers: NoisyAnswers) -> NDArray[Any]:
        """Return the results; NaN outside of the function's domain."""
        with np.errstate(all="ignore"):
            return _apply(self.name, as_floats(self.parts[0].values(answers)), self.decimals)

    def interval(self, answers: NoisyAnswers, confidence: Fraction) -> Interval:
        """Return the function at both ends; all functions but ABS and unary minus do not decrease."""
        low, high = self.parts[0].interval(answers, confidence)
        with np.errstate(all="ignore"):
            if self.name == "-":
                return -high, -low
            if self.name == "ABS":
                nearest = np.where((low <= 0) & (high >= 0), 0.0, np.minimum(abs(low), abs(high)))
                return nearest, np.maximum(abs(low), abs(high))
            # Both functions begin at zero, and the interval ends where their domain does.
            if self.name in ("SQRT", "LN"):
                low = np.maximum(low, 0.0)
            ends = _apply(self.name, low, self.decimals), _apply(self.name, high, self.decimals)
            # The exact value was not rounded, so it may lie on the far side of a rounded end.
            return (np.minimum(ends[0], low), np.maximum(ends[1], high)) if self.name == "ROUND" else ends


@dataclass(frozen=True, slots=True)
class Picked:
    """The least, the greatest or the first present of several formulas."""

    name: str
    parts: tuple[Formula, ...]

    def values(self, answers: NoisyAnswers) -> NDArray[Any]:
        """Return the results."""
        columns = [as_floats(part.values(answers)) for part in self.parts]
        if self.name == "COALESCE":
            return _first_present(columns)
        return np.asarray((np.maximum if self.name == "GREATEST" else np.minimum).reduce(columns))

    def interval(self, answers: NoisyAnswers, confidence: Fraction) -> Interval:
        """Return the same of the ends; anything between all of them for the first present."""
        ends = [part.interval(answers, confidence) for part in self.parts]
        lows, highs = np.stack([low for low, _ in ends]), np.stack([high for _, high in ends])
        if self.name == "COALESCE":
            # These two skip missing parts, which are never the first present one.
            return np.fmin.reduce(lows), np.fmax.reduce(highs)
        pick = np.max if self.name == "GREATEST" else np.min
        return pick(lows, axis=0), pick(highs, axis=0)


@dataclass(frozen=True, slots=True)
class Chosen:
    """CASE: the value of the first test that holds; the last value is that of none. Its margin is not known."""

    tests: tuple[Test, ...]
    parts: tuple[Formula, ...]

    def values(self, answers: NoisyAnswers) -> NDArray[Any]:
        """Return the results."""
        columns = [part.values(answers) for part in self.parts]
        is_number = all(is_numeric(column) for column in columns)
        result = as_floats(columns[-1]) if is_number else np.array(columns[-1], dtype=object)
        # The last test goes first, so that earlier ones overwrite what it chose.
        for test, column in reversed(list(zip(self.tests, columns[:-1], strict=True))):
            result = np.where(test(answers) == 1, as_floats(column) if is_number else column, result)
        return result

    def interval(self, answers: NoisyAnswers, confidence: Fraction) -> Interval:  # noqa: ARG002  # not known
        """Return NaN."""
        return _exactly(np.full(len(answers), np.nan))


Test: TypeAlias = Callable[[NoisyAnswers], Floats]
"""A condition on answers: 1 where it holds, 0 where it does not, NaN where that is unknown."""


@dataclass(frozen=True, slots=True)
class FormulaComparison:
    """A comparison."""

    sign: str
    left: Formula
    right: Formula

    def __call__(self, answers: NoisyAnswers) -> Floats:
        """Return where it holds."""
        left, right = self.left.values(answers), self.right.values(answers)
        compare = _COMPARISONS[self.sign]
        if is_numeric(left) and is_numeric(right):
            a, b = as_floats(left), as_floats(right)
            return np.where(np.isnan(a) | np.isnan(b), np.nan, np.asarray(compare(a, b), dtype=float))
        pairs = zip(left, right, strict=True)
        return np.array([np.nan if a is None or b is None else float(compare(a, b)) for a, b in pairs], dtype=float)


@dataclass(frozen=True, slots=True)
class IsNull:
    """IS NULL."""

    of: Formula

    def __call__(self, answers: NoisyAnswers) -> Floats:
        """Return where it holds."""
        values = self.of.values(answers)
        return np.asarray(
            np.isnan(as_floats(values)) if is_numeric(values) else [item is None for item in values], float
        )


@dataclass(frozen=True, slots=True)
class Connected:
    """AND or OR, in three-valued logic."""

    name: str
    tests: tuple[Test, ...]

    def __call__(self, answers: NoisyAnswers) -> Floats:
        """Return where it holds."""
        truths = np.stack([test(answers) for test in self.tests])
        decisive = 0.0 if self.name == "AND" else 1.0
        unknown = np.where(np.isnan(truths).any(axis=0), np.nan, 1 - decisive)
        return np.where((truths == decisive).any(axis=0), decisive, unknown)


@dataclass(frozen=True, slots=True)
class Opposite:
    """NOT."""

    test: Test

    def __call__(self, answers: NoisyAnswers) -> Floats:
        """Return where it holds."""
        return 1 - self.test(answers)


@dataclass(frozen=True, slots=True, eq=False)
class Derived:
    """The error of a formula: from the value shown to the farther end of its interval."""

    formula: Formula
    answers: NoisyAnswers

    def margins(self, confidence: Number = 0.95) -> Floats:
        """Return the half-width for each row."""
        level = validation.check_confidence(confidence)
        # A column that occurs twice errs in the same way both times and needs its margin once.
        noisy = len(set(_noisy(self.formula)))
        each = 1 - (1 - level) / max(noisy, 1)
        values = as_floats(self.formula.values(self.answers))
        low, high = self.formula.interval(self.answers, each)
        with np.errstate(all="ignore"):
            width = np.maximum(high - values, values - low)
        return np.where(np.isinf(low) | np.isinf(high), np.inf, width)

    def deviations(self) -> NDArray[np.float64]:
        """Return NaN for each answer: the margin is a bound, not a multiple of a deviation."""
        return np.full_like(self.margins(), np.nan)

    def take(self, rows: NDArray[np.int64]) -> Derived:
        """Return the error of some of the rows."""
        return Derived(self.formula, self.answers.take(rows))


def is_numeric(column: NDArray[Any]) -> bool:
    """Return whether a column holds numbers (or nothing) only."""
    if column.dtype != object:
        return column.dtype.kind in "iuf"
    return all(
        item is None or (isinstance(item, int | float | np.number) and not isinstance(item, bool)) for item in column
    )


def as_floats(column: NDArray[Any]) -> Floats:
    """Return numbers in double precision, missing ones as NaN."""
    if column.dtype != object:
        return np.asarray(column, dtype=float)
    return np.array([math.nan if item is None else float(item) for item in column], dtype=float)


def _exactly(column: NDArray[Any]) -> Interval:
    values = as_floats(column) if is_numeric(column) else np.full(len(column), np.nan)
    return values, values


def _first_present(columns: Sequence[Floats]) -> Floats:
    result = columns[0]
    for column in columns[1:]:
        result = np.where(np.isnan(result), column, result)
    return result


def _apply(name: str, values: Floats, decimals: int) -> Floats:
    if name == "ROUND":
        scale = 10.0**decimals
        return np.asarray(np.sign(values) * np.floor(np.abs(values) * scale + 0.5) / scale)
    return np.asarray(_FUNCTIONS[name](values))


def _noisy(formula: Formula) -> list[int]:
    found = [formula.index] if isinstance(formula, NoisyColumn) else []
    return found + [index for part in formula.parts for index in _noisy(part)]


_ARITHMETIC: dict[str, Callable[[Any, Any], Any]] = {"+": np.add, "-": np.subtract, "*": np.multiply}
_COMPARISONS: dict[str, Callable[[Any, Any], Any]] = {
    "=": lambda a, b: a == b,
    "<>": lambda a, b: a != b,
    "<": lambda a, b: a < b,
    "<=": lambda a, b: a <= b,
    ">": lambda a, b: a > b,
    ">=": lambda a, b: a >= b,
}
_FUNCTIONS: dict[str, Callable[[Any], Any]] = {
    "-": np.negative,
    "ABS": np.abs,
    "FLOOR": np.floor,
    "CEIL": np.ceil,
    "SQRT": np.sqrt,
    "LN": np.log,
    "EXP": np.exp,
}
