"""Spends per second, one writer, every spend on disk before its receipt is returned.

Set CLOISTER_POSTGRES to the address of a server to measure that too.
"""

from __future__ import annotations

import os
import tempfile
import time
from typing import Any

from cloister.accounting.budget import Budget
from cloister.accounting.ledger import open_ledger

TITLE = "Ledger"
SPENDS = 1000


def main() -> list[dict[str, Any]]:
    server = os.environ.get("CLOISTER_POSTGRES")
    with tempfile.TemporaryDirectory() as folder:
        urls = ["memory:", f"sqlite:///{folder}/budget.db", *filter(None, [server])]
        return [
            {"name": f"one writer, {url.partition(':')[0]}", "ours": _rate(url), "unit": "spends per second"}
            for url in urls
        ]


def _rate(url: str) -> float:
    with open_ledger(url) as ledger:
        dataset = f"benchmark {time.time_ns()}"
        ledger.open_account(dataset, budget=Budget(epsilon=1))
        start = time.perf_counter()
        for _ in range(SPENDS):
            ledger.spend(dataset, cost=Budget(epsilon=f"1/{SPENDS}"))
        return SPENDS / (time.perf_counter() - start)
