"""Conditions on rows (WHERE, where=, CASE): the part of SQL that means the same on every engine, and nothing else.

Allowed: columns, literals, ``= <> < <= > >=``, ``AND OR NOT``, ``IN (...)``, ``BETWEEN``, ``IS [NOT] NULL``,
``IS [NOT] TRUE|FALSE``, ``LIKE``, ``LENGTH(text)`` and ``YEAR``, ``MONTH``, ``DAY`` of a date or time. Both sides of a
comparison have one type; a date may be written as text. There is no arithmetic, no subquery and no other function: what
could fail or differ on some rows of some engine is refused before any row is read. An expression is taken apart and
built anew: whatever part of it is not known here, a flag or a kind of node, is refused and never dropped.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Set
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError

from cloister.data.engines.base import Engine, as_date, as_timestamp, literal, value
from cloister.data.values import StorageType
from cloister.errors import CloisterError, ParameterError, ParameterTypeError, UnknownColumnError

__all__ = ["Operand", "OperandFamily", "Resolver", "find_name", "parse_condition", "resolve_condition"]

_INT64 = 2**63
LONGEST, _LARGEST, _DEEPEST = 1_000_000, 100_000, 50
_LONGEST_QUOTE = 200


class OperandFamily(StrEnum):
    """What an operand is, in words; only like is compared with like."""

    NUMBER = "a number"
    TEXT = "text"
    DATE = "a date"
    TIME = "a date and time"
    PERIOD = "a month, quarter or year"
    TRUTH = "a truth value"
    NULL = "NULL"


FAMILIES = {
    StorageType.INTEGER: OperandFamily.NUMBER,
    StorageType.REAL: OperandFamily.NUMBER,
    StorageType.BOOLEAN: OperandFamily.TRUTH,
    StorageType.TEXT: OperandFamily.TEXT,
    StorageType.DATE: OperandFamily.DATE,
    StorageType.TIMESTAMP: OperandFamily.TIME,
}
_ORDERS = (exp.LT, exp.LTE, exp.GT, exp.GTE)
_EQUALITIES = (exp.EQ, exp.NEQ)
_PARTS = {exp.Year: "YEAR", exp.Month: "MONTH", exp.Day: "DAY"}
ARGUMENTS: dict[type[exp.Expression], set[str]] = {
    exp.Between: {"this", "low", "high"},
    exp.In: {"this", "expressions"},
    exp.Like: {"this", "expression", "negate"},
    exp.Cast: {"this", "to"},
    exp.Literal: {"this", "is_string"},
    exp.Identifier: {"this", "quoted"},
}
_TWO_SIDES = frozenset({"this", "expression"})
_MOMENTS = {exp.DataType.Type.DATE: OperandFamily.DATE} | dict.fromkeys(
    (exp.DataType.Type.TIMESTAMP, exp.DataType.Type.TIMESTAMPNTZ), OperandFamily.TIME
)
BROKEN = (AttributeError, TypeError, ValueError, LookupError, RecursionError, SqlglotError)


@dataclass(frozen=True, slots=True, kw_only=True)
class Operand:
    """SQL for a value in each row, and what kind of value it is."""

    sql: exp.Expression
    family: OperandFamily


def parse_condition(where: str | exp.Expression) -> exp.Expression:
    """Return a condition as an expression, not yet checked against any table.

    Raises:
        ParameterError: if it is not one SQL condition.
    """
    if isinstance(where, exp.Expression):
        # A copy walks the whole tree, so that its size is looked at first.
        check_size(where)
        return where.copy()
    if not isinstance(where, str):
        raise ParameterTypeError("where= is not a condition.", fix='write for example where="age > 50".')
    if len(where) > LONGEST:
        raise too_large()
    try:
        parsed = sqlglot.parse(where)
    except SqlglotError:
        parsed = []
    except RecursionError:
        raise too_large() from None
    if len(parsed) != 1 or not isinstance(parsed[0], exp.Expression):
        raise ParameterError(
            f"where={shorten(repr(where))} is not a SQL condition.",
            fix="write for example where=\"age > 50 AND sex = 'F'\"; names with other characters go in double quotes.",
        )
    check_size(parsed[0])
    return parsed[0]


def resolve_condition(where: str | exp.Expression, engine: Engine) -> exp.Expression:
    """Return a checked condition over the engine's own columns.

    Raises:
        UnknownColumnError: if it names a column that does not exist.
        ParameterError: if it uses something that does not mean the same everywhere.
    """
    try:
        return _ConditionResolver(engine).truth(parse_condition(where))
    except CloisterError:
        raise
    except BROKEN:
        raise ParameterError(
            "where= is an expression that SQL cannot say.", fix='write the condition as text, for example "age > 50".'
        ) from None


class Resolver:
    """Takes expressions apart and builds them anew. What its columns are, and more functions, are given by others."""

    arguments: Mapping[type[exp.Expression], Set[str]] = ARGUMENTS
    """The parts that a kind of node may have; the two sides of an operator where it is not listed."""

    def __init__(self) -> None:
        self._truths: dict[type[exp.Expression], Callable[[Any], exp.Expression]] = {
            exp.Paren: lambda node: exp.paren(self.truth(node.this), copy=False),
            exp.And: self._connection,
            exp.Or: self._connection,
            exp.Not: self._negation,
            exp.Between: self._between,
            exp.In: self._membership,
            exp.Is: self._state,
            exp.Like: self._likeness,
            exp.Column: self._bare,
            exp.Boolean: self._bare,
            **dict.fromkeys((*_ORDERS, *_EQUALITIES), self._comparison),
        }

    def column(self, node: exp.Column) -> Operand:
        """Return what a name stands for."""
        raise self.refused(node)

    def function(self, node: exp.Expression) -> Operand:
        """Return a function of operands."""
        match node:
            case exp.Length():
                text = self.operand(node.this)
                return length_of(need(text, OperandFamily.TEXT, node))
            case exp.Year() | exp.Month() | exp.Day():
                return self._part(_PARTS[type(node)], node.this, node)
            case exp.Extract() if node.name.upper() in _PARTS.values():
                return self._part(node.name.upper(), node.expression, node)
        raise self.refused(node)

    def refused(self, node: exp.Expression) -> CloisterError:
        """Return the error for a node that is not known."""
        return ParameterError(
            f"{quote(node)} cannot be used in a condition.",
            fix="use columns (in double quotes if they have spaces or dashes), literals, comparisons, AND, OR, NOT, "
            "IN, BETWEEN, IS NULL, LIKE, LENGTH, YEAR, MONTH and DAY.",
        )

    def truth(self, node: exp.Expression) -> exp.Expression:
        """Return a node that is true, false or unknown."""
        self.check_arguments(node)
        handle = self._truths.get(type(node))
        if handle is None:
            raise self.refused(node)
        return handle(node)

    def operand(self, node: exp.Expression) -> Operand:
        """Return a column, literal or allowed function with its type."""
        # Only the bare node is a parenthesis: subclasses such as subqueries are not.
        while type(node) is exp.Paren:
            node = node.this
        self.check_arguments(node)
        if isinstance(node, exp.Column):
            return self.column(node)
        return self.literal(node) or self.function(node)

    def literal(self, node: exp.Expression) -> Operand | None:
        """Return a literal, or None for other nodes."""
        digits = number_text(node)
        if digits is not None:
            return Operand(sql=_number(digits, node), family=OperandFamily.NUMBER)
        match node:
            case exp.Boolean():
                return Operand(sql=literal(node.this, StorageType.BOOLEAN), family=OperandFamily.TRUTH)
            case exp.Null():
                return Operand(sql=exp.Null(), family=OperandFamily.NULL)
            case exp.Literal() if node.is_string:
                return Operand(sql=_text(node), family=OperandFamily.TEXT)
            case exp.Cast() if isinstance(node.this, exp.Literal) and node.this.is_string:
                return self._cast_moment(node)
        return None

    def compare(
        self, kind: type[exp.Expression], left: Operand, right: Operand, node: exp.Expression
    ) -> exp.Expression:
        """Return the comparison of two operands of one type."""
        if OperandFamily.NULL in (left.family, right.family):
            raise ParameterError(
                f"{quote(node)} compares with NULL, which is never true.", fix="write IS NULL or IS NOT NULL."
            )
        # A text beside a date is meant as a date; both sides are looked at, since either may be the literal.
        left, right = as_moment(left, right.family), as_moment(right, left.family)
        if left.family is not right.family:
            raise mismatch(node, right.family, left.family)
        if left.family is OperandFamily.TRUTH and kind in _ORDERS:
            raise self.refused(node)
        return kind(this=left.sql, expression=right.sql)

    def check_arguments(self, node: exp.Expression) -> None:
        """Refuse a node with a part that would be dropped, such as the SYMMETRIC of BETWEEN."""
        known = self.arguments.get(type(node), _TWO_SIDES)
        if any(part for name, part in node.args.items() if name not in known):
            raise self.refused(node)

    def _connection(self, node: exp.Expression) -> exp.Expression:
        kind = type(node)
        # A chain of thousands becomes a shallow tree: databases have limits of nesting, too.
        return balance(kind, [self.truth(side) for side in self._chain(node, kind)])

    def _negation(self, node: exp.Expression) -> exp.Expression:
        return exp.Not(this=exp.paren(self.truth(node.this), copy=False))

    def _between(self, node: exp.Expression) -> exp.Expression:
        tested = self.operand(node.this)
        low = self.compare(exp.GTE, tested, self.operand(node.args["low"]), node)
        high = self.compare(exp.LTE, tested, self.operand(node.args["high"]), node)
        # Parentheses keep the two tests together under whatever surrounds them.
        return exp.paren(balance(exp.And, [low, high]), copy=False)

    def _bare(self, node: exp.Expression) -> exp.Expression:
        return need(self.operand(node), OperandFamily.TRUTH, node)

    def _part(self, part: str, inner: exp.Expression, node: exp.Expression) -> Operand:
        moment = self.operand(inner)
        if moment.family not in (OperandFamily.DATE, OperandFamily.TIME):
            raise mismatch(node, moment.family, OperandFamily.DATE)
        extracted = exp.Extract(this=exp.var(part), expression=moment.sql)
        # Engines give parts of dates in different types, which would make comparisons differ.
        return Operand(sql=exp.cast(extracted, "BIGINT", copy=False), family=OperandFamily.NUMBER)

    def _comparison(self, node: exp.Expression) -> exp.Expression:
        return self.compare(type(node), self.operand(node.this), self.operand(node.expression), node)

    def _membership(self, node: exp.In) -> exp.Expression:
        if not node.expressions:
            raise self.refused(node)
        tested = self.operand(node.this)
        tests = [self.compare(exp.EQ, tested, self.operand(item), node) for item in node.expressions]
        return exp.paren(balance(exp.Or, tests), copy=False)

    def _state(self, node: exp.Is) -> exp.Expression:
        tested = self.operand(node.this)
        match node.expression:
            case exp.Null():
                return exp.Is(this=tested.sql, expression=exp.Null())
            case exp.Boolean():
                truth = literal(node.expression.this, StorageType.BOOLEAN)
                return exp.Is(this=need(tested, OperandFamily.TRUTH, node), expression=truth)
        raise self.refused(node)

    def _likeness(self, node: exp.Like) -> exp.Expression:
        text = self.operand(node.this)
        pattern = node.expression
        # What a backslash means in a pattern differs between engines.
        plain = isinstance(pattern, exp.Literal) and pattern.is_string and "\\" not in pattern.this
        if not plain:
            raise ParameterError(
                f"{quote(node)} is not a plain pattern.", fix="use LIKE with quoted text, % and _, and no backslash."
            )
        like = exp.Like(this=need(text, OperandFamily.TEXT, node), expression=_text(pattern))
        return exp.Not(this=exp.paren(like, copy=False)) if node.args.get("negate") else like

    def _cast_moment(self, node: exp.Cast) -> Operand:
        """Return DATE '...' or TIMESTAMP '...' as a literal."""
        family = _MOMENTS.get(node.to.this)
        # Casts that do not fail, and types with parameters, are other nodes than the plain one.
        if type(node) is not exp.Cast or family is None or node.to.expressions:
            raise self.refused(node)
        return as_moment(Operand(sql=node.this, family=OperandFamily.TEXT), family)

    def _chain(self, node: exp.Expression, kind: type[exp.Expression]) -> list[exp.Expression]:
        """Return the members of a chain of one connector, from left to right."""
        members: list[exp.Expression] = []
        pending = [node]
        # A loop and not a recursion: a chain may be longer than Python's stack is deep.
        while pending:
            item = pending.pop()
            if type(item) is kind:
                self.check_arguments(item)
                pending += [item.expression, item.this]
            else:
                members.append(item)
        return members


class _ConditionResolver(Resolver):
    """Conditions over the columns of one engine."""

    def __init__(self, engine: Engine) -> None:
        super().__init__()
        self._engine = engine

    def column(self, node: exp.Column) -> Operand:
        if not isinstance(node.this, exp.Identifier):
            raise self.refused(node)
        self.check_arguments(node.this)
        names = self._engine.names
        name = find_name(node.this, names)
        if name is None:
            raise unknown_column(node, names)
        position = names.index(name)
        return Operand(sql=value(self._engine, position), family=FAMILIES[self._engine.types[position]])


def find_name(identifier: exp.Identifier, names: Iterable[str]) -> str | None:
    """Return the name that is meant: exactly that one, or without quotes the only one that differs in case alone."""
    name = identifier.name
    known = list(names)
    if name in known:
        return name
    # A name that several columns answer to is not guessed.
    folded = [] if identifier.quoted else [item for item in known if item.lower() == name.lower()]
    return folded[0] if len(folded) == 1 else None


def unknown_column(node: exp.Column, names: Iterable[str]) -> UnknownColumnError:
    """Return the error for a name that no column has."""
    unknown = UnknownColumnError(node.name, names)
    if node.arg_key in ("expression", "expressions", "low", "high"):
        unknown.fix = f"if it is a value, put it in single quotes: '{node.name}'; else {unknown.fix}"
    return unknown


def length_of(text: exp.Expression) -> Operand:
    """Return the number of code points of a text."""
    return Operand(sql=exp.cast(exp.Length(this=text), "BIGINT", copy=False), family=OperandFamily.NUMBER)


def as_moment(side: Operand, other: OperandFamily) -> Operand:
    """Return a text literal, or a date, as the date or time that it is compared with."""
    if side.family is OperandFamily.DATE and other is OperandFamily.TIME:
        return Operand(sql=exp.cast(side.sql, "TIMESTAMPNTZ", copy=False), family=OperandFamily.TIME)
    if side.family is not OperandFamily.TEXT or not isinstance(side.sql, exp.Literal):
        return side
    readers: dict[OperandFamily, tuple[Callable[[str], Any], StorageType]] = {
        OperandFamily.DATE: (as_date, StorageType.DATE),
        OperandFamily.TIME: (as_timestamp, StorageType.TIMESTAMP),
    }
    if other not in readers:
        return side
    read, storage = readers[other]
    moment = read(side.sql.this)
    if moment is None:
        raise ParameterError(
            f"'{side.sql.this}' is not {other}.", fix="write dates as '2026-01-31' and times as '2026-01-31 08:00:00'."
        )
    return Operand(sql=literal(moment, storage), family=other)


def _text(node: exp.Expression) -> exp.Expression:
    """Return a text literal that every engine can hold."""
    text = node.this
    if not isinstance(text, str) or "\0" in text or (not text.isascii() and _has_surrogate(text)):
        raise ParameterError(
            "A text has a character that databases cannot hold.", fix="leave out NUL and lone surrogates."
        )
    return literal(text, StorageType.TEXT)


def _has_surrogate(text: str) -> bool:
    return any("\ud800" <= character <= "\udfff" for character in text)


def number_text(node: exp.Expression) -> str | None:
    """Return what a literal number says, its sign included; None for other nodes."""
    sign, inner = ("-", node.this) if isinstance(node, exp.Neg) else ("", node)
    return f"{sign}{inner.this}" if isinstance(inner, exp.Literal) and not inner.is_string else None


def _number(text: str, node: exp.Expression) -> exp.Expression:
    try:
        whole: int | None = int(text)
    except ValueError:
        whole = None
    # Whole numbers stay exact; only what 64 bits cannot hold becomes a double, on every engine alike.
    if whole is not None and -_INT64 <= whole < _INT64:
        return literal(whole, StorageType.INTEGER)
    number = float(text)
    if not math.isfinite(number):
        raise ParameterError(f"{quote(node)} is too large a number.", fix="use a number below 1e308.")
    return literal(number, StorageType.REAL)


def need(operand: Operand, wanted: OperandFamily, whole: exp.Expression) -> exp.Expression:
    """Return the SQL of an operand that has to be of one kind."""
    if operand.family is not wanted:
        raise mismatch(whole, operand.family, wanted)
    return operand.sql


def mismatch(node: exp.Expression, found: OperandFamily, wanted: OperandFamily) -> ParameterError:
    """Return the error for an operand of another kind than is needed."""
    return ParameterError(
        f"{quote(node)} uses {found} where {wanted} is needed.",
        fix="compare like with like: text in single quotes, numbers without quotes, dates as '2026-01-31'.",
    )


def quote(node: exp.Expression) -> str:
    """Return a part of the caller's own text, for a message."""
    return f'"{shorten(node.sql(comments=False, copy=False))}"'


