from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace
from typing import Any

import pytest

from cloister.errors import DecryptionError
from cloister.hub.domain.roles import AccountRole
from cloister.hub.hub import Hub
from cloister.hub.store.models import AnswerHistory
from cloister.hub.use_cases import datasets
from cloister.hub.use_cases.jobs import keep
from tests.hub.conftest import add_user
from tests.support.hub_datasets import subject


@pytest.fixture
def case(any_hub: Hub) -> Any:
    """What a history needs to know of a run."""
    person = subject(any_hub, add_user(any_hub, "olga", AccountRole.DATA_OWNER))
    with any_hub.store.writing() as session:
        made = datasets.create_dataset(session, person, name="staff", title="", description="")
        made.mode = "sdc"
    return SimpleNamespace(dataset=made, subject=person)


def test_only_one_of_two_who_read_the_same_history_keeps_its_answer(any_hub: Hub, case: Any) -> None:
    first, second = keep.recall(any_hub, case), keep.recall(any_hub, case)
    assert first == second
    assert first is not None
    assert second is not None
    with any_hub.store.writing() as session:
        assert keep.keep_history(any_hub, session, case, first, {"by": "first"})
    with any_hub.store.writing() as session:
        assert not keep.keep_history(any_hub, session, case, second, {"by": "second"})
    now = keep.recall(any_hub, case)
    assert now is not None
    assert (now.revision, now.values) == (1, {"by": "first"})


def test_many_at_once_lose_nothing(any_hub: Hub, case: Any) -> None:
    def add(number: int) -> None:
        while True:
            found = keep.recall(any_hub, case)
            assert found is not None
            told = [*(found.values or {"told": []})["told"], number]
            with any_hub.store.writing() as session:
                if keep.keep_history(any_hub, session, case, found, {"told": told}):
                    return

    with ThreadPoolExecutor(6) as pool:
        list(pool.map(add, range(24)))
    found = keep.recall(any_hub, case)
    assert found is not None
    assert found.values is not None
    assert sorted(found.values["told"]) == list(range(24))
    assert found.revision == 24


def test_a_history_of_another_moment_cannot_be_put_in_its_place(any_hub: Hub, case: Any) -> None:
    found = keep.recall(any_hub, case)
    assert found is not None
    with any_hub.store.writing() as session:
        keep.keep_history(any_hub, session, case, found, {"told": []})
        row = session.get_one(AnswerHistory, (case.dataset.id, found.asker))
        row.revision += 1
    with pytest.raises(DecryptionError):
        keep.recall(any_hub, case)
