"""Variances that the literature gives for local protocols, written down apart from the code that is measured.

``counts`` are the true numbers of people with each value; what comes out is the variance of each estimated count.
Wang, Blocki, Li and Jha 2017 for unary and histogram encodings and local hashing; Acharya, Sun and Zhang 2019 for
Hadamard response; Ye and Barg 2018 for subset selection; Warner 1965; Erlingsson, Pihur and Korolova 2014 for RAPPOR;
Duchi, Jordan and Wainwright 2018 and Wang, Xiao, Yang and others 2019 for means.
"""

from __future__ import annotations

from collections.abc import Callable
from math import ceil, exp, floor

import numpy as np
from scipy.optimize import minimize_scalar

Law = Callable[[np.ndarray, float], np.ndarray]
"""From true counts and epsilon to variances."""


def support(counts: np.ndarray, p: float, q: float) -> np.ndarray:
    """Return the variances of reports that support the true value with p and another with q."""
    return (counts * p * (1 - p) + (counts.sum() - counts) * q * (1 - q)) / (p - q) ** 2


def direct(counts: np.ndarray, epsilon: float) -> np.ndarray:
    """Return the variances of generalized randomized response; with two values, of Warner's."""
    bottom = exp(epsilon) + len(counts) - 1
    return support(counts, exp(epsilon) / bottom, 1 / bottom)


def symmetric_unary(counts: np.ndarray, epsilon: float) -> np.ndarray:
    """Return the variances of symmetric unary encoding."""
    p = exp(epsilon / 2) / (exp(epsilon / 2) + 1)
    return support(counts, p, 1 - p)


def optimized_unary(counts: np.ndarray, epsilon: float) -> np.ndarray:
    """Return the variances of optimized unary encoding."""
    return support(counts, 0.5, 1 / (exp(epsilon) + 1))


def local_hashing(counts: np.ndarray, epsilon: float) -> np.ndarray:
    """Return the variances of local hashing into the better of two whole numbers of buckets."""
    ideal = exp(epsilon) + 1
    laws = [(exp(epsilon) / (exp(epsilon) + buckets - 1), 1 / buckets) for buckets in (floor(ideal), ceil(ideal))]
    return support(counts, *min(laws, key=lambda law: _rare(*law)))


def hadamard(counts: np.ndarray, epsilon: float) -> np.ndarray:
    """Return the variances of Hadamard response with half of the outputs in each set, as for a small epsilon."""
    return support(counts, exp(epsilon) / (exp(epsilon) + 1), 0.5)


def subset_selection(counts: np.ndarray, epsilon: float) -> np.ndarray:
    """Return the variances of subsets of the best size."""
    sizes = range(1, len(counts))
    return support(counts, *min((_subset(len(counts), size, epsilon) for size in sizes), key=lambda law: _rare(*law)))


def summation(counts: np.ndarray, epsilon: float) -> np.ndarray:
    """Return the variances of sums of histograms with Laplace noise."""
    return np.full(len(counts), counts.sum() * 8 / epsilon**2)


def threshold(counts: np.ndarray, epsilon: float) -> np.ndarray:
    """Return the variances of such histograms, of which is told where they exceed the best threshold."""

    def law(theta: float) -> tuple[float, float]:
        return 1 - exp(epsilon * (theta - 1) / 2) / 2, exp(-epsilon * theta / 2) / 2

    best = minimize_scalar(lambda theta: _rare(*law(theta)), bounds=(0.5, 1), method="bounded").x
    return support(counts, *law(best))


def transition(counts: np.ndarray, matrix: np.ndarray) -> np.ndarray:
    """Return the variances of the estimate by the inverse of any matrix."""
    spread = np.diag(counts @ matrix) - (matrix.T * counts) @ matrix
    inverse = np.linalg.inv(matrix.T)
    return np.diag(inverse @ spread @ inverse.T)


def rappor(counts: np.ndarray, epsilon: float) -> np.ndarray:
    """Return the variances of RAPPOR with a bit for each value, told as 1 with 3/4 if kept as 1, else with 1/2."""
    return support(counts, *_kept_and_told(epsilon, hashes=1))


def bloom(counts: np.ndarray, epsilon: float, *, filters: np.ndarray, hashes: int) -> np.ndarray:
    """Return the variances of RAPPOR with filters by cohort, value and bit, decoded by least squares.

    A person falls into one cohort of many, of equal sizes, so people vary within cohorts but not over all of them.
    """
    total, cohorts = counts.sum(), len(filters)
    p, q = _kept_and_told(epsilon, hashes=hashes)
    inverse = np.linalg.inv(sum(seen @ seen.T for seen in filters) / cohorts)
    variances = -counts * (1 - counts / total)
    for seen in filters:
        weights = inverse @ seen
        ones = counts @ seen
        told = ones * p * (1 - p) + (total - ones) * q * (1 - q)
        by_person = weights @ seen.T
        spread = by_person**2 @ counts - (by_person @ counts) ** 2 / total
        variances = variances + (weights**2 @ told / (p - q) ** 2 + spread) / cohorts
    return variances


def laplace(values: np.ndarray, epsilon: float) -> np.ndarray:
    """Return the variance of each report of a number in [-1, 1] with Laplace noise."""
    return np.full(len(values), 8 / epsilon**2)


def duchi(values: np.ndarray, epsilon: float) -> np.ndarray:
    """Return the variance of each report of one of two numbers."""
    return ((exp(epsilon) + 1) / (exp(epsilon) - 1)) ** 2 - values**2


def piecewise(values: np.ndarray, epsilon: float) -> np.ndarray:
    """Return the variance of each report of the piecewise mechanism."""
    s = exp(epsilon / 2)
    return values**2 / (s - 1) + (s + 3) / (3 * (s - 1) ** 2)


def hybrid(values: np.ndarray, epsilon: float) -> np.ndarray:
    """Return the variance of each report that is piecewise or of two numbers by a toss (epsilon above 0.61)."""
    share = 1 - exp(-epsilon / 2)
    return share * piecewise(values, epsilon) + (1 - share) * duchi(values, epsilon)


def _rare(p: float, q: float) -> float:
    return q * (1 - q) / (p - q) ** 2


def _kept_and_told(epsilon: float, *, hashes: int) -> tuple[float, float]:
    turned = 1 / (1 + exp(epsilon / (2 * hashes)))
    return 0.75 - turned / 4, 0.5 + turned / 4


def _subset(values: int, size: int, epsilon: float) -> tuple[float, float]:
    weight = size * exp(epsilon)
    p = weight / (weight + values - size)
    return p, (p * (size - 1) + (1 - p) * size) / (values - 1)
