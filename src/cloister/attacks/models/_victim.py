"""The model under attack, and what attacks on models read: rows with their labels.

A model is anything with ``predict_proba`` or ``predict``: estimators of scikit-learn and of `cloister.learn`,
pipelines, and objects of your own. A `Victim` is only asked questions; for attackers who hold the parameters of a
linear or logistic model, what it computes is written out as a `LinearLayer`. Rows are arrays or data frames, whatever
the model takes; errors never quote them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy import special

from cloister.core.confidence import Floats
from cloister.core.random import RandomSource
from cloister.errors import ParameterError, ParameterTypeError, UnknownColumnError

__all__ = [
    "Labeled",
    "LinearLayer",
    "Victim",
    "as_matrix",
    "as_trained",
    "linear_layer",
    "read_features",
    "read_labeled",
    "seed_of",
]


Integers: TypeAlias = NDArray[np.int64]


def seed_of(source: RandomSource) -> int:
    """Return a seed for an estimator of another package."""
    return int(source.words(1)[0] >> np.uint64(33))


@dataclass(frozen=True, slots=True, eq=False)
class Labeled:
    """Rows and their labels. Protected."""

    features: Any
    labels: NDArray[Any]

    def __len__(self) -> int:
        return len(self.labels)

    def __repr__(self) -> str:
        return "Labeled(...)"

    def take(self, positions: NDArray[Any]) -> Labeled:
        """Return some of the rows, by their positions or by a mask."""
        return Labeled(_rows_at(self.features, positions), self.labels[positions])

    def beside(self, other: Labeled) -> Labeled:
        """Return these rows, and the others after them.

        Raises:
            ParameterError: if the columns differ.
        """
        return Labeled(_stack_rows(self.features, other.features), np.concatenate([self.labels, other.labels]))


def read_labeled(rows: Any, *, target: str | None, what: str) -> Labeled:
    """Return rows with labels.

    Args:
        rows: a pair (features, labels); or a table or data frame, of which ``target`` names the column of labels.
        target: the column of labels.
        what: what the rows are, for errors.
    """
    if target is None:
        if not isinstance(rows, tuple | list) or len(rows) != 2:
            raise ParameterTypeError(
                f"The {what} are not a pair of features and labels.",
                fix=f"write {what.replace(' ', '_')}=(X, y), or give a table and the name of its label with target=.",
            )
        features, labels = read_features(rows[0], what=what), np.asarray(rows[1])
    else:
        frame = read_features(rows, what=what)
        if not hasattr(frame, "columns"):
            raise ParameterTypeError(
                f"The {what} have no named columns.", fix="give a table or data frame with target=, or a pair (X, y)."
            )
        if target not in frame.columns:
            raise UnknownColumnError(target, known=[str(name) for name in frame.columns])
        features, labels = frame.drop(columns=[target]), np.asarray(frame[target])
    if labels.ndim != 1 or len(labels) != len(features):
        raise ParameterError(
            f"The labels of the {what} are not one for each row.", fix="give as many labels as rows, in their order."
        )
    if _has_missing(labels):
        raise ParameterError(f"Some labels of the {what} are missing.", fix="drop these rows, or name their class.")
    return Labeled(features, labels)


def read_features(rows: Any, *, what: str) -> Any:
    """Return rows as an array or a data frame of pandas.

    Raises:
        ParameterError: if there are none, or values are missing.
        ParameterTypeError: if these are no rows.
    """
    if hasattr(rows, "to_pandas"):
        rows = rows.to_pandas()
    if not hasattr(rows, "iloc"):
        try:
            rows = np.asarray(rows)
        except ValueError:
            rows = np.empty(0)
        if rows.ndim != 2 or rows.dtype.kind not in "biufUO":
            raise ParameterTypeError(
                f"The {what} are not a table of rows and columns.",
                fix="give a two-dimensional array, a data frame, or a table opened with cl.open_table.",
            )
    if not len(rows) or not rows.shape[1]:
        raise ParameterError(f"There are no {what}.", fix="give at least a few rows with a column or more.")
    missing = rows.isna().to_numpy().any() if hasattr(rows, "isna") else _has_missing(rows)
    if missing:
        raise ParameterError(
            f"Some values of the {what} are missing.", fix="drop these rows or fill them in, as for the training."
        )
    return rows


def as_matrix(rows: Any, *, what: str) -> Floats:
    """Return rows as numbers, all of them finite."""
    try:
        found = np.asarray(read_features(rows, what=what), dtype=np.float64)
    except (TypeError, ValueError) as error:
        if isinstance(error, ParameterError | ParameterTypeError):
            raise
        raise ParameterTypeError(
            f"The {what} are not numbers.", fix="encode categories as numbers first, as the model was trained on."
        ) from None
    if not np.isfinite(found).all():
        raise ParameterError(f"Some values of the {what} are infinite.", fix="give finite numbers.")
    return found


def as_trained(model: Any, features: Any) -> Any:
    """Return rows as a model of scikit-learn was given them: with its names of columns, or without names."""
    names = getattr(model, "feature_names_in_", None)
    framed = hasattr(features, "iloc")
    if names is None:
        nameless = type(model).__module__.startswith("sklearn.") and hasattr(model, "n_features_in_")
        return features.to_numpy() if framed and nameless else features
    if framed or len(names) != features.shape[1]:
        return features
    import pandas as pd

    return pd.DataFrame(features, columns=list(names))


class Victim:
    """A model that can be asked; counts the answers that were seen.

    Args:
        model: the model.
        knows_all: whether a label that is none of its classes is refused; shadows may have missed a rare class.
    """

    def __init__(self, model: Any, *, knows_all: bool = True) -> None:
        if not hasattr(model, "predict_proba") and not hasattr(model, "predict"):
            raise ParameterTypeError(
                "The model can neither predict classes nor probabilities.",
                fix="give a fitted model with a method predict_proba or predict.",
            )
        self.model = model
        self.knows_all = knows_all
        self.queries = 0

    @property
    def is_confident(self) -> bool:
        """Return whether the model tells probabilities."""
        return hasattr(self.model, "predict_proba")

    def confidences(self, features: Any) -> Floats:
        """Return the probability of each class for each row."""
        if not self.is_confident:
            raise ParameterError(
                "The model does not tell probabilities.", fix='use an attack that needs labels only (kind="label").'
            )
        answers = np.asarray(self._asked("predict_proba", features), dtype=np.float64)
        if answers.ndim != 2 or len(answers) != len(features) or not np.isfinite(answers).all():
            raise ParameterError(
                "The model's probabilities are not a finite number for each row and class.",
                fix="let predict_proba return an array of shape (rows, classes).",
            )
        return answers

    def predictions(self, features: Any) -> NDArray[Any]:
        """Return what the model predicts for each row."""
        if not hasattr(self.model, "predict"):
            answers = self.confidences(features)
            return np.asarray(self.classes(answers.shape[1])[answers.argmax(axis=1)])
        return np.asarray(self._asked("predict", features))

    def classes(self, count: int) -> NDArray[Any]:
        """Return the classes in the order of the probabilities: 0, 1, ... where the model does not say."""
        found = np.asarray(getattr(self.model, "classes_", np.arange(count)))
        if found.shape != (count,):
            raise ParameterError(
                "The model has another number of classes than of probabilities.",
                fix="let classes_ name the columns of predict_proba.",
            )
        return found

    def positions(self, labels: NDArray[Any], count: int) -> Integers:
        """Return the column of each label's probability, -1 for a class that a shadow does not know.

        Raises:
            ParameterError: if a label is none of the model's classes.
        """
        classes = self.classes(count)
        equal = labels[:, None] == classes[None, :]
        known = equal.any(axis=1)
        if self.knows_all and not known.all():
            raise ParameterError(
                "Some labels are none of the model's classes.",
                fix="give labels as the model was trained on; without classes_ they are 0, 1, ...",
            )
        return np.where(known, equal.argmax(axis=1), -1)

    def _asked(self, method: str, features: Any) -> Any:
        self.queries += len(features)
        try:
            return getattr(self.model, method)(as_trained(self.model, features))
        except Exception as error:  # noqa: BLE001  # whatever a foreign model raises may quote rows
            raise ParameterError(
                f"The model refuses these rows with {type(error).__name__}.",
                fix="fit the model first, and give rows with the columns that it was trained on.",
            ) from None


def _rows_at(features: Any, positions: NDArray[Any]) -> Any:
    return features.iloc[positions] if hasattr(features, "iloc") else features[positions]


def _stack_rows(first: Any, second: Any) -> Any:
    framed = hasattr(first, "iloc")
    same = framed == hasattr(second, "iloc") and first.shape[1] == second.shape[1]
    if not same or (framed and list(first.columns) != list(second.columns)):
        raise ParameterError(
            "The rows that are compared have other columns.", fix="give both with the same columns in the same order."
        )
    if not framed:
        return np.concatenate([first, second])
    import pandas as pd

    return pd.concat([first, second], ignore_index=True)


def _has_missing(values: NDArray[Any]) -> bool:
    if values.dtype.kind == "f":
        return not bool(np.isfinite(values).all())
    if values.dtype.kind == "O":
        return any(item is None or item != item for item in values.ravel().tolist())  # noqa: PLR0124  # NaN
    return False


@dataclass(frozen=True, slots=True, eq=False)
class LinearLayer:
    """Scores that are linear in the features, one row of weights per class; a softmax makes probabilities of them."""

    weights: Floats
    biases: Floats

    def __repr__(self) -> str:
        return f"LinearLayer(classes={self.weights.shape[0]}, features={self.weights.shape[1]})"

    def scores(self, rows: Floats) -> Floats:
        """Return the score of each class."""
        return np.asarray(rows @ self.weights.T + self.biases)

    def probabilities(self, rows: Floats) -> Floats:
        """Return the probability of each class."""
        return np.asarray(special.softmax(self.scores(rows), axis=1))

    def gradients(self, rows: Floats, places: Integers) -> Floats:
        """Return how the logarithm of one class's probability changes with each feature, row by row."""
        return np.asarray(self.weights[places] - self.probabilities(rows) @ self.weights)


