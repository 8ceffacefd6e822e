"""CASE, COALESCE and casts, functions of texts and dates, and the resolver that knows every function."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Mapping
from dataclasses import replace
from fractions import Fraction
from typing import Any, ClassVar

from sqlglot import exp

from cloister.data.engines.base import literal
from cloister.data.engines.predicates import Operand, OperandFamily, mismatch, quote
from cloister.data.values import StorageType
from cloister.errors import UnsafeQueryError
from cloister.queries._question import FixedPointNumber
from cloister.queries.sql import _fixed_arithmetic as fixed_arithmetic
from cloister.queries.sql._numeric_functions import NUMERIC, whole_of
from cloister.queries.sql._terms import (
    STORAGES,
    Limits,
    Measured,
    Span,
    Term,
    TermDomain,
    term_of_stored,
    term_of_value,
    to_number,
)
from cloister.queries.sql.row_expressions import Function, RowResolver

__all__ = ["OTHERS", "FullResolver"]


_LONGEST_TEXT = 1_000_000
_INTEGERS = {"INT", "BIGINT", "SMALLINT", "TINYINT"}
_REALS = {"DOUBLE", "FLOAT", "DECIMAL"}


def _case(resolver: RowResolver, node: exp.Case) -> Term:
    subject = None if node.this is None else resolver.term(node.this)
    tests = []
    for branch in node.args["ifs"]:
        resolver.check_arguments(branch)
        test = branch.this
        tests.append(
            resolver.truth(test) if subject is None else resolver.compare(exp.EQ, subject, resolver.term(test), node)
        )
    results = [branch.args["true"] for branch in node.args["ifs"]]
    return _choice(resolver, tests, [*results, node.args.get("default")], node)


def _if(resolver: RowResolver, node: exp.If) -> Term:
    return _choice(resolver, [resolver.truth(node.this)], [node.args["true"], node.args.get("false")], node)


def _nullif(resolver: RowResolver, node: exp.Nullif) -> Term:
    term = resolver.term(node.this).settle_limits()
    same = resolver.compare(exp.EQ, term, resolver.term(node.expression), node)
    # What is missing in some rows no longer names the person of every row.
    return replace(term.rewritten(lambda sql: fixed_arithmetic.case([(same, exp.Null())], sql)), is_person=False)


def _choice(
    resolver: RowResolver, tests: list[exp.Expression], results: list[exp.Expression | None], node: exp.Expression
) -> Term:
    """Return the result of the first test that holds; the last result is that of none."""
    terms = [None if result is None or type(result) is exp.Null else resolver.term(result) for result in results]
    present = [term for term in terms if term is not None]
    if not present:
        raise UnsafeQueryError(f"{quote(node)} is always NULL.", fix="give at least one branch a value.")
    sides, family = resolver.align(present, node)
    if family is OperandFamily.NUMBER:
        values = [None if term is None else term.value for term in terms]
        number = fixed_arithmetic.choose(tests, values, label=resolver.label(node))
        return term_of_value(number, resolver.label(node), domain=_constants(values, number.unit))
    remaining = iter(sides)
    built = [exp.Null() if term is None else next(remaining).sql for term in terms]
    sql = fixed_arithmetic.case(list(zip(tests, built[:-1], strict=True)), built[-1])
    return _combine(sql, family, present, sides, resolver.label(node))


def _coalesce(resolver: RowResolver, node: exp.Coalesce) -> Term:
    terms = [resolver.term(item) for item in (node.this, *node.expressions)]
    sides, family = resolver.align(terms, node)
    label = resolver.label(node)
    if family is OperandFamily.NUMBER:
        return term_of_value(fixed_arithmetic.first_present([term.value for term in terms], label=label), label)
    sql = exp.Coalesce(this=sides[0].sql, expressions=[side.sql for side in sides[1:]])
    return _combine(sql, family, terms, sides, label)


def _combine(sql: exp.Expression, family: OperandFamily, terms: list[Term], sides: list[Operand], label: str) -> Term:
    """Return one of several terms of a type: its public values are those of all, where all are known."""

    def domain() -> TermDomain | None:
        if family is OperandFamily.TRUTH:
            return TermDomain.of((False, True))
        # A text that is read as a date is no longer one of the values that its domain lists.
        if any(side is not term for side, term in zip(sides, terms, strict=True)):
            return None
        parts = [term.domain() for term in terms]
        found = [item for part in parts if part is not None for item in part.values]
        return None if None in parts else TermDomain.of(found)

    ordered = any(term.is_ordered for term in terms)
    return Term(sql=sql, family=family, storage=STORAGES[family], label=label, domain=domain, is_ordered=ordered)


def _constants(values: list[fixed_arithmetic.Value | None], unit: Fraction) -> TermDomain | None:
    present = [value for value in values if value is not None]
    if not all(isinstance(value, Fraction) for value in present):
        return None
    ordered = sorted({value for value in present if isinstance(value, Fraction)})
    return TermDomain(tuple(int(value / unit) for value in ordered), tuple(to_number(value) for value in ordered))


def _cast(resolver: RowResolver, node: exp.Cast) -> Term:
    """Return a cast that cannot fail and means the same everywhere."""
    kind = node.to.this.value if type(node) is exp.Cast and isinstance(node.to, exp.DataType) else ""
    term = resolver.term(node.this)
    label = resolver.label(node)
    if kind in _INTEGERS | _REALS and term.family is OperandFamily.TRUTH:
        yes, no = (literal(number, StorageType.INTEGER) for number in (1, 0))
        # A truth value that is unknown meets neither test, and stays missing.
        tests = [(term.sql, yes), (exp.Not(this=exp.paren(term.sql, copy=False)), no)]
        number = FixedPointNumber(steps=fixed_arithmetic.case(tests), unit=Fraction(1), low=0, high=1, label=label)
        return term_of_value(number, label)
    if kind in _REALS and term.family is OperandFamily.NUMBER:
        return term
    if kind in _INTEGERS and term.family is OperandFamily.NUMBER:
        return _whole(term, node)
    if kind == "DATE" and term.family in (OperandFamily.DATE, OperandFamily.TIME):
        sql = term.sql if term.family is OperandFamily.DATE else exp.Cast(this=term.sql, to=exp.DataType.build("DATE"))
        return Term(sql=sql, family=OperandFamily.DATE, storage=StorageType.DATE, label=label)
    raise resolver.refused(node)


def _whole(term: Term, node: exp.Expression) -> Term:
    is_stored_whole = isinstance(term.numeric, Measured) and term.numeric.storage is StorageType.INTEGER
    if is_stored_whole:
        return term
    value = term.value
    unit = value if isinstance(value, Fraction) else value.unit
    if unit.denominator != 1:
        raise UnsafeQueryError(
            f"{quote(node)} rounds differently on different databases.",
            fix=f"say how: ROUND({term.label}), FLOOR({term.label}) or CEIL({term.label}).",
        )
    return term


def _length(resolver: RowResolver, node: exp.Length) -> Term:
    text = _text(resolver, node.this, node)
    sql = fixed_arithmetic.bigint(exp.Length(this=text.sql))
    label = resolver.label(node)

    def domain() -> TermDomain | None:
        known = text.domain()
        return None if known is None else TermDomain.of(sorted({len(item) for item in known.values}))

    return term_of_stored(_limit_integer(sql, label, Fraction(0), None), sql=sql, domain=domain)


def _limit_integer(sql: exp.Expression, label: str, low: Fraction, high: Fraction | None) -> Measured:
    return Measured(stored=sql, storage=StorageType.INTEGER, label=label, limits=lambda: (low, high))


def _substring(resolver: RowResolver, node: exp.Substring) -> Term:
    start = whole_of(resolver, node.args.get("start"), what="The start of SUBSTRING", low=1, high=_LONGEST_TEXT)
    given = node.args.get("length")
    length = _LONGEST_TEXT
    if given is not None:
        length = whole_of(resolver, given, what="The length of SUBSTRING", low=0, high=_LONGEST_TEXT)
    return _part_of_text(resolver, node, start, length)


def _left(resolver: RowResolver, node: exp.Left) -> Term:
    length = whole_of(resolver, node.expression, what="The length of LEFT", low=0, high=_LONGEST_TEXT)
    return _part_of_text(resolver, node, 1, length)


def _part_of_text(resolver: RowResolver, node: exp.Expression, start: int, length: int) -> Term:
    text = _text(resolver, node.this, node)

    def domain() -> TermDomain | None:
        known = text.domain()
        return None if known is None else TermDomain.of(item[start - 1 : start - 1 + length] for item in known.values)

    sql = exp.Substring(this=text.sql, start=exp.Literal.number(start), length=exp.Literal.number(length))
    return replace(text, sql=sql, label=resolver.label(node), domain=domain, is_person=False)


def _text(resolver: RowResolver, node: exp.Expression, whole: exp.Expression) -> Term:
    term = resolver.term(node)
    if term.family is not OperandFamily.TEXT:
        raise mismatch(whole, term.family, OperandFamily.TEXT)
    return term


def _year(resolver: RowResolver, node: exp.Expression) -> Term:
    return _part(resolver, node, node.this, "YEAR")


def _month(resolver: RowResolver, node: exp.Expression) -> Term:
    return _part(resolver, node, node.this, "MONTH")


def _day(resolver: RowResolver, node: exp.Expression) -> Term:
    return _part(resolver, node, node.this, "DAY")


def _quarter(resolver: RowResolver, node: exp.Expression) -> Term:
    month = _part(resolver, node, node.this, "MONTH")
    ahead = fixed_arithmetic.multiply(fixed_arithmetic.add(month.value, Fraction(2)), Fraction(1, 3))
    return term_of_value(fixed_arithmetic.floor(ahead, Fraction(1)), resolver.label(node))


def _extract(resolver: RowResolver, node: exp.Extract) -> Term:
    part = node.name.upper()
    if part not in ("YEAR", "MONTH", "DAY"):
        raise resolver.refused(node)
    return _part(resolver, node, node.expression, part)


def _part(resolver: RowResolver, node: exp.Expression, inner: exp.Expression, part: str) -> Term:
    moment = resolver.term(inner)
    if moment.family not in (OperandFamily.DATE, OperandFamily.TIME):
        raise mismatch(node, moment.family, OperandFamily.DATE)
    sql = fixed_arithmetic.bigint(exp.Extract(this=exp.var(part), expression=moment.sql))
    label = resolver.label(node)
    if part != "YEAR":
        last = 12 if part == "MONTH" else 31
        measured = _limit_integer(sql, label, Fraction(1), Fraction(last))
        return term_of_stored(measured, sql=sql, domain=lambda: TermDomain.of(range(1, last + 1)))
    measured = Measured(stored=sql, storage=StorageType.INTEGER, label=label, limits=lambda: _years(moment.span))
    return term_of_stored(measured, sql=sql, domain=lambda: _list_years(moment.span))


def _years(span: Callable[[], Span | None]) -> Limits:
    found = span()
    first, last = (dt.date.min, dt.date.max) if found is None else found
    return Fraction(first.year), Fraction(max(last.year, first.year + 1))


def _list_years(span: Callable[[], Span | None]) -> TermDomain | None:
    found = span()
    return None if found is None else TermDomain.of(range(found[0].year, found[1].year + 1))


def _date_trunc(resolver: RowResolver, node: Any) -> Term:
    """Return the first day of the month, quarter or year, by its number on the calendar."""
    lengths = {"YEAR": 12, "QUARTER": 3, "MONTH": 1}
    unit = node.args.get("unit")
    months = lengths.get(unit.name.upper()) if unit is not None else None
    moment = resolver.term(node.this)
    span = moment.span()
    if months is None or moment.family not in (OperandFamily.DATE, OperandFamily.TIME) or span is None:
        raise UnsafeQueryError(
            f"{quote(node)} is not a year, quarter or month of a column with public bounds.",
            fix="state the column's first and last date in the schema, or group by YEAR(...) and MONTH(...).",
        )
    year, month = (_calendar_part(moment.sql, part) for part in ("YEAR", "MONTH"))
    ordinal = fixed_arithmetic.add(
        fixed_arithmetic.multiply(year, Fraction(12)), fixed_arithmetic.add(month, Fraction(-1))
    )
    place = fixed_arithmetic.floor(fixed_arithmetic.multiply(ordinal, Fraction(1, months)), Fraction(1))
    first, last = ((day.year * 12 + day.month - 1) // months for day in span)
    labels = tuple(dt.date(code * months // 12, code * months % 12 + 1, 1) for code in range(first, last + 1))
    return Term(
        sql=fixed_arithmetic.as_number(place, label="").steps,
        family=OperandFamily.PERIOD,
        storage=StorageType.INTEGER,
        label=resolver.label(node),
        domain=lambda: TermDomain(tuple(range(first, last + 1)), labels),
    )


def _calendar_part(moment: exp.Expression, part: str) -> fixed_arithmetic.Value:
    """Return a year or month as a number; dates outside the years 1 to 9999 are missing already."""
    sql = fixed_arithmetic.bigint(exp.Extract(this=exp.var(part), expression=moment))
    return FixedPointNumber(steps=sql, unit=Fraction(1), low=1, high=9999 if part == "YEAR" else 12, label=part)


OTHERS: dict[str, Function] = {
    "Case": _case,
    "If": _if,
    "Nullif": _nullif,
    "Coalesce": _coalesce,
    "Cast": _cast,
    "Length": _length,
    "Substring": _substring,
    "Left": _left,
    "Year": _year,
    "Month": _month,
    "Day": _day,
    "Quarter": _quarter,
    "Extract": _extract,
    "DateTrunc": _date_trunc,
    "TimestampTrunc": _date_trunc,
}


class FullResolver(RowResolver):
    """Resolves row expressions with every function that is known."""

    functions: ClassVar[Mapping[str, Function]] = NUMERIC | OTHERS
