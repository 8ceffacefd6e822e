from __future__ import annotations

import itertools

import numpy as np
from scipy.special import gammaln

from cloister.attacks.anatomy._markov_chain import sample
from cloister.core.random import SeededRandomSource
from tests.attacks.anatomy.puzzles import puzzle_of

LEVELS = np.array([[1, 0], [0, 0], [0, 1], [1, 1], [1, 0], [0, 0], [0, 0], [1, 1]])
VALUES = [[0, 1], [1, 2], [0, 2, 0, 1]]


def exact_posterior(beta: float) -> np.ndarray:
    """Return the share of each value of each person over all states, by enumeration of the collapsed posterior."""
    choices = [sorted(set(itertools.permutations(listed))) for listed in VALUES]
    shares, weights = np.zeros((len(LEVELS), 3)), []
    states = [np.concatenate(parts) for parts in itertools.product(*choices)]
    for state in states:
        counts = np.zeros((2, 2, 3))
        for column in range(2):
            np.add.at(counts[column], (LEVELS[:, column], state), 1)
        weights.append(gammaln(counts + beta).sum())
    chances = np.exp(np.array(weights) - max(weights))
    for state, chance in zip(states, chances / chances.sum(), strict=True):
        shares[np.arange(len(LEVELS)), state] += chance
    return shares


def test_samples_follow_the_posterior_that_enumeration_gives() -> None:
    puzzle = puzzle_of(LEVELS, VALUES)
    chain = sample(puzzle, SeededRandomSource(5), beta=1.0, sweeps=8_000, burn_in=100)
    found = np.zeros((len(LEVELS), 3))
    for block, shares in zip(puzzle.blocks, chain.shares, strict=True):
        for kind, people, chances in zip(block.kind, block.people, shares, strict=True):
            found[np.ix_(people, block.values[kind])] = chances
    np.testing.assert_allclose(found, exact_posterior(1.0), atol=0.03)
    np.testing.assert_allclose(chain.expected.sum(axis=0), [3, 3, 2])
    assert 0 < chain.accepted < 1


def test_groups_of_one_and_of_one_value_stay_as_they_are() -> None:
    puzzle = puzzle_of([[0], [1], [0], [1]], [[1], [0, 0], [2]])
    chain = sample(puzzle, SeededRandomSource(1), beta=1.0, sweeps=5, burn_in=0)
    assert all((shares == 1).all() for shares in chain.shares if shares.shape[2] == 1)
