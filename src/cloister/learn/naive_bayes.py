"""Naive Bayes from noisy counts of values, or from noisy moments, in each class.

Scores are logarithms of probabilities, up to a constant. All that a model learns is released together.

**Discrete features** (`PrivateCategoricalNB`): noisy counts of each value in each class. Mothali (thesis, chapter 8)
puts Laplace noise on the counts and corrects the clipped noisy counts before classifying. The corrections work on the
released numbers only and cost nothing:

- ``"none"`` (or ``"ml"``): counts are clipped at 0, nothing else.
- ``"empirical_bayes"``: each count moves by ``variance p / total`` towards zero, for p counts; see
  `core.postprocessing`.
- ``"empirical_bayes_exact"``: the posterior mean that the former is the first order of.
- ``"james_stein"``: all counts times one factor. Probabilities are ratios of counts, which one factor does not change:
  the stated counts get better, the predictions are exactly those of ``"none"``.

The number of rows of a class is never asked for by itself: it is the mean of what the features' counts add up to.

Privacy of counts: claim (epsilon, delta)-DP for one row added or removed. A row is in one class and has at most one
declared value or bin of each of the F features, so that it changes at most F counts by 1: F in L1, F in squared L2.
Noise of scale 1 / epsilon on each count, as some textbooks have it, would cost F times epsilon. A missing or undeclared
value is in no count. With a delta, the noise is Laplace or Gaussian, whichever is smaller, which public numbers decide.
Everything else follows from the noisy counts.

**Normal features** (`PrivateGaussianNB`): noisy counts, sums and sums of squares per class. Vaidya, Shafiq, Basu and
Hong (2013) put noise on each mean and variance, with scales that depend on the private number of rows in the class and
a sensitivity of the variance that is too small. Here every class releases its number of rows, and for each feature the
sum of values and of squares, both measured from the middle of the public bounds.

Privacy of moments: claim (epsilon, delta)-DP for one row added or removed. A row is in one class. On the grid of 2**15
steps from the middle of the bounds to an end it adds 2**15 to the count (in steps), at most 2**15 to each sum, and at
most 2**14 to each sum of squares, which is counted from the middle of its range: 2**15 * (1 + 1.5 F) in L1,
2**30 * (1 + 1.25 F) in squared L2, for F features. Everything else follows from the noisy numbers.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from cloister.core import postprocessing, validation
from cloister.core.random import RandomSource
from cloister.core.whole_rows import Floats, exact_product, whole_steps
from cloister.errors import ParameterError
from cloister.learn._outlook import FitOutlook
from cloister.learn._public_facts import PublicFacts
from cloister.learn._rows import Pairs, WeightedRows
from cloister.learn.base import PrivateClassifier, TrainingPlan
from cloister.mechanisms.calibration import FitStep, NoiseCalibration, StepNoise
from cloister.mechanisms.step_noise import LaplaceSteps

__all__ = [
    "PrivateCategoricalNB",
    "PrivateGaussianNB",
    "PrivateNaiveBayes",
    "class_counts",
    "correct_counts",
    "log_probabilities",
    "shares",
]


@dataclass(kw_only=True, eq=False, repr=False)
class PrivateNaiveBayes(PrivateClassifier):
    """The base of naive Bayes models."""

    def predict_log_proba(self, X: Any) -> Floats:
        """Return the logarithm of the probability of each class, for each row; costs nothing."""
        from scipy.special import logsumexp

        scores = self._scores(self._encoded(X))
        return np.asarray(scores - logsumexp(scores, axis=1, keepdims=True))

    def predict_proba(self, X: Any) -> Floats:
        """Return the probability of each class, for each row; costs nothing."""
        return np.exp(self.predict_log_proba(X))


CORRECTIONS = ("none", "ml", "empirical_bayes", "empirical_bayes_exact", "james_stein")

_TINY = 1e-300
"""A probability of zero, where the smoothing is 0: less likely than anything else, and still comparable."""


@dataclass(kw_only=True, eq=False, repr=False)
class PrivateCategoricalNB(PrivateNaiveBayes):
    """Naive Bayes with discrete features, and numbers in public bins.

    Args:
        correction: what is done to the noisy counts: "empirical_bayes", "empirical_bayes_exact", "none" or
            "james_stein"; see the module.
        alpha: how much is added to each corrected count; public.
        bins: how numbers are cut: into so many bins of equal width between their bounds, or at the edges given, for
            each column in order or as {column: number or edges}. Edges need no bounds besides.

    Attributes:
        released_counts_: the noisy counts, one row per class, the values of all features side by side.
        category_count_: the corrected counts of each feature, classes by values.
        class_count_: the estimated number of rows of each class.
        class_prior_: the share of each class.
        feature_log_prob_: for each feature, the logarithm of the probability of each value in each class.

    >>> X = [["red", 1.0], ["red", 2.0], ["blue", 8.0], ["blue", 9.0]] * 50
    >>> y = ["low", "low", "high", "high"] * 50
    >>> model = PrivateCategoricalNB(
    ...     epsilon=5, domain={"x0": ["red", "blue"]}, bounds={"x1": (0, 10)}, bins=5, classes=["low", "high"]
    ... )
    >>> model.fit(np.array(X, dtype=object), y).predict(np.array([["red", 1.5], ["blue", 8.5]], dtype=object)).tolist()
    ['low', 'high']
    """

    encodes: ClassVar[str] = "codes"
    needs: ClassVar[str] = "pairs"
    learned: ClassVar[tuple[str, ...]] = (
        "released_counts_",
        "corrected_counts_",
        "class_count_",
        "class_prior_",
        "log_probabilities_",
    )

    correction: str = "empirical_bayes"
    alpha: float = 1.0
    bins: Any = 10

    def _plan(self, facts: PublicFacts, calibration: NoiseCalibration) -> TrainingPlan:
        if self.correction not in CORRECTIONS:
            raise ParameterError("There is no such correction.", fix=f"use one of {', '.join(map(repr, CORRECTIONS))}.")
        validation.check_between(self.alpha, name="alpha", lowest=0, highest=1e12)
        noise = _least_noise(calibration, len(facts.encoding.features))
        outlook = FitOutlook(
            rows=len(facts.target.classes or ()) * noise.deviation,
            what="the count of a value in a class",
            compared="all rows of an average class",
        )
        return TrainingPlan(
            steps=(FitStep("counts of each value in each class", noise.event),), settings=noise, outlook=outlook
        )

    def _learn(self, facts: PublicFacts, rows: Pairs, plan: TrainingPlan, source: RandomSource) -> None:
        noisy = plan.settings.add(np.concatenate(rows.tables, axis=1), source)
        sizes, kept = facts.encoding.sizes, noisy.astype(np.float64)
        self.released_counts_ = noisy
        self.corrected_counts_ = correct_counts(kept, plan.settings, self.correction)
        # One factor for all counts must not change what follows, nor its rounding.
        counts = (
            correct_counts(kept, plan.settings, "none") if self.correction == "james_stein" else self.corrected_counts_
        )
        self.class_count_ = class_counts(self.corrected_counts_, sizes)
        self.class_prior_ = shares(class_counts(counts, sizes))
        self.log_probabilities_ = log_probabilities(counts, sizes, alpha=float(self.alpha))

    @property
    def category_count_(self) -> list[Floats]:
        """Return the corrected counts of each feature, classes by values."""
        return self._by_feature(self.corrected_counts_)

    @property
    def feature_log_prob_(self) -> list[Floats]:
        """Return, for each feature, the logarithm of the probability of each value in each class."""
        return self._by_feature(self.log_probabilities_)

    def _by_feature(self, cells: Floats) -> list[Floats]:
        return np.split(cells, np.cumsum(self.encoding_.sizes)[:-1], axis=1)

    def _scores(self, features: Floats) -> Floats:
        codes = features.astype(np.int64)
        scores = np.tile(np.log(np.maximum(self.class_prior_, _TINY)), (len(codes), 1))
        for place, logarithms in enumerate(self.feature_log_prob_):
            size = logarithms.shape[1]
            # What was not declared tells nothing of the class: it is as likely in all of them.
            unknown = np.full((len(self.classes_), 1), -np.log(size))
            scores += np.concatenate([logarithms, unknown], axis=1).T[codes[:, place]]
        return scores


def _least_noise(calibration: NoiseCalibration, features: int) -> StepNoise:
    """Return the smaller noise that the whole budget buys for counts of which a row changes one per feature."""
    laplace = calibration.laplace(Fraction(1), sensitivity=features)
    if calibration.is_pure:
        return laplace
    gaussian = calibration.gaussian(Fraction(1), squared_sensitivity=features)
    return laplace if laplace.deviation <= gaussian.deviation else gaussian


# What is made of noisy counts; other axes before the last two are other models ---------------------------------------


def correct_counts(noisy: Floats, noise: StepNoise, correction: str) -> Floats:
    """Return noisy counts clipped at 0 and corrected: classes by values, in the last two axes."""
    clipped = np.maximum(noisy, 0.0)
    flat = clipped.reshape(*noisy.shape[:-2], -1)
    match correction:
        case "empirical_bayes":
            flat = postprocessing.empirical_bayes(flat, variance=noise.deviation**2)
        case "empirical_bayes_exact":
            prior = postprocessing.prior_rate(flat)
            if isinstance(noise, LaplaceSteps):
                flat = postprocessing.laplace_posterior_mean(flat, scale=float(noise.scale), prior=prior)
            else:
                flat = postprocessing.normal_posterior_mean(flat, deviation=noise.deviation, prior=prior)
        case "james_stein":
            flat = postprocessing.james_stein(flat, variance=noise.deviation**2)
    return flat.reshape(noisy.shape)


def class_counts(counts: Floats, sizes: tuple[int, ...]) -> Floats:
    """Return the number of rows of each class: the mean of what the counts of each feature add up to."""
    return np.asarray(np.add.reduceat(counts, _starts(sizes), axis=-1).mean(axis=-1))


def shares(counts: Floats) -> Floats:
    """Return counts as shares of their sum; equal shares of nothing."""
    total = counts.sum(axis=-1, keepdims=True)
    return np.where(total > 0, counts / np.where(total > 0, total, 1.0), 1 / counts.shape[-1])


def log_probabilities(counts: Floats, sizes: tuple[int, ...], *, alpha: float) -> Floats:
    """Return the logarithm of the share of each value among those of its feature and class, smoothed by alpha."""
    smoothed = counts + alpha
    totals = np.add.reduceat(smoothed, _starts(sizes), axis=-1)
    # Without smoothing a feature may have no counts at all in a class, which makes all of its values alike.
    empty = totals <= 0
    smoothed = smoothed + np.repeat(empty, sizes, axis=-1)
    totals = np.where(empty, np.array(sizes), totals)
    return np.asarray(np.log(np.maximum(smoothed / np.repeat(totals, sizes, axis=-1), _TINY)))


def _starts(sizes: tuple[int, ...]) -> NDArray[np.int64]:
    return np.cumsum([0, *sizes[:-1]])


_BITS = 15


@dataclass(kw_only=True, eq=False, repr=False)
class PrivateGaussianNB(PrivateNaiveBayes):
    """Naive Bayes with normally distributed features.

    Args:
        variance_floor: the smallest variance, as a share of the square of half the range of a feature; public, and
            from 1e-12 to 1.

    Attributes:
        class_count_: the noisy number of rows of each class.
        class_prior_: the share of each class.
        theta_: the mean of each feature in each class.
        var_: the variance of each feature in each class.

    >>> X, y = [[1.0], [2.0], [8.0], [9.0]] * 50, ["low", "low", "high", "high"] * 50
    >>> model = PrivateGaussianNB(epsilon=5, bounds=(0, 10), classes=["low", "high"]).fit(X, y)
    >>> model.predict([[1.5], [8.5]]).tolist()
    ['low', 'high']
    """

    learned: ClassVar[tuple[str, ...]] = ("class_count_", "class_prior_", "theta_", "var_")

    variance_floor: float = 1e-3

    def _plan(self, facts: PublicFacts, calibration: NoiseCalibration) -> TrainingPlan:
        validation.check_between(self.variance_floor, name="variance_floor", lowest=1e-12, highest=1)
        step, width = 2**_BITS, len(facts.encoding.names)
        noise = calibration.noise(
            Fraction(1),
            sensitivity=step + width * (step + step // 2),
            squared_sensitivity=step**2 + width * (step**2 + (step // 2) ** 2),
        )
        outlook = FitOutlook(
            rows=len(facts.target.classes or ()) * noise.deviation / step,
            what="the mean of a feature in a class",
            compared="half of its public range",
        )
        steps = (FitStep("counts, sums and squares of each class", noise.event),)
        return TrainingPlan(steps=steps, settings=noise, outlook=outlook)

    def _learn(self, facts: PublicFacts, rows: WeightedRows, plan: TrainingPlan, source: RandomSource) -> None:
        classes, step = len(self.classes_), 2**_BITS
        lows, highs = facts.encoding.bounds
        moments = _moments(whole_steps(rows.features, lows=lows, highs=highs, bits=_BITS))
        indicators = (np.arange(classes)[:, None] == rows.target).astype(np.float64).T
        exactly = exact_product(indicators, moments, rows.weights, most=step)
        noisy = plan.settings.add(exactly, source).astype(np.float64) / step
        self._set_moments(noisy, (lows + highs) / 2, (highs - lows) / 2)

    def _set_moments(self, noisy: Floats, middle: Floats, half: Floats) -> None:
        """Set means and variances from noisy counts, sums and squares, in units of half the range."""
        counts = np.maximum(noisy[:, :1], 1.0)
        width = len(middle)
        means = np.clip(noisy[:, 1 : width + 1] / counts, -1.0, 1.0)
        # Squares were measured from the middle of their range, which comes back here.
        variances = np.clip(noisy[:, width + 1 :] / counts + 0.5 - means**2, float(self.variance_floor), 1.0)
        self.class_count_ = noisy[:, 0]
        self.class_prior_ = (counts / counts.sum())[:, 0]
        self.theta_ = middle + means * half
        self.var_ = variances * half**2

    def _scores(self, features: Floats) -> Floats:
        lows, highs = self.encoding_.bounds
        inside = np.clip(features, lows, highs)
        squared = ((inside[:, None, :] - self.theta_) ** 2 / self.var_).sum(axis=2)
        return np.asarray(np.log(self.class_prior_) - 0.5 * (squared + np.log(2 * np.pi * self.var_).sum(axis=1)))


def _moments(steps: Floats) -> Floats:
    """Return what each row adds to its class: one, its values, and their squares from the middle of their range."""
    step, width = 2**_BITS, steps.shape[1]
    moments = np.empty((len(steps), 1 + 2 * width), order="F")
    moments[:, 0] = step
    moments[:, 1 : width + 1] = steps
    squares = np.multiply(steps, steps, out=moments[:, width + 1 :])
    # Every square is rounded by itself to whole steps, so that sums of them stay exact.
    squares /= step
    np.rint(squares, out=squares)
    squares -= step // 2
    return moments
