"""What devices hold: the features of people in a public order, and their classes, as codes or numbers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cloister.errors import OutsideDomainError, ParameterError, ParameterTypeError, UnknownColumnError
from cloister.local.domain import Codes, Domain

__all__ = ["People", "columns_of", "label_codes", "one_row"]


@dataclass(frozen=True, eq=False, repr=False)
class People:
    """Features of people, one array each, and their classes; never shown."""

    features: tuple[NDArray[Any], ...]
    labels: Codes

    def __len__(self) -> int:
        return len(self.labels)

    def some(self, chosen: NDArray[np.intp]) -> People:
        """Return the chosen people."""
        return People(tuple(column[chosen] for column in self.features), self.labels[chosen])


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
