"""Copies of people's rows, and rows near them: more than chance, and a promise, would have in a release?

A person whose row is like nobody else's is *unique*. An honest table shows some such rows too, because its values are
few. How many it would show of people who had no part in it is estimated in two ways, and the larger one counts:

- *neighbors*: a unique row with one value of a similar person makes a row that nobody has, and that is about as likely.
  The share of such rows that the release shows needs nothing beside the original.
- *strangers*: how often a row that is unique among n would occur among as many other people of the same kind is twice
  the number of rows that occur twice over the number of unique ones (Good 1953): what a fresh sample would show.

Let q be that share. Under epsilon, a row that is in the data is shown with probability at most ``min(exp(epsilon) q, 1
- exp(-epsilon) (1 - q))``. A release breaks its promise where more than that is shown beyond the confidence; a stated
epsilon above 1 excuses no more than 1 does. Whole rows that occur twice or three times are looked at in the same way,
with as many times epsilon: two records of each person make nobody's row common. All shared columns are looked at, all
but one, those that attackers know with what they want to know, single columns in which values are somebody's own, and
such a column beside each other one, at three resolutions.

A row with two cells of twelve changed is no copy, and is still the person's own: nobody else's is as near. So the
distance from people to the nearest released row is held against what it is without a part in the release, in three
ways of which the nearest counts:

- *other people*: the distance from somebody to the nearest other row of the original, which is what a fresh sample of
  the same kind of people would have.
- *neighbors*: the distance to the release from rows that nobody has, a person's with one cell of who is most alike.
- *mixtures*: the distance to the release from rows whose cells come from people at random.

With q the share of these within some distance, people have a released row within it with at most the probability
above. Only people whose row is like nobody else's are looked at. Numbers count by their place among those of the
original.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cloister.attacks.gating._row_keys import MISSING, RESOLUTIONS, WRITTEN, Keys, RowPair, once, read_pair
from cloister.attacks.gating.policy import GatePolicy
from cloister.core.confidence import binomial_interval
from cloister.core.random import RandomSource, permutation
from cloister.data.mixed_rows import MixedRows, nearest_rows
from cloister.data.table import Table

__all__ = ["GateCopies", "GateNearness", "find_copies", "find_nearness", "is_same"]


_FEWEST = 10
_MOST_LEFT_OUT = 40
_MOST_ROWS = 20_000
_EXCHANGED = 5
_ALIKE = 4
_NEARLY_ALL = 0.9
_HARDLY = 0.15
_MANY_OWN = 0.1
_MOST_PAIRS = 60
_MOST_TIMES = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class GateCopies:
    """What one look at some columns found.

    Attributes:
        columns: the columns.
        resolution: how closely cells were compared.
        people: how many rows the original has.
        unique: how many different rows occur so many times in the original; once: those that are like nobody else's.
        shown: how many of these the release shows.
        chance: the share that chance would show.
        limit: the largest share that is allowed.
        exceeds: whether more are shown, beyond the confidence.
        times: how many times the rows occur that were looked at.
    """

    columns: tuple[str, ...]
    resolution: str
    people: int
    unique: int
    shown: int
    chance: float
    limit: float
    exceeds: bool
    times: int = 1

    @property
    def excess(self) -> float:
        """Return by how much the share shown is above what is allowed."""
        return self.shown / max(1, self.unique) - self.limit


def find_copies(
    original: Table,
    released: Table,
    *,
    quasi: Sequence[str],
    sensitive: Sequence[str],
    policy: GatePolicy,
    source: RandomSource,
) -> tuple[list[GateCopies], tuple[str, ...]]:
    """Return what each look found, that at whole rows first, and the columns that could not be compared."""
    names = [name for name in released.columns if name in original.columns]
    if not names:
        return [], tuple(released.columns)
    looks = _projections(names, quasi, sensitive)
    # All looks share the error that is allowed, also those that may turn out not to be needed.
    alpha = (1 - policy.confidence) / (len(RESOLUTIONS) * (len(looks) + len(names) + _MOST_PAIRS + _MOST_TIMES))
    pairs = [read_pair(original, released, names, resolution=resolution) for resolution in RESOLUTIONS]
    found: list[GateCopies] = []
    for pair in pairs:
        search = _Search(pair=pair, cells=pair.hash_cells(), alpha=alpha, policy=policy, source=source)
        found += [search.rows([names.index(name) for name in chosen]) for chosen in looks]
        found += [search.rows(places) for places in search.telling_pairs()]
        if len(names) > 1:
            found += [search.rows(list(range(len(names))), times=times) for times in range(2, _MOST_TIMES + 1)]
        if pair is pairs[0]:
            found += [search.values(place, _categories(original, name)) for place, name in enumerate(names)]
    return found, pairs[0].strange


def is_same(original: Table, released: Table) -> bool:
    """Return whether nearly every kind of row occurs exactly as often in both tables; noise of epsilon 1 forbids it."""
    names = [name for name in released.columns if name in original.columns]
    cells = read_pair(original, released, names, resolution=RESOLUTIONS[0]).hash_cells()
    ours, theirs = (part.sum(axis=1, dtype=np.uint64) for part in cells)
    kinds, places = np.unique(np.concatenate([ours, theirs]), return_inverse=True)
    counts, others = (np.bincount(part, minlength=len(kinds)) for part in np.split(places, [len(ours)]))
    return len(kinds) >= _FEWEST and float((counts == others).mean()) > _NEARLY_ALL


def _projections(names: Sequence[str], quasi: Sequence[str], sensitive: Sequence[str]) -> list[tuple[str, ...]]:
    """Return the sets of columns to look at, all of them first."""
    known = [name for name in names if name in quasi]
    sets = [tuple(names), tuple(known), tuple(name for name in names if name not in sensitive)]
    sets += [(*known, name) for name in sensitive if name in names and name not in known]
    if len(names) > 2:
        sets += [tuple(other for other in names if other != name) for name in names[:_MOST_LEFT_OUT]]
    return list(dict.fromkeys(tuple(sorted(chosen, key=names.index)) for chosen in sets if len(chosen) > 1))


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class _Search:
    """Two tables at one resolution, and how sure a finding must be."""

    pair: RowPair
    cells: tuple[Keys, Keys]
    alpha: float
    policy: GatePolicy
    source: RandomSource

    def rows(self, places: list[int], *, times: int = 1) -> GateCopies:
        """Look at some columns together, at the rows that occur so many times."""
        ours, theirs = (part[:, places].sum(axis=1, dtype=np.uint64) for part in self.cells)
        own = once(ours, times=times)
        # Without enough rows nothing is judged, so that nothing has to be made up.
        chosen = own if len(own) >= _FEWEST or times == 1 else own[:0]
        neighbors = _neighbors(self.pair.original[:, places], self.cells[0][:, places], ours, chosen, self.source)
        shown = int(np.isin(neighbors, theirs).sum())
        return self._judge(places, ours, theirs, self._at_most(shown, len(neighbors)), times=times)

    def values(self, place: int, categories: int | None) -> GateCopies:
        """Look at one column: are values that one person has in the release, more often than values that nobody has?"""
        ours, theirs = self.cells[0][:, place], self.cells[1][:, place]
        kinds, shown = np.unique(self.pair.original[:, place]), np.unique(self.pair.released[:, place])
        if categories is not None:
            new = int((~np.isin(shown, kinds)).sum())
            unseen = max(new, categories - len(kinds))
            return self._judge([place], ours, theirs, self._at_most(new, unseen) if unseen else 1.0)
        if self.pair.is_number[place] and len(kinds) >= _FEWEST:
            # Beside each number lies one that is as exact, a smallest step away.
            beside = np.setdiff1d(kinds[:-1] + np.diff(kinds).min(), kinds)
            chance = self._at_most(int(np.isin(beside, shown).sum()), len(beside)) if len(beside) else 1.0
            return self._judge([place], ours, theirs, chance)
        # Of texts that nobody has declared, no honest method shows most of those that only one person has.
        return self._judge([place], ours, theirs, _HARDLY)

    def telling_pairs(self) -> list[list[int]]:
        """Return a column in which many have a value of their own beside each column that it does not determine."""
        ours = self.cells[0]
        own = [place for place, keys in enumerate(ours.T) if len(once(keys)) >= max(_FEWEST, _MANY_OWN * len(keys))]
        pairs = {
            (min(first, second), max(first, second))
            for first in own
            for second in range(ours.shape[1])
            if first != second and not _determines(ours[:, first], ours[:, second])
        }
        listed = sorted(pairs)
        order = permutation(self.source, len(listed)) if len(listed) > _MOST_PAIRS else range(len(listed))
        return [list(listed[place]) for place in order[:_MOST_PAIRS]]

    def _at_most(self, hits: int, trials: int) -> float:
        return binomial_interval(hits, trials, confidence=1 - self.alpha)[1] if trials else 0.0

    def _judge(self, places: list[int], ours: Keys, theirs: Keys, others: float, *, times: int = 1) -> GateCopies:
        own = once(ours, times=times)
        shown = int(np.isin(own, theirs).sum())
        chance = max(others, _share_among_strangers(ours, len(theirs), times=times))
        limit = self.policy.allowed_share(chance, rows=times)
        low = binomial_interval(shown, len(own), confidence=1 - self.alpha)[0] if len(own) else 0.0
        return GateCopies(
            columns=tuple(self.pair.names[place] for place in places),
            resolution=self.pair.resolution,
            people=len(ours),
            unique=len(own),
            shown=shown,
            chance=chance,
            limit=limit,
            exceeds=len(own) >= _FEWEST and low > limit,
            times=times,
        )


def _determines(first: Keys, second: Keys) -> bool:
    """Return whether people who share a value of one column share that of another, such as postcode and town."""
    kinds, counts = np.unique(first, return_counts=True)
    # There are no more pairs than values of the first column exactly if it determines the second.
    return int((counts > 1).sum()) >= _FEWEST and len(np.unique(first + second)) == len(kinds)


def _neighbors(codes: NDArray[np.int64], cells: Keys, keys: Keys, chosen_keys: Keys, source: RandomSource) -> Keys:
    """Return rows that nobody has: chosen ones of people with one value of somebody who is alike otherwise."""
    if not len(chosen_keys):
        return chosen_keys
    rows = permutation(source, len(keys))[:_MOST_ROWS]
    chosen, mine = codes[rows], keys[rows]
    is_chosen = np.isin(mine, chosen_keys)
    columns = permutation(source, codes.shape[1])
    made: list[Keys] = []
    for place in columns[:_EXCHANGED]:
        # Sorted by a few other columns, in random order among equals, the next row is the one most alike.
        others = [column for column in permutation(source, len(columns)) if column != place][:_ALIKE]
        order = np.lexsort([chosen[:, column] for column in others])
        donor = np.empty(len(rows), dtype=np.int64)
        donor[order] = np.roll(order, -1)
        own, given = cells[rows, place], cells[rows[donor], place]
        # A key is a sum over cells, so that exchanging a cell is a difference of two hashes.
        made.append((mine - own + given)[is_chosen & (own != given)])
    found = np.unique(np.concatenate(made))
    return found[~np.isin(found, keys)]


def _share_among_strangers(keys: Keys, size: int, *, times: int) -> float:
    """Return the share of rows that occur so many times that a fresh sample of the same kind of people would show."""
    counts = np.unique(keys, return_counts=True)[1]
    seen, oftener = int((counts == times).sum()), int((counts == times + 1).sum())
    # Where few rows occur once more, their number may have been larger: three deviations of a Poisson number are added.
    occurrences = (times + 1) * (oftener + 3 * math.sqrt(oftener)) / max(1, seen)
    return 1 - math.exp(-occurrences * size / len(keys))


def _categories(table: Table, name: str) -> int | None:
    """Return how many values of a column are public; None if nothing says it."""
    column = None if table.schema is None else table.schema.columns.get(name)
    return None if column is None or column.categories is None else len(column.categories)


_FEWEST_PEOPLE = 10
_FEWEST_COLUMNS = 2
_MOST_NEAR_ROWS = 200_000
_PEOPLE = (200, 1000)
_PAIRS = 20_000_000
_LEVELS = 16


@dataclass(frozen=True, slots=True, kw_only=True)
class GateNearness:
    """How many people have a released row within the distance at which it is most telling.

    Attributes:
        people: how many were looked at.
        near: how many have a released row so near.
        chance: the share that would have one without a part in the release.
        limit: the largest share that is allowed.
        exceeds: whether more have one, beyond the confidence.
    """

    people: int
    near: int
    chance: float
    limit: float
    exceeds: bool

    @property
    def deviations(self) -> float:
        """Return by how many standard deviations the share is above what is allowed; the least where all is."""
        spread = math.sqrt(self.limit * (1 - self.limit) / self.people)
        return (self.near / self.people - self.limit) / spread if spread else -math.inf


def find_nearness(original: Table, released: Table, *, policy: GatePolicy, source: RandomSource) -> GateNearness | None:
    """Return how near the release is to people; None if too few of them, or columns, can be compared."""
    names = [name for name in released.columns if name in original.columns]
    if len(names) < _FEWEST_COLUMNS or not original.count() or not released.count():
        return None
    pair = read_pair(original, released, names, resolution=WRITTEN)
    ours, theirs = _rank_rows(pair)
    keys = pair.hash_cells()[0].sum(axis=1, dtype=np.uint64)
    ours_kept, theirs_kept = (permutation(source, len(rows))[:_MOST_NEAR_ROWS] for rows in (ours, theirs))
    among, released_rows, keys = ours.take(ours_kept), theirs.take(theirs_kept), keys[ours_kept]
    most = int(np.clip(_PAIRS // max(len(among), len(released_rows)), *_PEOPLE))
    places = np.flatnonzero(np.isin(keys, once(keys)))[:most]
    if len(places) < _FEWEST_PEOPLE or len(among) < 2:
        return None
    people = among.take(places)
    # The nearest row of somebody whose row is like nobody else's is that row itself, the second is another person's.
    apart, nearest = nearest_rows(people, among, neighbors=2)
    to_release = nearest_rows(people, released_rows)[0][:, 0]
    neighbors = _exchange_cells(people, among.take(nearest[:, 1]), source)
    is_new = nearest_rows(neighbors, among)[0][:, 0] > 0
    mixtures = _mixtures(among, len(places), source)
    others = [nearest_rows(rows, released_rows)[0][:, 0] for rows in (neighbors.take(is_new), mixtures) if len(rows)]
    times = max(1.0, len(released_rows) / len(among))
    return _judge_distances(to_release, apart[:, 1], others, times, policy)


def _judge_distances(
    found: NDArray[np.float64],
    apart: NDArray[np.float64],
    others: list[NDArray[np.float64]],
    times: float,
    policy: GatePolicy,
) -> GateNearness:
    """Return what is most telling among some distances."""
    levels = np.unique(np.quantile(np.concatenate([found, apart]), np.linspace(0, 1, _LEVELS), method="lower"))
    confidence = 1 - (1 - policy.confidence) / (len(levels) * (len(others) + 2))

    def at_most(distances: NDArray[np.float64], level: float) -> float:
        hits = int((distances <= level).sum())
        return binomial_interval(hits, len(distances), confidence=confidence)[1] if len(distances) else 0.0

    judged = []
    for level in levels:
        near = int((found <= level).sum())
        # A release of several times as many rows has as many chances.
        fresh = 1 - (1 - at_most(apart, level)) ** times
        chance = max(fresh, *(at_most(distances, level) for distances in others))
        limit = policy.allowed_share(chance)
        low = binomial_interval(near, len(found), confidence=confidence)[0]
        look = GateNearness(people=len(found), near=near, chance=chance, limit=limit, exceeds=low > limit)
        judged.append(look)
    return max(judged, key=lambda look: (look.exceeds, look.deviations))


def _rank_rows(pair: RowPair) -> tuple[MixedRows, MixedRows]:
    """Return the rows with numbers as their place among those of the original, from 0 to 1."""
    numeric = [place for place, is_number in enumerate(pair.is_number) if is_number]
    named = [place for place, is_number in enumerate(pair.is_number) if not is_number]
    parts = []
    for codes in (pair.original, pair.released):
        numbers = [_rank_values(pair.original[:, place], codes[:, place]) for place in numeric]
        parts.append(
            MixedRows(
                columns=tuple(pair.names[place] for place in (*numeric, *named)),
                numbers=np.column_stack(numbers) if numbers else np.zeros((len(codes), 0)),
                codes=codes[:, named].astype(np.int32),
                lows=np.zeros(len(numeric)),
                highs=np.ones(len(numeric)),
            )
        )
    return parts[0], parts[1]


def _rank_values(held: NDArray[np.int64], values: NDArray[np.int64]) -> NDArray[np.float64]:
    known = np.sort(held[held != MISSING])
    ends = [np.searchsorted(known, values, side=side) for side in ("left", "right")]
    return np.where(values == MISSING, np.nan, (ends[0] + ends[1]) / (2 * max(1, len(known))))


def _exchange_cells(people: MixedRows, alike: MixedRows, source: RandomSource) -> MixedRows:
    """Return the rows of people with one cell of somebody who is alike, where the two differ."""
    width = people.numeric
    ours, theirs = (np.hstack([rows.numbers, rows.codes.astype(np.float64)]) for rows in (people, alike))
    differs = (ours != theirs) & ~(np.isnan(ours) & np.isnan(theirs))
    rows = np.arange(len(ours))
    # A column at random for each row, among those that differ.
    ranks = permutation(source, differs.size).reshape(differs.shape)
    chosen = np.where(differs, ranks, -1).argmax(axis=1)
    ours[rows, chosen] = theirs[rows, chosen]
    return _replace_cells(people, ours[:, :width], ours[:, width:])


def _mixtures(among: MixedRows, count: int, source: RandomSource) -> MixedRows:
    """Return rows whose cells come from people at random."""
    numbers, codes = (
        [part[permutation(source, len(among))[:count], place] for place in range(part.shape[1])]
        for part in (among.numbers, among.codes)
    )
    return _replace_cells(
        among,
        np.column_stack(numbers) if numbers else np.zeros((count, 0)),
        np.column_stack(codes) if codes else np.zeros((count, 0)),
    )


def _replace_cells(rows: MixedRows, numbers: NDArray[np.float64], codes: NDArray[np.generic]) -> MixedRows:
    return MixedRows(rows.columns, numbers, codes.astype(np.int32), rows.lows, rows.highs)
