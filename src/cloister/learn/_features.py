"""Columns as features, from public facts: numbers within bounds, values, bins, and what an empty cell counts as."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from cloister.core.validation import check_count
from cloister.core.whole_rows import Floats
from cloister.data.bins import BinInterval
from cloister.errors import ParameterError, ParameterTypeError

__all__ = ["Binned", "Categorical", "Feature", "Numeric"]

_NARROWEST, _WIDEST = 1e-150, 1e150
_MOST_BINS = 4096
_WHOLE = 2**53
"""Up to here, a whole number and the float next to it are the same."""


@dataclass(frozen=True, slots=True)
class Numeric:
    """A number between public bounds."""

    name: str
    low: float
    high: float

    def __post_init__(self) -> None:
        if not (self.high - self.low >= _NARROWEST and max(abs(self.low), abs(self.high)) <= _WIDEST):
            raise ParameterError(
                f'The bounds of "{self.name}" are too close together or too far away for floating point.',
                fix="use bounds between -1e150 and 1e150 that leave room.",
            )

    def to_dict(self) -> dict[str, Any]:
        """Return JSON-ready values."""
        return {"name": self.name, "bounds": [self.low, self.high]}

    @property
    def example(self) -> float:
        """Return a number that is possible."""
        return (self.low + self.high) / 2

    def numbers(self, column: Any) -> Floats:  # an array, or what NumPy takes for one
        """Return the numbers, the middle of the bounds for missing ones."""
        numbers = _floats(self.name, column)
        missing = np.isnan(numbers)
        return np.where(missing, (self.low + self.high) / 2, numbers) if missing.any() else numbers

    def outside(self, column: Any) -> int:  # as above
        """Return how many numbers are not between the bounds."""
        numbers = _floats(self.name, column)
        return int(((numbers < self.low) | (numbers > self.high)).sum())


@dataclass(frozen=True, slots=True)
class Categorical:
    """One of some public values."""

    name: str
    values: tuple[Any, ...]

    def to_dict(self) -> dict[str, Any]:
        """Return JSON-ready values."""
        return {"name": self.name, "values": list(self.values)}

    @property
    def example(self) -> Any:
        """Return a value that is possible."""
        return self.values[0]

    @property
    def labels(self) -> tuple[str, ...]:
        """Return the values as texts."""
        return tuple(map(str, self.values))

    @property
    def cells(self) -> int:
        """Return how many positions there are: one for each value, and one for anything else."""
        return len(self.values) + 1

    @property
    def is_ordered(self) -> bool:
        """Return whether positions are those of a number."""
        return False

    def codes(self, column: Any) -> NDArray[np.int64]:  # an array, or what Arrow takes for one
        """Return the position of each value, the number of values for anything else."""
        if _has_numbers(column) and all(isinstance(value, int) and abs(value) < _WHOLE for value in self.values):
            return _whole_codes(column, self.values)
        held = _to_arrow(column)
        if pa.types.is_large_string(held.type) or pa.types.is_string(held.type):
            texts = pa.array([value if _is_text(value) else None for value in self.values], type=held.type)
            found = pc.index_in(held, value_set=texts, skip_nulls=True)
            return np.asarray(found.fill_null(len(self.values)).to_numpy(zero_copy_only=False).astype(np.int64))
        place = {value: position for position, value in enumerate(self.values)}
        known, inverse = _distinct(held)
        return np.array([place.get(value, len(place)) for value in known], dtype=np.int64)[inverse]


@dataclass(frozen=True, slots=True)
class Binned:
    """A number in public bins: from each edge up to, not including, the next; the outer bins take what lies outside."""

    name: str
    edges: tuple[float, ...]

    def to_dict(self) -> dict[str, Any]:
        """Return JSON-ready values."""
        return {"name": self.name, "edges": list(self.edges)}

    @property
    def example(self) -> float:
        """Return a number that is possible."""
        return self.edges[0]

    @property
    def labels(self) -> tuple[str, ...]:
        """Return the bins as texts."""
        return tuple(str(BinInterval(low, high)) for low, high in pairwise(self.edges))

    @property
    def cells(self) -> int:
        """Return how many bins there are."""
        return len(self.edges) - 1

    @property
    def is_ordered(self) -> bool:
        """Return whether positions are those of a number."""
        return True

    @classmethod
    def cut(cls, feature: Numeric, bins: Any) -> Binned:  # a number or edges
        """Return a number cut into so many bins of equal width, or at edges.

        Raises:
            ParameterError: if the number of bins is not sensible, or edges do not rise.
        """
        if np.ndim(bins) > 0:
            return cls.at(feature.name, bins)
        count = check_count(bins, name="bins", at_least=1)
        if count > _MOST_BINS:
            raise ParameterError(
                f"There are more than {_MOST_BINS} bins.", fix="use fewer bins: noise falls on each of them."
            )
        return cls.at(feature.name, np.linspace(feature.low, feature.high, count + 1))

    @classmethod
    def at(cls, name: str, edges: Any) -> Binned:  # what NumPy takes for numbers
        """Return a number cut at edges.

        Raises:
            ParameterError: if edges do not rise.
        """
        try:
            found = np.array(edges, dtype=np.float64)
        except (TypeError, ValueError):
            found = np.empty(0)
        if found.ndim != 1 or len(found) < 2 or not np.isfinite(found).all() or not (np.diff(found) > 0).all():
            raise ParameterError(
                "The edges of bins must be at least two finite numbers, the smallest first.",
                fix='write for example bins={"age": [17, 30, 45, 60, 90]}; the outer bins take what lies outside.',
            )
        return cls(name, tuple(found.tolist()))

    def places(self, numbers: Floats) -> NDArray[np.int64]:
        """Return the bin of each number, none of which is missing."""
        return np.asarray(np.searchsorted(np.array(self.edges[1:-1]), numbers, side="right"), dtype=np.int64)

    def codes(self, column: Any) -> NDArray[np.int64]:  # an array, or what NumPy takes for one
        """Return the number of each value's bin, the number of bins for what is missing."""
        numbers = _floats(self.name, column)
        return np.where(np.isnan(numbers), self.cells, self.places(numbers))

    def outside(self, column: Any) -> int:  # as above
        """Return how many numbers are not between the outer edges."""
        numbers = _floats(self.name, column)
        return int(((numbers < self.edges[0]) | (numbers > self.edges[-1])).sum())


