"""Columns in groups that hang together: average linkage on 1 - |correlation|, cut by the Davies-Bouldin index.

Everything here works on released numbers only.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from cloister.core.whole_rows import Floats
from cloister.synth.moments import NoisyMoments

__all__ = ["correlations", "davies_bouldin", "group_columns"]

_LEAST_VARIANCE = 1e-3
_LEAST_SPREAD = 0.05
"""The smallest spread of a group: otherwise columns by themselves, which have none, would always be the best groups."""


def correlations(moments: NoisyMoments) -> Floats:
    """Return the correlations that noisy moments show, between -1 and 1."""
    rows = max(1.0, moments.count)
    means = np.clip(moments.sums / rows, -1.0, 1.0)
    covariance = moments.products / rows - np.outer(means, means)
    deviations = np.sqrt(np.clip(np.diag(covariance), _LEAST_VARIANCE, 1.0))
    found = np.clip(covariance / np.outer(deviations, deviations), -1.0, 1.0)
    np.fill_diagonal(found, 1.0)
    return np.asarray((found + found.T) / 2)


def group_columns(correlation: Floats, *, most: int) -> tuple[tuple[int, ...], ...]:
    """Return groups of columns: of two up to ``most`` groups, as many as the Davies-Bouldin index finds best.

    Strong negative correlation is as near as strong positive correlation.
    """
    from scipy.cluster.hierarchy import fcluster, linkage
    from scipy.spatial.distance import squareform

    size = len(correlation)
    distances = 1.0 - np.abs(correlation)
    np.fill_diagonal(distances, 0.0)
    largest = min(most, size - 1)
    if largest < 2:
        return (tuple(range(size)),)
    tree = linkage(squareform(distances, checks=False), method="average")
    cuts = [fcluster(tree, many, criterion="maxclust") for many in range(2, largest + 1)]
    best = min(cuts, key=lambda labels: davies_bouldin(distances, labels))
    groups = [tuple(map(int, np.flatnonzero(best == label))) for label in np.unique(best)]
    return tuple(sorted(groups))


def davies_bouldin(distances: Floats, labels: NDArray[np.int32]) -> float:
    """Return the index of a clustering that is known by distances only: low where groups are tight and far apart.

    The spread of a group is the mean distance inside of it, at least 0.05; two groups are as far apart as their columns
    are on average.
    """
    members = [np.flatnonzero(labels == label) for label in np.unique(labels)]
    if len(members) < 2:
        return float("inf")
    spread = [_inside(distances[np.ix_(group, group)]) for group in members]
    worst = []
    for first, group in enumerate(members):
        ratios = [
            (spread[first] + spread[second]) / max(1e-9, float(distances[np.ix_(group, other)].mean()))
            for second, other in enumerate(members)
            if second != first
        ]
        worst.append(max(ratios))
    return float(np.mean(worst))


def _inside(block: Floats) -> float:
    many = len(block)
    return max(_LEAST_SPREAD, float(block.sum() / (many * (many - 1)))) if many > 1 else _LEAST_SPREAD
