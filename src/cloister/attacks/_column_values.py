"""The values of a column that a caller gives: a list, an array, a frame's series or an Arrow array."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

from cloister.errors import ParameterError, ParameterTypeError

__all__ = ["values_of"]


def values_of(column: Any, *, name: str) -> list[Any]:
    """Return the values of a column.

    Raises:
        ParameterError: if it is empty, or has missing values.
        ParameterTypeError: if it is no column of single values.
    """
    if isinstance(column, str | bytes) or not hasattr(column, "__iter__"):
        raise ParameterTypeError(f"{name} is not a column.", fix=f"give {name} as a list or an array.")
    rows = column.to_pylist() if hasattr(column, "to_pylist") else column
    rows = rows.tolist() if hasattr(rows, "tolist") else list(rows)
    if not rows or any(value is None or value != value for value in rows):  # noqa: PLR0124  # NaN is not itself
        raise ParameterError(f"{name} is empty, or has missing values.", fix=f"leave missing values out of {name}.")
    if not all(isinstance(value, Hashable) for value in rows):
        raise ParameterTypeError(f"{name} has values that are lists.", fix="give one value for each row.")
    return rows
