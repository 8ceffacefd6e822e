"""Who is asked, and what an answer costs: the same people and the same clock for every tool.

Only the standard library is needed, so that peers in environments of their own are measured by the same code.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

Ask = Callable[[Sequence[int]], Sequence[float]]
"""From the answers of all people to an estimate for each value: clients and server."""


def answers(users: int, size: int) -> list[int]:
    """Return what each person would say, of the values 0 .. size-1: every fourth says 0, the others take turns."""
    return [0 if user % 4 == 0 else user * 3 // 4 % size for user in range(users)]


def measure(protocols: Mapping[str, Callable[[int, float], Ask]], jobs: Iterable[Mapping[str, Any]]) -> list[Any]:
    """Return the CPU seconds of clients and server for each job: a protocol, its epsilon, people and values.

    A first question to few people pays for just-in-time compilers. Protocols that a tool lacks are left out.
    """
    return [_measured(protocols[job["protocol"]], job) for job in jobs if job["protocol"] in protocols]


def _measured(make: Callable[[int, float], Ask], job: Mapping[str, Any]) -> dict[str, Any]:
    people = answers(job["users"], job["size"])
    ask = make(job["size"], job["epsilon"])
    ask(people[:20])
    start = time.process_time()
    estimate = ask(people)
    used = time.process_time() - start
    return {**job, "cpu": used, "most": most_common(estimate)}


def most_common(estimate: Sequence[float]) -> int:
    """Return the value that is estimated to be the most common: 0, if the estimate is of any use."""
    return max(range(len(estimate)), key=lambda value: estimate[value])
