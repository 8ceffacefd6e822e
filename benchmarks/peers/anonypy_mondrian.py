"""anonypy: Mondrian whose classes show the sets of their values, and ages from the lowest to the highest."""

from __future__ import annotations

import time
from typing import Any

import anonypy
import pandas as pd


def run(path: str, *, quasi: list[str], sensitive: str, k: int, size: int | None = None) -> dict[str, Any]:
    """Return the CPU seconds and the classes: labels of each quasi-identifier, and how many rows show them."""
    rows = pd.read_csv(path).head(size)
    for name in (*quasi, sensitive):
        if rows[name].dtype.kind not in "if":
            rows[name] = rows[name].astype("category")
    start = time.process_time()
    released = anonypy.Preserver(rows, quasi, sensitive).anonymize_k_anonymity(k=k)
    used = time.process_time() - start
    labels = {name: [_label(line[name][0]) for line in released] for name in quasi}
    return {"cpu": used, "labels": labels, "counts": [int(line["count"]) for line in released]}


def _label(text: str) -> str:
    return "{" + ", ".join(text.split(",")) + "}" if "," in text else text
