"""Small releases, some of which nobody should publish."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

import cloister as cl
from cloister.data.table import Table

ILLNESSES = ["asthma", "cancer", "flu", "heart"]


def patients(rows: int = 600, *, known_by_place: bool = False) -> pd.DataFrame:
    """Return people in a fixed pattern; with ``known_by_place`` the first place has one illness only."""
    place = np.arange(rows)
    district = place * 7 // 5 % 6
    illness = np.array(ILLNESSES)[(place * 13 // 3 + place // 6) % 4]
    if known_by_place:
        illness = np.where(district == 0, "cancer", illness)
    return pd.DataFrame({"age": 20 + place * 37 % 60, "district": district.astype(str), "illness": illness})


def table(frame: pd.DataFrame) -> Table:
    """Return the people as a table whose roles are known."""
    opened = cl.open_table(frame)
    schema = cl.Schema.infer(opened).confirm().with_role("age", "quasi").with_role("district", "quasi")
    return opened.with_schema(schema.with_role("illness", "sensitive"))


def anonymized(frame: pd.DataFrame, *models: Any) -> Any:
    """Return a release with the models."""
    return cl.anonymize(table(frame), models=[cl.KAnonymity(k=5), *models], algorithm="mondrian")


def correlated(rows: int = 1200) -> pd.DataFrame:
    """Return people whose illness mostly goes with what is known about them."""
    place = np.arange(rows)
    group = place % 4
    wrong = place * 7 % 10 == 0
    illness = np.array(ILLNESSES)[np.where(wrong, (group + 1) % 4, group)]
    return pd.DataFrame({"job": group.astype(str), "age": 20 + group * 10 + place * 3 % 8, "illness": illness})
