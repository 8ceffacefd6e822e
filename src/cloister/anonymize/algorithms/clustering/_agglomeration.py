"""Gather rows into classes: try every combination of levels, cheapest first, and take the classes that are full.

A row cannot cost less than the cheapest combination of levels at which it has k companions. So combinations are visited
in the order of cost; at each, rows that look alike and are not yet in a class form one as soon as they are enough.
Grouping is one sum of precomputed codes and one sort of the rows that are left, and most rows are gone early: six
thousand combinations take about half a second for twenty thousand rows.

Judges say which of the classes that could be gathered are taken: by their loss, computed for many candidates at once,
where classes are written as sets and intervals; or by the models, for classes of whole cells.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from cloister.anonymize.algorithms._base import Task
from cloister.anonymize.algorithms.clustering._ladders import Ladder, Visit
from cloister.anonymize.attributes import CodedAttribute
from cloister.anonymize.cells import CodedCells
from cloister.anonymize.models import EquivalenceClasses, all_hold, overall_counts

Counts: TypeAlias = NDArray[np.int64]

_HASH_BITS = 42
_PRICE = 1 << 19
_WORK = 400_000_000
_JUDGING = 5
_PATIENCE = 300


@dataclass(frozen=True, eq=False, kw_only=True)
class CandidateClasses:
    """Classes that could be taken.

    Attributes:
        pieces: their pieces, class by class.
        owners: the cells of the pieces.
        starts: where each class starts.
        node: the rung of every attribute.
        bound: what a class may cost a row.
    """

    pieces: Counts
    owners: Counts
    starts: Counts
    node: Counts
    bound: float


Judge: TypeAlias = Callable[[CandidateClasses], NDArray[np.bool_]]
"""Says which of the candidates are taken."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Pieces:
    """What is gathered: some rows of a cell each, in an order in which neighbors are alike.

    Attributes:
        owners: the cell of each piece.
        leaves: the leaf code of each piece (column) in each attribute (row).
        rows: how many rows each piece has.
        may_part: whether a crowd of pieces may be cut into classes of k rows and more; every piece is one row then.
    """

    owners: Counts
    leaves: Counts
    rows: Counts
    may_part: bool

    def __len__(self) -> int:
        return len(self.rows)


