"""What is public about rows before anybody looks: how features are encoded, and what the target is."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from cloister.data.schema import Schema
from cloister.errors import MissingBoundsError, ParameterError, ParameterTypeError
from cloister.learn._encoding import Encoding, describe_feature, encoding_of
from cloister.learn._features import Numeric

if TYPE_CHECKING:
    from cloister.learn.base import PrivateEstimator

__all__ = ["PublicFacts", "TargetFacts", "resolve_encoding", "resolve_target", "sort_classes"]


@dataclass(frozen=True, slots=True)
class TargetFacts:
    """What is known of the target beforehand: its classes, or its bounds, or nothing where there is none."""

    name: str | None = None
    classes: tuple[Any, ...] | None = None
    bounds: tuple[float, float] | None = None


@dataclass(frozen=True, slots=True)
class PublicFacts:
    """What is public about the rows, and what a promise about them assumes."""

    encoding: Encoding
    target: TargetFacts
    assumptions: tuple[str, ...] = ()


def resolve_encoding(
    estimator: PrivateEstimator, names: Sequence[str], schema: Schema | None, *, named: bool
) -> Encoding:
    """Return how the columns are encoded, or refuse what the estimator cannot learn from."""
    if not names:
        raise ParameterError("There is no feature to learn from.", fix="name some columns in features=[...].")
    encoding = encoding_of(
        names,
        bounds=estimator.bounds,
        domain=estimator.domain,
        schema=schema,
        named=named,
        bins=estimator.bins if estimator.encodes == "codes" else None,
    )
    numbers = [feature.name for feature in encoding.features if isinstance(feature, Numeric)]
    if estimator.encodes == "codes" and numbers:
        about = f' "{numbers[0]}"' if named else ""
        raise ParameterError(
            f"{type(estimator).__name__} learns from categories, but column{about} has bounds.",
            fix="cut it into public bins, such as bins=10, or give its public values as a domain.",
        )
    return encoding


def resolve_target(estimator: PrivateEstimator, schema: Schema | None, name: object) -> TargetFacts:
    """Return what was declared of the target."""
    named = None if name is None else str(name)
    known = schema if schema is not None and named in schema else None
    match estimator.target:
        case "none":
            return TargetFacts()
        case "classes":
            return TargetFacts(named, classes=_classes(estimator, known, named))
        case _:
            return TargetFacts(named, bounds=_bounds(estimator, known, named))


def _classes(estimator: PrivateEstimator, known: Schema | None, name: str | None) -> tuple[Any, ...]:
    if estimator.classes is not None:
        return sort_classes(estimator.classes)
    if known is None:
        raise MissingBoundsError(
            "The classes are not known, and reading them from the data would not be private.",
            fix='list them: classes=["no", "yes"].',
        )
    return sort_classes(known.categories_of(str(name)))


def _bounds(estimator: PrivateEstimator, known: Schema | None, name: str | None) -> tuple[float, float]:
    if estimator.target_bounds is not None:
        feature: Any = encoding_of(["target"], bounds=_pair(estimator.target_bounds), named=True).features[0]
        return feature.low, feature.high
    if known is None:
        raise MissingBoundsError(
            "The bounds of the target are not known, and reading them from the data would not be private.",
            fix="write target_bounds=(0, 100).",
        )
    feature = describe_feature(known, str(name))
    if not isinstance(feature, Numeric):
        raise MissingBoundsError(
            "The target has declared values, but a number with bounds is learned.",
            fix=f'give "{name}" numeric bounds in the schema, pass target_bounds=(0, 100), or use a classifier.',
        )
    return feature.low, feature.high


def _pair(given: Any) -> Any:
    if isinstance(given, str) or not isinstance(given, Sequence | np.ndarray) or len(given) != 2 or np.ndim(given) != 1:
        raise ParameterTypeError("target_bounds must be a pair.", fix="write target_bounds=(0, 100).")
    return given


def sort_classes(classes: Any) -> tuple[Any, ...]:
    """Return declared classes in order, or refuse what cannot be told apart."""
    if isinstance(classes, str) or not isinstance(classes, Sequence | np.ndarray):
        raise ParameterTypeError("classes is not a list.", fix='write classes=["no", "yes"].')
    found = [item.item() if isinstance(item, np.generic) else item for item in classes]
    if not all(isinstance(item, str | int) or (isinstance(item, float) and math.isfinite(item)) for item in found):
        raise ParameterTypeError("A class is not a text or a number.", fix='write classes=["no", "yes"].')
    if len(set(found)) != len(found) or len(found) < 2:
        raise ParameterError(
            "classes must be at least two different values; with one class there is nothing to learn.",
            fix='list every class once: classes=["no", "yes"].',
        )
    try:
        return tuple(sorted(found))
    except TypeError:
        raise ParameterTypeError("classes mix texts and numbers.", fix="write all classes in one type.") from None
