"""The same made-up numbers on every machine, to learn from."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.special import ndtri

from cloister.core.random import SeededRandomSource, permutation

Array = np.ndarray[Any, Any]


class Draws:
    """Numbers from a seed."""

    def __init__(self, seed: int) -> None:
        self._source = SeededRandomSource(seed)

    def uniform(self, *shape: int) -> Array:
        """Numbers between -1 and 1."""
        words = self._source.words(int(np.prod(shape))) >> np.uint64(11)
        return (2 * (words.astype(np.float64) + 0.5) / 2**53 - 1).reshape(shape)

    def normal(self, *shape: int) -> Array:
        """Numbers of the standard normal law."""
        return np.asarray(ndtri((self.uniform(*shape) + 1) / 2))

    def logistic(self, *shape: int) -> Array:
        """Numbers of the standard logistic law."""
        shares = (self.uniform(*shape) + 1) / 2
        return np.log(shares / (1 - shares))

    def choice(self, values: list[float], *shape: int) -> Array:
        """Values that are all equally probable."""
        places = ((self.uniform(*shape) + 1) / 2 * len(values)).astype(int)
        return np.array(values)[places]

    def permutation(self, size: int) -> Array:
        """The numbers below a size in any order."""
        return permutation(self._source, size)
