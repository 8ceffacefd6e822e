"""What a model would release without noise: exact whole numbers, to be compared."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from cloister.learn.naive_bayes import PrivateNaiveBayes
from cloister.mechanisms.step_noise import GaussianSteps, LaplaceSteps


@contextmanager
def without_noise() -> Iterator[list[NDArray[Any]]]:
    """Give what is released as it is, and keep a copy of it."""
    seen: list[NDArray[Any]] = []

    def add(_: Any, values: NDArray[Any], __: Any) -> NDArray[Any]:
        seen.append(np.array(values))
        return values

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(LaplaceSteps, "add", add)
        patch.setattr(GaussianSteps, "add", add)
        yield seen


def exact_vector(model: PrivateNaiveBayes, X: Any, y: Any) -> NDArray[Any]:
    """Return the whole numbers that the noise of a fit meets."""
    with without_noise() as seen:
        model.fit(X, y)
    (vector,) = seen
    return vector
