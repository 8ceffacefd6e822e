"""Keeping a person to a number of rows by dropping the others, for one question; see `cloister.data.persons`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from sqlglot import exp

from cloister.data.persons import digest, first_rows
from cloister.queries.question import Rows

__all__ = ["bounded_rows"]


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
    source, kept = first_rows(rows.source, person=person, order=order, limit=limit, condition=rows.condition)
    return replace(rows, source=source, condition=kept)
