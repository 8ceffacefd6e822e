"""Spends per second, one writer, every spend on disk before its receipt is returned."""

from __future__ import annotations

import sys
import tempfile
import time

from cloister.accounting.budget import Budget
from cloister.accounting.ledger import open_ledger

SPENDS = 1000


def spends_per_second(url: str) -> float:
    with open_ledger(url) as ledger:
        dataset = f"benchmark {time.time_ns()}"
        ledger.open_account(dataset, budget=Budget(epsilon=1))
        start = time.perf_counter()
        for _ in range(SPENDS):
            ledger.spend(dataset, cost=Budget(epsilon=f"1/{SPENDS}"))
        return SPENDS / (time.perf_counter() - start)


def main(*servers: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        for url in ("memory:", f"sqlite:///{folder}/budget.db", *servers):
            print(f"{url.partition(':')[0]:<12}{spends_per_second(url):>8.0f} spends per second")


if __name__ == "__main__":
    main(*sys.argv[1:])
