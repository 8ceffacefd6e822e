from __future__ import annotations

import threading
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from itertools import product

import pytest

from cloister.errors import ConflictError
from cloister.hub import queue
from cloister.hub.domain.lifecycles import MOST_LOSSES, JobState, check_change
from cloister.hub.domain.roles import AccountRole
from cloister.hub.hub import Hub
from cloister.hub.queue import Bell, Claim, Standing
from cloister.hub.store.models import Job
from tests.hub.conftest import add_user


@pytest.fixture
def requester(any_hub: Hub) -> str:
    return add_user(any_hub, "ada", AccountRole.DATA_USER)


def add(hub: Hub, requester: str, name: str, *, age: float = 0.0) -> str:
    with hub.store.writing() as session:
        created = datetime.now(UTC) - timedelta(seconds=age)
        session.add(Job(id=name, service="test", requester_id=requester, created=created))
    return name


def take(hub: Hub, *, lease: float = 60.0, worker: str = "w") -> Claim | None:
    with hub.store.writing() as session:
        return queue.claim(session, worker, lease)


def taken(hub: Hub, *, lease: float = 60.0) -> Claim:
    held = take(hub, lease=lease)
    assert held is not None
    return held


def seen(hub: Hub, name: str) -> Job:
    with hub.store.reading() as session:
        job = session.get(Job, name)
        assert job is not None
        session.expunge_all()
        return job


def swept(hub: Hub) -> list[str]:
    with hub.store.writing() as session:
        return [job.id for job in queue.sweep(session)]


def test_the_oldest_work_is_claimed_first_and_each_piece_once(any_hub: Hub, requester: str) -> None:
    add(any_hub, requester, "young")
    add(any_hub, requester, "old", age=5)
    assert [taken(any_hub).job_id, taken(any_hub).job_id, take(any_hub)] == ["old", "young", None]
    assert seen(any_hub, "old").state == JobState.RUNNING


def test_many_workers_never_get_the_same_work(any_hub: Hub, requester: str) -> None:
    for number in range(12):
        add(any_hub, requester, f"job{number}")
    found: list[str] = []

    def work() -> None:
        while (held := take(any_hub)) is not None:
            found.append(held.job_id)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(found) == sorted(f"job{number}" for number in range(12))


def test_a_lapsed_claim_goes_to_another_worker_and_the_slow_one_can_change_nothing(
    any_hub: Hub, requester: str
) -> None:
    add(any_hub, requester, "job")
    slow = taken(any_hub, lease=-1)
    fast = taken(any_hub)
    assert (fast.job_id, fast.attempt) == ("job", slow.attempt + 1)
    with any_hub.store.writing() as session:
        assert queue.heartbeat(session, slow, 60) is Standing.LOST
        assert queue.report_progress(session, slow, 0.9, "almost") is Standing.LOST
        assert queue.hold(session, slow) is None
        assert not queue.give_back(session, slow)
    with any_hub.store.writing() as session:
        held = queue.hold(session, fast)
        assert held is not None
        queue.end(held, JobState.DONE)
    with any_hub.store.writing() as session:
        assert queue.hold(session, fast) is None
    assert (seen(any_hub, "job").state, seen(any_hub, "job").progress) == (JobState.DONE, 1.0)


def test_a_heartbeat_keeps_a_claim(any_hub: Hub, requester: str) -> None:
    add(any_hub, requester, "job")
    held = taken(any_hub, lease=-1)
    with any_hub.store.writing() as session:
        assert queue.heartbeat(session, held, 60) is Standing.HELD
    assert take(any_hub) is None


def test_a_claim_made_by_a_clock_that_was_ahead_ends_with_the_lease(any_hub: Hub, requester: str) -> None:
    add(any_hub, requester, "job")
    dead = taken(any_hub, lease=86_000)
    with any_hub.store.reading() as session:
        assert not queue.is_work_waiting(session), "a lease of a day can be meant"
        assert queue.is_work_waiting(session, lease_seconds=60)
    with any_hub.store.writing() as session:
        assert queue.sweep(session, lease_seconds=60) == []
    with any_hub.store.reading() as session:
        assert not queue.is_work_waiting(session, lease_seconds=60)
    left = seen(any_hub, "job").lease_until
    assert left is not None
    assert left <= datetime.now(UTC) + timedelta(seconds=61)
    with any_hub.store.writing() as session:
        assert queue.heartbeat(session, dead, 86_000) is Standing.HELD, "who lives keeps it"
        queue.sweep(session, lease_seconds=-1)
    assert taken(any_hub).attempt == dead.attempt + 1


