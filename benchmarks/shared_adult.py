"""The Adult table and its published hierarchies, from the folder of shared data."""

from __future__ import annotations

import os
import warnings
from pathlib import Path

import cloister as cl
from cloister.errors import DataWarning

FOLDER = Path(os.environ.get("CLOISTER_DATA", Path(__file__).parents[2] / "shared" / "data"))
QUASI = ("sex", "age", "race", "marital-status", "education", "native-country", "workclass", "occupation")
TARGET = "salary-class"


def adult_file() -> Path:
    """Return the file with the 30,162 complete rows and nine columns."""
    return FOLDER / "adult" / "adult_complete_9.csv"


def adult_schema() -> cl.Schema:
    """Return eight quasi-identifiers with their hierarchies, and the sensitive salary class."""
    columns = [cl.Column(name=TARGET, role="sensitive")]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DataWarning)
        for name in QUASI:
            hierarchy = cl.Hierarchy.read_csv(FOLDER / "adult" / "hierarchies" / f"adult_hierarchy_{name}.csv")
            kind = "numeric" if name == "age" else "nominal"
            columns.append(cl.Column(name=name, kind=kind, hierarchy=hierarchy))
    return cl.Schema(columns)
