"""Every feature as one of a few public cells: numbers in bins between public edges, categories by their position.

What counts learn from, out of rows that are encoded already. A number falls into the bin from an edge up to, not
including, the next one; what lies outside of the bounds falls into the outer bins. A category is its position in the
declared values, and what is missing or undeclared the position after the last. Each row is binned by itself.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cloister.learn.encoding import Encoding
from cloister.learn.features import Binned, Categorical, Numeric
from cloister.learn.rows import Floats

__all__ = ["Bins", "Integers", "bins_of"]

Integers = NDArray[np.int64]

_USUAL = 32


@dataclass(frozen=True, slots=True)
class Bins:
    """All features in cells, in order."""

    features: tuple[Binned | Categorical, ...]

    @property
    def cells(self) -> tuple[int, ...]:
        """Return how many cells each feature has."""
        return tuple(feature.cells for feature in self.features)

    def codes(self, matrix: Floats) -> Integers:
        """Return the cell of each feature in each row, from rows that `Encoding.matrix` encoded."""
        codes = np.empty((len(matrix), len(self.features)), dtype=np.int64, order="F")
        start = 0
        for place, feature in enumerate(self.features):
            if isinstance(feature, Binned):
                codes[:, place] = feature.places(matrix[:, start])
                start += 1
            else:
                block = matrix[:, start : start + len(feature.values)].astype(bool)
                codes[:, place] = np.where(block.any(axis=1), block.argmax(axis=1), len(feature.values))
                start += len(feature.values)
        return codes


def bins_of(encoding: Encoding, bins: Any) -> Bins:  # a number, or a number or edges for some columns
    """Return how features are binned.

    Args:
        encoding: the features with their public bounds and values.
        bins: into how many bins of equal width numbers are cut; or {column: number or edges}, 32 for the others.

    Raises:
        ParameterError: if a number of bins is not sensible, or edges do not rise.
    """
    given = {str(name): item for name, item in bins.items()} if isinstance(bins, Mapping) else {}
    usual = _USUAL if isinstance(bins, Mapping) else bins
    return Bins(
        tuple(
            Binned.cut(feature, given.get(feature.name, usual)) if isinstance(feature, Numeric) else feature
            for feature in encoding.features
        )
    )
