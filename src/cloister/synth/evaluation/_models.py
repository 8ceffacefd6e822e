"""The models that an evaluation trains, from scikit-learn (the extra ``learn``), with fixed settings."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from cloister.core.lazy_imports import need_learning
from cloister.errors import ParameterError, did_you_mean

__all__ = ["CLASSIFIERS", "REGRESSORS", "classifiers", "discriminators", "learn_quietly", "regressors"]


@dataclass(frozen=True, slots=True)
class Model:
    """How to make a model, and whether it learns from cells as they are rather than from features."""

    make: Callable[[], Any]
    on_cells: bool = False


CLASSIFIERS = ("logistic regression", "tree", "forest", "boosted trees", "linear SVM")
REGRESSORS = ("linear regression", "tree", "forest", "boosted trees")

_LEAF = 5

NEEDS_LEARNING = "Propensity scores and models of synthetic data"
"""What needs scikit-learn, where it is missing."""


@contextmanager
def learn_quietly() -> Iterator[None]:
    """Let models learn in one thread, which is sooner done for so few rows, and without words about their last digits.

    Raises:
        MissingExtraError: if scikit-learn is not installed.
    """
    need_learning(NEEDS_LEARNING)
    from sklearn.exceptions import ConvergenceWarning
    from threadpoolctl import threadpool_limits  # scikit-learn needs it too

    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        yield


def discriminators() -> dict[str, Callable[[], Any]]:
    """Return the models that tell real from synthetic rows."""
    need_learning(NEEDS_LEARNING)
    from sklearn.linear_model import LogisticRegression
    from sklearn.tree import DecisionTreeClassifier

    return {
        "logistic regression": lambda: LogisticRegression(C=100.0, solver="newton-cholesky"),
        "tree": lambda: DecisionTreeClassifier(min_samples_leaf=20, random_state=0),
    }


def classifiers(names: tuple[str, ...], seed: int, categories: Sequence[int]) -> dict[str, Model]:
    """Return classifiers by name; categories are the columns of cells that hold names."""
    need_learning(NEEDS_LEARNING)
    from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
    from sklearn.linear_model import LogisticRegression
    from sklearn.svm import LinearSVC
    from sklearn.tree import DecisionTreeClassifier

    found: dict[str, Model] = {
        "logistic regression": Model(lambda: LogisticRegression(solver="newton-cholesky")),
        "tree": Model(lambda: DecisionTreeClassifier(max_depth=8, min_samples_leaf=_LEAF, random_state=seed)),
        "forest": Model(lambda: RandomForestClassifier(n_estimators=60, min_samples_leaf=2, random_state=seed)),
        "boosted trees": Model(
            lambda: HistGradientBoostingClassifier(
                max_iter=60,
                early_stopping=False,
                random_state=seed,
                min_samples_leaf=_LEAF,
                categorical_features=list(categories),
            ),
            on_cells=True,
        ),
        "linear SVM": Model(lambda: LinearSVC(max_iter=5000, random_state=seed)),
    }
    return _choose_models(found, names)


def regressors(names: tuple[str, ...], seed: int, categories: Sequence[int]) -> dict[str, Model]:
    """Return regressors by name; categories are the columns of cells that hold names."""
    need_learning(NEEDS_LEARNING)
    from sklearn.ensemble import HistGradientBoostingRegressor, RandomForestRegressor
    from sklearn.linear_model import Ridge
    from sklearn.tree import DecisionTreeRegressor

    found: dict[str, Model] = {
        "linear regression": Model(lambda: Ridge(alpha=1e-3)),
        "tree": Model(lambda: DecisionTreeRegressor(max_depth=8, min_samples_leaf=_LEAF, random_state=seed)),
        "forest": Model(lambda: RandomForestRegressor(n_estimators=60, min_samples_leaf=2, random_state=seed)),
        "boosted trees": Model(
            lambda: HistGradientBoostingRegressor(
                max_iter=60,
                early_stopping=False,
                random_state=seed,
                min_samples_leaf=_LEAF,
                categorical_features=list(categories),
            ),
            on_cells=True,
        ),
    }
    return _choose_models(found, names)


def _choose_models(known: dict[str, Model], names: tuple[str, ...]) -> dict[str, Model]:
    for name in names:
        if name not in known:
            raise ParameterError(
                f'There is no model "{name}" for this.{did_you_mean(str(name), known)}',
                fix=f"choose among {', '.join(known)}.",
            )
    return {name: known[name] for name in names or known}
