"""Small data sets that several tests use."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.datasets import load_digits

from cloister.core.random import SeededRandomSource, permutation
from cloister.testing.samplers import gaussian

X = np.array([[0.0, 0.0], [0.0, 2.0], [2.0, 0.0], [2.0, 2.0]])
UTILITY, PRIVACY = np.array([0, 0, 1, 1]), np.array([0, 1, 0, 1])


def normal(rows: int, columns: int) -> np.ndarray:
    return gaussian(1.0, rows * columns).reshape(rows, columns)


def digits() -> tuple[np.ndarray, np.ndarray]:
    found: Any = load_digits(return_X_y=True)
    return found


def halves(rows: int) -> tuple[np.ndarray, np.ndarray]:
    first, second = np.split(permutation(SeededRandomSource(1), rows), [rows // 2])
    return first, second
