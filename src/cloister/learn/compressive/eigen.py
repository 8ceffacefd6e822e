"""Generalized eigenproblems A v = lambda B v, solved the same way each time: one routine for every projection.

With the Cholesky factor B = L L', the eigenvectors of inv(L) A inv(L') are turned back. Eigenvalues come in decreasing
order. Signs are such that the largest entry is positive. Where eigenvalues are equal, any basis of their space would
do, and a library may return another one on another machine: here the basis is the one that is triangular at the
coordinates in which the space is largest, in the order of these coordinates.
"""

from __future__ import annotations

import itertools

import numpy as np
from scipy import linalg

from cloister.errors import ParameterError
from cloister.learn.rows import Floats

__all__ = ["generalized_eigen", "with_fixed_signs"]

_TIE = 1e-9
"""Eigenvalues that differ by less, relative to the largest one, are taken as equal."""


def generalized_eigen(numerator: Floats, denominator: Floats, *, count: int | None = None) -> tuple[Floats, Floats]:
    """Return the largest eigenvalues of (A, B), and their eigenvectors as columns v with v' B v = 1.

    Args:
        numerator: A, symmetric.
        denominator: B, symmetric and positive definite.
        count: how many; all, if not given.

    Raises:
        ParameterError: if B is not positive definite.

    >>> values, vectors = generalized_eigen(np.diag([4.0, 0.0]), np.diag([5.0, 5.0]), count=1)
    >>> values.round(6).tolist(), np.sign(vectors[:, 0]).tolist()
    ([0.8], [1.0, 0.0])
    """
    factor = _cholesky((denominator + denominator.T) / 2)
    half = linalg.solve_triangular(factor, (numerator + numerator.T) / 2, lower=True)
    whitened = linalg.solve_triangular(factor, half.T, lower=True)
    values, vectors = linalg.eigh((whitened + whitened.T) / 2)
    values, vectors = values[::-1], vectors[:, ::-1]
    size = len(values) if count is None else count
    chosen = _with_settled_ties(values, vectors, size)[:, :size]
    return values[:size].copy(), with_fixed_signs(linalg.solve_triangular(factor, chosen, lower=True, trans="T"))


def with_fixed_signs(vectors: Floats) -> Floats:
    """Return columns turned so that the first of the largest entries of each is positive."""
    sizes = np.abs(vectors)
    first = (sizes >= sizes.max(axis=0) * (1 - _TIE)).argmax(axis=0)
    signs = np.sign(vectors[first, np.arange(vectors.shape[1])])
    return np.asarray(vectors * np.where(signs == 0, 1.0, signs))


def _cholesky(matrix: Floats) -> Floats:
    try:
        factor = np.asarray(linalg.cholesky(matrix, lower=True))
    except linalg.LinAlgError:
        factor = np.zeros_like(matrix)
    pivots = np.diag(factor) ** 2
    if pivots.min() <= np.finfo(np.float64).eps * len(pivots) * np.abs(matrix).max():
        raise ParameterError(
            "The scatter that must stay small is not positive definite, so that the ratio has no maximum.",
            fix="give a larger rho, such as rho=1, or leave rho out.",
        )
    return factor


def _with_settled_ties(values: Floats, vectors: Floats, size: int) -> Floats:
    """Return eigenvectors with one basis, always the same, for each eigenvalue that occurs several times."""
    near = np.abs(values).max() * _TIE
    borders = [0, *(np.flatnonzero(-np.diff(values) > near) + 1), len(values)]
    settled = vectors.copy()
    for start, end in itertools.pairwise(borders):
        if end - start > 1 and start < size:
            settled[:, start:end] = _settled(vectors[:, start:end])
    return settled


def _settled(basis: Floats) -> Floats:
    """Return an orthonormal basis of the same space that does not depend on the given one."""
    _, _, order = linalg.qr(basis.T, mode="economic", pivoting=True)
    rows = np.sort(order[: basis.shape[1]])
    turn, _ = linalg.qr(basis[rows].T)
    return np.asarray(basis @ turn)
