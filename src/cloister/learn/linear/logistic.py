"""Logistic regression under differential privacy, with noise in one of three places.

*gradient* puts it on second moments and gradients (`_gradient`), *objective* in the loss and *output* on the result
(`_perturbation`); the modules give their privacy arguments. "auto" is *objective* where there is no delta; with one it
is *gradient*, or *objective* for at most 12 columns where the noise is small: gradients can tell apart directions that
drown in noise from those that do not, which pays with many columns. With more than two classes, *gradient* learns a
softmax, and the others learn each class against the rest, for an equal part of the budget.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np
from scipy.special import expit, softmax

from cloister.core.random import RandomSource
from cloister.core.validation import check_choice, check_count, check_non_negative, check_positive
from cloister.core.whole_rows import Floats
from cloister.errors import ParameterError
from cloister.learn._outlook import FitOutlook
from cloister.learn._public_facts import PublicFacts
from cloister.learn._rows import WeightedRows
from cloister.learn.base import PrivateClassifier, TrainingPlan
from cloister.learn.linear._design import UNIT, LinearDesign
from cloister.learn.linear._gradient import GradientPlan, learn_by_gradients, plan_gradients, signal
from cloister.learn.linear._perturbation import Perturbation, learn_perturbed, plan_objective, plan_output, row_length
from cloister.learn.linear._solver import STRONGEST, WEAKEST
from cloister.mechanisms.calibration import NoiseCalibration
from cloister.mechanisms.vector_laplace import MOST_DIMENSIONS

__all__ = ["PrivateLogisticRegression"]

_METHODS = ("auto", "gradient", "objective", "output")
_ROWS = 20_000
"""How many rows are assumed where nobody says."""
_PENALTY = Fraction(1, 10)
_FINEST = Fraction(1, 10**6)
_STEPS = 1000
"""Steps to a minimum: far more than Newton's method takes, so that no rows use them up."""
_MUCH = 300
_LITTLE, _PART = 5, "fifth"


