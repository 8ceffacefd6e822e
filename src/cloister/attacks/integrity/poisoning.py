"""Poisoning: spoil a model by a few rows among its training data.

*Flipping* gives some rows a wrong label. *Bilevel* poisoning adds rows that do the most harm: the training is itself an
optimization, whose result moves with a poisoned row by the implicit function theorem, so that the attacker climbs along
``-grad L_test^T H^-1 d(grad loss)/dx`` with the Hessian H of a logistic regression (Biggio, Nelson and Laskov 2012,
Munoz-Gonzalez et al. 2017). The defense drops rows whose nearest neighbors mostly have another label; see `sanitizing`.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np

from cloister.attacks.integrity.bilevel import harmful_rows
from cloister.attacks.integrity.measuring import common_share, measured, read_numbers, read_strengths
from cloister.attacks.integrity.result import RobustnessPoint, RobustnessResult
from cloister.attacks.integrity.sanitizing import agreeing_rows
from cloister.attacks.models.reading import Labeled, Victim
from cloister.attacks.models.shadows import Trainer, trainer_of
from cloister.core import validation
from cloister.core.random import RandomSource, RandomState, integers_below, permutation, random_source
from cloister.errors import ParameterError

__all__ = ["poisoning"]

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
    confidence: object = 0.95,
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
            rows = _flipped(clean, classes, number, source)
        else:
            rows = harmful_rows(clean, number, limits=limits, steps=count, source=source, aims=wanted)
        kept = rows.take(agreeing_rows(rows.features, rows.labels, neighbors=asked))
        for name, part in zip(curves, (rows, kept), strict=True):
            curves[name].append(measured(share, _right(fit, part, held), confidence=level))
        if wanted is not None:
            aimed["rows aimed at"].append(measured(share, _right(fit, rows, wanted), confidence=level))
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


def _flipped(rows: Labeled, classes: Any, count: int, source: RandomSource) -> Labeled:
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
