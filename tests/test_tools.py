from __future__ import annotations

import subprocess
from typing import Any

import pytest

from tests.support import thoroughness, tools, work_units


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


def test_the_files_that_are_begun_with_exist_and_are_listed_once() -> None:
    names = work_units.LIST.read_text("utf-8").split()
    assert len(set(names)) == len(names)
    assert [name for name in names if not (work_units.TESTS / name).exists()] == []


def test_the_usual_share_is_tried_unless_all_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    for setting, tried in {"": 3, "0": 3, "1": 9}.items():
        monkeypatch.setenv(thoroughness.THOROUGH, setting)
        assert thoroughness.examples(9, usual=3) == tried
    for usual in (0, 10):
        with pytest.raises(ValueError, match="not above the full number"):
            thoroughness.examples(9, usual=usual)


def test_cases_wait_for_the_audit_but_for_those_that_are_named() -> None:
    marks = [[mark.name for mark in case.marks] for case in thoroughness.audited([("a", 1), "b"], but=["b"])]
    assert marks == [["audit"], []]
    on_spark = [case.values for case in thoroughness.on_engines("ab", spark="a") if pytest.mark.audit in case.marks]
    assert on_spark == [("spark", "b")]
    for choose in (lambda: thoroughness.audited("a", but="b"), lambda: thoroughness.on_engines("a", spark="b")):
        with pytest.raises(ValueError, match="no cases"):
            choose()


def test_all_of_spark_goes_to_one_worker_and_else_a_file_stays_together() -> None:
    assert work_units.work_unit("tests/a.py::test_b[spark-c]") == work_units.work_unit("tests/d.py::test_e_in_spark")
    assert work_units.work_unit("tests/a.py::test_b[duckdb]") == "tests/a.py"
