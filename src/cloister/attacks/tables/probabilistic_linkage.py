"""Probabilistic linkage (Fellegi and Sunter 1969): fuzzy matching (Jaro-Winkler), weighed by how telling columns are.

A pair of a person and a row agrees, nearly agrees (misspelled, or close on the scale) or disagrees in each column. How
often that happens in pairs of one person (m) and of two (u) is learned by EM from the two tables alone, on the counts
of all patterns (Winkler 1988). A pair weighs ``log2(m / u)``, summed over columns; the heaviest row is linked. How
alike texts are is the measure of Jaro (1989) with the prefix bonus of Winkler (1990), for many pairs at once.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cloister.anonymize.labels import leaf_numbers
from cloister.attacks.tables._candidate_classes import CodedColumn, KnownPeople, read_column
from cloister.attacks.tables._published_table import PublishedTable
from cloister.attacks.tables._record_links import Links
from cloister.data.values import is_missing, text_of
from cloister.errors import ParameterError

__all__ = ["Learned", "jaro_winkler", "learn_weights", "link_by_weight"]


_TEXT_BLOCK = 1 << 16
_PREFIX = 4
_BONUS = 0.1


def jaro_winkler(first: Sequence[str], second: Sequence[str]) -> NDArray[np.float64]:
    """Return how alike each two texts are, place by place, between 0 and 1.

    >>> jaro_winkler(["martha", "dwayne", "abc"], ["marhta", "duane", "xyz"]).round(4).tolist()
    [0.9611, 0.84, 0.0]
    """
    found = [
        _block(first[start : start + _TEXT_BLOCK], second[start : start + _TEXT_BLOCK])
        for start in range(0, len(first), _TEXT_BLOCK)
    ]
    return np.concatenate(found) if found else np.zeros(0)


def _block(first: Sequence[str], second: Sequence[str]) -> NDArray[np.float64]:
    left, right = _characters(first), _characters(second)
    sizes = np.count_nonzero(left, axis=1), np.count_nonzero(right, axis=1)
    reach = np.maximum(np.maximum(*sizes) // 2 - 1, 0)
    used_left, used_right = np.zeros(left.shape, dtype=bool), np.zeros(right.shape, dtype=bool)
    # The loops are over letters; every step works on all pairs of texts at once.
    for place in range(left.shape[1]):
        free = left[:, place] != 0
        low = max(place - int(reach.max(initial=0)), 0)
        for other in range(low, min(place + int(reach.max(initial=0)) + 1, right.shape[1])):
            same = free & ~used_right[:, other] & (left[:, place] == right[:, other]) & (abs(place - other) <= reach)
            used_right[same, other] = True
            used_left[same, place] = True
            free &= ~same
    matched = used_left.sum(axis=1)
    moved = _count_transpositions(left, used_left, right, used_right) / 2
    with np.errstate(divide="ignore", invalid="ignore"):
        jaro = (matched / sizes[0] + matched / sizes[1] + (matched - moved) / matched) / 3
    jaro = np.where(matched > 0, jaro, 0.0)
    jaro = np.where((sizes[0] == 0) & (sizes[1] == 0), 1.0, jaro)
    return np.asarray(jaro + _common_prefix(left, right) * _BONUS * (1 - jaro))


def _characters(texts: Sequence[str]) -> NDArray[np.uint32]:
    """Return the code points of texts, filled up with zeros."""
    array = np.array([text.replace("\0", " ") for text in texts], dtype=np.str_)
    width = max(array.dtype.itemsize // 4, 1)
    return np.ascontiguousarray(array.astype(f"<U{width}")).view(np.uint32).reshape(len(texts), width)


def _count_transpositions(
    left: NDArray[np.uint32], used_left: NDArray[np.bool_], right: NDArray[np.uint32], used_right: NDArray[np.bool_]
) -> NDArray[np.int64]:
    """Return how many matched characters stand in another order."""
    width = max(left.shape[1], right.shape[1])
    return np.asarray((_pack_matches(left, used_left, width) != _pack_matches(right, used_right, width)).sum(axis=1))


def _pack_matches(letters: NDArray[np.uint32], used: NDArray[np.bool_], width: int) -> NDArray[np.uint32]:
    """Return the used characters of each text, moved to its front."""
    result = np.zeros((len(letters), width), dtype=np.uint32)
    rows, places = np.nonzero(used)
    result[rows, (np.cumsum(used, axis=1) - 1)[rows, places]] = letters[rows, places]
    return result


def _common_prefix(left: NDArray[np.uint32], right: NDArray[np.uint32]) -> NDArray[np.int64]:
    width = min(left.shape[1], right.shape[1], _PREFIX)
    same = (left[:, :width] == right[:, :width]) & (left[:, :width] != 0)
    return np.asarray(np.cumprod(same, axis=1).sum(axis=1))


_BLOCK = 1 << 20
_LARGEST = 1 << 22
_LARGEST_TABLE = 1 << 24
_MOST_TEXTS = 2_000_000
_LEARNED_FROM = 500
_ALIKE, _CLOSE = 0.88, 0.1
_BELIEF = np.array([0.04, 0.06, 0.9, 0.0])
_ROUNDS, _STILL = 200, 1e-6
DISAGREES, NEARLY, AGREES, UNKNOWN = range(4)
_STATES = 4


@dataclass(frozen=True, eq=False, kw_only=True)
class Learned:
    """What EM learned: how likely each state of each column is in pairs of one person, and in pairs of two.

    Attributes:
        same: m, one row per column and one entry per state (disagrees, nearly agrees, agrees, unknown).
        different: u, likewise.
        share: the share of pairs that are of one person.
    """

    same: NDArray[np.float64]
    different: NDArray[np.float64]
    share: float

    @property
    def ratios(self) -> NDArray[np.float64]:
        """Return the weight of each state in bits; agreement never counts against a link, the unknown never counts."""
        weights = np.log2(self.same / self.different)
        weights[:, AGREES] = np.maximum(weights[:, AGREES], 0.0)
        weights[:, DISAGREES] = np.minimum(weights[:, DISAGREES], 0.0)
        weights[:, UNKNOWN] = 0.0
        return np.asarray(weights)

    def weights(self, names: tuple[str, ...]) -> tuple[tuple[str, float], ...]:
        """Return what the agreement of each column weighs."""
        return tuple((name, float(weight)) for name, weight in zip(names, self.ratios[:, AGREES], strict=True))


def learn_weights(patterns: NDArray[np.int64], counts: NDArray[np.float64], *, rows: float) -> Learned:
    """Return what EM learns from how often patterns of states occur among pairs of a person and a row.

    Nearly all pairs are of two people, so that u is how often each state occurs; m and the share of pairs of one person
    are learned, and that share is at most one over the number of rows, since nobody has two. Where columns depend on
    each other, EM would take look-alikes for the same people: m starts from, and is drawn to, frequent agreement.

    Args:
        patterns: one pattern a line, one state per column.
        counts: how many pairs have each pattern.
        rows: the number of rows.
    """
    known = np.stack([patterns == state for state in range(_STATES)], axis=2)
    known[:, :, UNKNOWN] = False
    different = _shares(counts, known)
    belief = _BELIEF * np.ones((patterns.shape[1], 1))
    same, strength = belief + 1e-9, float(counts.sum()) / rows
    random = _likelihood(known, different)
    share = 1 / rows
    for _ in range(_ROUNDS):
        own = share * _likelihood(known, same)
        weight = counts * own / (own + (1 - share) * random)
        before, same = same, _shares(weight, known, prior=strength * belief)
        share = min(max(float(weight.sum() / counts.sum()), 0.1 / rows), 1 / rows)
        if np.abs(same - before).max() <= _STILL:
            break
    return Learned(same=same, different=different, share=share)


def _likelihood(states: NDArray[np.bool_], chances: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.asarray(np.exp(np.einsum("pcs,cs->p", states, np.log(chances))))


def _shares(
    weights: NDArray[np.float64], states: NDArray[np.bool_], *, prior: NDArray[np.float64] | float = 0.0
) -> NDArray[np.float64]:
    found = np.einsum("p,pcs->cs", weights, states) + prior + 1e-9
    return np.asarray(found / found.sum(axis=1, keepdims=True))


@dataclass(frozen=True, eq=False, kw_only=True)
class _Pairs:
    """All pairs of the people's combinations and the classes, by the pattern of their states."""

    people: KnownPeople
    states: tuple[NDArray[np.int8], ...]
    shown: NDArray[np.int32]
    sizes: NDArray[np.int64]

    @property
    def width(self) -> int:
        return int(_STATES ** len(self.states))

    def patterns(self, kinds: NDArray[np.int64]) -> Iterator[tuple[slice, NDArray[np.int32]]]:
        """Give, block by block, the number of the pattern of each combination (row) with each class (column)."""
        step = max(_BLOCK // max(len(self.sizes), 1), 1)
        for start in range(0, len(kinds), step):
            block = slice(start, min(start + step, len(kinds)))
            total = np.zeros((block.stop - block.start, len(self.sizes)), dtype=np.int32)
            for place in range(len(self.states)):
                total += self._shift(place, self.people.codes[kinds[block], place])
            yield block, total

    def _shift(self, place: int, codes: NDArray[np.int64]) -> NDArray[np.int32]:
        """Return the states of one column, as the digit of the pattern's number that they are."""
        whole = self._whole[place]
        if whole is not None:
            return np.asarray(whole[codes])
        return np.asarray(self._digits[place][codes][:, self.shown[:, place]])

    @cached_property
    def _digits(self) -> list[NDArray[np.int32]]:
        powers = _STATES ** np.arange(len(self.states) - 1, -1, -1)
        return [states.astype(np.int32) * np.int32(power) for states, power in zip(self.states, powers, strict=True)]

    @cached_property
    def _whole(self) -> list[NDArray[np.int32] | None]:
        """Return the digits of all values with all classes, where they fit into memory."""
        return [
            digits[:, self.shown[:, place]] if len(digits) * len(self.sizes) <= _LARGEST_TABLE else None
            for place, digits in enumerate(self._digits)
        ]

    def split(self, numbers: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the states of each column behind pattern numbers."""
        powers = _STATES ** np.arange(len(self.states) - 1, -1, -1)
        return np.asarray(numbers[:, None] // powers % _STATES)


def link_by_weight(published: PublishedTable, people: KnownPeople, *, learned: Learned | None = None) -> Links:
    """Return the links of an attacker who takes the row that weighs most, any of those that weigh the same."""
    if _STATES ** len(people.names) > _LARGEST:
        raise ParameterError(
            "There are too many columns for all patterns of agreement.",
            fix="name the most telling ones, at most eleven: columns=[...].",
        )
    states = tuple(_states(published, name, item) for name, item in zip(people.names, people.columns, strict=True))
    chosen = [published.quasi.index(name) for name in people.names]
    pairs = _Pairs(people=people, states=states, shown=published.codes[:, chosen], sizes=published.sizes)
    known = _learn(pairs) if learned is None else learned
    weight_of = known.ratios[np.arange(len(states)), pairs.split(np.arange(pairs.width))].sum(axis=1)
    best, ties, sums = _heaviest(pairs, weight_of)
    everywhere = float(pairs.sizes.sum())
    present = float(np.clip(known.share * everywhere, 1e-9, 1 - 1e-9)) / everywhere
    best_odds = present * 2.0**best
    # The heaviest row is held against all rows, and against the person's not being there at all.
    risks = best_odds / (present * sums + 1 - present * everywhere)

    def chance(chosen: NDArray[np.int64], own: NDArray[np.int64]) -> NDArray[np.float64]:
        kinds = people.kinds[chosen]
        weights = _weights_of(pairs, kinds, np.maximum(own, 0), known)
        right = (own >= 0) & (weights >= best[kinds] - 1e-9)
        return np.asarray(right / ties[kinds])

    return Links(
        candidates=ties[people.kinds],
        risks=np.clip(risks, 0, 1)[people.kinds],
        chance=chance,
        people=np.arange(len(people.kinds)),
        learned=known,
    )


def _learn(pairs: _Pairs) -> Learned:
    """Return what EM learns from the pairs of some hundred of the people's combinations, spread evenly."""
    count = len(pairs.people.codes)
    kinds = np.unique(np.linspace(0, count - 1, min(count, _LEARNED_FROM)).astype(np.int64))
    rows = np.bincount(pairs.people.kinds, minlength=count)[kinds]
    totals = np.zeros(pairs.width)
    for block, numbers in pairs.patterns(kinds):
        weights = rows[block, None] * pairs.sizes
        totals += np.bincount(numbers.ravel(), weights=weights.ravel(), minlength=pairs.width)
    found = np.flatnonzero(totals)
    return learn_weights(pairs.split(found), totals[found], rows=float(pairs.sizes.sum()))


def _heaviest(
    pairs: _Pairs, weight_of: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.int64], NDArray[np.float64]]:
    """Return each combination's largest weight, how many rows have it, and the summed odds of all rows."""
    count = len(pairs.people.codes)
    best, ties, sums = np.zeros(count), np.zeros(count, dtype=np.int64), np.zeros(count)
    odds_of = 2.0**weight_of
    for block, numbers in pairs.patterns(np.arange(count)):
        weights = weight_of[numbers]
        best[block] = weights.max(axis=1)
        ties[block] = _rows(weights >= best[block, None] - 1e-9, pairs.sizes)
        sums[block] = odds_of[numbers] @ pairs.sizes.astype(np.float64)
    return best, ties, sums


def _rows(mask: NDArray[np.bool_], sizes: NDArray[np.int64]) -> NDArray[np.int64]:
    return np.rint(mask.astype(np.float64) @ sizes.astype(np.float64)).astype(np.int64)


def _weights_of(
    pairs: _Pairs, kinds: NDArray[np.int64], classes: NDArray[np.int64], learned: Learned
) -> NDArray[np.float64]:
    total = np.zeros(len(kinds))
    for place, states in enumerate(pairs.states):
        found = states[pairs.people.codes[kinds, place], pairs.shown[classes, place]]
        total += learned.ratios[place, found]
    return total


def _states(published: PublishedTable, name: str, column: CodedColumn) -> NDArray[np.int8]:
    """Return how each value (row, the last one unknown) agrees with each label."""
    labels = published.labels(name)
    read, leaves = read_column(published, name, column)
    states = np.where(read.member[:, leaves].T, AGREES, DISAGREES).astype(np.int8)
    states[:, [is_missing(label) for label in labels]] = UNKNOWN
    near = _near(read, leaves, labels, column)
    if near is not None:
        states[near & (states == DISAGREES)] = NEARLY
    return np.vstack([states, np.full(len(labels), UNKNOWN, dtype=np.int8)])


def _near(
    read: Any, leaves: NDArray[np.int64], labels: tuple[Any, ...], column: CodedColumn
) -> NDArray[np.bool_] | None:
    """Return which values nearly agree with which labels: close on the scale, or a few letters apart."""
    if read.attribute.has_hierarchy or not column.values:
        return None
    if read.attribute.is_numeric:
        own = np.append(leaf_numbers(read.attribute), np.nan)[np.minimum(leaves, len(read.attribute.leaves))]
        spread = float(np.nanstd(own))
        with np.errstate(invalid="ignore"):
            return np.asarray(np.abs(own[:, None] - read.numbers) <= _CLOSE * spread)
    if len(column.values) * len(labels) > _MOST_TEXTS or not all(isinstance(value, str) for value in column.values):
        return None
    texts = [value.casefold() for value in column.values]
    shown = ["" if is_missing(label) else text_of(label).casefold() for label in labels]
    alike = jaro_winkler([text for text in texts for _ in shown], shown * len(texts))
    return np.asarray(alike.reshape(len(texts), len(shown)) >= _ALIKE)
