"""Trying what must not work, from inside of the walls, before any foreign code runs there."""

from __future__ import annotations

import importlib
import os
import socket
import subprocess
import threading
from collections.abc import Callable


def failures(folder: str) -> list[str]:
    """Return what should have been refused and was not, or should have worked and did not."""
    tries: dict[str, Callable[[], object]] = {
        "opening a network socket": lambda: socket.socket(socket.AF_INET, socket.SOCK_STREAM),
        "opening a local socket": lambda: socket.socket(socket.AF_UNIX, socket.SOCK_STREAM),
        "reading a file of the machine": lambda: os.open("/etc/passwd", os.O_RDONLY),
        "reading about processes": lambda: os.open("/proc/self/status", os.O_RDONLY),
        "listing the root folder's users": lambda: os.listdir("/etc"),  # noqa: PTH208  # no pathlib inside
        "writing beside the algorithm": lambda: os.open(f"{folder}/x", os.O_WRONLY | os.O_CREAT),
        "writing a temporary file": lambda: os.open("/tmp/x", os.O_WRONLY | os.O_CREAT),  # noqa: S108  # must fail
        "starting a process": _fork,
        "starting a program": lambda: subprocess.run(["/bin/true"], check=False),
        "starting a thread": lambda: threading.Thread(target=int).start(),
        "sending a signal": lambda: os.kill(os.getppid() or 1, 0),
        "sending a signal to everybody": lambda: os.kill(-1, 0),
        "asking for the load of the machine": os.getloadavg,
        "becoming the administrator": lambda: os.setuid(0),
        "raising a limit": _raise_limit,
    }
    found = [f"{name} was not refused" for name, act in tries.items() if _works(act)]
    if not _works(lambda: os.listdir(folder)):  # noqa: PTH208
        found.append("the algorithm's own folder cannot be read")
    if not _works(lambda: importlib.import_module("colorsys")):
        found.append("the standard library cannot be imported")
    return found


def _works(act: Callable[[], object]) -> bool:
    try:
        act()
    except (OSError, RuntimeError, ValueError, ImportError):
        return False
    return True


def _fork() -> None:
    if os.fork() == 0:
        os._exit(0)


def _raise_limit() -> None:
    import resource

    resource.setrlimit(resource.RLIMIT_AS, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
