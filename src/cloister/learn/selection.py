"""Choosing between models privately: every candidate is trained, and a private choice is made on rows held out.

A coin that does not look at the rows decides for each of them whether it is learned from or held out. Each of k
candidates is trained on the rows that are learned from with a share 1/k of epsilon and delta. The winner is chosen by
permute-and-flip (McKenna and Sheldon 2020) among the candidates' scores on the rows held out: the number of right
predictions, or for numbers the sum of how near they are. Only the winner is kept, without its score.

Privacy: claim (epsilon, delta)-DP for one row added or removed. Given the coins, the row is on one side. If it is
learned from, the k trainings compose to (epsilon, delta), and the choice is made of what they gave. If it is held out,
the models do not depend on it, and it moves every score by at most 1 (or 2**15 steps), all in the same direction, so
that the choice is epsilon-DP. The coins do not depend on the rows, so the same holds on average over them. Persons
with several rows, who may be on both sides, and replaced rows are groups of rows, as in `NoiseCalibration`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, MetaEstimatorMixin, clone
from sklearn.utils.validation import check_is_fitted

from cloister.accounting.events import ApproxEvent, PureEvent
from cloister.accounting.payment import finish
from cloister.core import exact
from cloister.core.exact import Number
from cloister.core.guarantees import DifferentialPrivacy
from cloister.core.random import RandomSource, RandomState, caveats_of, chances, random_source
from cloister.core.whole_rows import exact_product
from cloister.errors import ParameterError, ParameterTypeError, did_you_mean
from cloister.learn._exact_steps import caveats_of_steps, warn_of_exact_steps
from cloister.learn._inputs import Reading, read
from cloister.learn._outlook import warn_if_hopeless
from cloister.learn._rows import WeightedRows
from cloister.learn.base import PUBLIC_FACTS, FitPreview, PrivateEstimator, TrainingPlan
from cloister.learn.evaluation import predict_alone
from cloister.mechanisms.calibration import FitStep, NoiseCalibration
from cloister.mechanisms.selection import Select

__all__ = ["PrivateSearch"]

_STEPS = 2**15
_MOST = 1000
_NOT_SEARCHED = ("epsilon", "delta", "ledger", "dataset", "analyst", "unit", "max_rows_per_unit", "adjacency")
_FACTS = ("bounds", "domain", "schema", "features", "classes", "target_bounds", "random_state")


@dataclass(kw_only=True, eq=False, repr=False)
class PrivateSearch(MetaEstimatorMixin, BaseEstimator):  # type: ignore[misc]  # scikit-learn is not typed
    """The best of several settings of a private estimator, chosen privately.

    Args:
        estimator: a classifier or regressor with its public facts; its ledger, unit and relation are used.
        grid: the settings to try: {name: values}, all combinations; or a list of such.
        epsilon: what the search may cost in all.
        delta: what the search may cost besides.
        holdout: the probability with which a row is held out.
        random_state: None; an integer is for tests, and breaks the promise.

    Attributes:
        best_estimator_: the chosen model, which carries the promise of the whole search.
        best_params_: its settings.
        guarantee_: what the search promises.

    >>> from cloister.learn import PrivateGaussianNB
    >>> X, y = [[1.0], [2.0], [8.0], [9.0]] * 50, ["low", "low", "high", "high"] * 50
    >>> model = PrivateGaussianNB(bounds=(0, 10), classes=["low", "high"])
    >>> search = PrivateSearch(estimator=model, grid={"variance_floor": [1e-3, 1e-1]}, epsilon=20).fit(X, y)
    >>> search.predict([[1.5]]).tolist(), search.guarantee_.brief()
    (['low'], 'epsilon = 20 per row')
    """

    estimator: Any = None
    grid: Any = None
    epsilon: Number = 1.0
    delta: Number = 0.0
    holdout: Any = 0.2
    random_state: RandomState = None

    best_estimator_: Any = field(init=False)
    best_params_: dict[str, Any] = field(init=False)
    guarantee_: DifferentialPrivacy = field(init=False)
    steps_: tuple[FitStep, ...] = field(init=False)

    def fit(self, X: Any, y: Any = None) -> PrivateSearch:
        """Train every candidate and keep the best, for the price of epsilon and delta.

        Args:
            X: an array, a data frame, or a `cloister.Table`.
            y: the target, one per row; for a table, the name of its column.
        """
        model, settings, threshold = self._model(), self._settings(), self._threshold()
        whole = NoiseCalibration.of(
            epsilon=self.epsilon,
            delta=self.delta,
            adjacency=model.adjacency,
            unit=model.unit,
            max_rows_per_unit=model.max_rows_per_unit,
        )
        reading = read(model, X, y)
        share = NoiseCalibration.of(epsilon=whole.epsilon / len(settings), delta=whole.delta / len(settings))
        candidates = [clone(model).set_params(**chosen) for chosen in settings]
        # What a candidate cannot do it refuses here, before anything is paid.
        plans = [candidate._plan(reading.facts, share) for candidate in candidates]  # noqa: SLF001  # its family
        choice = _choice(len(candidates), whole, is_number=model.target == "number")
        preview = _preview(model, reading, whole, plans, choice)
        source = random_source(self.random_state)
        rows = None if reading.in_engine else reading.rows()
        _warn_of(model, reading, plans, learned=1 - threshold / 2**64)
        warn_of_exact_steps(self, stacklevel=2)
        model._pay(preview.guarantee, preview.event)  # noqa: SLF001  # its family
        self._forget()

        def chosen(rows: WeightedRows) -> int:
            learned, held_out = _split(rows, threshold, source)
            for candidate, plan in zip(candidates, plans, strict=True):
                _copy_names(model, candidate)
                candidate._promise_as(preview.guarantee, source)  # noqa: SLF001  # its family
                candidate._set_facts(reading, preview.steps)  # noqa: SLF001  # its family
                with np.errstate(all="ignore"):  # a warning of an overflow would be about the rows
                    candidate._learn(reading.facts, reading.given(candidate, learned), plan, source)  # noqa: SLF001  # its family
            scores = [_score(candidate, held_out, reading) for candidate in candidates]
            return choice.release(scores, random_state=source).index if len(candidates) > 1 else 0

        place = finish(
            lambda: chosen(reading.rows() if rows is None else rows), nothing=lambda: chosen(reading.nobody().rows())
        )
        self.best_estimator_, self.best_params_ = candidates[place], settings[place]
        self.guarantee_ = preview.guarantee.with_caveat(*caveats_of(source), *caveats_of_steps(self))
        self.steps_ = preview.steps
        return self

    def predict(self, X: Any) -> Any:
        """Return what the chosen model predicts; costs nothing."""
        check_is_fitted(self, "best_estimator_")
        return self.best_estimator_.predict(X)

    def score(self, X: Any, y: Any) -> float:
        """Return the accuracy, or the share of variance, on rows of your own; costs nothing."""
        check_is_fitted(self, "best_estimator_")
        return float(self.best_estimator_.score(X, y))

    def save(self, path: str | Path, *, overwrite: bool = False) -> None:
        """Write the chosen model to a file, with the promise of the whole search."""
        check_is_fitted(self, "best_estimator_")
        self.best_estimator_.save(path, overwrite=overwrite)

    def __sklearn_clone__(self) -> PrivateSearch:
        """Return a search with the same parameters; sources of randomness are shared, never copied."""
        given = self.get_params(deep=False)
        return type(self)(
            **{name: item if name == "random_state" else clone(item, safe=False) for name, item in given.items()}
        )

    def _forget(self) -> None:
        for name in ("best_estimator_", "best_params_", "guarantee_", "steps_"):
            self.__dict__.pop(name, None)

    def _model(self) -> Any:
        """Return the estimator to try, without what belongs to one fit."""
        if not isinstance(self.estimator, PrivateEstimator) or self.estimator.target == "none":
            raise ParameterTypeError(
                "estimator is not a private classifier or regressor.", fix="write estimator=PrivateGaussianNB(...)."
            )
        return clone(self.estimator)

    def _threshold(self) -> int:
        share = exact.number(self.holdout, name="holdout")
        if not Fraction(1, 1000) <= share <= Fraction(999, 1000):
            raise ParameterError("holdout is not a share of the rows.", fix="use a number such as 0.2.")
        return int(share * 2**64)

    def _settings(self) -> list[dict[str, Any]]:
        """Return every combination that is tried."""
        parts = [self.grid] if isinstance(self.grid, Mapping) else self.grid
        if not isinstance(parts, Sequence) or not parts or not all(isinstance(part, Mapping) for part in parts):
            raise ParameterTypeError("grid is not a mapping.", fix='write grid={"variance_floor": [0.001, 0.1]}.')
        # Where categories are counted, bins are part of how all candidates read the rows.
        fixed = (*_NOT_SEARCHED, *_FACTS, *(("bins",) if self.estimator.encodes == "codes" else ()))
        known = [name for name in self.estimator.get_params(deep=False) if name not in fixed]
        found: list[dict[str, Any]] = []
        for part in parts:
            for name, values in part.items():
                _check_values(name, values, known)
            found += [dict(zip(part, values, strict=True)) for values in product(*part.values())]
        if len(found) > _MOST:
            raise ParameterError("The grid has too many combinations.", fix=f"try at most {_MOST}, better five.")
        return found


def _check_values(name: str, values: Any, known: list[str]) -> None:
    if name not in known:
        raise ParameterError(
            f'"{name}" is not a setting that can be tried.{did_you_mean(str(name), known)}',
            fix=f"use some of {', '.join(known)}; what a fit costs and public facts are the same for all.",
        )
    if isinstance(values, str) or not isinstance(values, Sequence | np.ndarray) or not len(values):
        raise ParameterTypeError(f"The values of {name} are not a list.", fix=f'write grid={{"{name}": [1, 2]}}.')


def _choice(count: int, whole: NoiseCalibration, *, is_number: bool) -> Select:
    sensitivity = Fraction(_STEPS if is_number else 1)
    places = tuple(range(max(2, count)))
    return Select(candidates=places, score_sensitivity=sensitivity, epsilon=whole.epsilon, monotone=True)


def _warn_of(model: PrivateEstimator, reading: Reading, plans: list[TrainingPlan], *, learned: float) -> None:
    """Say that not even the candidate with the least noise would learn anything from its share of the rows."""
    rows = model._known_rows(reading)  # noqa: SLF001  # its family
    outlooks = [plan.outlook for plan in plans if plan.outlook is not None]
    best = min(outlooks, key=lambda outlook: outlook.rows, default=None)
    warn_if_hopeless(best, None if rows is None else int(learned * rows), stacklevel=3)


def _preview(
    model: Any, reading: Reading, whole: NoiseCalibration, plans: list[TrainingPlan], choice: Select
) -> FitPreview:
    assumed = (PUBLIC_FACTS, *reading.facts.assumptions, *model._assumptions())  # noqa: SLF001  # its family
    trained = [
        FitStep(f"candidate {place + 1}: {step.label}", step.event)
        for place, plan in enumerate(plans)
        for step in plan.steps
    ]
    chosen = FitStep("the choice, on rows that were held out", choice.event)
    steps = (*trained, chosen) if len(plans) > 1 else tuple(trained)
    return FitPreview(guarantee=whole.guarantee(assumptions=assumed), steps=steps, event=_event(whole))


def _event(whole: NoiseCalibration) -> PureEvent | ApproxEvent:
    """Return what the whole search is for the accountants: its two sides see different rows, so they do not add up."""
    if whole.is_pure:
        return PureEvent(epsilon=whole.budget.amount)
    return ApproxEvent(epsilon=whole.budget.amount, delta=whole.budget.delta)


def _split(rows: WeightedRows, threshold: int, source: RandomSource) -> tuple[WeightedRows, WeightedRows]:
    """Return the rows to learn from and those held out; every occurrence of a row has a coin of its own."""
    coins = chances(source, threshold, int(rows.weights.sum()))
    owners = np.repeat(np.arange(len(rows.weights)), rows.weights)
    held = np.bincount(owners[coins], minlength=len(rows.weights)).astype(np.int64)
    return _select_rows(rows, rows.weights - held), _select_rows(rows, held)


def _select_rows(rows: WeightedRows, weights: Any) -> WeightedRows:
    some = weights > 0
    return WeightedRows(rows.features[some], np.asarray(rows.target)[some], weights[some])


def _copy_names(model: Any, candidate: Any) -> None:
    """Give a candidate what the reading of a frame or an array has noted about its columns."""
    for name in ("n_features_in_", "feature_names_in_"):
        if hasattr(model, name):
            setattr(candidate, name, getattr(model, name))


def _score(candidate: Any, rows: WeightedRows, reading: Reading) -> int:
    """Return the number of rows predicted rightly, or for numbers the sum of how near they are, in whole steps."""
    if not len(rows.weights):
        return 0
    predicted, truth = predict_alone(candidate, rows), np.asarray(rows.target)
    if reading.facts.target.bounds is None:
        points = (predicted == candidate.classes_[truth]).astype(np.float64)
    else:
        low, high = reading.facts.target.bounds
        # A prediction that is no number is taken for the worst one, and fails for no row.
        away = np.abs(np.clip(predicted, low, high) - np.clip(truth, low, high)) / (high - low)
        points = np.rint((1.0 - np.clip(np.nan_to_num(away, nan=1.0), 0.0, 1.0)) * _STEPS)
    total = exact_product(np.ones((len(points), 1)), points[:, None], rows.weights, most=_STEPS)
    return int(total[0, 0])
