"""Many runs while the server and the workers are killed at random: nothing is lost, doubled or overspent.

Some runs and ten kills, and five times as many in ``make audit``; each single step at which a worker can die is
tried in ``test_workers.py``.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from multiprocessing.process import BaseProcess
from pathlib import Path

import pytest

from cloister.accounting.ledger import EntryKind
from cloister.core import exact
from cloister.core.random import SystemRandomSource
from cloister.hub import queue
from cloister.hub.domain.lifecycles import JobState
from cloister.hub.domain.roles import AccountRole
from cloister.hub.hub import Hub
from cloister.hub.store.models import AuditEntry, Job, ResultRecord, Spending
from cloister.hub.use_cases import audit_log
from tests.hub.conftest import add_user, make_hub
from tests.support import hub_worker
from tests.support.forking import fork_context
from tests.support.hub_services import add_dataset

PRICE = Fraction(1, 100)
WORKERS = 3
PATIENCE = 300.0


@pytest.fixture(
    params=[pytest.param("sqlite", marks=pytest.mark.audit), pytest.param("postgres", marks=pytest.mark.postgres)]
)
def short_lived(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Hub]:
    """A hub that gives up on a silent worker after a second."""
    opened = make_hub(tmp_path / "hub", request, lease_seconds=1.0)
    yield opened
    opened.close()


class Crowd:
    """A server that asks and workers that work; whoever dies is replaced."""

    def __init__(self, hub: Hub, dataset: str, user: str, log: Path, *, requests: int) -> None:
        self._settings = replace(hub.settings)
        self._asked = (dataset, user)
        self._log = log
        self._keys = [str(number) for number in range(requests)]
        self.workers = [self._start(hub_worker.main) for _ in range(WORKERS)]
        self.server: BaseProcess | None = self._serve()

    def answered(self) -> dict[str, str]:
        """Return what the server has been told, by key; a line that a kill cut short does not count."""
        lines = self._log.read_text().splitlines(keepends=True) if self._log.exists() else []
        pairs = [line.split() for line in lines if line.endswith("\n")]
        answers = dict(pairs)
        assert len({(key, answer) for key, answer in pairs}) == len(answers), "a key has two answers"
        return answers

    def replace_the_dead(self) -> None:
        for place, process in enumerate(self.workers):
            if not process.is_alive():
                self.workers[place] = self._start(hub_worker.main)
        if self.server is None or not self.server.is_alive():
            self.server = self._serve()

    def alive(self) -> list[BaseProcess]:
        everyone = [*self.workers, self.server]
        return [process for process in everyone if process is not None and process.is_alive()]

    def end(self) -> None:
        for process in self.alive():
            process.terminate()
        for process in self.workers:
            process.join(30)
            assert process.exitcode == 0

    def _serve(self) -> BaseProcess | None:
        answers = self.answered()
        open_keys = [key for key in self._keys if key not in answers]
        return self._start(hub_worker.serve, *self._asked, open_keys, str(self._log)) if open_keys else None

    def _start(self, target: object, *arguments: object) -> BaseProcess:
        process = fork_context().Process(target=target, args=(self._settings, *arguments))
        process.start()
        return process


@pytest.mark.slow
@pytest.mark.parametrize(
    ("affordable", "requests", "kills"), [(32, 40, 10), pytest.param(200, 220, 50, marks=pytest.mark.audit)]
)
def test_kills_during_many_runs(short_lived: Hub, tmp_path: Path, affordable: int, requests: int, kills: int) -> None:
    hub = short_lived
    ada = add_user(hub, "ada", AccountRole.DATA_USER, of="south")
    dataset = add_dataset(hub, epsilon=str(affordable * PRICE), users=(ada,))
    crowd = Crowd(hub, dataset, ada, tmp_path / "answers", requests=requests)
    until, random = time.monotonic() + PATIENCE, SystemRandomSource()
    for _ in range(kills):
        time.sleep(0.02 + random.random_bytes(1)[0] / 1000)
        living = crowd.alive()
        living[random.random_bytes(1)[0] % len(living)].kill()
        crowd.replace_the_dead()
    while not _is_over(hub, crowd, requests):
        assert time.monotonic() < until, "some work never ended"
        time.sleep(0.05)
        crowd.replace_the_dead()
    crowd.end()
    _check(hub, dataset, crowd.answered(), affordable=affordable, requests=requests)


def _is_over(hub: Hub, crowd: Crowd, requests: int) -> bool:
    if len(crowd.answered()) < requests:
        return False
    with hub.store.reading() as session:
        states = {JobState(state) for (state,) in session.query(Job.state).distinct()}
        return all(state.is_final for state in states) and not queue.is_work_waiting(session)


def _check(hub: Hub, dataset: str, answers: dict[str, str], *, affordable: int, requests: int) -> None:
    with hub.store.reading() as session:
        ledger = hub.store.ledger(session)
        ledger.verify()
        audit_log.verify(session)
        entries = ledger.entries(dataset)
        jobs = {job.id: job for job in session.query(Job)}
        results = [job_id for (job_id,) in session.query(ResultRecord.job_id)]
        counted = {row.scope: exact.number(row.amount) for row in session.query(Spending)}
        ends = Counter(target for (target,) in session.query(AuditEntry.target).filter(AuditEntry.action == "job.end"))
        spent = ledger.spent(dataset).amount
    told = Counter("refused" if answer == "refused" else "taken" for answer in answers.values())
    assert told == {"taken": affordable, "refused": requests - affordable}
    taken = {key: answer for key, answer in answers.items() if answer != "refused"}
    assert {job.idempotency_key: job.id for job in jobs.values()} == taken

    charges = {job.receipt["number"]: job.receipt["digest"] for job in jobs.values() if job.receipt}
    spends = {entry.number: entry.digest for entry in entries if entry.kind is EntryKind.SPEND}
    assert charges == spends
    assert spent == affordable * PRICE
    assert counted == {"user": spent, "organisation": spent, "purpose": spent}

    done = {job.id for job in jobs.values() if job.state == JobState.DONE}
    failed = [job for job in jobs.values() if job.state == JobState.FAILED]
    assert len(done) + len(failed) == len(jobs) == affordable
    assert all(job.error is not None and job.error["kind"] == "lost" for job in failed)
    assert Counter(results) == Counter(done)
    stored = Counter(entry.details["answer"]["job"] for entry in entries if entry.kind is EntryKind.ANSWER)
    assert stored == Counter(done)
    assert ends == Counter(f"job:{job_id}" for job_id in jobs)
