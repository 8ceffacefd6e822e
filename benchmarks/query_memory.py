"""Peak memory of a question that protects persons, on 10 million rows of 2.5 million persons of several shapes.

The question and the way it is measured are those of `benchmarks.queries`. The bound on memory is a setting of the
engine and was chosen on other rows than these. CPU seconds show what writing to temporary files costs.
"""

from __future__ import annotations

from typing import Any

from benchmarks import query_data, query_tools
from benchmarks.queries import TARGETS
from benchmarks.query_data import GROUPS, LIMIT, ROWS
from benchmarks.query_tools import OURS

TITLE = f"Memory of private queries: 10 million rows, COUNT + SUM + AVG, person unit, limit {LIMIT}"
MANY_GROUPS = 50


def main(rows: int = ROWS, groups: int = GROUPS) -> list[dict[str, Any]]:
    """Return the rows of every shape."""
    tried = [(shape, groups) for shape in query_data.SHAPES] + [("even", MANY_GROUPS * groups)]
    return [row for shape, number in tried for row in _shape(rows, number, shape)]


def _shape(rows: int, groups: int, shape: str) -> list[dict[str, Any]]:
    with query_tools.tables(rows=rows, groups=groups, shape=shape) as files:
        used = query_tools.run(OURS, files, groups=groups, limit=LIMIT)
    name, most = f"persons {shape or 'log-normal'}, {groups:,} groups", TARGETS["peak"]
    return [
        {
            "name": f"{name}: peak memory",
            "ours": used["peak"],
            "unit": "MiB",
            "target": f"<= {most:,g}",
            "met": used["peak"] <= most,
        },
        {"name": f"{name}: CPU", "ours": used["cpu"], "unit": "CPU s"},
    ]
