"""Poisoning: spoil a model by a few rows among its training data.

*Flipping* gives some rows a wrong label. *Bilevel* poisoning adds rows that do the most harm: the training is itself an
optimization, whose result moves with a poisoned row by the implicit function theorem, so that the attacker climbs along
``-grad L_test^T H^-1 d(grad loss)/dx`` with the Hessian H of a logistic regression (Biggio, Nelson and Laskov 2012,
Munoz-Gonzalez et al. 2017). The regression minimizes ``sum loss + |w|^2 / 2``. Its optimum w moves with a training row
x by ``-H^-1 d(grad)/dx``, with H at the optimum; times the gradient of the loss that the attacker wants to grow this is
the slope for x. All poisoned rows climb at once, and the regression is solved anew after each step.

The defense is a filter: it drops rows whose nearest neighbors mostly have another label (`agreeing_rows`).
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import special

from cloister.attacks.integrity.robustness import (
    RobustnessPoint,
    RobustnessResult,
    common_share,
    measure_accuracy,
    read_numbers,
    read_strengths,
)
from cloister.attacks.models._membership_scores import Trainer, trainer_of
from cloister.attacks.models._victim import Labeled, Victim, as_matrix
from cloister.core import validation
from cloister.core.confidence import Floats
from cloister.core.exact import Number
from cloister.core.lazy_imports import need_learning
from cloister.core.random import RandomSource, RandomState, integers_below, permutation, random_source
from cloister.errors import ParameterError

__all__ = ["agreeing_rows", "harmful_rows", "poison_slopes", "poisoning", "train_weights"]


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
        weights = train_weights(training, targets)
        slopes = poison_slopes(weights, points, labels, training=training, aims=(hurt.features, wanted))
        points = np.clip(points + _STEP * (high - low) * np.sign(slopes), low, high)
    poisoned = Labeled(points, classes[labels.astype(np.int64)])
    return clean.beside(poisoned)


def train_weights(rows: Floats, labels: Floats) -> Floats:
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
    # A row moves the optimum by its residual, and by how that residual changes as the row moves.
    direct = (chance - labels)[:, None] * pull[None, :-1]
    through = (chance * (1 - chance) * (poison @ pull))[:, None] * weights[None, :-1]
    return np.asarray(-(direct + through))


def _hessian(design: Floats, weights: Floats) -> Floats:
    chance = special.expit(design @ weights)
    return np.asarray((design * (chance * (1 - chance))[:, None]).T @ design + np.eye(len(weights)))


def _with_constant(rows: Floats) -> Floats:
    return np.column_stack([rows, np.ones(len(rows))])


def agreeing_rows(features: Any, labels: Any, *, neighbors: int = 5) -> NDArray[np.bool_]:
    """Return which rows to keep: those for which at least half of the nearest neighbors have the same label.

    Flipped labels and rows that were placed inside of another class stand out. Rows that are placed where their label
    is common do not, and honest rows at the border of a class may be lost.

    Args:
        features: rows of numbers, in comparable units.
        labels: one for each row.
        neighbors: how many are asked.

    >>> rows, labels = [[0.0], [0.1], [0.2], [0.15], [5.0], [5.1], [5.2]], [0, 0, 0, 1, 1, 1, 1]
    >>> agreeing_rows(rows, labels, neighbors=2).tolist()
    [True, True, True, False, True, True, True]
    """
    need_learning("The filter of poisoned rows")
    from sklearn.neighbors import NearestNeighbors

    rows, found = as_matrix(features, what="features"), np.asarray(labels)
    asked = validation.check_count(neighbors, name="neighbors", at_least=1)
    if found.shape != (len(rows),):
        raise ParameterError("The labels are not one for each row.", fix="give as many labels as rows.")
    if len(rows) <= asked:
        raise ParameterError("There are not more rows than neighbors.", fix=f"use neighbors={max(1, len(rows) - 1)}.")
    near = NearestNeighbors(n_neighbors=asked).fit(rows).kneighbors(return_distance=False)
    return np.asarray((found[near] == found[:, None]).mean(axis=1) >= 0.5)


KINDS = ("label_flip", "bilevel")
_ADVICE = (
    "know where training rows come from, and limit how many one source may contribute",
    "drop rows whose neighbors mostly have another label before training (attacks.agreeing_rows), and look at them",
    "compare each new model with the last one on rows that are trusted, before it is used",
)
_KNOWS = {
    "label_flip": "gives some training rows a wrong label, at random",
    "bilevel": "knows the training data, and adds rows that harm a logistic regression most",
}


def poisoning(
    model: Any,
    train: Any,
    test: Any,
    *,
    kind: str = "label_flip",
    fractions: Sequence[object] = ("0.05", "0.1", "0.2", "0.3"),
    aims: Any = None,
    bounds: object = None,
    neighbors: int = 5,
    steps: int = 20,
    target: str | None = None,
    trainer: Trainer | None = None,
    confidence: Number = 0.95,
    random_state: RandomState = None,
) -> RobustnessResult:
    """Measure how the accuracy falls as more of the training data are poisoned, without and with a filter.

    Args:
        model: an estimator, which is cloned and trained anew for each fraction.
        train: clean training rows: a pair (features, labels), or a table with ``target``.
        test: rows on which accuracy is measured, likewise; attackers do not see them.
        kind: "label_flip", or "bilevel" for two classes.
        fractions: how many rows are poisoned, as shares of the training rows: flipped, or added.
        aims: rows that shall be misclassified, with their true labels, likewise; by default any rows. For "bilevel".
        bounds: public bounds (low, high) of features, between which bilevel rows stay; by default those of the
            training rows.
        neighbors: how many neighbors the filter asks.
        steps: how far bilevel rows are moved.
        target: the column of labels, where tables are given.
        trainer: how a model is trained, ``trainer(features, labels) -> model``; by default a clone.
        confidence: of the intervals.
        random_state: None; an integer is for tests.

    Raises:
        ParameterError: if rows, labels and settings do not belong together.
    """
    validation.check_choice(kind, name="kind", allowed=KINDS)
    level = float(validation.check_confidence(confidence))
    asked = validation.check_count(neighbors, name="neighbors", at_least=1)
    count = validation.check_count(steps, name="steps", at_least=1)
    shares = read_strengths(fractions, name="fractions", most=1)
    clean = read_numbers(train, target=target, what="train")
    held = read_numbers(test, target=target, what="test")
    # Called for what it refuses: rows with other columns.
    clean.take(np.arange(1)).beside(held)
    classes = np.unique(clean.labels)
    if len(classes) < 2 or (kind == "bilevel" and len(classes) != 2):
        need = "two classes exactly" if kind == "bilevel" else "two classes or more"
        raise ParameterError(f"This attack needs {need} in the training rows.", fix="give such rows, or another kind.")
    wanted = None if aims is None else read_numbers(aims, target=target, what="aims")
    if wanted is not None:
        clean.take(np.arange(1)).beside(wanted)
        if kind != "bilevel" or not np.isin(wanted.labels, classes).all():
            raise ParameterError(
                "Only bilevel poisoning aims at rows, and these have labels of the training rows.",
                fix='use kind="bilevel" and true labels, or leave aims out.',
            )
    limits = _limits(bounds, clean)
    source = random_source(random_state)
    fit = trainer_of(model, trainer, source)
    aimed: dict[str, list[RobustnessPoint]] = {} if wanted is None else {"rows aimed at": []}
    curves: dict[str, list[RobustnessPoint]] = {"poisoned": [], "poisoned, then filtered": []}
    for share in shares:
        number = round(share * len(clean))
        if kind == "label_flip":
            rows = _flip_labels(clean, classes, number, source)
        else:
            rows = harmful_rows(clean, number, limits=limits, steps=count, source=source, aims=wanted)
        kept = rows.take(agreeing_rows(rows.features, rows.labels, neighbors=asked))
        for name, part in zip(curves, (rows, kept), strict=True):
            curves[name].append(measure_accuracy(share, _right(fit, part, held), confidence=level))
        if wanted is not None:
            aimed["rows aimed at"].append(measure_accuracy(share, _right(fit, rows, wanted), confidence=level))
    return RobustnessResult(
        attack=f"poisoning ({kind.replace('_', ' ')})",
        assumption=_KNOWS[kind],
        measure="share of poisoned rows",
        curves={name: tuple(points) for name, points in (aimed | curves).items()},
        baseline=common_share(held.labels),
        confidence=level,
        trials=len(held),
        queries=0,
        mitigation=_ADVICE,
    )


def _limits(bounds: object, clean: Labeled) -> tuple[Any, Any]:
    if bounds is None:
        return clean.features.min(axis=0), clean.features.max(axis=0)
    low, high = validation.check_bounds(bounds)
    return float(low), float(high)


def _flip_labels(rows: Labeled, classes: Any, count: int, source: RandomSource) -> Labeled:
    """Return the rows with so many labels moved to another class."""
    chosen = permutation(source, len(rows))[:count]
    places = np.searchsorted(classes, rows.labels)
    moves = 1 + integers_below(source, len(classes) - 1, count)
    places[chosen] = (places[chosen] + moves) % len(classes)
    return Labeled(rows.features, classes[places])


def _right(fit: Trainer, rows: Labeled, held: Labeled) -> Any:
    if len(np.unique(rows.labels)) < 2:
        return held.labels == rows.labels[0] if len(rows) else np.zeros(len(held), dtype=np.bool_)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        trained = fit(rows.features, rows.labels)
    return np.asarray(Victim(trained).predictions(held.features) == held.labels)
