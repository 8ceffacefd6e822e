"""Exact search of a lattice: branch and bound with predictive tagging, without visiting every node.

Every evaluated node teaches something about the nodes below it and above it, see `Verdict`. The search keeps, for each
node, the greatest lower bound on its loss that is known. It takes the node with the least bound, walks a chain from
it to the top, and finds by bisection the highest node of the chain whose evaluation rules the candidate out: the
higher it is, the more other nodes it rules out too. When not even the candidate's own evaluation rules it out, it is
the new best node. The search ends when no node can be better than the best, so nothing is left out.

The bisection is sound because what a coarse node proves about finer ones, every node between them proves too. Where
verdicts say nothing about finer nodes it is just an order of evaluation, and the result is the best node all the same.

Losses closer than 1e-12 count as equal. Of equal nodes the one with the least height wins, then the one that comes
first when levels are compared from the first quasi-identifier to the last.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import inf
from typing import Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from cloister.anonymize.algorithms.lattice.nodes import Lattice, Node, above, below, rank

TIE = 1e-12
_REPORT_EVERY = 64

Progress: TypeAlias = Callable[[float], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
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

    def evaluate(self, node: Node) -> Verdict:
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
    verdict: Verdict
    evaluated: int
    nodes: int
    is_optimal: bool


class Memory:
    """The verdicts so far and the best node among them."""

    def __init__(self, evaluator: Evaluator) -> None:
        self._evaluator = evaluator
        self.verdicts: dict[Node, Verdict] = {}
        self.best: Node | None = None
        self.loss = inf

    def evaluate(self, node: Node) -> Verdict:
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

    def found(self, lattice: Lattice, *, is_optimal: bool) -> Found:
        """Return the outcome."""
        node = lattice.top if self.best is None else self.best
        return Found(
            node=node,
            verdict=self.verdicts[node],
            evaluated=len(self.verdicts),
            nodes=lattice.size,
            is_optimal=is_optimal,
        )


def search_exactly(lattice: Lattice, evaluator: Evaluator, *, progress: Progress | None = None) -> Found:
    """Return the best node of a lattice.

    Args:
        lattice: all nodes.
        evaluator: judges a node.
        progress: called now and then with the share of nodes that are decided.
    """
    return _Search(lattice, evaluator, progress).run()


class _Search:
    def __init__(self, lattice: Lattice, evaluator: Evaluator, progress: Progress | None) -> None:
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
        if self._bounds[least] < self._memory.loss - TIE:
            return least
        ties = map(self._node_at, np.flatnonzero(self._bounds <= self._memory.loss + TIE).tolist())
        return next((node for node in ties if self._is_open(node)), None)

    def _rule_out(self, node: Node) -> None:
        """Evaluate nodes above a node, and it itself if need be, until it is out of the question."""
        chain = self._lattice.chain(node, costs=self._steps)
        low, high = 0, len(chain)
        while low < high:
            middle = (low + high) // 2
            if self._rules_out(self._learn(chain[middle]), node):
                low = middle + 1
            else:
                high = middle
        if self._is_open(node):
            self._learn(node)

    def _rules_out(self, verdict: Verdict, node: Node) -> bool:
        """Return whether the verdict on a coarser node is enough to leave a node out."""
        if verdict.dooms_finer or verdict.finer is None:
            return verdict.dooms_finer
        more = sum(float(part[level]) for part, level in zip(verdict.finer, node, strict=True))
        return not self._memory.improves(float(self._floors[node]) + more, node)

    def _learn(self, node: Node) -> Verdict:
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
