"""Rows that harm a logistic regression most, found by differentiating through its training.

The regression minimizes ``sum loss + |w|^2 / 2``. Its optimum w moves with a training row x by ``-H^-1 d(grad)/dx``,
with the Hessian H at the optimum; times the gradient of the loss that the attacker wants to grow this is the slope for
x. All poisoned rows climb at once, and the regression is solved anew after each step.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import optimize, special

from cloister.attacks.confidence import Floats
from cloister.attacks.models.reading import Labeled
from cloister.core.random import RandomSource, permutation

__all__ = ["harmful_rows", "poison_slopes", "trained_weights"]

_STEP = 0.1
"""How far a row moves in one step, as a share of the width of each feature."""
_POLISH = 3
"""How many Newton steps make the optimum exact, since differences of it are taken."""


def harmful_rows(clean: Labeled, count: int, *, limits: tuple[Any, Any], steps: int, source: RandomSource) -> Labeled:
    """Return the clean rows and so many harmful ones: copies with the other label, moved to where they harm most."""
    if not count:
        return clean
    classes, places = np.unique(clean.labels, return_inverse=True)
    signs = places.ravel().astype(np.float64)
    order = np.concatenate([permutation(source, len(clean)) for _ in range(-(-count // len(clean)))])
    chosen = order[:count]
    points, labels = clean.features[chosen].copy(), 1 - signs[chosen]
    low, high = (np.broadcast_to(np.asarray(end, dtype=np.float64), (points.shape[1],)) for end in limits)
    targets = np.concatenate([signs, labels])
    for _ in range(steps):
        weights = trained_weights(np.concatenate([clean.features, points]), targets)
        slopes = poison_slopes(weights, clean.features, signs, points, labels)
        points = np.clip(points + _STEP * (high - low) * np.sign(slopes), low, high)
    poisoned = Labeled(points, classes[labels.astype(np.int64)])
    return clean.beside(poisoned)


def trained_weights(rows: Floats, labels: Floats) -> Floats:
    """Return the weights of a logistic regression for labels 0 and 1, the last one for the constant."""
    design = _with_constant(rows)

    def loss(weights: Floats) -> tuple[float, Floats]:
        scores = design @ weights
        value = np.logaddexp(0, scores).sum() - labels @ scores + weights @ weights / 2
        return float(value), design.T @ (special.expit(scores) - labels) + weights

    weights = np.asarray(optimize.minimize(loss, np.zeros(design.shape[1]), jac=True, method="L-BFGS-B").x)
    for _ in range(_POLISH):
        weights = weights - np.linalg.solve(_hessian(design, weights), loss(weights)[1])
    return weights


def poison_slopes(weights: Floats, clean: Floats, signs: Floats, points: Floats, labels: Floats) -> Floats:
    """Return how the mean loss on the clean rows grows with each feature of each poisoned row, through the training.

    Args:
        weights: trained on both.
        clean: the clean rows.
        signs: their labels, 0 or 1.
        points: the poisoned rows.
        labels: their labels.
    """
    honest, poison = _with_constant(clean), _with_constant(points)
    wanted = honest.T @ (special.expit(honest @ weights) - signs) / len(honest)
    pull = np.linalg.solve(_hessian(np.concatenate([honest, poison]), weights), wanted)
    chance = special.expit(poison @ weights)
    direct = (chance - labels)[:, None] * pull[None, :-1]
    through = (chance * (1 - chance) * (poison @ pull))[:, None] * weights[None, :-1]
    return np.asarray(-(direct + through))


def _hessian(design: Floats, weights: Floats) -> Floats:
    chance = special.expit(design @ weights)
    return np.asarray((design * (chance * (1 - chance))[:, None]).T @ design + np.eye(len(weights)))


def _with_constant(rows: Floats) -> Floats:
    return np.column_stack([rows, np.ones(len(rows))])
