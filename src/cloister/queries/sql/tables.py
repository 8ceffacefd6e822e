"""The private tables of the catalog as relations: columns by position, with what the schema makes public."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from fractions import Fraction

from cloister.data.engines.base import value
from cloister.data.engines.predicates import FAMILIES, Family
from cloister.data.profile import StorageType
from cloister.data.table import Table
from cloister.errors import MissingBoundsError
from cloister.queries.columns import column_key, person_value
from cloister.queries.sql.scope import Relation
from cloister.queries.sql.terms import Domain, Limits, Measured, Span, Term

__all__ = ["private_relation"]


def private_relation(table: Table, person: str | None) -> Relation:
    """Return the rows of a private table."""
    names = table.columns if table.schema is None else table.schema.names
    columns = {name: _maker(table, name, is_person=name == person) for name in names}
    unit = None if person is None else person_value(table, person)
    physical = tuple(f"c{position}" for position in range(len(table.columns)))
    return Relation(engine=table.engine, source=table.engine.source(), physical=physical, columns=columns, person=unit)


def _maker(table: Table, name: str, *, is_person: bool) -> Callable[[], Term]:
    return lambda: _column(table, name, is_person=is_person)


def _column(table: Table, name: str, *, is_person: bool) -> Term:
    position = table.columns.index(name)
    storage = table.engine.types[position]
    family = FAMILIES[storage]
    return Term(
        sql=value(table.engine, position),
        family=family,
        storage=storage,
        label=name,
        numeric=_measured(table, name, position, storage) if family is Family.NUMBER else None,
        domain=lambda: _domain(table, name),
        span=lambda: _span(table, name),
        is_person=is_person,
    )


def _measured(table: Table, name: str, position: int, storage: StorageType) -> Measured:
    return Measured(
        stored=table.engine.stored(position), storage=storage, label=name, limits=lambda: _limits(table, name)
    )


def _domain(table: Table, name: str) -> Domain | None:
    key = column_key(table, name)
    return None if key.values is None else Domain(key.values, key.shown or key.values)


def _limits(table: Table, name: str) -> Limits:
    """Return the schema's bounds of a number; none where it has none, so that the query may state them."""
    try:
        low, high = (None, None) if table.schema is None else table.schema.bounds_of(name)
    except MissingBoundsError:
        return None, None
    if isinstance(low, Fraction) and isinstance(high, Fraction):
        return low, high
    return None, None


def _span(table: Table, name: str) -> Span | None:
    try:
        ends = (None, None) if table.schema is None else table.schema.bounds_of(name)
    except MissingBoundsError:
        return None
    first, last = ends
    if isinstance(first, dt.date) and isinstance(last, dt.date):
        return first, last
    return None
