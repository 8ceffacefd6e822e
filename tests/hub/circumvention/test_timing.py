"""When answers and refusals appear: moments that depend on the rows would tell of them. None does."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from sqlalchemy import event

from cloister.hub.jobs import queue
from cloister.hub.services import auditing, views
from cloister.hub.services.refusal_counts import RefusalCounts
from cloister.hub.services.registry import Outcome, algorithms
from cloister.hub.services.running import performing
from cloister.hub.store.models import Job
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
        self.now += seconds

    def moment(self) -> datetime:
        return datetime(2026, 1, 1, tzinfo=UTC) + timedelta(seconds=self.now)


class _Failing(RowCount):
    """A service that fails in any case, after it has looked."""

    name = "test.failing"

    def run(self, work: Any, parameters: Any) -> Outcome:
        work.table.count(parameters.where)
        raise ZeroDivisionError


@pytest.fixture
def clock(world: World, monkeypatch: pytest.MonkeyPatch) -> Clock:
    """A clock by which work takes 0.55 seconds, and 0.4 more where the victim is there."""
    work(world.hub)
    made, run = Clock(), performing._run
    monkeypatch.setitem(algorithms._members, _Failing.name, _Failing())
    monkeypatch.setattr(performing, "time", made)
    monkeypatch.setattr(queue, "now", made.moment)

    def timed(hub: Any, order: Any, *rest: Any) -> Outcome:
        table = views.open_view(hub, order.case.version, order.case.decision)
        made.now += 0.55 + 0.4 * table.count(VICTIM)
        return run(hub, order, *rest)

    monkeypatch.setattr(performing, "_run", timed)
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


@pytest.mark.parametrize(("service", "state"), [("query.sql", "done"), (_Failing.name, "failed")])
def test_when_an_answer_appears_does_not_depend_on_the_rows(
    world: World, clock: Clock, service: str, state: str
) -> None:
    """Success: the moment at which an answer or a failure appears, or is said to have, tells if the victim is there."""
    seen = [watched(world, clock, place, service, quantum=0.25) for place in ("with", "without")]
    assert seen[0] == seen[1]
    assert seen[0][:3] == (state, "2026-01-01T00:00:01+00:00", pytest.approx(1.1))


@pytest.mark.parametrize(("service", "state"), [("query.sql", "done"), (_Failing.name, "failed")])
def test_without_such_moments_the_victim_would_be_found(world: World, clock: Clock, service: str, state: str) -> None:
    """The same attempt on a hub that shows results when they are there."""
    seen = [watched(world, clock, place, service, quantum=0) for place in ("with", "without")]
    assert [one[0] for one in seen] == [state, state]
    assert [one[1][-9:-6] for one in seen] == [":01", ":00"]
    assert [one[2] for one in seen] == [pytest.approx(1.05), pytest.approx(0.65)]


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

    monkeypatch.setattr(auditing, "_counts", RefusalCounts())
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
