"""Exact noise per CPU second, beside OpenDP's vector mechanisms, for scales of every kind."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from fractions import Fraction
from typing import Any

from benchmarks import harness
from cloister.core.random import SystemRandomSource
from cloister.mechanisms.sampling.discrete_noise import discrete_gaussian, discrete_laplace

TITLE = "Exact noise"
DRAWS = 1_000_000
REPEATS = 5
SCALES = [
    ("1/3", Fraction(1, 3)),
    ("1", Fraction(1)),
    ("10", Fraction(10)),
    ("1234567/1000", Fraction(1234567, 1000)),
    ("2^20", Fraction(2**20)),
    ("10^12/7", Fraction(10**12, 7)),
    ("10^20", Fraction(10**20)),
]
TARGETS = {"Laplace": 2.0, "Gaussian": 1.0}

PEER = """
import json, statistics, time
import opendp.prelude as dp
dp.enable_features("contrib")
zeros, answer = [0] * 100_000, {}
for scale in SCALES:
    for name, make, space in (
        ("Laplace", dp.m.make_laplace, dp.l1_distance(T=int)),
        ("Gaussian", dp.m.make_gaussian, dp.l2_distance(T=float)),
    ):
        mechanism = make(dp.vector_domain(dp.atom_domain(T=int)), space, scale=scale)
        rates = []
        for _ in range(REPEATS):
            start = time.process_time()
            mechanism(zeros)
            rates.append(len(zeros) / (time.process_time() - start) / 1e6)
        answer[f"{name} {scale}"] = statistics.median(rates)
print(json.dumps(answer))
"""


def main() -> list[dict[str, Any]]:
    """Return millions of draws per CPU second, the sampler's tables already made, as for OpenDP's mechanism."""
    source = SystemRandomSource()
    scales = [float(scale) for _, scale in SCALES]
    peer = harness.run_peer(PEER.replace("SCALES", repr(scales)).replace("REPEATS", str(REPEATS)), "opendp", "numpy")
    rows = []
    for label, scale in SCALES:
        for name, sampler in (("Laplace", discrete_laplace(scale)), ("Gaussian", discrete_gaussian(scale**2))):
            ours = _rate(lambda sampler=sampler: sampler.draw(source, DRAWS))  # type: ignore[misc]
            theirs = peer[f"{name} {float(scale)}"]
            rows.append(
                {
                    "name": f"discrete {name}, scale {label}",
                    "ours": ours,
                    "peer": theirs,
                    "peer_name": "OpenDP",
                    "ratio": ours / theirs,
                    "unit": "million draws per CPU s",
                    "target": f">= {TARGETS[name]:g} and >= 15x",
                    "met": ours >= TARGETS[name] and ours >= 15 * theirs,
                }
            )
    return rows


def _rate(draw: Callable[[], object]) -> float:
    rates = []
    for _ in range(REPEATS):
        start = time.process_time()
        draw()
        rates.append(DRAWS / (time.process_time() - start) / 1e6)
    return statistics.median(rates)
