"""Sums and maxima over all ways to give the values of a group to its people.

A group of g people and a multiset of g values has ``g! / (c_1! ... c_d!)`` distinct assignments, where value j occurs
c_j times. Sums over them are permanents. They are computed without enumeration, person by person: a state says how
many of each value are given away, so that ``(c_1 + 1) ... (c_d + 1)`` states are enough (2**g if all values differ).
All terms are positive, so nothing cancels, unlike in Ryser's formula. Many groups of one pattern go through the same
steps at once.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from functools import lru_cache
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

__all__ = ["Lattice", "assignments", "lattice_of", "marginals"]

Floats: TypeAlias = NDArray[np.float64]
Indices: TypeAlias = NDArray[np.int64]

_AT_ONCE = 2**18
"""How many numbers a table of states holds at a time: little enough to stay in the cache."""
_TINY = 1e-250


@dataclass(frozen=True, eq=False, slots=True)
class Lattice:
    """The states of a pattern of counts, and how each person moves through them.

    Attributes:
        states: how many states there are.
        steps: for each person and each value, the states before and after the person takes the value.
    """

    states: int
    steps: tuple[tuple[tuple[Indices, Indices], ...], ...]


@lru_cache(maxsize=64)
def lattice_of(pattern: tuple[int, ...]) -> Lattice:
    """Return the lattice of a pattern: how often each of the values of a group occurs."""
    shape = [count + 1 for count in pattern]
    digits = np.indices(shape).reshape(len(shape), -1)
    level = digits.sum(axis=0)
    strides = [math.prod(shape[place + 1 :]) for place in range(len(shape))]
    steps = []
    for person in range(sum(pattern)):
        before = [np.flatnonzero((level == person) & (digits[j] < count)) for j, count in enumerate(pattern)]
        steps.append(tuple((start, start + strides[j]) for j, start in enumerate(before)))
    return Lattice(math.prod(shape), tuple(steps))


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


def _marginals(scores: Floats, lattice: Lattice) -> tuple[Floats, Floats]:
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
                taken = weights[person, value] * backward[after]
                backward[before] += taken
                found[person, value] = (forward[before] * taken).sum(axis=0) / forward[-1]
        totals = np.log(forward[-1]) + largest.sum(axis=(1, 2))
    probabilities = found.transpose(2, 0, 1)
    small = forward[-1] < _TINY
    if small.any():
        totals[small], probabilities[small] = _in_logarithms(scores[small], lattice)
    return totals, probabilities


def _in_logarithms(scores: Floats, lattice: Lattice) -> tuple[Floats, Floats]:
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
