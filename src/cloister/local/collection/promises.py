"""The promise of a whole collection, written on every estimate in it."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Any, TypeVar

from cloister.core.guarantees import Guarantee
from cloister.core.result import Result

__all__ = ["promised"]

_R = TypeVar("_R", bound=Result)


def promised(estimate: _R, guarantee: Guarantee, *notes: str) -> _R:
    """Return an estimate that carries a guarantee, as do the estimates within it: those of a vector's numbers, a mean.

    Args:
        estimate: of any protocol.
        guarantee: what its people are promised in all.
        notes: further sentences, for estimates that have notes.
    """
    changes: dict[str, Any] = {"guarantee": guarantee}
    for field in fields(estimate):
        value = getattr(estimate, field.name)
        if isinstance(value, Result):
            changes[field.name] = promised(value, guarantee)
        elif isinstance(value, tuple) and value and all(isinstance(item, Result) for item in value):
            changes[field.name] = tuple(promised(item, guarantee) for item in value)
    if hasattr(estimate, "notes"):
        changes["notes"] = (*estimate.notes, *notes)
    return replace(estimate, **changes)
