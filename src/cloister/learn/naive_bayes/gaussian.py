"""Gaussian naive Bayes from noisy counts, sums and sums of squares per class, all released together.

Vaidya, Shafiq, Basu and Hong (2013) put noise on each mean and variance, with scales that depend on the private number
of rows in the class and a sensitivity of the variance that is too small. Here every class releases its number of rows,
and for each feature the sum of values and of squares, both measured from the middle of the public bounds.

Privacy: claim (epsilon, delta)-DP for one row added or removed. A row is in one class. On the grid of 2**15 steps from
the middle of the bounds to an end it adds 2**15 to the count (in steps), at most 2**15 to each sum, and at most 2**14
to each sum of squares, which is counted from the middle of its range: 2**15 * (1 + 1.5 F) in L1, 2**30 * (1 + 1.25 F)
in squared L2, for F features. Everything else follows from the noisy numbers.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

import numpy as np

from cloister.core import validation
from cloister.core.random import RandomSource
from cloister.learn.base import Plan, estimators
from cloister.learn.naive_bayes.base import PrivateNaiveBayes
from cloister.learn.outlook import Outlook
from cloister.learn.reading import Facts
from cloister.learn.rows import Floats, Rows, exact_product, whole_steps
from cloister.mechanisms.allowance import Allowance, Step

__all__ = ["PrivateGaussianNB"]

_BITS = 15


@estimators.register("gaussian_nb")
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

    def _plan(self, facts: Facts, allowance: Allowance) -> Plan:
        validation.check_between(self.variance_floor, name="variance_floor", lowest=1e-12, highest=1)
        step, width = 2**_BITS, len(facts.encoding.names)
        noise = allowance.noise(
            Fraction(1),
            sensitivity=step + width * (step + step // 2),
            squared_sensitivity=step**2 + width * (step**2 + (step // 2) ** 2),
        )
        outlook = Outlook(
            rows=len(facts.target.classes or ()) * noise.deviation / step,
            what="the mean of a feature in a class",
            compared="half of its public range",
        )
        steps = (Step("counts, sums and squares of each class", noise.event),)
        return Plan(steps=steps, settings=noise, outlook=outlook)

    def _learn(self, facts: Facts, rows: Rows, plan: Plan, source: RandomSource) -> None:
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
    squares /= step
    np.rint(squares, out=squares)
    squares -= step // 2
    return moments
