"""Lloyd's k-means with a start that is the same everywhere, so that centers of different blocks can be averaged."""

from __future__ import annotations

from typing import Any

import numpy as np


def fit(inputs: dict[str, Any], parameters: dict[str, Any], bounds: dict[str, Any]) -> dict[str, Any]:
    """Return the centers of the groups of one block, ordered by their first coordinate."""
    low, high = np.array(bounds["features"]).T
    rows = (inputs["features"] - low) / (high - low)
    rows = rows[~np.isnan(rows).any(axis=1)]
    centers = _start(rows, parameters["groups"])
    for _ in range(parameters["rounds"]):
        centers = _improved(rows, centers)
    return {"centers": low + centers[np.lexsort(centers.T[::-1])] * (high - low)}


def _start(rows: Any, groups: int) -> Any:
    """Take the row nearest to the middle, then always the row that is farthest from those taken."""
    taken = [rows[((rows - 0.5) ** 2).sum(axis=1).argmin()]]
    while len(taken) < groups:
        taken.append(rows[_distances(rows, np.array(taken)).min(axis=1).argmax()])
    return np.array(taken)


def _improved(rows: Any, centers: Any) -> Any:
    nearest = _distances(rows, centers).argmin(axis=1)
    counts = np.bincount(nearest, minlength=len(centers))
    sums = np.stack([np.bincount(nearest, column, minlength=len(centers)) for column in rows.T], axis=1)
    return np.where(counts[:, None] > 0, sums / np.maximum(counts, 1)[:, None], centers)


def _distances(rows: Any, centers: Any) -> Any:
    return ((rows[:, None, :] - centers[None, :, :]) ** 2).sum(axis=2)
