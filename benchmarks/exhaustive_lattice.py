"""Every full-domain recoding of Adult in plain NumPy: what the best one is, found by looking at all of them."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from benchmarks.anonymize_data import QUASI, paths_to_root


@dataclass(frozen=True, kw_only=True)
class Optimum:
    """The best levels within a suppression limit, their loss, and how many recodings there are."""

    levels: tuple[int, ...]
    ncp: float
    nodes: int


def best_recodings(rows: pa.Table, *, k: int, limits: Sequence[float]) -> list[Optimum]:
    """Return the best recoding under each suppression limit."""
    coded = [_coded(rows, name) for name in QUASI]
    cells, weights = np.unique(np.stack([codes for codes, _, _ in coded]), axis=1, return_counts=True)
    total = rows.num_rows
    best: list[tuple[float, tuple[int, ...]]] = [(np.inf, ())] * len(limits)
    heights = [len(nodes) for _, nodes, _ in coded]
    for levels in itertools.product(*map(range, heights)):
        key, lost = np.zeros(len(weights), dtype=np.int64), np.zeros(len(weights))
        for (_, nodes, losses), cell, level in zip(coded, cells, levels, strict=True):
            key = key * (int(nodes[level].max()) + 1) + nodes[level][cell]
            lost += losses[level][cell]
        _, of_cell = np.unique(key, return_inverse=True)
        kept = np.bincount(of_cell, weights=weights)[of_cell] >= k
        suppressed = int(weights[~kept].sum())
        ncp = (float(weights[kept] @ lost[kept]) / len(QUASI) + suppressed) / total
        best = [
            min(found, (ncp, levels)) if suppressed <= limit * total else found
            for found, limit in zip(best, limits, strict=True)
        ]
    return [Optimum(levels=levels, ncp=ncp, nodes=int(np.prod(heights))) for ncp, levels in best]


def _coded(rows: pa.Table, name: str) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the code of each row; for each level the node of each code, and its loss (leaves - 1) / (all - 1)."""
    paths = paths_to_root(name)
    places = {path[0]: place for place, path in enumerate(paths)}
    codes = np.array([places[str(value)] for value in rows[name].to_pylist()])
    nodes = np.stack([np.unique(names, return_inverse=True)[1].ravel() for names in zip(*paths, strict=True)])
    losses = np.stack([(np.bincount(level)[level] - 1) / max(len(paths) - 1, 1) for level in nodes])
    return codes, nodes, losses
