"""Linear regression from noisy second moments.

*ridge* releases X'X and X'y with Gaussian noise, accounted together, and solves for the weights; directions of X'X
that drown in its noise are given the size of the noise, which keeps the weights near zero there. *functional* is the
same with Laplace noise and no delta: it perturbs the coefficients of the squared loss (Zhang et al. 2012; their bound
of the sensitivity is larger). *adassp* is that of Wang (2018), which also releases the smallest eigenvalue and adds
just the ridge that is missing, with the constants of the paper; they are far from tight, and *ridge* is better.

Privacy: claim (epsilon, delta)-DP for one row added or removed. Rows and targets are whole numbers; a row adds the
products of its entries to X'X, bounded by `LinearDesign.squared_moment` in squared L2 and `LinearDesign.moment` in L1,
and its entries times its target, of at most UNIT steps, to X'y: UNIT**2 * squared_norm in squared L2, UNIT * norm in
L1. The smallest eigenvalue grows by at most the squared norm of the row (Weyl); it is computed in floats, whose error
is below a 64th of that for tables of up to 10**9 rows and 1000 columns, so 1 + 1/32 times that is the sensitivity. The
noise of *adassp* is at least sqrt(ln(6/delta)) / (epsilon/3) times each sensitivity, as in the paper, and never less
than a third of the budget buys when Gaussian releases are accounted together.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np

from cloister.core import exact
from cloister.core.random import RandomSource
from cloister.core.validation import check_choice, check_count, check_non_negative
from cloister.core.whole_rows import Floats, exact_product, whole_steps
from cloister.errors import ParameterError
from cloister.learn._outlook import FitOutlook
from cloister.learn._public_facts import PublicFacts
from cloister.learn._rows import WeightedRows
from cloister.learn.base import PrivateRegressor, TrainingPlan
from cloister.learn.linear._design import BITS, UNIT, LinearDesign
from cloister.mechanisms.calibration import FitStep, NoiseCalibration, StepNoise
from cloister.mechanisms.step_noise import GaussianSteps

__all__ = ["PrivateLinearRegression"]

_METHODS = ("auto", "ridge", "functional", "adassp")
_FLOOR = 1.5
_FAILURE = 0.05


@dataclass(frozen=True, slots=True, kw_only=True)
class _Releases:
    """The noise of X'X, of X'y, and of the smallest eigenvalue where it is released."""

    design: LinearDesign
    moments: StepNoise
    products: StepNoise
    eigenvalue: GaussianSteps | None = None
    caution: float = 0.0
    """by how many standard deviations the smallest eigenvalue is taken to be less than its noisy value"""


@dataclass(kw_only=True, eq=False, repr=False)
class PrivateLinearRegression(PrivateRegressor):
    """Linear regression with as much ridge as the noise calls for.

    Args:
        method: "ridge" (needs a delta), "functional" (for none), "adassp" (needs a delta), or "auto": "ridge" with a
            delta, else "functional".
        data_norm: a public bound of the Euclidean norm of rows of encoded features in their own units; longer rows are
            shrunk. By default each number is scaled to [-1, 1] by its bounds.
        regularization: the weight of half the squared norm of the weights of the scaled features, besides what the
            noise calls for; in "adassp" and "ridge" alike. The intercept is not penalized in "adassp".
        fit_intercept: whether there is an intercept.
        expected_rows: about how many rows there are, as far as is public; used for a warning only.

    Attributes:
        coef_: the weights of encoded features, in their own units.
        intercept_: the intercept.
        method_: the method that was used.

    >>> X, y = [[0.0], [2.0], [5.0], [10.0]] * 500, [1.0, 5.0, 11.0, 21.0] * 500
    >>> model = PrivateLinearRegression(epsilon=5, delta=1e-6, bounds=(0, 10), target_bounds=(0, 25)).fit(X, y)
    >>> bool(abs(model.predict([[4.0]])[0] - 9) < 1)
    True
    """

    learned: ClassVar[tuple[str, ...]] = ("coef_", "intercept_", "method_")

    method: str = "auto"
    data_norm: Any = None
    regularization: Any = 0.0
    fit_intercept: bool = True
    expected_rows: int | None = None

    def _plan(self, facts: PublicFacts, calibration: NoiseCalibration) -> TrainingPlan:
        method = self._method(calibration)
        if self.expected_rows is not None:
            check_count(self.expected_rows, name="expected_rows", at_least=1)
        check_non_negative(self.regularization, name="regularization")
        design = LinearDesign.of(
            facts.encoding,
            constant=UNIT if self.fit_intercept else 0,
            data_norm=self.data_norm,
            centered=self.fit_intercept,
        )
        match method:
            case "adassp":
                releases = _adassp(design, calibration)
            case "functional":
                # Both vectors are one Laplace release, of which the L1 sensitivities add up.
                both = calibration.laplace(Fraction(1), sensitivity=design.moment + UNIT * design.norm)
                releases = _Releases(design=design, moments=both, products=both)
                return TrainingPlan(
                    steps=(FitStep("second moments", both.event),), settings=releases, outlook=_outlook(releases)
                )
            case _:
                releases = _halves(design, calibration)
        return TrainingPlan(steps=_steps(releases), settings=releases, outlook=_outlook(releases))

    def _method(self, calibration: NoiseCalibration) -> str:
        method = check_choice(self.method, name="method", allowed=_METHODS)
        if method == "auto":
            return "functional" if calibration.is_pure else "ridge"
        if method != "functional" and calibration.is_pure:
            raise ParameterError(
                f'The method "{method}" needs a delta.', fix='give delta=1e-6, or use method="functional".'
            )
        return method

    def _learn(self, facts: PublicFacts, rows: WeightedRows, plan: TrainingPlan, source: RandomSource) -> None:
        releases: _Releases = plan.settings
        self.method_ = _name(releases)
        design = releases.design
        low, high = self._range(facts)
        steps = design.rows(rows.features)
        target = whole_steps(
            np.asarray(rows.target, dtype=np.float64)[:, None], lows=np.array(low), highs=np.array(high), bits=BITS
        )
        exactly = design.moments(steps, rows.weights)
        products = exact_product(steps, target, rows.weights, most=UNIT**2)
        moments = design.symmetric(releases.moments.add(exactly, source))
        noisy = releases.products.add(products, source)[:, 0].astype(np.float64) / UNIT**2
        if releases.eigenvalue is None:
            weights = self._solve_floored(releases, moments, noisy)
        else:
            smallest = _noisy_eigenvalue(design.symmetric(exactly), releases.eigenvalue, releases.caution, source)
            weights = self._adaptive(releases, moments, noisy, smallest)
        self._set_weights(design, weights, low, high)

    def _range(self, facts: PublicFacts) -> tuple[float, float]:
        """Return the ends of the target, as far from zero as each other where there is no intercept."""
        low, high = facts.target.bounds or (0.0, 0.0)
        far = max(abs(low), abs(high))
        return (low, high) if self.fit_intercept else (-far, far)

    def _set_weights(self, design: LinearDesign, weights: Floats, low: float, high: float) -> None:
        coefficients, intercepts = design.in_units(weights[:, None])
        half = (high - low) / 2
        self.coef_ = coefficients[0] * half
        self.intercept_ = float(intercepts[0] * half) + (low + high) / 2

    def _solve_floored(self, releases: _Releases, moments: Floats, products: Floats) -> Floats:
        """Return the weights, from second moments of which no direction is below the noise."""
        values, vectors = np.linalg.eigh(moments)
        noise = releases.moments.deviation / UNIT**2
        values = np.maximum(values, _FLOOR * noise * math.sqrt(len(values))) + float(self.regularization)
        return np.asarray(vectors @ ((vectors.T @ products) / values))

    def _adaptive(self, releases: _Releases, moments: Floats, products: Floats, smallest: float) -> Floats:
        """Return the weights, with the ridge that the smallest eigenvalue leaves missing."""
        design, width = releases.design, releases.design.width
        noise = releases.moments.deviation / UNIT**2
        missing = noise * math.sqrt(width * math.log(2 * width**2 / _FAILURE)) - smallest
        ridge = np.full(width, max(0.0, missing) + float(self.regularization))
        if design.constant:
            ridge[-1] = 0.0
        matrix = moments + np.diag(ridge)
        # Noise can make the matrix singular, which least squares still solves.
        return np.asarray(np.linalg.lstsq(matrix, products, rcond=None)[0])

    def predict(self, X: Any) -> Floats:
        """Return the predicted number for each row; costs nothing."""
        features = self._encoded(X)
        lows, highs = self.encoding_.bounds
        return np.asarray(np.clip(features, lows, highs) @ self.coef_ + self.intercept_)


# What is released ----------------------------------------------------------------------------------------------------


def _halves(design: LinearDesign, calibration: NoiseCalibration) -> _Releases:
    half = Fraction(1, 2)
    return _Releases(
        design=design,
        moments=calibration.gaussian(half, squared_sensitivity=design.squared_moment),
        products=calibration.gaussian(half, squared_sensitivity=UNIT**2 * design.squared_norm),
    )


def _adassp(design: LinearDesign, calibration: NoiseCalibration) -> _Releases:
    logarithm = exact.log_bounds(6 / calibration.delta)[1]
    squared = max(logarithm / (calibration.epsilon / 3) ** 2, 3 * calibration.squared_multiplier)
    eigenvalue = design.squared_norm + design.squared_norm // 32 + 1
    return _Releases(
        design=design,
        moments=GaussianSteps.dominating(design.squared_norm**2, squared),
        products=GaussianSteps.dominating(UNIT**2 * design.squared_norm, squared),
        eigenvalue=GaussianSteps.dominating(eigenvalue**2, squared),
        caution=math.sqrt(logarithm),
    )


def _steps(releases: _Releases) -> tuple[FitStep, ...]:
    steps = (
        FitStep("second moments of the features", releases.moments.event),
        FitStep("products with the target", releases.products.event),
    )
    if releases.eigenvalue is None:
        return steps
    return (*steps, FitStep("smallest eigenvalue", releases.eigenvalue.event))


def _outlook(releases: _Releases) -> FitOutlook:
    """Return how the noise of all second moments, as a matrix, compares with half of what rows of length 1 have.

    Values that are spread between their bounds have a third to a half of the largest second moments. Where the noise is
    as large, every direction drowns in it, and what is predicted is noise around the middle of the target's bounds: on
    scikit-learn's diabetes that is where the share of explained variance falls below 0.
    """
    rows = 2 * releases.moments.deviation * math.sqrt(releases.design.width) / UNIT**2
    return FitOutlook(
        rows=rows, what="the second moments of the features", compared="half of the largest that they can be"
    )


def _name(releases: _Releases) -> str:
    if releases.eigenvalue is not None:
        return "adassp"
    return "ridge" if isinstance(releases.moments, GaussianSteps) else "functional"


def _noisy_eigenvalue(moments: Floats, noise: GaussianSteps, caution: float, source: RandomSource) -> float:
    """Return a number that is below the smallest eigenvalue, but for a small probability, and not below zero."""
    # Whole steps, rounded down, since the noise is on these; the sensitivity leaves room for what floats err
    # by.
    smallest = np.array([math.floor(np.linalg.eigvalsh(moments)[0] * UNIT**2)])
    noisy = float(noise.add(smallest, source)[0])
    return max(0.0, noisy - caution * noise.deviation) / UNIT**2
