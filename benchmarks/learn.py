"""Private models on Adult, beside diffprivlib with the same public bounds and scikit-learn without privacy.

Every score is the median of 20 fits on the training file: accuracy or R2 on the test file; for clusters the squared
distance of a training row to its center, for components the share of the training variance that they capture.
Ours is told which of the 49 columns belong to one category; all settings are the defaults, which follow public rules.
"delta" says that 1e-5 was spent besides epsilon. Seconds are of one fit at epsilon 1; scikit-learn is the peer there.
"""

from __future__ import annotations

import statistics
import tempfile
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from sklearn import cluster, decomposition, ensemble, linear_model, naive_bayes, neural_network, tree

from benchmarks import harness
from benchmarks.learn_data import NORMS, Adult, adult, facts
from cloister import learn
from cloister.learn.base import PrivateEstimator

TITLE = "Private learning: Adult, median of 20 fits"
RUNS = 20
EPSILONS = (0.1, 1.0, 10.0)
DELTA = 1e-5
PACKAGES = ("diffprivlib==0.6.6", "scikit-learn<1.6")
_ROOT = str(Path(__file__).parents[1])
_PEER = """
import json, sys
sys.path.insert(0, {root!r})
from benchmarks.peers import diffprivlib_models as tool
print(json.dumps(tool.run({path!r}, {jobs!r})))
"""

Score = Callable[[Any, Adult], float]


@dataclass(frozen=True, kw_only=True)
class Case:
    """A model on a table: how to make ours, scikit-learn's, what to reach, and whether less is better."""

    name: str
    table: str
    ours: Callable[[float, float], Any]
    plain: Callable[[], Any]
    delta: float = 0.0
    peer: str | None = None
    reach: tuple[float, ...] | None = None
    score: Score
    less_is_better: bool = False


def _accuracy(model: Any, data: Adult) -> float:
    return float(model.score(data.declared_test if hasattr(model, "guarantee_") else data.X_test, data.y_test))


def _inertia(model: Any, data: Adult) -> float:
    centers = model.cluster_centers_
    squared = (data.X**2).sum(axis=1)[:, None] - 2 * data.X @ centers.T + (centers**2).sum(axis=1)
    return float(squared.min(axis=1).mean())


def _captured(model: Any, data: Adult) -> float:
    centered = data.X - data.X.mean(axis=0)
    return float(((centered @ model.components_.T) ** 2).sum() / (centered**2).sum())


def _classifier(kind: str, table: str, **options: Any) -> Callable[[float, float], Any]:
    return _other(kind, table, classes=[0, 1], **options)


def _other(kind: str, table: str, **options: Any) -> Callable[[float, float], Any]:
    return lambda epsilon, delta: getattr(learn, kind)(epsilon=epsilon, delta=delta, **facts(table), **options)


CASES = (
    Case(
        name="logistic, 5 features",
        table="five",
        ours=_classifier("PrivateLogisticRegression", "five"),
        plain=lambda: linear_model.LogisticRegression(max_iter=1000),
        delta=DELTA,
        peer="logistic",
        score=_accuracy,
    ),
    Case(
        name="logistic, 49 columns",
        table="wide",
        ours=_classifier("PrivateLogisticRegression", "wide"),
        plain=lambda: linear_model.LogisticRegression(max_iter=1000),
        delta=DELTA,
        peer="logistic",
        reach=(0.83, 0.84, 0.85),
        score=_accuracy,
    ),
    Case(
        name="Gaussian naive Bayes, 5 features",
        table="five",
        ours=_classifier("PrivateGaussianNB", "five"),
        plain=naive_bayes.GaussianNB,
        peer="gaussian_nb",
        score=_accuracy,
    ),
    Case(
        name="linear, 49 columns",
        table="wide",
        ours=_other("PrivateLinearRegression", "wide", target_bounds=(0, 1)),
        plain=linear_model.LinearRegression,
        delta=DELTA,
        peer="linear",
        reach=(0.12, 0.28, 0.34),
        score=_accuracy,
    ),
    Case(
        name="PCA, 3 of 49, variance captured",
        table="wide",
        ours=_other("PrivatePCA", "wide", n_components=3),
        plain=lambda: decomposition.PCA(3),
        delta=DELTA,
        reach=(0.38, 0.411, 0.411),
        score=_captured,
    ),
    Case(
        name="k-means, 5 clusters of 49, inertia per row",
        table="wide",
        ours=_other("PrivateKMeans", "wide", n_clusters=5),
        plain=lambda: cluster.KMeans(5, n_init=1),
        delta=DELTA,
        peer="kmeans",
        reach=(2.77, 2.35, 2.35),
        score=_inertia,
        less_is_better=True,
    ),
    Case(
        name="forest, 49 columns",
        table="wide",
        ours=_classifier("PrivateForest", "wide"),
        plain=ensemble.RandomForestClassifier,
        peer="forest",
        reach=(0.7638, 0.80, 0.80),
        score=_accuracy,
    ),
    Case(
        name="tree, 49 columns",
        table="wide",
        ours=_classifier("PrivateTree", "wide"),
        plain=lambda: tree.DecisionTreeClassifier(max_depth=5),
        peer="tree",
        score=_accuracy,
    ),
    Case(
        name="gradient boosting, 49 columns",
        table="wide",
        ours=_classifier("PrivateGradientBoosting", "wide"),
        plain=ensemble.HistGradientBoostingClassifier,
        delta=DELTA,
        score=_accuracy,
    ),
    Case(
        name="neural network, 49 columns",
        table="wide",
        ours=_classifier("PrivateMLP", "wide", expected_rows=30_000),
        plain=lambda: neural_network.MLPClassifier((32,), max_iter=20),
        delta=DELTA,
        score=_accuracy,
    ),
)


