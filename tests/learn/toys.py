"""Small estimators of kinds that the laws and the reading must serve: one of each target and encoding."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np

from cloister.core.random import RandomSource
from cloister.core.whole_rows import Floats, exact_product, whole_steps
from cloister.errors import ParameterError
from cloister.learn._public_facts import PublicFacts
from cloister.learn._rows import WeightedRows
from cloister.learn.base import PrivateClusterer, PrivateRegressor, PrivateTransformer, TrainingPlan
from cloister.mechanisms.calibration import FitStep, NoiseCalibration


@dataclass(kw_only=True, eq=False, repr=False)
class ToyCounts(PrivateTransformer):
    """Writes how often the first column has the value of a row."""

    encodes: ClassVar[str] = "codes"
    learned: ClassVar[tuple[str, ...]] = ("counts_", "nested_")

    def _plan(self, facts: PublicFacts, calibration: NoiseCalibration) -> TrainingPlan:
        noise = calibration.noise(Fraction(1), sensitivity=1, squared_sensitivity=1)
        return TrainingPlan(steps=(FitStep("counts", noise.event),), settings=noise)

    def _learn(self, facts: PublicFacts, rows: WeightedRows, plan: TrainingPlan, source: RandomSource) -> None:
        first: Any = facts.encoding.features[0]
        cells = (rows.features[:, :1] == np.arange(len(first.values) + 1)).astype(np.float64)
        counts = exact_product(cells, np.ones((len(cells), 1)), rows.weights, most=1)[:, 0]
        self.counts_ = plan.settings.add(counts, source)
        self.nested_ = {"trees": [(int(item), [float(item)]) for item in self.counts_]}

    def transform(self, X: Any) -> Floats:
        return self.counts_[self._encoded(X)[:, :1].astype(np.int64)].astype(np.float64)


@dataclass(kw_only=True, eq=False, repr=False)
class ToyMean(PrivateRegressor):
    """Predicts the noisy mean of the target; does not learn without a delta."""

    learned: ClassVar[tuple[str, ...]] = ("mean_",)

    def _plan(self, facts: PublicFacts, calibration: NoiseCalibration) -> TrainingPlan:
        if calibration.is_pure:
            raise ParameterError("This needs a delta.", fix="write delta=1e-6.")
        noise = calibration.gaussian(Fraction(1), squared_sensitivity=2 * 2**20)
        return TrainingPlan(steps=(FitStep("sum and count", noise.event),), settings=noise)

    def _learn(self, facts: PublicFacts, rows: WeightedRows, plan: TrainingPlan, source: RandomSource) -> None:
        low, high = facts.target.bounds or (0.0, 1.0)
        numbers = np.asarray(rows.target, dtype=np.float64)[:, None]
        steps = whole_steps(numbers, lows=np.array([low]), highs=np.array([high]), bits=10)
        both = np.concatenate([steps, np.full_like(steps, 2.0**10)], axis=1)
        total, count = plan.settings.add(
            exact_product(np.ones((len(both), 1)), both, rows.weights, most=2**10)[0], source
        )
        self.mean_ = (low + high) / 2 + (high - low) / 2 * float(np.clip(total / max(count, 1), -1, 1))

    def predict(self, X: Any) -> Floats:
        return np.full(len(self._encoded(X)), self.mean_)


@dataclass(kw_only=True, eq=False, repr=False)
class ToyCenter(PrivateClusterer):
    """Puts everybody on one of two sides of a noisy center."""

    learned: ClassVar[tuple[str, ...]] = ("center_",)

    def _plan(self, facts: PublicFacts, calibration: NoiseCalibration) -> TrainingPlan:
        noise = calibration.noise(Fraction(1), sensitivity=2**11, squared_sensitivity=2**21)
        return TrainingPlan(steps=(FitStep("sum and count", noise.event),), settings=noise)

    def _learn(self, facts: PublicFacts, rows: WeightedRows, plan: TrainingPlan, source: RandomSource) -> None:
        lows, highs = facts.encoding.bounds
        steps = whole_steps(rows.features[:, :1], lows=lows[:1], highs=highs[:1], bits=10)
        both = np.concatenate([steps, np.full_like(steps, 2.0**10)], axis=1)
        total, count = plan.settings.add(
            exact_product(np.ones((len(both), 1)), both, rows.weights, most=2**10)[0], source
        )
        share = float(np.clip(total / max(count, 1), -1, 1))
        self.center_ = float((lows[0] + highs[0]) / 2 + (highs[0] - lows[0]) / 2 * share)

    def predict(self, X: Any) -> Any:
        return (self._encoded(X)[:, 0] > self.center_).astype(np.int64)
