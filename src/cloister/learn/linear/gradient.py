"""Logistic regression by noisy full gradients, preconditioned with noisy second moments.

One share of the budget releases the second moments of the rows, X'X, and the rest a number of gradients fixed
beforehand. The loss curves at most by X'X/4 (Böhning 1992), and on average by X'X times the mean of p(1 - p), which is
estimated from noisy numbers as if logits were normal. Every gradient proposes the point where a parabola of that
curvature has its minimum; the model is a running average of the proposals, later ones weighing more, at which the next
gradient is taken. An average of proposals has less noise than the last one. Directions in which the second moments
drown in their noise are given the curvature of the noise, which keeps the model near zero there.

Privacy: claim (epsilon, delta)-DP for one row added or removed. Rows, residuals and hence gradients are whole numbers.
One row adds x * r to a gradient: at most squared_norm * squared_residual in squared L2, at whatever weights. It adds
the products of its entries to the second moments: at most `Design.squared_moment` in squared L2. Each release has
Gaussian noise for its share, and adaptive Gaussian releases compose as `Allowance` says. Everything else follows from
noisy numbers.
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
from cloister.learn.linear.design import UNIT, Design
from cloister.learn.linear.residuals import ONE, WeightGrid, binary_residuals, class_residuals, squared_residual
from cloister.learn.rows import Floats, Rows, exact_product
from cloister.mechanisms.allowance import Allowance, Step
from cloister.mechanisms.step_noise import GaussianSteps

__all__ = ["GradientPlan", "learn_by_gradients", "plan_gradients", "signal"]

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
    def steps(self) -> tuple[Step, ...]:
        """Return what is paid for."""
        events = tuple(noise.event for noise in self.gradients)
        return (
            Step("second moments of the features", self.moments.event),
            Step(f"{len(events)} gradients", SequenceEvent(events=events)),
        )


def signal(design: Design, allowance: Allowance, rows: int) -> float:
    """Return how many rows there are for each standard deviation of the noise, in length, of one release of them all.

    Below about 5 the noise decides the model; around 50 the larger effects are found, and from 500 most of them.
    """
    noise = math.sqrt(float(allowance.squared_multiplier) * design.squared_norm * design.width) / UNIT
    return rows / noise


def plan_gradients(
    design: Design, allowance: Allowance, *, classes: int, rows: int, most: int | None, penalty: float
) -> GradientPlan:
    """Return the releases of a fit.

    The number of gradients is the `signal` to the power of 0.65, between 6 and 48 or ``most``: with much noise, fewer
    and more exact ones are better. Their shares grow with the square root of their place. This rule and the other
    settings of this module were chosen on splits of the training file of Adult (26,000 rows to learn from), at epsilon
    0.1, 1 and 10, and on nothing else.
    """
    number = min(max(round(signal(design, allowance, rows) ** _GROWTH), _FEWEST), _MOST if most is None else most)
    weights = [math.isqrt(10_000 * place) for place in range(1, number + 1)]
    squared = design.squared_norm * squared_residual(classes)
    shares = [(1 - _MOMENTS_SHARE) * Fraction(weight, sum(weights)) for weight in weights]
    return GradientPlan(
        moments=allowance.gaussian(_MOMENTS_SHARE, squared_sensitivity=design.squared_moment),
        gradients=tuple(allowance.gaussian(share, squared_sensitivity=squared) for share in shares),
        penalty=penalty,
    )


def learn_by_gradients(
    design: Design, rows: Rows, plan: GradientPlan, source: RandomSource, *, classes: int, intercept: bool
) -> Floats:
    """Return weights for rows divided by ``UNIT``: one column for two classes, else one per class."""
    steps = design.rows(rows.features)
    noisy = plan.moments.add(design.moments(steps, rows.weights), source)
    curvature = _Curvature(design, design.symmetric(noisy), plan)
    weights = np.zeros((design.width, 1 if classes == 2 else classes))
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

    def __init__(self, design: Design, steps: Floats, rows: Rows, classes: int) -> None:
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

    def __init__(self, design: Design, moments: Floats, plan: GradientPlan) -> None:
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
