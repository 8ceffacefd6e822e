"""What synthetic rows are worth to who learns from them: models trained on them, and the clusters that they form.

**Training.** Three scenarios, with the same numbers of rows: train on real rows and test on real rows that were not
trained on; train on synthetic rows and test on the same real rows; train on real rows and test on synthetic ones.
Beside them stands the simplest guess, the most frequent class or the mean of the training rows, every time: a score
says nothing without it.

Without a holdout, test rows are set aside from the real rows. The synthetic rows were made from these too, so that
the second scenario may look a little better than it is.

**Clusters**: k-means on both tables, compared on real rows that neither was fitted on. Clusters are compared by how
they divide the same held-out real rows, never by matching rows of the two tables: a synthetic row belongs to no real
one. For comparison, the clusters of one half of the real rows are held against those of the other half: more
agreement cannot be expected.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cloister.core.random import RandomSource
from cloister.core.validation import check_choice
from cloister.errors import DataError, ParameterError
from cloister.synth.evaluation._coded_tables import Codes, Features, Floats, Tables, amounts
from cloister.synth.evaluation._models import Model, classifiers, learn_quietly, regressors

__all__ = ["Clusters", "ModelScores", "TrainingUtility", "measure_clusters", "measure_training", "order_kept"]


TASKS = ("classification", "regression")
_TESTED = 0.3
_FEWEST = 10
_MANY_VALUES = 10
_MOST_CATEGORIES = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelScores:
    """One model in three scenarios; a score is an accuracy, or the share of variance that is explained.

    Attributes:
        model: its name.
        real: trained and tested on real rows.
        synthetic: trained on synthetic rows, tested on real ones.
        reverse: trained on real rows, tested on synthetic ones.
        real_auc: the area under the ROC curve of the first, for two classes.
        synthetic_auc: that of the second.
        real_error: the mean squared error of the first, for numbers.
        synthetic_error: that of the second.
        baseline: the score of the simplest guess on the real test rows.
    """

    model: str
    real: float
    synthetic: float
    reverse: float
    baseline: float
    real_auc: float | None = None
    synthetic_auc: float | None = None
    real_error: float | None = None
    synthetic_error: float | None = None

    @property
    def gap(self) -> float | None:
        """Return the part of what there is to learn that is lost: 0 nothing, 1 everything.

        None where the model does no better than the simplest guess even on real rows.
        """
        learned = self.real - self.baseline
        return (self.real - self.synthetic) / learned if learned > 0 else None

    def to_dict(self) -> dict[str, Any]:
        """Return JSON-ready values."""
        shown = {name: getattr(self, name) for name in self.__slots__}
        return {name: value for name, value in shown.items() if value is not None} | {"gap": self.gap}


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingUtility:
    """Models trained on synthetic rows beside the same models trained on real rows.

    Attributes:
        target: the column that is predicted.
        task: "classification" or "regression".
        scores: one per model.
        trained: from how many rows of each table.
        tested: on how many real rows.
        has_holdout: whether these had no part in the synthetic rows.
    """

    target: str
    task: str
    scores: tuple[ModelScores, ...]
    trained: tuple[int, int]
    tested: int
    has_holdout: bool

    @property
    def baseline(self) -> float:
        """Return the score of the simplest guess."""
        return self.scores[0].baseline

    @property
    def gap(self) -> float | None:
        """Return the gap of the model that is best on real rows."""
        return max(self.scores, key=lambda item: item.real).gap

    @property
    def order_kept(self) -> float | None:
        """Return whether models rank alike when trained on synthetic rows: Kendall's tau, 1 for the same order."""
        return order_kept([item.real for item in self.scores], [item.synthetic for item in self.scores])

    def to_dict(self) -> dict[str, Any]:
        """Return JSON-ready values."""
        return {
            "target": self.target,
            "task": self.task,
            "measure": "accuracy" if self.task == "classification" else "r2",
            "baseline": self.baseline,
            "gap": self.gap,
            "order_kept": self.order_kept,
            "trained_real": self.trained[0],
            "trained_synthetic": self.trained[1],
            "tested": self.tested,
            "has_holdout": self.has_holdout,
            "models": [item.to_dict() for item in self.scores],
        }


