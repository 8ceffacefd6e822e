"""Every registered estimator obeys the laws of its family, and the laws catch those that do not."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import pytest

from cloister.core.random import RandomSource
from cloister.errors import LawViolatedError
from cloister.learn import PrivateGaussianNB
from cloister.learn._public_facts import PublicFacts
from cloister.learn._rows import WeightedRows
from cloister.learn.base import TrainingPlan
from cloister.learn.catalog import load_all
from cloister.mechanisms.calibration import FitStep, NoiseCalibration
from cloister.testing.estimator_laws import EstimatorLaws, find_needed_options
from cloister.testing.laws import Law
from tests.learn.toys import ToyCenter, ToyCounts, ToyMean

pytestmark = pytest.mark.no_cover  # tracing would take minutes; every estimator has tests of its own

OPTIONS: dict[str, dict[str, Any]] = {
    name: {"delta": Fraction(1, 10**5), "epochs": 2, "hidden_layer_sizes": (), "expected_rows": 200}
    for name in ("mlp", "mlp_regressor")
}
"""What an estimator needs besides public facts, by its registered name; a delta is found out."""

CASES = [
    pytest.param(law, id=f"{name}-{law}")
    for name, kind in load_all().items()
    for law in EstimatorLaws(kind=kind, options=OPTIONS.get(name) or find_needed_options(kind))
]


@pytest.mark.filterwarnings("ignore::cloister.errors.PrivacyParameterWarning")  # few rows, small epsilons
@pytest.mark.parametrize("law", CASES)
def test_laws(law: Law) -> None:
    law.verify()


def test_bounded_budgets_apply_to_delta_too() -> None:
    EstimatorLaws(kind=PrivateGaussianNB, options={"delta": Fraction(1, 10**6)}).verify()


@pytest.mark.parametrize("kind", [ToyCounts, ToyMean, ToyCenter])
def test_laws_hold_for_every_kind_of_estimator(kind: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(load_all()._members, kind.__name__.lower(), kind)
    options = find_needed_options(kind)
    assert bool(options) == (kind is ToyMean)
    EstimatorLaws(kind=kind, options=options).verify()


@dataclass(kw_only=True, eq=False, repr=False)
class Extremes(PrivateGaussianNB):
    """Keeps the smallest value of each column."""

    learned = ("class_count_", "class_prior_", "theta_", "var_", "smallest_")

    def _learn(self, facts: PublicFacts, rows: WeightedRows, plan: TrainingPlan, source: RandomSource) -> None:
        super()._learn(facts, rows, plan, source)
        self.smallest_ = rows.features.min(axis=0, initial=9.5)


@dataclass(kw_only=True, eq=False, repr=False)
class Cheap(PrivateGaussianNB):
    """Does twice what it pays for."""

    def _plan(self, facts: PublicFacts, calibration: NoiseCalibration) -> TrainingPlan:
        plan = super()._plan(facts, calibration)
        return TrainingPlan(steps=plan.steps * 2, settings=plan.settings)


@dataclass(kw_only=True, eq=False, repr=False)
class Overwriting(PrivateGaussianNB):
    """Changes its parameters."""

    def _plan(self, facts: PublicFacts, calibration: NoiseCalibration) -> TrainingPlan:
        self.variance_floor = float(self.variance_floor) / 2
        return super()._plan(facts, calibration)


@dataclass(kw_only=True, eq=False, repr=False)
class Eager(PrivateGaussianNB):
    """Checks in its constructor."""

    def __post_init__(self) -> None:
        self.variance_floor: Any = [self.variance_floor]


@dataclass(kw_only=True, eq=False, repr=False)
class Forgetful(PrivateGaussianNB):
    """Does not list what it learns."""

    learned = ("class_count_", "class_prior_", "theta_")


@dataclass(kw_only=True, eq=False, repr=False)
class Silent(PrivateGaussianNB):
    """Puts no noise on anything."""

    def _learn(self, facts: PublicFacts, rows: WeightedRows, plan: TrainingPlan, source: RandomSource) -> None:
        class Nothing:
            def add(self, values: Any, source: Any) -> Any:
                return values

        super()._learn(facts, rows, TrainingPlan(steps=plan.steps, settings=Nothing()), source)


@dataclass(kw_only=True, eq=False, repr=False)
class Counting(PrivateGaussianNB):
    """Says how many rows there are in its plan."""

    def fit(self, X: Any, y: Any = None) -> Any:
        super().fit(X, y)
        self.steps_ = tuple(FitStep(f"{len(X)} rows", step.event) for step in self.steps_)
        return self


@pytest.mark.parametrize(
    ("kind", "law", "message"),
    [
        (Extremes, "saved_models_hold_no_row", "noisy numbers only"),
        (Cheap, "steps_cost_no_more_than_the_promise", "needs|add up"),
        (Overwriting, "fit_does_not_change_parameters", "ends in _"),
        (Eager, "constructor_only_stores", "check it in fit"),
        (Forgetful, "saved_models_are_the_same", "."),
        (Silent, "default_randomness_is_secure", "put noise"),
        (Counting, "steps_do_not_depend_on_the_rows", "calibration alone"),
    ],
)
def test_laws_catch_those_who_break_them(kind: Any, law: str, message: str, monkeypatch: pytest.MonkeyPatch) -> None:
    known = load_all()
    monkeypatch.setitem(known._members, kind.__name__.lower(), kind)
    with pytest.raises((LawViolatedError, TypeError, ValueError), match=message):
        next(item for item in EstimatorLaws(kind=kind) if item.name == law).verify()
