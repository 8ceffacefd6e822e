"""Noise on numbers: additive, correlated, multiplicative.

Additive noise has the variance ``c * Var(X)`` per column, correlated noise the covariance ``c * Sigma`` over several
columns, which keeps correlation coefficients (Kim 1986); both keep means. Multiplicative noise is ``X * (1 + e)``.

No guarantee: correlated columns let an adversary filter much of the noise out (Kargupta et al. 2003), and the noise of
an outlier is small beside its distance to the others. Use differential privacy where a promise is needed.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction

import numpy as np
import pyarrow as pa

from cloister.anonymize.operations.base import Context, Operation, operations
from cloister.anonymize.operations.cells import Floats, column_of, floats_of, with_column
from cloister.anonymize.operations.plain import names
from cloister.anonymize.operations.sampling import standard_normals
from cloister.core.validation import check_choice, check_positive
from cloister.errors import DataError, ParameterError

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

    def __post_init__(self) -> None:
        object.__setattr__(self, "columns", names(self.columns))
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

    def transform(self, rows: pa.Table, context: Context) -> pa.Table:
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
        scales, axes = np.linalg.eigh(np.atleast_2d(np.cov(complete, rowvar=False, ddof=0)))
        return np.asarray(root * (axes * np.sqrt(np.maximum(scales, 0))).T)

    def _spread(self, values: Floats, name: str) -> float:
        there = values[~np.isnan(values)]
        spread = float(there.std()) if there.size else 0.0
        if spread == 0 or not np.isfinite(spread):
            raise DataError(f'Column "{name}" has no spread to measure noise by.', fix="give deviation= instead.")
        return spread
