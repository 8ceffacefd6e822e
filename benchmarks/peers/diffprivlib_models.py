"""diffprivlib: scikit-learn estimators with the same public bounds, defaults otherwise."""

from __future__ import annotations

import statistics
import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from diffprivlib import models


def run(path: str, jobs: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return, for each job, the median score over its runs and the median seconds of a fit.

    Args:
        path: an archive with X, y, X_test, y_test of each table.
        jobs: each with ``model``, ``table``, ``epsilon``, ``norm`` and ``runs``.
    """
    warnings.simplefilter("ignore")
    arrays = np.load(path)
    return [
        _measured(job, *(arrays[f"{job['table']}_{part}"] for part in ("X", "y", "X_test", "y_test"))) for job in jobs
    ]


def _measured(job: dict[str, Any], X: Any, y: Any, X_test: Any, y_test: Any) -> dict[str, Any]:
    scores, seconds = [], []
    for _ in range(job["runs"]):
        model = MODELS[job["model"]](job["epsilon"], X.shape[1], job["norm"])
        start = time.perf_counter()
        model.fit(X, y)
        seconds.append(time.perf_counter() - start)
        scores.append(_score(job["model"], model, X, X_test, y_test))
    return {**job, "score": statistics.median(scores), "seconds": statistics.median(seconds)}


def _score(name: str, model: Any, X: Any, X_test: Any, y_test: Any) -> float:
    if name == "kmeans":
        centers = model.cluster_centers_
        squared = (X**2).sum(1)[:, None] - 2 * X @ centers.T + (centers**2).sum(1)
        return float(squared.min(axis=1).mean())
    return float(model.score(X_test, y_test))


Make = Callable[[float, int, float], Any]
MODELS: dict[str, Make] = {
    "logistic": lambda epsilon, _, norm: models.LogisticRegression(epsilon=epsilon, data_norm=norm),
    "gaussian_nb": lambda epsilon, width, _: models.GaussianNB(
        epsilon=epsilon, bounds=(np.zeros(width), np.ones(width))
    ),
    "linear": lambda epsilon, width, _: models.LinearRegression(
        epsilon=epsilon, bounds_X=(np.zeros(width), np.ones(width)), bounds_y=(0, 1)
    ),
    "kmeans": lambda epsilon, width, _: models.KMeans(5, epsilon=epsilon, bounds=(np.zeros(width), np.ones(width))),
    "forest": lambda epsilon, width, _: models.RandomForestClassifier(
        epsilon=epsilon, bounds=(np.zeros(width), np.ones(width)), classes=[0, 1]
    ),
    "tree": lambda epsilon, width, _: models.DecisionTreeClassifier(
        epsilon=epsilon, bounds=(np.zeros(width), np.ones(width)), classes=[0, 1]
    ),
}
