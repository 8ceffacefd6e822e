"""Improve classes by moving single rows between them, as long as that lowers the loss.

The table is cut into neighborhoods of like classes, in an order of cells in which neighbors are alike, and the moves
are looked at for all classes of a neighborhood at once. A row that its class can spare goes to another class, or
becomes a class of its own with rows lent by a cell that is large enough by itself; a lent row goes home; a class is
dissolved and its rows go elsewhere; a row leaves and another takes its place; two classes swap rows. The best moves are
made first, and no class takes part in two moves of the same round, so that every gain is exact. Large cells also lend
rows to an only class that is too small.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from cloister.anonymize.algorithms.clustering._growth import ClassGrowth
from cloister.anonymize.attributes import CodedAttribute
from cloister.anonymize.cells import CodedCells
from cloister.anonymize.regions import Values

Ranks: TypeAlias = NDArray[np.int64]


class CellOrder:
    """Ranks of the leaves of every attribute along its tree, and which attributes matter most."""

    def __init__(self, cells: CodedCells, prices: Sequence[float]) -> None:
        """Take the loss that an attribute causes when it is not told apart: the dear ones come first in the order."""
        self._cells = cells
        self._ranks = [_tree_ranks(attribute) for attribute in cells.attributes]
        places = range(len(cells.attributes))
        self._places = sorted(places, key=lambda place: (cells.attributes[place].is_ordered, -prices[place]))

    def ranks(self, chosen: Ranks, *, turn: int = 0) -> Ranks:
        """Return the place of each chosen cell in the order; another turn puts another attribute first."""
        lead = self._places[turn % len(self._places)]
        places = [lead, *(place for place in self._places if place != lead)]
        # lexsort sorts by its last key first, so that the leading attribute comes last.
        keys = [self._ranks[place][self._cells.codes[chosen, place]] for place in reversed(places)]
        ranks = np.empty(len(chosen), dtype=np.int64)
        ranks[np.lexsort(keys)] = np.arange(len(chosen))
        return ranks


def _tree_ranks(attribute: CodedAttribute) -> Ranks:
    ranks = np.empty(len(attribute.leaves), dtype=np.int64)
    ranks[np.lexsort(attribute.ancestors)] = np.arange(len(ranks))
    return ranks


Counts: TypeAlias = NDArray[np.int64]
Losses: TypeAlias = NDArray[np.float32]
Truths: TypeAlias = NDArray[np.bool_]

HOME = -1
_LEAST = 1e-6
_NEVER = np.float32(1e9)
_PARTNERS = 3
_SLACK = 0.02


class RowMove(NamedTuple):
    """Rows that change their class (each with the new one), and the classes that change by it."""

    gain: float
    classes: tuple[int, ...]
    rows: tuple[tuple[int, int], ...]
    lent: tuple[int, int] | None = None
    """A large cell (by number) that lends a row, and the class that gets it."""


class RowOutlook(NamedTuple):
    """What could be gained by moving each row.

    Attributes:
        rest: the table of its class without it.
        rest_loss: the loss of a row of its class without it.
        saved: what its class loses less without it.
        joining: what every class (column) loses more with it; then large cells, which would lend it k - 1 rows.
        best: where it costs least.
        price: what it costs there.
    """

    rest: Losses
    rest_loss: Losses
    saved: Losses
    joining: Losses
    best: Counts
    price: Losses


class Neighborhood:
    """Some classes and the large cells among them.

    Attributes:
        owner: the line of each row in the growth tables; lines from ``count`` on are large cells.
        group: the class of each row, `HOME` once it went back to its cell.
        spare: how many rows each large cell can lend.
    """

    def __init__(self, growth: ClassGrowth, group: Counts, *, is_lent: Truths, spare: Counts, k: int) -> None:
        self.growth, self.k, self.spare = growth, k, spare.copy()
        self.count, self.size = len(group), int(group.max(initial=-1)) + 1
        self.owner, self.group, self.is_lent = np.arange(self.count), group.copy(), is_lent
        lines = np.arange(self.count, self.count + len(spare))
        self.large_tables = growth.tables(lines[:, None])[0] if len(spare) else np.zeros((0, growth.width), np.float32)
        self._arrange()

    def improve(self, rounds: int) -> None:
        """Make the best moves, several times."""
        for _ in range(rounds):
            if not self._make(sorted(self._moves(), key=lambda move: -move.gain)):
                break
            self._arrange()

    def _arrange(self) -> None:
        """Lay the rows of each class out in a line, and find what it loses now and with any other row."""
        stays = self.group != HOME
        self.owner, self.group, self.is_lent = self.owner[stays], self.group[stays], self.is_lent[stays]
        order = np.argsort(self.group, kind="stable")
        self.sizes = np.bincount(self.group, minlength=self.size)
        starts = np.cumsum(self.sizes) - self.sizes
        place = np.arange(len(order)) - starts[self.group[order]]
        self.slots = np.full((self.size, max(int(self.sizes.max(initial=0)), 2)), -1)
        self.slots[self.group[order], place] = order
        self.places = np.empty(len(order), dtype=np.int64)
        self.places[order] = place
        # A line is filled up with its first row: sets, intervals and nodes do not change by a row that they have.
        filled = np.where(self.slots < 0, self.slots[:, :1], self.slots)
        self.members = self.owner[np.maximum(filled, 0)]
        self.tables, loss = self.growth.tables(self.members)
        self.losses = np.where(self.sizes > 0, loss * self.sizes, 0).astype(np.float32)

    def _outlook(self) -> RowOutlook:
        lines, sizes = np.arange(len(self.group)), self.sizes[self.group]
        rest, rest_loss = self._without()
        joining = self._joining()
        best = joining.argmin(axis=1)
        # A lent row can always go home, which costs nothing.
        price = np.where(self.is_lent, np.float32(0), joining[lines, best])
        saved = self.losses[self.group] - ((sizes - 1) * rest_loss).astype(np.float32)
        return RowOutlook(rest, rest_loss, saved, joining, np.where(self.is_lent, HOME, best), price)

    def _without(self) -> tuple[Losses, Losses]:
        members = self.members[self.group]
        lines = np.arange(len(members))
        # The row gives way to another one of its class that is there twice then, so that the line stays full.
        members[lines, self.places] = members[lines, np.where(self.places == 0, 1, 0)]
        return self.growth.tables(members)

    def _joining(self) -> Losses:
        grown = self.tables * (self.sizes + 1)[:, None].astype(np.float32)
        # A large cell lends k - 1 rows, all equal: together with the row they are a class of k.
        joining = self.growth.joining(self.owner, np.concatenate([grown, self.large_tables * np.float32(self.k)]))
        joining[:, : self.size] -= self.losses
        joining[:, : self.size][:, self.sizes == 0] = _NEVER
        joining[:, self.size :][:, self.spare < self.k - 1] = _NEVER
        joining[np.arange(len(joining)), self.group] = _NEVER
        return joining

    def _moves(self) -> list[RowMove]:
        outlook = self._outlook()
        gain = outlook.saved - outlook.price
        moves = self._shifts(gain, outlook.best) + self._endings(outlook)
        return moves + self._replacements(gain, outlook) + self._swaps(outlook)

    def _shifts(self, gain: Losses, best: Counts) -> list[RowMove]:
        # Only a class with more than k rows can spare one.
        rows = np.flatnonzero((self.sizes[self.group] > self.k) & (gain > _LEAST))
        found = zip(gain[rows].tolist(), self.group[rows].tolist(), best[rows].tolist(), rows.tolist(), strict=True)
        return [RowMove(total, _classes(source, target), ((row, target),)) for total, source, target, row in found]

    def _endings(self, outlook: RowOutlook) -> list[RowMove]:
        """Return the classes that are better dissolved, each row to a class of its own or home."""
        gain = self.losses - np.bincount(self.group, weights=outlook.price, minlength=self.size)
        moves = []
        for group in np.flatnonzero((gain > _LEAST) & (self.sizes > 0)).tolist():
            rows = self.slots[group, : self.sizes[group]]
            targets = outlook.best[rows].tolist()
            classes = _classes(group, *targets)
            # Two rows that go to one class would change each other's price, and the gain would not be exact.
            if len(set(classes)) == len(classes):
                moves.append(RowMove(float(gain[group]), classes, tuple(zip(rows.tolist(), targets, strict=True))))
        return moves

    def _replacements(self, gain: Losses, outlook: RowOutlook) -> list[RowMove]:
        """Return rows that are better elsewhere, each with the row that best takes its place."""
        sizes = self.sizes[self.group]
        rows = np.flatnonzero((sizes == self.k) & (gain > _LEAST))
        free, large = np.flatnonzero(sizes > self.k), np.flatnonzero(self.spare > 0)
        if not len(rows) or not len(free) + len(large):
            return []
        owners = np.concatenate([self.owner[free], self.count + large])
        costs = self.growth.joining(owners, outlook.rest[rows] * np.float32(self.k)).T
        costs[:, : len(free)] -= outlook.saved[free]
        homes = np.concatenate([self.group[free], self.size + large])
        # The row that takes its place must not come from where it goes: both classes would change twice.
        costs[homes == outlook.best[rows][:, None]] = _NEVER
        chosen = costs.argmin(axis=1)
        # The gain counted the class without the row; now another is in its place.
        total = gain[rows] - (costs[np.arange(len(rows)), chosen] - (self.k - 1) * outlook.rest_loss[rows])
        good = np.flatnonzero(total > _LEAST)
        sources = np.concatenate([free, HOME - 1 - large])[chosen[good]]
        found = zip(total[good].tolist(), rows[good].tolist(), outlook.best[rows[good]].tolist(), sources, strict=True)
        return [self._replacement(won, row, target, int(other)) for won, row, target, other in found]

    def _replacement(self, gain: float, row: int, target: int, other: int) -> RowMove:
        """Return the move in which a row, or a row of a large cell (numbered down from -2), takes another's place."""
        source = int(self.group[row])
        if other < HOME:
            return RowMove(gain, _classes(source, target), ((row, target),), (HOME - 1 - other, source))
        return RowMove(gain, _classes(source, target, int(self.group[other])), ((row, target), (other, source)))

    def _swaps(self, outlook: RowOutlook) -> list[RowMove]:
        moves: list[RowMove] = []
        rows = np.flatnonzero(outlook.saved > _LEAST)
        joining, lines = outlook.joining[rows, : self.size], np.arange(len(rows))
        for _ in range(min(_PARTNERS, self.size - 1)):
            best = joining.argmin(axis=1)
            hopeful = joining[lines, best] < outlook.saved[rows] + _SLACK
            moves += self._swaps_with(rows[hopeful], best[hopeful], outlook.rest)
            # The next partner is looked for among the other classes.
            joining[lines, best] = _NEVER
        return moves

    def _swaps_with(self, rows: Counts, best: Counts, rest: Losses) -> list[RowMove]:
        others = self.slots[best]
        line, place = np.nonzero(others >= 0)
        row, other, target = rows[line], others[line, place], best[line]
        source = self.group[row]
        gain = self.losses[source] + self.losses[target]
        gain = gain - self.sizes[source] * self.growth.joined(rest, row, self.owner[other])
        gain -= self.sizes[target] * self.growth.joined(rest, other, self.owner[row])
        good = np.flatnonzero(gain > _LEAST)
        found = zip(*(item[good].tolist() for item in (gain, source, target, row, other)), strict=True)
        return [RowMove(g, (s, t), ((r, t), (o, s))) for g, s, t, r, o in found]

    def _make(self, moves: list[RowMove]) -> int:
        """Make the moves that do not meet, and return how many."""
        touched = bytearray(self.size + len(self.spare))
        joined: list[tuple[int, int]] = []
        made, first = 0, self.size
        for move in moves:
            # Gains were computed for classes as they are, so that each class changes once in a round.
            if any(touched[group] for group in move.classes) or not self._can_lend(move, first):
                continue
            for group in move.classes:
                touched[group] = 1
            for row, target in move.rows:
                self.group[row] = self._enter(target, first, joined)
            if move.lent is not None:
                self.spare[move.lent[0]] -= 1
                joined.append((self.count + move.lent[0], move.lent[1]))
            made += 1
        self._join(joined)
        return made

    def _can_lend(self, move: RowMove, first: int) -> bool:
        return all(self.spare[target - first] >= self.k - 1 for _, target in move.rows if target >= first) and (
            move.lent is None or bool(self.spare[move.lent[0]] > 0)
        )

    def _enter(self, target: int, first: int, joined: list[tuple[int, int]]) -> int:
        """Return the class that a row enters; a large cell makes a new class of rows that it lends."""
        if target < first:
            return target
        self.spare[target - first] -= self.k - 1
        joined.extend([(self.count + target - first, self.size)] * (self.k - 1))
        self.size += 1
        return self.size - 1

    def _join(self, joined: list[tuple[int, int]]) -> None:
        if not joined:
            return
        owners, groups = np.array(joined, dtype=np.int64).T
        self.owner = np.concatenate([self.owner, owners])
        self.group = np.concatenate([self.group, groups])
        self.is_lent = np.concatenate([self.is_lent, np.ones(len(joined), dtype=bool)])


