from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from cloister.accounting.budget import Budget
from cloister.accounting.ledger import Ledger, open_ledger
from cloister.accounting.ledger.host_database import create_tables, join_ledger
from tests.support.ledger_host import Host


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


SERVER = (pytest.mark.postgres, pytest.mark.slow)
DURABLE = ("sqlite", pytest.param("postgres", marks=SERVER))
HOSTS = ("sqlite host", pytest.param("postgres host", marks=SERVER))


def _url(request: pytest.FixtureRequest) -> str:
    return "memory:" if request.param == "memory" else request.getfixturevalue(f"{request.param}_url")


@pytest.fixture(params=("memory", *DURABLE, *HOSTS))
def ledger(request: pytest.FixtureRequest) -> Iterator[Ledger]:
    if request.param in ("sqlite host", "postgres host"):
        with Host(request.getfixturevalue(f"{request.param.split()[0]}_url")) as host:
            host.begin()
            create_tables(host.connection, dialect=host.dialect)
            yield join_ledger(host.connection, dialect=host.dialect)
            host.roll_back()
    else:
        with open_ledger(_url(request)) as opened:
            yield opened


@pytest.fixture(params=DURABLE)
def durable_url(request: pytest.FixtureRequest) -> str:
    return _url(request)


@pytest.fixture(params=HOSTS)
def host(request: pytest.FixtureRequest) -> Iterator[Host]:
    """A host with a table of its own, and a hospital with a budget of 1 in the ledger next to it."""
    with Host(request.getfixturevalue(f"{request.param.split()[0]}_url")) as made:
        made.set_up()
        yield made


@pytest.fixture
def hospital(ledger: Ledger) -> Ledger:
    ledger.open_account("hospital", budget=Budget(epsilon=1, delta="1e-6"))
    return ledger
