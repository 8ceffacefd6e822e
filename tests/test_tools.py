from __future__ import annotations

import subprocess
from typing import Any

import pytest

from tests.support import tools


@pytest.mark.postgres
@pytest.mark.slow
def test_the_test_server_answers(postgres_server: str) -> None:
    import psycopg

    with psycopg.connect(postgres_server) as connection:
        assert connection.execute("SELECT 1 + 1").fetchone() == (2,)


@pytest.mark.spark
@pytest.mark.slow
def test_the_test_spark_answers(spark: Any) -> None:
    assert spark.range(10).count() == 10


@pytest.mark.node
def test_node_answers() -> None:
    assert subprocess.run(["node", "-p", "1+1"], capture_output=True, text=True, check=True).stdout.strip() == "2"


@pytest.mark.chromium
@pytest.mark.slow
def test_chromium_answers() -> None:
    path = tools.chromium()
    assert path is not None
    assert "Chrom" in subprocess.run([path, "--version"], capture_output=True, text=True, check=True).stdout


def test_a_missing_tool_skips_for_a_user(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(tools.REQUIRED, raising=False)
    with pytest.raises(pytest.skip.Exception, match="install it"):
        tools.skip_or_fail("Please install it.")


def test_a_missing_tool_fails_where_all_are_required(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(tools.REQUIRED, "1")
    with pytest.raises(pytest.fail.Exception, match="install it"):
        tools.skip_or_fail("Please install it.")
