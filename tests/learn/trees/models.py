"""Fitting the inside of an estimator, without the reading and paying around it: for tests that draw many models."""

from __future__ import annotations

import numpy as np
import pandas as pd

from cloister.core.random import random_source
from cloister.learn import PrivateGaussianNB
from cloister.learn._encoding import Encoding
from cloister.learn._features import Numeric
from cloister.learn._public_facts import PublicFacts, TargetFacts
from cloister.learn._rows import WeightedRows

CLASSES = (0, 1)


def unexpected(model) -> set[str]:
    """Return the learned attributes that are neither stated nor those that every model has."""
    usual = PrivateGaussianNB(bounds=(0, 1), classes=CLASSES).fit(pd.DataFrame({"x": [0.0, 1.0]}), CLASSES)
    common = set(vars(usual)) - set(usual.learned)
    return {name for name in vars(model) if name.endswith("_")} - common - set(model.learned)


def facts_of(width: int = 1, classes: tuple[int, ...] = CLASSES) -> PublicFacts:
    """Return the facts of numbers between 0 and 4."""
    features = tuple(Numeric(f"x{place}", 0.0, 4.0) for place in range(width))
    return PublicFacts(Encoding(features), TargetFacts(None, classes=classes))


def rows_of(dataset, width: int = 1) -> WeightedRows:
    """Return rows of numbers with their class last."""
    table = np.array(dataset, dtype=np.float64).reshape(-1, width + 1)
    return WeightedRows(table[:, :-1], table[:, -1].astype(np.int64), np.ones(len(table), dtype=np.int64))


def planned(model, width: int = 1, classes: tuple[int, ...] = CLASSES):
    """Return the facts, and what a model would do."""
    facts = facts_of(width, classes)
    return facts, model._plan(facts, model._calibration())


def learned(model, facts, plan, rows):
    """Return the model after it has learned from rows."""
    model.classes_ = np.array(facts.target.classes)
    model.encoding_ = facts.encoding
    model._learn(facts, rows, plan, random_source())
    return model
