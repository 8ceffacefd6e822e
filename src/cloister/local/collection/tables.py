"""People's values as columns: from columns by name, or from one mapping for each person."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from cloister.errors import UnknownColumnError

__all__ = ["columns_of"]


def columns_of(table: Any, names: Iterable[str]) -> dict[str, Any]:  # whatever has columns, or people
    """Return the values of each name.

    Args:
        table: a mapping, a data frame or an Arrow table; or a list with one mapping for each person.
        names: the columns that are needed.

    Raises:
        UnknownColumnError: if one is not there, or not for every person; the values are not told.
    """
    if isinstance(table, list | tuple) and table and all(isinstance(person, Mapping) for person in table):
        return {name: [_value(person, name) for person in table] for name in names}
    return {name: _value(table, name) for name in names}


def _value(table: Any, name: str) -> Any:  # whatever has columns
    try:
        return table[name]
    except (KeyError, IndexError, TypeError, ValueError):
        raise _missing(name, _names(table)) from None


def _missing(name: str, names: list[str]) -> UnknownColumnError:
    error = UnknownColumnError(name, names)
    listing = ", ".join(names[:20]) + (", ..." if len(names) > 20 else "")
    there = f" There are: {listing}." if names else ""
    error.fix = f'add the column "{name}" to the people\'s values, or drop the question.{there}'
    return error


def _names(table: Any) -> list[str]:  # whatever has columns
    """Return the names of the columns; the columns of an Arrow table are people's values."""
    found = table if isinstance(table, Mapping) else getattr(table, "column_names", getattr(table, "columns", ()))
    names = getattr(getattr(table, "schema", None), "names", found)
    return [name for name in names if isinstance(name, str)]
