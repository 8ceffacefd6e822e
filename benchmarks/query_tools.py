"""Runs each tool of `benchmarks.peers` in a process of its own and reads what it answered and used."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchmarks import harness, query_data

_ROOT = str(Path(__file__).parents[1])
_CODE = """
import sys, warnings
warnings.simplefilter("ignore")
sys.path.insert(0, {root!r})
from benchmarks.peers import {module} as tool
from benchmarks.usage import report
report(tool, {path!r}, small={small!r}, repeats={repeats}, **{facts!r})
"""


@dataclass(frozen=True, kw_only=True)
class Tool:
    """A tool: its name for people, its module, the packages of its environment (none: this one), and its options."""

    name: str
    module: str
    packages: tuple[str, ...] = ()
    options: dict[str, Any] = field(default_factory=dict)


OURS = Tool(name="cloister", module="ours")
CHOSEN = Tool(name="cloister, limit chosen privately", module="ours", options={"share": 0.05})
DUCKDB = Tool(name="plain DuckDB", module="plain_duckdb")
_OPENDP = ("opendp[polars]", "pyarrow")
PEERS = (
    Tool(name="OpenDP", module="opendp_polars", packages=_OPENDP),
    Tool(name="OpenDP, mean by hand", module="opendp_polars", packages=_OPENDP, options={"divide": True}),
    Tool(name="SmartNoise", module="smartnoise", packages=("smartnoise-sql", "pyarrow")),
    Tool(name="PipelineDP", module="pipelinedp", packages=("pipeline-dp", "pyarrow")),
    Tool(name="Tumult", module="tumult", packages=("tmlt.analytics",)),
)


@contextmanager
def tables(*, rows: int, groups: int, shape: str = "") -> Iterator[tuple[Path, Path]]:
    """Give the table as a Parquet file, and a small one for the first question."""
    with tempfile.TemporaryDirectory() as folder:
        large, small = Path(folder) / "rows.parquet", Path(folder) / "small.parquet"
        query_data.write_table(large, rows=rows, groups=groups, shape=shape)
        query_data.write_table(small, rows=min(20 * groups, rows), groups=groups, shape=shape)
        yield large, small


def run(tool: Tool, files: tuple[Path, Path], *, groups: int, limit: int | None, repeats: int = 0) -> dict[str, Any]:
    """Return ``cpu``, ``wall``, ``peak``, with repeats ``warm``, and the ``answers`` of a tool in a fresh process."""
    print(f"  {tool.name} ...", flush=True)
    path, small = map(str, files)
    facts = {"groups": groups, "limit": limit, **tool.options}
    code = _CODE.format(root=_ROOT, module=tool.module, path=path, small=small, repeats=repeats, facts=facts)
    found = harness.run_peer(code, *tool.packages) if tool.packages else _run_here(code)
    print(f"  {tool.name}: {found['cpu']:.2f} CPU s, {found['peak']:.0f} MiB", flush=True)
    return dict(found)


def _run_here(code: str) -> Any:
    done = subprocess.run([sys.executable, "-c", code], check=True, stdout=subprocess.PIPE, text=True)
    return json.loads(done.stdout.strip().splitlines()[-1])
