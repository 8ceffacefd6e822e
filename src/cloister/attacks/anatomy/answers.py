"""What an attacker says about every row: a value, and how sure it is."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from cloister.attacks.anatomy.lattices import Floats, Indices
from cloister.attacks.anatomy.learning import Fit, group_scores, maximize, posterior
from cloister.attacks.anatomy.matching import best_assignments
from cloister.attacks.anatomy.probabilities import KINDS, probabilities
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
        alone: the code of the value that the learned model names without looking at the row's group.
    """

    guesses: Indices
    claims: dict[str, Floats]
    alone: Indices


def answers_of_fit(puzzle: Puzzle, fit: Fit, *, method: str, objective: str) -> Answers:
    """Return the answers of a learned model."""
    scores = fit.parameters.scores(puzzle)
    parts = []
    for block in puzzle.blocks:
        single = posterior(block, scores, method=method)[1]
        worth = group_scores(block, scores) if objective == "posterior" else _logarithm(single)
        parts.append((block, *_solved(block, single, worth, of_kinds=True)))
    return _collected(puzzle, parts, scores)


def answers_of_chain(puzzle: Puzzle, chain: Chain, *, beta: float, sweeps: int) -> Answers:
    """Return the answers of sampled assignments; what was never seen counts as half a sample."""
    parts = []
    for block, shares in zip(puzzle.blocks, chain.shares, strict=True):
        worth = np.log(np.maximum(shares, 0.5 / sweeps))
        parts.append((block, *_solved(block, shares, worth, of_kinds=False)))
    learned = maximize(puzzle, chain.expected, alpha=beta, beta=beta)
    return _collected(puzzle, parts, learned.scores(puzzle))


def _solved(block: Block, single: Floats, worth: Floats, *, of_kinds: bool) -> tuple[Indices, dict[str, Floats]]:
    """Return the value of each person of each group, and the probabilities of that."""
    best = best_assignments(worth, block.pattern)
    place = best[:, :, None]
    claims = {
        kind: np.take_along_axis(found, place, axis=2)[:, :, 0]
        for kind, found in probabilities(single, block.pattern).items()
    }
    if of_kinds:
        best, claims = best[block.kind], {kind: found[block.kind] for kind, found in claims.items()}
    return np.take_along_axis(block.values[block.kind], best, axis=1), claims


def _collected(puzzle: Puzzle, parts: Iterable[tuple[Block, Indices, dict[str, Floats]]], scores: Floats) -> Answers:
    guesses = np.empty(puzzle.rows, dtype=np.int64)
    claims = {kind: np.empty(puzzle.rows) for kind in KINDS}
    for block, values, found in parts:
        guesses[block.people] = values
        for kind in KINDS:
            claims[kind][block.people] = np.clip(found[kind], 0, 1)
    return Answers(guesses=guesses, claims=claims, alone=scores.argmax(axis=1)[puzzle.cell])


def _logarithm(shares: Floats) -> Floats:
    return np.asarray(np.log(np.maximum(shares, _LEAST)))
