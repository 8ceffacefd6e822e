from __future__ import annotations

import datetime as dt

import pyarrow as pa
import pytest

from cloister.data.columns import Column
from cloister.data.schema import Schema
from cloister.data.sources import open_table
from cloister.data.table import Table
from cloister.queries.catalog import Catalog

ROWS = pa.table(
    {
        "patient_id": pa.array([1, 1, 2], pa.int64()),
        "age": pa.array([30, 40, 50], pa.int64()),
        "income": pa.array([1.5, 2.5, None], pa.float64()),
        "weight": pa.array([1.0, 2.0, 3.0], pa.float64()),
        "sex": ["F", "F", "M"],
        "note": ["a", "b", "c"],
        "day": pa.array([dt.date(2020, 1, 1)] * 3, pa.date32()),
        "seen": pa.array([dt.datetime(2020, 1, 1, 8)] * 3, pa.timestamp("us")),
        "smoker": [True, False, None],
        "Mixed Name": [1, 2, 3],
        'say "x"; --': ["x", "y", "z"],
    }
)
SCHEMA = Schema(
    [
        Column(name="patient_id"),
        Column(name="age", kind="numeric", bounds=(0, 110)),
        Column(name="income", kind="numeric", bounds=(0, 1000)),
        Column(name="weight", kind="numeric"),
        Column(name="sex", kind="nominal", categories=["F", "M", "X"]),
        Column(name="note", kind="text"),
        Column(name="day", kind="datetime", bounds=("2019-03-01", "2021-12-31")),
        Column(name="seen", kind="datetime"),
        Column(name="smoker", kind="nominal"),
        Column(name="Mixed Name", kind="numeric", bounds=(0, 5)),
        Column(name='say "x"; --', kind="text"),
    ]
)
CITIES = pa.table(
    {
        "note": ["a", "b", None],
        "region": ["north", "south", "west"],
        "level": [1, 1, 2],
        "share": [0.5, float("nan"), 2.0],
        "flat": [3, 3, 3],
        "ratio": [1.0, 2.0, 3.0],
        "opened": [dt.date(2000, 1, 1), dt.date(2001, 1, 1), None],
        "nested": [[1], [2], [3]],
    }
)


@pytest.fixture(scope="session")
def table() -> Table:
    return open_table(ROWS, schema=SCHEMA)


@pytest.fixture(scope="session")
def rows(table: Table) -> Catalog:
    """Every row is protected."""
    return Catalog(private={"data": table}, public={"cities": CITIES})


@pytest.fixture(scope="session")
def persons(table: Table) -> Catalog:
    """Every person is protected."""
    return Catalog(private={"data": table, "visits": table}, person="patient_id", public={"cities": CITIES})
