"""Output columns, HAVING and ORDER BY: formulas over the keys and the aggregates of a question."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import Any

from sqlglot import exp

from cloister.core import exact
from cloister.data.engines.base import as_date, as_timestamp
from cloister.data.engines.predicates import number_text, quoted
from cloister.data.profile import StorageType
from cloister.errors import UnsafeQueryError, a_or_an
from cloister.queries.question import Aggregate, describe
from cloister.queries.sql import refusals
from cloister.queries.sql.aggregates import AggregateReader, is_aggregate
from cloister.queries.sql.formulas import (
    Applied,
    Arithmetic,
    Chosen,
    Compared,
    Connected,
    Formula,
    KeyColumn,
    Literal,
    Missing,
    NoisyColumn,
    Opposite,
    Picked,
    Test,
)
from cloister.queries.sql.grouping import Grouping
from cloister.queries.sql.rows import function_name

__all__ = ["OutputResolver"]

_SIGNS: dict[type[exp.Expression], str] = {exp.Add: "+", exp.Sub: "-", exp.Mul: "*", exp.Div: "/"}
_COMPARISONS: dict[type[exp.Expression], str] = {
    exp.EQ: "=",
    exp.NEQ: "<>",
    exp.LT: "<",
    exp.LTE: "<=",
    exp.GT: ">",
    exp.GTE: ">=",
}
_FUNCTIONS = {"Neg": "-", "Abs": "ABS", "Floor": "FLOOR", "Ceil": "CEIL", "Sqrt": "SQRT", "Ln": "LN", "Exp": "EXP"}
_PICKS = {"Least": "LEAST", "Greatest": "GREATEST", "Coalesce": "COALESCE"}
_MOST_DECIMALS = 15


class OutputResolver:
    """Turns expressions over aggregates and keys into formulas, and collects the aggregates, each once."""

    def __init__(self, reader: AggregateReader, grouping: Grouping, table: str) -> None:
        self._reader = reader
        self._grouping = grouping
        self._table = table
        self._aggregates: dict[str, Aggregate] = {}
        self.aliases: Mapping[str, exp.Expression] = {}

    @property
    def aggregates(self) -> tuple[Aggregate, ...]:
        """Return the aggregates that were met, in order."""
        return tuple(self._aggregates.values())

    def with_aliases(self, aliases: Mapping[str, exp.Expression]) -> OutputResolver:
        """Let the names of output columns stand for them from here on, as in HAVING and ORDER BY."""
        self.aliases = aliases
        return self

    def formula(self, node: exp.Expression) -> Formula:
        """Return an output column."""
        while type(node) is exp.Paren:
            node = node.this
        if is_aggregate(node):
            return self._noisy(node)
        literal = _literal(node)
        if literal is not None:
            return literal
        key = self._grouping.position(node)
        if key is not None:
            return KeyColumn(key)
        if isinstance(node, exp.Column):
            return self._named(node)
        return self._computed(node)

    def test(self, node: exp.Expression) -> Test:
        """Return a condition on answers."""
        while type(node) is exp.Paren:
            node = node.this
        match node:
            case exp.And() | exp.Or():
                name = "AND" if isinstance(node, exp.And) else "OR"
                return Connected(name, (self.test(node.this), self.test(node.expression)))
            case exp.Not():
                return Opposite(self.test(node.this))
            case exp.Is() if isinstance(node.expression, exp.Null):
                return Missing(self.formula(node.this))
            case exp.Between() if not node.args.get("symmetric"):
                ends = (
                    self._compared(">=", node.this, node.args["low"]),
                    self._compared("<=", node.this, node.args["high"]),
                )
                return Connected("AND", ends)
            case exp.In() if node.expressions and not node.args.get("query"):
                return Connected("OR", tuple(self._compared("=", node.this, item) for item in node.expressions))
        if type(node) in _COMPARISONS:
            return self._compared(_COMPARISONS[type(node)], node.this, node.expression)
        raise refusals.in_output(node)

    def _noisy(self, node: exp.Expression) -> NoisyColumn:
        aggregate = self._reader.read(node)
        text = describe(aggregate)
        self._aggregates.setdefault(text, aggregate)
        return NoisyColumn(list(self._aggregates).index(text))

    def _named(self, node: exp.Column) -> Formula:
        named = None if node.args.get("table") is not None else self.aliases.get(node.name.lower())
        if named is None:
            self._grouping.check_known(node)
            raise refusals.not_grouped(node, self._table)
        return self.formula(named)

    def _computed(self, node: exp.Expression) -> Formula:
        name = function_name(node)
        if type(node) in _SIGNS:
            return Arithmetic(_SIGNS[type(node)], (self._number(node.this), self._number(node.expression)))
        if name in _FUNCTIONS or name == "Round":
            _check(node, {"this", "decimals"} if name == "Round" else {"this"})
            return Applied(_FUNCTIONS.get(name, "ROUND"), (self._number(node.this),), _decimals(node))
        if name in _PICKS:
            _check(node, {"this", "expressions", "ignore_nulls"})
            return Picked(_PICKS[name], tuple(self._number(item) for item in (node.this, *node.expressions)))
        if name == "Cast" and type(node) is exp.Cast and node.to.this.value in ("DOUBLE", "FLOAT", "DECIMAL"):
            return self._number(node.this)
        if name == "Nullif":
            same = self._compared("=", node.this, node.expression)
            return Chosen((same,), (Literal(None), self._number(node.this)))
        if name in ("Case", "If"):
            return self._chosen(node)
        raise refusals.in_output(node)

    def _chosen(self, node: exp.Expression) -> Formula:
        branches = node.args["ifs"] if isinstance(node, exp.Case) else [node]
        default = node.args.get("default") if isinstance(node, exp.Case) else node.args.get("false")
        tests: tuple[Test, ...]
        if isinstance(node, exp.Case) and node.this is not None:
            tests = tuple(self._compared("=", node.this, branch.this) for branch in branches)
        else:
            tests = tuple(self.test(branch.this) for branch in branches)
        values = [self.formula(branch.args["true"]) for branch in branches]
        last = Literal(None) if default is None else self.formula(default)
        kinds = {self._kind(value) for value in (*values, last)} - {"null"}
        if len(kinds) > 1:
            raise UnsafeQueryError(
                f"{quoted(node)} mixes types: {' and '.join(sorted(kinds))}.", fix="give all branches one type."
            )
        return Chosen(tests, (*values, last))

    def _compared(self, sign: str, left: exp.Expression, right: exp.Expression) -> Compared:
        sides = self.formula(left), self.formula(right)
        kinds = [self._kind(side) for side in sides]
        first, second = _as_kind(sides[0], kinds[1]), _as_kind(sides[1], kinds[0])
        if self._kind(first) != self._kind(second) or "null" in kinds:
            raise UnsafeQueryError(
                f"{quoted(left)} and {quoted(right)} cannot be compared.",
                fix="compare like with like: text in single quotes, numbers without quotes, dates as '2026-01-31'.",
            )
        return Compared(sign, first, second)

    def _number(self, node: exp.Expression) -> Formula:
        """Return a formula that is a number."""
        formula = self.formula(node)
        kind = self._kind(formula)
        if kind not in ("number", "null"):
            raise UnsafeQueryError(
                f"{quoted(node)} is {a_or_an(kind)}, not a number.", fix="compute with numbers only."
            )
        return formula

    def _kind(self, formula: Formula) -> str:
        """Return what a formula is: a number, or the type of a value."""
        match formula:
            case KeyColumn(index=index):
                storage = self._grouping.storage(index)
                return "number" if storage in (StorageType.INTEGER, StorageType.REAL) else storage.value
            case Literal(value=value):
                return _literal_kind(value)
            case Chosen(parts=parts):
                return next((kind for part in parts if (kind := self._kind(part)) != "null"), "null")
        return "number"


def _literal(node: exp.Expression) -> Literal | None:
    digits = number_text(node)
    if digits is not None:
        number = exact.number(digits, name=quoted(node))
        float(number)
        return Literal(number)
    match node:
        case exp.Boolean():
            return Literal(bool(node.this))
        case exp.Literal():
            return Literal(node.this)
        case exp.Null():
            return Literal(None)
    return None


def _as_kind(side: Formula, other: str) -> Formula:
    """Return a text as the date or time that it is compared with."""
    readers: dict[str, Callable[[str], Any]] = {"date": as_date, "timestamp": as_timestamp}
    if isinstance(side, Literal) and isinstance(side.value, str) and other in readers:
        return Literal(readers[other](side.value))
    return side


def _literal_kind(value: Any) -> str:  # the value of a literal
    if value is None:
        return "null"
    names = {Fraction: "number", bool: "boolean", str: "text", dt.datetime: "timestamp", dt.date: "date"}
    return names[type(value)]


def _decimals(node: exp.Expression) -> int:
    given = node.args.get("decimals")
    digits = "0" if given is None else number_text(given)
    if digits is None or not digits.lstrip("-").isdigit() or abs(int(digits)) > _MOST_DECIMALS:
        raise UnsafeQueryError(
            f"{quoted(node)} does not say how many decimals to keep.", fix="write for example ROUND(AVG(age), 1)."
        )
    return int(digits)


def _check(node: exp.Expression, known: set[str]) -> None:
    if any(part for name, part in node.args.items() if name not in known):
        raise refusals.in_output(node)
