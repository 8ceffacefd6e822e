"""Adult as models learn from it: five numbers, or these and six one-hot columns (49 in all), with public bounds."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from pyarrow import csv

DATA = Path(os.environ.get("CLOISTER_DATA", Path(__file__).parents[2] / "shared" / "data"))
TARGET = "salary-class"
CLASSES = ("<=50K", ">50K")
NUMBERS = {
    "age": (17, 90),
    "education-num": (1, 16),
    "capital-gain": (0, 100_000),
    "capital-loss": (0, 4_500),
    "hours-per-week": (1, 100),
}
VALUES = {
    "workclass": (
        *("?", "Federal-gov", "Local-gov", "Never-worked", "Private"),
        *("Self-emp-inc", "Self-emp-not-inc", "State-gov", "Without-pay"),
    ),
    "marital-status": (
        *("Divorced", "Married-AF-spouse", "Married-civ-spouse", "Married-spouse-absent"),
        *("Never-married", "Separated", "Widowed"),
    ),
    "occupation": (
        *("?", "Adm-clerical", "Armed-Forces", "Craft-repair", "Exec-managerial", "Farming-fishing"),
        *("Handlers-cleaners", "Machine-op-inspct", "Other-service", "Priv-house-serv", "Prof-specialty"),
        *("Protective-serv", "Sales", "Tech-support", "Transport-moving"),
    ),
    "relationship": ("Husband", "Not-in-family", "Other-relative", "Own-child", "Unmarried", "Wife"),
    "race": ("Amer-Indian-Eskimo", "Asian-Pac-Islander", "Black", "Other", "White"),
    "sex": ("Female", "Male"),
}
NORMS = {"five": 5**0.5, "wide": (len(NUMBERS) + len(VALUES)) ** 0.5}
"""The largest Euclidean norm of a row whose numbers are scaled to 0 .. 1."""

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Adult:
    """Training and test rows: features scaled to 0 .. 1 by public bounds, and 1 where the income is high."""

    X: Floats
    y: NDArray[np.int64]
    X_test: Floats
    y_test: NDArray[np.int64]
    declared: pd.DataFrame
    """The training rows before categories became columns."""
    declared_test: pd.DataFrame


def adult(kind: str) -> Adult:
    """Return the "five" numbers, or the "wide" table of 49 columns."""
    frames = [_declared(name, kind) for name in ("adult.csv", "adult_test.csv")]
    return Adult(*_read("adult.csv", kind), *_read("adult_test.csv", kind), *frames)


def facts(kind: str) -> dict[str, Any]:
    """Return what is public of the declared columns, as estimators take it."""
    bounds = dict.fromkeys(NUMBERS, (0, 1))
    return {"bounds": bounds} if kind == "five" else {"bounds": bounds, "domain": VALUES}


def _declared(name: str, kind: str) -> pd.DataFrame:
    columns, numbers = raw(name), _read(name, "five")[0]
    frame = pd.DataFrame(numbers, columns=list(NUMBERS))
    return frame if kind == "five" else frame.assign(**{column: columns[column] for column in VALUES})


def raw(name: str) -> dict[str, NDArray[np.object_]]:
    """Return the columns of a file as they are."""
    table = csv.read_csv(DATA / "adult" / name)
    return {column: table[column].to_numpy(zero_copy_only=False) for column in table.column_names}


def _read(name: str, kind: str) -> tuple[Floats, NDArray[np.int64]]:
    columns = raw(name)
    parts = [
        ((columns[column].astype(np.float64) - low) / (high - low)).clip(0, 1)[:, None]
        for column, (low, high) in NUMBERS.items()
    ]
    if kind == "wide":
        parts += [(columns[column][:, None] == np.array(known)).astype(np.float64) for column, known in VALUES.items()]
    return np.concatenate(parts, axis=1), (columns[TARGET] == CLASSES[1]).astype(np.int64)
