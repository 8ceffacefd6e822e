"""Controlled tables to ask in tests, and a slow, obvious audit to compare with."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa

from cloister import Schema
from cloister.data.table import Table
from cloister.queries.inference_control import ControlledTable, Controls
from cloister.queries.inference_control._linear_audit import Mask
from tests.queries.neighbors import fast_table

SALARIES = (1000, 2000, 3000, 2000, 1000, 6000, 2000, 10000, 2000, 4000)
TEN = Schema.from_dict(
    {
        "columns": {
            "id": {"kind": "numeric", "bounds": [1, 100], "role": "quasi"},
            "sex": {"categories": ["F", "M"], "role": "quasi"},
            "salary": {"kind": "numeric", "bounds": [0, 100_000], "role": "sensitive"},
        }
    }
)


def ten_people() -> Table:
    """Return ten salaries, ids 1 to 5 of women, 6 to 10 of men."""
    rows = {"id": list(range(1, 11)), "sex": ["F"] * 5 + ["M"] * 5, "salary": list(SALARIES)}
    return fast_table(pa.table(rows), schema=TEN)


def ten(**controls: Any) -> ControlledTable:
    """Return the ten people under a size of 2 and other controls."""
    return ControlledTable(ten_people(), controls=Controls(**{"min_size": 2, **controls}))


STAFF = Schema.from_dict(
    {
        "columns": {
            "name": {"role": "identifier"},
            "number": {"kind": "numeric", "bounds": [0, 500], "role": "quasi"},
            "sex": {"categories": ["F", "M", "X"], "role": "quasi"},
            "ward": {"categories": ["north", "south", "east"], "role": "quasi"},
            "hired": {"kind": "datetime", "bounds": ["2020-01-01", "2026-12-31"], "role": "insensitive"},
            "salary": {"kind": "numeric", "bounds": [0, 100_000], "role": "sensitive"},
            "bonus": {"kind": "numeric", "bounds": [0, 10], "role": "sensitive"},
            "illness": {"categories": ["none", "flu", "cancer"], "role": "sensitive"},
            "note": {"role": "insensitive"},
        }
    }
)


def staff_rows(size: int = 120) -> pa.Table:
    """Return people with salaries, of which every eleventh is missing."""
    numbers = range(size)
    return pa.table(
        {
            "name": [f"person {number}" for number in numbers],
            "number": list(numbers),
            "sex": ["F" if number % 2 else "M" for number in numbers],
            "ward": ["south" if number % 3 else "north" for number in numbers],
            "hired": pa.array([18_300 + number for number in numbers], pa.int32()).cast(pa.date32()),
            "salary": pa.array([1000 + 7 * number if number % 11 else None for number in numbers], pa.int64()),
            "bonus": [number % 8 / 4 for number in numbers],
            "illness": ["flu" if number % 4 == 0 else "cancer" if number == 5 else "none" for number in numbers],
            "note": [f"n{number}" for number in numbers],
        }
    )


CUT_POINTS = {"salary": (1500,), "illness": ("none", "flu", "cancer")}


def staff(size: int = 120, *, controls: Controls | None = None, **options: Any) -> ControlledTable:
    """Return a controlled table of the staff, with cut points where no controls are given."""
    chosen = Controls(cut_points=CUT_POINTS) if controls is None else controls
    return ControlledTable(fast_table(staff_rows(size), schema=STAFF), controls=chosen, **options)


Pivots = list[tuple[int, list[Fraction]]]


def eliminated(vectors: Sequence[Mask]) -> Pivots:
    """Return the pivots of vectors and their columns, by elimination over the rationals."""
    rows = [[Fraction(int(item)) for item in vector] for vector in vectors]
    pivots: Pivots = []
    for column in range(len(rows[0]) if rows else 0):
        pivot = next((row for row in rows if row[column]), None)
        if pivot is not None:
            rows.remove(pivot)
            rows = [_cleared(row, column, pivot) for row in rows]
            pivots.append((column, pivot))
    return pivots


def _cleared(row: list[Fraction], column: int, pivot: list[Fraction]) -> list[Fraction]:
    if not row[column]:
        return row
    factor = row[column] / pivot[column]
    return [a - factor * b if b else a for a, b in zip(row, pivot, strict=True)]


def is_combination(pivots: Pivots, wanted: Sequence[int]) -> bool:
    target = [Fraction(item) for item in wanted]
    for column, pivot in pivots:
        target = _cleared(target, column, pivot)
    return not any(target)


def spans(vectors: Sequence[Mask], wanted: Sequence[int]) -> bool:
    """Return whether a vector is a combination of others."""
    return is_combination(eliminated(vectors), wanted)


def singles_given_away(vectors: Sequence[Mask]) -> list[int]:
    """Return the rows whose value follows from sums over sets."""
    if not vectors:
        return []
    units, pivots = np.eye(len(vectors[0]), dtype=int), eliminated(vectors)
    return [place for place, unit in enumerate(units) if is_combination(pivots, unit.tolist())]


def pairs_given_away(vectors: Sequence[Mask]) -> list[tuple[int, int]]:
    """Return the pairs of rows of which one value follows when the other is known."""
    size = len(vectors[0]) if vectors else 0
    units = np.eye(size, dtype=int)
    with_one = [eliminated([*vectors, unit == 1]) for unit in units]
    return [
        (known, other)
        for known, pivots in enumerate(with_one)
        for other in range(size)
        if other != known and is_combination(pivots, units[other].tolist())
    ]
