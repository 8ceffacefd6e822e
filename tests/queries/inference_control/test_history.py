from __future__ import annotations

import base64
import json
import threading
import zlib
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, strategies as st

from cloister.errors import ParameterError, QueryRefusedError
from cloister.queries.inference_control import Answered, ControlledTable, Controls, MemoryHistory
from cloister.queries.inference_control.history import AnsweredSet
from tests.queries.inference_control.controlled import STAFF, TEN, staff, staff_rows, ten_people
from tests.queries.neighbors import fast_table


@given(st.lists(st.lists(st.booleans(), min_size=13, max_size=13).map(np.array), max_size=6))
def test_histories_are_written_and_read(masks: list[Any]) -> None:
    sets = [AnsweredSet.of(mask, "asked" if mask[0] else "values of x") for mask in masks]
    answered = Answered(13, "digest", sets, 20)
    again = Answered.from_dict(json.loads(json.dumps(answered.to_dict())))
    assert again == answered
    assert all((item.mask(13) == mask).all() for item, mask in zip(again.sets, masks, strict=True))


def test_an_empty_history_is_written_and_read() -> None:
    assert Answered.from_dict(Answered().to_dict()) == Answered()


def _packed(raw: bytes) -> str:
    return base64.b64encode(zlib.compress(raw)).decode()


@pytest.mark.parametrize(
    "change",
    [
        {"schema": "cloister.inference_history/3"},
        {"asked": -1},
        {"asked": "often"},
        {"rows": -1},
        {"rows": "many"},
        {"rows": None},
        {"fingerprint": 5},
        {"sets": 7},
        {"sets": [{}]},
        {"sets": [{"members": "not base64!", "kinds": ["asked"]}]},
        {"sets": [{"members": base64.b64encode(b"raw").decode(), "kinds": ["asked"]}]},
        {"sets": [{"members": _packed(b"\xff\xff\xff"), "kinds": ["asked"]}]},
        {"sets": [{"members": _packed(b"\xff\xff"), "kinds": ["asked"]}]},
        {"sets": [{"members": _packed(b"\xff\x00"), "kinds": ["asked"]}]},
        {"sets": [{"members": _packed(bytes(10**7)), "kinds": ["asked"]}]},
        {"sets": [{"members": _packed(b"\xff"), "kinds": "asked"}]},
        {"sets": [{"members": _packed(b"\xff"), "kinds": [1]}]},
    ],
)
def test_damaged_histories_are_refused(change: dict[str, Any]) -> None:
    good = Answered(13, "digest", [AnsweredSet(b"\xff\xf8", frozenset({"asked", "known"}))]).to_dict()
    assert Answered.from_dict(good).sets[0].mask(13).all()
    with pytest.raises(ParameterError, match=r"to_dict\(\) returned, unchanged"):
        Answered.from_dict({**good, **change})


@pytest.mark.parametrize("bad", [None, [], "text", 5])
def test_other_values_are_no_history(bad: Any) -> None:
    with pytest.raises(ParameterError, match="not a history"):
        MemoryHistory.from_dict(bad)


def test_a_history_goes_on_after_it_was_stored() -> None:
    controls = Controls(min_size=2)
    first = ControlledTable(ten_people(), controls=controls)
    first.sum("salary", "sex = 'F'")
    assert isinstance(first.history, MemoryHistory)
    stored = json.loads(json.dumps(first.history.to_dict()))
    later = ControlledTable(ten_people(), controls=controls, history=MemoryHistory.from_dict(stored))
    with pytest.raises(QueryRefusedError):
        later.sum("salary", "sex = 'F' OR id = 8")
    assert later.sum("salary", "sex = 'F'").value == 9000
    assert ControlledTable(ten_people(), controls=controls).sum("salary", "sex = 'F' OR id = 8").value == 19000


def test_a_history_of_an_organization_is_shared_by_its_members() -> None:
    history = MemoryHistory()
    ann, bob = (ControlledTable(ten_people(), controls=Controls(min_size=2), history=history) for _ in range(2))
    ann.sum("salary", "sex = 'F'")
    with pytest.raises(QueryRefusedError):
        bob.sum("salary", "sex = 'F' OR id = 8")
    bob.sum("salary", "sex = 'M'")
    with pytest.raises(QueryRefusedError):
        ann.sum("salary", "sex = 'M' AND id <> 8")


def test_a_history_that_does_not_continue_the_last_one_is_read_from_its_start() -> None:
    table = ControlledTable(ten_people(), controls=Controls(min_size=2))
    table.sum("salary", "sex = 'F'")
    table.history = MemoryHistory()
    table.sum("salary", "sex = 'F' OR id = 8")
    with pytest.raises(QueryRefusedError):
        table.sum("salary", "sex = 'F'")


def test_appended_rows_continue_a_history_and_a_newcomer_is_not_given_away() -> None:
    history = MemoryHistory()
    controls = Controls(min_size=2)
    before = staff(60, history=history, controls=controls)
    mean = before.mean("bonus", "number >= 10").value
    after = staff(61, history=history, controls=controls)
    with pytest.raises(QueryRefusedError) as refused:
        after.mean("bonus", "number >= 10")
    assert refused.value.control == "audit"
    assert after.mean("bonus", "number >= 10 AND number < 60").value == mean
    with pytest.raises(ParameterError, match="open the version"):
        before.mean("bonus", "number >= 10")


@pytest.mark.parametrize("change", ["reordered", "changed", "fewer"])
def test_other_rows_do_not_continue_a_history(change: str) -> None:
    history = MemoryHistory()
    rows = staff_rows(60)
    ControlledTable(fast_table(rows, schema=STAFF), history=history).count("sex = 'F'")
    if change == "reordered":
        rows = rows.take(list(range(59, -1, -1)))
    elif change == "changed":
        rows = rows.set_column(6, "bonus", pa.array([0.25] * 60))
    else:
        rows = rows.slice(0, 59)
    with pytest.raises(ParameterError, match="Rows may be appended"):
        ControlledTable(fast_table(rows, schema=STAFF), history=history).count("sex = 'F'")


def test_a_question_that_fails_is_not_recorded() -> None:
    history = MemoryHistory()

    def failing() -> None:
        with history.exclusive() as answered:
            answered.sets.append(AnsweredSet(b"\x80", frozenset({"known"})))
            raise RuntimeError

    with pytest.raises(RuntimeError):
        failing()
    assert history.to_dict()["sets"] == []


def test_of_two_questions_that_are_harmful_together_one_is_answered() -> None:
    history = MemoryHistory()
    tables = [ControlledTable(ten_people(), controls=Controls(min_size=2), history=history) for _ in range(2)]
    conditions = ["sex = 'F'", "sex = 'F' OR id = 8"]
    start = threading.Barrier(2)
    answered: list[str] = []
    refused: list[str] = []

    def ask(table: ControlledTable, where: str) -> None:
        start.wait()
        try:
            table.sum("salary", where)
            answered.append(where)
        except QueryRefusedError:
            refused.append(where)

    threads = [
        threading.Thread(target=ask, args=(table, where)) for table, where in zip(tables, conditions, strict=True)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (len(answered), len(refused)) == (1, 1)


def test_a_history_shows_no_rows_when_it_is_printed() -> None:
    table = ControlledTable(ten_people(), controls=Controls(min_size=2))
    table.sum("salary", "sex = 'F'")
    assert repr(table.history) == "MemoryHistory(1 sets)"
    assert repr(AnsweredSet(b"\xff", frozenset({"known"}))) == "AnsweredSet(kinds=frozenset({'known'}))"
    assert repr(table) == f"ControlledTable({', '.join(TEN.names)})"
