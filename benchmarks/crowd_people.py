"""The crowd, the monitor and the person of `hub_crowd`, each in a process of its own, with the standard library only.

A process says that it is ready, waits for a line, does its part, and prints what it saw as JSON.
"""

from __future__ import annotations

import asyncio
import http.client
import json
import sys
import time
from collections import Counter
from typing import Any

SIGN_INS, SECONDS, ADDRESSES = 1_000, 2.0, 250
WATCHED = 6.0
"""Seconds for which monitor and person ask, from the start of the crowd."""
PATIENCE = 30.0


async def _send_crowd(told: dict[str, Any]) -> dict[str, Any]:
    statuses: Counter[str] = Counter()
    sent: list[float] = []
    start = time.perf_counter()
    await asyncio.gather(*(_sign_in(told["port"], number, statuses, sent) for number in range(SIGN_INS)))
    return {"statuses": statuses, "sent": max(sent) - start, "answered": time.perf_counter() - start}


async def _sign_in(port: int, number: int, statuses: Counter[str], sent: list[float]) -> None:
    await asyncio.sleep(SECONDS * number / SIGN_INS)
    body = json.dumps({"name": f"nobody-{number}", "password": "four unrelated wooden words"})
    request = (
        f"POST /api/v1/session HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nContent-Type: application/json\r\n"
        f"Content-Length: {len(body)}\r\n\r\n{body}"
    )
    try:
        source = (f"127.0.1.{number % ADDRESSES + 1}", 0)
        reader, writer = await asyncio.open_connection("127.0.0.1", port, local_addr=source)
        writer.write(request.encode())
        sent.append(time.perf_counter())
        first = await asyncio.wait_for(reader.readline(), PATIENCE)
        statuses[first.split()[1].decode()] += 1
        writer.close()
    except (OSError, TimeoutError, IndexError):
        statuses["none"] += 1


def _ask(told: dict[str, Any], *, pause: float, is_kept: bool) -> dict[str, Any]:
    """Ask for a path until the time is over; on one connection that is kept, or on a new one each time."""
    seconds: list[float] = []
    statuses: Counter[str] = Counter()
    connection = http.client.HTTPConnection("127.0.0.1", told["port"], timeout=PATIENCE)
    until = time.perf_counter() + WATCHED
    while time.perf_counter() < until:
        start = time.perf_counter()
        connection.request("GET", told["path"], headers={"Cookie": told["cookie"]} if is_kept else {})
        answer = connection.getresponse()
        answer.read()
        seconds.append(time.perf_counter() - start)
        statuses[str(answer.status)] += 1
        if not is_kept:
            connection.close()
        time.sleep(pause)
    connection.close()
    return {"seconds": seconds, "statuses": statuses}


def _take_part(told: dict[str, Any]) -> dict[str, Any]:
    match told["who"]:
        case "crowd":
            return asyncio.run(_send_crowd(told))
        case "monitor":
            return _ask(told, pause=0.02, is_kept=False)
        case _:
            return _ask(told, pause=0.1, is_kept=True)


if __name__ == "__main__":
    print("ready", flush=True)
    sys.stdin.readline()
    print(json.dumps(_take_part(json.loads(sys.argv[1]))))
