"""Which values explain the bits of all cohorts: least squares on the public candidates, with standard errors.

In cohort c a share of the bits ``j`` is set truly, ``s[c, j] = sum(share[v] for v with bit j)``. Taking the noise off
the counted ones estimates it without bias, and least squares over all cohorts, each weighted by its reports, solves for
the shares (after Erlingsson, Pihur and Korolova 2014, who use the lasso; and Fanti, Pihur and Erlingsson 2016).

Two things make an estimate uncertain: the noise of the bits, independent given the people, and which people happen to
be in which cohort, of which each holds a part without replacement. Both are accounted for exactly, given the true
shares; with a single cohort the second vanishes, and with a bit per value this is the estimate of unary encoding.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cloister.core.postprocessing import project_to_simplex
from cloister.errors import TooFewReportsError
from cloister.local.estimates import Floats

__all__ = ["CohortBits", "Decoding", "bit_gains", "decode", "plan_variances"]

_CONDITION = 1e10
"""Beyond this the candidates cannot be told apart in floating point."""


@dataclass(frozen=True)
class CohortBits:
    """Counted ones: reports per cohort, ones by cohort and bit, and how often a true and a false bit are told as 1."""

    reports: NDArray[np.int64]
    ones: NDArray[np.int64]
    one_if_set: float
    one_if_clear: float

    @property
    def shares(self) -> Floats:
        """Return the unbiased share of people with each bit truly set; 0 in a cohort without reports."""
        # A cohort without reports has weight zero later, so that what stands here for it is never used.
        told = self.ones / np.maximum(self.reports, 1)[:, None]
        shares = (told - self.one_if_clear) / (self.one_if_set - self.one_if_clear)
        return np.where(self.reports[:, None] > 0, shares, 0.0)

    def noise(self, shares: Floats) -> Floats:
        """Return the variance of one report's part of the share of a bit, given the true shares of the bits."""
        set_, clear = self.one_if_set, self.one_if_clear
        told = shares * set_ * (1 - set_) + (1 - shares) * clear * (1 - clear)
        return np.asarray(told / (set_ - clear) ** 2)


@dataclass(frozen=True)
class Decoding:
    """Estimated shares of the candidates and their variances.

    Attributes:
        shares: unbiased.
        variances: of the shares.
        gram: the normal equations' matrix.
        right: the normal equations' right side.
    """

    shares: Floats
    variances: Floats
    gram: Floats
    right: Floats

    def non_negative(self) -> Floats:
        """Return the shares, none negative, that fit the bits best."""
        from scipy.optimize import nnls

        # The factor turns the normal equations back into least squares, of the size of the candidates and not of all
        # bits.
        factor = np.linalg.cholesky(self.gram)
        found, _ = nnls(factor.T, np.linalg.solve(factor, self.right))
        return np.asarray(found)


def decode(filters: NDArray[np.bool_], counted: CohortBits) -> Decoding:
    """Return the shares of the candidates whose filters are given by cohort, value and bit.

    Raises:
        TooFewReportsError: if the cohorts with reports do not tell all candidates apart.
    """
    weights = counted.reports / counted.reports.sum()
    gram, right = _normal_equations(filters, weights, counted.shares)
    sizes = np.linalg.eigvalsh(gram)
    # Which cohorts reported decides here, and never what they said: cohorts are drawn without the value.
    if sizes[0] * _CONDITION < sizes[-1]:
        raise TooFewReportsError(
            "The cohorts that sent reports do not tell all candidates apart.",
            fix="collect more reports, or use more bits or cohorts.",
        )
    inverse: Floats = np.asarray(np.linalg.inv(gram), dtype=np.float64)
    shares = inverse @ right
    # Variances are worked out at shares that people can have, since the raw ones may be negative.
    variances = _variances(filters, inverse, counted, np.clip(counted.shares, 0, 1), project_to_simplex(shares))
    return Decoding(shares, variances, gram, right)


def plan_variances(filters: NDArray[np.bool_], share: float, *, one_if_set: float, one_if_clear: float) -> Floats:
    """Return for each value, when it has a share and the others the rest equally, its variance times the reports.

    All cohorts are taken to be of one size.
    """
    cohorts, size, bits = filters.shape
    rest = (1 - share) / (size - 1)
    inverse = np.linalg.inv(_normal_matrix(filters, np.full(cohorts, 1 / cohorts)))
    plan = CohortBits(np.ones(cohorts, np.int64), np.zeros((cohorts, bits), np.int64), one_if_set, one_if_clear)
    variances = np.full(size, -share * (1 - share) / cohorts)
    for seen in filters:
        gains, mixed = _influence(seen, inverse / cohorts)
        own = np.diag(mixed)
        mean = rest * mixed.sum(axis=0) + (share - rest) * own
        variances += (gains**2 * plan.noise(rest * seen.sum(axis=0) + (share - rest) * seen).T).sum(axis=0)
        variances += rest * (mixed**2).sum(axis=0) + (share - rest) * own**2 - mean**2
    return np.asarray(cohorts * variances)


def bit_gains(filters: NDArray[np.bool_]) -> Iterator[Floats]:
    """Yield for each cohort by how much one person with a bit set moves each count (bits by values).

    All cohorts are taken to be of one size.
    """
    cohorts = len(filters)
    inverse = np.linalg.inv(_normal_matrix(filters, np.full(cohorts, 1 / cohorts)))
    for seen in filters:
        yield np.asarray(_sparse(seen).T @ inverse)


def _variances(
    filters: NDArray[np.bool_], inverse: Floats, counted: CohortBits, bit_shares: Floats, shares: Floats
) -> Floats:
    """Return the variance of each estimated share: noise of the bits, and the sampling of people into cohorts."""
    total, noise = int(counted.reports.sum()), counted.noise(bit_shares)
    # Cohorts sample the people without replacement: all of them together are everybody, whose own spread is taken off.
    variances = -shares * (1 - shares) / total
    for cohort in np.flatnonzero(counted.reports):
        reports = int(counted.reports[cohort])
        gains, mixed = _influence(filters[cohort], inverse * (reports / total))
        variances += (noise[cohort] @ gains**2 + shares @ mixed**2 - (shares @ mixed) ** 2) / reports
    # A variance that vanishes, as with a single cohort, can be rounded below zero.
    return np.asarray(np.maximum(variances, 0.0))


def _normal_matrix(filters: NDArray[np.bool_], weights: Floats) -> Floats:
    """Return the normal equations' matrix for cohorts of given weights."""
    gram = np.zeros((filters.shape[1], filters.shape[1]))
    for seen, weight in zip(filters, weights, strict=True):
        # A filter has few ones among its bits, so that sparse products are many times faster.
        told = _sparse(seen)
        gram += weight * (told @ told.T).toarray()
    return gram


def _sparse(seen: NDArray[np.bool_]) -> Any:  # a sparse array, whose type has no parameters
    from scipy.sparse import csr_array

    return csr_array(seen.astype(np.float64))


def _influence(seen: NDArray[np.bool_], inverse: Floats) -> tuple[Floats, Floats]:
    """Return by how much each bit, and each value held by the cohort's people, moves each estimate (the columns)."""
    told = _sparse(seen)
    gains = told.T @ inverse
    return np.asarray(gains), np.asarray(told @ gains)


def _normal_equations(filters: NDArray[np.bool_], weights: Floats, bit_shares: Floats) -> tuple[Floats, Floats]:
    right = np.zeros(filters.shape[1])
    for seen, weight, observed in zip(filters, weights, bit_shares, strict=True):
        right += weight * (seen @ observed)
    return _normal_matrix(filters, weights), right