def linear_layer(model: Any, points: Floats) -> LinearLayer | None:
    """Return the layer of a fitted linear classifier; None if it says something else of some points.

    So it is after a scaler, or with classes that are each compared with the rest.
    """
    width = points.shape[1]
    weights = np.atleast_2d(np.asarray(getattr(model, "coef_", np.empty((0, 0))), dtype=np.float64))
    if not weights.size or weights.shape[1] != width or not hasattr(model, "predict_proba"):
        return None
    biases = np.broadcast_to(np.asarray(getattr(model, "intercept_", 0.0), dtype=np.float64), (len(weights),))
    if len(weights) == 1:
        # A model of two classes states the score of the second; that of the first is zero.
        weights, biases = np.concatenate([0 * weights, weights]), np.concatenate([0 * biases, biases])
    layer = LinearLayer(weights, np.asarray(biases))
    return layer if _agrees(layer, model, points) else None


def _agrees(layer: LinearLayer, model: Any, points: Floats) -> bool:
    try:
        answers = np.asarray(model.predict_proba(as_trained(model, points)), dtype=np.float64)
    except Exception:  # noqa: BLE001  # a model that takes other rows is no plain layer
        return False
    expected = layer.probabilities(points)
    return answers.shape == expected.shape and np.allclose(answers, expected, atol=1e-8)
