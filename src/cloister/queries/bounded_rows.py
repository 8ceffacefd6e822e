"""Keeping a person to a number of rows by dropping the others, inside the engine.

The rows that stay are a function of the person's own rows: they are ordered by what is asked for and then by every
value that the question looks at, so that rows which still tie are the same to the question, and one may stand for the
other.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from sqlglot import exp

from cloister.data.engines.base import ROWS, literal
from cloister.data.profile import StorageType
from cloister.queries.question import Rows

__all__ = ["bounded_rows", "digest"]


def bounded_rows(
    rows: Rows, *, limit: int, looked_at: Sequence[exp.Expression], first_by: exp.Expression | None, sample: bool
) -> Rows:
    """Return rows of which each person has at most ``limit``.

    Args:
        rows: the rows.
        limit: how many rows of a person stay.
        looked_at: every value that the question looks at.
        first_by: the order in which the first rows stay.
        sample: whether an order that looks random comes first.
    """
    person = exp.Null() if rows.person is None else rows.person
    order: list[exp.Expression] = [] if first_by is None else [first_by]
    if sample:
        order.append(digest([person, *looked_at]))
    order += looked_at
    sorted_by = [exp.Ordered(this=item.copy(), nulls_first=False) for item in order] or [
        exp.Ordered(this=person.copy())
    ]
    place = exp.Window(this=exp.RowNumber(), partition_by=[person.copy()], order=exp.Order(expressions=sorted_by))
    ranked = exp.select("*", exp.alias_(place, "cloister_place", quoted=True)).from_(rows.source)
    if rows.condition is not None:
        ranked = ranked.where(rows.condition.copy())
    ranked = ranked.where(exp.Not(this=exp.Is(this=person.copy(), expression=exp.Null())))
    kept = exp.LTE(this=exp.column("cloister_place", quoted=True), expression=literal(limit, StorageType.INTEGER))
    return replace(rows, source=ranked.subquery(ROWS), condition=kept)


def digest(values: Sequence[exp.Expression]) -> exp.Expression:
    """Return SQL for a digest of several values of one row, the same whenever they are the same."""
    parts: list[exp.Expression] = []
    for value in values:
        text = exp.cast(value.copy(), "TEXT")
        parts += [exp.Coalesce(this=text, expressions=[exp.Literal.string("")]), exp.Literal.string("|")]
    return exp.MD5(this=exp.Concat(expressions=parts, safe=True))
