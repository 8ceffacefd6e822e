"""What an attacker says about every row: a value, and how sure it is."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from cloister.attacks.anatomy.lattices import Floats, Indices
from cloister.attacks.anatomy.learning import Fit, group_scores, maximize, posterior
from cloister.attacks.anatomy.matching import best_assignments
from cloister.attacks.anatomy.probabilities import KINDS, calibrated_joint, joint, probabilities
from cloister.attacks.anatomy.puzzle import Block, Puzzle
from cloister.attacks.anatomy.sampling import Chain

__all__ = ["Answers", "answers_of_chain", "answers_of_fit"]

_LEAST = 1e-300


@dataclass(frozen=True, eq=False, slots=True, kw_only=True)
class Answers:
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
class _Solved:
    """The answers about the groups of one block: values and claims by groups and people, joint claims by groups."""

    block: Block
    values: Indices
    claims: dict[str, Floats]
    joint: dict[str, Floats]


def answers_of_fit(puzzle: Puzzle, fit: Fit, *, method: str, objective: str) -> Answers:
    """Return the answers of a learned model."""
    scores = fit.parameters.scores(puzzle)
    parts = []
    for block in puzzle.blocks:
        single = posterior(block, scores, method=method)[1]
        learned = group_scores(block, scores)
        worth = learned if objective == "posterior" else _logarithm(single)
        parts.append(_solved(block, single, worth, block.kind, learned=learned if method == "exact" else None))
    return _collected(puzzle, parts, scores)


def answers_of_chain(puzzle: Puzzle, chain: Chain, *, beta: float, sweeps: int) -> Answers:
    """Return the answers of sampled assignments; what was never seen counts as half a sample."""
    parts = []
    for block, shares in zip(puzzle.blocks, chain.shares, strict=True):
        worth = np.log(np.maximum(shares, 0.5 / sweeps))
        parts.append(_solved(block, shares, worth, np.arange(len(shares))))
    learned = maximize(puzzle, chain.expected, alpha=beta, beta=beta)
    return _collected(puzzle, parts, learned.scores(puzzle))


def _solved(block: Block, single: Floats, worth: Floats, which: Indices, *, learned: Floats | None = None) -> _Solved:
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
        "calibrated": calibrated_joint(found["posterior"], best, block.pattern),
    }
    if learned is not None:
        whole["posterior"] = joint(learned, best, block.pattern)
    return _Solved(
        block=block,
        values=np.take_along_axis(block.values[block.kind], best[which], axis=1),
        claims={kind: each[which] for kind, each in claims.items()},
        joint={kind: each[which] for kind, each in whole.items()},
    )


def _collected(puzzle: Puzzle, parts: list[_Solved], scores: Floats) -> Answers:
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
    return Answers(guesses=guesses, claims=claims, joint=whole, alone=scores.argmax(axis=1)[puzzle.cell])


def _logarithm(shares: Floats) -> Floats:
    return np.asarray(np.log(np.maximum(shares, _LEAST)))
