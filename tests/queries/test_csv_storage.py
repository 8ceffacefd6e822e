"""No row of a CSV file or a data frame with stated storage changes what is answered, on which grid, in which groups."""

from __future__ import annotations

import datetime as dt
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import cloister as cl
from cloister.errors import DataWarning
from tests.queries.tables import VISITS

ROWS = "x,s\n" + "".join(f"{number % 50},a\n" for number in range(300))
NEIGHBORS = ["1.5,a\n", "abc,a\n", "1e400,a\n", "99999999999999999999,a\n", "-0.0,a\n", ",a\n", "2020-01-01,b\n"]
SCHEMA = cl.Schema(
    [
        cl.Column(name="x", kind="numeric", storage="integer", bounds=(0, 100)),  # type: ignore[arg-type]
        cl.Column(name="s", storage="text", categories=["a", "b"]),  # type: ignore[arg-type]
    ]
)
PUBLIC_TYPES = "the types of columns are public"


def private(folder: Path, extra: str, *, schema: cl.Schema | None = SCHEMA, **options: Any) -> cl.PrivateTable:
    path = folder / "data.csv"
    path.write_text(ROWS + extra)
    return cl.PrivateTable(cl.open_table(path, schema=schema), budget=cl.Budget(epsilon=100), **options)


def observed(table: cl.PrivateTable) -> list[Any]:
    """Return everything about answers that must not depend on a row."""
    sql = "SELECT x, COUNT(*) AS n, SUM(x) AS total FROM data GROUP BY x"
    frame = table.sql(sql, epsilon=1)
    mean = table.mean("x", epsilon=1)
    return [
        table.preview("SELECT SUM(x) AS total, AVG(x) AS middle FROM data", epsilon=1).to_dict(),
        frame["x"].tolist(),
        frame.margin()["total"].tolist(),
        frame.guarantee,
        frame.notes,
        float(table.sum("x", epsilon=1).value).is_integer(),
        mean.notes,
        table.count(where="x > 3", epsilon=1).margin(),
        table.most_common("s", epsilon=1).guarantee,
        table.remaining,
    ]


@pytest.mark.parametrize("extra", NEIGHBORS)
def test_neighbors_are_answered_alike(tmp_path: Path, extra: str) -> None:
    assert observed(private(tmp_path, extra)) == observed(private(tmp_path, ""))


def test_types_that_were_read_from_rows_are_an_assumption_of_every_guarantee(tmp_path: Path) -> None:
    table = private(tmp_path, "", schema=SCHEMA.with_storage("x", None), min_size=100)
    results = [
        table.count(epsilon=1),
        table.sql("SELECT SUM(x) AS total FROM data", epsilon=1),
        table.mean("x", epsilon=1),
        table.most_common("s", epsilon=1),
        table.preview("SELECT COUNT(*) AS n FROM data", epsilon=1),
    ]
    for result in results:
        assert sum(PUBLIC_TYPES in text for text in result.guarantee.assumptions) == 1
        assert PUBLIC_TYPES in result.guarantee.explain()


def test_persons_and_other_tables_are_covered(tmp_path: Path) -> None:
    (tmp_path / "letters.csv").write_text("patient,pages\np1,3\n")
    letters = cl.open_table(tmp_path / "letters.csv")
    visits = cl.open_table(VISITS)
    options: dict[str, Any] = {"budget": cl.Budget(epsilon=9), "unit": "patient", "max_rows_per_unit": 3}
    alone = cl.PrivateTable(visits, **options).with_limit(2).count(epsilon=1)
    joined = cl.PrivateTable(visits, others={"letters": letters}, **options).with_limit(2).count(epsilon=1)
    assert [PUBLIC_TYPES in " ".join(answer.guarantee.assumptions) for answer in (alone, joined)] == [False, True]


FRAMES: list[tuple[str, list[Any]]] = [
    ("missing", [None]),
    ("a fraction", [1.5]),
    ("a text", ["abc"]),
    ("infinite", [float("inf")]),
    ("too large", [2**70]),
    ("a truth value", [True]),
    ("a time", [dt.datetime(2020, 1, 1)]),
]


@pytest.mark.parametrize("extra", [extra for _, extra in FRAMES], ids=[name for name, _ in FRAMES])
def test_neighbors_in_a_data_frame_are_answered_alike(extra: list[Any]) -> None:
    tables = [
        cl.PrivateTable(
            cl.open_table(
                pd.DataFrame({"x": [*(number % 50 for number in range(300)), *more], "s": "a"}), schema=SCHEMA
            ),
            budget=cl.Budget(epsilon=100),
        )
        for more in ([], extra)
    ]
    assert observed(tables[0]) == observed(tables[1])
    assert PUBLIC_TYPES not in tables[1].count(epsilon=1).guarantee.explain()


def test_types_that_pandas_read_from_rows_are_an_assumption_unless_they_were_declared() -> None:
    ages = pd.DataFrame({"age": [47, 52]})
    schema = cl.Schema([cl.Column(name="age", kind="numeric", bounds=(0, 110))])  # type: ignore[arg-type]
    for frame, is_assumed in ((ages, True), (ages.astype("Int64"), False), (ages.astype(object), True)):
        table = cl.PrivateTable(cl.open_table(frame, schema=schema), budget=cl.Budget(epsilon=9))
        assert (PUBLIC_TYPES in table.count(epsilon=1).guarantee.explain()) is is_assumed


@pytest.mark.parametrize(
    ("storage", "given", "read"),
    [
        ("integer", [1.0, float("nan"), 2.5, 1e300], [1, None, None, None]),
        ("integer", ["7", " 8", "x", None], [7, 8, None, None]),
        ("integer", np.array([2**64 - 1, 5], dtype=np.uint64), [None, 5]),
        ("real", [1, 2], [1.0, 2.0]),
        ("text", [1.0, 2.5, None], ["1", "2.5", None]),
        ("text", [1, 2], ["1", "2"]),
        ("text", [True, False], ["true", "false"]),
        ("boolean", ["true", "maybe"], [True, None]),
        ("date", ["2020-02-29", "2020-02-30"], [dt.date(2020, 2, 29), None]),
        ("date", [dt.datetime(2020, 1, 1), dt.datetime(2020, 1, 1, 5)], [dt.date(2020, 1, 1), None]),
        ("timestamp", [dt.datetime(2020, 1, 1, 5)], [dt.datetime(2020, 1, 1, 5)]),
        ("integer", [None, None], [None, None]),
        ("integer", pd.Series(["1", "2"], dtype="category"), [1, 2]),
    ],
)
def test_stated_types_of_a_data_frame(storage: str, given: Any, read: list[Any]) -> None:
    schema = cl.Schema([cl.Column(name="x", storage=storage)])  # type: ignore[arg-type]
    assert cl.open_table(pd.DataFrame({"x": given}), schema=schema).to_arrow()["x"].to_pylist() == read


def test_what_no_engine_reads_is_refused() -> None:
    schema = cl.Schema([cl.Column(name="x", storage="integer")])  # type: ignore[arg-type]
    with pytest.warns(DataWarning, match="stored as text"):
        table = cl.open_table(pd.DataFrame({"x": [[1], [2]]}), schema=schema)
    with pytest.raises(cl.CloisterError, match="x"):
        table.to_arrow()


def test_stated_types_and_other_sources_assume_nothing(tmp_path: Path) -> None:
    for table in (private(tmp_path, ""), cl.PrivateTable(cl.open_table(VISITS), budget=cl.Budget(epsilon=9))):
        assert PUBLIC_TYPES not in table.count(epsilon=1).guarantee.explain()
