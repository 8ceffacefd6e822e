"""Train on released, test on original: how much worse a model is that only saw the protected table.

Boosted trees (scikit-learn's histogram gradient boosting) learn a column from the quasi-identifiers, once from the
original rows and once from what was released of the same rows; both predict original rows that neither has seen, five
folds in turn. The differences are paired, so that their intervals are narrow. This needs the extra ``learn``.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cloister.anonymize.cells import Cells
from cloister.anonymize.comparison import Comparison
from cloister.anonymize.utility.encoding import encode, encode_raw
from cloister.core.random import SeededRandomSource, integers_below, permutation
from cloister.errors import DataError, MissingExtraError, ParameterError

__all__ = ["Learning", "Score", "measure_learning"]

FOLDS = 5
_ROUNDS = 100
_RESAMPLES = 60
_FEWEST = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class Score:
    """One measure of a model, trained on the original and on the release.

    Attributes:
        original: the score of the model trained on the original rows.
        released: the score of the model trained on the released rows.
        interval: a 95 % interval of the difference, released less original, from resampled test rows.
    """

    original: float
    released: float
    interval: tuple[float, float]

    @property
    def difference(self) -> float:
        """Return the score on the release less that on the original."""
        return self.released - self.original

    def to_dict(self) -> dict[str, Any]:
        """Return JSON-ready values."""
        return {**asdict(self), "interval": list(self.interval), "difference": self.difference}


@dataclass(frozen=True, slots=True, kw_only=True)
class Learning:
    """How well a column is predicted after training on the release.

    Attributes:
        target: the column that is predicted.
        rows: how many original rows were predicted.
        accuracy: the share of right predictions.
        f1: the mean over classes of the harmonic mean of precision and recall.
        auc: the area under the ROC curve, averaged over classes.
        majority: the share that always predicting the most frequent value gets right.
    """

    target: str
    rows: int
    accuracy: Score
    f1: Score
    auc: Score
    majority: float

    def __str__(self) -> str:
        low, high = (100 * end for end in self.accuracy.interval)
        return (
            f"{self.target} predicted in {100 * self.accuracy.released:.1f}% of rows, "
            f"{100 * self.accuracy.original:.1f}% when trained on the original "
            f"(difference {low:+.1f} to {high:+.1f} points, 95%)"
        )

    def to_dict(self) -> dict[str, Any]:
        """Return JSON-ready values."""
        scores = {name: getattr(self, name).to_dict() for name in ("accuracy", "f1", "auc")}
        return {"target": self.target, "rows": self.rows, "majority": self.majority, **scores}


def measure_learning(comparison: Comparison, targets: Cells, *, rounds: int = _ROUNDS, folds: int = FOLDS) -> Learning:
    """Train and test.

    Args:
        comparison: the tables, with rows matched.
        targets: the original counted again with the target as its only sensitive column.
        rounds: how many trees are grown.
        folds: into how many parts the rows are dealt.

    Raises:
        MissingExtraError: if scikit-learn is not installed.
        ParameterError: if released rows cannot be matched with original ones.
        DataError: if the target has one value, or there are too few rows.
    """
    fit = _fitter(rounds)
    leaves, classes, values = _rows(comparison, targets)
    name = targets.sensitive[0].name
    if len(np.unique(values)) < 2 or len(values) < folds * _FEWEST:
        raise DataError(
            f'"{name}" cannot be learned: there are too few rows, or it has one value only.',
            fix="choose another target.",
        )
    encoded = [encode(column) for column in comparison.columns]
    shown = np.hstack([labels[comparison.codes[classes, place]] for place, (labels, _) in enumerate(encoded)])
    raw = np.hstack([values_of[leaves[:, place]] for place, (_, values_of) in enumerate(encoded)])
    plain = np.hstack(
        [encode_raw(column.attribute)[leaves[:, place]] for place, column in enumerate(comparison.columns)]
    )
    fold = _dealt(values, folds)
    before = _predicted(fit, train=plain, test=plain, values=values, fold=fold)
    after = _predicted(fit, train=shown, test=raw, values=values, fold=fold, known=classes >= 0)
    return _scored(name, values, before, after)


def _fitter(rounds: int) -> Callable[[NDArray[np.float64], NDArray[np.int64]], Any]:
    try:
        from sklearn.ensemble import HistGradientBoostingClassifier
        from threadpoolctl import threadpool_limits
    except ImportError:
        raise MissingExtraError(what="Models trained on a release", package="scikit-learn", extra="learn") from None

    def fit(features: NDArray[np.float64], values: NDArray[np.int64]) -> Any:
        model = HistGradientBoostingClassifier(max_iter=rounds, early_stopping=False, random_state=0)
        with threadpool_limits(1):
            return model.fit(features, values)

    return fit


def _rows(comparison: Comparison, targets: Cells) -> tuple[NDArray[np.int32], NDArray[np.int64], NDArray[np.int64]]:
    """Return the raw codes, the class (-1: none) and the target of every original row.

    Rows of one cell are alike in what they show; where they are in several classes they are dealt out at random.
    """
    lines = comparison.lines
    if lines is None:
        raise ParameterError(
            "It is not known which released row comes from which original one.",
            fix="assess a release of cloister, or a table whose rows are in the order of the original.",
        )
    order = np.argsort(lines.cells, kind="stable")
    cells = np.repeat(lines.cells[order], lines.counts[order])
    classes = np.repeat(lines.classes[order], lines.counts[order])
    by_cell = np.argsort(targets.record_cells, kind="stable")
    values = np.repeat(targets.record_values[by_cell, 0], targets.record_weights[by_cell]).astype(np.int64)
    mixed = permutation(SeededRandomSource(3), len(values))
    mixed = mixed[np.argsort(cells[mixed], kind="stable")]
    return comparison.original.codes[cells], classes, values[mixed]


def _dealt(values: NDArray[np.int64], folds: int) -> NDArray[np.int64]:
    """Return the fold of every row, each value spread evenly."""
    fold = np.empty(len(values), dtype=np.int64)
    mixed = permutation(SeededRandomSource(4), len(values))
    fold[mixed[np.argsort(values[mixed], kind="stable")]] = np.arange(len(values)) % folds
    return fold


def _predicted(
    fit: Callable[[NDArray[np.float64], NDArray[np.int64]], Any],
    *,
    train: NDArray[np.float64],
    test: NDArray[np.float64],
    values: NDArray[np.int64],
    fold: NDArray[np.int64],
    known: NDArray[np.bool_] | None = None,
) -> NDArray[np.float64]:
    """Return the probabilities of each value for every row, by models trained on the known rows of the other folds."""
    chances = np.zeros((len(values), int(values.max()) + 1))
    for number in np.unique(fold):
        held = fold == number
        chosen = ~held if known is None else ~held & known
        model = fit(train[chosen], values[chosen])
        chances[np.ix_(held, model.classes_)] = model.predict_proba(test[held])
    return chances


def _scored(name: str, values: NDArray[np.int64], before: NDArray[np.float64], after: NDArray[np.float64]) -> Learning:
    source = SeededRandomSource(5)
    draws = [integers_below(source, len(values), len(values)) for _ in range(_RESAMPLES)]
    measures = {"accuracy": _accuracy, "f1": _f1, "auc": _auc}
    scores = {}
    for measure, score in measures.items():
        gaps = [score(values[rows], after[rows]) - score(values[rows], before[rows]) for rows in draws]
        center, reach = score(values, after) - score(values, before), 1.96 * float(np.std(gaps))
        scores[measure] = Score(
            original=score(values, before), released=score(values, after), interval=(center - reach, center + reach)
        )
    return Learning(target=name, rows=len(values), majority=float(np.bincount(values).max() / len(values)), **scores)


def _accuracy(values: NDArray[np.int64], chances: NDArray[np.float64]) -> float:
    return float((chances.argmax(axis=1) == values).mean())


def _f1(values: NDArray[np.int64], chances: NDArray[np.float64]) -> float:
    """Return the mean F1 score of the values that occur."""
    said, size = chances.argmax(axis=1), chances.shape[1]
    right = np.bincount(values[said == values], minlength=size)
    total = np.bincount(values, minlength=size) + np.bincount(said, minlength=size)
    occurs = np.bincount(values, minlength=size) > 0
    return float((2 * right[occurs] / total[occurs]).mean())


def _auc(values: NDArray[np.int64], chances: NDArray[np.float64]) -> float:
    """Return the mean over values of the chance that a row with the value gets a higher score than one without."""
    found = [_area(values == value, chances[:, value]) for value in np.unique(values)]
    return float(np.mean(found))


def _area(positive: NDArray[np.bool_], score: NDArray[np.float64]) -> float:
    ordered, inverse, counts = np.unique(score, return_inverse=True, return_counts=True)
    ranks = (np.cumsum(counts) - (counts - 1) / 2)[inverse]
    ones, zeros = int(positive.sum()), int((~positive).sum())
    del ordered
    return float((ranks[positive].sum() - ones * (ones + 1) / 2) / (ones * zeros)) if zeros else 0.5
