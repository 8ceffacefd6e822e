"""Runs benchmark modules and keeps benchmarks/RESULTS.md.

A benchmark is a module in this folder with ``main() -> list[dict]``; ``TITLE`` names its section. Each row has ``name``
and ``ours``, and where they make sense ``peer``, ``peer_name``, ``ratio``, ``target``, ``met`` and ``unit``. Peers that
are not part of the development environment live in an environment of their own; see `peer_python`.
"""

from __future__ import annotations

import datetime as dt
import importlib
import importlib.metadata
import json
import os
import platform
import re
import subprocess
import sys
import time
import venv
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parent
RESULTS = FOLDER / "RESULTS.md"
PEERS = Path(os.environ.get("CLOISTER_PEERS", FOLDER.parent / ".venv-peers"))
COLUMNS = {
    "name": "what",
    "ours": "cloister",
    "peer": "peer",
    "ratio": "ratio",
    "unit": "unit",
    "target": "target",
    "met": "met",
}
LIBRARIES = ("numpy", "scipy", "pyarrow", "duckdb", "cryptography", "dp-accounting")
INTRODUCTION = (
    "# Benchmark results\n\nWritten by `make bench`; each section is one run, side by side on one machine. "
    "A target may have been corrected after the run of its section.\n"
)


def names() -> list[str]:
    """Return the benchmark modules: those that have a ``main``."""
    modules = sorted(path for path in FOLDER.glob("*.py") if path.stem not in {"__init__", "__main__", "harness"})
    return [path.stem for path in modules if re.search(r"^def main\(", path.read_text("utf-8"), re.MULTILINE)]


def run(chosen: list[str]) -> int:
    """Run the chosen benchmarks (all, if none is named), update their sections, and return an exit code."""
    unknown = sorted(set(chosen) - set(names()))
    if unknown:
        print(f"There is no benchmark {', '.join(unknown)}; there are {', '.join(names())}.", file=sys.stderr)
        return 2
    missed = []
    for name in chosen or names():
        start = time.perf_counter()
        print(f"{name} ...", flush=True)
        module = importlib.import_module(f"benchmarks.{name}")
        rows = module.main()
        write_section(name, getattr(module, "TITLE", name.replace("_", " ").capitalize()), rows)
        print(table(rows), f"\n({time.perf_counter() - start:.0f} s)\n", flush=True)
        missed += [row["name"] for row in rows if row.get("met") is False]
    for row in missed:
        print(f"Target missed: {row}", file=sys.stderr)
    return 1 if missed else 0


def peer_python(*packages: str) -> str:
    """Return a Python that has the named peers, making its environment if needed."""
    folder = PEERS / "-".join(sorted(packages))
    python = folder / "bin" / "python"
    if not (folder / ".ready").exists():
        print(f"Installing {', '.join(packages)} into {folder.name} ...", flush=True)
        venv.create(folder, with_pip=True, clear=True)
        command = [
            str(python),
            "-m",
            "pip",
            "install",
            "--quiet",
            "--disable-pip-version-check",
            "--no-compile",
            *packages,
        ]
        subprocess.run(command, check=True)
        (folder / ".ready").touch()
    return str(python)


def run_peer(code: str, *packages: str) -> Any:
    """Run code in the environment of the named peers and return the JSON value that it prints last."""
    done = subprocess.run([peer_python(*packages), "-c", code], check=True, stdout=subprocess.PIPE, text=True)
    return json.loads(done.stdout.strip().splitlines()[-1])


def table(rows: list[dict[str, Any]]) -> str:
    """Return rows as a Markdown table with the columns that are used."""
    used = [key for key in COLUMNS if any(row.get(key) is not None for row in rows)]
    lines = ["| " + " | ".join(COLUMNS[key] for key in used) + " |", "|" + "---|" * len(used)]
    lines += ["| " + " | ".join(_cell(row, key) for key in used) + " |" for row in rows]
    return "\n".join(lines)


def write_section(name: str, title: str, rows: list[dict[str, Any]]) -> None:
    """Replace one section of the results, leaving the others as they are."""
    text = RESULTS.read_text("utf-8") if RESULTS.exists() else INTRODUCTION
    sections = dict(re.findall(r"^<!-- (\w+) -->\n(.*?)(?=^<!-- |\Z)", text, re.MULTILINE | re.DOTALL))
    sections[name] = f"## {title}\n\n{machine()}\n\n{table(rows)}\n"
    ordered = "".join(f"\n<!-- {key} -->\n{sections[key].strip()}\n" for key in sorted(sections))
    RESULTS.write_text(INTRODUCTION + ordered, encoding="utf-8")


def machine() -> str:
    """Return when and on what the numbers were measured."""
    date = dt.datetime.now(dt.UTC).date().isoformat()
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    return (
        f"{date}; {_processor()}, {os.cpu_count()} cores, {memory:.0f} GiB; "
        f"Python {platform.python_version()}, {', '.join(_versions())}."
    )


def _versions() -> list[str]:
    installed = {item.metadata["Name"].lower(): item.version for item in importlib.metadata.distributions()}
    return [f"{name} {installed[name]}" for name in LIBRARIES if name in installed]


def _processor() -> str:
    try:
        match = re.search(r"^model name\s*:\s*(.+)$", Path("/proc/cpuinfo").read_text("utf-8"), re.MULTILINE)
    except OSError:
        match = None
    return match[1] if match else platform.processor() or platform.machine()


def _cell(row: dict[str, Any], key: str) -> str:
    value = row.get(key)
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int | float):
        value = f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"
    return f"{value} ({row['peer_name']})" if key == "peer" and row.get("peer_name") else str(value)
