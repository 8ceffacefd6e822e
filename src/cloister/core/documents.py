"""Saved models as JSON documents: written whole or not at all, read without running anything.

Learned numbers go into a document exactly: a float is written so that reading it gives the same one.
What is written: nothing, truth values, whole numbers, finite floats, texts, exact fractions, arrays, and lists, tuples
and dictionaries of them. Nothing else is, and nothing else is read: reading makes such values and cannot do more.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from fractions import Fraction
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from cloister.core.atomic_files import write_with
from cloister.core.wordings import a_or_an
from cloister.errors import ModelError, SourceNotFoundError

__all__ = ["FIX", "LARGEST", "from_json", "read_document", "read_json", "refuse_constant", "to_json", "write_document"]


LARGEST = 20_000_000
"""The largest number of entries of an array."""

_DEEPEST = 200
FIX = "use the file as save() wrote it, or train again."
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
        return _container_to_json(value)
    if isinstance(value, np.ndarray):
        return _array_to_json(value)
    if isinstance(value, np.generic):
        return to_json(value.item())
    if isinstance(value, Fraction):
        return {"fraction": f"{value.numerator}/{value.denominator}"}
    if not isinstance(value, float):
        raise _unsavable_error(f"holds {a_or_an(type(value).__name__)}")
    return _finite(value)


def _container_to_json(value: Any) -> Any:
    if isinstance(value, list):
        return [to_json(item) for item in value]
    if isinstance(value, tuple):
        return {"tuple": [to_json(item) for item in value]}
    if not all(isinstance(name, str) for name in value):
        raise _unsavable_error("holds names that are not texts")
    return {"dict": {name: to_json(item) for name, item in value.items()}}


def _finite(value: float) -> float:
    if not math.isfinite(value):
        raise _unsavable_error("holds numbers that are not finite")
    return value


def from_json(value: Any, *, depth: int = 0) -> Any:
    """Return the value that `to_json` wrote.

    Raises:
        ModelError: if it is anything else.
    """
    if depth > _DEEPEST:
        raise _damage_error("is nested too deeply")
    if isinstance(value, list):
        return [from_json(item, depth=depth + 1) for item in value]
    if not isinstance(value, dict):
        return _plain(value)
    tag = next((name for name in _TAGS if name in value), None)
    if tag == "array" and value.keys() == {"array", "shape", "values"}:
        return _array(value["array"], value["shape"], value["values"])
    if tag is None or len(value) != 1:
        raise _damage_error("holds something unknown")
    inner = value[tag]
    if tag == "fraction":
        return _fraction(inner)
    if tag == "tuple" and isinstance(inner, list):
        return tuple(from_json(item, depth=depth + 1) for item in inner)
    if tag == "dict" and isinstance(inner, dict):
        return {name: from_json(item, depth=depth + 1) for name, item in inner.items()}
    raise _damage_error("holds something unknown")


def _array_to_json(value: NDArray[Any]) -> dict[str, Any]:
    if value.dtype.kind == "f":
        # JSON has no infinity, and what reads it back refuses one.
        if not np.isfinite(value).all():
            raise _unsavable_error("holds numbers that are not finite")
        kind, found = "float64", value.astype(np.float64)
    elif value.dtype.kind in "iu":
        kind, found = "int64", value.astype(np.int64)
        if not (found == value).all():
            raise _unsavable_error("holds a whole number beyond 64 bits")
    elif value.dtype.kind == "b":
        kind, found = "bool", value
    elif value.dtype.kind == "U" or all(isinstance(item, str) for item in value.flat):
        kind, found = "text", value
    else:
        raise _unsavable_error("holds an array of an unknown kind")
    return {"array": kind, "shape": list(value.shape), "values": found.ravel().tolist()}


def _array(kind: Any, shape: Any, values: Any) -> NDArray[Any]:
    if kind not in _KINDS or not isinstance(values, list):
        raise _damage_error("holds an array of an unknown kind")
    if not isinstance(shape, list) or len(shape) > 32 or not all(type(item) is int and item >= 0 for item in shape):
        raise _damage_error("holds an array without a shape")
    if len(values) > LARGEST:
        raise _damage_error("holds an array that is too large")
    if math.prod(shape) != len(values):
        raise _damage_error("holds an array of another shape than it says")
    wanted = (int, float) if kind == "float64" else (_KINDS[kind],)
    # By type and not by isinstance, since True is an int for Python.
    if not all(type(item) in wanted for item in values):
        raise _damage_error("holds an array with something else in it")
    try:
        found = np.array(values, dtype=np.str_ if kind == "text" else _KINDS[kind]).reshape(shape)
    except OverflowError:
        raise _damage_error("holds a number beyond 64 bits") from None
    if kind == "float64" and not np.isfinite(found).all():
        raise _damage_error("holds numbers that are not finite")
    return found


def _plain(value: Any) -> Any:
    if isinstance(value, float) and not math.isfinite(value):
        raise _damage_error("holds numbers that are not finite")
    return value


def _fraction(text: Any) -> Fraction:
    parts = text.split("/") if isinstance(text, str) and len(text) < 10_000 else []
    try:
        return Fraction(int(parts[0]), int(parts[1]))
    except (ValueError, IndexError, ZeroDivisionError):
        raise _damage_error("holds a number that cannot be read") from None


def _damage_error(what: str) -> ModelError:
    return ModelError(f"The saved model {what}.", fix=FIX)


def _unsavable_error(what: str) -> ModelError:
    return ModelError(f"The model {what}, which cannot be saved.", fix="use plain numbers and texts as parameters.")


_LARGEST_FILE = 512 * 1024 * 1024


def write_document(path: str | Path, document: dict[str, Any], *, overwrite: bool = False) -> None:
    """Write a document to a file, whole or not at all."""
    text = json.dumps(document, ensure_ascii=False, allow_nan=False, indent=1)

    def write(file: IO[bytes]) -> None:
        file.write(text.encode())

    write_with(path, write, overwrite=overwrite)


def read_document(path: str | Path) -> Any:  # whatever JSON holds
    """Return what a file holds.

    Raises:
        SourceNotFoundError: if there is no such file.
        ModelError: if it cannot be read, is too large or is not JSON.
    """
    try:
        with Path(path).open("rb") as file:
            # One byte more than allowed tells a file that is too large, without reading all of it.
            data = file.read(_LARGEST_FILE + 1)
    except (FileNotFoundError, NotADirectoryError):
        raise SourceNotFoundError(f'There is no file "{path}".', fix="check the path of the model.") from None
    except OSError:
        raise ModelError(f'"{path}" cannot be read.', fix="check who may read the file.") from None
    if len(data) > _LARGEST_FILE:
        raise ModelError("The file is too large for a model.", fix=FIX)
    try:
        return read_json(data)
    except (ValueError, RecursionError):
        raise ModelError("The file is not a saved model.", fix=FIX) from None


def read_json(text: str | bytes | bytearray) -> Any:  # a JSON value
    """Return the value of a JSON text with finite numbers and without repeated names.

    Raises:
        ValueError: if it is something else.
        RecursionError: if it is too deep.
    """
    return json.loads(text, parse_constant=refuse_constant, object_pairs_hook=_once)


def refuse_constant(_: str) -> Any:
    """Raise: NaN and the infinities are no JSON."""
    raise ValueError("not a finite number")


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    # Readers disagree which of two values counts, so that neither does.
    if len(found) != len(pairs):
        raise ValueError("the same name twice")
    return found
