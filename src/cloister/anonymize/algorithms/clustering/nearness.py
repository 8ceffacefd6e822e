"""An order of cells in which neighbors are alike."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from cloister.anonymize.attributes import Attribute
from cloister.anonymize.cells import Cells

Counts: TypeAlias = NDArray[np.int64]


class Nearness:
    """Ranks of the leaves of every attribute along its tree, and which attributes matter most."""

    def __init__(self, cells: Cells, prices: Sequence[float]) -> None:
        """Take the loss that an attribute causes when it is not told apart: the dear ones come first in the order."""
        self._cells = cells
        self._ranks = [_tree_ranks(attribute) for attribute in cells.attributes]
        places = range(len(cells.attributes))
        self._places = sorted(places, key=lambda place: (cells.attributes[place].is_ordered, -prices[place]))

    def ranks(self, chosen: Counts, *, turn: int = 0) -> Counts:
        """Return the place of each chosen cell in the order; another turn puts another attribute first."""
        lead = self._places[turn % len(self._places)]
        places = [lead, *(place for place in self._places if place != lead)]
        keys = [self._ranks[place][self._cells.codes[chosen, place]] for place in reversed(places)]
        ranks = np.empty(len(chosen), dtype=np.int64)
        ranks[np.lexsort(keys)] = np.arange(len(chosen))
        return ranks


def _tree_ranks(attribute: Attribute) -> Counts:
    ranks = np.empty(len(attribute.leaves), dtype=np.int64)
    ranks[np.lexsort(attribute.ancestors)] = np.arange(len(ranks))
    return ranks
