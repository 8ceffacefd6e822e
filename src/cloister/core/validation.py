"""Checks of parameters: each returns the clean value or raises an error with a fix."""

from __future__ import annotations

import functools
import inspect
import warnings
from collections.abc import Callable, Collection
from fractions import Fraction
from numbers import Integral
from typing import Any, TypeVar

import numpy as np

from cloister.core import exact
from cloister.core.wordings import a_or_an
from cloister.errors import ParameterError, ParameterTypeError, PrivacyParameterWarning, did_you_mean


def check_epsilon(value: object, *, allow_zero: bool = False, name: str = "epsilon") -> Fraction:
    """Return epsilon as an exact number above zero (or not below, where zero is allowed)."""
    epsilon = exact.number(value, name=name)
    if epsilon < 0 or (epsilon == 0 and not allow_zero):
        bound = "at least 0" if allow_zero else "above 0"
        raise ParameterError(f"{name} must be {bound}.", fix=f"use for example {name}=0.5; smaller is more private.")
    return epsilon


def check_delta(value: object, *, allow_zero: bool = True, rows: int | None = None) -> Fraction:
    """Return delta as an exact number in [0, 1), warning when it is not below 1/rows for a public row count."""
    delta = exact.number(value, name="delta")
    if not 0 <= delta < 1 or (delta == 0 and not allow_zero):
        bound = "from 0 up to, not including, 1" if allow_zero else "above 0 and below 1"
        raise ParameterError(f"delta must be {bound}.", fix="use for example delta=1e-6, well below 1/rows.")
    if rows is not None and delta * rows >= 1:
        warnings.warn(
            f"delta = {float(delta):g} is not below 1/{rows}: publishing a random row outright would satisfy it.",
            PrivacyParameterWarning,
            stacklevel=3,
        )
    return delta


def check_positive(value: object, *, name: str) -> Fraction:
    """Return an exact number above zero."""
    result = exact.number(value, name=name)
    if result <= 0:
        raise ParameterError(f"{name} must be above 0.", fix=f"give a positive {name}.")
    return result


def check_non_negative(value: object, *, name: str) -> Fraction:
    """Return an exact number that is not below zero."""
    result = exact.number(value, name=name)
    if result < 0:
        raise ParameterError(f"{name} must be at least 0.", fix=f"give {a_or_an(name)} that is not negative.")
    return result


def check_between(value: object, *, name: str, lowest: float, highest: float) -> Fraction:
    """Return an exact number between public limits, both included."""
    result = exact.number(value, name=name)
    if not exact.number(lowest) <= result <= exact.number(highest):
        raise ParameterError(
            f"{name} must be between {lowest:g} and {highest:g}.",
            fix=f"use {name} from {lowest:g} to {highest:g}.",
        )
    return result


def check_probability(value: object, *, name: str) -> Fraction:
    """Return an exact number in [0, 1]."""
    result = exact.number(value, name=name)
    if not 0 <= result <= 1:
        raise ParameterError(
            f"{name} must be between 0 and 1.", fix=f"give {name} as a probability, such as 0.05 for 5%."
        )
    return result


def check_confidence(value: object) -> Fraction:
    """Return a confidence level strictly between 0 and 1."""
    result = exact.number(value, name="confidence")
    if not 0 < result < 1:
        raise ParameterError("confidence must be between 0 and 1.", fix="use for example confidence=0.95.")
    return result


def check_count(value: object, *, name: str, at_least: int = 0) -> int:
    """Return a whole number that is not below a limit."""
    if isinstance(value, bool) or not isinstance(value, Integral):
        raise ParameterTypeError(f"{name} is not a whole number.", fix=f"give {name} as an integer.")
    result = int(value)
    if result < at_least:
        raise ParameterError(f"{name} must be at least {at_least}.", fix=f"use for example {name}={max(at_least, 1)}.")
    return result


def check_bounds(value: object, *, name: str = "bounds") -> tuple[Fraction, Fraction]:
    """Return (lower, upper) as exact numbers with lower below upper."""
    if isinstance(value, str) or not isinstance(value, Collection | np.ndarray) or len(value) != 2:
        raise ParameterTypeError(f"{name} must be a pair (lower, upper).", fix=f"write for example {name}=(0, 110).")
    low, high = (exact.number(item, name=f"each end of {name}") for item in value)
    if low == high:
        raise ParameterError(
            f"{name} are empty: both ends are {float(low):g}.", fix=f"write {name} that leave room, such as (0, 110)."
        )
    if low > high:
        raise ParameterError(
            f"{name} are reversed: {float(low):g} is not below {float(high):g}.",
            fix=f"write the smaller number first: {name}=({float(min(low, high)):g}, {float(max(low, high)):g}).",
        )
    return low, high


_Class = TypeVar("_Class")


def refuse_unknown_options(cls: type[_Class]) -> type[_Class]:
    """Let the public methods of a class that have a price refuse a misspelled option in words, as a class decorator."""
    for name, method in list(vars(cls).items()):
        if not name.startswith("_") and inspect.isfunction(method) and "epsilon" in (method.__kwdefaults__ or {}):
            setattr(cls, name, _checked(method))
    return cls


def _checked(method: Callable[..., Any]) -> Callable[..., Any]:
    known = [name for name in inspect.signature(method).parameters if name != "self"]
    priced = [*known[known.index("epsilon") :], *known[: known.index("epsilon")]]

    @functools.wraps(method)
    def call(*arguments: Any, **options: Any) -> Any:
        unknown = next((name for name in options if name not in known), None)
        if unknown is not None:
            raise ParameterTypeError(
                f'There is no option "{unknown}" here.{did_you_mean(unknown, known)}', fix=f"use {', '.join(priced)}."
            )
        return method(*arguments, **options)

    return call


def check_choice(value: object, *, name: str, allowed: Collection[str]) -> str:
    """Return one of a few public names."""
    if value not in allowed:
        hint = did_you_mean(str(value), allowed)
        raise ParameterError(f'{name}="{value}" is not known.{hint}', fix=f"use one of {', '.join(allowed)}.")
    return str(value)
