"""The distribution behind noisy values: the iteration of Agrawal and Srikant (2000), which is expectation-maximization.

It estimates how the true values are distributed, on chosen points, from values with additive normal noise of a known
deviation. It does not recover single values.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from cloister.anonymize.operations.cells import Floats
from cloister.core.validation import check_count, check_positive
from cloister.errors import ParameterError

_MOST_CELLS = 2**23
_GRID = 100


def reconstruct_distribution(
    noisy: ArrayLike,
    *,
    points: ArrayLike,
    deviation: object,
    tolerance: object = 1e-4,
    most_rounds: int = 10_000,
) -> Floats:
    """Return the estimated probability of each point, from values with normal noise.

    Starts from equal probabilities and repeats
    ``f(a) <- mean over i of g(w_i - a) f(a) / sum over b of g(w_i - b) f(b)`` until no probability changes by
    as much as the tolerance. Very many values are first rounded to a hundredth of the noise's deviation.

    Args:
        noisy: the published values; missing ones (NaN) do not count.
        points: where true values may lie, in increasing order.
        deviation: the standard deviation of the noise.
        tolerance: when to stop.
        most_rounds: when to stop in any case.
    """
    scale, stop = float(check_positive(deviation, name="deviation")), float(check_positive(tolerance, name="tolerance"))
    check_count(most_rounds, name="most_rounds", at_least=1)
    places = _increasing(points)
    values, weights = _weighted(np.asarray(noisy, dtype=np.float64).ravel(), scale, len(places))
    if not len(values):
        raise ParameterError("There are no values.", fix="give the published values.")
    exponents = -0.5 * ((values[:, None] - places[None, :]) / scale) ** 2
    kernel = np.exp(exponents - exponents.max(axis=1, keepdims=True))
    shares = np.full(len(places), 1 / len(places))
    for _ in range(most_rounds):
        posterior = weights / (kernel @ shares)
        after = shares * (posterior @ kernel)
        change, shares = np.abs(after - shares).max(), after / after.sum()
        if change < stop:
            break
    return np.asarray(shares)


def _increasing(points: ArrayLike) -> Floats:
    places = np.asarray(points, dtype=np.float64)
    if places.ndim != 1 or len(places) < 2 or not (np.isfinite(places).all() and (np.diff(places) > 0).all()):
        raise ParameterError("The points are not two or more increasing numbers.", fix="give a grid of points.")
    return places


def _weighted(values: Floats, scale: float, points: int) -> tuple[Floats, Floats]:
    """Return distinct values and their shares."""
    there = values[~np.isnan(values)]
    if not np.isfinite(there).all():
        raise ParameterError("The values are not finite.", fix="remove infinite values.")
    distinct, counts = np.unique(there, return_counts=True)
    if distinct.size * points > _MOST_CELLS:
        step = scale / _GRID
        distinct, counts = np.unique(np.round(there / step) * step, return_counts=True)
    return distinct, counts / max(there.size, 1)
