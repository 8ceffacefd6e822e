"""Learned numbers as JSON and back, exactly: a float is written so that reading it gives the same one.

What is written: nothing, truth values, whole numbers, finite floats, texts, exact fractions, arrays, and lists, tuples
and dictionaries of them. Nothing else is, and nothing else is read: reading makes such values and cannot do more.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cloister.errors import ModelError, a_or_an

__all__ = ["LARGEST", "from_json", "to_json"]

LARGEST = 20_000_000
"""The largest number of entries of an array."""

_DEEPEST = 200
_KINDS: dict[str, Any] = {"float64": float, "int64": int, "bool": bool, "text": str}
_TAGS = ("array", "fraction", "tuple", "dict")


def to_json(value: Any) -> Any:
    """Return a learned value as JSON.

    >>> to_json({"depth": 2, "edges": np.array([0.5])})
    {'dict': {'depth': 2, 'edges': {'array': 'float64', 'shape': [1], 'values': [0.5]}}}
    """
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, list | tuple | Mapping):
        return _nested_to_json(value)
    if isinstance(value, np.ndarray):
        return _array_to_json(value)
    if isinstance(value, np.generic):
        return to_json(value.item())
    if isinstance(value, Fraction):
        return {"fraction": f"{value.numerator}/{value.denominator}"}
    if not isinstance(value, float):
        raise _unsaved(f"holds {a_or_an(type(value).__name__)}")
    return _finite(value)


def _nested_to_json(value: Any) -> Any:
    if isinstance(value, list):
        return [to_json(item) for item in value]
    if isinstance(value, tuple):
        return {"tuple": [to_json(item) for item in value]}
    if not all(isinstance(name, str) for name in value):
        raise _unsaved("holds names that are not texts")
    return {"dict": {name: to_json(item) for name, item in value.items()}}


def _finite(value: float) -> float:
    if not math.isfinite(value):
        raise _unsaved("holds numbers that are not finite")
    return value


def from_json(value: Any, *, depth: int = 0) -> Any:
    """Return the value that `to_json` wrote.

    Raises:
        ModelError: if it is anything else.
    """
    if depth > _DEEPEST:
        raise _damaged("is nested too deeply")
    if isinstance(value, list):
        return [from_json(item, depth=depth + 1) for item in value]
    if not isinstance(value, dict):
        return _plain(value)
    tag = next((name for name in _TAGS if name in value), None)
    if tag == "array" and value.keys() == {"array", "shape", "values"}:
        return _array(value["array"], value["shape"], value["values"])
    if tag is None or len(value) != 1:
        raise _damaged("holds something unknown")
    inner = value[tag]
    if tag == "fraction":
        return _fraction(inner)
    if tag == "tuple" and isinstance(inner, list):
        return tuple(from_json(item, depth=depth + 1) for item in inner)
    if tag == "dict" and isinstance(inner, dict):
        return {name: from_json(item, depth=depth + 1) for name, item in inner.items()}
    raise _damaged("holds something unknown")


def _array_to_json(value: NDArray[Any]) -> dict[str, Any]:
    if value.dtype.kind == "f":
        if not np.isfinite(value).all():
            raise _unsaved("holds numbers that are not finite")
        kind, found = "float64", value.astype(np.float64)
    elif value.dtype.kind in "iu":
        kind, found = "int64", value.astype(np.int64)
        if not (found == value).all():
            raise _unsaved("holds a whole number beyond 64 bits")
    elif value.dtype.kind == "b":
        kind, found = "bool", value
    elif value.dtype.kind == "U" or all(isinstance(item, str) for item in value.flat):
        kind, found = "text", value
    else:
        raise _unsaved("holds an array of an unknown kind")
    return {"array": kind, "shape": list(value.shape), "values": found.ravel().tolist()}


def _array(kind: Any, shape: Any, values: Any) -> NDArray[Any]:
    if kind not in _KINDS or not isinstance(values, list):
        raise _damaged("holds an array of an unknown kind")
    if not isinstance(shape, list) or len(shape) > 32 or not all(type(item) is int and item >= 0 for item in shape):
        raise _damaged("holds an array without a shape")
    if len(values) > LARGEST:
        raise _damaged("holds an array that is too large")
    if math.prod(shape) != len(values):
        raise _damaged("holds an array of another shape than it says")
    wanted = (int, float) if kind == "float64" else (_KINDS[kind],)
    if not all(type(item) in wanted for item in values):
        raise _damaged("holds an array with something else in it")
    try:
        found = np.array(values, dtype=np.str_ if kind == "text" else _KINDS[kind]).reshape(shape)
    except OverflowError:
        raise _damaged("holds a number beyond 64 bits") from None
    if kind == "float64" and not np.isfinite(found).all():
        raise _damaged("holds numbers that are not finite")
    return found


def _plain(value: Any) -> Any:
    if isinstance(value, float) and not math.isfinite(value):
        raise _damaged("holds numbers that are not finite")
    return value


def _fraction(text: Any) -> Fraction:
    parts = text.split("/") if isinstance(text, str) and len(text) < 10_000 else []
    try:
        return Fraction(int(parts[0]), int(parts[1]))
    except (ValueError, IndexError, ZeroDivisionError):
        raise _damaged("holds a number that cannot be read") from None


def _damaged(what: str) -> ModelError:
    return ModelError(f"The saved model {what}.", fix="use the file as save() wrote it, or train again.")


def _unsaved(what: str) -> ModelError:
    return ModelError(f"The model {what}, which cannot be saved.", fix="use plain numbers and texts as parameters.")
