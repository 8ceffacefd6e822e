from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings

from tests.support import engine_tables, postgres, tools

settings.register_profile("cloister", deadline=None, print_blob=True)
settings.load_profile("cloister")


UNTRACED = frozenset({"queries", "data", "anonymize", "local", "attacks", "testing", "learn"})
"""Folders whose slow tests are not traced for coverage, which would cost minutes; their quick tests are enough."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        folder = item.path.relative_to(Path(__file__).parent).parts[0]
        if folder in UNTRACED and any(item.get_closest_marker(name) for name in ("slow", "statistical")):
            item.add_marker(pytest.mark.no_cover)


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
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """A real Spark session in local mode; its tests carry the marker spark."""
    from pyspark.sql import SparkSession

    session = (
        SparkSession.builder.master("local[2]")
        .appName("cloister-tests")
        .config("spark.ui.enabled", "false")
        .config("spark.sql.warehouse.dir", str(tmp_path_factory.mktemp("warehouse")))
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.driver.extraJavaOptions", "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .getOrCreate()
    )
    session.sparkContext.setLogLevel("ERROR")
    yield session
    session.stop()


@pytest.fixture(
    scope="module",
    params=[
        "duckdb",
        pytest.param("postgres", marks=[pytest.mark.postgres, pytest.mark.slow]),
        pytest.param("spark", marks=[pytest.mark.spark, pytest.mark.slow]),
    ],
)
def any_engine(request: pytest.FixtureRequest) -> engine_tables.NamedOpener:
    """Each kind of engine in turn, with the function that puts a table into it."""
    if request.param == "postgres":
        return engine_tables.NamedOpener(
            "postgres", engine_tables.postgres_opener(request.getfixturevalue("postgres_server"))
        )
    if request.param == "spark":
        return engine_tables.NamedOpener("spark", engine_tables.spark_opener(request.getfixturevalue("spark")))
    return engine_tables.NamedOpener("duckdb", engine_tables.open_in_duckdb)
