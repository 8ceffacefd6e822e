"""Links between people and released rows, by exact fit or by distance: how sure each is, and how likely right.

An attacker who links exactly takes any row whose labels allow all that is known. One who links by distance takes the
nearest released row for a person's own (Pagliuca and Seri 1999). A number is as far away as its distance in standard
deviations; an interval stands for the middle of what it allows. Of other values a label is near that allows them, the
nearer the fewer it allows. What is not known adds no distance.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from decimal import Decimal
from numbers import Real
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from cloister.anonymize.labels import ReadLabels, leaf_numbers
from cloister.attacks.tables._candidate_classes import CodedColumn, Fitting, KnownPeople, read_column
from cloister.attacks.tables._published_table import PublishedTable
from cloister.data.interval_labels import number_in
from cloister.data.values import is_missing

__all__ = ["Links", "link_by_distance", "link_exactly"]


Shares = NDArray[np.float64]
Counts = NDArray[np.int64]


@dataclass(frozen=True, eq=False, kw_only=True)
class Links:
    """One link per person: a row chosen at random among equally good candidates.

    Attributes:
        candidates: how many rows are equally good for each person, 0 if none fits.
        risks: how sure the attacker is of the link.
        chance: returns, for people and the classes of their own rows, how likely the link is to the right row.
        ranks: returns, for the same, the shares of people whose row is among the nearest ones, where rows are ranked.
        people: the people, by their number among all that were linked.
        learned: what the attacker learned from the tables, if anything.
    """

    candidates: Counts
    risks: Shares
    chance: Callable[[Counts, Counts], Shares]
    ranks: Callable[[Counts, Counts], tuple[tuple[int, float], ...]] | None = None
    people: Counts
    learned: Any = None

    def __repr__(self) -> str:
        return f"Links({len(self.people)} people)"

    def only(self, chosen: NDArray[np.bool_]) -> Links:
        """Return the links of some people."""
        return Links(
            candidates=self.candidates[chosen],
            risks=self.risks[chosen],
            chance=self.chance,
            ranks=self.ranks,
            people=self.people[chosen],
            learned=self.learned,
        )

    def right(self, own: Counts) -> Shares:
        """Return how likely each link is to the right row, given the class of each person's own row."""
        return self.chance(self.people, own)

    def nearest(self, own: Counts) -> tuple[tuple[int, float], ...]:
        """Return (k, share of people whose own row is among the k nearest rows), where rows are ranked."""
        return () if self.ranks is None else self.ranks(self.people, own)


def link_exactly(fitting: Fitting) -> Links:
    """Return the links of an attacker who takes any row whose labels allow all that is known."""
    kinds = fitting.people.kinds
    candidates = fitting.candidates[kinds]
    risks = np.where(candidates > 0, 1 / np.maximum(candidates, 1), 0.0)

    def chance(people: Counts, own: Counts) -> Shares:
        everybody = np.full(len(kinds), -1, dtype=np.int64)
        everybody[people] = own
        return np.asarray(fitting.fits_class(everybody)[people] * risks[people])

    return Links(candidates=candidates, risks=risks, chance=chance, people=np.arange(len(kinds)))


_BLOCK = 1 << 20
_LARGEST_TABLE = 1 << 24
_RANKED = 2_000
_TIE = 1e-6


class _Apart(Protocol):
    """How far the values of a column are from what each class shows."""

    def of(self, codes: NDArray[np.int64]) -> NDArray[np.float32]:
        """Return the squared distance of values (rows) from classes (columns)."""

    def between(self, codes: NDArray[np.int64], classes: NDArray[np.int64]) -> NDArray[np.float32]:
        """Return the squared distance of values from one class each."""


@dataclass(frozen=True, eq=False)
class _Scale:
    """Numbers: of the values, the last one unknown, and of the classes."""

    values: NDArray[np.float32]
    shown: NDArray[np.float32]

    def of(self, codes: NDArray[np.int64]) -> NDArray[np.float32]:
        apart = self.values[codes][:, None] - self.shown
        np.square(apart, out=apart)
        return np.asarray(np.nan_to_num(apart, copy=False, nan=0.0))

    def between(self, codes: NDArray[np.int64], classes: NDArray[np.int64]) -> NDArray[np.float32]:
        return np.asarray(np.nan_to_num(np.square(self.values[codes] - self.shown[classes]), nan=0.0))


