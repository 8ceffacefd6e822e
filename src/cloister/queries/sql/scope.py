"""Names in a query: which columns of which tables they stand for. Nothing outside the catalog has a name."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

from sqlglot import exp

from cloister.data.engines.base import Engine
from cloister.data.engines.predicates import find_name, quoted, unknown_column
from cloister.errors import UnknownColumnError, UnsafeQueryError, did_you_mean
from cloister.queries.sql.terms import Change, Term

__all__ = ["Columns", "Relation", "Scope"]

Columns: TypeAlias = Mapping[str, Callable[[], Term]]
"""The terms of a table by name, made when they are used."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Relation:
    """Rows that a query selects from, with the columns that it may name.

    Attributes:
        engine: where the rows are.
        source: what stands after FROM.
        physical: the names that the SQL of its columns mentions.
        columns: what the query may name.
        condition: which rows count.
        person: SQL for the unit of privacy; None when every row is a unit.
        rows_per_person: how many rows a person has by construction; None: any.
    """

    engine: Engine
    source: exp.Expression
    physical: tuple[str, ...]
    columns: Columns = field(repr=False)
    condition: exp.Expression | None = None
    person: exp.Expression | None = None
    rows_per_person: int | None = None

    def where(self, condition: exp.Expression | None) -> Relation:
        """Return the rows for which a condition holds, too."""
        return replace(self, condition=both(self.condition, condition))


def both(left: exp.Expression | None, right: exp.Expression | None) -> exp.Expression | None:
    """Return the conjunction of two conditions, None being true."""
    if left is None or right is None:
        return right if left is None else left
    return exp.And(this=exp.paren(left, copy=False), expression=exp.paren(right, copy=False))


def changed(columns: Columns, change: Change) -> Columns:
    """Return the same columns over other SQL."""
    return {name: _changed(make, change) for name, make in columns.items()}


def _changed(make: Callable[[], Term], change: Change) -> Callable[[], Term]:
    return lambda: make().rewritten(change)


class Scope:
    """The tables of one FROM clause by alias."""

    def __init__(self, tables: Mapping[str, Columns], *, shared: frozenset[str] = frozenset()) -> None:
        self.tables = dict(tables)
        self.shared = shared
        self._found: dict[tuple[str, str], Term] = {}

    @property
    def names(self) -> list[str]:
        """Return the names of all columns."""
        return list(dict.fromkeys(name for columns in self.tables.values() for name in columns))

    def find(self, node: exp.Column) -> Term:
        """Return the column that a name stands for.

        Raises:
            UnknownColumnError: if there is none.
            UnsafeQueryError: if there are several.
        """
        identifier = node.this
        if not isinstance(identifier, exp.Identifier):
            raise UnsafeQueryError(
                f"{quoted(node)} stands for all columns, which would show rows.",
                fix="name the columns in aggregates, or write COUNT(*).",
            )
        places = self._places(node, identifier)
        if not places:
            raise unknown_column(node, self.names)
        if len(places) > 1 and places[0][1] not in self.shared:
            raise UnsafeQueryError(
                f'"{identifier.name}" is a column of several tables.',
                fix=f"say which one: {' or '.join(f'{alias}.{name}' for alias, name in places)}.",
            )
        return self._term(places[0])

    def has(self, node: exp.Column) -> bool:
        """Return whether a name stands for a column."""
        try:
            return isinstance(node.this, exp.Identifier) and bool(self._places(node, node.this))
        except UnknownColumnError:
            return False

    def place(self, node: Any) -> tuple[str, str] | None:  # a node of any kind
        """Return the table and the name of the one column that a node is; None for other nodes."""
        if not isinstance(node, exp.Column) or not isinstance(node.this, exp.Identifier):
            return None
        places = self._places(node, node.this)
        return places[0] if len(places) == 1 or (places and places[0][1] in self.shared) else None

    def _places(self, node: exp.Column, identifier: exp.Identifier) -> list[tuple[str, str]]:
        """Return where a name occurs; names that are spelled exactly so come before those that differ in case."""
        tables = self._tables(node)
        exactly = [(alias, identifier.name) for alias in tables if identifier.name in self.tables[alias]]
        if exactly:
            return exactly
        near = [(alias, find_name(identifier, self.tables[alias])) for alias in tables]
        return [(alias, name) for alias, name in near if name is not None]

    def _tables(self, node: exp.Column) -> list[str]:
        qualifier = node.args.get("table")
        if qualifier is None:
            return list(self.tables)
        alias = find_name(qualifier, self.tables)
        if alias is None:
            raise UnknownColumnError(f"{qualifier.name}.{node.name}", self.names)
        return [alias]

    def _term(self, place: tuple[str, str]) -> Term:
        if place not in self._found:
            alias, name = place
            self._found[place] = self.tables[alias][name]()
        return self._found[place]


def no_table(name: str, known: list[str]) -> UnsafeQueryError:
    """Return the error for a table that the catalog does not have."""
    return UnsafeQueryError(
        f'There is no table "{name}".{did_you_mean(name, known)}', fix=f"select from one of {', '.join(known)}."
    )
