from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from cloister.accounting.budget import Budget
from cloister.accounting.ledger import Ledger, open_ledger


@pytest.fixture
def sqlite_url(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path / 'budget.db'}"


@pytest.fixture
def postgres_url(postgres_server: str) -> str:
    """The URL of the test server, with no ledger in its database."""
    import psycopg

    with psycopg.connect(postgres_server, autocommit=True) as connection:
        connection.execute("SET lock_timeout = '20s'")
        connection.execute("SET client_min_messages = warning")
        connection.execute("DROP SCHEMA IF EXISTS cloister_ledger CASCADE")
    return postgres_server


EVERY = ("memory", "sqlite", pytest.param("postgres", marks=(pytest.mark.postgres, pytest.mark.slow)))
DURABLE = EVERY[1:]


def _url(request: pytest.FixtureRequest) -> str:
    return "memory:" if request.param == "memory" else request.getfixturevalue(f"{request.param}_url")


@pytest.fixture(params=EVERY)
def ledger(request: pytest.FixtureRequest) -> Iterator[Ledger]:
    with open_ledger(_url(request)) as opened:
        yield opened


@pytest.fixture(params=DURABLE)
def durable_url(request: pytest.FixtureRequest) -> str:
    return _url(request)


@pytest.fixture
def hospital(ledger: Ledger) -> Ledger:
    ledger.open_account("hospital", budget=Budget(epsilon=1, delta="1e-6"))
    return ledger