Feature = Numeric | Categorical | Binned


def _floats(name: str, column: Any) -> Floats:
    try:
        return np.asarray(column, dtype=np.float64)
    except (TypeError, ValueError):
        raise ParameterTypeError(
            f'Column "{name}" has values that are not numbers.',
            fix="give its public values as a domain, or mend the data.",
        ) from None


def _has_numbers(column: Any) -> bool:
    kind = getattr(column, "dtype", None)
    return isinstance(kind, np.dtype) and kind.kind in "iufb" and kind.itemsize <= 8 and kind != np.uint64


def _whole_codes(column: Any, values: tuple[int, ...]) -> NDArray[np.int64]:
    """Return the position of each number in whole ones, the number of values for any other."""
    numbers, known = np.asarray(column), np.array(values, dtype=np.int64)
    if numbers.dtype.kind == "b":
        numbers = numbers.astype(np.int64)
    order = np.argsort(known)
    places = np.searchsorted(known[order], numbers)
    # A number above all known ones gets the place behind them, where nothing can match it.
    candidates = np.append(order, len(known))[places]
    return np.where(np.append(known, 0)[candidates] == numbers, candidates, len(known))


def _to_arrow(column: Any) -> pa.Array:
    """Return a column as Arrow holds it."""
    try:
        listed = pa.array(column, from_pandas=True)
    except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError):
        raise _mixture_error() from None
    return listed.combine_chunks() if isinstance(listed, pa.ChunkedArray) else listed


def _mixture_error() -> ParameterTypeError:
    return ParameterTypeError(
        "A column mixes values of several types, or has values that are not plain.",
        fix="make all values of a column texts, or all of them numbers.",
    )


def _is_text(value: Any) -> bool:
    """Return whether a value can stand in a column of texts; half a character cannot."""
    return isinstance(value, str) and not any("\ud800" <= letter <= "\udfff" for letter in value)


def _distinct(held: pa.Array) -> tuple[list[Any], NDArray[np.int64]]:
    """Return the different values of a column, and the position among them of each row's value."""
    try:
        coded = held.dictionary_encode(null_encoding="encode")
    except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError):
        raise _mixture_error() from None
    return coded.dictionary.to_pylist(), coded.indices.to_numpy(zero_copy_only=False).astype(np.int64)
