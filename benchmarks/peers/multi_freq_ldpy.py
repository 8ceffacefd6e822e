"""multi-freq-ldpy: a compiled function makes one report; another estimates from the list of all of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from multi_freq_ldpy.pure_frequency_oracles.GRR import GRR_Aggregator_MI, GRR_Client
from multi_freq_ldpy.pure_frequency_oracles.LH import LH_Aggregator_MI, LH_Client
from multi_freq_ldpy.pure_frequency_oracles.UE import UE_Aggregator_MI, UE_Client

from benchmarks.local_people import Ask, measure


def run(jobs: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the jobs with their CPU seconds."""
    return measure(PROTOCOLS, jobs)


def _direct(size: int, epsilon: float) -> Ask:
    return _asking(
        lambda value: GRR_Client(value, size, epsilon), lambda reports: GRR_Aggregator_MI(reports, size, epsilon)
    )


def _hashing(size: int, epsilon: float) -> Ask:
    return _asking(
        lambda value: LH_Client(value, size, epsilon), lambda reports: LH_Aggregator_MI(reports, size, epsilon)
    )


def _unary(size: int, epsilon: float, *, optimized: bool) -> Ask:
    return _asking(
        lambda value: UE_Client(value, size, epsilon, optimized),
        lambda reports: UE_Aggregator_MI(reports, epsilon, optimized),
    )


def _asking(client: Callable[[int], Any], server: Callable[[list[Any]], Sequence[float]]) -> Ask:
    return lambda people: server([client(value) for value in people])


PROTOCOLS: dict[str, Callable[[int, float], Ask]] = {
    "OUE": lambda size, epsilon: _unary(size, epsilon, optimized=True),
    "SUE": lambda size, epsilon: _unary(size, epsilon, optimized=False),
    "OLH": _hashing,
    "direct encoding": _direct,
}
