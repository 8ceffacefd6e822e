"""Noise on numbers (additive, correlated, multiplicative), and the distribution behind noisy values.

Additive noise has the variance ``c * Var(X)`` per column, correlated noise the covariance ``c * Sigma`` over several
columns, which keeps correlation coefficients (Kim 1986); both keep means. Multiplicative noise is ``X * (1 + e)``.

No guarantee: correlated columns let an adversary filter much of the noise out (Kargupta et al. 2003), and the noise of
an outlier is small beside its distance to the others. Use differential privacy where a promise is needed.

Real numbers for operations that promise nothing come from `core.random`. Noise is drawn by the exact discrete Gaussian
sampler of `mechanisms` on a grid of 2**-24 standard deviations and then becomes a float. That is close to a normal law
for any statistic, and no claim of differential privacy rests on it.

The distribution behind noisy values is found by the iteration of Agrawal and Srikant (2000), which is
expectation-maximization. It estimates how the true values are distributed, on chosen points, from values with additive
normal noise of a known deviation. It does not recover single values.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction

import numpy as np
import pyarrow as pa
from numpy.typing import ArrayLike

from cloister.anonymize.operations._arrow_columns import Floats, column_of, floats_of, with_column
from cloister.anonymize.operations.base import Operation, OperationContext, need_names, operations
from cloister.core.construction import construct
from cloister.core.exact import Number
from cloister.core.random import RandomSource
from cloister.core.validation import check_choice, check_count, check_positive
from cloister.errors import DataError, ParameterError
from cloister.mechanisms.sampling.discrete_noise import discrete_gaussian

_STEPS = 2**24


def standard_normals(source: RandomSource, count: int) -> Floats:
    """Return independent draws from the standard normal law."""
    steps = discrete_gaussian(Fraction(_STEPS**2)).draw(source, count)
    return np.asarray(steps, dtype=np.float64) / _STEPS


def uniforms(source: RandomSource, count: int) -> Floats:
    """Return independent numbers strictly between 0 and 1."""
    # With 53 bits the largest number plus a half would round up to 1.
    words = source.words(count) >> np.uint64(12)
    return np.asarray((words.astype(np.float64) + 0.5) * 2.0**-52)


_KINDS = ("additive", "correlated", "multiplicative")


@operations.register("add_noise")
@dataclass(frozen=True, slots=True, kw_only=True)
class AddNoise(Operation):
    """Add normal noise to numbers. Whole numbers become real ones; missing cells stay missing.

    Attributes:
        columns: columns of numbers.
        kind: ``additive`` (independent per column), ``correlated`` (with the covariance of the columns) or
            ``multiplicative`` (in proportion to the value).
        variance_ratio: the variance of the noise over that of the column, the c of the literature; for additive and
            correlated noise.
        deviation: instead, the standard deviation of the noise; for multiplicative noise, relative to the value.
    """

    name = "add_noise"
    truthful = False
    is_random = True
    caution = "values carry noise; noise on correlated columns can be filtered out in part, and nothing is promised"

    columns: tuple[str, ...] = field(kw_only=False)
    kind: str = "additive"
    variance_ratio: Fraction | None = None
    deviation: Fraction | None = None

    def __init__(
        self,
        columns: str | Sequence[str],
        *,
        kind: str = "additive",
        variance_ratio: Number | None = None,
        deviation: Number | None = None,
    ) -> None:
        construct(self, columns=columns, kind=kind, variance_ratio=variance_ratio, deviation=deviation)

    def __post_init__(self) -> None:
        object.__setattr__(self, "columns", need_names(self.columns))
        check_choice(self.kind, name="kind", allowed=_KINDS)
        for setting in ("variance_ratio", "deviation"):
            given = getattr(self, setting)
            object.__setattr__(self, setting, None if given is None else check_positive(given, name=setting))
        if (self.variance_ratio is None) == (self.deviation is None):
            raise ParameterError("Noise needs one of variance_ratio and deviation.", fix="write variance_ratio=0.1.")
        if self.kind == "multiplicative" and self.deviation is None:
            raise ParameterError("Multiplicative noise needs a deviation.", fix="write deviation=0.1 for ten percent.")
        if self.kind == "correlated" and self.variance_ratio is None:
            raise ParameterError("Correlated noise needs a variance_ratio.", fix="write variance_ratio=0.1.")

    def transform(self, rows: pa.Table, context: OperationContext) -> pa.Table:
        """Return the rows with noise."""
        values = np.column_stack([floats_of(column_of(rows, name), name) for name in self.columns])
        normal = standard_normals(context.source, values.size).reshape(values.shape)
        noisy = values * (1 + float(self.deviation or 0) * normal)
        if self.kind != "multiplicative":
            noisy = values + normal @ self._factor(values)
        for place, name in enumerate(self.columns):
            rows = with_column(rows, name, pa.array(noisy[:, place], mask=np.isnan(values[:, place])))
        return rows

    def _factor(self, values: Floats) -> Floats:
        """Return the matrix that turns standard normal rows into noise."""
        if self.variance_ratio is None:
            return np.asarray(np.eye(len(self.columns)) * float(self.deviation or 0))
        root = float(self.variance_ratio) ** 0.5
        if self.kind == "additive":
            spreads = [self._spread(values[:, place], name) for place, name in enumerate(self.columns)]
            return np.asarray(root * np.diag(spreads))
        complete = values[~np.isnan(values).any(axis=1)]
        for place, name in enumerate(self.columns):
            self._spread(complete[:, place], name)
        # This root exists also where columns depend on each other, where Cholesky's would fail.
        scales, axes = np.linalg.eigh(np.atleast_2d(np.cov(complete, rowvar=False, ddof=0)))
        return np.asarray(root * (axes * np.sqrt(np.maximum(scales, 0))).T)

    def _spread(self, values: Floats, name: str) -> float:
        there = values[~np.isnan(values)]
        spread = float(there.std()) if there.size else 0.0
        if spread == 0 or not np.isfinite(spread):
            raise DataError(f'Column "{name}" has no spread to measure noise by.', fix="give deviation= instead.")
        return spread


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
    values, weights = _weigh_values(np.asarray(noisy, dtype=np.float64).ravel(), scale, len(places))
    if not len(values):
        raise ParameterError("There are no values.", fix="give the published values.")
    exponents = -0.5 * ((values[:, None] - places[None, :]) / scale) ** 2
    # Each line is divided by its own sum later, so that scaling it costs nothing and keeps it from vanishing.
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


def _weigh_values(values: Floats, scale: float, points: int) -> tuple[Floats, Floats]:
    """Return distinct values and their shares."""
    there = values[~np.isnan(values)]
    if not np.isfinite(there).all():
        raise ParameterError("The values are not finite.", fix="remove infinite values.")
    distinct, counts = np.unique(there, return_counts=True)
    if distinct.size * points > _MOST_CELLS:
        step = scale / _GRID
        distinct, counts = np.unique(np.round(there / step) * step, return_counts=True)
    return distinct, counts / max(there.size, 1)
