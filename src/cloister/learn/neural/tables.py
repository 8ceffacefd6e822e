"""Functions of one number as tables of numbers, so that a value does not depend on where it stands in an array.

Processors compute elementary functions of several numbers at once and of the last few one by one, not always with the
same last bit. A table has one entry for each argument.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from cloister.learn.rows import Floats

__all__ = ["ACTIVATION_BITS", "ERROR_BITS", "LARGEST_ERROR", "TABLE_BITS", "exponentials", "sigmoids", "tanh_steps"]

ACTIVATION_BITS, ERROR_BITS, LARGEST_ERROR = 12, 14, 2**16
TABLE_BITS = 10
"""Arguments of the tables are whole numbers of steps of 2**-TABLE_BITS."""

_REACH = {"tanh": 8, "sigmoid": 32, "exponential": 32}


def tanh_steps(places: Floats) -> Floats:
    """Return 2**ACTIVATION_BITS times the hyperbolic tangent, as whole numbers."""
    return _looked_up("tanh", places)


def sigmoids(places: Floats) -> Floats:
    """Return 1 / (1 + exp(-z))."""
    return _looked_up("sigmoid", places)


def exponentials(places: Floats) -> Floats:
    """Return 2**30 exp(z), for z at most 0, as whole numbers."""
    return _looked_up("exponential", places)


def _looked_up(name: str, places: Floats) -> Floats:
    table, reach = _table(name), _REACH[name] << TABLE_BITS
    found = (np.clip(places, -reach, reach) + reach).astype(np.intp)
    return np.asarray(table[found])


@lru_cache(maxsize=4)
def _table(name: str) -> Floats:
    reach = _REACH[name] << TABLE_BITS
    arguments = np.arange(-reach, reach + 1) * 2.0**-TABLE_BITS
    if name == "tanh":
        return np.asarray(np.rint(np.tanh(arguments) * 2.0**ACTIVATION_BITS))
    if name == "sigmoid":
        return np.asarray(1 / (1 + np.exp(-arguments)))
    return np.asarray(np.rint(np.exp(np.minimum(arguments, 0.0)) * 2.0**30))
