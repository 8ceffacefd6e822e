"""Random row expressions: their SQL text, and their exact value on one row in plain Python."""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

from hypothesis import strategies as st

from cloister.data.columns import Column
from cloister.data.schema import Schema
from cloister.data.values import StorageType

Row = dict[str, Any]
Expression = tuple[str, Callable[[Row], Fraction | None]]
Condition = tuple[str, Callable[[Row], bool | None]]

INTEGER_BOUNDS, REAL_BOUNDS = (-50, 70), (-4, 4)
STEP = Fraction(1, 2**17)
YEARS = (2019, 2022)

SCHEMA = Schema(
    [
        Column(name="id", kind="numeric", bounds=(0, 1000)),
        Column(name="i", kind="numeric", bounds=INTEGER_BOUNDS),
        Column(name="r", kind="numeric", bounds=REAL_BOUNDS),
        Column(name="t", kind="nominal"),
        Column(name="b", kind="nominal"),
        Column(name="d", kind="datetime", bounds=("2019-01-01", "2022-12-31")),
    ]
)

VALUES: dict[str, tuple[StorageType, st.SearchStrategy[Any]]] = {
    "i": (
        StorageType.INTEGER,
        st.one_of(st.integers(-60, 80), st.sampled_from([2**63 - 1, -(2**63), 2**53 + 1, 0, -50, 70])),
    ),
    "r": (
        StorageType.REAL,
        st.one_of(
            st.floats(-5, 5),
            st.sampled_from(
                [0.0, -0.0, 0.5, -0.5, 2.5, -2.5, math.inf, -math.inf, math.nan, 1e300, -1e300, 5e-324, 4.0]
            ),
        ),
    ),
    "t": (StorageType.TEXT, st.sampled_from(["", "a", "Ab", "é", "e\u0301", "日本語", "🙂x", "o'x", "a\\b", "12345"])),
    "b": (StorageType.BOOLEAN, st.booleans()),
    "d": (
        StorageType.DATE,
        st.one_of(
            st.dates(dt.date(2018, 6, 1), dt.date(2023, 6, 1)), st.dates(dt.date(1, 1, 1), dt.date(9999, 12, 31))
        ),
    ),
}


@st.composite
def tables(draw: st.DrawFn) -> dict[str, tuple[StorageType, list[Any]]]:
    length = draw(st.integers(1, 12))
    data: dict[str, tuple[StorageType, list[Any]]] = {"id": (StorageType.INTEGER, list(range(length)))}
    for name, (storage, values) in VALUES.items():
        data[name] = storage, draw(st.lists(st.none() | values, min_size=length, max_size=length))
    return data


def rows_of(data: dict[str, tuple[StorageType, list[Any]]]) -> list[Row]:
    length = len(data["id"][1])
    return [{name: _clean(values[place]) for name, (_, values) in data.items()} for place in range(length)]


def _clean(item: Any) -> Any:
    return None if isinstance(item, float) and math.isnan(item) else item


def _integer(row: Row) -> Fraction | None:
    low, high = INTEGER_BOUNDS
    return None if row["i"] is None else Fraction(min(max(row["i"], low), high))


def _real(row: Row) -> Fraction | None:
    value, (low, high) = row["r"], REAL_BOUNDS
    if value is None:
        return None
    clamped = min(max(value, float(low)), float(high))
    return math.floor((clamped + float(STEP) / 2) / float(STEP)) * STEP


def _year(row: Row) -> Fraction | None:
    return None if row["d"] is None else Fraction(min(max(row["d"].year, YEARS[0]), YEARS[1]))


