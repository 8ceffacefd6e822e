"""A process that asks one question of a private table, for tests of analysts who race for the last of a budget.

It says that it is ready, waits for a line, asks, and says what it got.
"""

from __future__ import annotations

import os
import sys

import pyarrow as pa

from cloister import Column, PrivateTable, Schema, open_ledger, open_table
from cloister.errors import BudgetExceededError


def main(url: str, dataset: str, analyst: str, epsilon: str) -> None:
    rows = pa.table({"age": [30 + number for number in range(50)], "sex": ["F", "M"] * 25})
    schema = Schema([Column(name="age", kind="numeric", bounds=(0, 100)), Column(name="sex", categories=["F", "M"])])
    with open_ledger(url, create=False) as ledger:
        private = PrivateTable(open_table(rows, schema=schema), dataset=dataset, ledger=ledger, analyst=analyst)
        os.write(1, b"ready\n")
        sys.stdin.readline()
        try:
            frame = private.sql(
                f"SELECT sex, COUNT(*) AS n FROM data WHERE age > {len(analyst)} GROUP BY sex",
                epsilon=epsilon,
                fresh=True,
            )
        except BudgetExceededError as error:
            os.write(1, f"refused {error.remaining} {error.problem}\n".encode())
        else:
            os.write(1, f"granted {frame.cost.amount} {len(frame)} groups\n".encode())


if __name__ == "__main__":
    main(*sys.argv[1:])