@dataclass(kw_only=True, eq=False, repr=False)
class PrivateLogisticRegression(PrivateClassifier):
    """Logistic regression.

    Args:
        method: "gradient" (needs a delta), "objective", "output", or "auto", which chooses from public facts:
            "objective" without a delta and for few features, else "gradient".
        data_norm: a public bound of the Euclidean norm of rows of encoded features in their own units; longer rows are
            shrunk. By default each number is scaled to [-1, 1] by its bounds, so that no norm is above the square
            root of the number of features, which is better unless numbers have a scale in common.
        regularization: the weight of half the squared norm of the weights in the sum of losses, for rows divided by
            their largest norm. By default a public rule: 0.1 in "gradient", and as large as the noise calls for in the
            other methods. At least 0.001 in these, so that no rows can keep their minimum from being found, and at
            most 1e12.
        fit_intercept: whether there is an intercept.
        tol: how steep the objective may be at what "objective" and "output" take for its minimum; noise covers it. At
            least 1e-6, which can be shown for ten million rows, whatever they hold; at most 1.
        max_iter: the largest number of gradients, 48 by default. "objective" and "output" go on until they are there:
            whether they get there in fewer steps would depend on the rows.
        expected_rows: about how many rows there are, as far as is public; used for settings and for a warning only.

    Attributes:
        coef_: the weights, one row for two classes or one row per class, for encoded features in their own units.
        intercept_: the intercepts.
        method_: the method that was used.

    >>> X, y = [[1.0], [2.0], [8.0], [9.0]] * 200, ["low", "low", "high", "high"] * 200
    >>> model = PrivateLogisticRegression(epsilon=5, bounds=(0, 10), classes=["low", "high"]).fit(X, y)
    >>> model.predict([[1.5], [8.5]]).tolist()
    ['low', 'high']
    """

    learned: ClassVar[tuple[str, ...]] = ("coef_", "intercept_", "method_")

    method: str = "auto"
    data_norm: Any = None
    regularization: Any = None
    fit_intercept: bool = True
    tol: Any = 1e-6
    max_iter: int | None = None
    expected_rows: int | None = None

    def _plan(self, facts: PublicFacts, calibration: NoiseCalibration) -> TrainingPlan:
        design, method = self._design(facts, calibration)
        classes = len(facts.target.classes or ())
        if method == "gradient":
            gradients = self._gradients(design, calibration, classes)
            outlook = _outlook(1 / signal(design, calibration, 1))
            return TrainingPlan(steps=gradients.steps, settings=(design, gradients), outlook=outlook)
        parts = 1 if classes == 2 else classes
        one = self._perturbation(design, calibration, parts, method)
        outlook = _outlook(one.length * row_length(design) / UNIT)
        return TrainingPlan(steps=one.steps * parts, settings=(design, one), outlook=outlook)

    def _design(self, facts: PublicFacts, calibration: NoiseCalibration) -> tuple[LinearDesign, str]:
        """Return how rows are encoded, and the method."""
        given = {"data_norm": self.data_norm, "centered": self.fit_intercept}
        halved = LinearDesign.of(facts.encoding, constant=UNIT // 2, **given)
        method = self._method(halved, calibration)
        if method == "gradient":
            return halved, method
        constant = UNIT if self.fit_intercept else 0
        return LinearDesign.of(facts.encoding, constant=constant, **given), method

    def _method(self, design: LinearDesign, calibration: NoiseCalibration) -> str:
        method = check_choice(self.method, name="method", allowed=_METHODS)
        if method == "gradient" and calibration.is_pure:
            raise ParameterError(
                "Noisy gradients need a delta: without one they would cost too much.",
                fix='give delta=1e-6, or use method="objective".',
            )
        if method != "auto":
            return method
        if calibration.is_pure:
            return "objective"
        few = design.width <= MOST_DIMENSIONS
        return "objective" if few and signal(design, calibration, self._rows()) >= _MUCH else "gradient"

    def _rows(self) -> int:
        if self.expected_rows is None:
            return _ROWS
        return check_count(self.expected_rows, name="expected_rows", at_least=1)

    def _strength(self) -> Fraction | None:
        if self.regularization is None:
            return None
        strength = check_non_negative(self.regularization, name="regularization")
        if strength > STRONGEST:
            raise ParameterError(
                "regularization is so strong that no row would count.", fix="use at most 1e12, or leave it out."
            )
        return strength

    def _gradients(self, design: LinearDesign, calibration: NoiseCalibration, classes: int) -> GradientPlan:
        most = None if self.max_iter is None else check_count(self.max_iter, name="max_iter", at_least=1)
        strength = self._strength()
        # As if rows were divided by their largest norm, which makes weights so much larger.
        penalty = float(_PENALTY if strength is None else strength) * design.squared_norm / UNIT**2
        return plan_gradients(design, calibration, classes=classes, rows=self._rows(), most=most, penalty=penalty)

    def _perturbation(
        self, design: LinearDesign, calibration: NoiseCalibration, parts: int, method: str
    ) -> Perturbation:
        if self.max_iter is not None:
            raise ParameterError(
                f'max_iter is the number of gradients, and method="{method}" takes none.',
                fix='leave max_iter out, or use method="gradient" with a delta.',
            )
        tol = check_positive(self.tol, name="tol")
        if not _FINEST <= tol <= 1:
            raise ParameterError(
                "tol must be between what can be shown and the slope of one row.",
                fix="use tol of at least 1e-6 and at most 1.",
            )
        strength = self._strength()
        if strength is not None and strength < WEAKEST:
            raise ParameterError(
                f'regularization must be at least {float(WEAKEST)} for method="{method}": with less, some rows would '
                "keep the minimum from being found, and whether it is found must not depend on rows.",
                fix=f"use {float(WEAKEST)} or more, or leave it out, for the public rule.",
            )
        plan = plan_objective if method == "objective" else plan_output
        return plan(
            design,
            epsilon=calibration.epsilon / parts,
            delta=calibration.delta / parts,
            strength=strength,
            tol=tol,
            rows=self._rows(),
        )

    def _assumptions(self) -> tuple[str, ...]:
        if self.method == "gradient":
            return ()
        return ("if a minimum is searched for, it is found to within tol, as it is for up to ten million rows",)

    # Learning ---------------------------------------------------------------------------------------------------------

    def _learn(self, facts: PublicFacts, rows: WeightedRows, plan: TrainingPlan, source: RandomSource) -> None:  # noqa: ARG002
        design, settings = plan.settings
        if isinstance(settings, GradientPlan):
            self.method_ = "gradient"
            weights = learn_by_gradients(
                design, rows, settings, source, classes=len(self.classes_), intercept=self.fit_intercept
            )
        else:
            self.method_ = "output" if settings.term is None else "objective"
            weights = self._one_by_one(design, rows, settings, source)
        self.coef_, self.intercept_ = design.in_units(weights)

    def _one_by_one(
        self, design: LinearDesign, rows: WeightedRows, settings: Perturbation, source: RandomSource
    ) -> Floats:
        """Return the weights of the second of two classes, or of each class against the others."""
        places = [1] if len(self.classes_) == 2 else list(range(len(self.classes_)))
        columns = [learn_perturbed(design, rows, settings, source, place=place, max_iter=_STEPS)[0] for place in places]
        return np.stack(columns, axis=1)

    # Predicting -------------------------------------------------------------------------------------------------------

    def decision_function(self, X: Any) -> Floats:
        """Return the logit of the second class, or one number per class; costs nothing."""
        logits = self._logits(self._encoded(X))
        return np.asarray(logits[:, 0] if len(self.classes_) == 2 else logits)

    def predict_proba(self, X: Any) -> Floats:
        """Return the probability of each class, for each row; costs nothing."""
        logits = self._logits(self._encoded(X))
        if len(self.classes_) == 2:
            second = expit(logits)
            return np.concatenate([1 - second, second], axis=1)
        if self.method_ == "gradient":
            return np.asarray(softmax(logits, axis=1))
        each = np.maximum(expit(logits), np.finfo(np.float64).tiny)
        return np.asarray(each / each.sum(axis=1, keepdims=True))

    def predict_log_proba(self, X: Any) -> Floats:
        """Return the logarithm of the probability of each class, for each row; costs nothing."""
        return np.log(np.maximum(self.predict_proba(X), np.finfo(np.float64).tiny))

    def _logits(self, features: Floats) -> Floats:
        lows, highs = self.encoding_.bounds
        # What lies outside of the bounds is predicted as it would have been learned from.
        return np.asarray(np.clip(features, lows, highs) @ self.coef_.T + self.intercept_)

    def _scores(self, features: Floats) -> Floats:
        logits = self._logits(features)
        return np.concatenate([-logits, logits], axis=1) if logits.shape[1] == 1 else logits


def _outlook(noise: float) -> FitOutlook:
    """Return the outlook for noise that is as long as the gradient of so many rows can be."""
    return FitOutlook(rows=_LITTLE * noise, what="a gradient", compared=f"a {_PART} of what all rows can add to it")
