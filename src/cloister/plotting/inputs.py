"""What people pass to a chart, as values that JSON knows: finite numbers, text and moments."""

from __future__ import annotations

import itertools
import math
import textwrap
from collections.abc import Iterable, Sequence
from datetime import UTC, date, datetime
from decimal import Decimal
from numbers import Real
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from cloister.core.wordings import format_number, format_with_margin
from cloister.errors import ParameterError, ParameterTypeError

Items: TypeAlias = "Sequence[object] | NDArray[Any]"
"""One item per mark: a list, an array, or a column of a data frame."""

MISSING = "(missing)"
"""How a missing label reads."""


def items(values: object, *, name: str) -> list[Any]:
    """Return a sequence as a list of plain Python values, None where one is missing."""
    if isinstance(values, str | bytes) or not isinstance(values, Iterable):
        raise ParameterTypeError(f"{name} is not a sequence.", fix=f"give {name} as a list, one item per mark.")
    return [_plain(value) for value in values]


def numbers(values: object, *, name: str) -> list[float | None]:
    """Return finite numbers, None where one is missing."""
    return [_number(value, name=name) for value in items(values, name=name)]


def some_numbers(values: object, *, name: str) -> list[float | None]:
    """Return finite numbers of which at least one is there."""
    found = numbers(values, name=name)
    if all(value is None for value in found):
        raise ParameterError(
            f"There is nothing to draw: {name} holds no number.", fix=f"give at least one number in {name}."
        )
    return found


def margins(values: object, *, count: int, name: str = "margins") -> list[float | None]:
    """Return one margin of error per value, None where it is not known; nothing at all means that none is known."""
    if values is None:
        return [None] * count
    found = numbers(values, name=name)
    same_length(count, len(found), names=("values", name))
    if any(margin is not None and margin < 0 for margin in found):
        raise ParameterError(f"{name} holds a negative number.", fix="give half-widths: the number in front is the ±.")
    return found


def labels(values: object, *, name: str) -> list[str]:
    """Return labels as text, each wrapped to lines of a readable length."""
    return [text(value) for value in items(values, name=name)]


def distinct_labels(values: object, *, name: str) -> list[str]:
    """Return labels as text that differ from each other."""
    found = labels(values, name=name)
    if len(set(found)) < len(found):
        raise ParameterError(f"{name} holds the same label twice.", fix="give every item a label of its own.")
    return found


def same_length(first: int, second: int, *, names: tuple[str, str]) -> None:
    """Refuse two sequences that do not belong together."""
    if first != second:
        raise ParameterError(
            f"{names[0]} has {first} items, {names[1]} has {second}.",
            fix="give sequences of the same length, with None where something is missing.",
        )


def are_ordered(values: object) -> bool:
    """Return whether labels are numbers or dates in ascending order, so that a reader can fill in the ones between."""
    found = [_plain(value) for value in values] if isinstance(values, Iterable) else []
    for kind in (Real | Decimal, datetime, date):
        # True is a number for Python, but no place on a scale.
        if all(isinstance(value, kind) and not isinstance(value, bool) for value in found):
            return all(first < second for first, second in itertools.pairwise(found))
    return False


def text(value: object, *, width: int = 36) -> str:
    """Return a label as text, in lines of at most a width."""
    value = _plain(value)
    if value is None:
        return MISSING
    if isinstance(value, float):
        value = f"{value:.12g}"
    elif isinstance(value, datetime):
        value = value.isoformat(sep=" ").removesuffix(" 00:00:00")
    written = "\n".join(wrap_lines(str(value), width))
    return written or '""'


def wrap_lines(sentence: str, width: int) -> list[str]:
    """Return the lines of a text; words longer than a line are cut."""
    return [line for part in sentence.splitlines() for line in textwrap.wrap(part, width)]


def number_with_margin(value: float | None, margin: float | None = None) -> str:
    """Return a number with as many decimals as its margin deserves.

    >>> number_with_margin(1247.318, 12.4), number_with_margin(0.1234567, 0.00213), number_with_margin(1300, 12)
    ('1,247 ± 12', '0.1235 ± 0.0021', '1,300 ± 12')
    """
    if value is None:
        return "no value"
    shown = format_number(value) if margin is None else format_with_margin(value, margin)
    return shown.replace("-", "\N{MINUS SIGN}")


def moment(value: datetime | date) -> str:
    """Return a date or time as ISO text in UTC; a time without a zone is taken as UTC."""
    if not isinstance(value, datetime):
        return value.isoformat()
    aware = value.replace(tzinfo=UTC) if value.tzinfo is None else value.astimezone(UTC)
    return aware.isoformat().replace("+00:00", "Z")


def present(values: Iterable[float | None]) -> list[float]:
    """Return the numbers that are there."""
    return [value for value in values if value is not None]


def flatten(table: object, *, shape: tuple[int, int]) -> list[float | None]:
    """Return a table of numbers row by row."""
    lines: list[Sequence[float | None]] = [numbers(row, name="values") for row in items(table, name="values")]
    same_length(shape[0], len(lines), names=("rows", "values"))
    for line in lines:
        same_length(shape[1], len(line), names=("columns", "a row of values"))
    return some_numbers([value for line in lines for value in line], name="values")


def _plain(value: Any) -> Any:  # whatever a caller gave: NumPy, pandas, Arrow or Python
    if hasattr(value, "as_py"):
        value = value.as_py()
    if isinstance(value, np.datetime64):
        value = value.astype("datetime64[us]").item()
    elif isinstance(value, np.generic):
        value = value.item()
    return None if _is_missing(value) else value


def _is_missing(value: Any) -> bool:  # whatever a caller gave
    if value is None or value is np.ma.masked or type(value).__name__ == "NAType":
        return True
    return isinstance(value, Real | Decimal | datetime) and bool(value != value)  # noqa: PLR0124  # NaN and NaT


def _number(value: object, *, name: str) -> float | None:
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, Real | Decimal):
        raise ParameterTypeError(f"{name} holds something that is not a number.", fix=f"give {name} as numbers.")
    try:
        found = float(value)
    except OverflowError:
        found = math.inf
    if math.isinf(found):
        raise ParameterError(
            f"{name} holds a number that is too large to draw.", fix="give finite numbers, or None for no number."
        )
    return found
