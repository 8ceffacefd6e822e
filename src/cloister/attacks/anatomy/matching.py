"""The attacker's answer: one value for each person, such that each group gets exactly its values.

Two objectives. ``posterior`` takes the most probable assignment of a whole group under the learned model. ``marginals``
maximizes the product of the probabilities of the single people. For an exact model the first is the mode of the
posterior; for the others only the second makes sense. Few assignments are compared one by one, many groups at once;
larger groups are solved by the Hungarian method.
"""

from __future__ import annotations

import math

import numpy as np

from cloister.attacks.anatomy.lattices import Floats, Indices, assignments

__all__ = ["OBJECTIVES", "best_assignments"]

OBJECTIVES = ("posterior", "marginals")
_FEW = 1000
_AT_ONCE = 2**20


def best_assignments(worth: Floats, pattern: tuple[int, ...]) -> Indices:
    """Return the place of the value that each person of each group gets, so that the sum of the worth is largest.

    Args:
        worth: what it is worth that a person has a value: groups by people by values.
        pattern: how often each value occurs in a group; the same for all of these groups.

    >>> best_assignments(np.log([[[0.8, 0.2], [0.9, 0.1]]]), (1, 1)).tolist()
    [[1, 0]]
    """
    number = math.lgamma(sum(pattern) + 1) - sum(math.lgamma(count + 1) for count in pattern)
    if number > math.log(_FEW):
        return _hungarian(worth, pattern)
    choices = assignments(pattern)
    people = np.arange(sum(pattern))
    best = np.empty(worth.shape[:2], dtype=np.int64)
    size = max(_AT_ONCE // choices.size, 1)
    for start in range(0, len(worth), size):
        totals = worth[start : start + size, people, choices].sum(axis=2)
        best[start : start + size] = choices[totals.argmax(axis=1)]
    return best


def _hungarian(worth: Floats, pattern: tuple[int, ...]) -> Indices:
    from scipy.optimize import linear_sum_assignment

    slots = np.repeat(np.arange(len(pattern)), pattern)
    return np.array([slots[linear_sum_assignment(-group[:, slots])[1]] for group in worth])
