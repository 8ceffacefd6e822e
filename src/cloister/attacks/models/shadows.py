"""Shadow models: models like the attacked one, trained by the attacker on rows whose part in the training is known.

Every candidate is in the training rows of exactly half of the shadows, since they come in pairs that share the
candidates out. So an attacker who knows the candidates, but not which of them are members, sees how a model behaves on
a record with and without it (Shokri et al. 2017, Carlini et al. 2022).
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cloister.attacks.models.reading import Labeled, Victim, need_learning, seed_of
from cloister.core import validation
from cloister.core.random import RandomSource, permutation
from cloister.errors import ParameterError, ParameterTypeError

__all__ = ["Shadow", "Trainer", "shadows_of", "trainer_of"]

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
            shadows.append(Shadow(Victim(_trained(train, rows), knows_all=False), used))
    return shadows


def _training(
    candidates: Labeled, used: NDArray[np.bool_], background: Labeled | None, source: RandomSource
) -> Labeled:
    if background is None:
        return candidates.take(used)
    half = background.take(permutation(source, len(background))[: (len(background) + 1) // 2])
    return half.beside(candidates.take(used)) if used.any() else half


def _trained(train: Trainer, rows: Labeled) -> Any:
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
    seeds = {name: seed_of(source) for name in given if name == "random_state" or name.endswith("__random_state")}
    return other.set_params(**seeds)
