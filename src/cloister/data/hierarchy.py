"""Generalization hierarchies: from exact values, level by level, to ``*`` which says nothing.

A hierarchy is a tree with all leaves at the same depth (a domain generalization hierarchy, Samarati 2001). Level 0
holds the raw values, the highest level only the root ``*``. It is stored as integer codes, so that generalizing a
column is one NumPy look-up per level. The names in a hierarchy are public: they belong to the custodian, not to the
data. What is refused: a value under two parents, a name with two meanings, intervals that overlap, and an interval
that does not contain a value below it.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping, Sequence
from datetime import date, datetime
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from cloister.core.validation import check_count
from cloister.data import _hierarchy_layers as building, _hierarchy_layers as checks, text_files as file
from cloister.data.interval_labels import IntervalIndex, first_overlap, interval_in
from cloister.data.values import Codes, distinct_values, is_missing, is_single, text_of
from cloister.errors import DataWarning, HierarchyError, ParameterError, did_you_mean

ROOT = building.ROOT
MISSING = -1
_UNCOVERED = -2


class Node(NamedTuple):
    """One name at one level of a hierarchy."""

    level: int
    label: str


class Hierarchy:
    """An immutable tree of names over the values of one column.

    Build one with `from_levels`, `taxonomy`, `intervals`, `cuts`, `ordering`, `masking`, `dates` or `read_csv`.

    >>> ages = Hierarchy.intervals((30, 39), widths=[5])
    >>> ages.generalize(33, level=1)
    '[30, 35)'
    """

    def __init__(self, layers: building.Layers) -> None:
        checks.check_tree(layers)
        self._levels = layers.labels
        self._codes = layers.codes
        for codes in self._codes:
            codes.setflags(write=False)

    # Builders -----------------------------------------------------------------------------------------------------

    @classmethod
    def from_levels(cls, rows: Iterable[Sequence[object]] | Mapping[Any, Sequence[object]]) -> Hierarchy:
        """Build from one row per raw value: the value, its parent, its grandparent, and so on.

        Short rows are padded by repeating their last name, and the root ``*`` is added where it is missing.

        Raises:
            HierarchyError: if the rows are no tree, or a value lies outside the interval above it.
        """
        if isinstance(rows, Mapping):
            rows = [(value, *above) for value, above in rows.items()]
        return cls(building.layers_from_rows(rows))

    @classmethod
    def taxonomy(cls, tree: Mapping[Any, Any] | Sequence[Any]) -> Hierarchy:
        """Build from nested mappings; a list, or a name with None below it, holds raw values.

        >>> Hierarchy.taxonomy({"Government": ["State", "Local"], "Private": None}).levels[1]
        ('Government', 'Private')
        """
        return cls.from_levels(building.rows_of_tree(tree))

    @classmethod
    def intervals(
        cls,
        bounds: Sequence[object],
        *,
        widths: Sequence[object],
        step: object = 1,
        origin: object = None,
    ) -> Hierarchy:
        """Build half-open intervals ``[a, b)`` of growing widths over public bounds, both of which are values.

        Args:
            bounds: the smallest and the largest value, known without looking at the data.
            widths: the width of each level; each must be a multiple of the one before.
            step: the distance between raw values; None for any real number, and then the narrowest intervals are
                the leaves.
            origin: where intervals begin to be counted; the lower bound by default.
        """
        return cls(building.interval_layers(bounds, widths=widths, step=step, origin=origin))

    @classmethod
    def cuts(cls, bounds: Sequence[object], *, cuts: Sequence[Sequence[object]]) -> Hierarchy:
        """Build intervals from public cut points, fine level first; each level may only drop cuts.

        The cut points may be quantiles, but not of the protected data: those must be asked for privately.
        """
        return cls(building.cut_layers(bounds, cuts=cuts))

    @classmethod
    def ordering(cls, values: Sequence[object], *, sizes: Sequence[int]) -> Hierarchy:
        """Build groups of neighbors among ordered values; each size must be a multiple of the one before."""
        return cls(building.ordering_layers(values, sizes=sizes))

    @classmethod
    def masking(cls, values: Iterable[object] | int, *, mask: str = "*") -> Hierarchy:
        """Build by masking characters from the right: 12345, 1234*, 123**, 12***, 1****, then the root.

        Args:
            values: the raw values, or a number of digits to cover every number of that length.
            mask: the character that hides.
        """
        return cls(building.masking_layers(values, mask=mask))

    @classmethod
    def dates(cls, first: date | str, last: date | str) -> Hierarchy:
        """Build day, month, quarter, year, decade, ``*`` for every day between two public dates, both included."""
        return cls(building.date_layers(first, last))

    @classmethod
    def read_csv(cls, path: str | Path, *, strict: bool = False) -> Hierarchy:
        """Read the semicolon-separated form that ARX writes: one row per raw value, from the value to ``*``.

        Some published files name intervals that do not hold their values, such as 100 under "95-99". The tree is
        kept and such an interval is renamed after the range of its values, with a `DataWarning`; ``strict`` refuses
        the file instead.
        """
        return cls._from_text_rows(file.read_rows(path), strict=strict)

    @classmethod
    def parse(cls, text: str, *, strict: bool = False) -> Hierarchy:
        """Read the semicolon-separated form from a text, as `read_csv` does."""
        return cls._from_text_rows(file.parse_rows(text, where="The hierarchy"), strict=strict)

    @classmethod
    def _from_text_rows(cls, rows: list[list[str]], *, strict: bool) -> Hierarchy:
        layers = building.layers_from_texts(map(tuple, rows))
        renamed = False
        if not strict:
            layers, renamed = checks.truthful(layers)
        hierarchy = cls(layers)
        if renamed:
            warnings.warn(
                "Some intervals of the hierarchy did not hold their values and were renamed after them.",
                DataWarning,
                stacklevel=3,
            )
        return hierarchy

    # Facts ----------------------------------------------------------------------------------------------------------

    @property
    def levels(self) -> tuple[tuple[str, ...], ...]:
        """Return the names at each level, raw values first, the root last."""
        return self._levels

    @property
    def leaves(self) -> tuple[str, ...]:
        """Return the raw values as text; a value's code is its place here."""
        return self._levels[0]

    @property
    def height(self) -> int:
        """Return the level of the root."""
        return len(self._levels) - 1

    def codes_at(self, level: int) -> Codes:
        """Return, for each leaf code, the code of its ancestor at a level (its place in ``levels[level]``)."""
        return self._codes[self._check_level(level)]

    def parent(self, label: object) -> str | None:
        """Return the next different name above a name, or None for the root."""
        node = self._node(label)
        codes = self._codes[node.level]
        leaf = int(np.argmax(codes == self._places[node.level][node.label]))
        above = (self._levels[level][self._codes[level][leaf]] for level in range(node.level, self.height + 1))
        return next((name for name in above if name != node.label), None)

    def leaves_under(self, label: object) -> tuple[str, ...]:
        """Return the raw values that a name stands for."""
        node = self._node(label)
        found = np.flatnonzero(self._codes[node.level] == self._places[node.level][node.label])
        return tuple(self._levels[0][place] for place in found)

    def rows(self) -> list[tuple[str, ...]]:
        """Return one row per leaf: its name at every level."""
        columns = [
            np.array(labels, dtype=object)[codes] for labels, codes in zip(self._levels, self._codes, strict=True)
        ]
        return list(zip(*columns, strict=True))

    # Use ------------------------------------------------------------------------------------------------------------

    def encode(self, values: Iterable[Any]) -> Codes:
        """Return the leaf code of each value, -1 for a missing one.

        Raises:
            HierarchyError: if a value is not covered. The value is not shown; `uncovered` lists it for the custodian.
        """
        codes = self._codes_of(values)
        if (codes == _UNCOVERED).any():
            raise HierarchyError(
                "A value of the data is not covered by its hierarchy.",
                fix="list them with hierarchy.uncovered(values), then add them to the hierarchy or mend the data.",
            )
        return codes

    def generalize(self, values: Any, *, level: int) -> Any:
        """Return a value's name at a level; for many values, an array of names.

        A missing value stays missing (None) below the root, and is ``*`` at the root.
        """
        names = self._decoders[self._check_level(level)]
        codes = self.encode([values] if is_single(values) else values)
        # A missing value has no code: it picks the last entry, which is None, or the root at the top.
        result = names[np.where(codes == MISSING, len(names) - 1, self._codes[level][codes])]
        return result[0] if is_single(values) else result

    def lowest_common_ancestor(self, values: Any) -> Node:
        """Return the lowest node above all the values, at the lowest level at which they meet.

        A missing value meets others only at the root.
        """
        codes = np.unique(self.encode([values] if is_single(values) else values))
        if codes.size == 0:
            raise ParameterError("No values have no common ancestor.", fix="give at least one value.")
        for level in range(self.height if codes[0] != MISSING else 0):
            above = self._codes[level][codes]
            if (above == above[0]).all():
                return Node(level, self._levels[level][above[0]])
        return Node(self.height, ROOT)

    def covers(self, values: Any) -> bool:
        """Return whether every value (missing ones aside) is a leaf or lies in one."""
        return not (self._codes_of([values] if is_single(values) else values) == _UNCOVERED).any()

    def uncovered(self, values: Iterable[Any]) -> tuple[Any, ...]:
        """Return the distinct values that are not covered. They are data: show them to the custodian only."""
        distinct, _ = distinct_values(values)
        codes = self._codes_of(distinct)
        return tuple(distinct[int(place)] for place in np.flatnonzero(codes == _UNCOVERED))

    def validate(self, values: Iterable[Any]) -> None:
        """Return nothing when every given value is covered, else raise. The tree itself was checked when built."""
        self.encode(values)

    def write_csv(self, path: str | Path, *, overwrite: bool = False) -> None:
        """Write the semicolon-separated form."""
        file.write_rows(path, self.rows(), overwrite=overwrite)

    def to_csv_text(self) -> str:
        """Return the semicolon-separated form as text."""
        return file.format_rows(self.rows())

    # Inside -----------------------------------------------------------------------------------------------------------

    @cached_property
    def _places(self) -> tuple[dict[str, int], ...]:
        return tuple({label: place for place, label in enumerate(labels)} for labels in self._levels)

    @cached_property
    def _decoders(self) -> tuple[NDArray[np.object_], ...]:
        last = self.height
        return tuple(
            np.array([*labels, ROOT if level == last else None], dtype=object)
            for level, labels in enumerate(self._levels)
        )

    @cached_property
    def _interval_leaves(self) -> IntervalIndex | None:
        named = [(place, part) for place, label in enumerate(self.leaves) if (part := interval_in(label)) is not None]
        # Overlapping leaves would make the interval of a number depend on their order.
        if not named or first_overlap(self.leaves) is not None:
            return None
        return IntervalIndex(named)

    def _check_level(self, level: int) -> int:
        level = check_count(level, name="level")
        if level > self.height:
            raise ParameterError(
                f"level {level} is above the root, which is at level {self.height}.",
                fix=f"use a level from 0 to {self.height}.",
            )
        return level

    def _node(self, label: object) -> Node:
        name = text_of(label)
        # From the root down: a padded name stands for its highest node.
        for level in range(self.height, -1, -1):
            if name in self._places[level]:
                return Node(level, name)
        near = did_you_mean(name, (label for labels in self._levels[1:] for label in labels))
        raise HierarchyError(f'The hierarchy has no name "{name}".{near}', fix="use a name from hierarchy.levels.")

    def _codes_of(self, values: Iterable[Any]) -> Codes:
        # Numbers beside intervals are looked up all at once, without a text for each.
        if isinstance(values, np.ndarray) and values.dtype.kind in "iuf" and self._interval_leaves is not None:
            numbers = values.ravel().astype(np.float64)
            codes = self._interval_leaves.locate(numbers, otherwise=_UNCOVERED)
            return np.where(np.isnan(numbers), MISSING, codes)
        distinct, inverse = distinct_values(values)
        return np.array([self._code_of(value) for value in distinct], dtype=np.int64)[inverse]

    def _code_of(self, value: Any) -> int:
        if is_missing(value):
            return MISSING
        code = self._places[0].get(text_of(value))
        if code is not None:
            return code
        # A time lies in the day that it belongs to.
        if isinstance(value, datetime | np.datetime64):
            return self._places[0].get(text_of(value)[:10], _UNCOVERED)
        if self._interval_leaves is None or isinstance(value, str | bool):
            return _UNCOVERED
        return self._code_of_number(value)

    def _code_of_number(self, value: Any) -> int:
        try:
            number = np.array([float(value)])
        except (TypeError, ValueError, OverflowError):
            return _UNCOVERED
        found = self._interval_leaves.locate(number, otherwise=_UNCOVERED) if self._interval_leaves else number
        return int(found[0])

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Hierarchy):
            return NotImplemented
        same = self._levels == other._levels
        return same and all(np.array_equal(a, b) for a, b in zip(self._codes, other._codes, strict=True))

    def __hash__(self) -> int:
        return hash(self._levels)

    def __repr__(self) -> str:
        return f"Hierarchy({len(self.leaves)} leaves, {self.height + 1} levels)"
