"""Assignments of a group's values to its people: their sum, each person's share of it, and the best one.

A group of g people and a multiset of g values has ``g! / (c_1! ... c_d!)`` distinct assignments, where value j occurs
c_j times. Sums over them are permanents. They are computed without enumeration, person by person: a state says how
many of each value are given away, so that ``(c_1 + 1) ... (c_d + 1)`` states are enough (2**g if all values differ).
All terms are positive, so nothing cancels, unlike in Ryser's formula. Many groups of one pattern go through the same
steps at once.

Where the states are too many, matrix scaling stands in. The sum over all assignments of a group is the coefficient of
``x_1**c_1 ... x_d**c_d`` in the product over people of ``sum_j weight_j x_j``. Its saddle point gives the smallest
upper bound of that form (Gurvits's capacity), and the weights scaled there have row sums 1 and column sums c: what
Sinkhorn's alternation computes. They stand in for the probabilities. Each person is then independent of the others but
for the totals, which is the less wrong the larger the group is: for two people the odds would be the square root of the
true ones, so small groups are never treated this way.

The attacker's answer is one assignment: one value for each person, such that each group gets exactly its values. Two
objectives. ``posterior`` takes the most probable assignment of a whole group under the learned model. ``marginals``
maximizes the product of the probabilities of the single people. For an exact model the first is the mode of the
posterior; for the others only the second makes sense. Few assignments are compared one by one, many groups at once;
larger groups are solved by the Hungarian method.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from functools import lru_cache
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

__all__ = [
    "MOST_STATES",
    "OBJECTIVES",
    "AssignmentLattice",
    "assignments",
    "best_assignments",
    "group_marginals",
    "lattice_of",
    "marginals",
    "scale_marginals",
]


Floats: TypeAlias = NDArray[np.float64]
Indices: TypeAlias = NDArray[np.int64]

_AT_ONCE = 2**18
"""How many numbers a table of states holds at a time: little enough to stay in the cache."""
_TINY = 1e-250


@dataclass(frozen=True, eq=False, slots=True)
class AssignmentLattice:
    """The states of a pattern of counts, and how each person moves through them.

    Attributes:
        states: how many states there are.
        steps: for each person and each value, the states before and after the person takes the value.
    """

    states: int
    steps: tuple[tuple[tuple[Indices, Indices], ...], ...]


@lru_cache(maxsize=64)
def lattice_of(pattern: tuple[int, ...]) -> AssignmentLattice:
    """Return the lattice of a pattern: how often each of the values of a group occurs."""
    shape = [count + 1 for count in pattern]
    digits = np.indices(shape).reshape(len(shape), -1)
    level = digits.sum(axis=0)
    strides = [math.prod(shape[place + 1 :]) for place in range(len(shape))]
    steps = []
    for person in range(sum(pattern)):
        # Before person p exactly p values are given away, so that only states of that level are left from.
        before = [np.flatnonzero((level == person) & (digits[j] < count)) for j, count in enumerate(pattern)]
        steps.append(tuple((start, start + strides[j]) for j, start in enumerate(before)))
    return AssignmentLattice(math.prod(shape), tuple(steps))


@lru_cache(maxsize=64)
def assignments(pattern: tuple[int, ...]) -> Indices:
    """Return every distinct assignment of the values of a pattern, one in each row.

    >>> assignments((2, 1)).tolist()
    [[0, 0, 1], [0, 1, 0], [1, 0, 0]]
    """
    values = np.repeat(np.arange(len(pattern)), pattern)
    return np.array(sorted(set(itertools.permutations(values.tolist()))), dtype=np.int64)


def marginals(scores: Floats, pattern: tuple[int, ...]) -> tuple[Floats, Floats]:
    """Return the logarithm of the sum over assignments, and the probability of each value for each person.

    Args:
        scores: the logarithm of what it is worth that a person has a value: groups by people by values.
        pattern: how often each value occurs in a group; the same for all of these groups.
    """
    lattice = lattice_of(pattern)
    totals, found = np.empty(len(scores)), np.empty_like(scores)
    size = max(_AT_ONCE // lattice.states, 1)
    for start in range(0, len(scores), size):
        part = slice(start, start + size)
        totals[part], found[part] = _marginals(scores[part], lattice)
    return totals, found


def _marginals(scores: Floats, lattice: AssignmentLattice) -> tuple[Floats, Floats]:
    # With the largest score taken out exp can only underflow, which is looked for at the end.
    largest = scores.max(axis=2, keepdims=True)
    weights = np.exp(scores - largest).transpose(1, 2, 0)
    forward = np.zeros((lattice.states, len(scores)))
    backward = np.zeros_like(forward)
    forward[0] = backward[-1] = 1
    for person, moves in enumerate(lattice.steps):
        for value, (before, after) in enumerate(moves):
            forward[after] += forward[before] * weights[person, value]
    found = np.empty_like(weights)
    with np.errstate(divide="ignore", invalid="ignore"):
        for person in reversed(range(len(lattice.steps))):
            for value, (before, after) in enumerate(lattice.steps[person]):
                # What leads to a state, times the person's choice, times what leads on from there, are all
                # assignments with that choice.
                taken = weights[person, value] * backward[after]
                backward[before] += taken
                found[person, value] = (forward[before] * taken).sum(axis=0) / forward[-1]
        totals = np.log(forward[-1]) + largest.sum(axis=(1, 2))
    probabilities = found.transpose(2, 0, 1)
    small = forward[-1] < _TINY
    if small.any():
        totals[small], probabilities[small] = _in_logarithms(scores[small], lattice)
    return totals, probabilities


def _in_logarithms(scores: Floats, lattice: AssignmentLattice) -> tuple[Floats, Floats]:
    """Do the same for groups whose every assignment is too unlikely for plain floating point."""
    worth = scores.transpose(1, 2, 0)
    forward = np.full((lattice.states, len(scores)), -np.inf)
    backward = forward.copy()
    forward[0] = backward[-1] = 0
    for person, moves in enumerate(lattice.steps):
        for value, (before, after) in enumerate(moves):
            forward[after] = np.logaddexp(forward[after], forward[before] + worth[person, value])
    found = np.empty_like(worth)
    for person in reversed(range(len(lattice.steps))):
        for value, (before, after) in enumerate(lattice.steps[person]):
            taken = worth[person, value] + backward[after]
            backward[before] = np.logaddexp(backward[before], taken)
            found[person, value] = np.exp(forward[before] + taken - forward[-1]).sum(axis=0)
    return forward[-1], found.transpose(2, 0, 1)


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
    return marginals(scores, pattern) if is_small else scale_marginals(scores, pattern)


def scale_marginals(scores: Floats, pattern: tuple[int, ...]) -> tuple[Floats, Floats]:
    """Return an upper bound of the logarithm of the sum over assignments, and about the probability of each value.

    Args:
        scores: the logarithm of what it is worth that a person has a value: groups by people by values.
        pattern: how often each value occurs in a group; the same for all of these groups.
    """
    counts = np.array(pattern, dtype=np.float64)
    largest = scores.max(axis=2, keepdims=True)
    # Smaller weights change no digit, and zeros would stop the alternation.
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


OBJECTIVES = ("posterior", "marginals")
_FEW = 1000
_WORTHS_AT_ONCE = 2**20


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
    size = max(_WORTHS_AT_ONCE // choices.size, 1)
    for start in range(0, len(worth), size):
        totals = worth[start : start + size, people, choices].sum(axis=2)
        best[start : start + size] = choices[totals.argmax(axis=1)]
    return best


def _hungarian(worth: Floats, pattern: tuple[int, ...]) -> Indices:
    from scipy.optimize import linear_sum_assignment

    slots = np.repeat(np.arange(len(pattern)), pattern)
    return np.array([slots[linear_sum_assignment(-group[:, slots])[1]] for group in worth])
