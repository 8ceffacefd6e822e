"""What a linear or logistic model computes, written out, for attackers who hold its parameters."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import special

from cloister.attacks.confidence import Floats
from cloister.attacks.models.reading import Integers, as_trained

__all__ = ["LinearLayer", "linear_layer"]


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