def _classes(*groups: int) -> tuple[int, ...]:
    return tuple(group for group in groups if group != HOME)


Groups: TypeAlias = NDArray[np.int64]

_ROWS = 1024
_LARGE_SHARE = 0.5
_ROUNDS = 2


@dataclass(frozen=True, eq=False, kw_only=True)
class GroupedRows:
    """The rows that are in a class with others: the cell of each, and its class, numbered without gaps.

    All rows of large cells that are not listed stay exact.
    """

    cells: Groups
    groups: Groups

    @property
    def size(self) -> int:
        """Return the number of classes."""
        return int(self.groups.max(initial=-1)) + 1


def exchange_in_neighborhoods(
    cells: CodedCells, grouped: GroupedRows, nearness: CellOrder, *, k: int, values: Values, turn: int
) -> GroupedRows:
    """Return the rows in classes that lose less, or no more."""
    if not grouped.size:
        return grouped
    lent = np.bincount(grouped.cells, minlength=len(cells))
    # A large cell keeps k rows at least, since what stays in it is a class by itself.
    spare = np.where(cells.weights >= k, cells.weights - k - lent, 0)
    large = np.flatnonzero(spare > 0)
    # A class is represented by one of its rows: rows of a class are alike.
    first = grouped.cells[np.unique(grouped.groups, return_index=True)[1]]
    ranks = nearness.ranks(np.concatenate([first, large]), turn=turn)
    neighborhoods = _cut_neighborhoods(
        ranks, np.concatenate([np.bincount(grouped.groups), np.full(len(large), _LARGE_SHARE)])
    )
    place = np.argsort(neighborhoods[: len(first)][grouped.groups], kind="stable")
    ends = np.cumsum(np.bincount(neighborhoods[: len(first)][grouped.groups], minlength=int(neighborhoods.max()) + 1))
    found, size = [], 0
    for number, rows in enumerate(np.split(place, ends[:-1])):
        if len(rows):
            mine = GroupedRows(cells=grouped.cells[rows], groups=grouped.groups[rows])
            better = _improve_neighborhood(
                cells, mine, large[neighborhoods[len(first) :] == number], spare, k=k, values=values
            )
            found.append(GroupedRows(cells=better.cells, groups=better.groups + size))
            size += better.size
    return GroupedRows(
        cells=np.concatenate([part.cells for part in found]), groups=np.concatenate([p.groups for p in found])
    )


