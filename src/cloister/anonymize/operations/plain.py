"""How the settings of operations are written as plain values for a recipe, and read back.

Numbers stay exact: a fraction that no decimal expresses is written as text such as ``1/3``. Hierarchies are written
whole, as text; secrets are written as the place where they are kept, never as what they are.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date
from fractions import Fraction
from pathlib import Path
from typing import Any

from cloister.anonymize.operations.secret import Secret
from cloister.data.hierarchy import Hierarchy
from cloister.data.schema_file import Block, read_hierarchy
from cloister.errors import ParameterError, ParameterTypeError


def to_plain(value: Any, *, folder: Path | None) -> Any:  # a setting of any type
    """Return a setting as JSON-ready values; the paths of secrets count from a folder, if one is given."""
    match value:
        case Fraction():
            return plain_number(value)
        case tuple():
            return [to_plain(item, folder=folder) for item in value]
        case Secret():
            return value.to_dict(folder=folder)
        case Hierarchy():
            return Block(value.to_csv_text())
        case date():
            return value.isoformat()
        case _:
            return value


def from_plain(name: str, value: Any, *, folder: Path | None) -> Any:  # a setting of any type
    """Return a setting as the operation takes it: files are found from a folder, and not opened without one."""
    if name == "hierarchy":
        return read_hierarchy(value, name, folder)[0]
    if name == "key":
        return Secret.of(value, folder=folder)
    return value


def plain_number(value: Fraction) -> int | float | str:
    """Return a rational as a number that is read back exactly, or else as text."""
    if value.denominator == 1:
        return int(value)
    try:
        near = float(value)
    except OverflowError:
        return str(value)
    return near if Fraction(repr(near)) == value else str(value)


def names(value: object, *, what: str = "columns") -> tuple[str, ...]:
    """Return one name or several as a tuple.

    Raises:
        ParameterTypeError: if they are no names.
        ParameterError: if there are none, or one is there twice.
    """
    listed = (value,) if isinstance(value, str) else value
    if not isinstance(listed, Sequence) or not all(isinstance(item, str) for item in listed):
        raise ParameterTypeError(f"{what} is not a list of names.", fix=f'write for example {what}=["age", "zip"].')
    if len(set(listed)) != len(listed):
        raise ParameterError(f"{what} names a column twice.", fix="name each column once.")
    if not listed:
        raise ParameterError(f"{what} names no column.", fix="name at least one column.")
    return tuple(listed)


def name(value: object) -> str:
    """Return one name of a column."""
    if not isinstance(value, str) or not value:
        raise ParameterTypeError("column is not the name of a column.", fix='write for example column="age".')
    return value
