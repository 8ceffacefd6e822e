"""What devices hold: the features of people in a public order, and their classes, as codes or numbers.

Bins with public edges turn a number into one of a few values. Edges of equal width follow from public bounds. Edges
that put equally many people into every bin depend on people's numbers, so they may come from public numbers only, or
from quantiles that were released privately.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from cloister.core.validation import check_bounds, check_count
from cloister.errors import OutsideDomainError, ParameterError, ParameterTypeError, UnknownColumnError
from cloister.local.domain import Codes, Domain
from cloister.local.numeric._bounds import has_masked

__all__ = ["Bins", "LabeledPeople", "columns_of", "finite_numbers", "label_codes", "one_row"]


@dataclass(frozen=True)
class Bins:
    """Bins between successive edges; a number on an edge belongs to the bin above, one beyond the ends to the last.

    Attributes:
        edges: the ends of all bins, rising.

    >>> Bins.equal_width((0, 28), count=3).codes([0, 4, 12, 16, 16, 18, 24, 26, 28])
    array([0, 0, 1, 1, 1, 1, 2, 2, 2])
    """

    edges: tuple[float, ...]

    def __post_init__(self) -> None:
        found = finite_numbers(self.edges)
        if found.ndim != 1 or len(found) < 3 or not (np.diff(found) > 0).all():
            raise ParameterError(
                "The edges of bins do not rise, or there are fewer than two bins.",
                fix="give at least three rising numbers, such as edges=(0, 10, 20).",
            )
        object.__setattr__(self, "edges", tuple(found.tolist()))

    @classmethod
    def equal_width(cls, bounds: object, *, count: int) -> Bins:
        """Return bins of the same width between public bounds."""
        low, high = check_bounds(bounds)
        steps = check_count(count, name="count", at_least=2)
        return cls(tuple(float(low + (high - low) * step / steps) for step in range(steps + 1)))

    @classmethod
    def equal_frequency(cls, public: ArrayLike, *, count: int) -> Bins:
        """Return bins that hold about equally many of some public numbers; equal numbers stay together.

        Args:
            public: numbers that anybody may know. Those of the people who are asked must not be used.
            count: how many bins.

        >>> Bins.equal_frequency([0, 4, 12, 16, 16, 18, 24, 26, 28], count=3).edges
        (0.0, 14.0, 21.0, 28.0)
        """
        ordered = np.sort(finite_numbers(public).ravel())
        steps = check_count(count, name="count", at_least=2)
        if len(np.unique(ordered)) < steps:
            raise ParameterError(
                "There are fewer different public numbers than bins.", fix="use fewer bins, or bins of equal width."
            )
        cuts = [_cut(ordered, len(ordered) * step / steps) for step in range(1, steps)]
        return cls((float(ordered[0]), *dict.fromkeys(cuts), float(ordered[-1])))

    def __len__(self) -> int:
        return len(self.edges) - 1

    @property
    def names(self) -> tuple[str, ...]:
        """Return each bin as text."""
        ends = [f"{edge:g}" for edge in self.edges]
        closing = [")"] * (len(self) - 1) + ["]"]
        return tuple(f"[{low}, {high}{end}" for low, high, end in zip(ends, ends[1:], closing, strict=False))

    def codes(self, values: Any) -> Codes:  # a list, an array, a Series
        """Return the place of each number's bin.

        Raises:
            OutsideDomainError: if one is missing, infinite or not a number; it is not told which.
        """
        # The outer edges are left out: what lies beyond belongs to the first or the last bin.
        return np.searchsorted(np.array(self.edges[1:-1]), finite_numbers(values), side="right").astype(np.int64)


def finite_numbers(values: Any) -> NDArray[np.float64]:  # a list, an array, a Series
    """Return numbers as floats.

    Raises:
        OutsideDomainError: if one is missing, infinite or not a number; it is not told which.
    """
    try:
        found = np.asarray(None if has_masked(values) else values)
        numbers = found.astype(np.float64) if found.dtype.kind in "iufO" else None
    except (ValueError, TypeError):
        numbers = None
    if numbers is None or not np.isfinite(numbers).all():
        raise OutsideDomainError(
            "A value is missing, infinite or not a number.",
            fix='leave people without a number out on purpose, or make "no answer" a question of its own.',
        )
    return numbers


def _cut(ordered: NDArray[np.float64], place: float) -> float:
    """Return the middle between the two different neighbors nearest to a place in the order."""
    # Only places between different numbers can be cuts, as equal numbers stay together.
    gaps = np.flatnonzero(np.diff(ordered) > 0) + 1
    upper = int(gaps[np.argmin(np.abs(gaps - place))])
    return float((ordered[upper - 1] + ordered[upper]) / 2)


@dataclass(frozen=True, eq=False, repr=False)
class LabeledPeople:
    """Features of people, one array each, and their classes; never shown."""

    features: tuple[NDArray[Any], ...]
    labels: Codes

    def __len__(self) -> int:
        return len(self.labels)

    def some(self, chosen: NDArray[np.intp]) -> LabeledPeople:
        """Return the chosen people."""
        return LabeledPeople(tuple(column[chosen] for column in self.features), self.labels[chosen])


def columns_of(rows: Any, names: Sequence[str]) -> list[Any]:  # a frame, a mapping of columns, or rows of values
    """Return the columns of named features.

    Args:
        rows: a data frame or a mapping from names to columns; or a table of values whose columns are in the public
            order of the features.
        names: the features.
    """
    if isinstance(rows, Mapping) or hasattr(rows, "columns"):
        known = list(rows if isinstance(rows, Mapping) else getattr(rows, "column_names", rows.columns))
        absent = [name for name in names if name not in known]
        if absent:
            raise UnknownColumnError(absent[0], [str(name) for name in known])
        columns = [rows[name] for name in names]
    else:
        columns = _places(rows, len(names))
    if len({len(column) for column in columns}) > 1:
        raise ParameterError("The columns have different lengths.", fix="give one value per person in every column.")
    return columns


def label_codes(classes: Domain, labels: Any, people: int) -> Codes:  # a list, an array, a Series
    """Return the code of each person's class.

    Raises:
        OutsideDomainError: if one is missing or not a declared class.
        ParameterError: if there are more or fewer of them than people.
    """
    try:
        codes = classes.codes(labels)
    except OutsideDomainError:
        raise OutsideDomainError(
            "A label is missing or not among the declared classes.", fix="declare every class in classes=."
        ) from None
    if len(codes) != people:
        raise ParameterError("There are not as many labels as rows.", fix="give one label for each row.")
    return codes


def one_row(row: Any, names: Sequence[str]) -> Mapping[str, list[Any]]:  # a mapping or a sequence of values
    """Return one person's features as columns of length one."""
    if isinstance(row, Mapping):
        return {name: [row[name]] for name in names if name in row}
    if isinstance(row, str) or not hasattr(row, "__len__") or len(row) != len(names):
        raise ParameterTypeError(
            "This is not one person's row.",
            fix=f"give a mapping with {', '.join(names)}, or their values in this order.",
        )
    return {name: [value] for name, value in zip(names, row, strict=True)}


def _places(rows: Any, count: int) -> list[Any]:  # rows of values
    try:
        table = _table(rows)
    except ValueError:
        table = np.empty(0)
    if table.ndim != 2 or table.shape[1] != count:
        raise ParameterTypeError(
            f"These are not rows of {count} features.",
            fix="give a data frame, a mapping of columns, or rows with one value for each feature.",
        )
    return [table[:, place].tolist() for place in range(count)]


def _table(rows: Any) -> NDArray[Any]:  # rows of values
    """Return rows as an array in which masked values stay missing."""
    if isinstance(rows, np.ma.MaskedArray):
        return rows
    return np.asarray(rows) if isinstance(rows, np.ndarray) else np.array(rows, dtype=object)
