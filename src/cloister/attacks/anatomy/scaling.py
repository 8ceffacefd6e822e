"""Probabilities of values in groups of any size: exact sums where they are few, matrix scaling where not.

The sum over all assignments of a group is the coefficient of ``x_1**c_1 ... x_d**c_d`` in the product over people of
``sum_j weight_j x_j``. Its saddle point gives the smallest upper bound of that form (Gurvits's capacity), and the
weights scaled there have row sums 1 and column sums c: what Sinkhorn's alternation computes. They stand in for the
probabilities. Each person is then independent of the others but for the totals, which is the less wrong the larger the
group is: for two people the odds would be the square root of the true ones, so small groups are never treated this way.
"""

from __future__ import annotations

import math

import numpy as np

from cloister.attacks.anatomy.lattices import Floats, marginals

__all__ = ["MOST_STATES", "group_marginals", "scaled_marginals"]

MOST_STATES = 4096
"""How many states exact sums may have: groups of 12 different values, or larger ones with repetitions."""
_ROUNDS = 200
_CLOSE = 1e-9


def group_marginals(scores: Floats, pattern: tuple[int, ...]) -> tuple[Floats, Floats]:
    """Return the logarithm of the sum over assignments and the probability of each value, exactly or nearly.

    Args:
        scores: the logarithm of what it is worth that a person has a value: groups by people by values.
        pattern: how often each value occurs in a group; the same for all of these groups.
    """
    is_small = math.prod(count + 1 for count in pattern) <= MOST_STATES
    return marginals(scores, pattern) if is_small else scaled_marginals(scores, pattern)


def scaled_marginals(scores: Floats, pattern: tuple[int, ...]) -> tuple[Floats, Floats]:
    """Return an upper bound of the logarithm of the sum over assignments, and about the probability of each value.

    Args:
        scores: the logarithm of what it is worth that a person has a value: groups by people by values.
        pattern: how often each value occurs in a group; the same for all of these groups.
    """
    counts = np.array(pattern, dtype=np.float64)
    largest = scores.max(axis=2, keepdims=True)
    weights = np.exp(np.maximum(scores - largest, -600))
    factors = np.ones((len(scores), 1, len(pattern)))
    for _ in range(_ROUNDS):
        rows = (weights * factors).sum(axis=2, keepdims=True)
        columns = (weights * factors / rows).sum(axis=1, keepdims=True)
        factors *= counts / columns
        if np.abs(columns / counts - 1).max() < _CLOSE:
            break
    scaled = weights * factors
    rows = scaled.sum(axis=2, keepdims=True)
    totals = np.log(rows).sum(axis=(1, 2)) + largest.sum(axis=(1, 2)) - (np.log(factors) * counts).sum(axis=(1, 2))
    return totals, scaled / rows