@dataclass(frozen=True, eq=False)
class _Part:
    shown: Floats
    cells: Codes
    truth: NDArray[Any]

    def seen_by(self, model: Model) -> Any:
        """Return what a model learns from and predicts from."""
        return self.cells if model.on_cells else self.shown


@dataclass(frozen=True, eq=False)
class _Parts:
    """Real rows to train on, as many synthetic ones, synthetic rows and real rows to test on."""

    real: _Part
    synthetic: _Part
    reverse: _Part
    test: _Part


@learn_quietly()
def measure_training(
    tables: Tables,
    target: str,
    source: RandomSource,
    *,
    task: str | None = None,
    models: Sequence[str] = (),
    most: int,
    seed: int = 0,
) -> TrainingUtility:
    """Train and test.

    Args:
        tables: what is compared.
        target: the column to predict from the others.
        source: of random splits.
        task: "classification" or "regression"; without it, numbers with more than ten cells are regressed.
        models: which models; without it, all for the task.
        most: how many rows of each table are used at most.
        seed: of models that need one.

    Raises:
        UnknownColumnError: if there is no such column.
        DataError: if there is too little to learn from.
        MissingExtraError: if scikit-learn is not installed.
    """
    (place,) = tables.domain.positions([target])
    if len(tables.names) < 2:
        raise ParameterError(f'There is nothing to predict "{target}" from.', fix="compare at least two columns.")
    kind = _task(tables, place, task)
    features = [column for column in range(len(tables.names)) if column != place]
    names = [rank for rank, column in enumerate(features) if _is_category(tables, column)]
    make = (classifiers if kind == TASKS[0] else regressors)(tuple(models), seed, names)
    real, synthetic, test = _split(tables, place, source, most)
    # Models learn from as many synthetic rows as real ones, so that no table wins by its size.
    listed = (real, synthetic[: len(real)], synthetic, test)
    parts = _Parts(*(_part(tables, place, kind, codes) for codes in listed))
    if kind == TASKS[0] and len(np.unique(parts.real.truth)) < 2:
        raise DataError(f'"{target}" has one value only, so that there is nothing to learn.', fix="choose another.")
    score = _score_classifier if kind == TASKS[0] else _score_regressor
    return TrainingUtility(
        target=target,
        task=kind,
        scores=tuple(score(name, model, parts) for name, model in make.items()),
        trained=(len(parts.real.truth), len(parts.synthetic.truth)),
        tested=len(parts.test.truth),
        has_holdout=tables.holdout is not None,
    )


def order_kept(first: Sequence[float], second: Sequence[float]) -> float | None:
    """Return Kendall's tau-b between two lists of scores; None if one of them does not vary.

    >>> order_kept([0.7, 0.8, 0.9], [0.6, 0.8, 0.7])
    0.3333333333333333
    """
    pairs = [
        (np.sign(a - b), np.sign(c - d))
        for (a, c), (b, d) in itertools.combinations(zip(first, second, strict=True), 2)
    ]
    spread = math.sqrt(sum(abs(one) for one, _ in pairs) * sum(abs(two) for _, two in pairs))
    return float(sum(one * two for one, two in pairs) / spread) if spread else None


def _task(tables: Tables, place: int, task: str | None) -> str:
    if task is None:
        many = tables.domain.attributes[place].present > _MANY_VALUES
        return TASKS[tables.numeric[place] and many]
    asked = check_choice(task, name="task", allowed=TASKS)
    if asked == "regression" and not tables.numeric[place]:
        raise ParameterError(
            f'"{tables.names[place]}" is not a number, and cannot be regressed.', fix='use task="classification".'
        )
    return asked


