"""Features on a common scale, for learners and attackers that look at distances."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, TransformerMixin

from cloister.learn.rows import Floats

__all__ = ["CommonScale", "common_widths"]

_NOISE = 1e-12
"""What spreads less than this, as a share of the largest number, is noise of the arithmetic."""


def common_widths(rows: Floats) -> Floats:
    """Return the standard deviation of each feature; infinity, where it does not vary, so that it counts for nothing.

    Some projections have components along which all rows agree. Their z differ by rounding alone, and divided by their
    own deviation they would drown the others.

    >>> common_widths(np.array([[1.0, 5.0], [3.0, 5.0]])).tolist()
    [1.0, inf]
    """
    widths = rows.std(axis=0)
    return np.where(widths > _NOISE * np.abs(rows).max(initial=0.0), widths, np.inf)


class CommonScale(TransformerMixin, BaseEstimator):  # type: ignore[misc]  # scikit-learn is not typed
    """Subtracts means and divides by deviations; features that do not vary become zero."""

    def fit(self, X: Any, y: Any = None) -> Any:  # noqa: ARG002  # there is no label
        """Remember means and deviations."""
        rows = np.asarray(X, dtype=np.float64)
        self.mean_, self.width_ = rows.mean(axis=0), common_widths(rows)
        return self

    def transform(self, X: Any) -> Floats:
        """Return scaled rows."""
        return np.asarray((np.asarray(X, dtype=np.float64) - self.mean_) / self.width_)
