"""How near released rows are to people: nearer than to those who had no part in them, and than a promise would allow?

A row with two cells of twelve changed is no copy, and is still the person's own: nobody else's is as near. So the
distance from people to the nearest released row is held against what it is without a part in the release, in three
ways of which the nearest counts:

- *other people*: the distance from somebody to the nearest other row of the original, which is what a fresh sample of
  the same kind of people would have.
- *neighbors*: the distance to the release from rows that nobody has, a person's with one cell of who is most alike.
- *mixtures*: the distance to the release from rows whose cells come from people at random.

Let q be the share of these within some distance. Under epsilon, people have a released row within it with probability
at most ``min(exp(epsilon) q, 1 - exp(-epsilon) (1 - q))``. A stated epsilon above 1 excuses no more than 1 does. Only
people whose row is like nobody else's are looked at. Numbers count by their place among those of the original.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cloister.attacks.confidence import binomial_interval
from cloister.attacks.gating.policy import GatePolicy
from cloister.attacks.gating.row_keys import MISSING, WRITTEN, RowPair, once, read_pair
from cloister.core.random import RandomSource, permutation
from cloister.data.mixed_rows import MixedRows
from cloister.data.nearest_rows import nearest_rows
from cloister.data.table import Table

__all__ = ["Nearness", "find_nearness"]

_FEWEST = 10
_FEWEST_COLUMNS = 2
_MOST_ROWS = 200_000
_PEOPLE = (200, 1000)
_PAIRS = 20_000_000
_LEVELS = 16


@dataclass(frozen=True, slots=True, kw_only=True)
class Nearness:
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


def find_nearness(original: Table, released: Table, *, policy: GatePolicy, source: RandomSource) -> Nearness | None:
    """Return how near the release is to people; None if too few of them, or columns, can be compared."""
    names = [name for name in released.columns if name in original.columns]
    if len(names) < _FEWEST_COLUMNS or not original.count() or not released.count():
        return None
    pair = read_pair(original, released, names, resolution=WRITTEN)
    ours, theirs = _mixed(pair)
    keys = pair.hashed()[0].sum(axis=1, dtype=np.uint64)
    ours_kept, theirs_kept = (permutation(source, len(rows))[:_MOST_ROWS] for rows in (ours, theirs))
    among, released_rows, keys = ours.take(ours_kept), theirs.take(theirs_kept), keys[ours_kept]
    most = int(np.clip(_PAIRS // max(len(among), len(released_rows)), *_PEOPLE))
    places = np.flatnonzero(np.isin(keys, once(keys)))[:most]
    if len(places) < _FEWEST or len(among) < 2:
        return None
    people = among.take(places)
    # The nearest row of somebody whose row is like nobody else's is that row itself, the second is another person's.
    apart, nearest = nearest_rows(people, among, neighbors=2)
    to_release = nearest_rows(people, released_rows)[0][:, 0]
    neighbors = _exchanged(people, among.take(nearest[:, 1]), source)
    is_new = nearest_rows(neighbors, among)[0][:, 0] > 0
    mixtures = _mixtures(among, len(places), source)
    others = [nearest_rows(rows, released_rows)[0][:, 0] for rows in (neighbors.take(is_new), mixtures) if len(rows)]
    times = max(1.0, len(released_rows) / len(among))
    return _judged(to_release, apart[:, 1], others, times, policy)


def _judged(
    found: NDArray[np.float64],
    apart: NDArray[np.float64],
    others: list[NDArray[np.float64]],
    times: float,
    policy: GatePolicy,
) -> Nearness:
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
        look = Nearness(people=len(found), near=near, chance=chance, limit=limit, exceeds=low > limit)
        judged.append(look)
    return max(judged, key=lambda look: (look.exceeds, look.deviations))


def _mixed(pair: RowPair) -> tuple[MixedRows, MixedRows]:
    """Return the rows with numbers as their place among those of the original, from 0 to 1."""
    numeric = [place for place, is_number in enumerate(pair.is_number) if is_number]
    named = [place for place, is_number in enumerate(pair.is_number) if not is_number]
    parts = []
    for codes in (pair.original, pair.released):
        numbers = [_placed(pair.original[:, place], codes[:, place]) for place in numeric]
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


def _placed(held: NDArray[np.int64], values: NDArray[np.int64]) -> NDArray[np.float64]:
    known = np.sort(held[held != MISSING])
    ends = [np.searchsorted(known, values, side=side) for side in ("left", "right")]
    return np.where(values == MISSING, np.nan, (ends[0] + ends[1]) / (2 * max(1, len(known))))


def _exchanged(people: MixedRows, alike: MixedRows, source: RandomSource) -> MixedRows:
    """Return the rows of people with one cell of somebody who is alike, where the two differ."""
    width = people.numeric
    ours, theirs = (np.hstack([rows.numbers, rows.codes.astype(np.float64)]) for rows in (people, alike))
    differs = (ours != theirs) & ~(np.isnan(ours) & np.isnan(theirs))
    rows = np.arange(len(ours))
    # A column at random for each row, among those that differ.
    ranks = permutation(source, differs.size).reshape(differs.shape)
    chosen = np.where(differs, ranks, -1).argmax(axis=1)
    ours[rows, chosen] = theirs[rows, chosen]
    return _replaced(people, ours[:, :width], ours[:, width:])


def _mixtures(among: MixedRows, count: int, source: RandomSource) -> MixedRows:
    """Return rows whose cells come from people at random."""
    numbers, codes = (
        [part[permutation(source, len(among))[:count], place] for place in range(part.shape[1])]
        for part in (among.numbers, among.codes)
    )
    return _replaced(
        among,
        np.column_stack(numbers) if numbers else np.zeros((count, 0)),
        np.column_stack(codes) if codes else np.zeros((count, 0)),
    )


def _replaced(rows: MixedRows, numbers: NDArray[np.float64], codes: NDArray[np.generic]) -> MixedRows:
    return MixedRows(rows.columns, numbers, codes.astype(np.int32), rows.lows, rows.highs)
