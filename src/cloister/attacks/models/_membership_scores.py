"""The scores of membership inference: how much a model's answers look like those to a record that it was trained on.

- **threshold** on the confidence in the true class, or on the loss (Yeom et al. 2018);
- **label only**: how often slightly changed copies of a record still get the right label (Choquette-Choo et al. 2021);
- **shadow models**: a classifier per class of outputs on records inside and outside the training (Shokri et al. 2017);
- **likelihood ratio** (LiRA): the model's confidence in this record, beside what shadows with it and without it say
  (Carlini et al. 2022). The logit of the confidence is taken as Gaussian. Variances of single records are drawn towards
  the common one, the more the fewer shadows there are: with few of them the common variance decides.

Shadow models are like the attacked one, and trained by the attacker on rows whose part in the training is known. Every
candidate is in the training rows of exactly half of the shadows, since they come in pairs that share the candidates
out. So an attacker who knows the candidates, but not which of them are members, sees how a model behaves on a record
with and without it (Shokri et al. 2017, Carlini et al. 2022).
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cloister.attacks.models._victim import Labeled, Victim, seed_of
from cloister.core import validation
from cloister.core.confidence import Floats
from cloister.core.lazy_imports import need_learning
from cloister.core.random import RandomSource, integers_below, permutation
from cloister.errors import ParameterError, ParameterTypeError

__all__ = [
    "Shadow",
    "Trainer",
    "label_only_scores",
    "likelihood_ratio_scores",
    "loss_scores",
    "shadow_scores",
    "shadows_of",
    "signals",
    "threshold_scores",
    "trainer_of",
]


Trainer = Callable[[Any, NDArray[Any]], Any]
"""Takes features and labels and returns a fitted model."""


@dataclass(frozen=True, slots=True, eq=False)
class Shadow:
    """A model, and which candidates it was trained on."""

    victim: Victim
    inside: NDArray[np.bool_]


def trainer_of(model: Any, train: Trainer | None, source: RandomSource) -> Trainer:
    """Return how to train another model like this one: the given way, or a clone with the same parameters.

    A clone of a private estimator pays to no ledger: what the attacker trains is never released.
    """
    if train is not None:
        if not callable(train):
            raise ParameterTypeError("train cannot be called.", fix="give train=lambda X, y: a fitted model.")
        return train
    if not hasattr(model, "fit") or not hasattr(model, "get_params"):
        raise ParameterError(
            "Shadow models cannot be trained: the model is no estimator that can be cloned.",
            fix='give train=lambda X, y: a fitted model, or use kind="confidence".',
        )
    need_learning("Attacks with shadow models")
    return lambda features, labels: _clone(model, source).fit(features, labels)


def shadows_of(
    train: Trainer,
    candidates: Labeled,
    *,
    count: int,
    background: Labeled | None,
    online: bool,
    source: RandomSource,
) -> list[Shadow]:
    """Return trained shadow models.

    Args:
        train: how to train one.
        candidates: the records whose membership is asked.
        count: how many; an even number.
        background: further rows that the attacker has, half of which each shadow is trained on.
        online: whether shadows are trained on candidates. Without background they are in any case.
        source: where random choices come from.
    """
    number = validation.check_count(count, name="shadows", at_least=2)
    if number % 2:
        raise ParameterError("Shadows come in pairs.", fix=f"use for example shadows={number + 1}.")
    shadows = []
    for _ in range(number // 2):
        order = permutation(source, len(candidates))
        inside = np.zeros(len(candidates), dtype=np.bool_)
        inside[order[: len(candidates) // 2]] = True
        for mask in (inside, ~inside):
            used = mask if online or background is None else np.zeros_like(mask)
            rows = _training(candidates, used, background, source)
            shadows.append(Shadow(Victim(_train_shadow(train, rows), knows_all=False), used))
    return shadows


def _training(
    candidates: Labeled, used: NDArray[np.bool_], background: Labeled | None, source: RandomSource
) -> Labeled:
    if background is None:
        return candidates.take(used)
    half = background.take(permutation(source, len(background))[: (len(background) + 1) // 2])
    return half.beside(candidates.take(used)) if used.any() else half


def _train_shadow(train: Trainer, rows: Labeled) -> Any:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return train(rows.features, rows.labels)
    except Exception as error:  # noqa: BLE001  # whatever a foreign trainer raises may quote rows
        raise ParameterError(
            f"A shadow model could not be trained: {type(error).__name__}.",
            fix="give more members and non-members, of every class, with the columns that the model takes.",
        ) from None


def _clone(model: Any, source: RandomSource) -> Any:
    from sklearn.base import clone

    other = clone(model)
    given = other.get_params(deep=True)
    if "ledger" in given:
        return other.set_params(ledger=None, dataset=None, analyst=None, random_state=None)
    # Shadows differ by their seeds, as models of one kind do.
    seeds = {name: seed_of(source) for name in given if name == "random_state" or name.endswith("__random_state")}
    return other.set_params(**seeds)


_LEAST_DOUBT = 1e-6
_COMMON_WEIGHT = 10
"""As many records' worth of the common variance is mixed into the variance of each record."""
_REPLACED = 8
"""One cell in so many is replaced in a changed copy."""
_MOST_ATTACK_ROWS = 20_000


