"""A small table of patients and its schema, for tests of whole releases."""

from __future__ import annotations

from functools import cache
from typing import Any

import pyarrow as pa

from cloister.data.columns import Column
from cloister.data.hierarchy import Hierarchy
from cloister.data.schema import Schema
from cloister.data.sources import open_table
from cloister.data.table import Table

CITIES = {"north": ["kiel", "emden"], "south": ["ulm", "lindau"]}
SCHEMA = Schema(
    [
        Column(name="patient", role="identifier"),
        Column(name="age", kind="numeric", hierarchy=Hierarchy.intervals((20, 59), widths=[10, 20])),
        Column(name="city", hierarchy=Hierarchy.taxonomy(CITIES)),
        Column(name="disease", role="sensitive"),
        Column(name="pay", role="sensitive", kind="numeric"),
        Column(name="note", role="insensitive"),
    ]
)


def columns(count: int = 24) -> dict[str, list[Any]]:
    places = range(count)
    return {
        "patient": [f"p{place // 2}" for place in places],
        "age": [20 + 7 * place % 40 for place in places],
        "city": [("kiel", "emden", "ulm", "lindau")[place % 4] for place in places],
        "disease": [("flu", "cold", "angina")[place % 3] for place in places],
        "pay": [100 * (place % 5) for place in places],
        "note": [f"n{place % 2}" for place in places],
    }


def people(schema: Schema | None = SCHEMA, **changed: Any) -> Table:
    """Return the patients, with some columns changed or, for None, left out."""
    if not changed:
        return _opened().with_schema(schema)
    kept = {name: cells for name, cells in (columns() | changed).items() if cells is not None}
    return open_table(pa.table(kept), schema=schema)


@cache
def _opened() -> Table:
    """Return the patients, opened once, since that takes longer than most tests."""
    return open_table(pa.table(columns()))
