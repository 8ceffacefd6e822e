from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings

from tests.support import postgres, tools

settings.register_profile("cloister", deadline=None, print_blob=True)
settings.load_profile("cloister")


def pytest_runtest_setup(item: pytest.Item) -> None:
    for marker in item.iter_markers():
        sentence = tools.missing(marker.name)
        if sentence:
            tools.skip_or_fail(sentence)


@pytest.fixture(scope="session")
def shared_data() -> Path:
    return tools.shared_data()


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[str]:
    """The URL of a real, empty PostgreSQL server; its tests carry the marker postgres."""
    with postgres.running_server() as url:
        yield url


@pytest.fixture(scope="session")
def spark() -> Iterator[Any]:
    """A real Spark session in local mode; its tests carry the marker spark."""
    from pyspark.sql import SparkSession

    session = (
        SparkSession.builder.master("local[2]")
        .appName("cloister-tests")
        .config("spark.ui.enabled", "false")
        .config("spark.sql.shuffle.partitions", "4")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .getOrCreate()
    )
    session.sparkContext.setLogLevel("ERROR")
    yield session
    session.stop()
