"""Known laws to compare samples with: a cumulative distribution function, or the probabilities of a finite law.

Everything here is floating point, good to about 1e-12: enough for a statistical test, never for a guarantee.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import special

from cloister.errors import ParameterError

__all__ = [
    "Distribution",
    "categorical",
    "continuous",
    "discrete",
    "discrete_gaussian",
    "discrete_laplace",
    "exponential",
    "gaussian",
    "laplace",
    "uniform",
]

Floats: TypeAlias = NDArray[np.float64]
Cdf: TypeAlias = Callable[[Floats], Floats]

_WINDOW = 2**22


@dataclass(frozen=True, slots=True, kw_only=True)
class Distribution:
    """A law on the line (``cdf``, on a lattice or not) or on a finite set (``probabilities``)."""

    cdf: Cdf | None = None
    probabilities: Mapping[Hashable, float] | None = None
    lattice: float | None = None

    def __post_init__(self) -> None:
        if (self.cdf is None) == (self.probabilities is None):
            raise ParameterError(
                "A law has either a cdf or probabilities.",
                fix="write continuous(cdf), discrete(pmf) or categorical({value: probability, ...}).",
            )


def continuous(cdf: Cdf) -> Distribution:
    """Return a continuous law from its cumulative distribution function, which takes and returns an array."""
    return Distribution(cdf=cdf)


def discrete(pmf: Callable[[NDArray[np.int64]], Floats], *, center: int = 0) -> Distribution:
    """Return a law on the integers from its probabilities, summed up outwards from a center.

    Raises:
        ParameterError: if a window of four million integers around the center holds less than 1 - 1e-9 of the law.
    """
    half = 64
    while True:
        points = np.arange(center - half, center + half + 1)
        cumulative = np.cumsum(pmf(points))
        if abs(cumulative[-1] - 1) <= 1e-9:
            break
        if half >= _WINDOW:
            raise ParameterError(
                "The probabilities do not add up to 1 near the center.",
                fix="give center= close to the middle of the law, or give its cdf with Distribution(cdf=, lattice=1).",
            )
        half *= 2
    # Rounding leaves the sum a hair from 1.
    steps = np.concatenate(([0.0], cumulative / cumulative[-1]))

    def cdf(values: Floats) -> Floats:
        ranks = np.clip(np.floor(values) - points[0] + 1, 0, len(points)).astype(np.int64)
        return np.asarray(steps[ranks], dtype=np.float64)

    return Distribution(cdf=cdf, lattice=1)


def categorical(probabilities: Mapping[Hashable, float]) -> Distribution:
    """Return a law on a finite set of values of any kind."""
    values = np.array(list(probabilities.values()), dtype=np.float64)
    if not (values >= 0).all() or abs(values.sum() - 1) > 1e-9:
        raise ParameterError(
            "The probabilities are negative or do not add up to 1.", fix="give every value with its probability."
        )
    return Distribution(probabilities=dict(probabilities))


def laplace(scale: float, *, location: float = 0.0) -> Distribution:
    """Return the Laplace law, of variance 2 * scale**2."""

    def cdf(values: Floats) -> Floats:
        tail = np.exp(-np.abs(values - location) / scale) / 2
        return np.where(values < location, tail, 1 - tail)

    return continuous(cdf)


def gaussian(sigma: float, *, location: float = 0.0) -> Distribution:
    """Return the normal law."""
    return continuous(lambda values: _floats(special.ndtr((values - location) / sigma)))


def uniform(low: float, high: float) -> Distribution:
    """Return the uniform law on an interval."""
    return continuous(lambda values: _floats(np.clip((values - low) / (high - low), 0, 1)))


def exponential(scale: float) -> Distribution:
    """Return the exponential law of a mean."""
    return continuous(lambda values: -np.expm1(-np.maximum(values, 0) / scale))


def discrete_laplace(scale: float, *, location: int = 0) -> Distribution:
    """Return the discrete Laplace law: Pr[k] proportional to exp(-|k - location| / scale), any scale."""
    ratio = float(np.exp(-1 / scale))

    def cdf(values: Floats) -> Floats:
        steps = np.floor(values) - location
        left = ratio ** np.maximum(-steps, 0) / (1 + ratio)
        right = 1 - ratio ** (np.maximum(steps, 0) + 1) / (1 + ratio)
        return _floats(np.where(steps < 0, left, right))

    return Distribution(cdf=cdf, lattice=1)


def discrete_gaussian(sigma: float, *, location: int = 0) -> Distribution:
    """Return the discrete normal law: Pr[k] proportional to exp(-(k - location)**2 / (2 sigma**2))."""
    half = int(np.ceil(12 * sigma)) + 12
    total = float(np.exp(-(np.arange(-half, half + 1) ** 2) / (2 * sigma**2)).sum())
    return discrete(
        lambda points: _floats(np.exp(-((points - location) ** 2) / (2 * sigma**2)) / total),
        center=location,
    )


def _floats(values: ArrayLike) -> Floats:
    return np.asarray(values, dtype=np.float64)
