"""Grouped Gaussians on three tables of numbers: the case study of PrivSyn, with noise that keeps its promise.

Tables are scaled to [-1, 1] by the public bounds below; Breast cancer is without its id and its 16 incomplete rows. In
scenario 2, 80% of the rows are synthesized, a model is trained on as many synthetic rows and tested on the other 20%;
in scenario 1, 70% of the rows train a model that is tested on rows synthesized from the other 30%; in scenario 0 both
are real. Models: a support vector machine, a linear regression of the class as 0 or 1, and 2-means, for which a fifth
of the rows, held out, is labeled by centers of real and of synthetic rows (adjusted Rand index and mutual information).

First the bars: scenario 2 with a support vector machine as it comes (C = 1), 20 splits, beside figures measured
elsewhere with one group and one region; the target is to be at most one standard deviation below. Then all scenarios,
with the settings of the machine searched by F1 in 3 folds. Last what was published about the original method, which
was found with noise that is too small by about the number of rows: whether it holds for noise of the right size. The
folder of the data is CLOISTER_DATA, by default ``../shared/data``.
"""

from __future__ import annotations

import csv
import os
import statistics
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from sklearn.base import BaseEstimator
from sklearn.cluster import KMeans
from sklearn.linear_model import LinearRegression
from sklearn.metrics import adjusted_rand_score, normalized_mutual_info_score
from sklearn.model_selection import GridSearchCV
from sklearn.svm import SVC

from cloister.core.random import SystemRandomSource, permutation
from cloister.data.schema import Schema
from cloister.data.sources import open_table
from cloister.data.table import Table
from cloister.errors import PrivacyParameterWarning
from cloister.synth import GroupedGaussian

TITLE = "Synthetic tables of numbers (case study, grouped Gaussians)"
DATA = Path(os.environ.get("CLOISTER_DATA", Path(__file__).parents[2] / "shared" / "data"))
FILES = {
    "Diabetes": "pima/pima.csv",
    "Breast cancer": "breast-cancer-wisconsin/breast-cancer-wisconsin.csv",
    "Australian": "australian/australian.csv",
}
GRADES = (
    "clump-thickness",
    "cell-size-uniformity",
    "cell-shape-uniformity",
    "marginal-adhesion",
    "epithelial-cell-size",
    "bare-nuclei",
    "bland-chromatin",
    "normal-nucleoli",
    "mitoses",
)
BOUNDS: dict[str, Any] = {
    "Diabetes": {
        "pregnancies": (0, 20),
        "glucose": (0, 200),
        "blood-pressure": (0, 140),
        "skin-thickness": (0, 100),
        "insulin": (0, 900),
        "bmi": (0.0, 70.0),
        "pedigree": (0.0, 2.5),
        "age": (20, 85),
    },
    "Breast cancer": dict.fromkeys(GRADES, (1, 10)),
    "Australian": {
        "A1": (0, 1),
        "A2": (13.0, 81.0),
        "A3": (0.0, 28.0),
        "A4": (1, 3),
        "A5": (1, 14),
        "A6": (1, 9),
        "A7": (0.0, 29.0),
        "A8": (0, 1),
        "A9": (0, 1),
        "A10": (0, 67),
        "A11": (0, 1),
        "A12": (1, 3),
        "A13": (0, 2000),
        "A14": (1, 100_001),
    },
}
"""Whole numbers have whole bounds."""
CLASSES = {"Diabetes": (0, 1), "Breast cancer": (2, 4), "Australian": (0, 1)}
EPSILONS = (0.5, 1, 2, 5, 10)
DELTA = 1e-5
BARS = {
    ("Diabetes", "Laplace"): ((0.644, 0.699, 0.704, 0.697, 0.720), 0.045),
    ("Diabetes", "Gaussian"): ((0.680, 0.697, 0.713, 0.719, 0.737), 0.043),
    ("Breast cancer", "Laplace"): ((0.897, 0.942, 0.956, 0.965, 0.966), 0.02),
    ("Breast cancer", "Gaussian"): ((0.938, 0.954, 0.964, 0.967, 0.966), 0.02),
    ("Australian", "Laplace"): ((0.694, 0.787, 0.800, 0.839, 0.850), 0.05),
    ("Australian", "Gaussian"): ((0.786, 0.835, 0.834, 0.850, 0.855), 0.03),
}
"""Accuracies of scenario 2 for `EPSILONS`, and their standard deviation between splits."""
GRID = {"C": [1, 10], "gamma": ["scale", 0.1]}


