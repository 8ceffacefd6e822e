"""The boundary attack: find a misleading input near a given one from labels alone.

The walk starts at a record that the model takes for another class, halves its way to the border, and there asks about
points around it: which of them mislead the model tells where the border lies, and so the way that leads nearer
(HopSkipJump: Chen, Jordan and Wainwright 2020).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from cloister.anonymize.operations.sampling import standard_normals
from cloister.attacks.confidence import Floats
from cloister.attacks.models.reading import Labeled, Victim
from cloister.core.random import RandomSource

__all__ = ["boundary_distances"]

_HALVINGS = 10
_PROBES = 40
_SHRINKS = 5


def boundary_distances(
    victim: Victim, rows: Labeled, *, limits: tuple[float, float], norm: str, steps: int, source: RandomSource
) -> Floats:
    """Return how far each row must at most be changed until the model errs; infinite where no start was found.

    Args:
        victim: the model.
        rows: what is attacked.
        limits: public bounds of features.
        norm: "largest" or "euclidean".
        steps: how often the border is probed.
        source: where random steps come from.
    """
    said = victim.predictions(rows.features)
    starts = _starts(rows.features, said, rows.labels)
    points = _halved(victim, rows, rows.features[np.maximum(starts, 0)])
    for step in range(1, steps + 1):
        apart = np.linalg.norm(points - rows.features, axis=1)
        way = _uphill(victim, rows, points, reach=apart / np.sqrt(points.shape[1]), source=source)
        way = np.sign(way) / np.sqrt(points.shape[1]) if norm == "largest" else way
        moved = _halved(victim, rows, _advanced(victim, rows, points, way, apart / np.sqrt(step), limits=limits))
        nearer = _length(moved - rows.features, norm) < _length(points - rows.features, norm)
        points = np.where(nearer[:, None], moved, points)
    distance = np.where(starts < 0, np.inf, _length(points - rows.features, norm))
    return np.asarray(np.where(said != rows.labels, 0.0, distance))


def _starts(rows: Floats, said: NDArray[np.generic], labels: NDArray[np.generic]) -> NDArray[np.int64]:
    """Return for each row the position of the nearest one that the model takes for another class than its own."""
    squares = (rows**2).sum(axis=1)
    apart = squares[:, None] + squares[None, :] - 2 * rows @ rows.T
    apart[labels[:, None] == said[None, :]] = np.inf
    return np.where(np.isfinite(apart).any(axis=1), apart.argmin(axis=1), -1)


def _halved(victim: Victim, rows: Labeled, points: Floats) -> Floats:
    """Return points on the way to the rows, as near as the model still errs, by halving."""
    good, bad = np.zeros(len(points)), np.ones(len(points))
    for _ in range(_HALVINGS):
        middle = (good + bad) / 2
        errs = victim.predictions(points + middle[:, None] * (rows.features - points)) != rows.labels
        good, bad = np.where(errs, middle, good), np.where(errs, bad, middle)
    return np.asarray(points + good[:, None] * (rows.features - points))


def _uphill(victim: Victim, rows: Labeled, points: Floats, *, reach: Floats, source: RandomSource) -> Floats:
    """Return the direction of unit length into which the model errs more, as points around tell."""
    probes = standard_normals(source, _PROBES * points.size).reshape(_PROBES, *points.shape)
    probes /= np.maximum(np.linalg.norm(probes, axis=2, keepdims=True), 1e-300)
    asked = (points + reach[:, None] * probes).reshape(-1, points.shape[1])
    errs = (victim.predictions(asked) != np.tile(rows.labels, _PROBES)).reshape(_PROBES, -1).astype(np.float64)
    lean = ((errs - errs.mean(axis=0))[:, :, None] * probes).mean(axis=0)
    return np.asarray(lean / np.maximum(np.linalg.norm(lean, axis=1, keepdims=True), 1e-300))


def _advanced(
    victim: Victim, rows: Labeled, points: Floats, way: Floats, size: Floats, *, limits: tuple[float, float]
) -> Floats:
    """Return points further on the way, as far as the model still errs there; where it does nowhere, the old ones."""
    found = points
    arrived = np.zeros(len(points), dtype=np.bool_)
    for _ in range(_SHRINKS):
        tried = np.clip(points + size[:, None] * way, *limits)
        errs = (victim.predictions(tried) != rows.labels) & ~arrived
        found, arrived, size = np.where(errs[:, None], tried, found), arrived | errs, size / 2
    return np.asarray(found)


def _length(changes: Floats, norm: str) -> Floats:
    return np.asarray(np.abs(changes).max(axis=1) if norm == "largest" else np.linalg.norm(changes, axis=1))
