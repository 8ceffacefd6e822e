"""What a model and its rows say about their columns: what a person stated, and nothing that was read from the data."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from cloister.data.columns import Column, Kind, Role
from cloister.data.schema import Schema

__all__ = ["public_schema"]


def public_schema(schema: Schema, names: Collection[str]) -> Schema:
    """Return the stated facts of some columns, which may be handed out with a model.

    Guessed facts and the evidence for them come from the rows. Hierarchies may list the values of the rows. Neither is
    needed to draw rows, so all of them are left out.

    Args:
        schema: what is known of the columns, guesses among it.
        names: the columns that are kept.
    """
    return Schema(_stated(column) for name, column in schema.columns.items() if name in names)


def _stated(column: Column) -> Column:
    guessed = column.guessed
    return replace(
        column,
        role=Role.QUASI if "role" in guessed else column.role,
        kind=Kind.NOMINAL if "kind" in guessed and column.categories is not None else column.kind,
        storage=column.stated_storage,
        bounds=None if "bounds" in guessed else column.bounds,
        categories=None if "categories" in guessed else column.categories,
        hierarchy=None,
        hierarchy_file=None,
        subject=column.subject and "subject" not in guessed,
        guessed=frozenset(),
        evidence="",
    )