@dataclass(frozen=True, eq=False)
class Rows:
    """Features as they are, and classes as 0 and 1."""

    name: str
    features: np.ndarray
    classes: np.ndarray

    def take(self, chosen: np.ndarray) -> Rows:
        """Return some of the rows."""
        return Rows(self.name, self.features[chosen], self.classes[chosen])

    @property
    def scaled(self) -> np.ndarray:
        """Return the features between -1 and 1."""
        lows, highs = np.array(list(BOUNDS[self.name].values()), dtype=np.float64).T
        return 2 * (self.features - lows) / (highs - lows) - 1

    @property
    def table(self) -> Table:
        """Return the rows with what is public about them."""
        columns: dict[str, Any] = {}
        described: dict[str, Any] = {}
        for place, (column, bounds) in enumerate(BOUNDS[self.name].items()):
            is_whole = isinstance(bounds[0], int)
            columns[column] = pa.array(self.features[:, place].astype(np.int64 if is_whole else np.float64))
            described[column] = {"kind": "numeric", "bounds": list(bounds)}
        columns["class"] = pa.array([CLASSES[self.name][item] for item in self.classes])
        described["class"] = {"role": "sensitive", "kind": "nominal", "categories": list(CLASSES[self.name])}
        return open_table(pa.table(columns), schema=Schema.from_dict({"columns": described}))

    def synthetic(self, count: int | None = None, **settings: Any) -> Rows:
        """Return as many synthetic rows, or so many."""
        fitted = GroupedGaussian(label="class", **settings).fit(self.table)
        drawn = fitted.sample(len(self.classes) if count is None else count).to_arrow()
        features = np.column_stack([drawn[name].to_numpy() for name in BOUNDS[self.name]]).astype(np.float64)
        return Rows(self.name, features, (drawn["class"].to_numpy() == CLASSES[self.name][1]).astype(np.int64))


def load(name: str) -> Rows:
    """Return a data set without its incomplete rows."""
    with (DATA / FILES[name]).open(encoding="utf-8", newline="") as file:
        records = [record for record in csv.DictReader(file) if "?" not in record.values()]
    features = np.array([[float(record[column]) for column in BOUNDS[name]] for record in records])
    return Rows(name, features, np.array([int(record["class"]) == CLASSES[name][1] for record in records], np.int64))


def splits(rows: Rows, count: int, share: float) -> Iterator[tuple[Rows, Rows]]:
    """Yield random parts of the rows: a share of them, and the others."""
    for _ in range(count):
        order = permutation(SystemRandomSource(), len(rows.classes))
        first, second = np.split(order, [round(share * len(order))])
        yield rows.take(first), rows.take(second)


def accuracy(train: Rows, test: Rows, *, model: BaseEstimator | None = None) -> float:
    """Return the share of test rows that a support vector machine gets right."""
    if len(np.unique(train.classes)) == 1:
        return float(np.mean(test.classes == train.classes[0]))
    fitted = (SVC() if model is None else model).fit(train.scaled, train.classes)
    return float(np.mean(fitted.predict(test.scaled) == test.classes))


def searched(train: Rows, test: Rows) -> float:
    """Return the same with settings that are searched in the training rows."""
    fewest = np.bincount(train.classes, minlength=2).min()
    return accuracy(train, test, model=GridSearchCV(SVC(), GRID, scoring="f1", cv=3) if fewest >= 3 else None)


def squared_error(train: Rows, test: Rows) -> float:
    """Return the mean squared error of a linear regression of the class."""
    model = LinearRegression().fit(train.scaled, train.classes)
    return float(np.mean((model.predict(test.scaled) - test.classes) ** 2))


def agreement(real: Rows, synthetic: Rows, test: Rows) -> tuple[float, float]:
    """Return how alike 2-means of real and of synthetic rows label held-out rows: Rand index, mutual information."""
    labels = [KMeans(2, n_init=50).fit(rows.scaled).predict(test.scaled) for rows in (real, synthetic)]
    return float(adjusted_rand_score(*labels)), float(normalized_mutual_info_score(*labels))


