"""Rows for models that are attacked, the same in every run."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from cloister.anonymize.operations.noise import standard_normals
from cloister.core.random import SeededRandomSource

Floats = NDArray[np.float64]


def normals(*shape: int, seed: int) -> Floats:
    """Return standard normal numbers."""
    return np.asarray(standard_normals(SeededRandomSource(seed), int(np.prod(shape)))).reshape(shape)


def noisy_halves(rows: int, columns: int, *, seed: int) -> tuple[Floats, NDArray[np.int64]]:
    """Return rows whose class is the sign of their first number, more or less."""
    features = normals(rows, columns, seed=seed)
    return features, (features[:, 0] + normals(rows, seed=seed + 1) > 0).astype(np.int64)
