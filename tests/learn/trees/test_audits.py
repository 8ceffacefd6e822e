"""Audits at epsilon 1 on neighbors that differ in one row: the claim stands, half of the noise is refuted.

Once in everything that is released on the way, and once in what a finished model says.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from cloister.core.random import random_source
from cloister.learn import PrivateForest, PrivateGradientBoosting, PrivateTree
from cloister.learn.base import TrainingPlan
from cloister.learn.trees._splits import Sample
from cloister.learn.trees.boosting import WHOLE, Boosting
from cloister.testing import audit
from tests.learn.audits import is_refuted, quiet
from tests.learn.trees.models import facts_of, learned, planned, rows_of


class _Heard:
    """Noise that remembers what it let out."""

    def __init__(self, noise) -> None:
        self.noise, self.deviation = noise, noise.deviation
        self.last = np.empty(0)

    def add(self, values, source):
        self.last = self.noise.add(values, source)
        return self.last


# Trees: the splits and the noisy counts of leaves, all that a model is made of ---------------------------------------


def _drawer(model):
    facts, plan = planned(model)
    heard = _Heard(plan.settings.leaf_noise)
    listening = TrainingPlan(steps=plan.steps, settings=replace(plan.settings, leaf_noise=heard))

    def draw(dataset):
        learned(model, facts, listening, rows_of(dataset))
        return np.concatenate([model.splits_.ravel(), heard.last.ravel()])

    return draw


def _count(outputs, trees=1):
    """Return the largest count, over the trees, of class 1 in the first leaf of two."""
    return outputs[:, 2 * trees :].reshape(len(outputs), trees, 4)[:, :, 1].max(axis=1)


ONE_ROW = ([(1, 1)], [])
LEAVES = {"splits": "random", "depth": 1, "bins": 1}
FOREST = {**LEAVES, "trees": 2, "max_features": 1}


@pytest.mark.slow
@pytest.mark.statistical
@pytest.mark.parametrize(
    "model",
    [
        pytest.param(PrivateTree(epsilon=1, **LEAVES), marks=pytest.mark.audit),
        PrivateTree(epsilon=1, depth=1, bins=2),
        PrivateTree(epsilon=1, depth=1, bins=2, criterion="majority"),
        PrivateForest(epsilon=1, **FOREST),
        PrivateForest(epsilon=1, rows="shared", **FOREST),
    ],
)
def test_trees_are_not_refuted(model) -> None:
    audit(_drawer(model), ONE_ROW, epsilon=1, samples=500).verify()


@pytest.mark.audit
@pytest.mark.slow
@pytest.mark.statistical
def test_a_tree_with_half_of_the_noise_is_refuted() -> None:
    half = _drawer(PrivateTree(epsilon=2, **LEAVES))
    assert audit(half, ONE_ROW, epsilon=1, samples=1200, features={"count": _count}).refuted


@pytest.mark.slow
@pytest.mark.statistical
def test_a_forest_with_half_of_the_noise_is_refuted() -> None:
    half = _drawer(PrivateForest(epsilon=2, **FOREST))
    features = {"count": lambda outputs: _count(outputs, trees=2)}
    assert audit(half, ONE_ROW, epsilon=1, samples=2500, features=features).refuted


# Finished models: what they say of rows, and nothing else -----------------------------------------------------------


MANY = 1000
"""So many rows of class 0 that the probability of class 1 is the noisy count of it, but for a factor that is known."""


def _told_by_leaves(model) -> bool:
    """Return whether any tree has counted somebody of class 1 in its first leaf."""
    return bool(model.probabilities_[:, 0, 1].max() * MANY / len(model.probabilities_) > 0.5)


def _told_by_effects(model) -> bool:
    """Return whether the second bin speaks for class 1."""
    return bool(model.effects_[0, 1] > 0.36)


@pytest.mark.slow
@pytest.mark.statistical
@pytest.mark.parametrize("factor", [1, 2])
@pytest.mark.parametrize(
    ("model", "told", "samples"),
    [
        (PrivateTree(**LEAVES), _told_by_leaves, 600),
        pytest.param(PrivateForest(**FOREST), _told_by_leaves, 2000, marks=pytest.mark.audit),
        (PrivateGradientBoosting(bins=2, rounds=1, delta=0.1), _told_by_effects, 1200),
    ],
)
def test_a_finished_model_is_not_refuted_and_one_with_half_of_the_noise_is(model, told, samples, factor) -> None:
    facts = facts_of()
    plan = model._plan(facts, quiet(factor, delta=model.delta))
    tables = [
        replace(rows_of(table), weights=np.array([MANY, 1][: len(table)])) for table in ([(0, 0)], [(0, 0), (3, 1)])
    ]

    def happens(size) -> bool:
        return told(learned(model, facts, plan, tables[size]))

    found = is_refuted(happens, samples=samples, is_right=factor == 1, delta=model.delta)
    assert found == (factor > 1)


# Boosting: everything that it releases, in order ---------------------------------------------------------------------


def _transcript(**arguments):
    """Return a mechanism whose output is what is noisy about one row: its class, its bin and its residual."""
    _, plan = planned(PrivateGradientBoosting(bins=2, rounds=1, **arguments))
    heard = {name: _Heard(getattr(plan.settings, name)) for name in ("class_noise", "bin_noise", "sum_noise")}
    recipe = replace(plan.settings, **heard)

    def draw(dataset):
        table = np.array(dataset)
        weights = np.where(table[:, 1] == 0, 100_000, 1)  # so many of the other class that the residual is nearly 1
        Boosting(recipe, Sample(table[:, :1], table[:, 1], weights), random_source()).run(classes=2)
        class_count, bin_count, residual = (noise.last.ravel()[1] for noise in heard.values())
        return np.array([class_count, bin_count, residual / WHOLE])

    return draw


ONE_MORE = ([(0, 0), (1, 1)], [(0, 0)])


def _likelihood(outputs):
    """Return how much more likely an output is with the row than without, by Laplace noise of the shares spent."""
    return np.round(((np.abs(outputs) - np.abs(outputs - 1)) * [0.03, 0.2, 0.77]).sum(axis=1), 1)


FEATURES = {"likelihood": _likelihood}


@pytest.mark.slow
@pytest.mark.statistical
@pytest.mark.parametrize("delta", [0, 1e-5])
def test_boosting_is_not_refuted(delta: float) -> None:
    audit(
        _transcript(epsilon=1, delta=delta), ONE_MORE, epsilon=1, delta=delta, samples=800, features=FEATURES
    ).verify()


@pytest.mark.slow
@pytest.mark.statistical
def test_boosting_with_half_of_the_noise_is_refuted() -> None:
    report = audit(_transcript(epsilon=2), ONE_MORE, epsilon=1, samples=2500, features=FEATURES)
    assert report.refuted