LEAVES: list[Expression] = [
    ("i", _integer),
    ("r", _real),
    ("YEAR(d)", _year),
    ("MONTH(d)", lambda row: None if row["d"] is None else Fraction(row["d"].month)),
    ("DAY(d)", lambda row: None if row["d"] is None else Fraction(row["d"].day)),
    ("QUARTER(d)", lambda row: None if row["d"] is None else Fraction((row["d"].month + 2) // 3)),
    ("LEAST(LENGTH(t), 3)", lambda row: None if row["t"] is None else Fraction(min(len(row["t"]), 3))),
    ("CAST(b AS INTEGER)", lambda row: None if row["b"] is None else Fraction(row["b"])),
    ("CLAMP(i, -3, 5)", lambda row: None if row["i"] is None else Fraction(min(max(row["i"], -3), 5))),
]
LITERALS = st.sampled_from(["0", "1", "-1", "2", "3", "0.5", "-2.5", "10", "0.1", "1.25", "7"])
NONZERO = LITERALS.filter(lambda text: text != "0")


def literals(source: st.SearchStrategy[str] = LITERALS) -> st.SearchStrategy[Expression]:
    return source.map(lambda text: (text, lambda row: Fraction(text)))


def expressions() -> st.SearchStrategy[Expression]:
    return st.recursive(st.one_of(st.sampled_from(LEAVES), literals()), _larger, max_leaves=5)


def conditions() -> st.SearchStrategy[Condition]:
    return st.tuples(expressions(), st.sampled_from(sorted(_SIGNS)), expressions()).map(lambda parts: _compared(*parts))


def _larger(children: st.SearchStrategy[Expression]) -> st.SearchStrategy[Expression]:
    return st.one_of(
        st.tuples(st.sampled_from(["+", "-", "*"]), children, children).map(lambda parts: _binary(*parts)),
        st.tuples(children, NONZERO).map(lambda parts: _divided(*parts)),
        st.tuples(children, NONZERO).map(lambda parts: _modulo(*parts)),
        st.tuples(st.sampled_from(sorted(_FUNCTIONS)), children).map(lambda parts: _applied(*parts)),
        st.tuples(st.sampled_from(["ROUND", "TRUNC"]), children, st.integers(-2, 3)).map(
            lambda parts: _rounded(*parts)
        ),
        st.tuples(st.sampled_from(["LEAST", "GREATEST"]), children, children).map(lambda parts: _extreme(*parts)),
        st.tuples(children, children).map(lambda parts: _coalesce(*parts)),
        st.tuples(children, children).map(lambda parts: _nullif(*parts)),
        st.tuples(children, st.sampled_from(sorted(_SIGNS)), children, children, children | st.none()).map(
            lambda parts: _case(_compared(*parts[:3]), parts[3], parts[4])
        ),
    )


_BINARY: dict[str, Callable[[Fraction, Fraction], Fraction]] = {
    "+": lambda a, b: a + b,
    "-": lambda a, b: a - b,
    "*": lambda a, b: a * b,
}
_SIGNS: dict[str, Callable[[Any, Any], bool]] = {
    "=": lambda a, b: a == b,
    "<>": lambda a, b: a != b,
    "<": lambda a, b: a < b,
    "<=": lambda a, b: a <= b,
    ">": lambda a, b: a > b,
    ">=": lambda a, b: a >= b,
}
_FUNCTIONS: dict[str, Callable[[Fraction], Fraction]] = {
    "-": lambda x: -x,
    "ABS": abs,
    "FLOOR": lambda x: Fraction(math.floor(x)),
    "CEIL": lambda x: Fraction(math.ceil(x)),
}


def _lifted(function: Callable[..., Fraction], *parts: Expression) -> Callable[[Row], Fraction | None]:
    def value(row: Row) -> Fraction | None:
        values = [part[1](row) for part in parts]
        return None if None in values else function(*values)

    return value


def _binary(sign: str, left: Expression, right: Expression) -> Expression:
    return f"({left[0]} {sign} {right[0]})", _lifted(_BINARY[sign], left, right)


def _divided(inner: Expression, divisor: str) -> Expression:
    return f"({inner[0]} / {divisor})", _lifted(lambda x: x / Fraction(divisor), inner)


def _modulo(inner: Expression, divisor: str) -> Expression:
    m = Fraction(divisor)
    return f"MOD({inner[0]}, {divisor})", _lifted(lambda x: x - m * math.trunc(x / m), inner)


def _applied(name: str, inner: Expression) -> Expression:
    return f"{name}({inner[0]})", _lifted(_FUNCTIONS[name], inner)


def _rounded(name: str, inner: Expression, decimals: int) -> Expression:
    unit = Fraction(10) ** -decimals

    def value(x: Fraction) -> Fraction:
        sign = -1 if x < 0 else 1
        half = Fraction(1, 2) if name == "ROUND" else 0
        return sign * unit * math.floor(abs(x) / unit + half)

    return f"{name}({inner[0]}, {decimals})", _lifted(value, inner)


def _extreme(name: str, left: Expression, right: Expression) -> Expression:
    first, second = (_computed(text) if text == "r" else text for text, _ in (left, right))
    return f"{name}({first}, {second})", _lifted(max if name == "GREATEST" else min, left, right)


def _coalesce(left: Expression, right: Expression) -> Expression:
    def value(row: Row) -> Fraction | None:
        first = left[1](row)
        return right[1](row) if first is None else first

    return f"COALESCE({left[0]}, {right[0]})", value


def _nullif(left: Expression, right: Expression) -> Expression:
    def value(row: Row) -> Fraction | None:
        first = left[1](row)
        return None if first == right[1](row) else first

    return f"NULLIF({_computed(left[0])}, {_computed(right[0])})", value


def _compared(left: Expression, sign: str, right: Expression) -> Condition:
    def holds(row: Row) -> bool | None:
        a, b = left[1](row), right[1](row)
        return None if a is None or b is None else _SIGNS[sign](a, b)

    return f"{_computed(left[0])} {sign} {_computed(right[0])}", holds


def _computed(text: str) -> str:
    """Return a comparison's side as a computed number: a plain column would be compared as it is stored."""
    return f"({text} + 0)"


def _case(condition: Condition, yes: Expression, no: Expression | None) -> Expression:
    def value(row: Row) -> Fraction | None:
        if condition[1](row):
            return yes[1](row)
        return None if no is None else no[1](row)

    tail = "" if no is None else f" ELSE {no[0]}"
    return f"CASE WHEN {condition[0]} THEN {yes[0]}{tail} END", value
