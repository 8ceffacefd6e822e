"""Two hundred runs while the server and the workers are killed fifty times: nothing is lost, doubled or overspent."""

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
from cloister.hub.domain.jobs import State
from cloister.hub.domain.roles import Role
from cloister.hub.hub import Hub
from cloister.hub.jobs import queue
from cloister.hub.services import audit_reading
from cloister.hub.store.models import AuditEntry, Job, Result, Spending
from tests.hub.conftest import add_user, make_hub
from tests.support import hub_worker
from tests.support.forking import fork_context
from tests.support.hub_services import add_dataset

REQUESTS = 220
AFFORDABLE = 200
KILLS = 50
WORKERS = 3
PATIENCE = 300.0


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.postgres)])
def short_lived(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Hub]:
    """A hub that gives up on a silent worker after a second."""
    opened = make_hub(tmp_path / "hub", request, lease_seconds=1.0)
    yield opened
    opened.close()


class Crowd:
    """A server that asks and workers that work; whoever dies is replaced."""

    def __init__(self, hub: Hub, dataset: str, user: str, log: Path) -> None:
        self._settings = replace(hub.settings)
        self._asked = (dataset, user)
        self._log = log
        self._keys = [str(number) for number in range(REQUESTS)]
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
def test_fifty_kills_during_two_hundred_runs(short_lived: Hub, tmp_path: Path) -> None:
    hub = short_lived
    ada = add_user(hub, "ada", Role.DATA_USER, of="south")
    dataset = add_dataset(hub, epsilon="2", users=(ada,))
    crowd, until = Crowd(hub, dataset, ada, tmp_path / "answers"), time.monotonic() + PATIENCE
    kills, random = 0, SystemRandomSource()
    while kills < KILLS:
        time.sleep(0.02 + random.random_bytes(1)[0] / 1000)
        living = crowd.alive()
        living[random.random_bytes(1)[0] % len(living)].kill()
        kills += 1
        crowd.replace_the_dead()
    while not _is_over(hub, crowd):
        assert time.monotonic() < until, "some work never ended"
        time.sleep(0.05)
        crowd.replace_the_dead()
    crowd.end()
    _check(hub, dataset, crowd.answered())


def _is_over(hub: Hub, crowd: Crowd) -> bool:
    if len(crowd.answered()) < REQUESTS:
        return False
    with hub.store.reading() as session:
        states = {State(state) for (state,) in session.query(Job.state).distinct()}
        return all(state.is_final for state in states) and not queue.is_work_waiting(session)


def _check(hub: Hub, dataset: str, answers: dict[str, str]) -> None:
    with hub.store.reading() as session:
        ledger = hub.store.ledger(session)
        ledger.verify()
        audit_reading.verify(session)
        entries = ledger.entries(dataset)
        jobs = {job.id: job for job in session.query(Job)}
        results = [job_id for (job_id,) in session.query(Result.job_id)]
        counted = {row.scope: exact.number(row.amount) for row in session.query(Spending)}
        ends = Counter(target for (target,) in session.query(AuditEntry.target).filter(AuditEntry.action == "job.end"))
        spent = ledger.spent(dataset).amount
    told = Counter("refused" if answer == "refused" else "taken" for answer in answers.values())
    assert told == {"taken": AFFORDABLE, "refused": REQUESTS - AFFORDABLE}
    taken = {key: answer for key, answer in answers.items() if answer != "refused"}
    assert {job.idempotency_key: job.id for job in jobs.values()} == taken

    charges = {job.receipt["number"]: job.receipt["digest"] for job in jobs.values() if job.receipt}
    spends = {entry.number: entry.digest for entry in entries if entry.kind is EntryKind.SPEND}
    assert charges == spends
    assert spent == AFFORDABLE * Fraction(1, 100) == Fraction(2)
    assert counted == {"user": spent, "organisation": spent, "purpose": spent}

    done = {job.id for job in jobs.values() if job.state == State.DONE}
    failed = [job for job in jobs.values() if job.state == State.FAILED]
    assert len(done) + len(failed) == len(jobs) == AFFORDABLE
    assert all(job.error is not None and job.error["kind"] == "lost" for job in failed)
    assert Counter(results) == Counter(done)
    stored = Counter(entry.details["answer"]["job"] for entry in entries if entry.kind is EntryKind.ANSWER)
    assert stored == Counter(done)
    assert ends == Counter(f"job:{job_id}" for job_id in jobs)
