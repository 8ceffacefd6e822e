"""Sum-product on a junction tree: from the log potentials of cliques to their marginals and the log partition.

One exponential per cell: on the way to the root each clique becomes its conditional distribution given what it shares
with its parent, on the way back that is multiplied by the parent's marginal.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from cloister.synth.inference.junction_tree import JunctionTree

__all__ = ["Beliefs", "Floats"]

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Beliefs:
    """The passes over one tree; what depends on the tree alone is worked out once."""

    tree: JunctionTree

    def marginals(self, potentials: Sequence[Floats]) -> tuple[float, list[Floats]]:
        """Return the log partition and the probabilities of each clique's cells; the potentials are used up."""
        cliques = list(potentials)
        log_partition = 0.0
        for place in reversed(range(len(cliques))):
            clique, (summed, _, kept) = cliques[place], self._seams[place]
            top = clique.max(axis=summed, keepdims=True)
            top[~np.isfinite(top)] = 0.0
            clique -= top
            np.exp(clique, out=clique)
            total = clique.sum(axis=summed, keepdims=True)
            clique /= np.where(total > 0, total, 1.0)
            with np.errstate(divide="ignore"):
                message = np.log(total) + top
            parent = self.tree.parents[place]
            if parent < 0:
                log_partition += float(message.reshape(()))
            else:
                cliques[parent] += message.reshape(kept)
        for place, parent in enumerate(self.tree.parents):
            if parent >= 0:
                _, gone, kept = self._seams[place]
                cliques[place] *= cliques[parent].sum(axis=gone).reshape(self._inside[place])
        return log_partition, cliques

    @cached_property
    def _seams(self) -> list[tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]]:
        """Per clique: its axes that its parent lacks, the parent's axes that it lacks, its shape in the parent."""
        seams = []
        for place, (clique, parent) in enumerate(zip(self.tree.cliques, self.tree.parents, strict=True)):
            shared = self.tree.separators[place]
            above = self.tree.cliques[parent] if parent >= 0 else ()
            seams.append(
                (
                    tuple(axis for axis, column in enumerate(clique) if column not in shared),
                    tuple(axis for axis, column in enumerate(above) if column not in shared),
                    tuple(self.tree.sizes[column] if column in shared else 1 for column in above),
                )
            )
        return seams

    @cached_property
    def _inside(self) -> list[tuple[int, ...]]:
        """Per clique: the shape of what it shares with its parent, among its own axes."""
        return [
            tuple(self.tree.sizes[column] if column in shared else 1 for column in clique)
            for clique, shared in zip(self.tree.cliques, self.tree.separators, strict=True)
        ]
