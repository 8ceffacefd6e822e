"""SYN-16: every registered synthesizer is audited on neighbors; a right one is refuted once in 1e9 runs.

Each is fitted some hundred times on two small tables that differ in one row. What is judged is all that it learned. The
exact counts are read once; what is only computed from released numbers is cut short.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from cloister.attacks import AttackResult, AuditDetails, audit_dp
from cloister.core.random import random_source
from cloister.data.schema import Schema
from cloister.data.sources import open_table
from cloister.data.table import Table
from cloister.mechanisms.step_noise import LaplaceSteps
from cloister.synth import marginal_based, multiplicative_weights, synthesizers
from cloister.synth._cell_counts import CellCounts
from cloister.synth.inference import _estimation as estimation
from cloister.synth.marginal_based import MarginalSynthesizer
from tests.support.thoroughness import audited
from tests.synth.toys import OPTIONS

pytestmark = [pytest.mark.slow, pytest.mark.statistical]

NAMES = ("a", "b", "c")
SCHEMA = Schema.from_dict({"columns": {name: {"kind": "numeric", "bounds": [0, 1]} for name in NAMES}})
OTHERS = [(0, 0, 0), (1, 0, 0)]
ONE = (1, 1, 1)

Learn = Callable[[], dict[str, float]]


def table(rows: list[tuple[int, ...]]) -> Table:
    columns = dict(zip(NAMES, map(list, zip(*rows, strict=True)), strict=True))
    return open_table(pa.table(columns), schema=SCHEMA)


NEIGHBORS = (table([*OTHERS, ONE]), table(OTHERS))


def learning(name: str, part: Table, **options: Any) -> Learn:
    """Return a function that learns anew each time and returns all numbers that it learned."""
    made: MarginalSynthesizer = synthesizers.get(name)(
        **{"epsilon": 1, "complete": True, **OPTIONS.get(name, {}), **options}
    )
    facts, source = made.declared(part), random_source()

    def again() -> dict[str, float]:
        made._learn(facts, part, source)
        listed = [
            ("rows", np.array(made.rows_)),
            *((str(item.columns), item.values) for item in made.measurements_),
        ]
        repeats: dict[str, float] = {}
        for label, values in listed:
            for place, value in enumerate(np.ravel(values)):
                key = f"{label}[{place}]"
                repeats[key] = repeats.get(key, 0.0) + round(float(value), 6)
        return repeats

    return again


def audit(name: str, *, samples: int, confidence: float = 1 - 1e-9, **options: Any) -> AttackResult[AuditDetails]:
    learn = {id(part): learning(name, part, **options) for part in NEIGHBORS}
    return audit_dp(
        lambda part: learn[id(part)](),
        NEIGHBORS,
        epsilon=1,
        mode="statistical",
        samples=samples,
        confidence=confidence,
        vectorized=False,
    )


@pytest.fixture(autouse=True)
def quick_fits(monkeypatch: pytest.MonkeyPatch) -> None:
    """Count each table once, and estimate in no step."""
    monkeypatch.setattr(marginal_based, "CellCounts", functools.cache(CellCounts))
    monkeypatch.setattr(estimation, "minimize", lambda _, start, **__: SimpleNamespace(x=start))
    monkeypatch.setattr(multiplicative_weights, "_MOST_PASSES", 2)


@contextmanager
def noise_divided(by: int) -> Iterator[None]:
    right = LaplaceSteps.scale
    LaplaceSteps.scale = property(lambda noise: noise.sensitivity / noise.epsilon / by)  # type: ignore[assignment,method-assign]
    try:
        yield
    finally:
        LaplaceSteps.scale = right  # type: ignore[method-assign]


OF_CELLS = [name for name, kind in synthesizers.items() if issubclass(kind, MarginalSynthesizer)]


def test_every_synthesizer_is_audited() -> None:
    elsewhere = {"grouped_gaussian", "microaggregated_gaussian"}  # what they release is recorded and drawn anew
    assert set(OF_CELLS) | elsewhere | {"k_anonymous"} == set(synthesizers)


ALWAYS = ["bayesian_network", "independent", "mwem"]
"""Noise alone, and noise with choices before it and between; the others release what one of these releases."""


@pytest.mark.parametrize("name", audited(OF_CELLS, but=ALWAYS))
def test_no_synthesizer_is_refuted(name: str) -> None:
    audit(name, samples=400).verify()


@pytest.mark.parametrize("name", audited(OF_CELLS, but=ALWAYS))
def test_much_too_little_noise_is_refuted(name: str) -> None:
    with noise_divided(10):
        assert audit(name, samples=500, confidence=0.999).refuted


@pytest.mark.parametrize("name", audited(["histogram", "independent"], but=()))
def test_half_of_the_noise_is_refuted(name: str) -> None:
    with noise_divided(2):
        assert audit(name, samples=3000, confidence=0.999, columns=["c"]).refuted
