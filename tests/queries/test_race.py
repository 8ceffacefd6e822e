"""Two analysts race for the last of a budget on one PostgreSQL ledger: exactly one wins."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from cloister import Budget, open_ledger
from tests.support.postgres import empty_database

ROOT = Path(__file__).parents[2]


def start(url: str, analyst: str) -> subprocess.Popen[str]:
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.support.query_worker", url, "race for the last", analyst, "0.3"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        cwd=ROOT,
        env={"PYTHONPATH": f"{ROOT / 'src'}:{ROOT}", "PATH": "/usr/bin:/bin"},
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    return process


@pytest.mark.slow
@pytest.mark.postgres
def test_one_of_two_analysts_gets_the_last_of_a_budget(postgres_server: str) -> None:
    url = empty_database(postgres_server)  # other tests damage ledgers of the server on purpose
    with open_ledger(url) as ledger:
        ledger.open_account("race for the last", budget=Budget(epsilon="0.5"))
        processes = [start(url, analyst) for analyst in ("ann", "bartholomew")]
        for process in processes:
            assert process.stdin is not None
            process.stdin.write("go\n")
            process.stdin.flush()
        said = [process.communicate(timeout=120)[0].strip() for process in processes]
        assert [process.returncode for process in processes] == [0, 0]
        assert sorted(line.split()[0] for line in said) == ["granted", "refused"]
        assert "granted 3/10 2 groups" in said
        lost = next(line for line in said if line.startswith("refused"))
        assert lost.startswith("refused 1/5 ")
        assert "needs epsilon 0.3, but only 0.2 is left" in lost
        assert ledger.remaining("race for the last") == Budget(epsilon="0.2")
        ledger.verify()
