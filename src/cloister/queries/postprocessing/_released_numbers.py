"""Released numbers as arguments: plain ones, arrays, or answers that carry a value and the size of their noise."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from cloister.errors import ParameterError, ParameterTypeError


def numbers(values: object, *, name: str = "values") -> NDArray[Any]:
    """Return finite released numbers as 64-bit integers or floats, in the shape given; an answer stands for its value.

    Raises:
        ParameterTypeError: if they are not numbers.
        ParameterError: if there are none, or one is not finite.
    """
    array = np.asarray(getattr(values, "value", values))
    if array.dtype.kind not in "iuf":
        raise ParameterTypeError(
            f"{name} are not numbers.", fix=f"pass {name} as a list or array of numbers, or as an answer."
        )
    if not array.size:
        raise ParameterError(f"There are no {name}.", fix="pass at least one number.")
    if not np.isfinite(array).all():
        raise ParameterError(f"{name} are not all finite.", fix="leave missing and infinite numbers out.")
    whole = array.dtype.kind == "i" or (array.dtype.kind == "u" and bool((array < 2**63).all()))
    return array.astype(np.int64 if whole else np.float64)


def floats(values: object, *, name: str = "values") -> NDArray[np.float64]:
    """Return finite released numbers as floats."""
    return numbers(values, name=name).astype(np.float64)


def row(values: object, *, name: str = "values") -> NDArray[np.float64]:
    """Return finite released numbers as one row of floats."""
    array = floats(values, name=name)
    if array.ndim != 1:
        raise ParameterError(f"{name} are not one row of numbers.", fix=f"pass {name} as a list of numbers.")
    return array


def positive(value: object, *, name: str) -> float:
    """Return a public number above zero."""
    number = floats(value, name=name)
    if number.ndim or not number > 0:
        raise ParameterError(f"{name} must be one number above 0.", fix=f"give the {name} that the noise has.")
    return float(number)


def variances(values: object, answers: object, *, name: str, shape: tuple[int, ...]) -> NDArray[np.float64]:
    """Return variances of a shape: those given, one number for all, or those that the answers state."""
    stated = variance_of(answers) if values is None else values
    if stated is None:
        raise ParameterError(f"The {name} is not known.", fix=f"give {name}= as that of the noise, or pass answers.")
    array = floats(stated, name=name)
    if (array < 0).any() or array.shape not in {(), shape}:
        raise ParameterError(
            f"{name} must be numbers that are not negative, one for all or one for each.",
            fix=f"give {name}= as one number or in the shape of what it belongs to.",
        )
    return np.broadcast_to(array, shape).astype(np.float64)


def variance_of(answer: object) -> float | None:
    """Return the variance of the noise of an answer, None if it states none."""
    source = answer if hasattr(answer, "standard_deviation") else getattr(answer, "mechanism", None)
    deviation = getattr(source, "standard_deviation", None)
    return None if deviation is None else float(deviation) ** 2