def test_work_that_a_worker_cannot_do_is_passed_over(any_hub: Hub, requester: str) -> None:
    add(any_hub, requester, "job")
    with any_hub.store.writing() as session:
        assert not queue.is_work_waiting(session, passed_over=["job"])
        assert queue.claim(session, "w", 60, passed_over=["job"]) is None
        assert queue.is_work_waiting(session, passed_over=["other"])
    assert taken(any_hub).job_id == "job"


def test_work_that_loses_three_workers_is_given_out_once_more_and_then_has_failed(any_hub: Hub, requester: str) -> None:
    add(any_hub, requester, "job")
    for losses in range(MOST_LOSSES + 1):
        assert swept(any_hub) == []
        assert taken(any_hub, lease=-1).is_last == (losses == MOST_LOSSES)
    assert take(any_hub) is None
    with any_hub.store.reading() as session:
        assert queue.is_work_waiting(session)
    assert swept(any_hub) == ["job"]
    job = seen(any_hub, "job")
    assert (job.state, job.losses) == (JobState.FAILED, MOST_LOSSES + 1)
    assert job.error is not None
    assert job.error["problem"] == "The worker was lost four times."
    with any_hub.store.reading() as session:
        assert not queue.is_work_waiting(session)


def test_work_that_is_given_back_has_lost_nothing(any_hub: Hub, requester: str) -> None:
    add(any_hub, requester, "job")
    for _ in range(5):
        with any_hub.store.writing() as session:
            held = queue.claim(session, "w", 60)
            assert held is not None
            assert queue.give_back(session, held)
    assert (seen(any_hub, "job").state, seen(any_hub, "job").losses) == (JobState.QUEUED, 0)


def test_canceling_what_is_queued_takes_effect_at_once(any_hub: Hub, requester: str) -> None:
    add(any_hub, requester, "job")
    with any_hub.store.writing() as session:
        assert queue.request_cancel(session, "job") is JobState.CANCELED
    assert take(any_hub) is None
    with any_hub.store.writing() as session, pytest.raises(ConflictError, match="look at it again"):
        queue.request_cancel(session, "job")


def test_the_worker_hears_that_its_work_is_canceled(any_hub: Hub, requester: str) -> None:
    add(any_hub, requester, "job")
    held = taken(any_hub)
    with any_hub.store.writing() as session:
        assert queue.request_cancel(session, "job") is JobState.RUNNING
        assert queue.heartbeat(session, held, 60) is Standing.CANCELED
        assert queue.report_progress(session, held, 2.0, "x" * 500) is Standing.CANCELED
    assert (seen(any_hub, "job").progress, len(seen(any_hub, "job").stage)) == (1.0, 100)
    with any_hub.store.writing() as session:
        assert queue.give_back(session, held)
    assert seen(any_hub, "job").state == JobState.CANCELED


def test_canceled_work_that_lost_its_worker_is_not_done_again(any_hub: Hub, requester: str) -> None:
    add(any_hub, requester, "job")
    taken(any_hub, lease=-1)
    with any_hub.store.writing() as session:
        queue.request_cancel(session, "job")
    assert take(any_hub) is None
    assert swept(any_hub) == ["job"]
    assert seen(any_hub, "job").state == JobState.CANCELED


def test_work_that_does_not_exist_cannot_be_canceled(any_hub: Hub) -> None:
    with any_hub.store.writing() as session, pytest.raises(ConflictError):
        queue.request_cancel(session, "nothing")


def test_nothing_follows_a_final_state() -> None:
    final = {JobState.DONE, JobState.FAILED, JobState.CANCELED, JobState.DENIED}
    assert {state for state in JobState if state.is_final} == final
    for state, later in product(final, JobState):
        with pytest.raises(ConflictError, match=f"is {state} cannot become {later}"):
            check_change(state, later)


def test_every_state_can_be_reached_from_queued() -> None:
    reached = {JobState.QUEUED}
    for _ in JobState:
        reached |= {later for state in reached for later in JobState if state.may_become(later)}
    assert reached == set(JobState)


def test_a_bell_is_heard_once_and_by_everybody(tmp_path: object, any_hub: Hub) -> None:
    folder = any_hub.settings.folder
    first, second = Bell(folder), Bell(folder)
    assert not first.has_rung()
    Bell(folder).ring()
    assert [first.has_rung(), first.has_rung(), second.has_rung()] == [True, False, True]


def test_a_bell_that_cannot_ring_is_silent(any_hub: Hub) -> None:
    nowhere = Bell(any_hub.settings.folder / "nowhere")
    nowhere.ring()
    assert not nowhere.has_rung()


@pytest.fixture(autouse=True)
def _no_threads_left() -> Iterator[None]:
    before = threading.active_count()
    yield
    assert threading.active_count() == before
