"""Limits of rows per person: keeping a person to a number of rows by dropping the others, inside the engine.

The rows that stay are a function of the person's own rows: they are ordered by what is asked for and then by every
value that is looked at, so that rows which still tie are the same to whoever looks, and one may stand for the other.
Rows that name no person are left out. A table that differs in one person's rows therefore differs in at most so many.
"""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
from sqlglot import exp

from cloister.data.engines.base import ARROW_TYPES, ROWS, literal, value
from cloister.data.table import Table
from cloister.data.values import StorageType
from cloister.errors import UnknownColumnError

__all__ = ["digest", "first_rows", "rows_of_persons"]

_PLACE = "cloister_place"


def first_rows(
    source: exp.Expression,
    *,
    person: exp.Expression,
    order: Sequence[exp.Expression],
    limit: int,
    condition: exp.Expression | None = None,
) -> tuple[exp.Subquery, exp.Expression]:
    """Return a source with the place of each row among its person's, and the condition that keeps the first ones.

    Args:
        source: where the rows are.
        person: SQL for the person.
        order: what a person's rows are ordered by; missing values come last.
        limit: how many rows of a person stay.
        condition: which rows count at all.
    """
    by = [exp.Ordered(this=item.copy(), nulls_first=False) for item in order] or [exp.Ordered(this=person.copy())]
    place = exp.Window(this=exp.RowNumber(), partition_by=[person.copy()], order=exp.Order(expressions=by))
    ranked = exp.select("*", exp.alias_(place, _PLACE, quoted=True)).from_(source)
    if condition is not None:
        ranked = ranked.where(condition.copy())
    ranked = ranked.where(exp.Not(this=exp.Is(this=person.copy(), expression=exp.Null())))
    kept = exp.LTE(this=exp.column(_PLACE, quoted=True), expression=literal(limit, StorageType.INTEGER))
    return ranked.subquery(ROWS), kept


def rows_of_persons(table: Table, *, unit: str, columns: Sequence[str], limit: int) -> Table:
    """Return some columns of a table, with at most ``limit`` rows of each person; the rows stay in their engine.

    Args:
        table: the rows.
        unit: the column that names the person.
        columns: the columns that will be looked at.
        limit: how many rows of a person stay, chosen by a digest of what they hold.
    """
    engine = table.engine
    unknown = next((name for name in (unit, *columns) if name not in engine.names), None)
    if unknown is not None:
        raise UnknownColumnError(str(unknown), engine.names)
    person = value(engine, engine.names.index(unit))
    places = [engine.names.index(name) for name in columns]
    looked_at = [value(engine, place) for place in places]
    # By a digest first, so that neither small nor early values are favored; the values decide between equal digests.
    order = [digest([person, *looked_at]), *looked_at]
    source, kept = first_rows(engine.source(), person=person, order=order, limit=limit)
    named = [exp.alias_(item.copy(), name, quoted=True) for item, name in zip(looked_at, columns, strict=True)]
    types = pa.schema([(name, ARROW_TYPES[engine.types[place]]) for name, place in zip(columns, places, strict=True)])
    return Table(engine.derive(exp.select(*named).from_(source).where(kept), types, {}))


def digest(values: Sequence[exp.Expression]) -> exp.Expression:
    """Return SQL for a digest of several values of one row, the same whenever they are the same."""
    parts: list[exp.Expression] = []
    for item in values:
        text = exp.cast(item.copy(), "TEXT")
        parts += [exp.Coalesce(this=text, expressions=[exp.Literal.string("")]), exp.Literal.string("|")]
    return exp.MD5(this=exp.Concat(expressions=parts, safe=True))
