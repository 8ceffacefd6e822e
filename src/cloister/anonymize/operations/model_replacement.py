"""Replacing columns by fresh draws from fitted marginal laws: quick, and weak.

Each column of numbers gets the best of a few families (smallest squared error between its histogram of 500 bins and the
density), each other column its own frequencies, and every cell is drawn anew. Columns are drawn independently: **all
relations between them are destroyed**. And it does not make a table private: columns that stay are exact, rare
categories reappear, and parameters were fitted without noise. Prefer a synthesizer with a joint, private model.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from cloister.anonymize.operations._arrow_columns import Floats, column_of, floats_of, is_number, present, with_column
from cloister.anonymize.operations.base import Operation, OperationContext, need_names, operations
from cloister.anonymize.operations.noise import uniforms
from cloister.core.construction import construct
from cloister.core.lazy_imports import late_module
from cloister.core.random import RandomSource, integers_below
from cloister.errors import DataError, PrivacyParameterWarning

special = late_module("scipy.special")

_BINS = 500
_WARNING = (
    "Columns replaced by models are drawn independently, so that all relations between them are lost; the other "
    "columns stay exact, so that rows can still be linked to people. Nothing is promised: measure the risk of the "
    "result."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Marginal:
    """A fitted law: its family's name, its density and its quantiles."""

    family: str
    density: Callable[[Floats], Floats] = field(repr=False)
    quantile: Callable[[Floats], Floats] = field(repr=False)


@operations.register("replace_by_model")
@dataclass(frozen=True, slots=True, kw_only=True)
class ReplaceByModel(Operation):
    """Replace cells by fresh draws from a law fitted to their column alone; missing cells stay missing.

    Warns each time: see the module's text for what is lost and what is not protected.

    Attributes:
        columns: the columns.
    """

    name = "replace_by_model"
    truthful = False
    is_random = True
    caution = "cells are invented draws per column: relations between columns are destroyed, and nothing is promised"

    columns: tuple[str, ...] = field(kw_only=False)

    def __init__(
        self,
        columns: str | Sequence[str],
    ) -> None:
        construct(self, columns=columns)

    def __post_init__(self) -> None:
        object.__setattr__(self, "columns", need_names(self.columns))

    def transform(self, rows: pa.Table, context: OperationContext) -> pa.Table:
        """Return the rows with fresh draws."""
        warnings.warn(_WARNING, PrivacyParameterWarning, stacklevel=4)
        for name in self.columns:
            column = column_of(rows, name)
            draw = _draw_numbers if is_number(column) else _draw_categories
            rows = with_column(rows, name, draw(column, name, context.source))
        return rows


def fit_marginal(values: Floats) -> Marginal:
    """Return the best-fitting law among normal, Laplace, uniform, exponential, lognormal and gamma ones."""
    if np.ptp(values) == 0 or not np.isfinite(np.ptp(values)):
        raise DataError("A column has no spread, or an infinite one, to fit a law to.", fix="leave it out.")
    heights, edges = np.histogram(values, bins=_BINS, density=True)
    centers = (edges[:-1] + edges[1:]) / 2
    return min(_candidates(values), key=lambda law: float(((law.density(centers) - heights) ** 2).sum()))


def _candidates(values: Floats) -> list[Marginal]:
    low, span = float(values.min()), float(np.ptp(values))
    laws = [_normal(values), _laplace(values), _uniform(low, span), _exponential(low, float(values.mean()) - low)]
    if low > 0:
        laws.append(_lognormal(np.log(values)))
        laws.append(_gamma(values))
    return laws


def _normal(values: Floats) -> Marginal:
    mean, spread = float(values.mean()), float(values.std())
    return Marginal(
        family="normal",
        density=lambda x: np.exp(-(((x - mean) / spread) ** 2) / 2) / (spread * math.sqrt(2 * math.pi)),
        quantile=lambda u: mean + spread * special.ndtri(u),
    )


def _laplace(values: Floats) -> Marginal:
    middle = float(np.median(values))
    scale = float(np.abs(values - middle).mean())
    return Marginal(
        family="laplace",
        density=lambda x: np.exp(-np.abs(x - middle) / scale) / (2 * scale),
        quantile=lambda u: middle - scale * np.sign(u - 0.5) * np.log1p(-2 * np.abs(u - 0.5)),
    )


def _uniform(low: float, span: float) -> Marginal:
    return Marginal(family="uniform", density=lambda x: np.full(x.shape, 1 / span), quantile=lambda u: low + span * u)


def _exponential(low: float, scale: float) -> Marginal:
    return Marginal(
        family="exponential",
        density=lambda x: np.exp(-(x - low) / scale) / scale,
        quantile=lambda u: low - scale * np.log1p(-u),
    )


def _lognormal(logs: Floats) -> Marginal:
    normal = _normal(logs)
    return Marginal(
        family="lognormal",
        density=lambda x: normal.density(np.log(x)) / x,
        quantile=lambda u: np.exp(normal.quantile(u)),
    )


def _gamma(values: Floats) -> Marginal:
    """Return the gamma law with the column's mean and variance."""
    mean, variance = float(values.mean()), float(values.var())
    shape, scale = mean**2 / variance, variance / mean
    return Marginal(
        family="gamma",
        density=lambda x: np.exp((shape - 1) * np.log(x / scale) - x / scale - special.gammaln(shape)) / scale,
        quantile=lambda u: scale * special.gammaincinv(shape, u),
    )


def _draw_numbers(column: pa.Array, name: str, source: RandomSource) -> pa.Array:
    there = present(column)
    values = floats_of(column, name)
    if not there.any():
        return column
    drawn = values.copy()
    drawn[there] = fit_marginal(values[there]).quantile(uniforms(source, int(there.sum())))
    if pa.types.is_integer(column.type):
        # Quantiles of wide laws may pass 64 bits.
        whole = np.clip(np.rint(np.where(there, drawn, 0)), -(2.0**62), 2.0**62).astype(np.int64)
        return pa.array(whole, mask=~there)
    return pa.array(drawn, mask=~there)


def _draw_categories(column: pa.Array, name: str, source: RandomSource) -> pa.Array:  # noqa: ARG001  # as for numbers
    """Return draws from the column's own frequencies: cells of random rows."""
    there = np.flatnonzero(present(column))
    if not there.size:
        return column
    rows = np.arange(len(column))
    rows[there] = there[integers_below(source, there.size, there.size)]
    return column.take(pa.array(rows))
