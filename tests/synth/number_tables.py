"""Small tables of numbers for the tests of synthesizers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from cloister.data.schema import Schema
from cloister.data.sources import open_table
from cloister.data.table import Table

CLASSES = ("ill", "well")


def number_table(columns: dict[str, Any], *, bounds: Any = (-1.0, 1.0), classes: Sequence[str] = CLASSES) -> Table:
    """Return columns between bounds; one called class has categories, one called person names persons."""
    described: dict[str, Any] = {}
    for name in columns:
        limits = bounds[name] if isinstance(bounds, dict) else bounds
        described[name] = {"kind": "numeric", "bounds": list(limits)}
    if "class" in columns:
        described["class"] = {"role": "sensitive", "kind": "nominal", "categories": list(classes)}
    if "person" in columns:
        described["person"] = {"role": "identifier"}
    return open_table(pa.table(columns), schema=Schema.from_dict({"columns": described}))


def patients(rows: int = 400) -> Table:
    """Return rows in a fixed pattern: two classes apart in height, weight going along with it, and a whole number."""
    place = np.arange(rows)
    wave, other = np.sin(place * 1.3), np.sin(place * 2.9)
    ill = place % 2 == 0
    height = np.where(ill, 150.0, 180.0) + 5 * wave
    return number_table(
        {
            "height": height,
            "weight": height - 100 + 4 * other,
            "visits": (3 + 2 * other).round().astype(np.int64),
            "class": np.where(ill, "ill", "well"),
        },
        bounds={"height": (120.0, 210.0), "weight": (20.0, 110.0), "visits": (0, 9), "class": (0, 1)},
    )
