"""How a `cloister.Table` is learned from: it stays in its engine, which counts how often each combination occurs.

Whatever can be refused is refused from public facts, the declared ones and the types of the columns, before anything is
paid and without looking. In the rows, what is missing or undeclared is encoded as that (see `encoding`), and rows
whose target is are left out, so that no row can make a fit fail.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from cloister.core.whole_rows import Floats
from cloister.data.columns import Role
from cloister.data.engines.aggregation import as_stored
from cloister.data.persons import rows_of_persons
from cloister.data.schema import Schema
from cloister.data.table import Table
from cloister.data.values import StorageType
from cloister.errors import ParameterError, ParameterTypeError, PrivacyParameterWarning, UnknownColumnError
from cloister.learn._encoding import Encoding
from cloister.learn._features import Binned, Categorical, Feature, Numeric
from cloister.learn._public_facts import PublicFacts, TargetFacts, resolve_encoding, resolve_target
from cloister.learn._rows import CompactRows, Pairs, WeightedRows

if TYPE_CHECKING:
    from cloister.learn.base import PrivateEstimator

__all__ = ["encode_table", "open_rows"]

_NUMBERS = (StorageType.INTEGER, StorageType.REAL, StorageType.BOOLEAN)


def open_rows(
    estimator: PrivateEstimator, table: Table, y: Any
) -> tuple[PublicFacts, Callable[[], WeightedRows], Callable[[], CompactRows], Callable[[], Pairs] | None]:
    """Return the public facts about a table, and functions that count its rows, coded rows and pairs."""
    schema = estimator.schema if estimator.schema is not None else table.schema
    supervised = estimator.target != "none"
    if supervised:
        _check_target(table, y)
    _check_unit(estimator, table, schema)
    names = _features(estimator, table, schema, y if supervised else None)
    encoding = resolve_encoding(estimator, names, schema, named=True)
    target = resolve_target(estimator, schema, y)
    stored = _match_encoding(encoding, table)
    label = _match_target(target, table) if supervised else None

    def kept() -> Table:
        return _limit_rows(table, stored, label, unit=estimator.unit, limit=int(estimator.max_rows_per_unit))

    def rows() -> WeightedRows:
        return _count(estimator, kept(), stored, label)

    def coded() -> CompactRows:
        columns, weights = _count_combinations(kept(), list(stored.features))
        return CompactRows(stored.parts(columns), weights)

    def pairs(label: Categorical) -> Pairs:
        limited = kept()
        return Pairs(tuple(_pairs(limited, feature, label) for feature in stored.features))

    counted = partial(pairs, label) if isinstance(label, Categorical) else None
    return PublicFacts(encoding, target, table.assumptions), rows, coded, counted


def encode_table(estimator: PrivateEstimator, table: Table) -> Floats:
    """Return the features of a table's rows, in the order of the engine."""
    encoding = _match_encoding(estimator.encoding_, table)
    listing = table.to_arrow().select(list(encoding.columns))
    columns = [listing[name].to_numpy(zero_copy_only=False) for name in encoding.columns]
    return _encode_columns(estimator, encoding, columns)


def prepare_labeled_table(
    model: PrivateEstimator, table: Table, y: Any, target: TargetFacts, *, unit: str, limit: int
) -> Callable[[], WeightedRows]:
    """Return a function that counts each combination of features and target; what is refused is refused before.

    Without ``y``, rows have no target.
    """
    if y is not None:
        _check_target(table, y)
    if unit != "row" and unit not in table.columns:
        raise UnknownColumnError(str(unit), table.columns)
    label = None if y is None else _match_target(replace(target, name=y), table)
    stored = _match_encoding(model.encoding_, table)
    return lambda: _count(model, _limit_rows(table, stored, label, unit=unit, limit=limit), stored, label)


def _check_target(table: Table, y: Any) -> None:
    if not isinstance(y, str) or y not in table.columns:
        raise ParameterTypeError(
            "A table is fitted with the name of its target column.", fix='write fit(table, "income").'
        )


def _check_unit(estimator: PrivateEstimator, table: Table, schema: Schema | None) -> None:
    if estimator.unit == "row":
        if estimator.max_rows_per_unit != 1:
            raise ParameterError(
                "max_rows_per_unit is about persons, but rows are protected.",
                fix='name the column of the person, such as unit="patient_id", or leave max_rows_per_unit out.',
            )
        if schema is not None and schema.subject is not None:
            warnings.warn(
                f'The schema says that "{schema.subject}" names a person, but single rows are protected: '
                f'write unit="{schema.subject}" and max_rows_per_unit to protect whole persons.',
                PrivacyParameterWarning,
                stacklevel=5,
            )
    elif estimator.unit not in table.columns:
        raise UnknownColumnError(str(estimator.unit), table.columns)


def _features(estimator: PrivateEstimator, table: Table, schema: Schema | None, target: str | None) -> tuple[str, ...]:
    if estimator.features is not None:
        names = tuple(map(str, estimator.features))
        unknown = next((name for name in names if name not in table.columns), None)
        if unknown is not None:
            raise UnknownColumnError(unknown, table.columns)
    else:
        apart = {target, estimator.unit} | _identifying(schema)
        names = tuple(name for name in table.columns if name not in apart)
    if target in names:
        raise ParameterError("The target is among the features.", fix="take it out of features.")
    if estimator.unit in names and estimator.unit != "row":
        raise ParameterError("The person is among the features.", fix="take the column of the unit out of features.")
    return names


