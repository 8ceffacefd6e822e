"""One row moves the score of a choice by one at most, however large the noise was on what was released before."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from cloister.core.random import SeededRandomSource
from cloister.synth._cell_counts import Counts
from cloister.synth.adaptive import _Picking
from cloister.synth.bayesian_network import NetworkFamily, _Growth
from cloister.synth.inference._estimation import NoisyMarginal
from cloister.synth.inference._junction_tree import junction_tree
from cloister.synth.inference._marginal_model import MarginalModel
from cloister.synth.multiplicative_weights import _gaps
from cloister.synth.spanning_tree import _dependence

EMPTY: Counts = np.zeros((2, 2), dtype=np.int64)
ADDED: Counts = np.array([[1, 0], [0, 0]])
RELEASED = [1e3, 1e18, 1e19, 1e21]


def work(counts: Counts, released: float) -> Any:
    seen = [NoisyMarginal((column,), np.array([released, released / 3]), 1.0) for column in (0, 1)]
    domain = SimpleNamespace(sizes=(2, 2))
    return SimpleNamespace(
        seen=seen,
        counts=SimpleNamespace(marginal=lambda _: counts),
        facts=SimpleNamespace(domain=domain, constraints=()),
        source=SeededRandomSource(1),
    )


def adaptive(counts: Counts, released: float) -> list[int]:
    model = MarginalModel(junction_tree((2, 2), [(0, 1)]), (np.full((2, 2), 0.25),), released)
    return _Picking(work(counts, released), {(0, 1): 1}, 100)._scores(model, [(0, 1)], 1.0)


def tree(counts: Counts, released: float) -> list[int]:
    return [_dependence(work(counts, released), (0, 1))]


def network(counts: Counts, released: float) -> list[int]:
    return [_Growth(work(counts, released), 100.0, 1, 1.0).score(NetworkFamily(1, (0,)))]


def weights(counts: Counts, released: float) -> list[int]:
    return list(map(int, _gaps(np.full((2, 2), released / 4), (0, 1), counts)))


@pytest.mark.parametrize("released", RELEASED)
@pytest.mark.parametrize("scores", [adaptive, tree, network, weights])
def test_a_row_moves_a_score_by_one_at_most(scores: Any, released: float, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cloister.synth.adaptive._LARGEST_SAMPLE", 1000)
    pairs = list(zip(scores(EMPTY, released), scores(ADDED, released), strict=True))
    assert all(abs(after - before) <= 1 for before, after in pairs)
    assert any(after != before for before, after in pairs)
    assert all(abs(score) < 2**62 for pair in pairs for score in pair)
