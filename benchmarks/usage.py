"""What a process uses: CPU seconds and peak memory, of itself and of the processes that it started.

Only the standard library is needed, so that peers in environments of their own are measured by the same code.
"""

from __future__ import annotations

import json
import os
import resource
import statistics
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

_PROC = Path("/proc")
_TICKS = os.sysconf("SC_CLK_TCK")


def cpu_seconds() -> float:
    """Return the user and system CPU seconds of this process and its living and finished descendants."""
    own = resource.getrusage(resource.RUSAGE_SELF)
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    spent = own.ru_utime + own.ru_stime + children.ru_utime + children.ru_stime
    return spent + sum(sum(map(int, fields[11:15])) / _TICKS for fields in map(_stat, _descendants()) if fields)


def peak_mebibytes() -> float:
    """Return the peak resident memory of this process and its living descendants.

    ``ru_maxrss`` would also count what the parent held when it started this process, so the kernel's mark for this
    program alone is read where there is one.
    """
    marks = [_high_water(pid) for pid in (os.getpid(), *_descendants())]
    if marks[0]:
        return sum(marks) / 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def report(tool: ModuleType, path: str, *, small: str, repeats: int = 0, **facts: Any) -> None:
    """Print as JSON what the tool answers and uses for one question, after a first one on a small file.

    The first question pays for imports and just-in-time compilers, which are not measured. The one that is measured
    starts at the file. With ``repeats`` the same prepared data is asked as often again.
    """
    tool.prepare(small, **facts)(1.0)
    wall, cpu = time.perf_counter(), cpu_seconds()
    ask = tool.prepare(path, **facts)
    answers = ask(1.0)
    used = {"wall": time.perf_counter() - wall, "cpu": cpu_seconds() - cpu, "peak": peak_mebibytes()}
    if repeats:
        used["warm"] = statistics.median(_timed(ask) for _ in range(repeats))
    print(json.dumps({**used, "answers": {name: list(map(float, values)) for name, values in answers.items()}}))


def _timed(ask: Callable[[float], object]) -> float:
    start = cpu_seconds()
    ask(1.0)
    return cpu_seconds() - start


def _descendants() -> list[int]:
    """Return the living processes below this one; none where there is no /proc."""
    parents = {pid: int(fields[1]) for pid in _processes() if (fields := _stat(pid))}
    found = [os.getpid()]
    for pid in found:
        found += [child for child, parent in parents.items() if parent == pid]
    return found[1:]


def _processes() -> Iterator[int]:
    return (int(entry.name) for entry in _PROC.iterdir() if entry.name.isdigit()) if _PROC.exists() else iter(())


def _stat(pid: int) -> list[str]:
    """Return the fields of /proc/PID/stat from the state on; none if the process has ended meanwhile."""
    try:
        return (_PROC / str(pid) / "stat").read_text("utf-8", "replace").rsplit(")", 1)[1].split()
    except OSError:
        return []


def _high_water(pid: int) -> int:
    try:
        lines = (_PROC / str(pid) / "status").read_text("utf-8", "replace").splitlines()
    except OSError:
        return 0
    return next((int(line.split()[1]) for line in lines if line.startswith("VmHWM:")), 0)
