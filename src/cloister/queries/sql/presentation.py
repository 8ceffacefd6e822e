"""What is shown of the answers to a question: output columns, HAVING, ORDER BY and LIMIT, after the noise.

Output columns, HAVING and ORDER BY are formulas over the keys and the aggregates of a question.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sqlglot import exp

from cloister.core import exact
from cloister.core.wordings import a_or_an
from cloister.data.engines.base import as_date, as_timestamp
from cloister.data.engines.predicates import number_text, quote
from cloister.data.values import StorageType
from cloister.errors import UnsafeQueryError
from cloister.queries._aggregates import Aggregate
from cloister.queries.answers import Estimate
from cloister.queries.sql import grammar
from cloister.queries.sql._formulas import (
    Applied,
    Arithmetic,
    Chosen,
    Connected,
    Derived,
    Formula,
    FormulaComparison,
    IsNull,
    KeyColumn,
    Literal,
    NoisyAnswers,
    NoisyColumn,
    Opposite,
    Picked,
    Test,
    as_floats,
    is_numeric,
)
from cloister.queries.sql.aggregation import AggregateReader, Grouping, is_aggregate
from cloister.queries.sql.row_expressions import function_name

__all__ = ["OutputColumn", "OutputResolver", "Presentation", "SortKey"]


@dataclass(frozen=True, slots=True)
class OutputColumn:
    """A column of the result."""

    name: str
    formula: Formula

    def column(self, answers: NoisyAnswers) -> Estimate:
        """Return the column, in the rows of the answers."""
        match self.formula:
            case KeyColumn(index=index):
                return answers.keys[index].named(self.name)
            case NoisyColumn(index=index):
                return answers.aggregates[index].named(self.name)
            case Literal():
                return Estimate.key(self.name, self.formula.values(answers).tolist())
        values = self.formula.values(answers)
        if not is_numeric(values):
            return Estimate.key(self.name, values.tolist())
        return Estimate(name=self.name, values=values, error=Derived(self.formula, answers))


@dataclass(frozen=True, slots=True)
class SortKey:
    """One member of ORDER BY."""

    formula: Formula
    descending: bool = False
    nulls_first: bool = False

    def columns(self, answers: NoisyAnswers) -> tuple[NDArray[Any], NDArray[Any]]:
        """Return what to sort by, in ascending order: whether the value is missing, and its rank."""
        ranks = _ranks(self.formula.values(answers))
        missing = np.isnan(ranks)
        values = np.where(missing, 0.0, -ranks if self.descending else ranks)
        return ~missing if self.nulls_first else missing, values


@dataclass(frozen=True, slots=True, kw_only=True)
class Presentation:
    """How the answer of a question becomes the result of a query. It reads noisy values only, and costs nothing."""

    outputs: tuple[OutputColumn, ...]
    having: Test | None = None
    order: tuple[SortKey, ...] = ()
    limit: int | None = None
    offset: int = 0

    def present(self, keys: Sequence[Estimate], aggregates: Sequence[Estimate]) -> tuple[Estimate, ...]:
        """Return the columns of the result.

        Args:
            keys: a column for each key of the question.
            aggregates: a column for each aggregate of the question.
        """
        answers = NoisyAnswers(tuple(keys), tuple(aggregates))
        shown = answers.take(self._rows(answers))
        return tuple(output.column(shown) for output in self.outputs)

    def columns(self, keys: Sequence[Estimate], aggregates: Sequence[Estimate]) -> tuple[Estimate, ...]:
        """Return the columns of the result in all groups, whatever HAVING, ORDER BY and LIMIT say."""
        answers = NoisyAnswers(tuple(keys), tuple(aggregates))
        return tuple(output.column(answers) for output in self.outputs)

    def canonical(self) -> str:
        """Return a text that is the same for the same presentation, whatever its columns are called."""
        unnamed = tuple(replace(output, name="") for output in self.outputs)
        return repr(replace(self, outputs=unnamed))

    def _rows(self, answers: NoisyAnswers) -> NDArray[np.int64]:
        rows = np.arange(len(answers))
        if self.having is not None:
            # A group for which the test is unknown is left out, as in SQL.
            rows = rows[self.having(answers) == 1]
        if self.order:
            kept = answers.take(rows)
            columns = [column for key in self.order for column in key.columns(kept)]
            # lexsort takes its last key as the first one.
            rows = rows[np.lexsort(columns[::-1])]
        end = None if self.limit is None else self.offset + self.limit
        return rows[self.offset : end]


def _ranks(values: NDArray[Any]) -> NDArray[np.float64]:
    """Return numbers as they are, and other values by their place in their own order."""
    if is_numeric(values):
        return as_floats(values)
    present = sorted({item for item in values if item is not None})
    places = {item: float(place) for place, item in enumerate(present)}
    return np.array([np.nan if item is None else places[item] for item in values], dtype=float)


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
                return IsNull(self.formula(node.this))
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
        raise grammar.output_refusal(node)

    def _noisy(self, node: exp.Expression) -> NoisyColumn:
        aggregate = self._reader.read(node)
        text = aggregate.canonical()
        self._aggregates.setdefault(text, aggregate)
        return NoisyColumn(list(self._aggregates).index(text))

    def _named(self, node: exp.Column) -> Formula:
        named = None if node.args.get("table") is not None else self.aliases.get(node.name.lower())
        if named is None:
            self._grouping.check_known(node)
            raise grammar.ungrouped_refusal(node, self._table)
        return self.formula(named)

    def _computed(self, node: exp.Expression) -> Formula:
        name = function_name(node)
        if type(node) in _SIGNS:
            return Arithmetic(_SIGNS[type(node)], (self._number(node.this), self._number(node.expression)))
        if name in _FUNCTIONS or name == "Round":
            grammar.check_parts(node, {"this", "decimals"} if name == "Round" else {"this"})
            return Applied(_FUNCTIONS.get(name, "ROUND"), (self._number(node.this),), _decimals(node))
        if name in _PICKS:
            grammar.check_parts(node, {"this", "expressions", "ignore_nulls"})
            return Picked(_PICKS[name], tuple(self._number(item) for item in (node.this, *node.expressions)))
        if name == "Cast" and type(node) is exp.Cast and node.to.this.value in ("DOUBLE", "FLOAT", "DECIMAL"):
            return self._number(node.this)
        if name == "Nullif":
            same = self._compared("=", node.this, node.expression)
            return Chosen((same,), (Literal(None), self._number(node.this)))
        if name in ("Case", "If"):
            return self._chosen(node)
        raise grammar.output_refusal(node)

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
                f"{quote(node)} mixes types: {' and '.join(sorted(kinds))}.", fix="give all branches one type."
            )
        return Chosen(tests, (*values, last))

    def _compared(self, sign: str, left: exp.Expression, right: exp.Expression) -> FormulaComparison:
        sides = self.formula(left), self.formula(right)
        kinds = [self._kind(side) for side in sides]
        first, second = _as_kind(sides[0], kinds[1]), _as_kind(sides[1], kinds[0])
        if self._kind(first) != self._kind(second) or "null" in kinds:
            raise UnsafeQueryError(
                f"{quote(left)} and {quote(right)} cannot be compared.",
                fix="compare like with like: text in single quotes, numbers without quotes, dates as '2026-01-31'.",
            )
        return FormulaComparison(sign, first, second)

    def _number(self, node: exp.Expression) -> Formula:
        """Return a formula that is a number."""
        formula = self.formula(node)
        kind = self._kind(formula)
        if kind not in ("number", "null"):
            raise UnsafeQueryError(f"{quote(node)} is {a_or_an(kind)}, not a number.", fix="compute with numbers only.")
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
        number = exact.number(digits, name=quote(node))
        # What no double can hold fails here, while the query is read and nothing is paid.
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
            f"{quote(node)} does not say how many decimals to keep.", fix="write for example ROUND(AVG(age), 1)."
        )
    return int(digits)
