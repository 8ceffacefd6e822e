"""Local reports of a million people: CPU seconds of clients and server, beside pure-ldp and multi-freq-ldpy.

One warm process from the plain answers to the estimates; ours draws from a cryptographic generator and compares
integers, the peers draw floating-point numbers from a generator for simulations. What takes a peer minutes it does for
fewer people, and its seconds are scaled by the number of people, which the row says; with CLOISTER_BENCH_FULL=1 it does
all of it. Peers keep what they have compiled between a first small question and the one that is measured.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import cloister as cl
from benchmarks import harness
from benchmarks.anonymize_tools import beside, judged, median_seconds
from benchmarks.local_people import answers, most_common

TITLE = "Local reports: 1,000,000 people, epsilon 1, clients plus server"
USERS = 1_000_000
SIZES = (128, 1024)
EPSILON = 1.0
_ROOT = str(Path(__file__).parents[1])
_PEER = """
import json, sys, warnings
warnings.simplefilter("ignore")
sys.path.insert(0, {root!r})
from benchmarks.peers import {module} as tool
print(json.dumps(tool.run({jobs!r})))
"""


@dataclass(frozen=True, kw_only=True)
class Oracle:
    """A protocol: its class, its CPU seconds at most for each number of values, and the people a peer does it for.

    ``peers`` holds what peers call it; a second name is a variant that is less accurate.
    """

    protocol: str
    targets: tuple[float | None, ...] = (None, None)
    sample: int = USERS
    peers: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class Peer:
    """A peer: its name, its module, the packages of its environment (it does not ask for all), and what it lacks."""

    name: str
    module: str
    packages: tuple[str, ...]
    lacks: frozenset[str] = frozenset()


ORACLES = (
    Oracle(protocol="OptimizedUnaryEncoding", targets=(0.5, 4.0), sample=100_000, peers=("OUE",)),
    Oracle(protocol="OptimizedLocalHashing", targets=(0.5, 3.0), sample=20_000, peers=("OLH", "OLH of 1,000 hashes")),
    Oracle(protocol="HadamardResponse", targets=(0.1, 0.1), peers=("HR",)),
    Oracle(protocol="SymmetricUnaryEncoding", sample=100_000, peers=("SUE",)),
    Oracle(protocol="DirectEncoding", peers=("direct encoding",)),
)
FASTER = {"OLH of 1,000 hashes"}
PEERS = (
    Peer(name="pure-ldp", module="pure_ldp", packages=("pure-ldp", "scikit-learn", "statsmodels", "xxhash<4")),
    Peer(
        name="multi-freq-ldpy",
        module="multi_freq_ldpy",
        packages=("multi-freq-ldpy", "xxhash<4"),
        lacks=frozenset({"HR", *FASTER}),
    ),
)


def main(users: int = USERS, sizes: Sequence[int] = SIZES) -> list[dict[str, Any]]:
    """Return the CPU time of every protocol beside every peer that has it."""
    full = os.environ.get("CLOISTER_BENCH_FULL") == "1"
    jobs = [job for oracle in ORACLES for job in _jobs(oracle, users, sizes, full=full)]
    found = {peer: run_peer(peer, jobs) for peer in PEERS}
    rows = []
    for oracle in ORACLES:
        for size, target in zip(sizes, oracle.targets, strict=True):
            row = judged(f"{oracle.peers[0]}, {size} values", _ours(oracle, users, size), unit="CPU s", target=target)
            rows += _beside_all(row, oracle, size, users, found)
    return rows


def run_peer(peer: Peer, jobs: list[dict[str, Any]]) -> list[dict[str, Any]] | None:
    """Return the jobs that a peer did, or None if it cannot be installed or does not finish here."""
    print(f"  {peer.name} ...", flush=True)
    try:
        return list(harness.run_peer(_PEER.format(root=_ROOT, module=peer.module, jobs=jobs), *peer.packages))
    except subprocess.CalledProcessError as failure:
        print(f"  {peer.name} could not be run here (exit code {failure.returncode})", flush=True)
        return None


def _jobs(oracle: Oracle, users: int, sizes: Sequence[int], *, full: bool) -> list[dict[str, Any]]:
    return [
        {
            "protocol": name,
            "size": size,
            "epsilon": EPSILON,
            "users": users if full else min(users, _sample(oracle, name)),
        }
        for name in oracle.peers
        for size in sizes
    ]


def _sample(oracle: Oracle, name: str) -> int:
    return USERS if name in FASTER else oracle.sample


def _ours(oracle: Oracle, users: int, size: int) -> float:
    """Return the median CPU seconds from the plain answers to the estimate.

    Raises:
        ValueError: if the estimate misses the value that a quarter of the people say.
    """
    people = np.array(answers(users, size))
    protocol = getattr(cl.local, oracle.protocol)(domain=list(range(size)), epsilon=EPSILON)

    def ask() -> Any:
        return np.asarray(protocol.estimate(protocol.randomize(people)).frequencies)

    _check(oracle.protocol, most_common(ask()))
    used = median_seconds(ask)
    print(f"  {oracle.protocol}, {size} values: {used:.3f} CPU s", flush=True)
    return used


def _beside_all(
    row: dict[str, Any], oracle: Oracle, size: int, users: int, found: dict[Peer, list[dict[str, Any]] | None]
) -> list[dict[str, Any]]:
    """Return the row once for each peer, and for each way that a peer does it."""
    rows = []
    for peer, done in found.items():
        if done is None and oracle.peers[0] not in peer.lacks:
            rows.append(beside(row, peer.name, None))
        for job in (job for job in done or () if job["size"] == size and job["protocol"] in oracle.peers):
            _check(peer.name, job["most"])
            label = peer.name if job["protocol"] == oracle.peers[0] else f"{peer.name}, {job['protocol']}"
            scale = users / job["users"]
            told = row if scale == 1 else {**row, "name": f"{row['name']}, peer scaled from {job['users']:,} people"}
            rows.append(beside(told, label, job["cpu"] * scale))
    return rows


def _check(name: str, most: int) -> None:
    if most != 0:
        raise ValueError(f"{name} does not find the most common value; its time means nothing.")