def main() -> list[dict[str, Any]]:
    """Return the bars, the scenarios, and what was published."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PrivacyParameterWarning)
        return [
            *(row for name in FILES for row in _bars(name)),
            *(row for name in FILES for row in _scenarios(name)),
            *(row for name in FILES for row in _findings(name)),
        ]


def _bars(name: str, *, count: int = 20) -> list[dict[str, Any]]:
    rows, found = load(name), []
    for noise in ("Laplace", "Gaussian"):
        bars, deviation = BARS[name, noise]
        for epsilon, bar in zip(EPSILONS, bars, strict=True):
            ours = tried(rows, count, epsilon=epsilon, delta=DELTA if noise == "Gaussian" else 0)
            found.append(
                {
                    "name": f"{name}, scenario 2, {noise}, epsilon {epsilon}: SVM",
                    "ours": _shown(ours),
                    "peer": f"{bar:.3f}",
                    "peer_name": "measured elsewhere",
                    "unit": "accuracy",
                    "target": f">= {bar - deviation:.3f}",
                    "met": statistics.mean(ours) >= bar - deviation,
                }
            )
    return found


def tried(rows: Rows, count: int, **settings: Any) -> list[float]:
    """Return accuracies of scenario 2 over so many splits."""
    return [accuracy(seed.synthetic(**settings), test) for seed, test in splits(rows, count, 0.8)]


def _scenarios(name: str, *, count: int = 5) -> list[dict[str, Any]]:
    rows = load(name)
    majority = float(np.bincount(rows.classes).max() / len(rows.classes))
    found = [{"name": f"{name}: always the larger class", "ours": f"{majority:.3f}", "unit": "accuracy"}]
    real = list(splits(rows, count, 0.8))
    found += _tasks(f"{name}, scenario 0 (real, real)", real)
    for epsilon in (0.5, 1, 5):
        settings = {"epsilon": epsilon, "delta": DELTA}
        first = [(train, seed.synthetic(**settings)) for seed, train in splits(rows, count, 0.3)]
        found += _tasks(f"{name}, scenario 1 (real, synthetic), epsilon {epsilon}", first)
        second = [(seed.synthetic(**settings), test) for seed, test in real]
        found += _tasks(f"{name}, scenario 2 (synthetic, real), epsilon {epsilon}", second)
        scores = [agreement(seed, made, test) for (seed, test), (made, _) in zip(real, second, strict=True)]
        for place, unit in enumerate(("adjusted Rand index", "mutual information")):
            found.append(
                {
                    "name": f"{name}, epsilon {epsilon}: 2-means",
                    "ours": _shown([score[place] for score in scores]),
                    "unit": unit,
                }
            )
    return found


def _tasks(label: str, pairs: list[tuple[Rows, Rows]]) -> list[dict[str, Any]]:
    tasks = (("SVM, searched", "accuracy", searched), ("linear regression", "squared error", squared_error))
    return [
        {"name": f"{label}: {task}", "ours": _shown([measure(*pair) for pair in pairs]), "unit": unit}
        for task, unit, measure in tasks
    ]


def _findings(name: str, *, count: int = 10) -> list[dict[str, Any]]:
    """Return three claims about the published method, and whether they hold here."""
    rows = load(name)
    small, middle, large = (tried(rows, count, epsilon=e, delta=DELTA) for e in (0.1, 0.4, 1.0))
    by_k = [tried(rows, count, epsilon=1, delta=DELTA, regions=8, min_rows_per_region=k) for k in (25, 50, 75, 100)]
    rise = [second - first - (last - second) for first, second, last in zip(small, middle, large, strict=True)]
    gain = [last - first for first, last in zip(by_k[0], by_k[-1], strict=True)]
    errors = []
    for scenario in (1, 2):
        parts = splits(rows, count, 0.3 if scenario == 1 else 0.8)
        made = [(seed.synthetic(epsilon=0.1, delta=DELTA), other) for seed, other in parts]
        pairs = [(other, fake) if scenario == 1 else (fake, other) for fake, other in made]
        errors.append([squared_error(*pair) for pair in pairs])
    lower = [first - second for first, second in zip(*errors, strict=True)]
    return [
        {
            "name": f"{name}: published: accuracy rises fast from epsilon 0.1 to 0.4, then flattens",
            "ours": f"{_means(small, middle)}, at 1.0 {_means(large)}: {_so(rise)}",
            "unit": "accuracy",
        },
        {
            "name": f"{name}: published: of k = 25, 50, 75, 100, the last beats the first (8 regions, epsilon 1)",
            "ours": f"{_means(*by_k)}: {_so(gain)}",
            "unit": "accuracy",
        },
        {
            "name": f"{name}: published: at epsilon 0.1, the error of regression is lower in scenario 2 than in 1",
            "ours": f"{_means(errors[0])} in 1, {_means(errors[1])} in 2: {_so(lower)}",
            "unit": "squared error",
        },
    ]


def _so(differences: list[float]) -> str:
    """Return whether differences are above zero, by more than twice their standard error or not."""
    mean, error = statistics.mean(differences), statistics.stdev(differences) / len(differences) ** 0.5
    if abs(mean) <= 2 * error:
        return "no clear difference here"
    return "so here" if mean > 0 else "not so here"


def _means(*found: list[float]) -> str:
    return ", ".join(f"{statistics.mean(part):.3f}" for part in found)


def _shown(found: list[float]) -> str:
    return f"{statistics.mean(found):.3f} ± {statistics.stdev(found) / len(found) ** 0.5:.3f}"
