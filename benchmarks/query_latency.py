"""A grouped query on a small table that was asked before: the table has the size of Adult, and the tool is warm.

Every tool holds the rows as it likes best and is asked the same again at the same epsilon, each time for a new price:
no answer comes from a cache. CPU milliseconds are medians.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from benchmarks import query_tools
from benchmarks.query_data import LIMIT
from benchmarks.query_tools import OURS, PEERS, Tool

TITLE = "A warm private query: 32,000 rows, 16 groups, COUNT + SUM + AVG"
ROWS = 32_000
GROUPS = 16
REPEATS = 30
PEER_REPEATS = 5
TARGET = 20.0
FAST_PEERS = tuple(tool for tool in PEERS if tool.name in ("OpenDP", "SmartNoise", "PipelineDP"))


def main(peers: tuple[Tool, ...] = FAST_PEERS) -> list[dict[str, Any]]:
    """Return the CPU time of one more question."""
    with query_tools.tables(rows=ROWS, groups=GROUPS) as files:
        rows = _measured(files, OURS, peers[:0], limit=None)
        return rows + _measured(files, OURS, peers, limit=LIMIT)


def _measured(
    files: tuple[Path, Path], tool: Tool, peers: tuple[Tool, ...], *, limit: int | None
) -> list[dict[str, Any]]:
    ours = _warm(tool, files, limit=limit, repeats=REPEATS)
    row = {
        "name": "row unit" if limit is None else f"person unit, limit {limit}",
        "ours": ours,
        "unit": "CPU ms",
        "target": f"<= {TARGET:g}",
        "met": ours <= TARGET,
    }
    figures = {peer.name: _warm(peer, files, limit=limit, repeats=PEER_REPEATS) for peer in peers}
    compared = [{**row, "peer": theirs, "peer_name": name, "ratio": theirs / ours} for name, theirs in figures.items()]
    return compared or [row]


def _warm(tool: Tool, files: tuple[Path, Path], *, limit: int | None, repeats: int) -> float:
    return 1000 * float(query_tools.run(tool, files, groups=GROUPS, limit=limit, repeats=repeats)["warm"])