@dataclass(frozen=True, eq=False)
class _Listed:
    """All distances of values (the last one unknown) from labels, and the label of each class."""

    table: NDArray[np.float32]
    shown: NDArray[np.int32]

    def of(self, codes: NDArray[np.int64]) -> NDArray[np.float32]:
        return np.asarray(self.table[codes][:, self.shown])

    def between(self, codes: NDArray[np.int64], classes: NDArray[np.int64]) -> NDArray[np.float32]:
        return np.asarray(self.table[codes, self.shown[classes]])


@dataclass(frozen=True, eq=False)
class _Spread:
    """All distances of values from classes."""

    table: NDArray[np.float32]

    def of(self, codes: NDArray[np.int64]) -> NDArray[np.float32]:
        return np.asarray(self.table[codes])

    def between(self, codes: NDArray[np.int64], classes: NDArray[np.int64]) -> NDArray[np.float32]:
        return np.asarray(self.table[codes, classes])


def _spread(apart: _Apart, values: int, classes: int) -> _Apart:
    """Return the same distances, worked out once where they fit into memory."""
    return _Spread(apart.of(np.arange(values + 1))) if (values + 1) * classes <= _LARGEST_TABLE else apart


@dataclass(frozen=True, eq=False, kw_only=True)
class _Space:
    """People and classes in one space."""

    people: KnownPeople
    columns: tuple[_Apart, ...]
    sizes: NDArray[np.int64]

    def distances(self, kinds: NDArray[np.int64]) -> Iterator[tuple[slice, NDArray[np.float32]]]:
        """Give, block by block, the squared distance of combinations (rows) from all classes (columns)."""
        step = max(_BLOCK // max(len(self.sizes), 1), 1)
        for start in range(0, len(kinds), step):
            block = slice(start, min(start + step, len(kinds)))
            total = self.columns[0].of(self.people.codes[kinds[block], 0])
            for place, column in enumerate(self.columns[1:], start=1):
                total += column.of(self.people.codes[kinds[block], place])
            yield block, total

    def to_own(self, kinds: NDArray[np.int64], own: NDArray[np.int64]) -> NDArray[np.float64]:
        """Return the squared distance of combinations from one class each; infinite for the class -1."""
        found = np.full(len(kinds), np.inf)
        inside = np.flatnonzero(own >= 0)
        total = np.zeros(len(inside), dtype=np.float32)
        for place, column in enumerate(self.columns):
            total += column.between(self.people.codes[kinds[inside], place], own[inside])
        found[inside] = total
        return found

    def rows(self, mask: NDArray[np.bool_]) -> NDArray[np.int64]:
        """Return how many rows the marked classes have, for each line of marks."""
        # Floats of 32 bits add up whole numbers exactly below 2**24.
        exact = np.float32 if self.sizes.sum() < 2**24 else np.float64
        return np.asarray(np.rint(mask.astype(exact) @ self.sizes.astype(exact)), dtype=np.int64)


def link_by_distance(published: PublishedTable, people: KnownPeople, *, deepest: int) -> Links:
    """Return the links of an attacker who takes the nearest row, any of those that are equally near."""
    columns = tuple(_apart(published, name, item) for name, item in zip(people.names, people.columns, strict=True))
    space = _Space(people=people, columns=columns, sizes=published.sizes)
    nearest, ties = np.zeros(len(people.codes)), np.zeros(len(people.codes), dtype=np.int64)
    for block, total in space.distances(np.arange(len(people.codes))):
        nearest[block] = total.min(axis=1)
        ties[block] = space.rows(total <= (nearest[block, None] + _TIE).astype(np.float32))
    candidates = ties[people.kinds]

    def chance(chosen: NDArray[np.int64], own: NDArray[np.int64]) -> NDArray[np.float64]:
        kinds = people.kinds[chosen]
        reached = space.to_own(kinds, own) <= nearest[kinds] + _TIE
        return np.asarray(reached / ties[kinds])

    def ranks(chosen: NDArray[np.int64], own: NDArray[np.int64]) -> tuple[tuple[int, float], ...]:
        some = slice(None, None, max(len(chosen) // _RANKED, 1))
        shares = _rank_own_rows(space, people.kinds[chosen[some]], own[some], deepest=deepest).mean(axis=0)
        return tuple((place + 1, float(share)) for place, share in enumerate(shares))

    return Links(
        candidates=candidates, risks=1 / candidates, chance=chance, ranks=ranks, people=np.arange(len(people.kinds))
    )


def _rank_own_rows(
    space: _Space, kinds: NDArray[np.int64], own: NDArray[np.int64], *, deepest: int
) -> NDArray[np.float64]:
    """Return how likely each person's own row is among the first 1, 2, ... nearest rows; never, if suppressed."""
    found = np.zeros((len(kinds), deepest))
    for block, total in space.distances(kinds):
        classes = own[block]
        mine = total[np.arange(len(total)), np.maximum(classes, 0)][:, None]
        closer = space.rows(total < mine - np.float32(_TIE))
        ties = space.rows(total <= mine + np.float32(_TIE)) - closer
        # Among ties the own row is at a random place.
        reached = (np.arange(1, deepest + 1) - closer[:, None]) / np.maximum(ties, 1)[:, None]
        found[block] = np.where(classes[:, None] >= 0, np.clip(reached, 0, 1), 0.0)
    return found


def _apart(published: PublishedTable, name: str, column: CodedColumn) -> _Apart:
    shown = published.codes[:, published.quasi.index(name)]
    labels, numbers = _numbers(published.labels(name)), _numbers(column.values)
    if len(numbers) and np.isfinite(numbers).all() and np.isfinite(labels).all():
        apart: _Apart = _on_scale(numbers, labels[shown], column)
    else:
        apart = _read_apart(published, name, column, shown)
    return _spread(apart, len(column.values), len(shown))


def _read_apart(published: PublishedTable, name: str, column: CodedColumn, shown: NDArray[np.int32]) -> _Apart:
    read, leaves = read_column(published, name, column, strict=True)
    told = [not is_missing(label) for label in published.labels(name)]
    if read.attribute.is_numeric and np.isfinite(read.numbers[told]).all():
        own = np.append(leaf_numbers(read.attribute), np.nan)[np.minimum(leaves, len(read.attribute.leaves))]
        return _on_scale(own, read.numbers[shown], column)
    return _Listed(_in_tree(read, leaves), shown)


def _on_scale(values: NDArray[np.float64], shown: NDArray[np.float64], column: CodedColumn) -> _Scale:
    """Return distances in standard deviations of what is known; none, where everybody is the same."""
    known = values[column.codes[column.codes >= 0]]
    known = known[np.isfinite(known)]
    spread = float(known.std()) if len(known) else 0.0
    center = float(known.mean()) if len(known) else 0.0
    scale = 1 / spread if spread > 0 else 0.0
    return _Scale(
        np.append((values - center) * scale, np.nan).astype(np.float32), ((shown - center) * scale).astype(np.float32)
    )


def _in_tree(read: ReadLabels, leaves: NDArray[np.int64]) -> NDArray[np.float32]:
    """Return the squared distance of each value (row, the last one unknown) from each label."""
    members = np.maximum(read.member.sum(axis=1), 1)
    vague = (1 - 1 / members) / 2
    apart = np.where(read.member[:, leaves].T, vague, 1.0)
    return np.vstack([apart, np.zeros(apart.shape[1])]).astype(np.float32)


def _numbers(values: tuple[Any, ...]) -> NDArray[np.float64]:
    return np.array([_number(value) for value in values], dtype=np.float64)


def _number(value: Any) -> float:
    if is_missing(value) or isinstance(value, bool):
        return float("nan")
    found = number_in(value) if isinstance(value, str) else value
    return float(found) if isinstance(found, Real | Decimal) else float("nan")
