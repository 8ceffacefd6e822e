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
    cases = {
        "bare": "pass",
        "import": "import cloister",
        "command": "from cloister.cli.app import run; run(['--version'])",
    }
    taken: dict[str, list[float]] = {name: [] for name in cases}
    for _ in range(RUNS):
        for name, code in cases.items():
            taken[name].append(_seconds(code))
    bare, ours, command = (1000 * statistics.median(taken[name]) for name in cases)
    return [
        {
            "name": f"`import cloister`, beyond bare Python, median of {RUNS}",
            "ours": ours - bare,
            "unit": "ms",
            "target": "< 150",
            "met": ours - bare < 150,
        },
        {
            "name": f"`cloister --version`, beyond bare Python, median of {RUNS}",
            "ours": command - bare,
            "unit": "ms",
        },
    ]


def _seconds(code: str) -> float:
    start = time.perf_counter()
    subprocess.run([sys.executable, "-c", code], check=True, stdout=subprocess.DEVNULL)
    return time.perf_counter() - start
