"""Cut points: where the data owner lets conditions cut a confidential column, in public and for good.

A condition that may cut anywhere is a way to a value: moving the cut until what is seen changes, by bisection, finds
it exactly, whether what is seen is a number or a refusal. With fixed cuts the values of a column fall into public
classes, such as below 2000 and from 2000 on, and conditions tell classes apart and nothing else.

Claim: on two tables that differ only in confidential values of the same class, all questions are answered or refused
alike, and all counts are equal. Reason: every permitted condition and group is made of the cuts with AND, OR and NOT,
so that the rows that it chooses are functions of the known columns, the classes, and where values are missing; and
decisions look at chosen rows only. What depends on the values themselves are sums and means, which the audit guards.

A permitted cut is recognized by compiling it like any condition: what a query says has to be the same expression.
"""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, TypeAlias

from sqlglot import exp

from cloister.data.columns import Column, Kind
from cloister.data.schema import Schema
from cloister.errors import ParameterError, ParameterTypeError, UnknownColumnError
from cloister.queries._question import GroupKey
from cloister.queries.catalog import Catalog
from cloister.queries.sql import compile_select

__all__ = ["Cut", "CutPoints", "check_columns", "clean_cut_points"]

Cut: TypeAlias = "bool | int | float | str"

_SHOWN = 10
"""How many cut points a message lists."""


def clean_cut_points(stated: object) -> Mapping[str, tuple[Cut, ...]]:
    """Return cut points by column, without what is said twice; dates become text.

    Raises:
        ParameterTypeError: if they are no lists of values by column.
        ParameterError: if a number is not finite.
    """
    if not isinstance(stated, Mapping) or not all(isinstance(name, str) for name in stated):
        raise _no_cut_points()
    return MappingProxyType({name: _clean_values(values) for name, values in sorted(stated.items())})


def _clean_values(values: object) -> tuple[Cut, ...]:
    if isinstance(values, str) or not isinstance(values, Iterable):
        raise _no_cut_points()
    return tuple(dict.fromkeys(_clean_value(value) for value in values))


def _clean_value(value: object) -> Cut:
    if isinstance(value, dt.date):
        return value.isoformat()
    if isinstance(value, float) and not math.isfinite(value):
        raise ParameterError("A cut point is not a finite number.", fix="write a number such as 2000.")
    if isinstance(value, bool | int | float | str):
        return value
    raise _no_cut_points()


def _no_cut_points() -> ParameterTypeError:
    return ParameterTypeError(
        "cut_points are not lists of values by column.",
        fix='write for example cut_points={"salary": (2000, 5000), "illness": ("flu",)}.',
    )


def check_columns(stated: Mapping[str, Sequence[Cut]], schema: Schema, confidential: Iterable[str]) -> None:
    """Return nothing if cut points are about confidential columns, else raise.

    Raises:
        UnknownColumnError: if a column does not exist.
        ParameterError: if it is not confidential, so that conditions on it need no cut points.
    """
    for name in stated:
        if name not in schema.names:
            raise UnknownColumnError(name, schema.names)
        if name not in set(confidential):
            raise ParameterError(
                f'"{name}" has cut points and is not confidential, so that it may be cut anywhere.',
                fix=f'drop its cut points, or call it sensitive: schema.with_role("{name}", "sensitive").',
            )


class CutPoints:
    """Recognizes, in compiled SQL, the conditions and groups that cut confidential columns where that is permitted.

    Args:
        stated: the cut points by column.
        schema: the schema of the table.
        catalog: what SQL is compiled with.
        table: what SQL calls the table.

    Raises:
        CloisterError: if a cut point cannot be compared with its column.
    """

    def __init__(self, stated: Mapping[str, Sequence[Cut]], schema: Schema, catalog: Catalog, *, table: str) -> None:
        self._stated, self._schema = stated, schema
        self._catalog, self._table = catalog, table
        self._cuts = [self._compiled(cut) for name in stated for cut in _cuts(schema[name], stated[name])]
        self._groups = {
            name: self._group(name) for name in stated if schema[name].categories is not None and stated[name]
        }

    def permit(self, condition: exp.Expression | None) -> bool:
        """Return whether a compiled condition is made of cuts alone, with AND, OR and NOT."""
        if isinstance(condition, exp.Paren | exp.Not):
            return self.permit(condition.this)
        if isinstance(condition, exp.And | exp.Or):
            return self.permit(condition.this) and self.permit(condition.expression)
        return condition in self._cuts

    def permit_key(self, key: GroupKey) -> bool:
        """Return whether a compiled group is a condition made of cuts, or a column all values of which are cuts."""
        whole = any(
            key.group == group and set(key.values or ()) <= set(self._stated[name])
            for name, group in self._groups.items()
        )
        return whole or self.permit(key.group)

    def describe(self, name: str) -> str:
        """Return what may be written about a confidential column, in words."""
        points = self._stated.get(name, ())
        if not points:
            return f"leave it out, or ask the data owner to declare public cut points of {name}."
        shown = ", ".join(_literal(point).sql() for point in points[:_SHOWN])
        more = ", ..." if len(points) > _SHOWN else ""
        signs = "= and <>" if _is_named(self._schema[name]) else "< and >="
        return (
            f"compare {name} alone, by {signs}, with one of {shown}{more}; join such conditions with AND, OR and NOT."
        )

    def _compiled(self, cut: exp.Expression) -> exp.Expression | None:
        select = exp.select(exp.Count(this=exp.Star())).from_(self._table).where(cut)
        return compile_select(select, self._catalog).question.rows.condition

    def _group(self, name: str) -> exp.Expression:
        column = exp.column(name, quoted=True)
        select = exp.select(column, exp.Count(this=exp.Star())).from_(self._table).group_by(column.copy())
        return compile_select(select, self._catalog).question.keys[0].group


def _is_named(column: Column) -> bool:
    """Return whether values are called by their names, and not put in order."""
    return column.categories is not None or column.kind not in (Kind.NUMERIC, Kind.ORDINAL, Kind.DATETIME)


def _cuts(column: Column, points: Sequence[Cut]) -> Iterable[exp.Expression]:
    """Give the conditions that cut a column; ordered ones always between a point and what is below it."""
    name = exp.column(column.name, quoted=True)
    yield exp.Is(this=name.copy(), expression=exp.Null())
    signs: tuple[tuple[Any, Any], ...] = ((exp.LT, exp.GT), (exp.GTE, exp.LTE))
    if _is_named(column):
        signs = ((exp.EQ, exp.EQ), (exp.NEQ, exp.NEQ))
    for point in points:
        for sign, turned in signs:
            yield sign(this=name.copy(), expression=_literal(point))
            yield turned(this=_literal(point), expression=name.copy())


def _literal(point: Cut) -> exp.Expression:
    """Return a cut point as it is written in SQL."""
    if isinstance(point, bool):
        return exp.Boolean(this=point)
    if isinstance(point, str):
        return exp.Literal.string(point)
    size = exp.Literal.number(abs(point))
    return size if point >= 0 else exp.Neg(this=size)
