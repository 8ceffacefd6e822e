"""Quasi-identifiers as integers: leaf codes, and the node above each leaf at every level.

A `CodedAttribute` is a column's public hierarchy (or, without one, its values and the root) in arrays. Leaf codes of an
ordered attribute follow its order, so that an interval is a range of codes; a missing value is a leaf of its own, the
last, which meets the others at the root only.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from cloister.data.columns import BOUNDED, Column, Kind
from cloister.data.hierarchy import ROOT, Hierarchy
from cloister.data.interval_labels import interval_in, number_in
from cloister.data.values import text_of
from cloister.errors import HierarchyError, SchemaError

Codes: TypeAlias = NDArray[np.int32]
_PARTS = (16, 8, 4, 2)


@dataclass(frozen=True, eq=False, kw_only=True)
class CodedAttribute:
    """One quasi-identifier.

    Attributes:
        name: the column.
        leaves: what each leaf code stands for; None, last, for a missing value.
        ancestors: for each level, the node of each leaf; level 0 is the leaves themselves, the last level the root.
        labels: for each level, the name of each node; None is a missing value.
        positions: the place of each leaf on the scale of an ordered attribute, else None.
        span: the length of that scale.
        weight: how much the precision of the column matters.
        has_hierarchy: whether a person gave the levels.
        is_numeric: whether the leaves are numbers, so that they have means.
    """

    name: str
    leaves: tuple[Any, ...]
    ancestors: tuple[Codes, ...]
    labels: tuple[tuple[str | None, ...], ...]
    positions: NDArray[np.float64] | None = None
    span: float = 0.0
    weight: float = 1.0
    has_hierarchy: bool = False
    is_numeric: bool = False

    def __repr__(self) -> str:
        return f"Attribute({self.name!r}, levels={len(self.ancestors)})"

    @property
    def height(self) -> int:
        """Return the level of the root."""
        return len(self.ancestors) - 1

    @property
    def is_ordered(self) -> bool:
        """Return whether intervals of leaves mean something."""
        return self.positions is not None

    @property
    def has_missing(self) -> bool:
        """Return whether the last leaf stands for missing values."""
        return self.leaves[-1] is None

    def size(self, level: int) -> int:
        """Return the number of nodes of a level."""
        return len(self.labels[level])

    @cached_property
    def leaf_counts(self) -> tuple[NDArray[np.int64], ...]:
        """Return, for each level, how many leaves each node has."""
        pairs = zip(self.ancestors, self.labels, strict=True)
        return tuple(np.bincount(codes, minlength=len(names)) for codes, names in pairs)

    @cached_property
    def node_losses(self) -> tuple[NDArray[np.float64], ...]:
        """Return, for each level, the LM loss of each node: (its leaves - 1) / (all leaves - 1) (Iyengar 2002)."""
        scale = max(len(self.leaves) - 1, 1)
        return tuple((counts - 1) / scale for counts in self.leaf_counts)

    @cached_property
    def leaf_losses(self) -> NDArray[np.float64]:
        """Return the LM loss of each leaf (column) at each level (row)."""
        pairs = zip(self.node_losses, self.ancestors, strict=True)
        return np.stack([losses[codes] for losses, codes in pairs])

    @cached_property
    def meeting_levels(self) -> NDArray[np.int8]:
        """Return the lowest level at which each two leaves have the same ancestor."""
        codes = np.stack(self.ancestors)
        return np.asarray((codes[:, :, None] != codes[:, None, :]).sum(axis=0, dtype=np.int8))

    def with_weight(self, weight: float) -> CodedAttribute:
        """Return the same attribute with another weight."""
        return replace(self, weight=weight)


def attribute_of(column: Column, values: Sequence[Any]) -> tuple[CodedAttribute, Codes]:
    """Return the attribute of a column, and the leaf code of each of the values that occur in it.

    Raises:
        HierarchyError: if the hierarchy does not cover a value.
        SchemaError: if a value lies outside the declared categories or bounds.
    """
    if column.hierarchy is not None:
        return _from_hierarchy(column, column.hierarchy, values)
    return _without_hierarchy(column, values)


def _from_hierarchy(column: Column, hierarchy: Hierarchy, values: Sequence[Any]) -> tuple[CodedAttribute, Codes]:
    try:
        raw = hierarchy.encode(list(values))
    except HierarchyError:
        raise HierarchyError(
            f'The hierarchy of "{column.name}" misses values that occur in the data.',
            fix="add them to the hierarchy (hierarchy.uncovered(values) lists them); where they mean nothing, like "
            '"?", declare them as missing when the table is opened: missing=["?"], or --missing "?".',
        ) from None
    has_missing = bool((raw < 0).any())
    order = _leaf_order(column, hierarchy)
    place = np.empty(len(order), dtype=np.int32)
    place[order] = np.arange(len(order), dtype=np.int32)
    # A missing value is behind all leaves, as a leaf of its own.
    codes = np.where(raw < 0, len(order), place[raw]).astype(np.int32)
    positions = None
    if column.kind in BOUNDED:
        positions = np.arange(len(order), dtype=np.float64)
    attribute = CodedAttribute(
        name=column.name,
        leaves=tuple(hierarchy.leaves[place] for place in order) + ((None,) if has_missing else ()),
        ancestors=tuple(_ancestors(hierarchy, level, order, has_missing=has_missing) for level in _levels(hierarchy)),
        labels=tuple(_labels(hierarchy, level, order, has_missing=has_missing) for level in _levels(hierarchy)),
        positions=_with_missing(positions, has_missing=has_missing),
        span=float(max(len(order) - 1, 0)),
        weight=float(column.weight),
        has_hierarchy=True,
        is_numeric=column.kind is Kind.NUMERIC and all(number_in(leaf) is not None for leaf in hierarchy.leaves),
    )
    return attribute, codes


def _levels(hierarchy: Hierarchy) -> range:
    return range(hierarchy.height + 1)


def _leaf_order(column: Column, hierarchy: Hierarchy) -> NDArray[np.int64]:
    """Return the leaves in the order of the scale, or as the hierarchy lists them."""
    if column.kind not in BOUNDED:
        return np.arange(len(hierarchy.leaves))
    if column.kind is Kind.ORDINAL and column.categories is not None:
        rank = {text_of(category): number for number, category in enumerate(column.categories)}
        keys: list[Any] = [rank.get(leaf, len(rank)) for leaf in hierarchy.leaves]
    elif column.kind is Kind.DATETIME:
        keys = list(hierarchy.leaves)
    else:
        keys = [_number(leaf) for leaf in hierarchy.leaves]
        # Leaves without a number have no place on the scale, so that the hierarchy's own order stays.
        if None in keys:
            return np.arange(len(hierarchy.leaves))
    return np.array(sorted(range(len(keys)), key=lambda place: keys[place]), dtype=np.int64)


def _number(leaf: str) -> float | None:
    number = number_in(leaf)
    if number is not None:
        return float(number)
    interval = interval_in(leaf)
    if interval is None:
        return None
    return float("-inf") if interval.low is None else float(interval.low)


def _ancestors(hierarchy: Hierarchy, level: int, order: NDArray[np.int64], *, has_missing: bool) -> Codes:
    if level == 0:
        return np.arange(len(order) + has_missing, dtype=np.int32)
    codes = hierarchy.codes_at(level)[order].astype(np.int32)
    if not has_missing:
        return codes
    # Only at the root does a missing value meet the others.
    own = 0 if level == hierarchy.height else len(hierarchy.levels[level])
    return np.append(codes, np.int32(own))


def _labels(hierarchy: Hierarchy, level: int, order: NDArray[np.int64], *, has_missing: bool) -> tuple[str | None, ...]:
    names = hierarchy.levels[level]
    if level == 0:
        names = tuple(names[place] for place in order)
    return (*names, None) if has_missing and level < hierarchy.height else names


def _without_hierarchy(column: Column, values: Sequence[Any]) -> tuple[CodedAttribute, Codes]:
    """Return an attribute of the values that occur (or are declared), intervals of an ordered one, and the root."""
    present = [item for item in values if item is not None]
    leaves = _list_leaves(column, present)
    has_missing = len(present) < len(values)
    codes = np.full(len(values), len(leaves), dtype=np.int32)
    codes[[item is not None for item in values]] = _places(column, present, leaves)
    count = len(leaves) + has_missing
    positions = None
    if column.kind in BOUNDED and leaves:
        positions = _finite(np.array([_position(leaf, number) for number, leaf in enumerate(leaves)]))
    ancestors, labels = _halve_scale(leaves, positions)
    missing_label: tuple[str | None, ...] = (None,) if has_missing else ()
    missing_codes = [np.arange(len(names), len(names) + has_missing, dtype=np.int32) for names in labels]
    attribute = CodedAttribute(
        name=column.name,
        leaves=(*leaves, None) if has_missing else tuple(leaves),
        ancestors=(
            *(np.append(codes, own) for codes, own in zip(ancestors, missing_codes, strict=True)),
            np.zeros(count, dtype=np.int32),
        ),
        labels=(*(names + missing_label for names in labels), (ROOT,)),
        positions=_with_missing(positions, has_missing=has_missing),
        span=_span(column, positions),
        weight=float(column.weight),
        is_numeric=column.kind is Kind.NUMERIC,
    )
    return attribute, codes


def _places(column: Column, present: list[Any], leaves: list[Any]) -> Codes:
    """Return the leaf of each value; without declared categories the values are the leaves."""
    if leaves is present:
        return np.arange(len(present), dtype=np.int32)
    place = {text_of(leaf): number for number, leaf in enumerate(leaves)}
    try:
        return np.array([place[text_of(item)] for item in present], dtype=np.int32)
    except KeyError:
        raise SchemaError(
            f'Values of "{column.name}" are not among its declared categories.',
            fix=f'mend the data, or declare every category: schema.with_categories("{column.name}", [...]).',
        ) from None


def _halve_scale(
    leaves: Sequence[Any], positions: NDArray[np.float64] | None
) -> tuple[list[Codes], list[tuple[str | None, ...]]]:
    """Return the levels below the root: the leaves and, on a scale, equal parts of it, from sixteen down to two."""
    ancestors: list[Codes] = [np.arange(len(leaves), dtype=np.int32)]
    labels: list[tuple[str | None, ...]] = [tuple(map(text_of, leaves))]
    if positions is None or not len(positions) or positions[-1] <= positions[0]:
        return ancestors, labels
    shares = (positions - positions[0]) / (positions[-1] - positions[0])
    for parts in _PARTS:
        # The largest value belongs to the last part, and not to one of its own.
        place = np.minimum((shares * parts).astype(np.int64), parts - 1)
        codes = np.unique(place, return_inverse=True)[1].ravel().astype(np.int32)
        # A level is kept only if it puts something together and is not yet the root.
        if 1 < codes[-1] + 1 < len(labels[-1]):
            ancestors.append(codes)
            labels.append(tuple(_range_label(leaves, np.flatnonzero(codes == code)) for code in range(codes[-1] + 1)))
    return ancestors, labels


def _range_label(leaves: Sequence[Any], members: NDArray[np.int64]) -> str:
    first, last = text_of(leaves[members[0]]), text_of(leaves[members[-1]])
    return first if len(members) == 1 else f"[{first}, {last}]"


def _list_leaves(column: Column, present: list[Any]) -> list[Any]:
    if column.categories is None or "categories" in column.guessed:
        return present
    if column.kind in (Kind.NUMERIC, Kind.DATETIME):
        return sorted(column.categories, key=lambda item: _position(item, 0))
    return list(column.categories)


def _position(leaf: Any, rank: int) -> float:
    """Return the place of a value on its scale: numbers and dates as they are, other values by rank."""
    if isinstance(leaf, bool | str):
        return float(rank)
    if isinstance(leaf, dt.datetime):
        return leaf.replace(tzinfo=dt.UTC).timestamp() / 86400
    if isinstance(leaf, dt.date):
        return float(leaf.toordinal())
    return float(leaf)


def _finite(positions: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return places in which infinities lie one width of the scale beyond it."""
    known = positions[np.isfinite(positions)]
    low, high = (known.min(), known.max()) if len(known) else (0.0, 0.0)
    width = high - low if high > low else 1.0
    # Infinite ends are values too, but must not stretch the scale without end.
    return np.clip(positions, low - width, high + width)


def _span(column: Column, positions: NDArray[np.float64] | None) -> float:
    if positions is None or not len(positions):
        return 0.0
    low, high = float(positions.min()), float(positions.max())
    # Declared bounds are public and make losses comparable between tables; guessed ones are not.
    if column.bounds is not None and "bounds" not in column.guessed:
        lower, upper = (_position(bound, 0) for bound in column.bounds)
        low, high = min(low, lower), max(high, upper)
    return high - low


def _with_missing(positions: NDArray[np.float64] | None, *, has_missing: bool) -> NDArray[np.float64] | None:
    return np.append(positions, np.nan) if positions is not None and has_missing else positions
