"""How columns become numbers, or a few cells, from public facts alone: bounds for numbers, values for categories.

A number stays a number, or is cut into public bins. A category becomes one column per declared value, 1 where it is
the value (`Encoding.matrix`), or its position in the declared values (`Encoding.codes`); so does a bin. What is
missing, or not among the declared values, is the middle of the bounds, no value at all, or the position after the last
one: each row is encoded by itself, whatever the others are.

`FeatureBins` is what counts learn from, out of rows that are encoded already: every feature as one of a few public
cells. A number falls into the bin from an edge up to, not including, the next one; what lies outside of the bounds
falls into the outer bins. A category is its position in the declared values, and what is missing or undeclared the
position after the last. Each row is binned by itself.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cloister.core.validation import check_bounds, check_count
from cloister.core.whole_rows import Floats
from cloister.data.columns import clean_categories
from cloister.data.schema import Schema
from cloister.errors import MissingBoundsError, ParameterError, ParameterTypeError
from cloister.learn._features import Binned, Categorical, Feature, Numeric
from cloister.learn._rows import Parts

__all__ = [
    "Binned",
    "Categorical",
    "Encoding",
    "Feature",
    "FeatureBins",
    "Integers",
    "Numeric",
    "bins_of",
    "encoding_of",
]


_FIX = "give bounds=(lows, highs) for numbers, domain={column: values} for categories, or a confirmed schema."

_FORMS = {
    "domain": 'write for example domain=[["red", "blue"], 5] or domain={"color": ["red", "blue"]}.',
    "bins": 'write for example bins=10, or bins={"age": [17, 30, 45, 60, 90], "hours": 8}.',
}
_FEW = 10


@dataclass(frozen=True)
class Encoding:
    """The features in order."""

    features: tuple[Feature, ...]

    @cached_property
    def names(self) -> tuple[str, ...]:
        """Return the names of the encoded columns, such as ``age`` and ``sex=Female``."""
        return tuple(
            name
            for feature in self.features
            for name in (
                (feature.name,)
                if isinstance(feature, Numeric)
                else tuple(f"{feature.name}={label}" for label in feature.labels)
            )
        )

    @property
    def columns(self) -> tuple[str, ...]:
        """Return the names of the columns that are encoded."""
        return tuple(feature.name for feature in self.features)

    @cached_property
    def bounds(self) -> tuple[Floats, Floats]:
        """Return the smallest and largest value of each encoded column."""
        lows, highs = [], []
        for feature in self.features:
            lows += [feature.low] if isinstance(feature, Numeric) else [0.0] * len(feature.labels)
            highs += [feature.high] if isinstance(feature, Numeric) else [1.0] * len(feature.labels)
        return np.array(lows), np.array(highs)

    @property
    def is_numeric(self) -> bool:
        """Return whether every feature is a number."""
        return all(isinstance(feature, Numeric) for feature in self.features)

    @property
    def sizes(self) -> tuple[int, ...]:
        """Return how many columns each feature becomes: one for a number, else one per value or bin."""
        return tuple(1 if isinstance(feature, Numeric) else len(feature.labels) for feature in self.features)

    def parts(self, columns: Sequence[Any]) -> Parts:
        """Return each feature of rows as one array: a number as it is, a category or a bin as its position."""
        return tuple(
            feature.numbers(column) if isinstance(feature, Numeric) else feature.codes(column)
            for feature, column in zip(self.features, columns, strict=True)
        )

    def matrix(self, columns: Sequence[Any]) -> Floats:
        """Return the encoded columns of rows, each number as it is and each category as ones and zeros."""
        return self.matrix_of(self.parts(columns))

    def matrix_of(self, parts: Parts) -> Floats:
        """Return the encoded columns of what `parts` returned."""
        # Columns are worked on one by one, so each is kept in one piece.
        matrix = np.empty((len(parts[0]), len(self.names)), order="F")
        start = 0
        for feature, part, size in zip(self.features, parts, self.sizes, strict=True):
            place = matrix[:, start : start + size]
            if isinstance(feature, Numeric):
                place[:, 0] = part
            else:
                np.equal(part[:, None], np.arange(size), out=place, casting="unsafe")
            start += size
        return matrix

    def codes(self, columns: Sequence[Any]) -> NDArray[np.int64]:
        """Return the position of each value in its declared ones, or the number of its bin."""
        return self.codes_of(self.parts(columns))

    def codes_of(self, parts: Parts) -> NDArray[np.int64]:
        """Return the positions of what `parts` returned, a column for each feature."""
        number = next((feature for feature in self.features if isinstance(feature, Numeric)), None)
        if number is not None:
            raise ParameterError(
                f'Column "{number.name}" is a number, and values are counted here.',
                fix="cut it into public bins, such as bins=10, or list its values in domain.",
            )
        codes = np.empty((len(parts[0]), len(self.features)), dtype=np.int64, order="F")
        for place, part in enumerate(parts):
            codes[:, place] = part
        return codes

    def to_dict(self) -> dict[str, Any]:
        """Return JSON-ready values."""
        return {"features": [feature.to_dict() for feature in self.features]}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Encoding:
        """Return what `to_dict` wrote.

        Raises:
            ParameterError: if it is something else.
        """
        listed = values.get("features") if len(values) == 1 else None
        if not isinstance(listed, list) or not listed:
            raise _encoding_error()
        found = cls(tuple(map(_feature, listed)))
        if len(set(found.columns)) != len(found.columns):
            raise _encoding_error()
        return found


def _feature(item: Any) -> Feature:
    """Return a feature that `to_dict` wrote; anything may come from outside."""
    if not isinstance(item, dict) or not isinstance(item.get("name"), str):
        raise _encoding_error()
    match item:
        case {"name": str(name), "bounds": [low, high]} if _are_numbers([low, high]) and len(item) == 2:
            return Numeric(name, float(low), float(high))
        case {"name": str(name), "edges": [*edges]} if _are_numbers(edges) and len(item) == 2:
            return Binned.at(name, edges)
        case {"name": str(name), "values": [*values]} if values and len(item) == 2:
            if all(isinstance(value, str | int | float) for value in values) and len(set(values)) == len(values):
                return Categorical(name, tuple(values))
    raise _encoding_error()


def _are_numbers(items: Sequence[Any]) -> bool:
    return all(type(item) in (int, float) for item in items)


def _encoding_error() -> ParameterError:
    return ParameterError("This is not an encoding of columns.", fix="use the dictionary as to_dict() wrote it.")


def encoding_of(
    names: Sequence[str],
    *,
    bounds: Any = None,  # a pair, a mapping or None
    domain: Any = None,  # a list, a mapping or None
    schema: Schema | None = None,
    named: bool = False,
    bins: Any = None,  # a number, a list, a mapping or None
) -> Encoding:
    """Return how columns are encoded, from what was declared.

    Args:
        names: the columns.
        bounds: (lows, highs), each a number or one per column; or {column: (low, high)}.
        domain: the values of each column in order, or {column: values}; a number k stands for 0 .. k-1.
        schema: where to look for columns of which neither says anything.
        named: whether the names are the caller's, rather than positions.
        bins: into how many bins of equal width a number is cut, or at which edges: for all, or as ``domain``; without
            it, none is cut.

    Raises:
        MissingBoundsError: if nothing public is known of a column.
    """
    lows_highs, values = _by_name(names, bounds, "bounds"), _by_name(names, domain, "domain")
    cuts = _by_name(names, bins, "bins")
    if not names:
        raise ParameterError("There are no features to learn from.", fix="name at least one column.")
    features: list[Feature] = []
    for name in names:
        if not isinstance(cuts.get(name, 0), int):
            features.append(Binned.at(name, cuts[name]))
        elif name in lows_highs:
            low, high = check_bounds(lows_highs[name], name=f'bounds of "{name}"' if named else "bounds")
            features.append(Numeric(name, float(low), float(high)))
        elif name in values:
            features.append(Categorical(name, _values(values[name])))
        elif schema is not None and name in schema:
            features.append(describe_feature(schema, name))
        else:
            about = f' of column "{name}"' if named else ""
            raise MissingBoundsError(f"The public range{about} is not known.", fix=_FIX)
    if bins is None:
        return Encoding(tuple(features))
    return Encoding(
        tuple(Binned.cut(item, cuts.get(item.name, _FEW)) if isinstance(item, Numeric) else item for item in features)
    )


def describe_feature(schema: Schema, name: str) -> Feature:
    """Return a feature from the confirmed facts of a schema."""
    if schema[name].categories is not None:
        return Categorical(name, tuple(schema.categories_of(name)))
    low, high = schema.bounds_of(name)
    if isinstance(low, date) or isinstance(high, date):
        raise ParameterError(
            f'Column "{name}" holds dates, which are not learned from.',
            fix="make numbers of it, such as days since a public date, or leave it out of features.",
        )
    return Numeric(name, float(low), float(high))


def _by_name(names: Sequence[str], given: Any, what: str) -> dict[str, Any]:
    if given is None:
        return {}
    if isinstance(given, Mapping):
        return {str(name): value for name, value in given.items()}
    if what != "bounds":
        if isinstance(given, str) or not isinstance(given, int | Sequence | np.ndarray):
            raise ParameterTypeError(f"{what} is not a list or mapping.", fix=_FORMS[what])
        listed = _one_each([given] * len(names) if isinstance(given, int) else list(given), names, what)
        return {name: item for name, item in zip(names, listed, strict=True) if item is not None}
    if isinstance(given, str) or not isinstance(given, Sequence | np.ndarray) or len(given) != 2:
        raise ParameterTypeError(
            "bounds must be a pair (lows, highs).", fix="write for example bounds=(0, 1) or bounds=([17, 0], [90, 99])."
        )
    lows, highs = (
        _one_each(np.broadcast_to(end, len(names)) if np.ndim(end) == 0 else end, names, what) for end in given
    )
    return {name: (low, high) for name, low, high in zip(names, lows, highs, strict=True)}


def _one_each(given: Any, names: Sequence[str], what: str) -> list[Any]:
    found = [item.item() if isinstance(item, np.generic) else item for item in given]
    if len(found) != len(names):
        raise ParameterError(
            f"{what} are given for {len(found)} columns, but there are {len(names)}.",
            fix=f"give {what} for each column, in the order of the columns.",
        )
    return found


def _values(given: Any) -> tuple[Any, ...]:
    if isinstance(given, int) and not isinstance(given, bool):
        return tuple(range(check_count(given, name="domain", at_least=1)))
    return clean_categories([item.item() if isinstance(item, np.generic) else item for item in given])


Integers = NDArray[np.int64]

_USUAL = 32


@dataclass(frozen=True, slots=True)
class FeatureBins:
    """All features in cells, in order."""

    features: tuple[Binned | Categorical, ...]

    @property
    def cells(self) -> tuple[int, ...]:
        """Return how many cells each feature has."""
        return tuple(feature.cells for feature in self.features)

    def codes(self, matrix: Floats) -> Integers:
        """Return the cell of each feature in each row, from rows that `Encoding.matrix` encoded."""
        codes = np.empty((len(matrix), len(self.features)), dtype=np.int64, order="F")
        start = 0
        for place, feature in enumerate(self.features):
            if isinstance(feature, Binned):
                codes[:, place] = feature.places(matrix[:, start])
                start += 1
            else:
                block = matrix[:, start : start + len(feature.values)].astype(bool)
                codes[:, place] = np.where(block.any(axis=1), block.argmax(axis=1), len(feature.values))
                start += len(feature.values)
        return codes


def bins_of(encoding: Encoding, bins: Any) -> FeatureBins:  # a number, or a number or edges for some columns
    """Return how features are binned.

    Args:
        encoding: the features with their public bounds and values.
        bins: into how many bins of equal width numbers are cut; or {column: number or edges}, 32 for the others.

    Raises:
        ParameterError: if a number of bins is not sensible, or edges do not rise.
    """
    given = {str(name): item for name, item in bins.items()} if isinstance(bins, Mapping) else {}
    usual = _USUAL if isinstance(bins, Mapping) else bins
    return FeatureBins(
        tuple(
            Binned.cut(feature, given.get(feature.name, usual)) if isinstance(feature, Numeric) else feature
            for feature in encoding.features
        )
    )
