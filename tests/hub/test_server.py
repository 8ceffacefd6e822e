"""``cloister hub serve`` as a process: it answers, its workers follow, and none of them stays when it is gone."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import httpx2
import pytest

import cloister

pytestmark = pytest.mark.slow

LONGEST = 90.0


def until(is_so: Callable[[], bool]) -> None:
    end = time.monotonic() + LONGEST
    while not is_so():
        assert time.monotonic() < end
        time.sleep(0.05)


def started(folder: Path) -> tuple[subprocess.Popen[bytes], str]:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [sys.executable, "-c", "from cloister.cli import main; main()", "hub", "serve", "--folder", str(folder)]
    environment = os.environ | {"PYTHONPATH": str(Path(cloister.__file__).parents[1])}
    server = subprocess.Popen([*command, "--port", str(port), "--workers", "2"], env=environment)
    return server, f"http://127.0.0.1:{port}"


def answers(address: str) -> bool:
    try:
        return httpx2.get(f"{address}/health", timeout=5).json()["status"] == "ok"
    except httpx2.TransportError:
        return False


def children(parent: int) -> set[int]:
    """Return the processes whose parent is another one, its helpers among them."""
    found = set()
    for status in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = status.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if int(fields[1]) == parent and fields[0] != "Z":
            found.add(int(status.parent.name))
    return found


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="looks for processes as Linux shows them")
@pytest.mark.parametrize("way", [signal.SIGTERM, pytest.param(signal.SIGINT, marks=pytest.mark.audit), signal.SIGKILL])
def test_workers_come_after_the_first_answer_and_go_with_the_server(tmp_path: Path, way: signal.Signals) -> None:
    server, address = started(tmp_path / "hub")
    workers: set[int] = set()
    try:
        until(lambda: answers(address))
        until(lambda: len(children(server.pid)) >= 2)
        workers = children(server.pid)
        server.send_signal(way)
        server.wait(LONGEST)
        until(lambda: not any(Path(f"/proc/{worker}/cmdline").exists() for worker in workers))
    finally:
        for process in (server.pid, *workers):
            if Path(f"/proc/{process}").exists():
                os.kill(process, signal.SIGKILL)
        server.wait()
    assert not answers(address)
