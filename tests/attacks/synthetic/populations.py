"""Made-up people, and synthetic tables about them: fresh, or with rows copied from the original."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from cloister.core.random import SeededRandomSource, integers_below

JOBS = np.array(["clerk", "nurse", "pilot", "smith"])
TOWNS = np.array([f"town {place}" for place in range(30)])


def people(count: int, *, seed: int) -> pa.Table:
    """Return people whose columns hang together a little."""
    draws = integers_below(SeededRandomSource(seed), 10**6, 6 * count).reshape(6, count)
    job = draws[0] % 4
    return pa.table(
        {
            "age": 20 + 10 * job + draws[1] % 30,
            "weight": 50 + (draws[2] % 500_000) / 10_000,
            "job": JOBS[job],
            "town": TOWNS[draws[3] % 30],
            "ill": np.where(draws[4] % 10 < 2 + job, "yes", "no"),
            "visits": draws[5] % 40,
        }
    )


def with_copies(made: pa.Table, original: pa.Table, share: float) -> pa.Table:
    """Return a table of which a share of the rows is copied from the original."""
    count = round(share * len(made))
    return pa.concat_tables([made.slice(count), original.slice(0, count)])


def values(table: pa.Table) -> list[Any]:
    """Return the rows."""
    found: list[Any] = table.to_pylist()
    return found
