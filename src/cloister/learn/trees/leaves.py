"""From noisy class counts of leaves to probabilities, by what is known of the nodes above.

The counts of a node are the sums of those of the leaves below it, so a tree of noisy leaves has noisy counts
everywhere, at no further cost. Noise makes small leaves worthless; each node therefore starts with what its parent
believes, at the weight of so many rows as the noise of its counts, going down from equal probabilities at the root.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from cloister.learn.rows import Floats

__all__ = ["leaf_probabilities"]


def leaf_probabilities(noisy: NDArray[np.float64], *, deviation: float) -> Floats:
    """Return the class probabilities of each leaf.

    Args:
        noisy: (leaves, classes) noisy counts; the number of leaves is a power of two.
        deviation: the standard deviation of the noise of one count.
    """
    levels = [noisy]
    while len(levels[-1]) > 1:
        levels.append(levels[-1].reshape(-1, 2, noisy.shape[1]).sum(axis=1))
    beliefs = np.full((1, noisy.shape[1]), 1 / noisy.shape[1])
    for counts in reversed(levels):
        below = len(noisy) // len(counts)
        weight = max(noisy.shape[1] * deviation * math.sqrt(below), 1.0)
        beliefs = np.repeat(beliefs, len(counts) // len(beliefs), axis=0)
        positive = np.maximum(counts, 0.0)
        beliefs = (positive + weight * beliefs) / (positive.sum(axis=1, keepdims=True) + weight)
    return beliefs
