from __future__ import annotations

import gc
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FrameType
from typing import Any

import pytest
from hypothesis import settings

from cloister.accounting.payment import failure_count
from cloister.core.guarantees.base import REGISTRY as GUARANTEES
from cloister.core.registry import Registry
from cloister.data.engines import duckdb as duckdb_engine
from cloister.queries._aggregates.base import sql_functions
from tests.support import engine_tables, postgres, tools, work_units
from tests.support.members import gather
from tests.support.thoroughness import examples

settings.register_profile("cloister", deadline=None, print_blob=True, max_examples=examples(100, usual=25))
settings.load_profile("cloister")


OPENERS: dict[str, engine_tables.Opener] = gather("data", "OPENERS")
"""Engines that need nothing but a function that puts a table into them, each named by its own test module."""

TRACED = frozenset({"core", "accounting", "mechanisms", "crypto"})
"""Folders whose tests are all traced for coverage, because every branch of these packages must be tested."""
UNTRACED = frozenset({"benchmarks", "docs"})
"""Folders whose tests run what the tests of the packages reach."""


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    here = Path(__file__).parent
    if config.pluginmanager.hasplugin("pytest_cov"):
        for item in items:
            if not _is_traced(item, item.path.relative_to(here).parts[0]):
                item.add_marker(pytest.mark.no_cover)
    if hasattr(config, "workerinput"):
        work_units.sort(items)


def _is_traced(item: pytest.Item, folder: str) -> bool:
    """Return whether a test counts for coverage: tracing takes a third of the time, and the short tests are enough."""
    if folder in TRACED | UNTRACED:
        return folder in TRACED
    if item.get_closest_marker("traced"):
        return True
    is_long = any(item.get_closest_marker(name) for name in ("slow", "statistical", "audit"))
    is_random = getattr(getattr(item, "obj", None), "is_hypothesis_test", False)
    return not (is_long or is_random)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    from xdist.scheduler import LoadFileScheduling

    if config.getoption("dist") != "loadfile":
        return None
    scheduling = LoadFileScheduling(config, log)
    scheduling._split_scope = work_units.work_unit
    return scheduling


def pytest_collection_finish() -> None:
    """Let the garbage collector pass over the tests themselves, which are a million objects that stay to the end.

    And let it look more rarely: most tests are over before there is anything to collect.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(10_000, 20, 20)


def pytest_runtest_setup(item: pytest.Item) -> None:
    for marker in item.iter_markers():
        sentence = tools.missing(marker.name)
        if sentence:
            tools.skip_or_fail(sentence)


@pytest.fixture(autouse=True, scope="session")
def _own_signing_key(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Keep the signing key that commands make out of the home of whoever runs the tests."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("CLOISTER_SIGNING_KEY", str(tmp_path_factory.mktemp("settings") / "signing.key"))
        yield


@pytest.fixture(autouse=True)
def _databases_spill_as_usual(monkeypatch: pytest.MonkeyPatch) -> None:
    """Undo what a server that a test runs in this process forbids for all databases of the process."""
    monkeypatch.setattr(duckdb_engine, "_CONFIGURATION", dict(duckdb_engine._CONFIGURATION))


@pytest.fixture(autouse=True)
def _guests_leave_registries(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Take out of every family what a test or an example has registered, so that no other test meets it."""
    guests: list[tuple[Registry[Any], str]] = []
    register = Registry.register

    def register_guest(family: Registry[Any], name: str) -> Callable[[Any], Any]:
        def add(member: Any) -> Any:
            added = register(family, name)(member)
            # Our own modules may be imported in the middle of a test, and what they register is for all tests.
            if not _is_importing_cloister():
                guests.append((family, name))
            return added

        return add

    monkeypatch.setattr(Registry, "register", register_guest)
    yield
    gone = [family._members.pop(name) for family, name in guests]
    for function, (kind, _) in list(sql_functions.items()):
        if any(kind is member for member in gone):
            del sql_functions[function]
    for name, promise in list(GUARANTEES.items()):
        if not promise.__module__.startswith("cloister."):
            del GUARANTEES[name]


def _is_importing_cloister() -> bool:
    """Return whether one of our own modules is being imported right now."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        if frame.f_code.co_name == "<module>" and frame.f_globals.get("__name__", "").startswith("cloister."):
            return True
        frame = frame.f_back
    return False


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Iterator[None]:
    """Fail a test behind whose back paid work has failed: an answer about nobody could look right by chance."""
    before = failure_count()
    yield
    hidden = failure_count() - before
    if hidden and item.get_closest_marker("hidden_failures") is None:
        pytest.fail(f"{hidden} times paid work has failed, and was finished about nobody; see show_failures().")


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
        *OPENERS,
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
    if request.param in OPENERS:
        return engine_tables.NamedOpener(request.param, OPENERS[request.param])
    return engine_tables.NamedOpener("duckdb", engine_tables.open_in_duckdb)
