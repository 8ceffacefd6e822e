"""Gradient leakage: read training records from the gradients that a participant of federated learning sends.

For a linear layer with softmax, the gradient of one record x with label y is ``(p - y) x`` for the weights and
``p - y`` for the biases: dividing one by the other gives x, exactly, and the sign tells the label (Phong et al. 2018;
deep networks leak likewise, Zhu, Liu and Han 2019). The mean gradient of a batch gives weighted averages of its
records; a gradient that is clipped and gets noise, as in private training, gives next to nothing.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from cloister.anonymize.operations.noise import standard_normals
from cloister.attacks.details import AttackDetails, Row, count, fact
from cloister.attacks.models._victim import Integers, LinearLayer, Victim, as_matrix, linear_layer, read_labeled
from cloister.attacks.result import AttackResult
from cloister.core import validation
from cloister.core.confidence import Floats, binomial_interval
from cloister.core.exact import Number
from cloister.core.random import RandomSource, RandomState, permutation, random_source
from cloister.errors import ParameterError

__all__ = ["GradientLeakageDetails", "gradient_leakage"]

_ADVICE = (
    "add up gradients of many participants before anybody sees them (secure aggregation)",
    "clip each record's gradient and add noise: training with differential privacy",
    "send gradients of large batches only, which blurs records and hides none for certain",
)
_MOST_DECIBELS = 200.0


@dataclass(frozen=True, slots=True, kw_only=True)
class GradientLeakageDetails(AttackDetails):
    """Success is the share of records that are read nearer than the tolerance; the baseline guesses the average record.

    Attributes:
        batch: how many records share a gradient.
        clip: the largest norm of one record's gradient, if clipped.
        noise: the standard deviation of the noise, as a multiple of the clip.
        signal_to_noise: the median peak signal-to-noise ratio of what was read, in decibels: above 30 a person sees no
            difference, below 10 nearly nothing is left.
        signal_to_noise_of_guess: the same of the average record.
    """

    schema: ClassVar[str] = "cloister.gradient_leakage/1"

    batch: int = field(metadata=fact("records per gradient", count))
    clip: float | None
    noise: float
    signal_to_noise: float
    signal_to_noise_of_guess: float

    def remark(self, _: AttackResult, /) -> str:
        return (
            f" What was read has {self.signal_to_noise:.0f} dB (30 and more look like the original), "
            f"the average record {self.signal_to_noise_of_guess:.0f} dB."
        )

    def tell(self, _: AttackResult, /) -> Iterator[Row]:
        """Return how gradients were protected, and how well they were read."""
        protection = "none" if self.clip is None else f"clipped to {self.clip:g}, noise {self.noise:g} times that"
        ratio = f"{self.signal_to_noise:.1f} dB; average record {self.signal_to_noise_of_guess:.1f}"
        yield "protection of gradients", protection
        yield "peak signal to noise", ratio


def gradient_leakage(
    model: Any,
    records: Any,
    *,
    bounds: object,
    target: str | None = None,
    batch: int = 1,
    clip: object = None,
    noise: object = 0,
    tolerance: object = "0.05",
    trials: int = 100,
    confidence: Number = 0.95,
    random_state: RandomState = None,
) -> AttackResult[GradientLeakageDetails]:
    """Read records from the gradients of a logistic model, as whoever collects them in federated learning could.

    Args:
        model: a fitted logistic regression: what participants were sent.
        records: their data: a pair (features, labels), or a table with ``target``.
        bounds: public bounds (low, high) of all features.
        target: the column of labels, where a table is given.
        batch: how many records share a gradient.
        clip: the largest norm of one record's gradient; by default it is not clipped.
        noise: the standard deviation of noise on the sum of gradients, as a multiple of the clip.
        tolerance: the largest root mean square error that counts as reading a record, as a share of the bounds.
        trials: how many gradients are attacked.
        confidence: of the interval.
        random_state: None; an integer is for tests.

    Raises:
        ParameterError: if the model is no logistic regression, or there are fewer records than in a batch.
    """
    low, high = (float(end) for end in validation.check_bounds(bounds))
    size = validation.check_count(batch, name="batch", at_least=1)
    limit = None if clip is None else float(validation.check_positive(clip, name="clip"))
    scale = float(validation.check_non_negative(noise, name="noise"))
    near = float(validation.check_positive(tolerance, name="tolerance"))
    level = float(validation.check_confidence(confidence))
    number = validation.check_count(trials, name="trials", at_least=1)
    if scale and limit is None:
        raise ParameterError("Noise is stated as a multiple of the clip.", fix="give clip=1.0 with noise.")
    rows = read_labeled(records, target=target, what="records")
    features, victim = as_matrix(rows.features, what="records"), Victim(model)
    layer = linear_layer(model, np.clip(features[:8], low, high))
    if layer is None:
        raise ParameterError(
            "The model is no plain logistic regression.", fix="give a fitted LogisticRegression without a pipeline."
        )
    if len(features) < size:
        raise ParameterError("There are fewer records than in a batch.", fix=f"use batch={len(features)} or less.")
    source, places = random_source(random_state), victim.positions(rows.labels, len(layer.biases))
    average = np.full(features.shape[1], (low + high) / 2)
    errors, guesses = [], []
    for _ in range(number):
        chosen = permutation(source, len(features))[:size]
        weights, biases = _gradient(layer, features[chosen], places[chosen], clip=limit, noise=scale, source=source)
        read = np.clip(_read(weights, biases, average), low, high)
        errors.append(_distances(features[chosen], read))
        guesses.append(_distances(features[chosen], average[None, :]))
    found, guessed = np.concatenate(errors) / (high - low), np.concatenate(guesses) / (high - low)
    hits = int((found < near).sum())
    return AttackResult(
        attack="gradient leakage",
        assumption="knows the model and sees the gradient that a participant sends",
        success=hits / len(found),
        baseline=float((guessed < near).mean()),
        interval=binomial_interval(hits, len(found), confidence=level),
        confidence=level,
        trials=len(found),
        queries=number,
        mitigation=_ADVICE,
        details=GradientLeakageDetails(
            batch=size,
            clip=limit,
            noise=scale,
            signal_to_noise=_decibels(found),
            signal_to_noise_of_guess=_decibels(guessed),
        ),
    )


def _gradient(
    layer: LinearLayer, rows: Floats, places: Integers, *, clip: float | None, noise: float, source: RandomSource
) -> tuple[Floats, Floats]:
    """Return the mean gradient of the loss over some records, as a participant sends it."""
    errors = layer.probabilities(rows) - np.eye(len(layer.biases))[places]
    if clip is not None:
        # A gradient is the outer product of the errors and the row with its constant, so that its norm is the
        # product of theirs.
        norms = np.linalg.norm(errors, axis=1) * np.sqrt(1 + (rows**2).sum(axis=1))
        errors = errors * np.minimum(1.0, clip / np.maximum(norms, 1e-300))[:, None]
    weights, biases = errors.T @ rows, errors.sum(axis=0)
    if noise and clip is not None:
        weights = weights + noise * clip * standard_normals(source, weights.size).reshape(weights.shape)
        biases = biases + noise * clip * standard_normals(source, biases.size)
    return weights / len(rows), biases / len(rows)


def _read(weights: Floats, biases: Floats, average: Floats) -> Floats:
    """Return a record for each class: its weights' gradient divided by that of its bias."""
    useful = np.abs(biases) > 1e-12
    read = np.where(useful[:, None], weights / np.where(useful, biases, 1.0)[:, None], average)
    return np.asarray(read)


def _distances(rows: Floats, candidates: Floats) -> Floats:
    """Return for each record how far the nearest candidate is, as a root mean square over features."""
    squares = ((rows[:, None, :] - candidates[None, :, :]) ** 2).mean(axis=2)
    return np.asarray(np.sqrt(squares.min(axis=1)))


def _decibels(errors: Floats) -> float:
    middle = float(np.median(errors))
    return _MOST_DECIBELS if middle < 10 ** (-_MOST_DECIBELS / 20) else -20 * math.log10(middle)