def _split(tables: Tables, place: int, source: RandomSource, most: int) -> tuple[Codes, Codes, Codes]:
    """Return real rows to train on, synthetic ones, and real rows to test on; all have the target."""
    present = tables.domain.attributes[place].present
    real, synthetic = (
        _with_target(rows.some(rows.total, source), place, present) for rows in (tables.real, tables.synthetic)
    )
    if tables.holdout is None:
        tested = int(len(real) * _TESTED)
        test, real = real[:tested], real[tested:]
    else:
        test = _with_target(tables.holdout.some(tables.holdout.total, source), place, present)
    if min(len(real), len(synthetic), len(test)) < _FEWEST:
        raise DataError(
            f'There are too few rows with a value of "{tables.names[place]}" to train and test on.',
            fix=f"give tables with at least {_FEWEST} such rows to train on and to test on, or leave target out.",
        )
    return real[:most], synthetic[:most], test[:most]


def _with_target(codes: Codes, place: int, present: int) -> Codes:
    return codes[codes[:, place] < present]


def _is_category(tables: Tables, column: int) -> bool:
    return not tables.numeric[column] and tables.domain.sizes[column] <= _MOST_CATEGORIES


def _part(tables: Tables, place: int, kind: str, codes: Codes) -> _Part:
    features = Features(tables, tuple(column for column in range(len(tables.names)) if column != place))
    truth = codes[:, place]
    if kind == "regression":
        return _Part(
            features.of(codes), np.delete(codes, place, axis=1), amounts(tables.domain.attributes[place])[truth]
        )
    return _Part(features.of(codes), np.delete(codes, place, axis=1), truth)


def _score_classifier(name: str, model: Model, parts: _Parts) -> ModelScores:
    first, second = _train(model, parts.real), _train(model, parts.synthetic)
    test, seen = parts.test.truth, parts.test.seen_by(model)
    kinds, counts = np.unique(parts.real.truth, return_counts=True)
    return ModelScores(
        model=name,
        real=_accuracy(first, seen, test),
        synthetic=_accuracy(second, seen, test),
        reverse=_accuracy(first, parts.reverse.seen_by(model), parts.reverse.truth),
        baseline=float(np.mean(test == kinds[np.argmax(counts)])),
        real_auc=_auc(first, seen, test, kinds),
        synthetic_auc=_auc(second, seen, test, kinds),
    )


def _train(model: Model, part: _Part) -> Any:
    """Return a fitted model, or the only class that there is."""
    kinds = np.unique(part.truth)
    return model.make().fit(part.seen_by(model), part.truth) if len(kinds) > 1 else kinds[0]


def _accuracy(fitted: Any, seen: Any, truth: NDArray[Any]) -> float:
    guessed = fitted.predict(seen) if hasattr(fitted, "predict") else fitted
    return float(np.mean(guessed == truth))


def _auc(fitted: Any, seen: Any, truth: NDArray[Any], kinds: NDArray[Any]) -> float | None:
    """Return the area under the ROC curve for two classes: how often the right one of two rows scores higher."""
    if len(kinds) != 2 or not np.array_equal(np.unique(truth), kinds):
        return None
    if not hasattr(fitted, "predict"):
        return 0.5
    if not np.array_equal(fitted.classes_, kinds):
        return None
    has_margin = hasattr(fitted, "decision_function")
    scores = fitted.decision_function(seen) if has_margin else fitted.predict_proba(seen)[:, 1]
    return area(scores[truth == kinds[1]], scores[truth == kinds[0]])


def area(higher: Floats, lower: Floats) -> float:
    """Return how often one of the first numbers is above one of the second, ties counting half.

    >>> area(np.array([2.0, 3.0]), np.array([1.0, 2.0]))
    0.875
    """
    ordered = np.sort(lower)
    below = np.searchsorted(ordered, higher, side="left") + np.searchsorted(ordered, higher, side="right")
    return float(below.mean() / (2 * len(lower)))


