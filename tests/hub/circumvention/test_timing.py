"""When answers and refusals appear: moments that depend on the rows would tell of them. None does."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from sqlalchemy import event

from cloister.hub import queue, workers
from cloister.hub.services import protected_tables
from cloister.hub.services.registry import ServiceOutcome, service_registry
from cloister.hub.store.models import Job
from cloister.hub.use_cases import audit_log
from cloister.hub.use_cases.audit_log import RefusalCounts
from cloister.hub.use_cases.datasets import _views as views
from cloister.hub.use_cases.jobs import work as jobs_work
from cloister.hub.workers import Worker
from cloister.queries import PrivateTable
from tests.support.hub_attacks import API, VICTIM, told
from tests.support.hub_services import RowCount
from tests.support.hub_world import (
    HIDDEN_COLUMN,
    PURPOSE,
    REQUESTER,
    World,
    work,
)

pytestmark = pytest.mark.slow


class Clock:
    """A clock that stands still unless something is said to take time."""

    def __init__(self) -> None:
        self.now = 0.0

    def monotonic(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        """Let time pass, a tenth of a second after the other, with somebody who looks after each."""
        until = round(self.now + seconds, 6)
        while self.now < until:
            self.now = min(round(self.now + 0.1, 6), until)
            self.look()

    def look(self) -> None:
        """Do nothing, unless somebody watches."""

    def moment(self) -> datetime:
        return datetime(2026, 1, 1, tzinfo=UTC) + timedelta(seconds=self.now)


class _Failing(RowCount):
    """A service that fails in any case, after it has looked."""

    name = "test.failing"

    def run(self, work: Any, parameters: Any) -> ServiceOutcome:
        work.table.count(parameters.where)
        raise ZeroDivisionError


@pytest.fixture
def clock(world: World, monkeypatch: pytest.MonkeyPatch) -> Clock:
    """A clock by which work takes 0.55 seconds, and 0.4 more where the victim is there."""
    work(world.hub)
    made, run = Clock(), jobs_work._run
    monkeypatch.setitem(service_registry._members, _Failing.name, _Failing())
    monkeypatch.setattr(jobs_work, "time", made)
    monkeypatch.setattr(queue, "now", made.moment)

    def timed(hub: Any, order: Any, *rest: Any) -> ServiceOutcome:
        table = views.open_view(hub, order.case.version, order.case.decision)
        made.now += 0.55 + 0.4 * table.count(VICTIM)
        return run(hub, order, *rest)

    monkeypatch.setattr(jobs_work, "_run", timed)
    return made


def watched(world: World, clock: Clock, place: str, service: str, *, quantum: float) -> tuple[Any, ...]:
    """Return all that the API shows of the time that a question took, to somebody who looks all the time."""
    clock.now = 0.1
    where = {"sql": f"SELECT COUNT(*) AS n FROM data WHERE {VICTIM}"} if service == "query.sql" else {"where": VICTIM}
    asked = {"parameters": {"epsilon": "0.1", **where}, "purpose": PURPOSE}
    client = world.client(REQUESTER)
    job = client.post(f"{API}/datasets/{world.things[place]}/services/{service}/runs", json=asked).json()["id"]
    assert client.get(f"{API}/jobs/{job}").json()["state"] == "queued"
    work(replace(world.hub, settings=replace(world.hub.settings, answer_seconds=quantum)))
    shown = client.get(f"{API}/jobs/{job}").json()
    return shown["state"], shown["finished"], clock.now, told(shown["error"] or {}, world.things[place])


@pytest.mark.hidden_failures
@pytest.mark.parametrize("service", ["query.sql", _Failing.name])
def test_when_an_answer_appears_does_not_depend_on_the_rows(world: World, clock: Clock, service: str) -> None:
    """Success: the moment at which an answer or a failure appears, or is said to have, tells if the victim is there."""
    seen = [watched(world, clock, place, service, quantum=0.25) for place in ("with", "without")]
    assert seen[0] == seen[1]
    assert seen[0][:3] == ("done", "2026-01-01T00:00:01+00:00", pytest.approx(1.1))


@pytest.mark.hidden_failures
@pytest.mark.parametrize("service", ["query.sql", _Failing.name])
def test_without_such_moments_the_victim_would_be_found(world: World, clock: Clock, service: str) -> None:
    """The same attempt on a hub that shows results when they are there."""
    seen = [watched(world, clock, place, service, quantum=0) for place in ("with", "without")]
    assert [one[0] for one in seen] == ["done", "done"]
    assert [one[1][-9:-6] for one in seen] == [":01", ":00"]
    assert [one[2] for one in seen] == [pytest.approx(1.05), pytest.approx(0.65)]


def stages(
    world: World, clock: Clock, place: str, monkeypatch: pytest.MonkeyPatch, *, cancel: bool = False
) -> list[tuple[Any, ...]]:
    """Return when a worker's job changes in the eyes of its requester; it takes 2.2 seconds, and 1 more for the victim.

    The job is canceled after one second if that is asked for.
    """

    class Slow(PrivateTable):
        def sql(self, *arguments: Any, **options: Any) -> Any:
            clock.sleep(2.2 + self._table.count(VICTIM))
            return super().sql(*arguments, **options)

    clock.now = 0.0
    client, seen = world.client(REQUESTER), []
    question = {"sql": f"SELECT COUNT(*) AS n FROM data WHERE {VICTIM}", "epsilon": "0.1", "fresh": True}
    address = f"{API}/datasets/{world.things[place]}/services/query.sql/runs"
    job = client.post(address, json={"parameters": question, "purpose": PURPOSE}).json()["id"]

    def look() -> None:
        shown = client.get(f"{API}/jobs/{job}").json()
        now = tuple(shown[name] for name in ("state", "stage", "progress"))
        if not seen or seen[-1][1:] != now:
            seen.append((clock.now, *now))
        if cancel and clock.now == 1.0:
            assert client.post(f"{API}/jobs/{job}/cancel").status_code < 300

    with monkeypatch.context() as patched:
        patched.setattr(clock, "look", look)
        patched.setattr(protected_tables, "PrivateTable", Slow)
        patched.setattr(workers, "time", clock)
        hub = replace(world.hub, settings=replace(world.hub.settings, answer_seconds=0.25))
        assert Worker(hub, name="tests").work_once()
        look()
    return seen


@pytest.fixture
def still_clock(world: World, monkeypatch: pytest.MonkeyPatch) -> Clock:
    """A clock that only what a test does moves."""
    work(world.hub)
    made = Clock()
    monkeypatch.setattr(jobs_work, "time", made)
    return made


@pytest.mark.parametrize(("cancel", "end"), [(False, ("done", "", 1.0)), (True, ("canceled", "", 0.0))])
def test_the_stage_of_work_does_not_tell_how_long_the_rows_took(
    world: World, still_clock: Clock, monkeypatch: pytest.MonkeyPatch, cancel: bool, end: tuple[Any, ...]
) -> None:
    """Success: a stage, a share, or the moment at which canceled work stops comes later where the victim is there."""
    seen = [stages(world, still_clock, place, monkeypatch, cancel=cancel) for place in ("with", "without")]
    assert seen[0] == seen[1] == [(0.1, "running", "working on the rows", 0.0), (4.0, *end)]


@pytest.mark.parametrize("is_for_owners", [True, False])
def test_only_work_for_owners_shows_its_stages(world: World, is_for_owners: bool) -> None:
    """Owners may see their rows, so what they run on them themselves may tell how far it is."""
    asked = {"parameters": {"sql": "SELECT COUNT(*) AS n FROM data", "epsilon": "0.1"}, "purpose": PURPOSE}
    client = world.client(REQUESTER)
    run = client.post(f"{API}/datasets/{world.things['with']}/services/query.sql/runs", json=asked).json()["id"]
    with world.hub.store.writing() as session:
        job = session.get(Job, run)
        assert job is not None
        job.state, job.stage, job.progress = "running", "counting", 0.5
        job.plan = job.plan | {"owners_only": is_for_owners}
    shown = client.get(f"{API}/jobs/{run}").json()
    expected = (0.5, "counting") if is_for_owners else (0.0, "working on the rows")
    assert (shown["progress"], shown["stage"]) == expected


REFUSED = {
    "hidden": ({"sql": f"SELECT SUM({HIDDEN_COLUMN}) AS n FROM data", "epsilon": "0.1"}, PURPOSE, 422),
    "unknown": ({"sql": f"SELECT SUM({'z' * len(HIDDEN_COLUMN)}) AS n FROM data", "epsilon": "0.1"}, PURPOSE, 422),
    "victim": ({"sql": f"SELECT * FROM data WHERE {VICTIM}", "epsilon": "0.1"}, PURPOSE, 422),
    "too dear": ({"sql": f"SELECT COUNT(*) AS n FROM data WHERE {VICTIM}", "epsilon": "9999999"}, PURPOSE, 409),
    "purpose": ({"sql": f"SELECT COUNT(*) AS n FROM data WHERE {VICTIM}", "epsilon": "0.1"}, "marketing", 403),
}


def steps_of(world: World, clock: Clock, place: str, name: str, monkeypatch: pytest.MonkeyPatch) -> tuple[Any, ...]:
    """Return what a refusal does: the statements that the database hears, the files that are opened, the time."""
    parameters, purpose, status = REFUSED[name]
    heard: list[str] = []

    def hear(_connection: Any, _cursor: Any, statement: str, *_: Any) -> None:
        heard.append(statement)

    monkeypatch.setattr(audit_log, "_counts", RefusalCounts())
    clock.now = 0.1
    opened: list[Any] = []
    monkeypatch.setattr(type(world.hub.blobs), "open", lambda _self, blob: opened.append(blob))
    address = f"{API}/datasets/{world.things[place]}/services/query.sql"
    client, answers = world.client(REQUESTER), []
    event.listen(world.hub.store.engine, "before_cursor_execute", hear)
    try:
        for step in ("preview", "runs"):
            answer = client.post(f"{address}/{step}", json={"parameters": parameters, "purpose": purpose})
            answers.append((answer.status_code, told(answer.json(), world.things[place])))
    finally:
        event.remove(world.hub.store.engine, "before_cursor_execute", hear)
    assert answers[-1][0] == status
    with world.hub.store.reading() as session:
        assert session.query(Job).filter_by(dataset_id=world.things[place]).count() == 0
    return heard, opened, clock.now, answers


@pytest.mark.parametrize("name", sorted(REFUSED))
def test_when_a_refusal_comes_does_not_depend_on_the_rows(
    world: World, clock: Clock, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """Success: a refusal takes another way where the victim is there; it opens no file, so no row can delay it."""
    seen = [steps_of(world, clock, place, name, monkeypatch) for place in ("with", "without")]
    assert seen[0] == seen[1]
    assert seen[0][1:3] == ([], 0.1)


def test_a_hidden_column_takes_the_way_of_an_unknown_one(
    world: World, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Success: the hub looks up more, or less, before it refuses a column that is hidden."""
    hidden, unknown = (steps_of(world, clock, "with", name, monkeypatch) for name in ("hidden", "unknown"))
    assert hidden[:3] == unknown[:3]
