"""pure-ldp: one object for the devices and one for the server; reports are made and added one by one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from pure_ldp.frequency_oracles import (
    DEClient,
    DEServer,
    FastLHClient,
    FastLHServer,
    HadamardResponseClient,
    HadamardResponseServer,
    LHClient,
    LHServer,
    UEClient,
    UEServer,
)

from benchmarks.local_people import Ask, measure

HASHES = 1000
Pair = tuple[Any, Any]


def run(jobs: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the jobs with their CPU seconds."""
    return measure({name: _asking(pair) for name, pair in PAIRS.items()}, jobs)


def _asking(pair: Callable[[int, float], Pair]) -> Callable[[int, float], Ask]:
    def make(size: int, epsilon: float) -> Ask:
        def ask(people: Sequence[int]) -> Sequence[float]:
            client, server = pair(size, epsilon)
            for value in people:
                server.aggregate(client.privatise(value + 1))
            return server.estimate_all(range(1, size + 1), suppress_warnings=True)

        return ask

    return make


def _unary(size: int, epsilon: float, *, optimized: bool) -> Pair:
    return UEClient(epsilon, size, use_oue=optimized), UEServer(epsilon, size, use_oue=optimized)


def _hadamard(size: int, epsilon: float) -> Pair:
    server = HadamardResponseServer(epsilon, size)
    return HadamardResponseClient(epsilon, size, server.get_hash_funcs()), server


def _few_hashes(size: int, epsilon: float) -> Pair:
    return FastLHClient(epsilon, size, HASHES, use_olh=True), FastLHServer(epsilon, size, HASHES, use_olh=True)


PAIRS: dict[str, Callable[[int, float], Pair]] = {
    "OUE": lambda size, epsilon: _unary(size, epsilon, optimized=True),
    "SUE": lambda size, epsilon: _unary(size, epsilon, optimized=False),
    "OLH": lambda size, epsilon: (LHClient(epsilon, size, use_olh=True), LHServer(epsilon, size, use_olh=True)),
    "OLH of 1,000 hashes": _few_hashes,
    "HR": _hadamard,
    "direct encoding": lambda size, epsilon: (DEClient(epsilon, size), DEServer(epsilon, size)),
}