class Gathering:
    """The pieces that are not yet in a class, and the classes so far."""

    def __init__(
        self, pieces: Pieces, ladders: Sequence[Ladder], nodes: Counts, *, k: int, judges: Sequence[Judge], exact: bool
    ) -> None:
        self.pieces, self.nodes, self.k = pieces, nodes, k
        self.judges, self.exact = judges, exact
        self.tables = [_keys(ladder, place, len(ladders), exact=exact) for place, ladder in enumerate(ladders)]
        self.groups = np.full(len(pieces), -1, dtype=np.int64)
        self.size = 0
        self.live = np.arange(len(pieces))
        self.rows = int(pieces.rows.sum())
        self.columns: dict[tuple[int, int], Counts] = {}
        self.seen: dict[int, int] = {}

    def run(self, visits: Sequence[Visit]) -> Counts:
        """Make the visits, fewer where rows are many, and return the class of each piece, -1 where none was taken."""
        work, at, dry = _WORK, 0, 0
        while at < len(visits) and self.rows >= self.k:
            dry = 0 if self._visit(visits[at]) else dry + 1
            if dry % _PATIENCE == _PATIENCE - 1 and self._is_hopeless():
                break
            work -= len(self.live) * (1 if self.pieces.may_part else _JUDGING)
            # Where the work left is too much visits are skipped evenly, so that the dear ones at the end are reached
            # too.
            left = len(visits) - 1 - at
            at += min(1 + len(self.live) * left // max(work, len(self.live) * 8 + 1), max(left, 1))
        return self.groups

    def _visit(self, visit: Visit) -> bool:
        """Take what one visit finds, and return whether it found anything."""
        node = self.nodes[visit.node]
        # Hashes of single attributes add up to one of the combination, and so do the prices in the bits above them.
        key = self._column(0, node[0]).copy()
        for place in range(1, len(node)):
            key += self._column(place, node[place])
        inside = self._inside(key, visit) if self.exact else np.arange(len(key))
        key = key[inside] if self.exact else key
        lines, starts = (
            self._crowds(key) if self.pieces.may_part else self._full(key, self.pieces.rows[self.live[inside]])
        )
        return len(lines) > 0 and self._take(inside[lines], starts, node, visit.bound)

    def _is_hopeless(self) -> bool:
        """Return whether even all that is left, as one class, would not be taken."""
        owners, node = self.pieces.owners[self.live], np.zeros(0, dtype=np.int64)
        left = CandidateClasses(pieces=self.live, owners=owners, starts=np.zeros(1, np.int64), node=node, bound=np.inf)
        return not all(judge(left).all() for judge in self.judges)

    def _inside(self, key: Counts, visit: Visit) -> Counts:
        """Return the pieces that this node costs more than at the last visit allowed, and no more than now."""
        low = self.seen.get(visit.node, -1)
        high = int(visit.bound * _PRICE + 0.5) + 1 if visit.bound < np.inf else 2 * _PRICE
        self.seen[visit.node] = high
        price = key >> _HASH_BITS
        return np.flatnonzero((price > low) & (price <= high))

    def _crowds(self, key: Counts) -> tuple[Counts, Counts]:
        """Return the pieces of one row whose key at least k share, class by class, each cut into classes of k rows."""
        ordered = np.sort(key)
        # In sorted order a key that k rows share equals the one k - 1 places on.
        many = max(len(ordered) - self.k + 1, 0)
        full = _distinct(ordered[:many][ordered[len(ordered) - many :] == ordered[:many]])
        if not len(full):
            return full, full
        lines = np.flatnonzero(_is_in(key, full))
        lines = lines[np.argsort(key[lines], kind="stable")]
        return lines, _split_groups(_starts(key[lines]), len(lines), self.k)

    def _full(self, key: Counts, rows: Counts) -> tuple[Counts, Counts]:
        """Return the pieces whose key at least k rows share, class by class, and where each class starts."""
        order = np.argsort(key)
        if not len(order):
            return order, order
        starts = _starts(key[order])
        is_full = np.add.reduceat(rows[order], starts) >= self.k
        lengths = _lengths(starts, len(order))
        ends = np.cumsum(lengths[is_full])
        return order[np.repeat(is_full, lengths)], ends - lengths[is_full]

    def _take(self, lines: Counts, starts: Counts, node: Counts, bound: float) -> bool:
        """Make classes of the groups of lines that the judges take, and return whether there are any."""
        members = self.live[lines]
        taken = np.ones(len(starts), dtype=bool)
        if self.judges:
            owners = self.pieces.owners[members]
            candidates = CandidateClasses(pieces=members, owners=owners, starts=starts, node=node, bound=bound)
            for judge in self.judges:
                taken &= judge(candidates)
        number = np.repeat(np.where(taken, self.size + np.cumsum(taken) - 1, -1), _lengths(starts, len(lines)))
        self.size += int(taken.sum())
        self.groups[members] = number
        if taken.any():
            # Later combinations are dearer, and see only what is left, which keeps them quick.
            self.live = self.live[self.groups[self.live] < 0]
            self.rows = int(self.pieces.rows[self.live].sum())
            self.columns.clear()
        return bool(taken.any())

    def _column(self, place: int, rung: int) -> Counts:
        column = self.columns.get((place, rung))
        if column is None:
            column = self.tables[place][rung][self.pieces.leaves[place][self.live]]
            self.columns[place, rung] = column
        return column


def _keys(ladder: Ladder, place: int, count: int, *, exact: bool) -> list[Counts]:
    """Return for each rung and leaf its price (high bits, exact ladders only) and the hash of its group (low bits)."""
    # So many hashes add up to fewer than _HASH_BITS bits, and never carry into the price.
    room = _HASH_BITS - count.bit_length()
    tables = []
    for rung, (codes, prices) in enumerate(zip(ladder.codes, ladder.prices, strict=True)):
        hashes = _hash_numbers(codes + (place << 40) + (rung << 32)) >> np.uint64(64 - room)
        priced = np.rint(prices * _PRICE).astype(np.int64) << _HASH_BITS
        tables.append(hashes.astype(np.int64) + (priced if exact else 0))
    return tables


def _hash_numbers(numbers: Counts) -> NDArray[np.uint64]:
    """Return the numbers well mixed (the finalizer of SplitMix64, Steele, Lea and Flood 2014).

    Two groups that collide are taken for one: that may cost precision, but classes are described by their rows.
    """
    mixed = numbers.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return np.asarray(mixed ^ (mixed >> np.uint64(31)))


def _distinct(ordered: Counts) -> Counts:
    return ordered[_starts(ordered)] if len(ordered) else ordered


def _starts(ordered: Counts) -> Counts:
    return np.flatnonzero(np.concatenate(([True], ordered[1:] != ordered[:-1])))


def _lengths(starts: Counts, total: int) -> Counts:
    return np.diff(np.append(starts, total))


def _is_in(key: Counts, among: Counts) -> NDArray[np.bool_]:
    place = np.minimum(np.searchsorted(among, key), len(among) - 1)
    return np.asarray(among[place] == key)


def _split_groups(starts: Counts, total: int, k: int) -> Counts:
    """Return starts with every group cut into as many classes of at least k as it holds, of nearly equal size."""
    lengths = _lengths(starts, total)
    parts = lengths // k
    group = np.repeat(np.arange(len(starts)), parts)
    first = np.cumsum(parts) - parts
    part = np.arange(len(group)) - first[group]
    return np.asarray(starts[group] + part * lengths[group] // parts[group])


LeafCodes: TypeAlias = NDArray[np.int64]
Losses: TypeAlias = NDArray[np.float64]
Loss: TypeAlias = Callable[[LeafCodes, LeafCodes], Losses]

_WORD = 64
_WORDS = 4
_BITS = np.array([bin(number).count("1") for number in range(256)], dtype=np.uint8)


class SetLosses:
    """What sets and intervals lose, from the leaf codes of pieces."""

    def __init__(self, cells: CodedCells, leaves: LeafCodes) -> None:
        self._losses = [
            _interval_loss(attribute, leaves[place], weight)
            if attribute.is_ordered
            else _set_loss(attribute, leaves[place], weight)
            for place, (attribute, weight) in enumerate(zip(cells.attributes, cells.weights_of_attributes, strict=True))
        ]

    def of(self, members: LeafCodes, starts: LeafCodes, places: Iterable[int]) -> Losses:
        """Return the weighted loss of each class over some attributes.

        Args:
            members: the pieces, class by class.
            starts: where each class starts.
            places: the attributes in which the pieces of a class may differ.
        """
        return np.asarray(sum((self._losses[place](members, starts) for place in places), np.zeros(len(starts))))


def _interval_loss(attribute: CodedAttribute, leaves: LeafCodes, weight: float) -> Loss:
    positions = np.nan_to_num(attribute.positions, nan=np.inf) if attribute.positions is not None else np.zeros(1)
    places, span = positions[leaves], attribute.span or 1.0

    def loss(members: LeafCodes, starts: LeafCodes) -> Losses:
        mine = places[members]
        low, high = np.minimum.reduceat(mine, starts), np.maximum.reduceat(mine, starts)
        # Missing values lie at infinity: among themselves they lose nothing, with others everything.
        with np.errstate(invalid="ignore"):
            width = (high - low) / span
        return np.where(np.isnan(width), 0.0, np.minimum(width, 1.0)) * weight

    return loss


def _set_loss(attribute: CodedAttribute, leaves: LeafCodes, weight: float) -> Loss:
    size = len(attribute.leaves)
    scale = weight / max(size - 1, 1)
    if size > _WORD * _WORDS:
        return lambda members, starts: (_count_distinct(leaves[members], starts, size) - 1) * scale
    # Leaves are bits of words: a union is one OR, and its size a count of bits.
    words = [
        np.where(leaves // _WORD == word, np.uint64(1) << (leaves % _WORD).astype(np.uint64), np.uint64(0))
        for word in range(-(-size // _WORD))
    ]

    def loss(members: LeafCodes, starts: LeafCodes) -> Losses:
        found = sum((_bits(np.bitwise_or.reduceat(word[members], starts)) for word in words), np.zeros(len(starts)))
        return np.asarray((found - 1) * scale)

    return loss


def _bits(words: NDArray[np.uint64]) -> Losses:
    return np.asarray(_BITS[words.view(np.uint8)].reshape(-1, 8).sum(axis=1), dtype=np.float64)


def _count_distinct(codes: LeafCodes, starts: LeafCodes, size: int) -> Losses:
    group = np.zeros(len(codes), dtype=np.int64)
    group[starts[1:]] = 1
    # Class and leaf in one number: distinct numbers are distinct leaves of a class.
    pairs = np.unique(np.cumsum(group) * size + codes)
    return np.bincount(pairs // size, minlength=len(starts)).astype(np.float64)


Leaves: TypeAlias = NDArray[np.int64]
Truths: TypeAlias = NDArray[np.bool_]


def set_judge(cells: CodedCells, leaves: Leaves) -> Judge:
    """Return a judge of sets and intervals: none may lose more than the visit allows."""
    losses = SetLosses(cells, leaves)

    def judge(candidates: CandidateClasses) -> Truths:
        if candidates.bound == np.inf:
            return np.ones(len(candidates.starts), dtype=bool)
        # On the lowest rung all rows of a class have the same leaf, which loses nothing.
        places = np.flatnonzero(candidates.node)
        return losses.of(candidates.pieces, candidates.starts, places.tolist()) <= candidates.bound

    return judge


def model_judge(task: Task) -> Judge:
    """Return a judge that takes classes of whole cells that satisfy the models (those about a population aside)."""
    cells, overall = task.cells, overall_counts(task.cells)
    checks = [check for check in task.checks if not check.needs_population]
    records = np.argsort(cells.record_cells, kind="stable")
    counts = np.bincount(cells.record_cells, minlength=len(cells))
    firsts = np.cumsum(counts) - counts

    def judge(candidates: CandidateClasses) -> Truths:
        lengths = np.diff(np.append(candidates.starts, len(candidates.owners)))
        group = np.repeat(np.arange(len(lengths)), lengths)
        # The records of a cell are one slice after sorting; the slices of all owners are laid end to end.
        held = counts[candidates.owners]
        offsets = np.arange(int(held.sum())) - np.repeat(np.cumsum(held) - held, held)
        mine = records[np.repeat(firsts[candidates.owners], held) + offsets]
        classes = EquivalenceClasses(
            cells=cells,
            records=mine,
            groups=np.repeat(group, held),
            counts=cells.record_weights[mine],
            size=len(lengths),
            overall=overall,
        )
        return all_hold(checks, classes)

    return judge


def find_satisfying_cells(task: Task) -> Truths:
    """Return which cells satisfy every model (those about a population aside) by themselves."""
    cells = task.cells
    every = np.arange(len(cells))
    alone = CandidateClasses(pieces=every, owners=every, starts=every, node=every[:0], bound=np.inf)
    return model_judge(task)(alone)
