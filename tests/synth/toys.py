"""A small made-up table with every kind of column, and its public schema."""

from __future__ import annotations

import datetime as dt
from fractions import Fraction
from functools import cache
from typing import Any

import numpy as np
import pyarrow as pa

from cloister.accounting.budget import Budget
from cloister.accounting.ledger import Ledger, open_ledger
from cloister.core.random import SeededRandomSource, integers_below
from cloister.data.schema import Schema
from cloister.data.sources import open_table
from cloister.data.table import Table

ACCOUNT = "people"
COLORS = ("blue", "green", "red")
DAYS = (dt.date(2024, 1, 1), dt.date(2024, 12, 31))

SCHEMA = Schema.from_dict(
    {
        "columns": {
            "person": {"role": "identifier"},
            "color": {"role": "quasi", "kind": "nominal", "categories": list(COLORS)},
            "age": {"role": "quasi", "kind": "numeric", "bounds": [0, 99]},
            "weight": {"role": "sensitive", "kind": "numeric", "bounds": [0, 2]},
            "seen": {"role": "quasi", "kind": "datetime", "bounds": list(DAYS)},
        }
    }
)

OPTIONS: dict[str, dict[str, Any]] = {
    "mwem": {"rounds": 2},
    "grouped_gaussian": {"columns": ["age", "weight"], "bins": None},
}
"""What a synthesizer needs to be quick here, or at all, by its registered name."""

APART = ("microaggregated_gaussian", "k_anonymous")
"""Those that have tests of their own only: one protects replaced rows alone, the other is not private and free."""

PUBLIC: dict[str, Any] = {"bins": 3, "epsilon": 1}


def listing(rows: int = 60, *, seed: int = 1) -> pa.Table:
    """Return rows in which color, age and weight hang together, two of each person."""
    draws = integers_below(SeededRandomSource(seed), 1000, 4 * rows).reshape(4, rows)
    color = draws[0] % 3
    return pa.table(
        {
            "person": np.arange(rows) // 2,
            "color": pa.array([COLORS[place] for place in color], pa.string()),
            "age": np.minimum(99, 30 * color + draws[1] % 30),
            "weight": pa.array(np.where(draws[2] < 50, np.nan, color / 2 + draws[2] / 1000), from_pandas=True),
            "seen": pa.array([DAYS[0] + dt.timedelta(days=int(day) % 366) for day in draws[3]], pa.date32()),
        }
    )


def people(rows: int = 60, *, seed: int = 1, schema: Schema | None = SCHEMA) -> Table:
    """Return such rows as a table; the rows are opened once, since that takes longer than most tests."""
    return _opened(rows, seed).with_schema(schema)


@cache
def _opened(rows: int, seed: int) -> Table:
    return open_table(listing(rows, seed=seed))


def book(**facts: Any) -> Ledger:
    """Return a ledger with an account that has much to spend."""
    ledger = open_ledger("memory:")
    ledger.open_account(ACCOUNT, budget=Budget(epsilon=Fraction(100), delta=Fraction(1, 2)), **facts)
    return ledger