def shorten(text: str) -> str:
    """Return the beginning of a text that is long."""
    return text if len(text) <= _LONGEST_QUOTE else f"{text[:_LONGEST_QUOTE]}..."


def check_size(condition: exp.Expression, *, deepest: int = _DEEPEST) -> None:
    """Refuse what is too deep or too large; a chain of one connector is one level, whatever its length."""
    pending = [(condition, 1)]
    seen = 0
    while pending:
        node, depth = pending.pop()
        seen += 1
        if depth > deepest or seen > _LARGEST:
            raise too_large()
        chain = type(node) if isinstance(node, exp.And | exp.Or) else None
        # Members of one chain are beside each other, however deep the parser has nested them.
        pending.extend((child, depth + (type(child) is not chain)) for child in node.iter_expressions())


def too_large() -> ParameterError:
    """Return the error for a condition beyond the limits."""
    return ParameterError(
        "The condition is too long or too deeply nested.",
        fix=f"nest at most {_DEEPEST} levels and write IN (...) for many values; or prepare a column in the source.",
    )


def balance(kind: type[exp.Expression], tests: list[exp.Expression]) -> exp.Expression:
    """Return tests joined by a connector, as a tree that is shallow however many they are."""
    if len(tests) == 1:
        return tests[0]
    middle = len(tests) // 2
    sides = (balance(kind, tests[:middle]), balance(kind, tests[middle:]))
    return kind(this=exp.paren(sides[0], copy=False), expression=exp.paren(sides[1], copy=False))
