"""Small tables behind the interfaces that attacks are run against."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

import cloister as cl
from cloister.core.random import RandomSource, integers_below, permutation
from cloister.data.table import Table

PRIME = 1009


def salary_table(salaries: Sequence[int], *, women: int) -> Table:
    """Return people with ids from 1, of whom the first are women."""
    people = len(salaries)
    rows = pa.table(
        {"id": range(1, people + 1), "sex": ["F"] * women + ["M"] * (people - women), "salary": list(salaries)}
    )
    columns = {
        "id": {"kind": "numeric", "bounds": [1, 1000], "role": "quasi"},
        "sex": {"categories": ["F", "M"], "role": "quasi"},
        "salary": {"kind": "numeric", "bounds": [0, 20_000], "role": "sensitive"},
    }
    return cl.open_table(rows, schema=cl.Schema.from_dict({"columns": columns}))


def secret_table(secret: NDArray[np.int64]) -> Table:
    """Return people with ids from 0 and a secret bit each."""
    rows = pa.table({"id": range(len(secret)), "sick": secret.tolist()})
    columns = {
        "id": {"kind": "numeric", "bounds": [0, PRIME - 1], "role": "quasi"},
        "sick": {"kind": "numeric", "bounds": [0, 1], "role": "sensitive"},
    }
    return cl.open_table(rows, schema=cl.Schema.from_dict({"columns": columns}))


def random_conditions(people: int, queries: int, source: RandomSource) -> tuple[NDArray[np.bool_], list[str]]:
    """Return up to 1,008 random sets of people, about half of them each, and different conditions that pick them."""
    factors, shifts = 1 + permutation(source, PRIME - 1)[:queries], integers_below(source, PRIME, queries)
    members = (np.arange(people) * factors[:, None] + shifts[:, None]) % PRIME < PRIME // 2
    pairs = zip(factors, shifts, strict=True)
    return members, [f"(id * {factor} + {shift}) % {PRIME} < {PRIME // 2}" for factor, shift in pairs]
