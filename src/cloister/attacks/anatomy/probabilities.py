"""How sure an attacker may be: three ways to turn the scores of single people into probabilities.

- The *posterior*: each person's share of the posterior over whole assignments. For an exact model this is right.
- The *product*: assignments weighted by the product of the single probabilities. For an exact model it counts evidence
  twice, since single probabilities already know about the group, and it is too sure of itself.
- The *calibrated* one: assignments weighted by the *mean* of the single probabilities, which are made to add up to one
  over the values of the group. It is cautious: no probability is far from an even guess.

Each of them also says how probable it is that a whole group is assigned as the attacker says.
"""

from __future__ import annotations

import math

import numpy as np

from cloister.attacks.anatomy.lattices import Floats, Indices
from cloister.attacks.anatomy.scaling import group_marginals

__all__ = ["KINDS", "calibrated", "calibrated_joint", "joint", "probabilities", "product"]

KINDS = ("posterior", "product", "calibrated")
_LEAST = 1e-300


def probabilities(single: Floats, pattern: tuple[int, ...]) -> dict[str, Floats]:
    """Return each kind of probability, from that of each value for each person: groups by people by values."""
    shares = single / np.maximum(single.sum(axis=2, keepdims=True), _LEAST)
    return {"posterior": shares, "product": product(single, pattern), "calibrated": calibrated(shares, pattern)}


def product(single: Floats, pattern: tuple[int, ...]) -> Floats:
    """Return the probabilities of values when assignments weigh as much as the product of single probabilities."""
    return group_marginals(np.log(np.maximum(single, _LEAST)), pattern)[1]


def calibrated(shares: Floats, pattern: tuple[int, ...]) -> Floats:
    """Return the probabilities of values when assignments weigh as much as the mean of single probabilities.

    With p_m(v) for person m of g and a value v that occurs c times in the group, that is
    ``p_m(v) / g + sum over others m' of (c - p_m'(v)) / (g (g - 1))``.

    >>> calibrated(np.array([[[0.9, 0.1], [0.5, 0.5]]]), (1, 1)).round(3).tolist()
    [[[0.7, 0.3], [0.3, 0.7]]]
    """
    size = sum(pattern)
    if size == 1:
        return np.ones_like(shares)
    others = shares.sum(axis=1, keepdims=True) - shares
    return np.asarray(shares / size + ((size - 1) * np.array(pattern) - others) / (size * (size - 1)))


def joint(worth: Floats, best: Indices, pattern: tuple[int, ...]) -> Floats:
    """Return the probability of one assignment of each group, when assignments weigh exp of the sum of their worth.

    Args:
        worth: the logarithm of what it is worth that a person has a value: groups by people by values.
        best: the place of the value that each person of each group has.
        pattern: how often each value occurs in a group.

    >>> joint(np.log([[[0.8, 0.2], [0.5, 0.5]]]), np.array([[0, 1]]), (1, 1)).round(3).tolist()
    [0.8]
    """
    chosen = np.take_along_axis(worth, best[:, :, None], axis=2).sum(axis=(1, 2))
    return np.asarray(np.exp(np.minimum(chosen - group_marginals(worth, pattern)[0], 0)))


def calibrated_joint(shares: Floats, best: Indices, pattern: tuple[int, ...]) -> Floats:
    """Return the probability of one assignment of each group, when they weigh the mean of single probabilities.

    That is ``sum over people m of p_m / c`` over the number of ways to deal out the values, ``g! / (c_1! ... c_d!)``.

    >>> calibrated_joint(np.array([[[0.9, 0.1], [0.5, 0.5]]]), np.array([[0, 1]]), (1, 1)).round(3).tolist()
    [0.7]
    """
    ways = math.lgamma(sum(pattern) + 1) - sum(math.lgamma(count + 1) for count in pattern)
    per_row = shares / np.array(pattern)
    return np.asarray(np.take_along_axis(per_row, best[:, :, None], axis=2).sum(axis=(1, 2)) * math.exp(-ways))