def _identifying(schema: Schema | None) -> set[str]:
    if schema is None:
        return set()
    return {name for name in schema.names if schema[name].role is Role.IDENTIFIER or schema[name].subject}


# Types ---------------------------------------------------------------------------------------------------------------


def _match_encoding(encoding: Encoding, table: Table) -> Encoding:
    """Return an encoding in which declared values are written as the columns store them."""
    for name in encoding.columns:
        if name not in table.columns:
            raise UnknownColumnError(name, table.columns)
    return Encoding(tuple(_match_feature(feature, table.types[feature.name]) for feature in encoding.features))


def _match_feature(feature: Feature, storage: StorageType) -> Feature:
    if isinstance(feature, Categorical):
        return Categorical(feature.name, _match_values(feature.name, feature.values, storage))
    if storage not in _NUMBERS:
        raise ParameterTypeError(
            f'Column "{feature.name}" has bounds, but holds {storage} values.',
            fix="give its public values as a domain, or mend the data or the storage in the schema.",
        )
    return feature


def _match_values(name: str, values: Sequence[Any], storage: StorageType) -> tuple[Any, ...]:
    stored = [as_stored(item, storage) for item in values]
    if all(item is None for item in stored):
        raise ParameterTypeError(
            f'Column "{name}" holds {storage} values, and none of the declared ones is of that type.',
            fix="declare the values as the column stores them.",
        )
    # A value that the column cannot hold stands for itself alone, which no cell is.
    return tuple(_Never() if item is None else item for item in stored)


class _Never:
    """A declared value that no cell can have."""


def _match_target(target: TargetFacts, table: Table) -> Feature:
    name = str(target.name)
    if target.classes is not None:
        return Categorical(name, _match_values(name, target.classes, table.types[name]))
    low, high = target.bounds or (0.0, 1.0)
    return _match_feature(Numeric(name, low, high), table.types[name])


# Counting ------------------------------------------------------------------------------------------------------------


def _limit_rows(table: Table, encoding: Encoding, label: Feature | None, *, unit: str, limit: int) -> Table:
    """Return the rows that are counted: all of them, or at most so many of each person."""
    plain = table.with_schema(None)
    return plain if unit == "row" else rows_of_persons(plain, unit=unit, columns=_names(encoding, label), limit=limit)


def _names(encoding: Encoding, label: Feature | None) -> list[str]:
    return [*encoding.columns, *(() if label is None else (label.name,))]


def _count(estimator: PrivateEstimator, table: Table, encoding: Encoding, label: Feature | None) -> WeightedRows:
    columns, weights = _count_combinations(table, [*encoding.features, *(() if label is None else (label,))])
    features = _encode_columns(estimator, encoding, columns[: len(encoding.columns)])
    if label is None:
        return WeightedRows(features, None, weights)
    codes, kept = _labels(label, columns[-1])
    return WeightedRows(features[kept], codes[kept], weights[kept])


def _count_combinations(table: Table, features: Sequence[Feature]) -> tuple[list[NDArray[Any]], NDArray[np.int64]]:
    """Return the columns of every combination that occurs, and how often it does."""
    counted = table.with_schema(None).frequencies([feature.name for feature in features])
    columns = [
        _values(decoder, counted.codes[:, place], is_number=not isinstance(feature, Categorical))
        for place, (feature, decoder) in enumerate(zip(features, counted.decoders, strict=True))
    ]
    return columns, np.array(counted.weights)


def _pairs(table: Table, feature: Feature, label: Categorical) -> NDArray[np.int64]:
    """Return how often each declared value of one feature comes with each class, counted by the engine."""
    cuts = {feature.name: [-np.inf, *feature.edges[1:-1], np.inf]} if isinstance(feature, Binned) else None
    counted = table.with_schema(None).frequencies([feature.name, label.name], bins=cuts)
    codes, size = counted.codes[:, 0].astype(np.int64), len(counted.decoders[0])
    if isinstance(feature, Categorical):  # bins are coded in their order already, and then what is missing
        codes, size = feature.codes(_values(counted.decoders[0], codes, is_number=False)), len(feature.values)
    elif isinstance(feature, Binned):
        size = len(feature.labels)
    target, kept = _labels(label, _values(counted.decoders[1], counted.codes[:, 1], is_number=False))
    pairs = np.zeros((len(label.values), size + 1), dtype=np.int64)
    np.add.at(pairs, (target[kept], codes[kept]), counted.weights[kept])
    return pairs[:, :size]


def _encode_columns(estimator: PrivateEstimator, encoding: Encoding, columns: Sequence[NDArray[Any]]) -> Floats:
    if estimator.encodes == "codes":
        return encoding.codes(columns).astype(np.float64)
    return encoding.matrix(columns)


def _values(decoder: tuple[Any, ...], codes: NDArray[Any], *, is_number: bool) -> NDArray[Any]:
    if is_number:
        values = np.array([np.nan if item is None else float(item) for item in decoder])
    else:
        values = np.empty(len(decoder), dtype=object)
        values[:] = decoder
    return np.asarray(values[codes])


def _labels(label: Feature, column: NDArray[Any]) -> tuple[NDArray[Any], NDArray[np.bool_]]:
    if isinstance(label, Categorical):
        codes = label.codes(column)
        return codes, codes < len(label.values)
    numbers = np.asarray(column, dtype=np.float64)
    return numbers, ~np.isnan(numbers)