def _cut_neighborhoods(ranks: Groups, weights: NDArray[np.float64]) -> Groups:
    """Return the neighborhood of each item: neighbors in the order, up to a total weight."""
    order = np.argsort(ranks)
    reached = np.cumsum(weights[order])
    neighborhoods = np.empty(len(ranks), dtype=np.int64)
    count = max(round(reached[-1] / _ROWS), 1)
    # Cut by the weight before each item, so that neighborhoods are about equally heavy.
    neighborhoods[order] = np.minimum((reached - weights[order]) * count / reached[-1], count - 1).astype(np.int64)
    return neighborhoods


def _improve_neighborhood(
    cells: CodedCells, grouped: GroupedRows, large: Groups, spare: Groups, *, k: int, values: Values
) -> GroupedRows:
    _, group = np.unique(grouped.groups, return_inverse=True)
    owners = np.concatenate([grouped.cells, large])
    growth = ClassGrowth(cells, cells.codes[owners].astype(np.int64), values=values)
    is_lent = cells.weights[grouped.cells] >= k
    neighborhood = Neighborhood(growth, group.ravel().astype(np.int64), is_lent=is_lent, spare=spare[large], k=k)
    neighborhood.improve(_ROUNDS)
    _, group = np.unique(neighborhood.group, return_inverse=True)
    return GroupedRows(cells=owners[neighborhood.owner], groups=group.ravel().astype(np.int64))


_CANDIDATES = 1024


def fill_only_class(
    cells: CodedCells, grouped: GroupedRows, nearness: CellOrder, *, k: int, values: Values
) -> GroupedRows:
    """Return the rows with an only class that has fewer than k of them filled up, if a large cell can lend them."""
    missing = k - len(grouped.cells)
    large = np.flatnonzero(cells.weights >= k + missing)
    if missing <= 0 or not len(large):
        return grouped
    ranks = nearness.ranks(np.concatenate([grouped.cells[:1], large]))
    near = large[np.argsort(np.abs(ranks[1:] - ranks[0]), kind="stable")[:_CANDIDATES]]
    owners = np.concatenate([grouped.cells, near])
    growth = ClassGrowth(cells, cells.codes[owners].astype(np.int64), values=values)
    tables, _ = growth.tables(np.arange(len(grouped.cells))[None, :])
    lender = near[growth.joining(np.arange(len(grouped.cells), len(owners)), tables).ravel().argmin()]
    return GroupedRows(
        cells=np.concatenate([grouped.cells, np.full(missing, lender)]),
        groups=np.concatenate([grouped.groups, np.zeros(missing, dtype=np.int64)]),
    )
