"""Naive Bayes learned from groups whose members' values are known only as a multiset, by expectation-maximization.

A person's sensitive value s has probability psi(s), and given s each quasi-identifier j has level k with probability
w(s, j, k), independently. Priors are Dirichlet(1 + alpha) and Dirichlet(1 + beta). EM maximizes the posterior of psi
and w; what is summed over are the assignments of each group's values to its people. Three ways to do so:

- ``exact``: over all distinct assignments of each group (very large groups nearly, see `_assignments`);
- ``restricted``: each person by themselves, over the values of their group;
- ``free``: each person by themselves, over all values. It never looks at groups, so the values that it finds have no
  names: it learns little more than chance, and is here for comparison with the literature.

It stops when the logarithm of the posterior changes by less than a millionth of itself. It never looks at the truth.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from cloister.anonymize.operations.noise import uniforms
from cloister.attacks.anatomy._assignments import Floats, group_marginals
from cloister.attacks.anatomy._two_tables import GroupBlock, Puzzle
from cloister.core.random import RandomSource

__all__ = [
    "METHODS",
    "EMFit",
    "NaiveBayesParameters",
    "fit",
    "group_scores",
    "maximize",
    "posterior",
    "random_start",
    "uniform_start",
]


METHODS = ("exact", "restricted", "free")


@dataclass(frozen=True, eq=False, slots=True, kw_only=True)
class NaiveBayesParameters:
    """What is learned, as logarithms.

    Attributes:
        prior: the frequency of each sensitive value.
        conditional: the frequency of each level (of all columns, one after the other) given each value.
    """

    prior: Floats
    conditional: Floats

    def scores(self, puzzle: Puzzle) -> Floats:
        """Return what it is worth, for each cell, to have each value."""
        return np.asarray(puzzle.indicator @ self.conditional) + self.prior


@dataclass(frozen=True, eq=False, slots=True, kw_only=True)
class EMFit:
    """Where one start led.

    Attributes:
        parameters: what was learned.
        objective: the logarithm of the posterior of the parameters, up to a constant.
        iterations: how many steps it took.
        converged: whether it stopped by itself.
    """

    parameters: NaiveBayesParameters
    objective: float
    iterations: int
    converged: bool


def fit(
    puzzle: Puzzle,
    start: NaiveBayesParameters,
    *,
    method: str,
    alpha: float = 1.0,
    beta: float = 1.0,
    tolerance: float = 1e-6,
    iterations: int = 400,
) -> EMFit:
    """Return what expectation-maximization makes of a start."""
    parameters, last = start, -math.inf
    for iteration in range(1, iterations + 1):
        likelihood, expected = _expect(puzzle, parameters, method)
        objective = likelihood + alpha * float(parameters.prior.sum()) + beta * float(parameters.conditional.sum())
        if abs(objective - last) < tolerance * abs(last):
            return EMFit(parameters=parameters, objective=objective, iterations=iteration, converged=True)
        last = objective
        parameters = maximize(puzzle, expected, alpha=alpha, beta=beta)
    return EMFit(parameters=parameters, objective=last, iterations=iterations, converged=False)


def uniform_start(puzzle: Puzzle) -> NaiveBayesParameters:
    """Return parameters that prefer nothing."""
    size = len(puzzle.values)
    levels = np.repeat(np.array(puzzle.levels, dtype=np.float64), puzzle.levels)
    return NaiveBayesParameters(
        prior=np.full(size, -math.log(size)), conditional=np.repeat(-np.log(levels)[:, None], size, axis=1)
    )


def random_start(puzzle: Puzzle, source: RandomSource) -> NaiveBayesParameters:
    """Return parameters drawn uniformly from all distributions."""
    size = len(puzzle.values)
    # Exponential numbers over their sum are uniform among all distributions.
    prior = -np.log(uniforms(source, size))
    drawn = -np.log(uniforms(source, sum(puzzle.levels) * size)).reshape(-1, size)
    return NaiveBayesParameters(
        prior=np.log(prior / prior.sum()), conditional=np.log(drawn) - np.log(_totals(puzzle, drawn))
    )


def maximize(puzzle: Puzzle, expected: Floats, *, alpha: float, beta: float) -> NaiveBayesParameters:
    """Return the best parameters for the expected number of people in each cell with each value."""
    counts = np.asarray(puzzle.indicator.T @ expected) + beta
    prior = expected.sum(axis=0) + alpha
    with np.errstate(divide="ignore"):
        conditional = np.log(counts) - np.log(_totals(puzzle, counts))
        return NaiveBayesParameters(prior=_finite(np.log(prior / prior.sum())), conditional=_finite(conditional))


def posterior(block: GroupBlock, scores: Floats, *, method: str) -> tuple[Floats, Floats]:
    """Return, for each kind of group, the log-likelihood and the probability of each of its values for each person.

    The probabilities of ``free`` are over all values, so those of the group add up to less than one.
    """
    if method == "free":
        found = scores - _log_sum(scores)
        return _log_sum(scores)[block.cells, 0].sum(axis=1), np.exp(group_scores(block, found))
    worth = group_scores(block, scores)
    if method == "restricted":
        totals = _log_sum(worth)
        return totals.sum(axis=(1, 2)), np.exp(worth - totals)
    return group_marginals(worth, block.pattern)


def group_scores(block: GroupBlock, scores: Floats) -> Floats:
    """Return the scores of each group's people for the group's values: kinds by people by values."""
    return scores[block.cells[:, :, None], block.values[:, None, :]]


def _expect(puzzle: Puzzle, parameters: NaiveBayesParameters, method: str) -> tuple[float, Floats]:
    """Return the log-likelihood, and the expected number of people in each cell with each value."""
    scores = parameters.scores(puzzle)
    if method == "free":
        totals = _log_sum(scores)
        people = puzzle.population[:, None]
        return float((totals * people).sum()), np.exp(scores - totals) * people
    likelihood, expected = 0.0, np.zeros(scores.size)
    for block in puzzle.blocks:
        totals, found = posterior(block, scores, method=method)
        places = block.cells[:, :, None] * scores.shape[1] + block.values[:, None, :]
        weighted = found * block.weights[:, None, None]
        expected += np.bincount(places.ravel(), weighted.ravel(), minlength=scores.size)
        likelihood += float(totals @ block.weights)
    return likelihood, expected.reshape(scores.shape)


def _totals(puzzle: Puzzle, counts: Floats) -> Floats:
    """Return, for each level and value, the sum over all levels of the same column."""
    starts = np.cumsum((0, *puzzle.levels))[:-1]
    if not len(starts):
        return counts
    return np.repeat(np.add.reduceat(counts, starts, axis=0), puzzle.levels, axis=0)


def _log_sum(scores: Floats) -> Floats:
    largest = scores.max(axis=-1, keepdims=True)
    return np.asarray(largest + np.log(np.exp(scores - largest).sum(axis=-1, keepdims=True)))


def _finite(logarithms: Floats) -> Floats:
    """Return logarithms in which zero is a very small number, for priors of nothing at all."""
    return np.nan_to_num(np.maximum(logarithms, -700), nan=-700)
