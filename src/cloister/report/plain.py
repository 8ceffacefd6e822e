"""Reports as plain values, which JSON can hold, and back."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import fields, is_dataclass
from enum import Enum
from typing import Any

from cloister.errors import ParameterError
from cloister.plotting import Figure
from cloister.report.blocks import BLOCKS, Block, Check, KeyFigure, Series
from cloister.report.status import Verdict


def values_of(value: Any) -> Any:  # any part of a report
    """Return a part of a report as dictionaries, lists, text and numbers."""
    if isinstance(value, Figure):
        return value.to_dict()
    if is_dataclass(value):
        kind = getattr(value, "block", None)
        named = {item.name: values_of(getattr(value, item.name)) for item in fields(value)}
        return named if kind is None else {"block": kind, **named}
    if isinstance(value, tuple):
        return [values_of(item) for item in value]
    return value.value if isinstance(value, Enum) else value


def block_from(values: Mapping[str, Any]) -> Block:
    """Return the block that was turned into plain values."""
    given = dict(values)
    kind = BLOCKS[given.pop("block")]
    return kind(**{name: _READERS.get((kind.block, name), _same)(value) for name, value in given.items()})


def cells_from(rows: Any) -> list[list[Any]]:
    """Return rows of cells, with verdicts where they were."""
    return [[Verdict(**cell) if isinstance(cell, Mapping) else cell for cell in row] for row in rows]


def checked(values: Mapping[str, Any], *, schema: str) -> dict[str, Any]:
    """Return the values of a document of a known version, without its marker."""
    given = dict(values)
    if given.pop("schema") != schema:
        raise KeyError("schema")
    return given


@contextlib.contextmanager
def reading() -> Iterator[None]:
    """Turn everything that can be wrong with plain values into one clear error."""
    try:
        yield
    except (KeyError, TypeError, ValueError, AttributeError):
        raise ParameterError(
            "These values are not a report of this version of cloister.",
            fix="give the values that Report.to_dict() returned, unchanged, or a report that was written as .json.",
        ) from None


def _same(value: Any) -> Any:
    return value


def _each(kind: Callable[..., Any]) -> Callable[[Any], list[Any]]:
    return lambda values: [kind(**value) for value in values]


_READERS: dict[tuple[str, str], Callable[[Any], Any]] = {
    ("facts", "rows"): cells_from,
    ("table", "rows"): cells_from,
    ("key-figures", "figures"): _each(KeyFigure),
    ("bars", "series"): _each(Series),
    ("checklist", "items"): _each(Check),
    ("chart", "figure"): Figure.from_dict,
    ("panels", "blocks"): lambda blocks: [block_from(block) for block in blocks],
}
