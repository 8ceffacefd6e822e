"""Improve classes by moving single rows between them, as long as that lowers the loss.

The moves are looked at for all classes of a neighborhood at once. A row that its class can spare goes to another class,
or becomes a class of its own with rows lent by a cell that is large enough by itself; a lent row goes home; a class is
dissolved and its rows go elsewhere; a row leaves and another takes its place; two classes swap rows. The best moves are
made first, and no class takes part in two moves of the same round, so that every gain is exact.
"""

from __future__ import annotations

from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from cloister.anonymize.algorithms.clustering.growth import Growth

Counts: TypeAlias = NDArray[np.int64]
Losses: TypeAlias = NDArray[np.float32]
Truths: TypeAlias = NDArray[np.bool_]

HOME = -1
_LEAST = 1e-6
_NEVER = np.float32(1e9)
_PARTNERS = 3
_SLACK = 0.02


class Move(NamedTuple):
    """Rows that change their class (each with the new one), and the classes that change by it."""

    gain: float
    classes: tuple[int, ...]
    rows: tuple[tuple[int, int], ...]
    lent: tuple[int, int] | None = None
    """A large cell (by number) that lends a row, and the class that gets it."""


class Outlook(NamedTuple):
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

    def __init__(self, growth: Growth, group: Counts, *, is_lent: Truths, spare: Counts, k: int) -> None:
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
        filled = np.where(self.slots < 0, self.slots[:, :1], self.slots)
        self.members = self.owner[np.maximum(filled, 0)]
        self.tables, loss = self.growth.tables(self.members)
        self.losses = np.where(self.sizes > 0, loss * self.sizes, 0).astype(np.float32)

    def _outlook(self) -> Outlook:
        lines, sizes = np.arange(len(self.group)), self.sizes[self.group]
        rest, rest_loss = self._without()
        joining = self._joining()
        best = joining.argmin(axis=1)
        price = np.where(self.is_lent, np.float32(0), joining[lines, best])
        saved = self.losses[self.group] - ((sizes - 1) * rest_loss).astype(np.float32)
        return Outlook(rest, rest_loss, saved, joining, np.where(self.is_lent, HOME, best), price)

    def _without(self) -> tuple[Losses, Losses]:
        members = self.members[self.group]
        lines = np.arange(len(members))
        members[lines, self.places] = members[lines, np.where(self.places == 0, 1, 0)]
        return self.growth.tables(members)

    def _joining(self) -> Losses:
        grown = self.tables * (self.sizes + 1)[:, None].astype(np.float32)
        joining = self.growth.joining(self.owner, np.concatenate([grown, self.large_tables * np.float32(self.k)]))
        joining[:, : self.size] -= self.losses
        joining[:, : self.size][:, self.sizes == 0] = _NEVER
        joining[:, self.size :][:, self.spare < self.k - 1] = _NEVER
        joining[np.arange(len(joining)), self.group] = _NEVER
        return joining

    def _moves(self) -> list[Move]:
        outlook = self._outlook()
        gain = outlook.saved - outlook.price
        moves = self._shifts(gain, outlook.best) + self._endings(outlook)
        return moves + self._replacements(gain, outlook) + self._swaps(outlook)

    def _shifts(self, gain: Losses, best: Counts) -> list[Move]:
        rows = np.flatnonzero((self.sizes[self.group] > self.k) & (gain > _LEAST))
        found = zip(gain[rows].tolist(), self.group[rows].tolist(), best[rows].tolist(), rows.tolist(), strict=True)
        return [Move(total, _classes(source, target), ((row, target),)) for total, source, target, row in found]

    def _endings(self, outlook: Outlook) -> list[Move]:
        """Return the classes that are better dissolved, each row to a class of its own or home."""
        gain = self.losses - np.bincount(self.group, weights=outlook.price, minlength=self.size)
        moves = []
        for group in np.flatnonzero((gain > _LEAST) & (self.sizes > 0)).tolist():
            rows = self.slots[group, : self.sizes[group]]
            targets = outlook.best[rows].tolist()
            classes = _classes(group, *targets)
            if len(set(classes)) == len(classes):
                moves.append(Move(float(gain[group]), classes, tuple(zip(rows.tolist(), targets, strict=True))))
        return moves

    def _replacements(self, gain: Losses, outlook: Outlook) -> list[Move]:
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
        costs[homes == outlook.best[rows][:, None]] = _NEVER
        chosen = costs.argmin(axis=1)
        total = gain[rows] - (costs[np.arange(len(rows)), chosen] - (self.k - 1) * outlook.rest_loss[rows])
        good = np.flatnonzero(total > _LEAST)
        sources = np.concatenate([free, HOME - 1 - large])[chosen[good]]
        found = zip(total[good].tolist(), rows[good].tolist(), outlook.best[rows[good]].tolist(), sources, strict=True)
        return [self._replacement(won, row, target, int(other)) for won, row, target, other in found]

    def _replacement(self, gain: float, row: int, target: int, other: int) -> Move:
        """Return the move in which a row, or a row of a large cell (numbered down from -2), takes another's place."""
        source = int(self.group[row])
        if other < HOME:
            return Move(gain, _classes(source, target), ((row, target),), (HOME - 1 - other, source))
        return Move(gain, _classes(source, target, int(self.group[other])), ((row, target), (other, source)))

    def _swaps(self, outlook: Outlook) -> list[Move]:
        moves: list[Move] = []
        rows = np.flatnonzero(outlook.saved > _LEAST)
        joining, lines = outlook.joining[rows, : self.size], np.arange(len(rows))
        for _ in range(min(_PARTNERS, self.size - 1)):
            best = joining.argmin(axis=1)
            hopeful = joining[lines, best] < outlook.saved[rows] + _SLACK
            moves += self._swaps_with(rows[hopeful], best[hopeful], outlook.rest)
            joining[lines, best] = _NEVER
        return moves

    def _swaps_with(self, rows: Counts, best: Counts, rest: Losses) -> list[Move]:
        others = self.slots[best]
        line, place = np.nonzero(others >= 0)
        row, other, target = rows[line], others[line, place], best[line]
        source = self.group[row]
        gain = self.losses[source] + self.losses[target]
        gain = gain - self.sizes[source] * self.growth.joined(rest, row, self.owner[other])
        gain -= self.sizes[target] * self.growth.joined(rest, other, self.owner[row])
        good = np.flatnonzero(gain > _LEAST)
        found = zip(*(item[good].tolist() for item in (gain, source, target, row, other)), strict=True)
        return [Move(g, (s, t), ((r, t), (o, s))) for g, s, t, r, o in found]

    def _make(self, moves: list[Move]) -> int:
        """Make the moves that do not meet, and return how many."""
        touched = bytearray(self.size + len(self.spare))
        joined: list[tuple[int, int]] = []
        made, first = 0, self.size
        for move in moves:
            if any(touched[group] for group in move.classes) or not self._can_lend(move, first):
                continue
            for group in move.classes:
                touched[group] = 1
            for row, target in move.rows:
                self.group[row] = self._entered(target, first, joined)
            if move.lent is not None:
                self.spare[move.lent[0]] -= 1
                joined.append((self.count + move.lent[0], move.lent[1]))
            made += 1
        self._join(joined)
        return made

    def _can_lend(self, move: Move, first: int) -> bool:
        return all(self.spare[target - first] >= self.k - 1 for _, target in move.rows if target >= first) and (
            move.lent is None or bool(self.spare[move.lent[0]] > 0)
        )

    def _entered(self, target: int, first: int, joined: list[tuple[int, int]]) -> int:
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
