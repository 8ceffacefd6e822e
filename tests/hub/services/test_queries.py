"""Questions without SQL: every kind of number can be chosen on the page, and its SQL is known to private tables."""

from __future__ import annotations

import pyarrow as pa
import pytest

import cloister as cl
from cloister.hub.services.queries import Built, MeasureKind, sql_of
from cloister.hub.web.forms import parts_of

SCHEMA = cl.Schema([cl.Column(name="age", kind="numeric", bounds=(0, 110))])
AGE = {"name": "age", "uses": ["measure"], "kind": "numeric", "bounds": [0, 110], "categories": None, "storage": None}


@pytest.mark.parametrize("kind", MeasureKind)
def test_what_can_be_found_is_offered_and_answered(kind: MeasureKind) -> None:
    assert parts_of([AGE])["kinds"][kind.value] == kind.words
    question = Built.model_validate(
        {"measures": [{"kind": kind.value, "column": None if kind is MeasureKind.COUNT else "age"}]}
    )
    private = cl.PrivateTable(cl.open_table(pa.table({"age": [30, 40]}), schema=SCHEMA), budget=cl.Budget(epsilon=1))
    frame = private.sql(sql_of(question), epsilon=1)
    assert [str(column.name).split(" ")[0] for column in frame.columns] == [kind.value]


def test_a_stored_question_names_kinds_as_before() -> None:
    names = {"count", "sum", "mean", "median", "minimum", "maximum", "variance", "deviation"}
    assert {kind.value for kind in MeasureKind} == names
    question = Built.model_validate({"measures": [{"kind": "variance", "column": "age"}]})
    assert question.model_dump(mode="json")["measures"] == [{"kind": "variance", "column": "age"}]
