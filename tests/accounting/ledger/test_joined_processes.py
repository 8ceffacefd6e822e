"""Processes with joined ledgers, some of them killed: a spend and the row of its host are never seen apart."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from cloister.accounting.budget import Budget
from cloister.accounting.ledger import open_ledger
from tests.support.ledger_host import Host

ROOT = Path(__file__).parents[3]

pytestmark = pytest.mark.slow


class Worker:
    """A process of `tests.support.ledger_host`, which waits for a line before it spends and before it commits."""

    def __init__(self, url: str) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-m", "tests.support.ledger_host", url, "0.6"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd=ROOT,
            env={**os.environ, "PYTHONPATH": str(ROOT / "src")},
        )

    def hear(self) -> str:
        assert self.process.stdout is not None
        return self.process.stdout.readline().strip()

    def go(self, *, steps: int = 1) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write("go\n" * steps)
        self.process.stdin.flush()

    def kill(self) -> None:
        os.kill(self.process.pid, signal.SIGKILL)
        assert self.process.wait() == -signal.SIGKILL


@contextmanager
def _ready(host: Host) -> Iterator[Worker]:
    worker = Worker(host.url)
    with worker.process:
        try:
            assert worker.hear() == "ready"
            yield worker
        finally:
            worker.process.kill()


def _check(host: Host, *, winners: list[Worker]) -> None:
    with open_ledger(host.url, create=False) as ledger:
        ledger.verify()
        assert ledger.spent("hospital") == Budget(epsilon=0.6 if winners else 0)
    assert host.jobs() == [str(worker.process.pid) for worker in winners]


def test_a_process_that_is_killed_before_its_commit_leaves_nothing(host: Host) -> None:
    with _ready(host) as worker:
        worker.go()
        assert worker.hear() == "spent"
        worker.kill()
        _check(host, winners=[])
    with _ready(host) as next_one:
        next_one.go()
        assert next_one.hear() == "spent"
        next_one.go()
        assert next_one.hear() == "granted"
        _check(host, winners=[next_one])


def test_the_second_waits_for_the_first_and_is_refused(host: Host) -> None:
    with _ready(host) as first, _ready(host) as second:
        first.go()
        assert first.hear() == "spent"
        second.go()
        first.go()
        assert first.hear() == "granted"
        assert second.hear() == "refused"
        _check(host, winners=[first])


def test_the_second_wins_when_the_first_is_killed(host: Host) -> None:
    with _ready(host) as first, _ready(host) as second:
        first.go()
        assert first.hear() == "spent"
        second.go()
        first.kill()
        assert second.hear() == "spent"
        second.go()
        assert second.hear() == "granted"
        _check(host, winners=[second])


def test_of_processes_that_race_for_one_budget_one_wins(host: Host) -> None:
    with ExitStack() as stack:
        workers = [stack.enter_context(_ready(host)) for _ in range(4)]
        for worker in workers:
            worker.go(steps=2)
        heard = {worker: [worker.hear()] for worker in workers}
        winners = [worker for worker in workers if heard[worker] == ["spent"]]
        assert len(winners) == 1
        assert winners[0].hear() == "granted"
        assert sorted(words[0] for words in heard.values()) == ["refused"] * 3 + ["spent"]
        _check(host, winners=winners)
