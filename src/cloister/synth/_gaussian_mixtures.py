"""From released moments to groups of columns that hang together, and to Gaussian components and draws from them.

Everything here works on released numbers only. Columns are grouped by average linkage on 1 - |correlation|, cut by
the Davies-Bouldin index.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cloister.core.random import RandomSource
from cloister.core.whole_rows import Floats
from cloister.errors import ModelError
from cloister.synth._moments import Box, NoisyMoments
from cloister.synth._numeric import UNIT, choose_by_weight, standard_normals
from cloister.synth.inference._marginal_model import uniforms

__all__ = ["Mixture", "correlations", "covariance_near", "davies_bouldin", "group_columns", "merge_small", "mixture_of"]


_LEAST_VARIANCE = 1e-3
_LEAST_GROUP_SPREAD = 0.05
"""The smallest spread of a group: otherwise columns by themselves, which have none, would always be the best groups."""


def correlations(moments: NoisyMoments) -> Floats:
    """Return the correlations that noisy moments show, between -1 and 1."""
    rows = max(1.0, moments.count)
    means = np.clip(moments.sums / rows, -1.0, 1.0)
    covariance = moments.products / rows - np.outer(means, means)
    # Numbers between -1 and 1 have no larger variance, and noise can make one negative.
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
    return max(_LEAST_GROUP_SPREAD, float(block.sum() / (many * (many - 1)))) if many > 1 else _LEAST_GROUP_SPREAD


_LEAST_SPREAD = 1e-3


@dataclass(frozen=True, eq=False)
class Mixture:
    """Gaussian components of one class, in units of half the range: their weights, means and covariances."""

    weights: Floats
    means: Floats
    covariances: Floats

    def draw(self, count: int, source: RandomSource) -> Floats:
        """Return independent draws."""
        chosen = choose_by_weight(self.weights, uniforms(source, count))
        values, vectors = np.linalg.eigh(self.covariances)
        # A covariance from noisy numbers can be barely indefinite, and has no root unless negative eigenvalues
        # count as zero.
        roots = vectors * np.sqrt(np.maximum(values, 0.0))[:, None, :]
        normals = standard_normals(source, (count, self.means.shape[1]))
        return np.asarray(self.means[chosen] + np.einsum("nij,nj->ni", roots[chosen], normals))

    def to_dict(self) -> dict[str, Any]:
        """Return the arrays."""
        return {"weights": self.weights, "means": self.means, "covariances": self.covariances}

    @classmethod
    def from_dict(cls, values: dict[str, Any], *, width: int) -> Mixture:
        """Return what `to_dict` wrote, or refuse arrays that do not belong together."""
        made = cls(*(np.asarray(values[name], dtype=np.float64) for name in ("weights", "means", "covariances")))
        many = len(made.weights)
        if not many or made.means.shape != (many, width) or made.covariances.shape != (many, width, width):
            raise ModelError("The saved synthesizer is damaged.", fix="use the file as save wrote it.")
        return made


def covariance_near(products: Floats, mean: Floats) -> Floats:
    """Return the nearest covariance of numbers between -1 and 1 to noisy mean products, by clipped eigenvalues.

    The noise is drawn once. Drawing again until the matrix happens to be a covariance would look at the data again.
    """
    covariance = products - np.outer(mean, mean)
    values, vectors = np.linalg.eigh((covariance + covariance.T) / 2)
    # The variances of numbers between -1 and 1 add up to at most their number, and no eigenvalue is above that
    # sum.
    return np.asarray((vectors * np.clip(values, _LEAST_SPREAD, len(mean))) @ vectors.T)


def merge_small(
    moments: Sequence[NoisyMoments], boxes: Sequence[Box], *, fewest: int
) -> list[tuple[NoisyMoments, Box]]:
    """Return moments in which no box but a last one has fewer rows, as far as noise can tell: small ones joined.

    The smallest goes to the one whose middle is nearest, as long as there are several.
    """
    left = list(zip(moments, boxes, strict=True))
    while len(left) > 1:
        small = min(range(len(left)), key=lambda place: left[place][0].count)
        if left[small][0].count >= fewest:
            break
        taken, box = left.pop(small)
        apart = [float(((other.middles - box.middles) ** 2).sum()) for _, other in left]
        near = int(np.argmin(apart))
        joined = Box(np.minimum(left[near][1].lows, box.lows), np.maximum(left[near][1].highs, box.highs))
        left[near] = left[near][0] + taken, joined
    return left


def mixture_of(moments: Sequence[NoisyMoments], boxes: Sequence[Box], *, fewest: int) -> Mixture:
    """Return the components of one class."""
    weights, means, covariances = [], [], []
    for item, box in merge_small(moments, boxes, fewest=fewest):
        rows = max(1.0, item.count)
        mean = np.clip(item.sums / rows, box.lows / UNIT, box.highs / UNIT)
        weights.append(max(0.0, item.count))
        means.append(mean)
        covariances.append(covariance_near(item.products / rows, mean))
    return Mixture(np.array(weights), np.array(means), np.array(covariances))


def class_weights(groups: Sequence[Sequence[Mixture]], sizes: Sequence[int]) -> NDArray[np.float64]:
    """Return the number of rows of each class, from all groups of columns, the larger ones counting more."""
    totals = np.array([[mixture.weights.sum() for mixture in classes] for classes in groups])
    return np.asarray(np.average(totals, axis=0, weights=np.array(sizes, dtype=np.float64)))