def threshold_scores(victim: Victim, rows: Labeled) -> Floats:
    """Return the confidence in the true class; for models of numbers, the negative error."""
    if victim.is_confident:
        return _true_confidence(victim, rows)[0]
    return -_errors(victim, rows)


def loss_scores(victim: Victim, rows: Labeled) -> Floats:
    """Return the negative loss: of the logarithm of the true class's probability, or squared for numbers."""
    if not victim.is_confident:
        return -(_errors(victim, rows) ** 2)
    confidence = _true_confidence(victim, rows)[0]
    return np.asarray(np.log(np.maximum(confidence, np.finfo(np.float64).tiny)))


def label_only_scores(victim: Victim, rows: Labeled, *, copies: int, source: RandomSource) -> Floats:
    """Return how often the label is right: for the record itself, and for copies with cells of other records."""
    right = (victim.predictions(rows.features) == rows.labels).astype(np.float64)
    score = np.zeros(len(rows))
    for _ in range(copies):
        changed = _perturb(rows.features, source)
        score += victim.predictions(changed) == rows.labels
    return np.asarray(right + score / max(copies, 1))


def signals(victims: Sequence[Victim], rows: Labeled) -> Floats:
    """Return for each model and record the logit of its confidence in the true class, or minus the log of its error.

    A confidence of 1 counts as half the smallest doubt that any of the models had, since forests often have none.
    """
    if not victims[0].is_confident:
        errors = np.stack([_errors(victim, rows) for victim in victims])
        seen = errors[errors > 0]
        return np.asarray(-np.log(np.maximum(errors, seen.min() / 2 if seen.size else 1.0)))
    confidence = np.stack([_true_confidence(victim, rows)[0] for victim in victims])
    doubts = np.minimum(confidence, 1 - confidence)
    seen = doubts[doubts > _LEAST_DOUBT]
    least = max(_LEAST_DOUBT, float(seen.min()) / 2) if seen.size else _LEAST_DOUBT
    clipped = np.clip(confidence, least, 1 - least)
    return np.asarray(np.log(clipped) - np.log1p(-clipped))


def likelihood_ratio_scores(victim: Victim, shadows: Sequence[Shadow], rows: Labeled, *, online: bool) -> Floats:
    """Return how much more likely the model's answer is with the record than without it, as a logarithm.

    Offline, only the models without the record are looked at: how far the answer is above theirs.
    """
    found = signals([victim, *(shadow.victim for shadow in shadows)], rows)
    observed, others = found[0], found[1:]
    inside = np.stack([shadow.inside for shadow in shadows])
    # Every candidate is out of half of the shadows, which say what the model would tell without the record.
    center, variance = _gaussians(others, ~inside)
    if not online:
        return np.asarray((observed - center) / np.sqrt(variance))
    center_in, variance_in = _gaussians(others, inside)
    near = (observed - center_in) ** 2 / variance_in + np.log(variance_in)
    far = (observed - center) ** 2 / variance + np.log(variance)
    return np.asarray((far - near) / 2)


