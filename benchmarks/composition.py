"""Composition of many releases: cloister's accountants beside dp-accounting's privacy loss distributions.

Speed: 10,000 different Gaussian events, 10,000 different Laplace events, and half of each, after a warm-up.
Accuracy: 10,000 equal events at several scales and deltas. dp-accounting rounds up too, so its default answer is an
upper bound like ours; its optimistic answer is a lower bound of the truth. A sound accountant is never below the
latter. It may be a little below the former: exact Gaussian answers come out up to 0.1 percent below the peer's default
grid and approach its finer one, since the peer's own rounding is what differs. For the discrete Laplace mechanism the
peer is run with "connect the dots", which is tighter than its default.

Run ``python -m benchmarks.composition`` (some minutes), or with ``--short`` for a peer on a tenth of the events, in
which case its time is multiplied by ten and labeled so.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from fractions import Fraction
from functools import partial
from typing import Any

from benchmarks.peer_accountant import PeerAccountant
from cloister.accounting import (
    DiscreteLaplaceEvent,
    Event,
    GaussianEvent,
    LaplaceEvent,
    RepeatedEvent,
    compose,
)

EVENTS = 10_000
DELTA = 1e-6


def gaussian_events(count: int) -> list[Event]:
    return [GaussianEvent(squared_multiplier=Fraction(5000 + 3 * i, 100) ** 2) for i in range(count)]


def laplace_events(count: int) -> list[Event]:
    return [LaplaceEvent(noise_multiplier=Fraction(5000 + 3 * i, 100)) for i in range(count)]


def mixed_events(count: int) -> list[Event]:
    return [*gaussian_events(count // 2), *laplace_events(count - count // 2)]


def timed(work: Callable[[], Any]) -> tuple[Any, float]:
    start = time.perf_counter()
    result = work()
    return result, time.perf_counter() - start


composed = partial(compose, adjacency="add_remove", unit="row")


def peer_composition(events: list[Event]) -> float:
    """The peer's own accountant, fed with its own events: what a user of it would write."""
    import dp_accounting
    from dp_accounting.pld import PLDAccountant

    accountant = PLDAccountant()
    for event in events:
        if isinstance(event, GaussianEvent):
            accountant.compose(dp_accounting.GaussianDpEvent(float(event.squared_multiplier) ** 0.5))
        elif isinstance(event, LaplaceEvent):
            accountant.compose(dp_accounting.LaplaceDpEvent(float(event.noise_multiplier)))
    return float(accountant.get_epsilon(DELTA))


def speed_rows(*, short: bool) -> list[dict[str, Any]]:
    rows = []
    kinds = {"Gaussian": gaussian_events, "Laplace": laplace_events, "mixed": mixed_events}
    for kind, make in kinds.items():
        events = make(EVENTS)
        composed(events[:100], delta=DELTA)
        (guarantee, ours) = timed(lambda events=events: composed(events, delta=DELTA))
        subset = make(EVENTS // 10) if short else events
        peer_epsilon, peer = timed(lambda subset=subset: peer_composition(subset))
        factor = EVENTS / len(subset)
        label = f"compose {EVENTS} different {kind} events" + (" (peer: a tenth, x10)" if short else "")
        rows.append(row(label, ours, peer * factor, peer * factor / ours, "ours < 1 s", "seconds"))
        if not short:
            epsilon = float(guarantee.epsilon)
            rows.append(
                row(f"epsilon of the same {kind} events", epsilon, peer_epsilon, epsilon / peer_epsilon, "", "")
            )
    return rows


def accuracy_cases() -> dict[str, Event]:
    return {
        "Gaussian, multiplier 100": GaussianEvent(squared_multiplier=100**2),
        "Gaussian, multiplier 1000": GaussianEvent(squared_multiplier=1000**2),
        "Laplace, epsilon 0.1": LaplaceEvent(noise_multiplier=10),
        "Laplace, epsilon 0.01": LaplaceEvent(noise_multiplier=100),
        "discrete Laplace, epsilon 0.1 in 1 step": DiscreteLaplaceEvent(scale=10, sensitivity=1),
        "discrete Laplace, epsilon 0.05 in 20 steps": DiscreteLaplaceEvent(scale=400, sensitivity=20),
    }


def accuracy_rows() -> list[dict[str, Any]]:
    rows = []
    for label, event in accuracy_cases().items():
        events = RepeatedEvent(event=event, count=EVENTS)
        for delta in (1e-4, 1e-6, 1e-9):
            ours = float(composed(events, delta=delta).epsilon)
            for name, peer in peers().items():
                theirs = peer.epsilon(events, delta=delta)
                title = f"epsilon of {EVENTS} x {label}, delta {delta:g}; peer {name}"
                goal = "at least 1" if "optimistic" in name else "1 to 1.05"
                rows.append(row(title, ours, theirs, ours / theirs, goal, "epsilon"))
    return rows


def peers() -> dict[str, PeerAccountant]:
    return {
        "default grid 1e-4": PeerAccountant(),
        "fine grid 2e-5": PeerAccountant(interval=2e-5),
        "fine grid 2e-5, optimistic": PeerAccountant(interval=2e-5, pessimistic=False),
    }


def row(name: str, ours: float, peer: float, ratio: float, target: str, unit: str) -> dict[str, Any]:
    return {"name": name, "ours": ours, "peer": peer, "ratio": ratio, "target": target, "unit": unit}


def main(*, short: bool = False) -> list[dict[str, Any]]:
    """Return one row per measurement; the ratio is peer/ours for times and ours/peer for epsilons."""
    return [*speed_rows(short=short), *accuracy_rows()]


if __name__ == "__main__":
    for line in main(short="--short" in sys.argv):
        print(
            f"{line['name']:<95} {line['ours']:>12.6g} {line['peer']:>12.6g} {line['ratio']:>10.5f}  {line['target']}"
        )