def _score_regressor(name: str, model: Model, parts: _Parts) -> ModelScores:
    test, reverse = parts.test.truth, parts.reverse.truth
    if not np.var(test) or not np.var(reverse):
        raise DataError("The target does not vary, so that there is nothing to learn.", fix="choose another target.")
    first, second = (model.make().fit(part.seen_by(model), part.truth) for part in (parts.real, parts.synthetic))
    errors = [_squared_error(fitted, parts.test.seen_by(model), test) for fitted in (first, second)]
    back = _squared_error(first, parts.reverse.seen_by(model), reverse)
    spread = float(np.var(test))
    return ModelScores(
        model=name,
        real=1 - errors[0] / spread,
        synthetic=1 - errors[1] / spread,
        reverse=1 - back / float(np.var(reverse)),
        baseline=1 - float(np.mean((parts.real.truth.mean() - test) ** 2)) / spread,
        real_error=errors[0],
        synthetic_error=errors[1],
    )


def _squared_error(fitted: Any, seen: Any, truth: NDArray[Any]) -> float:
    return float(np.mean((fitted.predict(seen) - truth) ** 2))


_RESTARTS = 10
_CLUSTERS_TESTED = 0.3
_MOST_ROWS = 5_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Clusters:
    """How alike the clusters of real and of synthetic rows divide held-out real rows.

    Attributes:
        clusters: how many.
        adjusted_rand: 1 for the same division, about 0 for unrelated ones.
        mutual_information: normalized, 1 for the same division.
        control_adjusted_rand: the same between two halves of the real rows.
        control_mutual_information: the same between two halves of the real rows.
        tested: how many rows were divided.
    """

    clusters: int
    adjusted_rand: float
    mutual_information: float
    control_adjusted_rand: float
    control_mutual_information: float
    tested: int

    def to_dict(self) -> dict[str, Any]:
        """Return JSON-ready values."""
        return asdict(self)


@learn_quietly()
def measure_clusters(tables: Tables, source: RandomSource, *, clusters: int, most: int, seed: int = 0) -> Clusters:
    """Find clusters in both tables and compare them.

    Raises:
        DataError: if there are fewer rows than clusters.
        MissingExtraError: if scikit-learn is not installed.
    """
    from sklearn.cluster import KMeans
    from sklearn.metrics import adjusted_rand_score, normalized_mutual_info_score

    most = min(most, _MOST_ROWS)
    features = Features(tables, tuple(range(len(tables.names))))
    real, synthetic = (rows.some(rows.total, source) for rows in (tables.real, tables.synthetic))
    if tables.holdout is None:
        tested = int(len(real) * _CLUSTERS_TESTED)
        test, real = real[:tested], real[tested:]
    else:
        test = tables.holdout.some(most, source)
    real, synthetic, shown = real[:most], synthetic[:most], features.distances(test[:most])
    half = len(real) // 2
    parts = [features.distances(codes) for codes in (real, synthetic, real[:half], real[half:])]
    if any(len(np.unique(part, axis=0)) < clusters for part in parts) or not len(shown):
        raise DataError(
            f"There are too few different rows for {clusters} clusters.",
            fix="ask for fewer clusters, or give more rows.",
        )
    labels = [KMeans(clusters, n_init=_RESTARTS, random_state=seed).fit(part).predict(shown) for part in parts]
    return Clusters(
        clusters=clusters,
        adjusted_rand=float(adjusted_rand_score(labels[0], labels[1])),
        mutual_information=float(normalized_mutual_info_score(labels[0], labels[1])),
        control_adjusted_rand=float(adjusted_rand_score(labels[2], labels[3])),
        control_mutual_information=float(normalized_mutual_info_score(labels[2], labels[3])),
        tested=len(shown),
    )
