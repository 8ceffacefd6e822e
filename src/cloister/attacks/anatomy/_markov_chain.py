"""The deFinetti attack: assignments sampled from their posterior, with the parameters integrated out.

The state gives each group's values to its people. A swap of the values s and t of two members is accepted with
probability ``min(1, ratio)``, where the ratio compares both states under Dirichlet-multinomial counts: the number of
people with a value and a level, without the two, plus beta. That is the ratio of leave-group-out counts wherever a
group has no value twice, and correct also where it has. How often each person had each value after a burn-in is the
posterior (Kifer 2009; here over all tuples at once).

Swaps are proposed in many groups at a time: every sweep visits all groups once, in a random order, a twentieth of them
together, and counts are brought up to date in between. Inside such a batch the counts lag behind by the swaps of the
batch's other groups, a few hundred in tens of thousands. Batches of one group, as in small tables, do not lag.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import gammaln

from cloister.anonymize.operations.noise import uniforms
from cloister.attacks.anatomy._assignments import Floats, Indices
from cloister.attacks.anatomy._two_tables import Puzzle
from cloister.core.random import RandomSource, permutation

__all__ = ["Chain", "sample"]


@dataclass(frozen=True, eq=False, slots=True, kw_only=True)
class Chain:
    """What one chain of samples found.

    Attributes:
        shares: for each block, how often each person had each value, as a share of the sweeps after the burn-in.
        expected: how many people of each cell had each value, on average.
        objective: the mean logarithm of the likelihood of the states, up to a constant.
        accepted: the share of swaps that were accepted.
        iterations: how many sweeps there were.
        converged: true; a chain runs for as long as it was told to.
    """

    shares: tuple[Floats, ...]
    expected: Floats
    objective: float
    accepted: float
    iterations: int
    converged: bool = True


def sample(
    puzzle: Puzzle, source: RandomSource, *, beta: float, sweeps: int, burn_in: int, batch: int | None = None
) -> Chain:
    """Return what a chain finds that starts at random.

    Args:
        puzzle: the two tables.
        source: where proposals come from.
        beta: what is added to each count.
        sweeps: how often each group is visited after the burn-in.
        burn_in: how often each group is visited before.
        batch: how many groups swap at a time; by default a twentieth of them.
    """
    state = _State(puzzle, source, beta=beta)
    size = batch or max(puzzle.groups // 20, 1)
    tally, objective, accepted = np.zeros(state.values.shape), 0.0, 0.0
    people = np.arange(len(state.place))
    for sweep in range(burn_in + sweeps):
        taken = state.sweep(source, size)
        if sweep >= burn_in:
            tally[people, state.place] += 1 / sweeps
            objective += state.likelihood() / sweeps
            accepted += taken / sweeps
    return Chain(
        shares=tuple(state.by_block(tally)),
        expected=state.by_cell(tally),
        objective=objective,
        accepted=accepted,
        iterations=burn_in + sweeps,
    )


class _State:
    """One assignment of all values, with its counts. People are in the order of the blocks, groups one by one."""

    def __init__(self, puzzle: Puzzle, source: RandomSource, *, beta: float) -> None:
        self._puzzle, self._beta = puzzle, beta
        blocks = puzzle.blocks
        self._size = len(puzzle.values)
        self._cell = np.concatenate([block.cells[block.kind].ravel() for block in blocks])
        self._levels = puzzle.indicator.indices.reshape(puzzle.indicator.shape[0], len(puzzle.levels))[self._cell]
        sizes = np.concatenate([np.full(len(block.kind), block.size) for block in blocks])
        starts = np.cumsum(sizes) - sizes
        self._starts, self._sizes = starts[sizes > 1], sizes[sizes > 1]
        self.values = _stack_padded([np.repeat(block.values[block.kind], block.size, axis=0) for block in blocks])
        self.place = np.concatenate([_deal_values(block.pattern, len(block.kind), source) for block in blocks])
        self._counts = np.zeros(puzzle.indicator.shape[1] * self._size)
        mine = self.values[np.arange(len(self.place)), self.place]
        self._add(self._levels, mine, 1.0)

    def sweep(self, source: RandomSource, batch: int) -> float:
        """Propose one swap in every group, and return the share that was accepted."""
        groups = len(self._starts)
        if not groups:
            return 0.0
        order = permutation(source, groups)
        drawn = uniforms(source, 3 * groups).reshape(3, groups)
        first = (drawn[0] * self._sizes[order]).astype(np.int64)
        second = (drawn[1] * (self._sizes[order] - 1)).astype(np.int64)
        # Stepping over the first member makes all others equally likely.
        second += second >= first
        chance = np.log(drawn[2])
        starts = self._starts[order]
        accepted = 0
        for begin in range(0, groups, batch):
            part = slice(begin, begin + batch)
            accepted += self._swap(starts[part] + first[part], starts[part] + second[part], chance[part])
        return accepted / groups

    def _swap(self, left: Indices, right: Indices, chance: Floats) -> int:
        one, two = self.values[left, self.place[left]], self.values[right, self.place[right]]
        here, there = self._levels[left] * self._size, self._levels[right] * self._size
        with_them = np.log(self._counts + self._beta)
        # Inside a batch the counts may lag behind, and must not fall below zero for it.
        without = np.log(np.maximum(self._counts - 1, 0) + self._beta)
        gain = with_them[here + two[:, None]] + with_them[there + one[:, None]]
        loss = without[here + one[:, None]] + without[there + two[:, None]]
        # Where both people have the same level a swap changes no count.
        ratio = ((gain - loss) * (here != there)).sum(axis=1)
        taken = (chance < ratio) | (one == two)
        left, right, one, two = left[taken], right[taken], one[taken], two[taken]
        for people, old, new in ((left, one, two), (right, two, one)):
            self._add(self._levels[people], old, -1.0)
            self._add(self._levels[people], new, 1.0)
        self.place[left], self.place[right] = self.place[right], self.place[left]
        return len(left)

    def _add(self, levels: Indices, values: Indices, amount: float) -> None:
        places = (levels * self._size + values[:, None]).ravel()
        self._counts += amount * np.bincount(places, minlength=len(self._counts))

    def likelihood(self) -> float:
        """Return the logarithm of the probability of the quasi-identifiers given the state, up to a constant."""
        return float(gammaln(self._counts + self._beta).sum())

    def by_cell(self, tally: Floats) -> Floats:
        """Return how many people of each cell have each value."""
        cells = self._puzzle.indicator.shape[0]
        # Padding has no tally, so that any place will do for it.
        places = self._cell[:, None] * self._size + np.maximum(self.values, 0)
        found = np.bincount(places.ravel(), tally.ravel(), minlength=cells * self._size)
        return np.asarray(found, dtype=np.float64).reshape(cells, self._size)

    def by_block(self, tally: Floats) -> list[Floats]:
        """Return the rows of a table of people for each block: groups by people by values."""
        found, start = [], 0
        for block in self._puzzle.blocks:
            shape = len(block.kind), block.size, len(block.pattern)
            found.append(tally[start : start + shape[0] * shape[1], : shape[2]].reshape(shape))
            start += shape[0] * shape[1]
        return found


def _deal_values(pattern: tuple[int, ...], groups: int, source: RandomSource) -> Indices:
    """Return a random assignment of the values of a pattern in each of so many groups."""
    slots = np.repeat(np.arange(len(pattern)), pattern)
    order = np.argsort(source.words(groups * len(slots)).reshape(groups, -1), axis=1)
    return slots[order].ravel()


def _stack_padded(tables: list[Indices]) -> Indices:
    """Return tables below each other, filled up with -1 to the same width."""
    width = max(table.shape[1] for table in tables)
    return np.vstack([np.pad(table, ((0, 0), (0, width - table.shape[1])), constant_values=-1) for table in tables])
