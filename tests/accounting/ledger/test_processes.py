"""Many processes, some of them killed, on one dataset: never overspent, nothing granted is lost."""

from __future__ import annotations

import multiprocessing
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from cloister.accounting.budget import Budget
from cloister.accounting.ledger import EntryKind, Ledger, open_ledger
from cloister.errors import BudgetExceededError, LedgerError
from tests.support.forking import garbage_left_alone

ROOT = Path(__file__).parents[3]
PROCESSES, ATTEMPTS, PARTS, KILLED = 6, 300, 1000, 2


class Worker:
    """A process of `tests.support.ledger_worker`, ready to start."""

    def __init__(self, url: str) -> None:
        script = ROOT / "tests" / "support" / "ledger_worker.py"
        self.process = subprocess.Popen(
            [sys.executable, str(script), url, "hospital", f"1/{PARTS}", str(ATTEMPTS)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "PYTHONPATH": str(ROOT / "src")},
        )
        self.lines: list[list[str]] = []

    def go(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write("go\n")
        self.process.stdin.close()

    def wait_until_ready(self) -> None:
        assert self.process.stdout is not None
        assert self.process.stdout.readline() == "ready\n"

    def kill(self) -> None:
        os.kill(self.process.pid, signal.SIGKILL)

    def end(self) -> int:
        assert self.process.stdout is not None
        self.lines += [line.split() for line in self.process.stdout]
        self.process.stdout.close()
        return self.process.wait()


@pytest.mark.slow
def test_six_processes_spend_together_while_some_are_killed(durable_url: str) -> None:
    with open_ledger(durable_url) as ledger:
        ledger.open_account("hospital", budget=Budget(epsilon=1))
        workers = [Worker(durable_url) for _ in range(PROCESSES)]
        victims = workers[:KILLED]
        for worker in workers:
            worker.wait_until_ready()
        for worker in workers:
            worker.go()
        _wait_for_entries(ledger, 200)
        for worker in victims:
            worker.kill()
        ledger.verify()
        codes = [worker.end() for worker in workers]
        assert codes == [-signal.SIGKILL] * KILLED + [0] * (PROCESSES - KILLED)
        _check(ledger, [line for worker in workers for line in worker.lines])


def _wait_for_entries(ledger: Ledger, count: int) -> None:
    """Wait until some but not all is spent; nobody is through with 300 attempts before 300 entries are written."""
    pause = threading.Event()
    while ledger.account("hospital").entries < count:
        pause.wait(0.005)


def _check(ledger: Ledger, lines: list[list[str]]) -> None:
    ledger.verify()
    spends = {str(entry.number): entry.digest for entry in ledger.entries("hospital") if entry.kind is EntryKind.SPEND}
    assert len(spends) == PARTS
    assert ledger.remaining("hospital") == Budget(epsilon=0)
    granted = [line[1:] for line in lines if line[0] == "granted"]
    refused = sum(int(line[1]) for line in lines if line[0] == "refused")
    assert len({number for number, _ in granted}) == len(granted)
    assert all(spends[number] == digest for number, digest in granted)
    # A killed process can have had one spend under way whose receipt nobody saw.
    assert PARTS - KILLED <= len(granted) <= PARTS
    assert refused > 0


def _spend_in_child(ledger: Ledger, queue: multiprocessing.Queue[str]) -> None:
    try:
        queue.put(ledger.spend("hospital", cost=Budget(epsilon=0.6)).digest)
    except (BudgetExceededError, LedgerError) as error:
        queue.put(type(error).__name__)


def _results_of_children(ledger: Ledger, count: int) -> list[str]:
    context = multiprocessing.get_context("fork")
    queue = context.Queue()
    children = [context.Process(target=_spend_in_child, args=(ledger, queue)) for _ in range(count)]
    with garbage_left_alone():
        for child in children:
            child.start()
    results = [queue.get(timeout=600) for _ in children]
    for child in children:
        child.join()
    return results


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_forked_children_use_connections_of_their_own(durable_url: str) -> None:
    with open_ledger(durable_url) as ledger:
        ledger.open_account("hospital", budget=Budget(epsilon=1))
        results = _results_of_children(ledger, 2)
        assert sorted(result == "BudgetExceededError" for result in results) == [False, True]
        assert ledger.spent("hospital") == Budget(epsilon=0.6)
        ledger.spend("hospital", cost=Budget(epsilon=0.4))
        ledger.verify()


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_ledger_in_memory_refuses_to_be_forked() -> None:
    with open_ledger("memory:") as ledger:
        ledger.open_account("hospital", budget=Budget(epsilon=1))
        assert _results_of_children(ledger, 1) == ["LedgerError"]
        ledger.spend("hospital", cost=Budget(epsilon=1))


def test_two_processes_make_one_file_together(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'budget.db'}"
    code = (
        "import sys; from cloister.accounting.ledger import open_ledger; from cloister.accounting.budget import Budget;"
        f"sys.stdin.read(1); print(open_ledger({url!r}).open_account('hospital', budget=Budget(epsilon=1)).head)"
    )
    command, environment = [sys.executable, "-c", code], {**os.environ, "PYTHONPATH": str(ROOT / "src")}
    openers = [
        subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment)
        for _ in range(4)
    ]
    heads = {opener.communicate("x")[0] for opener in openers}
    assert len(heads) == 1
    assert {path.name for path in tmp_path.iterdir()} <= {"budget.db", "budget.db-wal", "budget.db-shm"}
