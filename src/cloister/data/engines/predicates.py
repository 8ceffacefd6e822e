"""Conditions on rows: the part of SQL that means the same on every engine, and nothing else.

Allowed: columns, literals, ``= <> < <= > >=``, ``AND OR NOT``, ``IN (...)``, ``BETWEEN``, ``IS [NOT] NULL``,
``IS [NOT] TRUE|FALSE``, ``LIKE``, ``LENGTH(text)`` and ``YEAR``, ``MONTH``, ``DAY`` of a date or time. Both sides of a
comparison have one type; a date may be written as text. There is no arithmetic, no subquery and no other function: what
could fail or differ on some rows of some engine is refused before any row is read. An expression is taken apart and
built anew: whatever part of it is not known here, a flag or a kind of node, is refused and never dropped.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from enum import StrEnum
from typing import Any

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError

from cloister.data.engines.base import Engine, as_date, as_timestamp, literal, value
from cloister.data.profile import StorageType
from cloister.errors import CloisterError, ParameterError, ParameterTypeError, UnknownColumnError

__all__ = ["parse_condition", "resolve_condition"]

_INT64 = 2**63
_LONGEST, _LARGEST, _DEEPEST = 1_000_000, 100_000, 50
_LONGEST_QUOTE = 200


class _Family(StrEnum):
    NUMBER = "a number"
    TEXT = "text"
    DATE = "a date"
    TIME = "a date and time"
    TRUTH = "a truth value"
    NULL = "NULL"


_FAMILIES = {
    StorageType.INTEGER: _Family.NUMBER,
    StorageType.REAL: _Family.NUMBER,
    StorageType.BOOLEAN: _Family.TRUTH,
    StorageType.TEXT: _Family.TEXT,
    StorageType.DATE: _Family.DATE,
    StorageType.TIMESTAMP: _Family.TIME,
}
_ORDERS = (exp.LT, exp.LTE, exp.GT, exp.GTE)
_EQUALITIES = (exp.EQ, exp.NEQ)
_PARTS = {exp.Year: "YEAR", exp.Month: "MONTH", exp.Day: "DAY"}
_ARGUMENTS: dict[type[exp.Expression], set[str]] = {
    exp.Between: {"this", "low", "high"},
    exp.In: {"this", "expressions"},
    exp.Like: {"this", "expression", "negate"},
    exp.Cast: {"this", "to"},
    exp.Literal: {"this", "is_string"},
    exp.Identifier: {"this", "quoted"},
}
_BROKEN = (AttributeError, TypeError, ValueError, LookupError, RecursionError, SqlglotError)

_Typed = tuple[exp.Expression, _Family]


def parse_condition(where: str | exp.Expression) -> exp.Expression:
    """Return a condition as an expression, not yet checked against any table.

    Raises:
        ParameterError: if it is not one SQL condition.
    """
    if isinstance(where, exp.Expression):
        _check_size(where)
        return where.copy()
    if not isinstance(where, str):
        raise ParameterTypeError("where= is not a condition.", fix='write for example where="age > 50".')
    if len(where) > _LONGEST:
        raise _too_large()
    try:
        parsed = sqlglot.parse(where)
    except SqlglotError:
        parsed = []
    except RecursionError:
        raise _too_large() from None
    if len(parsed) != 1 or not isinstance(parsed[0], exp.Expression):
        raise ParameterError(
            f"where={_shortened(repr(where))} is not a SQL condition.",
            fix="write for example where=\"age > 50 AND sex = 'F'\"; names with other characters go in double quotes.",
        )
    _check_size(parsed[0])
    return parsed[0]


def resolve_condition(where: str | exp.Expression, engine: Engine) -> exp.Expression:
    """Return a checked condition over the engine's own columns.

    Raises:
        UnknownColumnError: if it names a column that does not exist.
        ParameterError: if it uses something that does not mean the same everywhere.
    """
    try:
        return _Resolver(engine).truth(parse_condition(where))
    except CloisterError:
        raise
    except _BROKEN:
        raise ParameterError(
            "where= is an expression that SQL cannot say.", fix='write the condition as text, for example "age > 50".'
        ) from None


class _Resolver:
    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._truths: dict[tuple[type[exp.Expression], ...], Callable[[Any], exp.Expression]] = {
            (exp.Paren,): lambda node: exp.paren(self.truth(node.this)),
            (exp.And, exp.Or): self._connection,
            (exp.Not,): self._negation,
            (exp.Between,): self._between,
            (exp.In,): self._membership,
            (exp.Is,): self._state,
            (exp.Like,): self._likeness,
            (exp.Column, exp.Boolean): self._bare,
            (*_ORDERS, *_EQUALITIES): self._comparison,
        }

    def truth(self, node: exp.Expression) -> exp.Expression:
        """Return a node that is true, false or unknown."""
        _check_arguments(node)
        for kinds, handle in self._truths.items():
            if type(node) in kinds:
                return handle(node)
        raise _refused(node)

    def operand(self, node: exp.Expression) -> _Typed:
        """Return a column, literal or allowed function with its type."""
        while type(node) is exp.Paren:
            node = node.this
        _check_arguments(node)
        if isinstance(node, exp.Column):
            position = self._position(node)
            return value(self._engine, position), _FAMILIES[self._engine.types[position]]
        return _literal(node) or self._function(node)

    def _function(self, node: exp.Expression) -> _Typed:
        match node:
            case exp.Length():
                text, family = self.operand(node.this)
                _need(text, family, _Family.TEXT, node)
                return exp.cast(exp.Length(this=text), "BIGINT"), _Family.NUMBER
            case exp.Year() | exp.Month() | exp.Day():
                return self._part(_PARTS[type(node)], node.this, node)
            case exp.Extract() if node.name.upper() in _PARTS.values():
                return self._part(node.name.upper(), node.expression, node)
        raise _refused(node)

    def _connection(self, node: exp.Expression) -> exp.Expression:
        kind = type(node)
        return _balanced(kind, [self.truth(side) for side in _chain(node, kind)])

    def _negation(self, node: exp.Expression) -> exp.Expression:
        return exp.Not(this=exp.paren(self.truth(node.this)))

    def _between(self, node: exp.Expression) -> exp.Expression:
        low = exp.GTE(this=node.this, expression=node.args["low"])
        high = exp.LTE(this=node.this, expression=node.args["high"])
        return exp.paren(self._connection(exp.And(this=low, expression=high)))

    def _bare(self, node: exp.Expression) -> exp.Expression:
        found, family = self.operand(node)
        return _need(found, family, _Family.TRUTH, node)

    def _position(self, node: exp.Column) -> int:
        name, names = node.name, self._engine.names
        if not isinstance(node.this, exp.Identifier):
            raise _refused(node)
        _check_arguments(node.this)
        if name in names:
            return names.index(name)
        folded = [position for position, known in enumerate(names) if known.lower() == name.lower()]
        if len(folded) == 1 and not node.this.quoted:
            return folded[0]
        unknown = UnknownColumnError(name, names)
        if node.arg_key in ("expression", "expressions"):
            unknown.fix = f"if it is a value, put it in single quotes: '{name}'; else {unknown.fix}"
        raise unknown

    def _part(self, part: str, inner: exp.Expression, node: exp.Expression) -> _Typed:
        moment, family = self.operand(inner)
        if family not in (_Family.DATE, _Family.TIME):
            raise _mismatch(node, family, _Family.DATE)
        extracted = exp.Extract(this=exp.var(part), expression=moment)
        return exp.cast(extracted, "BIGINT"), _Family.NUMBER

    def _comparison(self, node: exp.Expression) -> exp.Expression:
        left, right, family = self._pair(self.operand(node.this), self.operand(node.expression), node)
        if family is _Family.TRUTH and isinstance(node, _ORDERS):
            raise _refused(node)
        return type(node)(this=left, expression=right)

    def _membership(self, node: exp.In) -> exp.Expression:
        if not node.expressions:
            raise _refused(node)
        tests = [self._comparison(exp.EQ(this=node.this, expression=item)) for item in node.expressions]
        return exp.paren(_balanced(exp.Or, tests))

    def _state(self, node: exp.Is) -> exp.Expression:
        tested, family = self.operand(node.this)
        match node.expression:
            case exp.Null():
                return exp.Is(this=tested, expression=exp.Null())
            case exp.Boolean():
                truth = literal(node.expression.this, StorageType.BOOLEAN)
                return exp.Is(this=_need(tested, family, _Family.TRUTH, node), expression=truth)
        raise _refused(node)

    def _likeness(self, node: exp.Like) -> exp.Expression:
        text, family = self.operand(node.this)
        pattern = node.expression
        plain = isinstance(pattern, exp.Literal) and pattern.is_string and "\\" not in pattern.this
        if not plain:
            raise ParameterError(
                f"{_quoted(node)} is not a plain pattern.", fix="use LIKE with quoted text, % and _, and no backslash."
            )
        like = exp.Like(this=_need(text, family, _Family.TEXT, node), expression=_text(pattern))
        return exp.Not(this=exp.paren(like)) if node.args.get("negate") else like

    def _pair(
        self, left: _Typed, right: _Typed, node: exp.Expression
    ) -> tuple[exp.Expression, exp.Expression, _Family]:
        """Return both sides in one type; text next to a date or time is read as one."""
        if _Family.NULL in (left[1], right[1]):
            raise ParameterError(
                f"{_quoted(node)} compares with NULL, which is never true.", fix="write IS NULL or IS NOT NULL."
            )
        left, right = _as_moment(left, right[1]), _as_moment(right, left[1])
        if left[1] is not right[1]:
            raise _mismatch(node, right[1], left[1])
        return left[0], right[0], left[1]


def _as_moment(side: _Typed, other: _Family) -> _Typed:
    """Return a text literal, or a date, as the date or time that it is compared with."""
    node, family = side
    if family is _Family.DATE and other is _Family.TIME:
        return exp.cast(node, "TIMESTAMPNTZ"), _Family.TIME
    if family is not _Family.TEXT or not isinstance(node, exp.Literal):
        return side
    readers: dict[_Family, tuple[Callable[[str], Any], StorageType]] = {
        _Family.DATE: (as_date, StorageType.DATE),
        _Family.TIME: (as_timestamp, StorageType.TIMESTAMP),
    }
    if other not in readers:
        return side
    read, storage = readers[other]
    moment = read(node.this)
    if moment is None:
        raise ParameterError(
            f"'{node.this}' is not {other}.", fix="write dates as '2026-01-31' and times as '2026-01-31 08:00:00'."
        )
    return literal(moment, storage), other


def _literal(node: exp.Expression) -> _Typed | None:
    match node:
        case exp.Boolean():
            return literal(node.this, StorageType.BOOLEAN), _Family.TRUTH
        case exp.Null():
            return exp.Null(), _Family.NULL
        case exp.Literal():
            return (_text(node), _Family.TEXT) if node.is_string else (_number(node.this, node), _Family.NUMBER)
        case exp.Neg() if isinstance(node.this, exp.Literal) and not node.this.is_string:
            return _number(f"-{node.this.this}", node), _Family.NUMBER
        case exp.Cast() if isinstance(node.this, exp.Literal) and node.this.is_string:
            return _dated(node)
    return None


def _text(node: exp.Expression) -> exp.Expression:
    """Return a text literal that every engine can hold."""
    text = node.this
    if not isinstance(text, str) or "\0" in text or (not text.isascii() and _has_surrogate(text)):
        raise ParameterError(
            "A text in where= has a character that databases cannot hold.", fix="leave out NUL and lone surrogates."
        )
    return literal(text, StorageType.TEXT)


def _has_surrogate(text: str) -> bool:
    return any("\ud800" <= character <= "\udfff" for character in text)


def _dated(node: exp.Cast) -> _Typed:
    """Return DATE '...' or TIMESTAMP '...' as a literal."""
    kinds = {exp.DataType.Type.DATE: _Family.DATE}
    kinds |= dict.fromkeys((exp.DataType.Type.TIMESTAMP, exp.DataType.Type.TIMESTAMPNTZ), _Family.TIME)
    family = kinds.get(node.to.this)
    if type(node) is not exp.Cast or family is None or node.to.expressions:
        raise _refused(node)
    return _as_moment((node.this, _Family.TEXT), family)


def _number(text: str, node: exp.Expression) -> exp.Expression:
    try:
        whole: int | None = int(text)
    except ValueError:
        whole = None
    if whole is not None and -_INT64 <= whole < _INT64:
        return literal(whole, StorageType.INTEGER)
    number = float(text)
    if not math.isfinite(number):
        raise ParameterError(f"{_quoted(node)} is too large a number.", fix="use a number below 1e308.")
    return literal(number, StorageType.REAL)


def _need(node: exp.Expression, family: _Family, wanted: _Family, whole: exp.Expression) -> exp.Expression:
    if family is not wanted:
        raise _mismatch(whole, family, wanted)
    return node


def _mismatch(node: exp.Expression, found: _Family, wanted: _Family) -> ParameterError:
    return ParameterError(
        f"{_quoted(node)} uses {found} where {wanted} is needed.",
        fix="compare like with like: text in single quotes, numbers without quotes, dates as '2026-01-31'.",
    )


def _refused(node: exp.Expression) -> ParameterError:
    return ParameterError(
        f"{_quoted(node)} cannot be used in a condition.",
        fix="use columns (in double quotes if they have spaces or dashes), literals, comparisons, AND, OR, NOT, IN, "
        "BETWEEN, IS NULL, LIKE, LENGTH, YEAR, MONTH and DAY.",
    )


def _quoted(node: exp.Expression) -> str:
    return f'"{_shortened(node.sql())}"'


def _shortened(text: str) -> str:
    return text if len(text) <= _LONGEST_QUOTE else f"{text[:_LONGEST_QUOTE]}..."


def _check_size(condition: exp.Expression) -> None:
    """Refuse what is too deep or too large; a chain of one connector is one level, whatever its length."""
    pending = [(condition, 1)]
    seen = 0
    while pending:
        node, depth = pending.pop()
        seen += 1
        if depth > _DEEPEST or seen > _LARGEST:
            raise _too_large()
        chain = type(node) if isinstance(node, exp.And | exp.Or) else None
        pending.extend((child, depth + (type(child) is not chain)) for child in node.iter_expressions())


def _too_large() -> ParameterError:
    return ParameterError(
        "The condition is too long or too deeply nested.",
        fix=f"nest at most {_DEEPEST} levels and write IN (...) for many values; or prepare a column in the source.",
    )


def _check_arguments(node: exp.Expression) -> None:
    """Refuse a node with a part that would be dropped, such as the SYMMETRIC of BETWEEN."""
    known = _ARGUMENTS.get(type(node), {"this", "expression"})
    if any(part for name, part in node.args.items() if name not in known):
        raise _refused(node)


def _chain(node: exp.Expression, kind: type[exp.Expression]) -> list[exp.Expression]:
    """Return the members of a chain of one connector, from left to right."""
    members: list[exp.Expression] = []
    pending = [node]
    while pending:
        item = pending.pop()
        if type(item) is kind:
            _check_arguments(item)
            pending += [item.expression, item.this]
        else:
            members.append(item)
    return members


def _balanced(kind: type[exp.Expression], tests: list[exp.Expression]) -> exp.Expression:
    """Return tests joined by a connector, as a tree that is shallow however many they are."""
    if len(tests) == 1:
        return tests[0]
    middle = len(tests) // 2
    sides = (_balanced(kind, tests[:middle]), _balanced(kind, tests[middle:]))
    return kind(this=exp.paren(sides[0], copy=False), expression=exp.paren(sides[1], copy=False))
