"""COUNT, SUM and AVG of 1000 groups of 10 million rows at epsilon 1, beside the tools that a user would pick instead.

Every tool reads the same Parquet file in a process of its own. CPU seconds are those of the question, from the file to
the answer, after a first question on a small file that pays for imports; peak memory is that of the whole process.
Errors are medians over groups. With a limit of 10 rows per person they are taken against the bounded truth, in which a
row counts min(1, 10 / rows of its person), so that they show noise and sampling and not what every tool gives up alike;
the choice of the limit is shown against the raw truth.
"""

from __future__ import annotations

import statistics
import subprocess
from pathlib import Path
from typing import Any

from benchmarks import query_data, query_tools
from benchmarks.query_data import GROUPS, LIMIT, ROWS
from benchmarks.query_tools import CHOSEN, DUCKDB, OURS, PEERS, Tool

TITLE = "Private queries: 10 million rows, 1000 groups, COUNT + SUM + AVG at epsilon 1"
REPEATS = 5
RATIO = 1.3
TARGETS = {"cpu": 3.0, "peak": 400.0, "n": 26.0, "s": 1600.0, "m": 0.25}
WELL_CHOSEN = 200.0
_MEASURES = {
    "cpu": ("CPU", "CPU s"),
    "peak": ("peak memory", "MiB"),
    "n": ("error of a count", "rows"),
    "s": ("error of a sum", "sum"),
    "m": ("error of a mean", "mean"),
}

Files = tuple[Path, Path]


def main(rows: int = ROWS, groups: int = GROUPS, peers: tuple[Tool, ...] = PEERS) -> list[dict[str, Any]]:
    """Return the rows of every part."""
    with query_tools.tables(rows=rows, groups=groups) as files:
        return [*_row_unit(files, groups), *_user_unit(files, groups, peers), *_chosen_limit(files, groups)]


def _row_unit(files: Files, groups: int) -> list[dict[str, Any]]:
    """Compare with the plain query: median of alternating processes, since one takes a fraction of a second."""
    pairs = [
        [query_tools.run(tool, files, groups=groups, limit=None) for tool in (OURS, DUCKDB)] for _ in range(REPEATS)
    ]
    rows = []
    for key in ("cpu", "peak"):
        ours, plain = (statistics.median(pair[side][key] for pair in pairs) for side in (0, 1))
        what, unit = _MEASURES[key]
        row = {"name": f"row unit: {what}", "ours": ours, "peer": plain, "peer_name": DUCKDB.name, "unit": unit}
        judged = {"target": f"<= {RATIO:g}x", "met": ours <= RATIO * plain} if key == "cpu" else {}
        rows.append({**row, "ratio": ours / plain, **judged})
    errors = query_data.median_errors(pairs[0][0]["answers"], query_data.exact_answers(files[0]))
    return rows + [
        {"name": f"row unit: {_MEASURES[key][0]}", "ours": errors[key], "unit": _MEASURES[key][1]} for key in errors
    ]


def _user_unit(files: Files, groups: int, peers: tuple[Tool, ...]) -> list[dict[str, Any]]:
    truth = query_data.bounded_answers(files[0], limit=LIMIT)
    ours = _figures(query_tools.run(OURS, files, groups=groups, limit=LIMIT), truth)
    rows = []
    for tool in peers:
        theirs = _peer_figures(tool, files, groups, truth)
        rows += [_compared(key, ours[key], tool.name, theirs.get(key)) for key in _MEASURES]
    return rows


def _peer_figures(tool: Tool, files: Files, groups: int, truth: query_data.Answers) -> dict[str, float]:
    """Return the figures of a peer; none if it cannot be installed or does not finish here."""
    try:
        return _figures(query_tools.run(tool, files, groups=groups, limit=LIMIT), truth)
    except subprocess.CalledProcessError as failure:
        print(f"  {tool.name} could not be run here (exit code {failure.returncode})", flush=True)
        return {}


def _figures(used: dict[str, Any], truth: query_data.Answers) -> dict[str, float]:
    return {"cpu": used["cpu"], "peak": used["peak"], **query_data.median_errors(used["answers"], truth)}


def _compared(key: str, ours: float, peer_name: str, theirs: float | None) -> dict[str, Any]:
    what, unit = _MEASURES[key]
    row = {
        "name": f"person unit, limit {LIMIT}: {what}",
        "ours": ours,
        "peer": "not run" if theirs is None else theirs,
        "peer_name": peer_name,
        "unit": unit,
        "target": f"<= {TARGETS[key]:,g}",
        "met": ours <= TARGETS[key],
    }
    return row if theirs is None else {**row, "ratio": theirs / ours}


def _chosen_limit(files: Files, groups: int) -> list[dict[str, Any]]:
    """Compare a fixed limit with one that is chosen privately: what both cut off counts as error here."""
    truth = query_data.exact_answers(files[0])
    fixed, chosen = (query_tools.run(tool, files, groups=groups, limit=LIMIT)["answers"] for tool in (OURS, CHOSEN))
    ours, theirs = (query_data.median_errors(answers, truth)["n"] for answers in (chosen, fixed))
    share, limit = CHOSEN.options["share"], chosen["limit"][0]
    return [
        {
            "name": f"person unit, limit {limit:g} chosen for epsilon {share:g}: error of a count against all rows",
            "ours": ours,
            "peer": theirs,
            "peer_name": f"fixed limit {LIMIT}",
            "ratio": theirs / ours,
            "unit": "rows",
            "target": f"<= {WELL_CHOSEN:g}",
            "met": ours <= WELL_CHOSEN,
        }
    ]
