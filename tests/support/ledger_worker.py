"""A process that spends from a ledger again and again, for tests of concurrent writers.

It says that it is ready, waits for a line, and starts.

Each receipt is written to standard output, in one system call, before the next spend: what the reader of the pipe has
seen was certainly granted, also when this process is killed.
"""

from __future__ import annotations

import os
import sys

from cloister.accounting.budget import Budget
from cloister.accounting.ledger import open_ledger
from cloister.errors import BudgetExceededError


def main(url: str, dataset: str, cost: str, attempts: str) -> None:
    refused = 0
    with open_ledger(url, create=False) as ledger:
        os.write(1, b"ready\n")
        sys.stdin.readline()
        for _ in range(int(attempts)):
            try:
                receipt = ledger.spend(dataset, cost=Budget(epsilon=cost), analyst=str(os.getpid()))
            except BudgetExceededError:
                refused += 1
            else:
                os.write(1, f"granted {receipt.number} {receipt.digest}\n".encode())
    os.write(1, f"refused {refused}\n".encode())


if __name__ == "__main__":
    main(*sys.argv[1:])
