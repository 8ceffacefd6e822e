"""Scatter matrices, the ratio of two of them that each projection maximizes, and the directions that maximize it.

*Scatter* is how rows spread in all, inside of classes, and between classes. For rows x with mean m, and classes l of
n_l rows with mean m_l: the total scatter is the sum of (x-m)(x-m)', the within scatter the sum of (x-m_l)(x-m_l)', and
the between scatter the sum over classes of n_l (m_l-m)(m_l-m)'. The total is the sum of the other two, and the between
scatter has rank at most (number of classes - 1). Some texts print the between scatter with the term for the overall
mean inside of the sum over classes; that matrix is not positive semidefinite.

A *ratio* is what is wanted, over what is not. Discriminant components (DCA), the discriminant ratio (MDR) and their
orderings of the noise subspace are after Kung, "Compressive privacy" (IEEE Signal Processing Magazine, 2017) and
Chanyaswad, Chang and Kung (2017); linear discriminants after Fisher and Rao. A positive number ``rho`` on the diagonal
keeps the denominator invertible. With ``rho_prime``, directions in which classes do not differ have eigenvalue
1 + rho_prime / (s + rho), where s is the scatter along them: below 0 the ones with much variance come first, above 0
those with little.

The directions solve a *generalized eigenproblem* A v = lambda B v, the same way each time: one routine for every
projection. With the Cholesky factor B = L L', the eigenvectors of inv(L) A inv(L') are turned back. Eigenvalues come in
decreasing order. Signs are such that the largest entry is positive. Where eigenvalues are equal, any basis of their
space would do, and a library may return another one on another machine: here the basis is the one that is triangular at
the coordinates in which the space is largest, in the order of these coordinates.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import linalg

from cloister.core import validation
from cloister.core.whole_rows import Floats
from cloister.errors import ParameterError

__all__ = [
    "ScatterRatio",
    "association",
    "between_scatter",
    "class_means",
    "discriminant_ratio",
    "fisher_ratio",
    "principal_ratio",
    "solve_eigenproblem",
    "total_scatter",
    "utility_cost_ratio",
    "utility_privacy_ratio",
    "with_fixed_signs",
    "within_scatter",
]


Codes = NDArray[np.int64]


def total_scatter(X: Floats) -> Floats:
    """Return the scatter of rows about their mean.

    >>> total_scatter(np.array([[0.0, 0.0], [0.0, 2.0], [2.0, 0.0], [2.0, 2.0]])).tolist()
    [[4.0, 0.0], [0.0, 4.0]]
    """
    centered = X - X.mean(axis=0)
    return np.asarray(centered.T @ centered)


def within_scatter(X: Floats, codes: Codes) -> Floats:
    """Return the scatter of rows about the means of their classes, the classes being 0, 1, ..."""
    means, _ = class_means(X, codes)
    centered = X - means[codes]
    return np.asarray(centered.T @ centered)


def between_scatter(X: Floats, codes: Codes) -> Floats:
    """Return the scatter of class means about the mean, each class counting as often as it has rows."""
    means, counts = class_means(X, codes)
    spread = means - X.mean(axis=0)
    return np.asarray((counts[:, None] * spread).T @ spread)


def class_means(X: Floats, codes: Codes) -> tuple[Floats, Floats]:
    """Return the mean of each class, and how many rows it has."""
    counts = np.bincount(codes).astype(np.float64)
    indicators = (codes[:, None] == np.arange(len(counts))).astype(np.float64)
    return np.asarray(indicators.T @ X / counts[:, None]), counts


def association(one: Codes, other: Codes) -> float:
    """Return Cramér's V of two labels of the same rows: 0 for independent ones, 1 if one determines the other.

    >>> association(np.array([0, 0, 1, 1]), np.array([0, 1, 0, 1]))
    0.0
    """
    table = np.zeros((int(one.max()) + 1, int(other.max()) + 1))
    np.add.at(table, (one, other), 1.0)
    expected: Any = table.sum(axis=1, keepdims=True) * table.sum(axis=0) / table.sum()
    chi_squared = ((table - expected) ** 2 / expected).sum()
    return float(np.sqrt(chi_squared / (table.sum() * (min(table.shape) - 1))))


@dataclass(frozen=True, slots=True, eq=False)
class ScatterRatio:
    """A numerator, a denominator, and the number on the diagonal of the latter."""

    numerator: Floats
    denominator: Floats
    rho: float


def principal_ratio(rows: Floats) -> ScatterRatio:
    """Return the total scatter over the identity (PCA)."""
    return ScatterRatio(total_scatter(rows), np.eye(rows.shape[1]), 0.0)


def discriminant_ratio(rows: Floats, codes: Codes, *, rho: Any, rho_prime: Any) -> ScatterRatio:
    """Return the between scatter over the total one (DCA), or its variant that orders the noise subspace as well."""
    within = within_scatter(rows, codes)
    used = _rho(rho, within)
    if rho_prime is None:
        return ScatterRatio(between_scatter(rows, codes), _add_ridge(total_scatter(rows), used), used)
    return ScatterRatio(_add_ridge(total_scatter(rows), used + _finite(rho_prime)), _add_ridge(within, used), used)


def fisher_ratio(rows: Floats, codes: Codes, *, rho: Any) -> ScatterRatio:
    """Return the between scatter over the within one (LDA)."""
    within = within_scatter(rows, codes)
    used = _rho(rho, within)
    return ScatterRatio(between_scatter(rows, codes), _add_ridge(within, used), used)


def utility_privacy_ratio(rows: Floats, codes: Codes, private: Codes, *, rho: Any, width: int) -> ScatterRatio:
    """Return the between scatter of utility classes over that of privacy classes (MDR), in ``width`` features."""
    unwanted = between_scatter(rows, private)
    used = 1e-3 * float(np.trace(unwanted)) / width if rho is None else _number(rho, name="rho")
    return ScatterRatio(between_scatter(rows, codes), _add_ridge(unwanted, used), used)


def utility_cost_ratio(
    rows: Floats, wanted: Sequence[Codes], unwanted: Sequence[Codes], *, gains: Any, costs: Any, rho: Any
) -> ScatterRatio:
    """Return weighted between scatters of utility classes over the total scatter plus those of privacy classes."""
    numerator = _sum_scatters(rows, wanted, gains, name="utility_weights")
    used = _rho(rho, within_scatter(rows, wanted[0]))
    denominator = _add_ridge(total_scatter(rows), used) + _sum_scatters(rows, unwanted, costs, name="privacy_weights")
    return ScatterRatio(numerator, denominator, used)


def _sum_scatters(rows: Floats, labels: Sequence[Codes], weights: Any, *, name: str) -> Floats:
    listed = [weights] * len(labels) if np.ndim(weights) == 0 else list(weights)
    if len(listed) != len(labels):
        raise ParameterError(
            f"{name} has not one weight for each label.", fix=f"give {name} as one number, or as one per label."
        )
    total = np.zeros((rows.shape[1], rows.shape[1]))
    for codes, weight in zip(labels, listed, strict=True):
        total += _number(weight, name=f"each of {name}") * between_scatter(rows, codes)
    return total


def _rho(rho: Any, within: Floats) -> float:
    """Return rho as given, or 2% of the largest variance inside of classes."""
    if rho is not None:
        return _number(rho, name="rho")
    last = len(within) - 1
    return 0.02 * float(linalg.eigh(within, eigvals_only=True, subset_by_index=(last, last))[0])


def _number(value: Any, *, name: str) -> float:
    return float(validation.check_non_negative(value, name=name))


def _finite(value: Any) -> float:
    from cloister.core import exact

    return float(exact.number(value, name="rho_prime"))


def _add_ridge(matrix: Floats, rho: float) -> Floats:
    return np.asarray(matrix + rho * np.eye(len(matrix)))


_TIE = 1e-9
"""Eigenvalues that differ by less, relative to the largest one, are taken as equal."""


def solve_eigenproblem(numerator: Floats, denominator: Floats, *, count: int | None = None) -> tuple[Floats, Floats]:
    """Return the largest eigenvalues of (A, B), and their eigenvectors as columns v with v' B v = 1.

    Args:
        numerator: A, symmetric.
        denominator: B, symmetric and positive definite.
        count: how many; all, if not given.

    Raises:
        ParameterError: if B is not positive definite.

    >>> values, vectors = solve_eigenproblem(np.diag([4.0, 0.0]), np.diag([5.0, 5.0]), count=1)
    >>> values.round(6).tolist(), np.sign(vectors[:, 0]).tolist()
    ([0.8], [1.0, 0.0])
    """
    factor = _cholesky((denominator + denominator.T) / 2)
    half = linalg.solve_triangular(factor, (numerator + numerator.T) / 2, lower=True)
    whitened = linalg.solve_triangular(factor, half.T, lower=True)
    values, vectors = linalg.eigh((whitened + whitened.T) / 2)
    values, vectors = values[::-1], vectors[:, ::-1]
    size = len(values) if count is None else count
    chosen = _fix_ties(values, vectors, size)[:, :size]
    return values[:size].copy(), with_fixed_signs(linalg.solve_triangular(factor, chosen, lower=True, trans="T"))


def with_fixed_signs(vectors: Floats) -> Floats:
    """Return columns turned so that the first of the largest entries of each is positive."""
    sizes = np.abs(vectors)
    # Entries that are equal but for rounding count as equal, or the sign would depend on the machine.
    first = (sizes >= sizes.max(axis=0) * (1 - _TIE)).argmax(axis=0)
    signs = np.sign(vectors[first, np.arange(vectors.shape[1])])
    return np.asarray(vectors * np.where(signs == 0, 1.0, signs))


def _cholesky(matrix: Floats) -> Floats:
    try:
        factor = np.asarray(linalg.cholesky(matrix, lower=True))
    except linalg.LinAlgError:
        factor = np.zeros_like(matrix)
    pivots = np.diag(factor) ** 2
    # Rounding can let a singular matrix pass for a definite one, so that pivots are held against the precision
    # of floats.
    if pivots.min() <= np.finfo(np.float64).eps * len(pivots) * np.abs(matrix).max():
        raise ParameterError(
            "The scatter that must stay small is not positive definite, so that the ratio has no maximum.",
            fix="give a larger rho, such as rho=1, or leave rho out.",
        )
    return factor


def _fix_ties(values: Floats, vectors: Floats, size: int) -> Floats:
    """Return eigenvectors with one basis, always the same, for each eigenvalue that occurs several times."""
    near = np.abs(values).max() * _TIE
    borders = [0, *(np.flatnonzero(-np.diff(values) > near) + 1), len(values)]
    settled = vectors.copy()
    for start, end in itertools.pairwise(borders):
        if end - start > 1 and start < size:
            settled[:, start:end] = _fix_basis(vectors[:, start:end])
    return settled


def _fix_basis(basis: Floats) -> Floats:
    """Return an orthonormal basis of the same space that does not depend on the given one."""
    _, _, order = linalg.qr(basis.T, mode="economic", pivoting=True)
    rows = np.sort(order[: basis.shape[1]])
    turn, _ = linalg.qr(basis[rows].T)
    return np.asarray(basis @ turn)
