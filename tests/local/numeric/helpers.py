"""Exact laws of small devices, and means and variances with their chance errors."""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cloister.core.random import ListedRandomSource
from cloister.local import NumericProtocol, Reports, VectorProtocol
from cloister.local.draws import law_of

Z = 6.2
"""A normal number is further out with a probability below 1e-9."""


def words(*fractions: float) -> ListedRandomSource:
    return ListedRandomSource([int(fraction * 2**64) for fraction in fractions])


def readings(protocol: NumericProtocol | VectorProtocol, code: Any) -> list[tuple[Any, Fraction]]:
    """The unbiased reading of every report of a code, and its exact probability."""
    codes = np.asarray(code)[None]
    law = law_of(lambda draws: protocol.perturb(codes, draws).tobytes())
    rows = np.frombuffer(b"".join(law), dtype=protocol.output_space.dtype)
    return list(zip(protocol.debias(Reports(protocol, rows)), law.values(), strict=True))


def moments(found: Iterable[tuple[Any, Fraction]]) -> tuple[Any, Any]:
    """Mean and variance of readings."""
    pairs = [(value, float(probability)) for value, probability in found]
    mean = sum(value * probability for value, probability in pairs)
    return mean, sum((value - mean) ** 2 * probability for value, probability in pairs)


def mean_is(sample: NDArray[Any], mean: float, variance: float) -> bool:
    """Whether a sample of a variance may have a mean."""
    return bool(abs(sample.mean() - mean) <= Z * np.sqrt(variance / len(sample)))


def variance_is(sample: NDArray[Any], variance: float) -> bool:
    """Whether a sample may have a variance."""
    squares = (sample - sample.mean()) ** 2
    return bool(abs(squares.mean() - variance) <= Z * squares.std() / np.sqrt(len(sample)))
