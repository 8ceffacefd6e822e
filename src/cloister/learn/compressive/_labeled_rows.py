"""Rows as a matrix of numbers and labels as codes of classes: read, brought to a common scale, and split into folds.

What a user gives is refused in words that never quote the data. A common scale of the features is for learners and
attackers that look at distances. Folds are random parts of rows in which every class has its share, for evaluations
that are repeated.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, TransformerMixin

from cloister.core.random import RandomSource, permutation
from cloister.core.whole_rows import Floats
from cloister.errors import ParameterError, ParameterTypeError

__all__ = ["CommonScale", "as_numbers", "common_widths", "read_codes", "read_labels", "read_matrix", "stratified_folds"]


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


_NOISE = 1e-12
"""What spreads less than this, as a share of the largest number, is noise of the arithmetic."""


def common_widths(rows: Floats) -> Floats:
    """Return the standard deviation of each feature; infinity, where it does not vary, so that it counts for nothing.

    Some projections have components along which all rows agree. Their z differ by rounding alone, and divided by their
    own deviation they would drown the others.

    >>> common_widths(np.array([[1.0, 5.0], [3.0, 5.0]])).tolist()
    [1.0, inf]
    """
    widths = rows.std(axis=0)
    return np.where(widths > _NOISE * np.abs(rows).max(initial=0.0), widths, np.inf)


class CommonScale(TransformerMixin, BaseEstimator):  # type: ignore[misc]  # scikit-learn is not typed
    """Subtracts means and divides by deviations; features that do not vary become zero."""

    def fit(self, X: Any, y: Any = None) -> Any:  # noqa: ARG002  # there is no label
        """Remember means and deviations."""
        rows = np.asarray(X, dtype=np.float64)
        self.mean_, self.width_ = rows.mean(axis=0), common_widths(rows)
        return self

    def transform(self, X: Any) -> Floats:
        """Return scaled rows."""
        return np.asarray((np.asarray(X, dtype=np.float64) - self.mean_) / self.width_)


Codes = NDArray[np.int64]


def stratified_folds(codes: Codes, count: int, source: RandomSource) -> list[tuple[Codes, Codes]]:
    """Return ``count`` pairs (the others, a part) of row numbers; the parts are disjoint and together all rows."""
    order = permutation(source, len(codes))
    sorted_ = order[np.argsort(codes[order], kind="stable")]
    part = np.empty(len(codes), dtype=np.int64)
    part[sorted_] = np.arange(len(codes)) % count
    return [(np.flatnonzero(part != place), np.flatnonzero(part == place)) for place in range(count)]
