"""How well the utility task is learned from what a projection publishes, on rows that it was not learned from.

The learner is a support vector machine, over a grid of settings that is searched inside of the training part
(`svm_grid`), or with one setting (`svm`). Rows are split into a training part and a part to score, in which every class
has its share; the projection is fitted on the training part alone.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cloister.core import validation
from cloister.core.random import RandomSource, RandomState, random_source
from cloister.core.whole_rows import Floats
from cloister.errors import ParameterError, PrivacyParameterWarning
from cloister.learn.compressive._labeled_rows import CommonScale, as_numbers, read_codes, stratified_folds

__all__ = ["UtilityScores", "svm", "svm_grid", "utility_scores"]

COSTS = (0.1, 1, 10, 100, 1000)
WIDTHS = (1e-5, 1e-4, 1e-3, 1e-2)

Codes = NDArray[np.int64]


@dataclass(frozen=True, slots=True, kw_only=True)
class UtilityScores:
    """Accuracy and weighted F1 of the utility task, averaged over splits, from 0 to 1.

    Attributes:
        accuracy: the share of rows that are classified rightly from z.
        accuracy_deviation: how far splits differ from one another.
        f1: the F1 of the classes, weighted by their size.
        f1_deviation: how far splits differ from one another.
        full: the accuracy of the same learner from all features; NaN if it was not asked for.
        chance: the share of the most common class.
        tests: how many splits there were.
    """

    accuracy: float
    accuracy_deviation: float
    f1: float
    f1_deviation: float
    full: float
    chance: float
    tests: int

    def __str__(self) -> str:
        return f"accuracy {self.accuracy:.3f} ± {self.accuracy_deviation:.3f}, chance {self.chance:.3f}"


def svm() -> Any:  # a pipeline of scikit-learn, which has no types
    """Return a support vector machine on standardized features, with one setting."""
    from sklearn.pipeline import make_pipeline
    from sklearn.svm import SVC

    return make_pipeline(CommonScale(), SVC(C=10))


def svm_grid() -> Any:  # a search of scikit-learn, which has no types
    """Return a support vector machine on standardized features, its settings found by three-fold validation."""
    from sklearn.model_selection import GridSearchCV
    from sklearn.pipeline import make_pipeline
    from sklearn.svm import SVC

    grid = [
        {"svc__kernel": ["linear"], "svc__C": list(COSTS)},
        {"svc__kernel": ["rbf"], "svc__C": list(COSTS), "svc__gamma": list(WIDTHS)},
    ]
    return GridSearchCV(make_pipeline(CommonScale(), SVC()), grid, cv=3)


def utility_scores(
    model: Any,
    X: Any,
    y: Any,
    *,
    privacy: Any = None,
    tests: int = 10,
    folds: int = 10,
    learned_folds: int | None = None,
    learner: Any = None,
    full: bool = False,
    random_state: RandomState = None,
) -> UtilityScores:
    """Return how well the utility task is learned from a projection, on held-out rows.

    Args:
        model: a projection; copies of it are fitted. A pipeline that ends in one will do.
        X: rows.
        y: their utility labels.
        privacy: their privacy labels, for projections that use them.
        tests: how many splits.
        folds: how many parts the rows are split into, again and again.
        learned_folds: how many parts are learned from, the others being held out; None for all but one.
        learner: a classifier of scikit-learn; None for `svm_grid`.
        full: whether to score the learner on all features as well.
        random_state: None; an integer is for tests.
    """
    rows = as_numbers(X, what="rows")
    codes, _ = read_codes(y, rows=len(rows), what="utility")
    hidden = None if privacy is None else np.asarray(privacy)
    validation.check_count(tests, name="tests", at_least=1)
    if validation.check_count(folds, name="folds", at_least=2) > np.bincount(codes).min():
        raise ParameterError("A class has fewer rows than there are folds.", fix="use fewer folds, or more rows.")
    learned = folds - 1 if learned_folds is None else learned_folds
    if validation.check_count(learned, name="learned_folds", at_least=1) >= folds:
        raise ParameterError("No fold is held out.", fix="make learned_folds smaller than folds.")
    learner = svm_grid() if learner is None else learner
    found = [
        _once(model, learner, rows, codes, split=split, hidden=hidden, full=full)
        for split in _splits(codes, tests, (folds, learned), random_source(random_state))
    ]
    accuracies, f1s, fulls = (np.array(column) for column in zip(*found, strict=True))
    return UtilityScores(
        accuracy=float(accuracies.mean()),
        accuracy_deviation=float(accuracies.std()),
        f1=float(f1s.mean()),
        f1_deviation=float(f1s.std()),
        full=float(fulls.mean()),
        chance=float(np.bincount(codes).max() / len(codes)),
        tests=tests,
    )


def _splits(codes: Codes, tests: int, parts: tuple[int, int], source: RandomSource) -> Iterator[tuple[Codes, Codes]]:
    folds, learned = parts
    left = tests
    while left > 0:
        held = [test for _, test in stratified_folds(codes, folds, source)]
        for first in range(min(left, folds)):
            turned = [*held[first:], *held[:first]]
            yield np.sort(np.concatenate(turned[-learned:])), np.sort(np.concatenate(turned[:-learned]))
        left -= folds


def _once(
    model: Any,
    learner: Any,
    rows: Floats,
    codes: Codes,
    *,
    split: tuple[Codes, Codes],
    hidden: NDArray[Any] | None,
    full: bool,
) -> tuple[float, float, float]:
    from sklearn.base import clone
    from sklearn.metrics import f1_score

    train, test = split
    extra = {} if hidden is None else {"privacy": hidden[train]}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PrivacyParameterWarning)
        fitted = clone(model).fit(rows[train], codes[train], **extra)
    guessed = clone(learner).fit(fitted.transform(rows[train]), codes[train]).predict(fitted.transform(rows[test]))
    whole = clone(learner).fit(rows[train], codes[train]).score(rows[test], codes[test]) if full else np.nan
    f1 = f1_score(codes[test], guessed, average="weighted")
    return float((guessed == codes[test]).mean()), float(f1), float(whole)
