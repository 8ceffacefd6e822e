"""Logistic regression by noisy full gradients, preconditioned with noisy second moments.

One share of the budget releases the second moments of the rows, X'X, and the rest a number of gradients fixed
beforehand. The loss curves at most by X'X/4 (Böhning 1992), and on average by X'X times the mean of p(1 - p), which is
estimated from noisy numbers as if logits were normal. Every gradient proposes the point where a parabola of that
curvature has its minimum; the model is a running average of the proposals, later ones weighing more, at which the next
gradient is taken. An average of proposals has less noise than the last one. Directions in which the second moments
drown in their noise are given the curvature of the noise, which keeps the model near zero there.

Residuals are whole numbers, each a function of its own row and the weights alone. Weights are rounded to a grid, so
that the logit of a row of whole steps is a whole number, computed without rounding in 64-bit floats and in any order.
The logistic function is a table over a grid of logits; the softmax is made of a table of exponentials, of sums of whole
numbers and of single divisions, which IEEE 754 fixes to the last bit. So a row has the same residual wherever it stands
and whatever the other rows are, which `numpy.exp` does not promise.

Privacy: claim (epsilon, delta)-DP for one row added or removed. Rows, residuals and hence gradients are whole numbers.
One row adds x * r to a gradient: at most squared_norm * squared_residual in squared L2, at whatever weights. It adds
the products of its entries to the second moments: at most `LinearDesign.squared_moment` in squared L2. Each release has
Gaussian noise for its share, and adaptive Gaussian releases compose as `NoiseCalibration` says. Everything else follows
from noisy numbers.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from cloister.accounting.events import SequenceEvent
from cloister.core.random import RandomSource
from cloister.core.whole_rows import Floats, exact_product
from cloister.learn._rows import WeightedRows
from cloister.learn.linear._design import BITS, UNIT, LinearDesign
from cloister.mechanisms.calibration import FitStep, NoiseCalibration
from cloister.mechanisms.step_noise import GaussianSteps

__all__ = [
    "ONE",
    "GradientPlan",
    "WeightGrid",
    "binary_residuals",
    "class_residuals",
    "learn_by_gradients",
    "plan_gradients",
    "signal",
    "squared_residual",
]


ONE: int = 2**12
"""How many steps a probability of one has."""

_LARGEST_WEIGHT_BITS = 10
_LOGIT_BITS = 11
_LARGEST_LOGIT = 16 * 2**_LOGIT_BITS
_MASS = 2.0**30


class WeightGrid:
    """Weights on a grid that is fine, and coarse enough for exact logits.

    Args:
        width: how many columns rows have.
    """

    def __init__(self, width: int) -> None:
        # Bits of steps, of weights and of the number of columns together fit a float: sums over columns are
        # exact in any order.
        spare = 52 - BITS - _LARGEST_WEIGHT_BITS - width.bit_length()
        self._bits = min(20, spare)

    def whole(self, weights: Floats) -> Floats:
        """Return weights as whole numbers of grid steps, the largest cut."""
        largest = 2.0**_LARGEST_WEIGHT_BITS
        return np.rint(np.clip(weights, -largest, largest) * 2.0**self._bits)

    def logits(self, steps: Floats, whole: Floats) -> NDArray[np.int64]:
        """Return the logits of rows as places on the grid of logits, from -16 to 16."""
        # The product is exact, and what follows is rounded for each number by itself.
        exactly = steps @ whole
        places = exactly * 2.0 ** (_LOGIT_BITS - BITS - self._bits)
        return np.rint(np.clip(places, -_LARGEST_LOGIT, _LARGEST_LOGIT)).astype(np.int64)


def squared_residual(classes: int) -> int:
    """Return a bound of the sum of squared residuals of one row.

    With two classes there is one residual, at most ``ONE``. With more, those of the other classes add up to that of the
    row's own class, q * ONE with q <= 1, and rounding moves each by a half: 2 * ONE**2 + 2 * ONE + classes / 4 at most.
    """
    return ONE**2 if classes == 2 else 2 * ONE**2 + 2 * ONE + classes


@lru_cache(maxsize=1)
def _probabilities() -> Floats:
    places = np.arange(-_LARGEST_LOGIT, _LARGEST_LOGIT + 1) / 2**_LOGIT_BITS
    return np.asarray(np.rint(ONE / (1.0 + np.exp(-places))))


@lru_cache(maxsize=1)
def _exponentials() -> Floats:
    return np.asarray(np.rint(_MASS * np.exp(-np.arange(2 * _LARGEST_LOGIT + 1) / 2**_LOGIT_BITS)))


def binary_residuals(logits: NDArray[np.int64], target: NDArray[np.int64]) -> Floats:
    """Return probability less truth in steps, one column, for logits of the second class."""
    return np.asarray(_probabilities()[logits + _LARGEST_LOGIT] - ONE * target[:, None])


def class_residuals(logits: NDArray[np.int64], target: NDArray[np.int64]) -> Floats:
    """Return probability less truth in steps, one column per class."""
    # Gaps from the largest logit are never negative, so that they are places in the table.
    masses = _exponentials()[logits.max(axis=1, keepdims=True) - logits]
    shares = masses / masses.sum(axis=1, keepdims=True)
    return np.asarray(np.rint(shares * ONE) - ONE * (target[:, None] == np.arange(logits.shape[1])))


_MOMENTS_SHARE = Fraction(3, 20)
_GROWTH = 0.65
_FEWEST, _MOST = 6, 48
_FLOOR = 2.0
_LEAST_CURVATURE = 0.05


@dataclass(frozen=True, slots=True, kw_only=True)
class GradientPlan:
    """The noise of the second moments and of each gradient, and a penalty."""

    moments: GaussianSteps
    gradients: tuple[GaussianSteps, ...]
    penalty: float

    @property
    def steps(self) -> tuple[FitStep, ...]:
        """Return what is paid for."""
        events = tuple(noise.event for noise in self.gradients)
        return (
            FitStep("second moments of the features", self.moments.event),
            FitStep(f"{len(events)} gradients", SequenceEvent(events=events)),
        )


def signal(design: LinearDesign, calibration: NoiseCalibration, rows: int) -> float:
    """Return how many rows there are for each standard deviation of the noise, in length, of one release of them all.

    Below about 5 the noise decides the model; around 50 the larger effects are found, and from 500 most of them.
    """
    noise = math.sqrt(float(calibration.squared_multiplier) * design.squared_norm * design.width) / UNIT
    return rows / noise


def plan_gradients(
    design: LinearDesign, calibration: NoiseCalibration, *, classes: int, rows: int, most: int | None, penalty: float
) -> GradientPlan:
    """Return the releases of a fit.

    The number of gradients is the `signal` to the power of 0.65, between 6 and 48 or ``most``: with much noise, fewer
    and more exact ones are better. Their shares grow with the square root of their place. This rule and the other
    settings of this module were chosen on splits of the training file of Adult (26,000 rows to learn from), at epsilon
    0.1, 1 and 10, and on nothing else.
    """
    number = min(max(round(signal(design, calibration, rows) ** _GROWTH), _FEWEST), _MOST if most is None else most)
    # Whole weights make shares that add up to exactly what the moments leave.
    weights = [math.isqrt(10_000 * place) for place in range(1, number + 1)]
    squared = design.squared_norm * squared_residual(classes)
    shares = [(1 - _MOMENTS_SHARE) * Fraction(weight, sum(weights)) for weight in weights]
    return GradientPlan(
        moments=calibration.gaussian(_MOMENTS_SHARE, squared_sensitivity=design.squared_moment),
        gradients=tuple(calibration.gaussian(share, squared_sensitivity=squared) for share in shares),
        penalty=penalty,
    )


def learn_by_gradients(
    design: LinearDesign, rows: WeightedRows, plan: GradientPlan, source: RandomSource, *, classes: int, intercept: bool
) -> Floats:
    """Return weights for rows divided by ``UNIT``: one column for two classes, else one per class."""
    steps = design.rows(rows.features)
    noisy = plan.moments.add(design.moments(steps, rows.weights), source)
    curvature = _Curvature(design, design.symmetric(noisy), plan)
    weights = np.zeros((design.width, 1 if classes == 2 else classes))
    # The constant column is there without an intercept as well, since it carries the noisy number of rows.
    allowed = np.ones((design.width, 1))
    allowed[-1] = float(intercept)
    gradients = _Gradients(design, steps, rows, classes)
    momentum = min(max(len(plan.gradients) / 8, 1.5), 4.0)
    for place, noise in enumerate(plan.gradients, start=1):
        gradient = gradients.at(weights, noise, source) + plan.penalty * weights
        proposal = weights - allowed * curvature.solve(gradient, weights)
        weight = min(1.0, (1 + momentum) / place)
        weights = (1 - weight) * weights + weight * proposal
    return weights


class _Gradients:
    """Noisy gradients of the sum of losses, for rows divided by ``UNIT``."""

    def __init__(self, design: LinearDesign, steps: Floats, rows: WeightedRows, classes: int) -> None:
        self._grid = WeightGrid(design.width)
        self._steps, self._weights, self._target = steps, rows.weights, np.asarray(rows.target)
        self._residuals = binary_residuals if classes == 2 else class_residuals

    def exactly(self, weights: Floats) -> NDArray[np.int64]:
        logits = self._grid.logits(self._steps, self._grid.whole(weights))
        residuals = self._residuals(logits, self._target)
        return exact_product(self._steps, residuals, self._weights, most=UNIT * ONE)

    def at(self, weights: Floats, noise: GaussianSteps, source: RandomSource) -> Floats:
        return noise.add(self.exactly(weights), source).astype(np.float64) / (UNIT * ONE)


class _Curvature:
    """How the loss curves, from noisy second moments."""

    def __init__(self, design: LinearDesign, moments: Floats, plan: GradientPlan) -> None:
        deviation = plan.moments.deviation / UNIT**2
        values, self._vectors = np.linalg.eigh(moments)
        self._values = np.maximum(values, _FLOOR * deviation * math.sqrt(design.width))
        self._moments = (self._vectors * self._values) @ self._vectors.T
        self._penalty = plan.penalty
        share = design.constant / UNIT
        self._rows = max(moments[-1, -1] / share**2, 1.0)
        self._means = self._moments[-1] / share / self._rows

    def solve(self, gradient: Floats, weights: Floats) -> Floats:
        """Return how far to go against a gradient at some weights."""
        values = self._factor(weights) * self._values + self._penalty
        return np.asarray(self._vectors @ ((self._vectors.T @ gradient) / values[:, None]))

    def _factor(self, weights: Floats) -> float:
        """Return the mean of p(1 - p) over normal logits; with several classes, twice that of the worst of them.

        diag(p) - p p' is at most twice the diagonal matrix of p(1 - p), and at most one half.
        """
        means = self._means @ weights
        variances = np.maximum((weights * (self._moments @ weights)).sum(axis=0) / self._rows - means**2, 0.0)
        if weights.shape[1] == 1:
            return max(_mean_slope(means[0], variances[0]), _LEAST_CURVATURE)
        slopes = [_mean_slope(means[place] - others, variances[place]) for place, others in enumerate(_others(means))]
        return min(max(2 * max(slopes), _LEAST_CURVATURE), 0.5)


def _others(means: Floats) -> Iterator[float]:
    for place in range(len(means)):
        rest = np.delete(means, place)
        yield float(np.log(np.exp(rest - rest.max()).sum()) + rest.max())


def _mean_slope(mean: float, variance: float) -> float:
    """Return the mean of p(1 - p) for a normal logit."""
    places, weights = _normal_places()
    p = 1.0 / (1.0 + np.exp(-np.clip(mean + math.sqrt(variance) * places, -30.0, 30.0)))
    return float((weights * p * (1 - p)).sum())


@lru_cache(maxsize=1)
def _normal_places() -> tuple[Floats, Floats]:
    """Return places and weights that integrate over a normal law."""
    places, weights = np.polynomial.hermite_e.hermegauss(21)
    return places, weights / weights.sum()
