"""A program with a database of its own that hosts a ledger, and the same as a process that waits to be told.

As a process it joins the ledger, spends, writes a row of its own and commits, each when a line comes in; it says how
far it is, so that it can be killed at any place.
"""

from __future__ import annotations

import os
import sqlite3
import sys
from contextlib import closing
from typing import Any, Literal, Self

from cloister.accounting.budget import Budget
from cloister.accounting.ledger import Ledger
from cloister.accounting.ledger.host_database import create_tables, join_ledger
from cloister.errors import BudgetExceededError


class Host:
    """A connection whose transactions are in the hands of the test."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.dialect: Literal["sqlite", "postgresql"] = "sqlite" if url.startswith("sqlite:") else "postgresql"
        self.connection = self.connect()

    def connect(self) -> Any:
        if self.dialect == "sqlite":
            path = self.url.removeprefix("sqlite:///")
            return sqlite3.connect(path, isolation_level=None, check_same_thread=False, timeout=60)
        import psycopg

        return psycopg.connect(self.url)

    def set_up(self) -> None:
        if self.dialect == "sqlite":
            self.connection.execute("PRAGMA journal_mode = WAL")
        self.begin()
        self.connection.execute("DROP TABLE IF EXISTS jobs")
        self.connection.execute("CREATE TABLE jobs (name TEXT)")
        create_tables(self.connection, dialect=self.dialect)
        self.ledger().open_account("hospital", budget=Budget(epsilon=1))
        self.commit()

    def begin(self) -> None:
        if self.dialect == "sqlite":
            self.connection.execute("BEGIN IMMEDIATE")

    def commit(self) -> None:
        self.connection.commit()

    def roll_back(self) -> None:
        self.connection.rollback()

    def ledger(self) -> Ledger:
        return join_ledger(self.connection, dialect=self.dialect)

    def add_job(self, name: str) -> None:
        self.connection.execute(f"INSERT INTO jobs VALUES ('{name}')")

    def jobs(self) -> list[str]:
        """Return what everybody else sees."""
        with closing(self.connect()) as other:
            return [name for (name,) in other.execute("SELECT name FROM jobs ORDER BY name").fetchall()]

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.connection.close()


def main(url: str, cost: str) -> None:
    with Host(url) as host:
        _tell("ready")
        host.begin()
        try:
            host.ledger().spend("hospital", cost=Budget(epsilon=cost))
        except BudgetExceededError:
            host.roll_back()
            os.write(1, b"refused\n")
            return
        host.add_job(str(os.getpid()))
        _tell("spent")
        host.commit()
        os.write(1, b"granted\n")


def _tell(word: str) -> None:
    os.write(1, f"{word}\n".encode())
    sys.stdin.readline()


if __name__ == "__main__":
    main(*sys.argv[1:])
