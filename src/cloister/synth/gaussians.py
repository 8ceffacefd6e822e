"""Gaussian components from noisy moments, and draws from them. Everything here works on released numbers only."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cloister.core.random import RandomSource
from cloister.core.whole_rows import Floats
from cloister.errors import ModelError
from cloister.synth.inference.sampling import uniforms
from cloister.synth.moments import Box, NoisyMoments
from cloister.synth.numeric import UNIT, choose_by_weight, standard_normals

__all__ = ["Mixture", "covariance_near", "merge_small", "mixture_of"]

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
