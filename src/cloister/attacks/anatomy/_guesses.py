"""What an attacker says about every row: a value, and how sure it is.

There are three ways to turn the scores of single people into probabilities:

- The *posterior*: each person's share of the posterior over whole assignments. For an exact model this is right.
- The *product*: assignments weighted by the product of the single probabilities. For an exact model it counts evidence
  twice, since single probabilities already know about the group, and it is too sure of itself.
- The *calibrated* one: assignments weighted by the *mean* of the single probabilities, which are made to add up to one
  over the values of the group. It is cautious: no probability is far from an even guess.

Each of them also says how probable it is that a whole group is assigned as the attacker says.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from cloister.attacks.anatomy._assignments import Floats, Indices, best_assignments, group_marginals
from cloister.attacks.anatomy._expectation_maximization import EMFit, group_scores, maximize, posterior
from cloister.attacks.anatomy._markov_chain import Chain
from cloister.attacks.anatomy._two_tables import GroupBlock, Puzzle

__all__ = [
    "KINDS",
    "AnatomyGuesses",
    "answers_of_chain",
    "answers_of_fit",
    "calibrate",
    "calibrate_joint",
    "joint",
    "probabilities",
    "product",
]


KINDS = ("posterior", "product", "calibrated")
_LEAST = 1e-300


def probabilities(single: Floats, pattern: tuple[int, ...]) -> dict[str, Floats]:
    """Return each kind of probability, from that of each value for each person: groups by people by values."""
    shares = single / np.maximum(single.sum(axis=2, keepdims=True), _LEAST)
    return {"posterior": shares, "product": product(single, pattern), "calibrated": calibrate(shares, pattern)}


def product(single: Floats, pattern: tuple[int, ...]) -> Floats:
    """Return the probabilities of values when assignments weigh as much as the product of single probabilities."""
    return group_marginals(np.log(np.maximum(single, _LEAST)), pattern)[1]


def calibrate(shares: Floats, pattern: tuple[int, ...]) -> Floats:
    """Return the probabilities of values when assignments weigh as much as the mean of single probabilities.

    With p_m(v) for person m of g and a value v that occurs c times in the group, that is
    ``p_m(v) / g + sum over others m' of (c - p_m'(v)) / (g (g - 1))``.

    >>> calibrate(np.array([[[0.9, 0.1], [0.5, 0.5]]]), (1, 1)).round(3).tolist()
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
    # Rounding must not make a probability larger than one.
    return np.asarray(np.exp(np.minimum(chosen - group_marginals(worth, pattern)[0], 0)))


def calibrate_joint(shares: Floats, best: Indices, pattern: tuple[int, ...]) -> Floats:
    """Return the probability of one assignment of each group, when they weigh the mean of single probabilities.

    That is ``sum over people m of p_m / c`` over the number of ways to deal out the values, ``g! / (c_1! ... c_d!)``.

    >>> calibrate_joint(np.array([[[0.9, 0.1], [0.5, 0.5]]]), np.array([[0, 1]]), (1, 1)).round(3).tolist()
    [0.7]
    """
    ways = math.lgamma(sum(pattern) + 1) - sum(math.lgamma(count + 1) for count in pattern)
    per_row = shares / np.array(pattern)
    return np.asarray(np.take_along_axis(per_row, best[:, :, None], axis=2).sum(axis=(1, 2)) * math.exp(-ways))


@dataclass(frozen=True, eq=False, slots=True, kw_only=True)
class AnatomyGuesses:
    """What an attacker says about every row of the first table, in its order.

    Attributes:
        guesses: the code of the value that each row is said to have; each group gets exactly its values.
        claims: how probable each kind of probability makes that.
        joint: for each group, how probable each kind makes it that all of its rows are right. The posterior is there
            only for the exact model.
        alone: the code of the value that the learned model names without looking at the row's group.
    """

    guesses: Indices
    claims: dict[str, Floats]
    joint: dict[str, Floats]
    alone: Indices


@dataclass(frozen=True, eq=False, slots=True, kw_only=True)
class _BlockGuesses:
    """The answers about the groups of one block: values and claims by groups and people, joint claims by groups."""

    block: GroupBlock
    values: Indices
    claims: dict[str, Floats]
    joint: dict[str, Floats]


def answers_of_fit(puzzle: Puzzle, fit: EMFit, *, method: str, objective: str) -> AnatomyGuesses:
    """Return the answers of a learned model."""
    scores = fit.parameters.scores(puzzle)
    parts = []
    for block in puzzle.blocks:
        single = posterior(block, scores, method=method)[1]
        learned = group_scores(block, scores)
        worth = learned if objective == "posterior" else _logarithm(single)
        parts.append(_solve_block(block, single, worth, block.kind, learned=learned if method == "exact" else None))
    return _collect(puzzle, parts, scores)


def answers_of_chain(puzzle: Puzzle, chain: Chain, *, beta: float, sweeps: int) -> AnatomyGuesses:
    """Return the answers of sampled assignments; what was never seen counts as half a sample."""
    parts = []
    for block, shares in zip(puzzle.blocks, chain.shares, strict=True):
        worth = np.log(np.maximum(shares, 0.5 / sweeps))
        parts.append(_solve_block(block, shares, worth, np.arange(len(shares))))
    learned = maximize(puzzle, chain.expected, alpha=beta, beta=beta)
    return _collect(puzzle, parts, learned.scores(puzzle))


def _solve_block(
    block: GroupBlock, single: Floats, worth: Floats, which: Indices, *, learned: Floats | None = None
) -> _BlockGuesses:
    """Return the answers about all groups of a block.

    Args:
        block: the groups.
        single: the probability of each value for each person, in every kind of group or in every group.
        worth: what is maximized.
        which: the row of both that each group has.
        learned: the scores of an exact model, for the posterior of whole assignments.
    """
    best = best_assignments(worth, block.pattern)
    found = probabilities(single, block.pattern)
    claims = {kind: np.take_along_axis(each, best[:, :, None], axis=2)[:, :, 0] for kind, each in found.items()}
    whole = {
        "product": joint(_logarithm(single), best, block.pattern),
        "calibrated": calibrate_joint(found["posterior"], best, block.pattern),
    }
    if learned is not None:
        whole["posterior"] = joint(learned, best, block.pattern)
    return _BlockGuesses(
        block=block,
        values=np.take_along_axis(block.values[block.kind], best[which], axis=1),
        claims={kind: each[which] for kind, each in claims.items()},
        joint={kind: each[which] for kind, each in whole.items()},
    )


def _collect(puzzle: Puzzle, parts: list[_BlockGuesses], scores: Floats) -> AnatomyGuesses:
    guesses = np.empty(puzzle.rows, dtype=np.int64)
    claims = {kind: np.empty(puzzle.rows) for kind in parts[0].claims}
    whole = {kind: np.empty(puzzle.groups) for kind in KINDS if kind in parts[0].joint}
    for part in parts:
        people = part.block.people
        guesses[people] = part.values
        for kind, found in claims.items():
            found[people] = np.clip(part.claims[kind], 0, 1)
        for kind, found in whole.items():
            found[puzzle.group[people[:, 0]]] = np.clip(part.joint[kind], 0, 1)
    return AnatomyGuesses(guesses=guesses, claims=claims, joint=whole, alone=scores.argmax(axis=1)[puzzle.cell])


def _logarithm(shares: Floats) -> Floats:
    return np.asarray(np.log(np.maximum(shares, _LEAST)))