def shadow_scores(victim: Victim, shadows: Sequence[Shadow], rows: Labeled, *, source: RandomSource) -> Floats:
    """Return what classifiers, one per class, make of the model's outputs after learning from those of the shadows."""
    need_learning("Attacks with shadow models")
    from sklearn.ensemble import HistGradientBoostingClassifier

    if not any(shadow.inside.any() for shadow in shadows):
        raise ParameterError(
            "The shadows were trained on no candidate, so that nobody knows what members look like.",
            fix='leave mode="offline" out, or use kind="lira".',
        )
    asked, places = _outputs(victim, rows)
    known = np.concatenate([_outputs(shadow.victim, rows)[0] for shadow in shadows])
    inside = np.concatenate([shadow.inside for shadow in shadows])
    score = np.full(len(rows), 0.5)
    everywhere = np.tile(places, len(shadows))
    for place in np.unique(places):
        lines = np.flatnonzero(everywhere == place)
        lines = lines[permutation(source, len(lines))[:_MOST_ATTACK_ROWS]]
        judge = HistGradientBoostingClassifier(
            max_iter=50, max_leaf_nodes=8, early_stopping=False, random_state=seed_of(source)
        )
        if len(np.unique(inside[lines])) == 2:
            judge.fit(known[lines], inside[lines])
            score[places == place] = judge.predict_proba(asked[places == place])[:, 1]
    return score


def _outputs(victim: Victim, rows: Labeled) -> tuple[Floats, NDArray[np.int64]]:
    """Return what an attack classifier sees of each record: true confidence, and the largest ones."""
    confidence, answers, places = _true_confidence(victim, rows)
    largest = -np.sort(-answers, axis=1)[:, :3]
    return np.column_stack([confidence, largest]), places


def _true_confidence(victim: Victim, rows: Labeled) -> tuple[Floats, Floats, NDArray[np.int64]]:
    answers = victim.confidences(rows.features)
    places = victim.positions(rows.labels, answers.shape[1])
    # A class that a shadow never met has no confidence; its position is looked up only to be replaced.
    return np.where(places < 0, 0.0, answers[np.arange(len(answers)), places]), answers, places


def _errors(victim: Victim, rows: Labeled) -> Floats:
    try:
        wrong = np.asarray(victim.predictions(rows.features), dtype=np.float64) - rows.labels.astype(np.float64)
    except (TypeError, ValueError) as error:
        if isinstance(error, ParameterError):
            raise
        raise ParameterError(
            "The model tells neither probabilities nor numbers.", fix='use kind="label" for a model that tells labels.'
        ) from None
    if not np.isfinite(wrong).all():
        raise ParameterError("Some predictions are not finite.", fix="repair the model, or leave these rows out.")
    return np.abs(wrong)


def _gaussians(values: Floats, chosen: NDArray[np.bool_]) -> tuple[Floats, Floats]:
    """Return mean and variance of each record over the chosen models, variances drawn towards the common one."""
    count = chosen.sum(axis=0)
    center = np.where(chosen, values, 0).sum(axis=0) / count
    squares = np.where(chosen, (values - center) ** 2, 0).sum(axis=0)
    common = squares.sum() / max(1, (count - 1).sum())
    return center, (squares + _COMMON_WEIGHT * common) / (count + _COMMON_WEIGHT) + 1e-9


def _perturb(features: Any, source: RandomSource) -> Any:
    """Return a copy in which some cells are those of other records, column by column."""
    size = len(features)
    replaced = integers_below(source, _REPLACED, features.shape[0] * features.shape[1]).reshape(features.shape) == 0
    copy = features.copy()
    for place in range(features.shape[1]):
        lines = np.flatnonzero(replaced[:, place])
        donors = integers_below(source, size, len(lines))
        if hasattr(copy, "iloc"):
            copy.iloc[lines, place] = features.iloc[donors, place].to_numpy()
        else:
            copy[lines, place] = features[donors, place]
    return copy
