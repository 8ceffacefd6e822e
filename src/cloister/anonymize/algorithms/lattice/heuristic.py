"""Heuristic search of a lattice that is too large to search exactly.

First the finest nodes that hold are looked for by bisection on chains from the bottom to the top. Then the search
expands, again and again, the node with the least loss whose neighbors have not been looked at, until a budget of
evaluations is used up. Nodes below one at which even suppression does not help are never looked at. The result is the
best node that was seen, and is not proven to be the best there is.
"""

from __future__ import annotations

from heapq import heappop, heappush

import numpy as np

from cloister.anonymize.algorithms.lattice.nodes import Lattice, Node, rank
from cloister.anonymize.algorithms.lattice.search import Evaluator, Found, Memory, Progress, step_costs

DEFAULT_BUDGET = 2_000


def search_heuristically(
    lattice: Lattice, evaluator: Evaluator, *, budget: int = DEFAULT_BUDGET, progress: Progress | None = None
) -> Found:
    """Return the best node among those that a budget of evaluations reaches."""
    return _Search(lattice, evaluator, budget, progress).run()


class _Search:
    def __init__(self, lattice: Lattice, evaluator: Evaluator, budget: int, progress: Progress | None) -> None:
        self._lattice, self._budget, self._progress = lattice, budget, progress
        self._memory = Memory(evaluator)
        self._floors = evaluator.floors
        self._doomed = np.zeros((0, len(lattice.top)), dtype=np.int64)
        self._queue: list[tuple[float, tuple[int, Node]]] = []

    def run(self) -> Found:
        self._look_at(self._lattice.top)
        self._bisect(step_costs(self._floors))
        self._bisect(step_costs([np.zeros_like(part) for part in self._floors]))
        while self._queue and self._remaining() > 0:
            _, (_, node) = heappop(self._queue)
            self._expand(node)
        is_optimal = len(self._memory.verdicts) == self._lattice.size
        return self._memory.found(self._lattice, is_optimal=is_optimal)

    def _bisect(self, costs: list[list[float]]) -> None:
        chain = self._lattice.chain(self._lattice.bottom, costs=costs)
        low, high = 0, len(chain) - 1
        while low < high and self._remaining() > 0:
            middle = (low + high) // 2
            if self._look_at(chain[middle]):
                high = middle
            else:
                low = middle + 1

    def _expand(self, node: Node) -> None:
        for near in (*self._lattice.children(node), *self._lattice.parents(node)):
            if self._remaining() <= 0:
                return
            if near not in self._memory.verdicts and not self._is_doomed(near):
                self._look_at(near)

    def _look_at(self, node: Node) -> bool:
        """Evaluate a node and return whether it holds."""
        is_new = node not in self._memory.verdicts
        verdict = self._memory.evaluate(node)
        if is_new and verdict.dooms_finer:
            self._doomed = np.vstack([self._doomed, node])
        if is_new and verdict.holds:
            heappush(self._queue, (verdict.loss, rank(node)))
        if self._progress is not None:
            self._progress(min(len(self._memory.verdicts) / self._budget, 1.0))
        return verdict.holds

    def _is_doomed(self, node: Node) -> bool:
        return bool((self._doomed >= node).all(axis=1).any())

    def _remaining(self) -> int:
        return self._budget - len(self._memory.verdicts)
