"""Workers as processes: killed at every step, told to end, started again."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable
from fractions import Fraction
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from cloister.errors import HubUnavailableError
from cloister.hub import queue, workers
from cloister.hub.domain.lifecycles import JobState
from cloister.hub.domain.roles import AccountRole
from cloister.hub.hub import Hub
from cloister.hub.queue import BrokenOff, Standing
from cloister.hub.services.registry import service_registry
from cloister.hub.store.models import Job, ResultRecord
from cloister.hub.use_cases import jobs
from cloister.hub.workers import FIRST_RESTART_PAUSE, KeptClaim, OpenTables, Supervisor, Worker
from tests.hub.conftest import add_user, make_hub, on_databases
from tests.hub.use_cases.jobs.conftest import job, submit
from tests.support import hub_services, hub_worker
from tests.support.forking import fork_context
from tests.support.hub_services import add_dataset


@pytest.fixture(autouse=True)
def services(monkeypatch: pytest.MonkeyPatch) -> None:
    for service in hub_services.SERVICES:
        monkeypatch.setitem(service_registry._members, service.name, service)


@pytest.fixture
def asked(any_hub: Hub) -> Callable[..., Job]:
    """A function that asks for a run on a dataset of its own."""
    ada = add_user(any_hub, "ada", AccountRole.DATA_USER, of="south")
    dataset = add_dataset(any_hub, users=(ada,))

    def ask(service: str = "test.count") -> Job:
        return submit(any_hub, ada, dataset, service, epsilon="0.5")

    return ask


def wait_for(condition: Callable[[], bool], *, seconds: float = 60.0) -> None:
    until = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < until, "it never came"
        time.sleep(0.02)


def set_settings(hub: Hub, **values: Any) -> None:
    for name, value in values.items():
        object.__setattr__(hub.settings, name, value)


def is_final(hub: Hub, job_id: str) -> bool:
    return JobState(job(hub, job_id).state).is_final


# One worker ----------------------------------------------------------------------------------------------------------


def test_a_worker_does_what_there_is_and_keeps_tables_open(any_hub: Hub, asked: Callable[..., Job]) -> None:
    first, second = asked("test.fresh"), asked("test.fresh")
    sole = Worker(any_hub, name="w")
    assert [sole.work_once(), sole.work_once(), sole.work_once()] == [True, True, False]
    assert {job(any_hub, first.id).state, job(any_hub, second.id).state} == {JobState.DONE}
    assert len(sole._tables) == 1


def test_a_worker_hears_of_new_work_and_ends_when_told(any_hub: Hub, asked: Callable[..., Job]) -> None:
    stopping = threading.Event()
    thread = threading.Thread(target=Worker(any_hub, stopping=stopping).run)
    thread.start()
    made = asked()
    wait_for(lambda: is_final(any_hub, made.id))
    stopping.set()
    thread.join()
    assert job(any_hub, made.id).state == JobState.DONE


def test_a_worker_that_is_told_to_end_gives_its_work_back(any_hub: Hub, asked: Callable[..., Job]) -> None:
    made, stopping = asked("test.endless"), threading.Event()
    thread = threading.Thread(target=Worker(any_hub, stopping=stopping).run)
    thread.start()
    wait_for(lambda: job(any_hub, made.id).stage == "waiting")
    stopping.set()
    thread.join()
    found = job(any_hub, made.id)
    assert (found.state, found.losses, found.worker) == (JobState.QUEUED, 0, None)


def test_work_that_is_canceled_stops(any_hub: Hub, asked: Callable[..., Job]) -> None:
    made, stopping = asked("test.endless"), threading.Event()
    thread = threading.Thread(target=Worker(any_hub, stopping=stopping).run)
    thread.start()
    wait_for(lambda: job(any_hub, made.id).stage == "waiting")
    with any_hub.store.writing() as session:
        queue.request_cancel(session, made.id)
    wait_for(lambda: job(any_hub, made.id).state == JobState.CANCELED)
    stopping.set()
    thread.join()


def test_work_whose_claim_is_lost_stops_and_changes_nothing(any_hub: Hub, asked: Callable[..., Job]) -> None:
    made, stopping = asked("test.endless"), threading.Event()
    set_settings(any_hub, lease_seconds=60.0)
    thread = threading.Thread(target=Worker(any_hub, stopping=stopping).work_once)
    thread.start()
    wait_for(lambda: job(any_hub, made.id).stage == "waiting")
    with any_hub.store.writing() as session:
        found = session.get(Job, made.id)
        assert found is not None
        found.attempt += 1
        found.stage = "taken"
    thread.join()
    assert (job(any_hub, made.id).state, job(any_hub, made.id).stage) == (JobState.RUNNING, "taken")


def test_a_heartbeat_keeps_long_work_claimed(any_hub: Hub, asked: Callable[..., Job]) -> None:
    asked("test.endless")
    set_settings(any_hub, lease_seconds=0.15)
    held = jobs.take(any_hub, "w")
    assert held is not None
    with KeptClaim(any_hub, held, stopping=threading.Event()):
        first = job(any_hub, held.job_id).lease_until
        wait_for(lambda: job(any_hub, held.job_id).lease_until != first)
    with any_hub.store.writing() as session:
        assert queue.heartbeat(session, held, 60) is Standing.HELD


def test_a_heartbeat_ends_with_its_claim_and_outlasts_the_database(
    any_hub: Hub, asked: Callable[..., Job], monkeypatch: pytest.MonkeyPatch
) -> None:
    asked("test.endless")
    set_settings(any_hub, lease_seconds=0.1)
    held = jobs.take(any_hub, "w")
    assert held is not None
    failures, beat = iter([True, True]), queue.heartbeat

    def failing(*arguments: Any) -> Standing:
        if next(failures, False):
            raise HubUnavailableError("away", fix="wait")
        return beat(*arguments)

    monkeypatch.setattr(workers.queue, "heartbeat", failing)
    with KeptClaim(any_hub, held, stopping=threading.Event()) as kept:
        wait_for(lambda: next(failures, None) is None)
        with any_hub.store.writing() as session:
            found = session.get(Job, held.job_id)
            assert found is not None
            found.attempt += 1
        wait_for(lambda: not kept._thread.is_alive())
        with pytest.raises(BrokenOff):
            kept.progress(0.1, "x")


def test_progress_that_cannot_be_told_does_not_break_the_work(
    any_hub: Hub, asked: Callable[..., Job], monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: Any) -> None:
        raise HubUnavailableError("away", fix="wait")

    made = asked()
    monkeypatch.setattr(workers.queue, "report_progress", fail)
    Worker(any_hub).work_once()
    assert job(any_hub, made.id).state == JobState.DONE


def test_a_worker_waits_out_a_database_that_is_away(
    any_hub: Hub, asked: Callable[..., Job], monkeypatch: pytest.MonkeyPatch
) -> None:
    stopping, tries = threading.Event(), []
    made = asked()
    sole = Worker(any_hub, stopping=stopping)
    once = sole.work_once

    def failing() -> bool:
        tries.append(1)
        if len(tries) < 3:
            raise HubUnavailableError("away", fix="wait")
        found = once()
        stopping.set()
        return found

    monkeypatch.setattr(sole, "work_once", failing)
    sole.run()
    assert job(any_hub, made.id).state == JobState.DONE


def test_tables_are_kept_for_a_while_and_not_too_many() -> None:
    tables, opened = OpenTables(limit=2), []

    def opener(name: str) -> Callable[[], Any]:
        return lambda: opened.append(name) or name

    for name in ("a", "b", "a", "c", "b"):
        assert tables(name, opener(name)) == name
    assert opened == ["a", "b", "c", "b"]
    assert len(tables) == 2
    tables.forget_idle()
    assert len(tables) == 2
    tables._idle_seconds = -1.0
    tables.forget_idle()
    assert len(tables) == 0


# Killed at every step ------------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize(
    ("any_hub", "point"),
    on_databases(
        hub_worker.POINTS,
        # Where a kill leaves claim and transaction in different states.
        postgres=["after the claim", "before the run", "with the claim held", "before the commit", "after the commit"],
    ),
    indirect=["any_hub"],
)
def test_a_worker_killed_at_any_step_loses_no_spend_and_releases_once(
    any_hub: Hub, asked: Callable[..., Job], point: str
) -> None:
    made = asked()
    settings = any_hub.settings
    killed = fork_context().Process(target=hub_worker.die_at, args=(point, str(settings.folder), settings.database))
    killed.start()
    killed.join()
    assert killed.exitcode == hub_worker.DEAD
    survivor = Worker(any_hub, name="survivor")

    def ended() -> bool:
        survivor.work_once()
        return is_final(any_hub, made.id)

    wait_for(ended)
    found = job(any_hub, made.id)
    is_kept = point == "after the commit"
    assert (found.state, found.attempt, found.losses) == (JobState.DONE, 2 - is_kept, 1 - is_kept)
    with any_hub.store.reading() as session:
        ledger = any_hub.store.ledger(session)
        ledger.verify()
        kinds = [entry.kind.value for entry in ledger.entries(str(made.dataset_id))]
        assert (kinds.count("spend"), kinds.count("answer")) == (1, 1)
        assert ledger.spent(str(made.dataset_id)).amount == Fraction(1, 2)
        assert session.query(ResultRecord).count() == 1


# The supervisor ------------------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("hub_of_two", ["sqlite"], indirect=True)
def test_a_supervisor_replaces_the_dead_and_ends_the_living(hub_of_two: Hub) -> None:
    ada = add_user(hub_of_two, "ada", AccountRole.DATA_USER, of="south")
    dataset = add_dataset(hub_of_two, users=(ada,))
    with Supervisor(hub_of_two.settings, target=hub_worker.main) as supervisor:
        first = supervisor.process_ids
        assert len(first) == 2
        os.kill(first[0], signal.SIGKILL)
        wait_for(lambda: len(supervisor.process_ids) == 2 and first[0] not in supervisor.process_ids)
        made = submit(hub_of_two, ada, dataset, "test.count", epsilon="0.5")
        wait_for(lambda: is_final(hub_of_two, made.id))
        last = supervisor.process_ids
    assert job(hub_of_two, made.id).state == JobState.DONE
    assert not any(Path(f"/proc/{process}").exists() for process in last)


@pytest.fixture
def hub_of_two(request: pytest.FixtureRequest, tmp_path: Path) -> Any:
    opened = make_hub(tmp_path / "hub", request, workers=2)
    yield opened
    opened.close()


def test_the_dead_are_replaced_less_and_less_often(monkeypatch: pytest.MonkeyPatch, hub: Hub) -> None:
    set_settings(hub, workers=1)
    supervisor, clock, started = Supervisor(hub.settings), [0.0], []

    class Dead:
        def is_alive(self) -> bool:
            return False

        def close(self) -> None:
            pass

    def fill(place: Any) -> None:
        started.append(clock[0])
        place.process, place.started = Dead(), clock[0]

    monkeypatch.setattr(supervisor, "_fill", fill)
    monkeypatch.setattr("cloister.hub.workers.time.monotonic", lambda: clock[0])
    place = supervisor._places[0]
    for tick in range(400):
        clock[0] = tick / 100
        supervisor._look_after(place)
    gaps = [round(later - earlier, 2) for earlier, later in pairwise(started)]
    assert gaps[0] >= FIRST_RESTART_PAUSE
    assert all(later >= 2 * earlier - 0.05 for earlier, later in pairwise(gaps))


def test_a_worker_has_a_name_of_its_own() -> None:
    assert workers.worker_name().endswith(f":{os.getpid()}")


def test_a_worker_process_spills_no_rows_and_hears_that_it_is_to_end(hub: Hub, monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[str] = []
    monkeypatch.setattr(workers, "forbid_spilling", lambda: told.append("no spilling"))

    def run(self: Worker) -> None:
        os.kill(os.getpid(), signal.SIGTERM)
        told.append("ends" if self._stopping.wait(10) else "goes on")

    monkeypatch.setattr(Worker, "run", run)
    before = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)}
    try:
        workers.run_worker(hub.settings)
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    assert told == ["no spilling", "ends"]
