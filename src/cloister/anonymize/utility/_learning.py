"""Train on released, test on original: how much worse a model is that only saw the protected table.

Boosted trees (scikit-learn's histogram gradient boosting) learn a column from the quasi-identifiers, once from the
original rows and once from what was released of the same rows; both predict original rows that neither has seen, five
folds in turn. The differences are paired, so that their intervals are narrow. This needs the extra ``learn``.

Released cells become numbers that a learner can use, so that a model trained on labels works on raw values. A label of
an unordered column becomes the share that each node of the hierarchy has under it, coarse levels first; a raw value is
the same with all the weight in one place. A node is left out where no label lies wholly inside it: a model could not
learn what a raw value there means. A label of an ordered column becomes its middle and its two ends; a raw value has
all three at one place.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cloister.anonymize.attributes import CodedAttribute
from cloister.anonymize.cells import CodedCells
from cloister.anonymize.comparison import Comparison
from cloister.anonymize.labels import ReadLabels
from cloister.core.random import SeededRandomSource, integers_below, permutation
from cloister.core.wordings import format_points, percent
from cloister.errors import DataError, MissingExtraError, ParameterError

__all__ = ["Learning", "LearningScore", "encode", "encode_raw", "measure_learning"]


_MOST_NODES = 64
_SURE = 1 - 1e-9


def encode(column: ReadLabels) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the features of each label and of each raw value of a column, in one scale."""
    attribute = column.attribute
    if attribute.is_ordered:
        return _on_scale(attribute, column.member, column.numbers), encode_raw(attribute)
    nodes = encode_raw(attribute)
    shown = column.shares @ nodes
    sure = np.asarray((shown >= _SURE).any(axis=0))
    sure[0] |= not sure.any()  # a column that says nothing still has a feature
    return shown[:, sure], nodes[:, sure]


def encode_raw(attribute: CodedAttribute) -> NDArray[np.float64]:
    """Return the features of each raw value for a model that learns from raw values."""
    size = len(attribute.leaves)
    if attribute.is_ordered:
        return _on_scale(attribute, np.eye(size, dtype=bool), np.full(size, np.nan))
    return np.hstack([np.eye(attribute.size(level))[attribute.ancestors[level]] for level in _levels(attribute)])


def _levels(attribute: CodedAttribute) -> list[int]:
    """Return the levels with few enough nodes, coarse ones first; the one below the root at the least."""
    below = range(max(attribute.height, 1))
    few = [level for level in below if attribute.size(level) <= _MOST_NODES]
    return (few or [below[-1]])[::-1]


def _on_scale(
    attribute: CodedAttribute, member: NDArray[np.bool_], numbers: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Return the middle and the ends of each label; a central value that is no raw value is its own middle."""
    places = np.nan_to_num(attribute.positions if attribute.positions is not None else np.zeros(member.shape[1]))
    middle = member @ places / member.sum(axis=1)
    # The mean of a class is told as a number that need not be a raw value.
    exact = np.isfinite(numbers) & (member.sum(axis=1) == 1) & ~attribute.has_hierarchy
    low = np.where(member, places, np.inf).min(axis=1)
    high = np.where(member, places, -np.inf).max(axis=1)
    return np.column_stack([np.where(exact, numbers, middle), low, high])


FOLDS = 5
_ROUNDS = 100
_RESAMPLES = 60
_FEWEST = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class LearningScore:
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
    accuracy: LearningScore
    f1: LearningScore
    auc: LearningScore
    majority: float

    def __str__(self) -> str:
        low, high = (format_points(end, signed=True) for end in self.accuracy.interval)
        return (
            f"{self.target} predicted in {percent(self.accuracy.released)} of rows, "
            f"{percent(self.accuracy.original)} when trained on the original "
            f"(difference {low} to {high} points, 95%)"
        )

    def to_dict(self) -> dict[str, Any]:
        """Return JSON-ready values."""
        scores = {name: getattr(self, name).to_dict() for name in ("accuracy", "f1", "auc")}
        return {"target": self.target, "rows": self.rows, "majority": self.majority, **scores}


def measure_learning(
    comparison: Comparison, targets: CodedCells, *, rounds: int = _ROUNDS, folds: int = FOLDS
) -> Learning:
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
    # Rows without a class have the number -1; what they pick here is never learned from.
    shown = np.hstack([labels[comparison.codes[classes, place]] for place, (labels, _) in enumerate(encoded)])
    raw = np.hstack([values_of[leaves[:, place]] for place, (_, values_of) in enumerate(encoded)])
    plain = np.hstack(
        [encode_raw(column.attribute)[leaves[:, place]] for place, column in enumerate(comparison.columns)]
    )
    fold = _deal_folds(values, folds)
    before = _predict(fit, train=plain, test=plain, values=values, fold=fold)
    # Tested on raw values, which is what a model meets later.
    after = _predict(fit, train=shown, test=raw, values=values, fold=fold, known=classes >= 0)
    return _score_models(name, values, before, after)


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


def _rows(
    comparison: Comparison, targets: CodedCells
) -> tuple[NDArray[np.int32], NDArray[np.int64], NDArray[np.int64]]:
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


def _deal_folds(values: NDArray[np.int64], folds: int) -> NDArray[np.int64]:
    """Return the fold of every row, each value spread evenly."""
    fold = np.empty(len(values), dtype=np.int64)
    mixed = permutation(SeededRandomSource(4), len(values))
    fold[mixed[np.argsort(values[mixed], kind="stable")]] = np.arange(len(values)) % folds
    return fold


def _predict(
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
        # A value that no training row has keeps a chance of zero.
        chances[np.ix_(held, model.classes_)] = model.predict_proba(test[held])
    return chances


def _score_models(
    name: str, values: NDArray[np.int64], before: NDArray[np.float64], after: NDArray[np.float64]
) -> Learning:
    source = SeededRandomSource(5)
    draws = [integers_below(source, len(values), len(values)) for _ in range(_RESAMPLES)]
    measures = {"accuracy": _accuracy, "f1": _f1, "auc": _auc}
    scores = {}
    for measure, score in measures.items():
        # The same rows for both models: most of the chance in a test set cancels in the difference.
        gaps = [score(values[rows], after[rows]) - score(values[rows], before[rows]) for rows in draws]
        center, reach = score(values, after) - score(values, before), 1.96 * float(np.std(gaps))
        scores[measure] = LearningScore(
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
    # Equal scores share their middle rank, so that a tie counts one half.
    ranks = (np.cumsum(counts) - (counts - 1) / 2)[inverse]
    ones, zeros = int(positive.sum()), int((~positive).sum())
    del ordered
    return float((ranks[positive].sum() - ones * (ones + 1) / 2) / (ones * zeros)) if zeros else 0.5
