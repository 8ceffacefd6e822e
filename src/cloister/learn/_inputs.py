"""From what a user has, an array, a data frame or a table, to rows that are encoded by public facts.

Arrays and frames are checked as scikit-learn checks them, before anything is paid: missing numbers and labels outside
of the declared classes are errors, for whoever holds the data. How a `cloister.Table` is read is in `_table_inputs`.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from cloister.core.whole_rows import Floats
from cloister.data.table import Table
from cloister.errors import DataWarning, OutsideDomainError, ParameterError
from cloister.learn._encoding import Encoding
from cloister.learn._features import Categorical, Numeric
from cloister.learn._public_facts import PublicFacts, TargetFacts, resolve_encoding, resolve_target
from cloister.learn._rows import CompactRows, Pairs, Parts, WeightedRows
from cloister.learn._table_inputs import encode_table, open_rows, prepare_labeled_table

if TYPE_CHECKING:
    from cloister.learn.base import PrivateEstimator

__all__ = ["PublicFacts", "Reading", "TargetFacts", "encode", "no_rows", "prepare_labeled", "read"]


_QUOTED = re.compile(r"(?s)(:\narray=.*?\.(?=\nReshape)|(?<=Complex data not supported)\n.*)")
"""Where messages of scikit-learn quote the rows."""


@dataclass(frozen=True, slots=True, repr=False)
class Reading:
    """Rows that are about to be learned from: what is public of them, and how to get them.

    Attributes:
        facts: what is public.
        rows: returns the protected rows.
        count_pairs: returns them as pairs, where an engine counts these by themselves.
        coded: returns them with a position for each category.
        in_engine: whether they are still in their engine, where nobody looks before it is paid.
        nobody: returns the reading of no rows at all.
        held: how many rows there are, where the caller holds them; not public, and for the caller only.
    """

    facts: PublicFacts
    rows: Callable[[], WeightedRows]
    coded: Callable[[], CompactRows]
    in_engine: bool
    nobody: Callable[[], Reading]
    count_pairs: Callable[[], Pairs] | None = None
    held: int | None = None

    def fetch(self, estimator: PrivateEstimator) -> WeightedRows | CompactRows | Pairs:
        """Return the protected rows as an estimator needs them."""
        if estimator.needs == "coded":
            return self.coded()
        if estimator.needs == "pairs" and self.count_pairs is not None:
            return self.count_pairs()
        return self.given(estimator, self.rows())

    def nothing(self, estimator: PrivateEstimator) -> WeightedRows | CompactRows | Pairs:
        """Return no rows as an estimator needs them."""
        return self.nobody().fetch(estimator)

    def given(self, estimator: PrivateEstimator, rows: WeightedRows) -> WeightedRows | Pairs:
        """Return some of the rows as an estimator needs them."""
        if estimator.needs == "rows":
            return rows
        return Pairs.of(rows, sizes=self.facts.encoding.sizes, classes=len(self.facts.target.classes or ()))


def read(estimator: PrivateEstimator, X: Any, y: Any) -> Reading:
    """Return the public facts about rows, and how to get them; a table is not looked at."""
    if isinstance(X, Table):
        facts, count, coded, count_pairs = open_rows(estimator, X, y)
        nobody = lambda: read(estimator, X.without_rows(), y)  # noqa: E731  # read again only where it is needed
        return Reading(facts, count, coded, in_engine=True, nobody=nobody, count_pairs=count_pairs)
    _check_unit(estimator.unit, estimator.max_rows_per_unit)
    given = _columns(estimator, X, reset=True)
    encoding = resolve_encoding(estimator, given.names, estimator.schema, named=given.named)
    target = resolve_target(estimator, estimator.schema, getattr(y, "name", None))

    def rows() -> WeightedRows:
        codes = None if estimator.target == "none" else _target(target, y, len(given.columns[0]))
        parts = _parts(encoding, given)
        features = _features(estimator, encoding, given, parts)
        _warn_of_values_outside(encoding, given, parts)
        return WeightedRows(features, codes, np.ones(len(features), dtype=np.int64))

    def rows_in_codes() -> CompactRows:
        parts = _parts(encoding, given)
        _warn_of_values_outside(encoding, given, parts)
        return CompactRows(parts, np.ones(len(parts[0]), dtype=np.int64))

    facts, held = PublicFacts(encoding, target), len(given.columns[0])
    return Reading(facts, rows, rows_in_codes, in_engine=False, nobody=lambda: _no_rows(estimator, facts), held=held)


def _no_rows(estimator: PrivateEstimator, facts: PublicFacts) -> Reading:
    """Return the reading of an array that has no rows."""
    parts = facts.encoding.parts([np.empty(0) for _ in facts.encoding.features])
    weights = np.zeros(0, dtype=np.int64)
    codes = None if estimator.target == "none" else np.zeros(0, dtype=np.int64 if facts.target.classes else np.float64)
    features = _features(estimator, facts.encoding, _Columns([], (), named=False), parts)
    empty = Reading(
        facts,
        lambda: WeightedRows(features, codes, weights),
        lambda: CompactRows(parts, weights),
        in_engine=False,
        nobody=lambda: empty,
        held=0,
    )
    return empty


def _check_unit(unit: str, most: int) -> None:
    if most != 1 or unit != "row":
        raise ParameterError(
            "Persons with several rows are kept together in tables only.",
            fix='open the data with cloister.open_table, or use unit="row" and one row per person.',
        )


def encode(estimator: PrivateEstimator, X: Any) -> Floats:
    """Return the features of rows to predict, encoded as those learned from."""
    if isinstance(X, WeightedRows):
        return X.features
    if isinstance(X, Table):
        return encode_table(estimator, X)
    given = _columns(estimator, X, reset=False)
    return _features(estimator, estimator.encoding_, given, _parts(estimator.encoding_, given))


def prepare_labeled(
    model: PrivateEstimator, X: Any, y: Any, *, unit: str = "row", max_rows_per_unit: int = 1
) -> Callable[[], WeightedRows]:
    """Return a function that gets rows with their true target, to see how well a fitted model does; protected.

    Whatever can be refused is refused before it is called; a table is not looked at until then. Without ``y``, rows
    have no target.
    """
    check_is_fitted(model, "guarantee_")
    bounds = getattr(model, "target_bounds", None)
    classes = tuple(item.item() for item in model.classes_) if model.target == "classes" else None
    target = TargetFacts(None, classes=classes, bounds=None if bounds is None else (float(bounds[0]), float(bounds[1])))
    if isinstance(X, Table):
        return prepare_labeled_table(model, X, y, target, unit=unit, limit=max_rows_per_unit)
    _check_unit(unit, max_rows_per_unit)
    features = encode(model, X)
    codes = None if y is None else _target(target, y, len(features))
    rows = WeightedRows(features, codes, np.ones(len(features), dtype=np.int64))
    return lambda: rows


def no_rows(model: PrivateEstimator, X: Any, y: Any, *, unit: str = "row", max_rows_per_unit: int = 1) -> WeightedRows:
    """Return what `prepare_labeled` gets where there are no rows."""
    if isinstance(X, Table):
        return prepare_labeled(model, X.without_rows(), y, unit=unit, max_rows_per_unit=max_rows_per_unit)()
    rows = prepare_labeled(model, X, y)()
    return WeightedRows(rows.features[:0], None if rows.target is None else rows.target[:0], rows.weights[:0])


# Columns -------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, repr=False)
class _Columns:
    """The columns of an array or a frame, their names, and whether the names are the caller's.

    Where all are finite numbers, ``matrix`` holds them side by side, not to be written to.
    """

    columns: list[NDArray[Any]]
    names: tuple[str, ...]
    named: bool
    matrix: Floats | None = None


def _columns(estimator: PrivateEstimator, X: Any, *, reset: bool) -> _Columns:
    from sklearn.utils.validation import validate_data

    X = _choose_columns(estimator, X, reset=reset)
    plain = estimator.domain is None and estimator.schema is None and not _has_texts(X)
    framed = hasattr(X, "columns") and not plain
    try:
        checked = validate_data(
            estimator,
            X,
            reset=reset,
            dtype=np.float64 if plain else None,
            ensure_all_finite=plain,
            skip_check_array=framed,  # it would make one array of all columns, whatever is in them
        )
    except ValueError as error:
        raise ParameterError(
            _public(str(error)), fix="give a table of numbers without missing or infinite values."
        ) from None
    named = getattr(estimator, "feature_names_in_", None) is not None
    width = checked.shape[1]
    names = tuple(map(str, estimator.feature_names_in_)) if named else tuple(f"x{place}" for place in range(width))
    if framed:
        if not len(X):
            raise ParameterError("The data frame has no rows.", fix="give at least one row.")
        return _Columns([_column_values(X[name]) for name in X.columns], names, named)
    columns = [checked[:, place] for place in range(width)]
    if not plain:
        return _Columns(columns, names, named)
    matrix = checked.view()
    matrix.flags.writeable = False
    return _Columns(columns, names, named, matrix)


def _column_values(column: Any) -> Any:
    """Return a column of a frame; texts of pandas as they are held, since making objects of them takes long."""
    if str(column.dtype) in ("str", "string"):
        return column
    if getattr(column.dtype, "kind", "") in {"i", "u", "f"} and not isinstance(column.dtype, np.dtype):
        return column.to_numpy(dtype=np.float64, na_value=np.nan)  # numbers of pandas that may be missing
    return np.asarray(column)


def _choose_columns(estimator: PrivateEstimator, X: Any, *, reset: bool) -> Any:
    """Return the columns of a frame that are learned from; what a table taught is found by name."""
    wanted = estimator.features
    if wanted is None and not reset and getattr(estimator, "finds_by_name_", False):
        wanted = estimator.encoding_.columns
    if wanted is None or not hasattr(X, "columns"):
        return X
    names = [str(name) for name in wanted]
    missing = [name for name in names if name not in list(X.columns)]
    if missing:
        raise ParameterError(f'There is no column "{missing[0]}".', fix="correct features, or the data frame.")
    return X[names]


def _has_texts(X: Any) -> bool:
    kinds = X.dtypes if hasattr(X, "dtypes") else [getattr(X, "dtype", None)]
    return any(getattr(kind, "kind", "f") in "OUS" for kind in kinds)


def _public(message: str) -> str:
    """Return a message of scikit-learn without anything that it may quote from the data."""
    quoting = ("could not convert", "Cannot convert", "unknown format", "invalid literal", "argument must be a string")
    if any(part in message for part in quoting):
        return "The table has values that are not numbers."
    return _QUOTED.sub(".", message)


def _parts(encoding: Encoding, given: _Columns) -> Parts:
    """Return each feature as one array; a missing number is refused."""
    if given.matrix is not None and encoding.is_numeric:
        return tuple(given.columns)
    parts = encoding.parts(given.columns)
    for feature, column in zip(encoding.features, given.columns, strict=True):
        if isinstance(feature, Numeric) and not np.isfinite(np.asarray(column, dtype=np.float64)).all():
            about = f'Column "{feature.name}"' if given.named else "The table"
            raise ParameterError(
                f"{about} has missing or infinite numbers.", fix="fill them in by a public rule, or drop these rows."
            )
    return parts


def _features(estimator: PrivateEstimator, encoding: Encoding, given: _Columns, parts: Parts) -> Floats:
    if estimator.encodes == "codes":
        return encoding.codes_of(parts).astype(np.float64)
    if given.matrix is not None and encoding.is_numeric:
        return given.matrix
    return encoding.matrix_of(parts)


def _warn_of_values_outside(encoding: Encoding, given: _Columns, parts: Parts) -> None:
    """Say how many values are not within what was declared: for whoever holds the data."""
    if given.matrix is not None and encoding.is_numeric:
        lows, highs = encoding.bounds
        # Most arrays lie within all bounds, which two comparisons show without going through the columns.
        if given.matrix.min() >= lows.max() and given.matrix.max() <= highs.min():
            return
    numbers, others = 0, 0
    for feature, column, part in zip(encoding.features, given.columns, parts, strict=True):
        if isinstance(feature, Categorical):
            others += int((part == len(feature.values)).sum())
        else:
            numbers += feature.outside(column)
    for count, what in (
        (numbers, "Numbers outside of the public bounds are clipped"),
        (others, "Values that are not declared count as none of the declared ones"),
    ):
        if count:
            warnings.warn(f"{what}: {count}; this is for you, who hold the data.", DataWarning, stacklevel=4)


# Targets -------------------------------------------------------------------------------------------------------------


def _target(target: TargetFacts, y: Any, rows: int) -> NDArray[Any]:
    from sklearn.utils.multiclass import check_classification_targets
    from sklearn.utils.validation import check_array, column_or_1d

    if y is None:
        raise ParameterError(
            "There is no y, which a supervised model requires.", fix="call fit(X, y); y should be a 1d array."
        )
    try:
        found = column_or_1d(y, warn=True)
        if target.classes is None:
            found = check_array(found, ensure_2d=False, dtype=np.float64, input_name="y")
    except ValueError as error:
        raise ParameterError(_public(str(error)), fix="give y as one value per row.") from None
    if len(found) != rows:
        raise ParameterError(
            f"Found input variables with inconsistent numbers of samples: {rows} and {len(found)}.",
            fix="give one y for each row of X.",
        )
    if target.classes is None:
        return np.asarray(found)
    codes = Categorical("target", target.classes).codes(found)
    if (codes == len(target.classes)).any():
        raise OutsideDomainError(
            "Some labels are missing or not among the declared classes.",
            fix="list every class that may occur in classes=[...], or drop these rows for a public reason.",
        )
    if found.dtype.kind == "f":
        try:
            check_classification_targets(found)
        except ValueError as error:
            fix = "use a regressor, or give texts or whole numbers as y."
            raise ParameterError(_public(str(error)), fix=fix) from None
    return codes
