"""Reading released cells back: which raw values a label such as ``[30, 35)``, ``{Paris, Rome}`` or ``130**`` allows.

Labels are looked up in the column's hierarchy first; then they are read as sets, intervals and masked texts. A number
that is no raw value (a mean) is a point: it allows the nearest raw value and loses nothing by the LM measure.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from cloister.anonymize.attributes import CodedAttribute
from cloister.data.hierarchy import ROOT
from cloister.data.interval_labels import LabelInterval, interval_in, number_in
from cloister.data.values import is_missing, text_of
from cloister.errors import SchemaError

__all__ = ["ReadLabels", "leaf_numbers", "read_labels"]

_MASKED = re.compile(r"(.+?)[*#xX]+")


@dataclass(frozen=True, eq=False, kw_only=True)
class ReadLabels:
    """What the labels of one released column stand for.

    Attributes:
        attribute: the raw column.
        member: which leaves (columns) each label (row) allows.
        levels: the level of the hierarchy that each label reaches.
        losses: the LM loss of each label, between 0 and 1.
        numbers: the number in the middle of each label, or not a number.
    """

    attribute: CodedAttribute
    member: NDArray[np.bool_]
    levels: NDArray[np.int64]
    losses: NDArray[np.float64]
    numbers: NDArray[np.float64]

    @cached_property
    def shares(self) -> NDArray[np.float64]:
        """Return how likely each leaf is under each label if all it allows are equally likely."""
        return np.asarray(self.member / self.member.sum(axis=1, keepdims=True))


LeavesOf: TypeAlias = "Callable[[Any], NDArray[np.int64]]"


def read_labels(
    attribute: CodedAttribute, labels: Sequence[Any], *, unknown: str = "refuse", leaves_of: LeavesOf | None = None
) -> ReadLabels:
    """Read the labels of a released column.

    Args:
        attribute: the raw column.
        labels: what is shown instead.
        unknown: what to do with a label that allows no raw value: refuse it, or let it stand for "nobody".
        leaves_of: the leaves behind a label that is no name and cannot be read, where somebody knows them.

    Raises:
        SchemaError: if a label is neither a name of the hierarchy nor a set, an interval or a masked text.
    """
    reader = _Reader(attribute, strict=unknown == "refuse", leaves_of=leaves_of)
    member = np.zeros((len(labels), len(attribute.leaves)), dtype=bool)
    losses, numbers = np.zeros(len(labels)), np.full(len(labels), np.nan)
    levels = np.zeros(len(labels), dtype=np.int64)
    for row, label in enumerate(labels):
        found = reader.read(label)
        member[row, found.leaves] = True
        levels[row] = _level(attribute, found.leaves)
        losses[row] = found.loss
        numbers[row] = found.number
    return ReadLabels(attribute=attribute, member=member, levels=levels, losses=losses, numbers=numbers)


def leaf_numbers(attribute: CodedAttribute) -> NDArray[np.float64]:
    """Return the number that each leaf stands for (the middle of an interval), or not a number."""
    return np.array([_number(leaf) for leaf in attribute.leaves], dtype=np.float64)


@dataclass(frozen=True, slots=True)
class _Reading:
    leaves: NDArray[np.int64]
    loss: float
    number: float = float("nan")


class _Reader:
    def __init__(self, attribute: CodedAttribute, *, strict: bool, leaves_of: LeavesOf | None) -> None:
        self._attribute = attribute
        self._leaves_of = leaves_of
        self._strict = strict
        self._nodes: dict[str, tuple[int, int]] = {}
        # From the root down, so that a name on several levels means the finest of them.
        for level in self._named_levels():
            named = enumerate(attribute.labels[level])
            self._nodes.update({name: (level, node) for node, name in named if name is not None})
        self._numbers = leaf_numbers(attribute)
        # A name may hold commas itself: so many parts between commas can belong to one name.
        self._most_parts = 1 + max((name.count(",") for name in attribute.labels[0] if name is not None), default=0)
        self._everything = np.arange(len(attribute.leaves))

    def _named_levels(self) -> range:
        """Return the levels whose names are looked up; on a scale without a hierarchy, intervals say it themselves."""
        own = self._attribute.is_ordered and not self._attribute.has_hierarchy
        return range(0 if own else self._attribute.height, -1, -1)

    def read(self, label: Any) -> _Reading:
        if is_missing(label):
            missing = self._everything[-1:] if self._attribute.has_missing else self._everything
            return self._of(missing, loss=0.0 if self._attribute.has_missing else 1.0)
        name = text_of(label)
        if name in self._nodes:
            return self._node(*self._nodes[name])
        if name and not name.strip(ROOT):
            return self._of(self._everything, loss=1.0)
        ways = (self._set, self._range, self._interval, self._read_masked)
        # Where people are looked for, a number that is no raw value fits nobody; elsewhere it stands for the nearest
        # one.
        for way in (self._point, *ways) if self._strict else ways:
            found = way(name)
            if found is not None:
                return found
        if not self._strict:
            return _Reading(self._everything[:0], 0.0)
        if self._leaves_of is not None:
            leaves = self._leaves_of(label)
            return self._of(leaves, loss=(len(leaves) - 1) / max(len(self._attribute.leaves) - 1, 1))
        raise SchemaError(
            f'A label of "{self._attribute.name}" is not in its hierarchy and is no set, interval or masked text.',
            fix=f'give the hierarchy that was used: schema.with_hierarchy("{self._attribute.name}", ...).',
        )

    def _of(self, leaves: NDArray[np.int64], *, loss: float, number: float = float("nan")) -> _Reading:
        known = self._numbers[leaves]
        known = known[np.isfinite(known)]
        if np.isnan(number) and len(known):
            number = float(known.mean())
        return _Reading(leaves, loss, number)

    def _node(self, level: int, node: int) -> _Reading:
        leaves = np.flatnonzero(self._attribute.ancestors[level] == node)
        return self._of(leaves, loss=float(self._attribute.node_losses[level][node]))

    def _set(self, name: str) -> _Reading | None:
        if not (name.startswith("{") and name.endswith("}")):
            return None
        leaves = self._members(name[1:-1].split(","))
        if leaves is None:
            return None
        known = np.unique(np.array(leaves, dtype=np.int64))
        return self._of(known, loss=(len(known) - 1) / max(len(self._attribute.leaves) - 1, 1))

    def _members(self, parts: list[str]) -> list[int] | None:
        """Return the leaves that parts between commas name; a name may itself hold commas."""
        ways: list[list[int] | None] = [[]]
        # Every end is reached from the longest name before it that leads back to the start.
        for end in range(1, len(parts) + 1):
            found = None
            for start in range(max(end - self._most_parts, 0), end):
                leaf, before = self._leaf(",".join(parts[start:end]).strip()), ways[start]
                if leaf is not None and before is not None:
                    found = [*before, leaf]
                    break
            ways.append(found)
        return ways[-1]

    def _range(self, name: str) -> _Reading | None:
        """Read a closed interval between two values of an ordered column, such as dates or grades."""
        attribute = self._attribute
        if not attribute.is_ordered or not (name.startswith("[") and name.endswith("]")):
            return None
        parts = name[1:-1].split(", ")
        for cut in range(1, len(parts)):
            low, high = self._leaf(", ".join(parts[:cut])), self._leaf(", ".join(parts[cut:]))
            if low is not None and high is not None and low <= high:
                inside = np.arange(low, high + 1)
                return self._of(inside, loss=self._span(low, high))
        return None

    def _span(self, low: int, high: int) -> float:
        """Return the length of a range of leaves over that of the column, by leaves where a person named them all."""
        attribute = self._attribute
        # A hierarchy's own leaves are a scale of equal steps.
        if attribute.positions is None or attribute.has_hierarchy:
            return (high - low) / max(len(attribute.leaves) - 1, 1)
        return float((attribute.positions[high] - attribute.positions[low]) / attribute.span) if attribute.span else 0.0

    def _leaf(self, name: str) -> int | None:
        if name == "missing" and self._attribute.has_missing:
            return len(self._attribute.leaves) - 1
        level, node = self._nodes.get(name, (-1, -1))
        return node if level == 0 else None

    def _point(self, name: str) -> _Reading | None:
        number = number_in(name)
        if number is None or not np.isfinite(self._numbers).any():
            return None
        nearest = np.nanargmin(np.abs(self._numbers - float(number)))
        return _Reading(np.array([nearest]), 0.0, float(number))

    def _interval(self, name: str) -> _Reading | None:
        interval = interval_in(name)
        if interval is None:
            return None
        inside = np.flatnonzero(_inside(interval, self._numbers))
        if not len(inside):
            return None
        return self._of(inside, loss=self._width(interval, inside))

    def _width(self, interval: LabelInterval, inside: NDArray[np.int64]) -> float:
        """Return the length of an interval over that of the column, by leaves where a person named them all."""
        attribute = self._attribute
        if attribute.positions is None or attribute.has_hierarchy:
            return (len(inside) - 1) / max(len(attribute.leaves) - 1, 1)
        low = attribute.positions[inside].min() if interval.low is None else float(interval.low)
        high = attribute.positions[inside].max() if interval.high is None else float(interval.high)
        return float(min(1.0, (high - low) / attribute.span)) if attribute.span else 0.0

    def _read_masked(self, name: str) -> _Reading | None:
        match = _MASKED.fullmatch(name)
        if match is None:
            return None
        texts = ["" if leaf is None else text_of(leaf) for leaf in self._attribute.leaves]
        # A mask hides characters one by one, so that the length still tells something.
        fits = [len(text) == len(name) and text.startswith(match[1]) for text in texts]
        leaves = np.flatnonzero(np.array(fits))
        return self._of(leaves, loss=(len(leaves) - 1) / max(len(texts) - 1, 1)) if len(leaves) else None


def _inside(interval: LabelInterval, numbers: NDArray[np.float64]) -> NDArray[np.bool_]:
    low = -np.inf if interval.low is None else float(interval.low)
    high = np.inf if interval.high is None else float(interval.high)
    above = numbers >= low if interval.low_closed else numbers > low
    return np.asarray(above & (numbers <= high if interval.high_closed else numbers < high))


def _number(leaf: Any) -> float:
    if leaf is None or isinstance(leaf, bool):
        return float("nan")
    name = text_of(leaf)
    number = number_in(name)
    if number is not None:
        return float(number)
    interval = interval_in(name)
    if interval is None or interval.low is None or interval.high is None:
        return float("nan")
    return float(interval.low + interval.high) / 2


def _level(attribute: CodedAttribute, leaves: NDArray[np.int64]) -> int:
    """Return the lowest level at which all leaves of a label have one ancestor."""
    if not len(leaves):
        return 0
    above = (codes[leaves] for codes in attribute.ancestors[:-1])
    # Ancestors that differ at a level differ at all levels below it.
    return sum(int((codes != codes[0]).any()) for codes in above)
