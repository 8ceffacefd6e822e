"""The Adult table with the published hierarchies, as anonymization papers use it."""

from __future__ import annotations

import warnings
from functools import cache
from pathlib import Path

from cloister.anonymize.cells import CodedCells, read_cells
from cloister.data.hierarchy import Hierarchy
from cloister.data.schema import Schema
from cloister.data.sources import open_table
from cloister.errors import DataWarning

QUASI = ("sex", "age", "race", "marital-status", "education", "native-country", "workclass", "occupation")


@cache
def adult_cells(
    folder: Path, *, quasi: tuple[str, ...] = QUASI, sensitive: tuple[str, ...] = ("salary-class",)
) -> CodedCells:
    """Count the 30,162 complete rows, once; nobody changes what is returned."""
    table = open_table(folder / "adult" / "adult_complete_9.csv")
    schema = Schema.infer(table).confirm()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DataWarning)
        for name in quasi:
            path = folder / "adult" / "hierarchies" / f"adult_hierarchy_{name}.csv"
            schema = schema.with_hierarchy(name, Hierarchy.read_csv(path))
    return read_cells(table, schema, quasi=quasi, sensitive=sensitive)
