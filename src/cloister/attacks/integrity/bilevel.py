"""Rows that harm a logistic regression most, found by differentiating through its training.

The regression minimizes ``sum loss + |w|^2 / 2``. Its optimum w moves with a training row x by ``-H^-1 d(grad)/dx``,
with the Hessian H at the optimum; times the gradient of the loss that the attacker wants to grow this is the slope for
x. All poisoned rows climb at once, and the regression is solved anew after each step.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import special

from cloister.attacks.confidence import Floats
from cloister.attacks.models.reading import Labeled
from cloister.core.random import RandomSource, permutation

__all__ = ["harmful_rows", "poison_slopes", "trained_weights"]

_STEP = 0.1
"""How far a row moves in one step, as a share of the width of each feature."""
_POLISH = 3
"""How many Newton steps make the optimum exact, since differences of it are taken."""


def harmful_rows(
    clean: Labeled,
    count: int,
    *,
    limits: tuple[Any, Any],
    steps: int,
    source: RandomSource,
    aims: Labeled | None = None,
) -> Labeled:
    """Return the clean rows and so many harmful ones: copies with the other label, moved to where they harm most.

    Args:
        clean: the training rows, of two classes.
        count: how many rows are added.
        limits: bounds of the features.
        steps: how far rows are moved.
        source: where random choices come from.
        aims: rows whose loss shall grow; by default all clean rows.
    """
    if not count:
        return clean
    classes = np.unique(clean.labels)
    signs = (clean.labels == classes[1]).astype(np.float64)
    hurt = clean if aims is None else aims
    wanted = (hurt.labels == classes[1]).astype(np.float64)
    order = np.concatenate([permutation(source, len(hurt)) for _ in range(-(-count // len(hurt)))])[:count]
    points, labels = hurt.features[order].copy(), 1 - wanted[order]
    low, high = (np.broadcast_to(np.asarray(end, dtype=np.float64), (points.shape[1],)) for end in limits)
    targets = np.concatenate([signs, labels])
    for _ in range(steps):
        training = np.concatenate([clean.features, points])
        weights = trained_weights(training, targets)
        slopes = poison_slopes(weights, points, labels, training=training, aims=(hurt.features, wanted))
        points = np.clip(points + _STEP * (high - low) * np.sign(slopes), low, high)
    poisoned = Labeled(points, classes[labels.astype(np.int64)])
    return clean.beside(poisoned)


def trained_weights(rows: Floats, labels: Floats) -> Floats:
    """Return the weights of a logistic regression for labels 0 and 1, the last one for the constant."""
    from scipy import optimize

    design = _with_constant(rows)

    def loss(weights: Floats) -> tuple[float, Floats]:
        scores = design @ weights
        value = np.logaddexp(0, scores).sum() - labels @ scores + weights @ weights / 2
        return float(value), design.T @ (special.expit(scores) - labels) + weights

    weights = np.asarray(optimize.minimize(loss, np.zeros(design.shape[1]), jac=True, method="L-BFGS-B").x)
    for _ in range(_POLISH):
        weights = weights - np.linalg.solve(_hessian(design, weights), loss(weights)[1])
    return weights


def poison_slopes(
    weights: Floats, points: Floats, labels: Floats, *, training: Floats, aims: tuple[Floats, Floats]
) -> Floats:
    """Return how the mean loss on some rows grows with each feature of each poisoned row, through the training.

    Args:
        weights: trained on clean and poisoned rows.
        points: the poisoned rows.
        labels: their labels, 0 or 1.
        training: clean and poisoned rows.
        aims: the rows whose loss counts, and their labels.
    """
    hurt, poison = _with_constant(aims[0]), _with_constant(points)
    wanted = hurt.T @ (special.expit(hurt @ weights) - aims[1]) / len(hurt)
    pull = np.linalg.solve(_hessian(_with_constant(training), weights), wanted)
    chance = special.expit(poison @ weights)
    direct = (chance - labels)[:, None] * pull[None, :-1]
    through = (chance * (1 - chance) * (poison @ pull))[:, None] * weights[None, :-1]
    return np.asarray(-(direct + through))


def _hessian(design: Floats, weights: Floats) -> Floats:
    chance = special.expit(design @ weights)
    return np.asarray((design * (chance * (1 - chance))[:, None]).T @ design + np.eye(len(weights)))


def _with_constant(rows: Floats) -> Floats:
    return np.column_stack([rows, np.ones(len(rows))])
