"""From what a user has to a matrix of numbers and codes of classes, refused in words that never quote the data."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cloister.errors import ParameterError, ParameterTypeError
from cloister.learn.rows import Floats

__all__ = ["as_numbers", "read_codes", "read_labels", "read_matrix"]


def read_matrix(estimator: Any, X: Any, *, reset: bool) -> Floats:
    """Return rows as numbers, all of them finite; with ``reset`` the estimator remembers the columns."""
    from sklearn.utils.validation import validate_data

    try:
        checked = validate_data(estimator, X, reset=reset, dtype=np.float64, ensure_min_samples=2 if reset else 1)
    except ValueError as error:
        raise ParameterError(_public(error), fix="give a table of finite numbers, two rows or more.") from None
    except TypeError as error:
        raise ParameterTypeError(_public(error), fix="give a dense table of numbers.") from None
    return np.asarray(checked)


def as_numbers(values: Any, *, what: str) -> Floats:
    """Return an array of numbers, whatever its shape; what is refused is not quoted.

    Args:
        values: an array, a list or a data frame.
        what: what the values are, for errors.
    """
    try:
        return np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError):
        raise ParameterTypeError(
            f"The {what} are not numbers.", fix=f"give the {what} as a table of numbers."
        ) from None


def read_labels(labels: Any, *, rows: int, what: str) -> list[NDArray[np.int64]]:
    """Return one or several labels of the same rows, each as codes 0, 1, ...

    Args:
        labels: one label per row, a table with a column per label, or a mapping of names to labels.
        rows: how many rows there are.
        what: what the labels are, for errors.
    """
    if labels is None:
        raise ParameterError(
            f"There are no {what} labels. This estimator requires y to be passed, but the target y is None."
            if what == "utility"
            else f"There are no {what} labels.",
            fix="call fit(X, y)." if what == "utility" else "call fit(X, y, privacy=labels).",
        )
    if isinstance(labels, Mapping):
        columns = [np.asarray(column) for column in labels.values()]
    else:
        found = np.asarray(labels)
        columns = [found] if found.ndim < 2 else list(found.T)
    if not columns:
        raise ParameterError(f"There are no {what} labels.", fix="give at least one label per row.")
    return [read_codes(column, rows=rows, what=what)[0] for column in columns]


def read_codes(labels: Any, *, rows: int, what: str) -> tuple[NDArray[np.int64], NDArray[Any]]:
    """Return the classes of rows as codes 0, 1, ..., and what the codes stand for."""
    found = np.asarray(labels)
    if found.ndim != 1 or len(found) != rows:
        raise ParameterError(
            f"The {what} labels are not one for each row of X (inconsistent numbers of samples).",
            fix=f"give the {what} labels as a list as long as X, in the same order.",
        )
    if (found.dtype.kind == "f" and not np.isfinite(found).all()) or (
        found.dtype.kind == "O" and any(item is None or item != item for item in found)  # noqa: PLR0124  # NaN
    ):
        raise ParameterError(
            f"Some {what} labels are missing (NaN) or infinite (inf).", fix="drop these rows, or name their class."
        )
    try:
        classes, codes = np.unique(found, return_inverse=True)
    except TypeError:
        raise ParameterTypeError(f"The {what} labels mix texts and numbers.", fix="write them in one type.") from None
    if len(classes) < 2:
        raise ParameterError(
            f"The {what} labels are all of one class, so that there is nothing to tell apart.",
            fix="give rows of two classes or more.",
        )
    return codes.astype(np.int64), classes


def _public(error: Exception) -> str:
    """Return a message of scikit-learn without anything that it may quote from the data."""
    message = str(error)
    if "Reshape your data" in message:
        return "This is not a table of rows. Reshape your data: one line per row, one column per feature."
    return (
        "The table has values that are not numbers." if "could not convert" in message else message.partition("\n")[0]
    )
