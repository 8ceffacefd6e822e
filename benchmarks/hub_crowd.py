"""A crowd of anonymous sign-ins before a real hub: who is still answered, and how fast; and what a small answer costs.

A thousand sign-ins arrive within two seconds, each on a connection of its own, from 250 addresses of this machine and
with names that nobody has. Beside them a monitor asks for /health on new connections, and somebody who is signed in
looks at pages. Crowd, monitor and person are processes of their own, on the same cores as the hub. Afterwards /health
is asked over a connection that is kept open, in turn with a bare FastAPI route in another process.
"""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks.hub import free_port, serving, share
from cloister.hub.domain.roles import AccountRole
from cloister.hub.gateway.identity import COOKIE
from cloister.hub.hub import open_hub
from cloister.hub.settings import Settings
from cloister.hub.use_cases.accounts import administration
from cloister.hub.use_cases.sessions import open_login

TITLE = "Hub before a crowd"
REQUESTS = 500
PATIENCE = 30.0

BARE = """
import sys, uvicorn
from fastapi import FastAPI
app = FastAPI()
@app.get("/health")
async def health():
    return {"status": "ok"}
uvicorn.run(app, host="127.0.0.1", port=int(sys.argv[1]), http="h11", loop="asyncio", access_log=False, log_config=None)
"""


def main() -> list[dict[str, Any]]:
    with tempfile.TemporaryDirectory() as folder:
        settings = Settings(folder=Path(folder) / "hub", port=free_port(), workers=2)
        cookie = _signed_in(settings)
        with serving(settings):
            time.sleep(5.0)  # the workers load, which is not what is measured
            seen = _crowd(settings.port, cookie)
            time.sleep(5.0)
            ours, bare = _kept_alive(settings.port)
    health, pages, crowd = seen["monitor"]["seconds"], seen["person"]["seconds"], seen["crowd"]["statuses"]
    wrong = sum(
        count for part in ("monitor", "person") for status, count in seen[part]["statuses"].items() if status != "200"
    )
    answered = sum(crowd.values()) - crowd.get("none", 0)
    more = 1000 * (median(ours) - median(bare))
    load = os.getloadavg()[0]
    return [
        _row("sign-ins sent", sum(crowd.values()), f"in {seen['crowd']['sent']:.1f} s"),
        _row("the last sign-in is answered after", seen["crowd"]["answered"], "s"),
        _row("sign-ins looked at (401)", crowd.get("401", 0), "answers"),
        _row("sign-ins told to come back (429, 503)", crowd.get("429", 0) + crowd.get("503", 0), "answers"),
        _row("sign-ins without an answer", sum(crowd.values()) - answered, "connections"),
        _row("/health, p99", 1000 * share(health, 99), "ms", "under 100", share(health, 99) < 0.1),
        _row("/health, slowest", 1000 * max(health), f"ms, of {len(health)}"),
        _row("a page of somebody signed in, slowest", 1000 * max(pages), "ms", "under 1,000", max(pages) < 1),
        _row("a page of somebody signed in, p50", 1000 * share(pages, 50), f"ms, of {len(pages)}"),
        _row("answers other than 200 to monitor or person", wrong, "answers", "0", wrong == 0),
        _row("/health over a kept connection, p50", 1000 * median(ours), "ms"),
        _row("a bare FastAPI route in the same run, p50", 1000 * median(bare), "ms"),
        _row("the difference", more, "ms", "at most 3", more <= 3),
        _row("load of the machine at the end", load, "processes"),
    ]


def _row(name: str, ours: float, unit: str, *target: Any) -> dict[str, Any]:
    """Return a row; a target is what was asked for, and whether it was met."""
    return {"name": name, "ours": ours, "unit": unit} | dict(zip(("target", "met"), target, strict=False))


def _signed_in(settings: Settings) -> str:
    """Make a hub with one person in it, and return the cookie of their sign-in."""
    hub = open_hub(settings)
    try:
        with hub.store.writing() as session:
            place = administration.create_organisation(session, "North Hospital", by=None).id
            user = administration.create_account(
                session, "olga", by=None, roles=[AccountRole.DATA_OWNER], organisation_id=place
            )
            session.flush()
            return open_login(session, user, hours=1)[0]
    finally:
        hub.close()


def _crowd(port: int, cookie: str) -> dict[str, Any]:
    """Run crowd, monitor and person at the same time, once all are ready; return what each of them saw."""
    asked = {"crowd": "", "monitor": "/health", "person": "/datasets"}
    processes = {
        name: _process({"who": name, "port": port, "path": path, "cookie": f"{COOKIE}={cookie}"})
        for name, path in asked.items()
    }
    for process in processes.values():
        process.stdout.readline()
    return {name: json.loads(process.communicate(timeout=300)[0]) for name, process in _told(processes)}


def _told(processes: dict[str, Any]) -> list[tuple[str, Any]]:
    for process in processes.values():
        process.stdin.write("go\n")
        process.stdin.flush()
    return list(processes.items())


def _process(told: dict[str, Any]) -> Any:  # a process with text on both ends
    command = [sys.executable, "-S", str(Path(__file__).with_name("crowd_people.py")), json.dumps(told)]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


# Small answers -------------------------------------------------------------------------------------------------------


def _kept_alive(port: int) -> tuple[list[float], list[float]]:
    """Return the seconds of /health and of a bare route, asked in turn, each over one connection."""
    with _bare() as other:
        lines = [_line(port), _line(other)]
        taken: tuple[list[float], list[float]] = ([], [])
        for turn in range(REQUESTS):
            for line, seconds in zip(lines, taken, strict=True):
                start = time.perf_counter()
                line.request("GET", "/health")
                line.getresponse().read()
                if turn >= REQUESTS // 10:  # the first ones warm up
                    seconds.append(time.perf_counter() - start)
        for line in lines:
            line.close()
    return taken


def _line(port: int) -> http.client.HTTPConnection:
    line = http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE)
    line.connect()
    line.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return line


@contextlib.contextmanager
def _bare() -> Iterator[int]:
    port = free_port()
    server = subprocess.Popen([sys.executable, "-c", BARE, str(port)])
    try:
        until = time.perf_counter() + 60
        while True:
            with contextlib.suppress(OSError):
                socket.create_connection(("127.0.0.1", port), timeout=1).close()
                break
            if time.perf_counter() > until:
                raise RuntimeError("the bare application did not start")
            time.sleep(0.05)
        yield port
    finally:
        server.terminate()
        server.wait(60)


if __name__ == "__main__":
    print(json.dumps(main(), indent=2))
