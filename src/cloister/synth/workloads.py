"""The sets of columns that somebody asks about."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from cloister.errors import ParameterError, ParameterTypeError
from cloister.synth.domain import Domain

__all__ = ["asked_columns"]


def asked_columns(workload: Any, domain: Domain, *, most: int = 6) -> list[tuple[int, ...]]:
    """Return sets of columns by position, each once, or refuse what is no list of lists of columns."""
    if isinstance(workload, str) or not isinstance(workload, Sequence):
        raise ParameterTypeError(
            "workload is not a list of lists of columns.", fix='write workload=[["age", "income"], ["sex", "age"]].'
        )
    asked = list(dict.fromkeys(domain.positions(item) for item in workload))
    if not asked or any(not 1 <= len(set(item)) <= most or len(set(item)) < len(item) for item in asked):
        raise ParameterError(
            f"Each set of the workload must name one to {most} columns, each once.",
            fix='write workload=[["age", "income"]].',
        )
    return asked
