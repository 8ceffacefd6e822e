"""How long ``import cloister`` takes beyond starting Python."""

from __future__ import annotations

import statistics
import subprocess
import sys
import time
from typing import Any

TITLE = "Import time"
RUNS = 20


def main() -> list[dict[str, Any]]:
    bare, ours = [], []
    for _ in range(RUNS):
        bare.append(_seconds("pass"))
        ours.append(_seconds("import cloister"))
    extra = 1000 * (statistics.median(ours) - statistics.median(bare))
    return [
        {
            "name": f"`import cloister` beyond bare Python, median of {RUNS}",
            "ours": extra,
            "unit": "ms",
            "target": "< 150",
            "met": extra < 150,
        }
    ]


def _seconds(code: str) -> float:
    start = time.perf_counter()
    subprocess.run([sys.executable, "-c", code], check=True)
    return time.perf_counter() - start
