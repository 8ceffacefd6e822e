"""Search of a lattice: exact, by branch and bound with predictive tagging, or heuristic where it is too large.

*Exact search* does not visit every node. Every evaluated node teaches something about the nodes below it and above it,
see `NodeVerdict`. The search keeps, for each node, the greatest lower bound on its loss that is known. It takes the
node with the least bound, walks a chain from it to the top, and finds by bisection the highest node of the chain whose
evaluation rules the candidate out: the higher it is, the more other nodes it rules out too. When not even the
candidate's own evaluation rules it out, it is the new best node. The search ends when no node can be better than the
best, so nothing is left out.

The bisection is sound because what a coarse node proves about finer ones, every node between them proves too. Where
verdicts say nothing about finer nodes it is just an order of evaluation, and the result is the best node all the same.

Losses closer than 1e-12 count as equal. Of equal nodes the one with the least height wins, then the one that comes
first when levels are compared from the first quasi-identifier to the last.

*Heuristic search* first looks for the finest nodes that hold, by bisection on chains from the bottom to the top. Then
it expands, again and again, the node with the least loss whose neighbors have not been looked at, until a budget of
evaluations is used up. Nodes below one at which even suppression does not help are never looked at. The result is the
best node that was seen, and is not proven to be the best there is.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from heapq import heappop, heappush
from math import inf
from typing import Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from cloister.anonymize.algorithms.lattice.nodes import GeneralizationLattice, Node, above, below, rank

TIE = 1e-12
_REPORT_EVERY = 64

Progress: TypeAlias = Callable[[float], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeVerdict:
    """What the evaluation of a node says about it and about others.

    Attributes:
        holds: whether the models hold after suppressing at most as many rows as allowed.
        loss: the loss of the node; infinite when it does not hold.
        suppressed: the number of suppressed rows.
        dooms_finer: whether no finer node can hold.
        finer: per quasi-identifier and level, what to add to the floor for a lower bound on every finer node.
        coarser: a lower bound on the loss of every coarser node.
    """

    holds: bool
    loss: float
    suppressed: int
    dooms_finer: bool = False
    finer: Sequence[NDArray[np.float64]] | None = None
    coarser: float = -inf


class Evaluator(Protocol):
    """What a search asks about a node, and what it knows about all nodes in advance."""

    @property
    def floors(self) -> Sequence[NDArray[np.float64]]:
        """Return numbers per quasi-identifier and level whose sum is a lower bound on the loss of a node."""
        ...

    def evaluate(self, node: Node) -> NodeVerdict:
        """Return the verdict on one node."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """The outcome of a search.

    Attributes:
        node: the best node; the top when no node holds.
        verdict: the verdict on it.
        evaluated: how many nodes were evaluated.
        nodes: how many nodes the lattice has.
        is_optimal: whether every other node is known to be no better.
    """

    node: Node
    verdict: NodeVerdict
    evaluated: int
    nodes: int
    is_optimal: bool


class Memory:
    """The verdicts so far and the best node among them."""

    def __init__(self, evaluator: Evaluator) -> None:
        self._evaluator = evaluator
        self.verdicts: dict[Node, NodeVerdict] = {}
        self.best: Node | None = None
        self.loss = inf

    def evaluate(self, node: Node) -> NodeVerdict:
        """Return the verdict on a node, which is the best from now on if it is better."""
        known = self.verdicts.get(node)
        if known is not None:
            return known
        verdict = self.verdicts[node] = self._evaluator.evaluate(node)
        if verdict.holds and self.improves(verdict.loss, node):
            self.best, self.loss = node, verdict.loss
        return verdict

    def improves(self, loss: float, node: Node) -> bool:
        """Return whether a node with this loss would be better than the best."""
        if self.best is None:
            return loss < inf
        return loss < self.loss - TIE or (loss <= self.loss + TIE and rank(node) < rank(self.best))

    def found(self, lattice: GeneralizationLattice, *, is_optimal: bool) -> Found:
        """Return the outcome."""
        node = lattice.top if self.best is None else self.best
        return Found(
            node=node,
            verdict=self.verdicts[node],
            evaluated=len(self.verdicts),
            nodes=lattice.size,
            is_optimal=is_optimal,
        )


def search_exactly(lattice: GeneralizationLattice, evaluator: Evaluator, *, progress: Progress | None = None) -> Found:
    """Return the best node of a lattice.

    Args:
        lattice: all nodes.
        evaluator: judges a node.
        progress: called now and then with the share of nodes that are decided.
    """
    return _ExactSearch(lattice, evaluator, progress).run()


class _ExactSearch:
    def __init__(self, lattice: GeneralizationLattice, evaluator: Evaluator, progress: Progress | None) -> None:
        self._lattice, self._progress = lattice, progress
        self._memory = Memory(evaluator)
        self._floors = lattice.sums(evaluator.floors)
        self._bounds = self._floors.copy()
        self._steps = step_costs(evaluator.floors)

    def run(self) -> Found:
        self._learn(self._lattice.top)
        while (node := self._candidate()) is not None:
            self._rule_out(node)
        return self._memory.found(self._lattice, is_optimal=True)

    def _candidate(self) -> Node | None:
        """Return the node with the least bound, if it can be better than the best."""
        least = self._node_at(int(self._bounds.argmin()))
        if self._memory.best is None:
            return least if self._is_open(least) else None
        # Strictly below the best, whatever its rank; equal bounds have to be looked at one by one.
        if self._bounds[least] < self._memory.loss - TIE:
            return least
        # A node that ties with the best may still win by its height.
        ties = map(self._node_at, np.flatnonzero(self._bounds <= self._memory.loss + TIE).tolist())
        return next((node for node in ties if self._is_open(node)), None)

    def _rule_out(self, node: Node) -> None:
        """Evaluate nodes above a node, and it itself if need be, until it is out of the question."""
        chain = self._lattice.chain(node, costs=self._steps)
        low, high = 0, len(chain)
        # What rules the node out is a first part of the chain; its last, and coarsest, member teaches most about
        # others.
        while low < high:
            middle = (low + high) // 2
            if self._rules_out(self._learn(chain[middle]), node):
                low = middle + 1
            else:
                high = middle
        # Nothing above ruled it out, so that only its own evaluation can tell.
        if self._is_open(node):
            self._learn(node)

    def _rules_out(self, verdict: NodeVerdict, node: Node) -> bool:
        """Return whether the verdict on a coarser node is enough to leave a node out."""
        if verdict.dooms_finer or verdict.finer is None:
            return verdict.dooms_finer
        more = sum(float(part[level]) for part, level in zip(verdict.finer, node, strict=True))
        return not self._memory.improves(float(self._floors[node]) + more, node)

    def _learn(self, node: Node) -> NodeVerdict:
        if node in self._memory.verdicts:
            return self._memory.verdicts[node]
        verdict = self._memory.evaluate(node)
        finer, coarser = below(node), above(node)
        if verdict.dooms_finer:
            self._bounds[finer] = inf
        elif verdict.finer is not None:
            bounds = self._floors[finer] + self._lattice.sums(verdict.finer, top=node)
            np.maximum(self._bounds[finer], bounds, out=self._bounds[finer])
        if verdict.coarser > -inf:
            np.maximum(self._bounds[coarser], verdict.coarser, out=self._bounds[coarser])
        # An evaluated node is no candidate any more: Memory has kept it if it was the best.
        self._bounds[node] = inf
        self._report()
        return verdict

    def _report(self) -> None:
        if self._progress is not None and len(self._memory.verdicts) % _REPORT_EVERY == 0:
            self._progress(float(np.mean(self._bounds >= self._memory.loss)))

    def _is_open(self, node: Node) -> bool:
        return self._memory.improves(float(self._bounds[node]), node)

    def _node_at(self, place: int) -> Node:
        return tuple(int(level) for level in np.unravel_index(place, self._lattice.shape))


def step_costs(floors: Sequence[NDArray[np.float64]]) -> list[list[float]]:
    """Return what climbing one level costs; where that says nothing, the part of the height that is reached by it."""
    scale = 1e-3 * max((float(np.ptp(part)) for part in floors), default=0.0) or 1.0
    return [(np.diff(part) + scale * np.diff(np.linspace(0, 1, len(part)) ** 2)).tolist() for part in floors]


DEFAULT_BUDGET = 2_000


def search_heuristically(
    lattice: GeneralizationLattice,
    evaluator: Evaluator,
    *,
    budget: int = DEFAULT_BUDGET,
    progress: Progress | None = None,
) -> Found:
    """Return the best node among those that a budget of evaluations reaches."""
    return _HeuristicSearch(lattice, evaluator, budget, progress).run()


class _HeuristicSearch:
    def __init__(
        self, lattice: GeneralizationLattice, evaluator: Evaluator, budget: int, progress: Progress | None
    ) -> None:
        self._lattice, self._budget, self._progress = lattice, budget, progress
        self._memory = Memory(evaluator)
        self._floors = evaluator.floors
        self._doomed = np.zeros((0, len(lattice.top)), dtype=np.int64)
        self._queue: list[tuple[float, tuple[int, Node]]] = []

    def run(self) -> Found:
        self._look_at(self._lattice.top)
        # One chain climbs where it is cheap, the other evenly: some losses say nothing about single levels.
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
        # A node is finer than a doomed one exactly where none of its levels is higher.
        return bool((self._doomed >= node).all(axis=1).any())

    def _remaining(self) -> int:
        return self._budget - len(self._memory.verdicts)