def main(
    runs: int = RUNS, cases: tuple[Case, ...] = CASES, epsilons: tuple[float, ...] = EPSILONS
) -> list[dict[str, Any]]:
    tables = {kind: adult(kind) for kind in {case.table for case in cases}}
    peers = _peers(cases, tables, runs, epsilons)
    rows: list[dict[str, Any]] = []
    for case in cases:
        rows += _rows(case, tables[case.table], peers, runs, epsilons)
    return rows


def _rows(
    case: Case, data: Adult, peers: dict[tuple[str, float], dict[str, Any]], runs: int, epsilons: tuple[float, ...]
) -> list[dict[str, Any]]:
    plain, plain_seconds = _fitted(case.plain, case, data, runs=min(runs, 3))
    rows, seconds = [], 0.0
    for place, epsilon in enumerate(epsilons):
        score, taken = _fitted(lambda e=epsilon: case.ours(e, case.delta), case, data, runs=runs)
        seconds = taken if epsilon == 1 else seconds
        peer = peers.get((case.name, epsilon))
        asked = None if case.reach is None else case.reach[place]
        rows.append(_row(case, epsilon, score, plain, peer, asked))
    ratio = seconds / plain_seconds
    rows.append(
        {
            "name": f"{case.name}: seconds of a fit",
            "ours": seconds,
            "peer": plain_seconds,
            "peer_name": "scikit-learn",
            "ratio": plain_seconds / seconds if seconds else None,
            "unit": "s",
            "target": "at most 2x",
            "met": ratio <= 2,
        }
    )
    return rows


def _row(
    case: Case, epsilon: float, score: float, plain: float, peer: dict[str, Any] | None, asked: float | None
) -> dict[str, Any]:
    limits = [limit for limit in (asked, None if peer is None else peer["score"]) if limit is not None]
    limit = (min if case.less_is_better else max)(limits, default=None)
    reached = None if limit is None else (score <= limit if case.less_is_better else score >= limit)
    return {
        "name": f"{case.name}, epsilon {epsilon:g}{', delta' if case.delta else ''}",
        "ours": f"{score:.4g}",
        "peer": None if peer is None else f"{peer['score']:.4g}",
        "peer_name": "diffprivlib",
        "unit": f"{plain:.4g} without privacy",
        "target": None if limit is None else f"{'<=' if case.less_is_better else '>='} {limit:.4g}",
        "met": reached,
    }


def _fitted(make: Callable[[], Any], case: Case, data: Adult, *, runs: int) -> tuple[float, float]:
    """Return the median score and the median seconds of a fit."""
    scores, seconds = [], []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for _ in range(runs):
            model = make()
            rows = data.declared if isinstance(model, PrivateEstimator) else data.X
            start = time.perf_counter()
            if case.score is _accuracy:
                model.fit(rows, data.y)
            else:
                model.fit(rows)
            seconds.append(time.perf_counter() - start)
            scores.append(case.score(model, data))
    return statistics.median(scores), statistics.median(seconds)


def _peers(
    cases: tuple[Case, ...], tables: dict[str, Adult], runs: int, epsilons: tuple[float, ...]
) -> dict[tuple[str, float], dict[str, Any]]:
    jobs = [
        {
            "name": case.name,
            "model": case.peer,
            "table": case.table,
            "epsilon": epsilon,
            "norm": NORMS[case.table],
            "runs": runs,
        }
        for case in cases
        if case.peer is not None
        for epsilon in epsilons
    ]
    with tempfile.TemporaryDirectory() as folder:
        path = str(Path(folder) / "adult.npz")
        arrays = {
            f"{kind}_{part}": getattr(data, part)
            for kind, data in tables.items()
            for part in ("X", "y", "X_test", "y_test")
        }
        np.savez(path, **arrays)
        done = harness.run_peer(_PEER.format(root=_ROOT, path=path, jobs=jobs), *PACKAGES)
    return {(job["name"], job["epsilon"]): job for job in done}
