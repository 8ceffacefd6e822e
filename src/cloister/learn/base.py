"""What every private estimator is: parameters that are public, a fit that pays before it looks, and a promise.

An estimator follows scikit-learn: the constructor stores its parameters, `fit` checks, pays, learns and returns the
estimator. Bounds, values and classes are public parameters and never read from the data. `fit` plans from public facts
alone (`_plan`), charges the ledger for the plan, and only then lets the plan's noise meet the rows (`_learn`): the
order is that of every `PaidFit`. Each call of `fit` is another release.
"""

from __future__ import annotations

import warnings
from abc import abstractmethod
from copy import deepcopy
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, ClusterMixin, RegressorMixin, TransformerMixin, clone
from sklearn.utils.validation import check_is_fitted

from cloister.accounting.events import Event
from cloister.core.guarantees import ApproxDP, Caveat, PureDP
from cloister.core.random import RandomSource, random_source
from cloister.core.registry import Registry
from cloister.core.whole_rows import Floats
from cloister.data.table import Table
from cloister.errors import PrivacyParameterWarning, UnsafeMechanismError
from cloister.learn._encoding import Encoding
from cloister.learn._exact_steps import caveats_of_steps, warn_of_exact_steps
from cloister.learn._inputs import Reading, encode, read
from cloister.learn._outlook import FitOutlook, problem_of, warn_if_hopeless
from cloister.learn._public_facts import PublicFacts
from cloister.mechanisms.calibration import FitStep, NoiseCalibration
from cloister.mechanisms.paid_fit import PaidFit, PricedFit

if TYPE_CHECKING:
    from cloister.mechanisms.saved_fits import SavedFits

__all__ = [
    "FitPreview",
    "PrivateClassifier",
    "PrivateClusterer",
    "PrivateEstimator",
    "PrivateRegressor",
    "PrivateTransformer",
    "TrainingPlan",
    "estimators",
]

estimators: Registry[type[Any]] = Registry("private estimator")
"""Every private estimator by name; `cloister.learn.catalog.load_all` fills it."""

_SHARED = ("ledger", "random_state")
PUBLIC_FACTS = "bounds, values and classes were known without looking at the data"


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingPlan:
    """What a fit will do: its paid steps in order, and the settings that `_learn` needs, all public."""

    steps: tuple[FitStep, ...]
    settings: Any = None  # whatever the estimator plans with
    outlook: FitOutlook | None = None
    """The error to expect; every plan that has steps says it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FitPreview:
    """What a fit would promise, its paid steps, what they are for the accountants, and the error to expect."""

    guarantee: PureDP | ApproxDP
    steps: tuple[FitStep, ...]
    event: Event
    outlook: FitOutlook | None = None
    problem: str | None = None
    """That the model would be worse than a trivial one, where that is to be expected."""

    def to_dict(self) -> dict[str, Any]:
        """Return JSON-ready values."""
        return {
            "schema": "cloister.fit_preview/1",
            "guarantee": self.guarantee.to_dict(),
            "steps": [step.to_dict() for step in self.steps],
            "outlook": None if self.outlook is None else self.outlook.to_dict(),
            "problem": self.problem,
        }


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class _PricedTraining(PricedFit):
    """A training that was priced, with what is told of it, and how many rows there are if somebody may know."""

    preview: FitPreview
    known_rows: int | None


@dataclass(kw_only=True, eq=False, repr=False)
class PrivateEstimator(BaseEstimator, PaidFit):  # type: ignore[misc]  # scikit-learn is not typed
    """The base of all private estimators.

    Args:
        bounds: public bounds of numeric features: (lows, highs), or {column: (low, high)}.
        domain: public values of categorical features: one list per feature, or {column: values}.
        features: which columns of a table or data frame to learn from.

    What a fit costs, who pays and whom it protects are parameters of `PaidFit`; its ``schema`` is for features of which
    neither bounds nor domain says anything.
    """

    purpose: ClassVar[str] = "train"
    outlives_fits: ClassVar[tuple[str, ...]] = ("n_features_in_", "feature_names_in_")

    target: ClassVar[str] = "none"
    """What y is: "classes", "number" or "none"."""
    encodes: ClassVar[str] = "matrix"
    """How features are given to `_learn`: as numbers and indicator columns ("matrix"), or as "codes"."""
    needs: ClassVar[str] = "rows"
    """What `_learn` is given: "rows", "coded" rows, or "pairs" of a feature's values with the classes (see `_rows`)."""
    learned: ClassVar[tuple[str, ...]] = ()
    """The attributes that a saved model keeps, besides those of the base."""

    bounds: Any = None
    domain: Any = None
    features: Any = None

    # Set on classes that have them, so that reading finds them everywhere.
    classes = None  # type: Any
    target_bounds = None  # type: Any
    bins = None  # type: Any

    guarantee_: PureDP | ApproxDP = field(init=False)
    encoding_: Encoding = field(init=False)

    def fit(self, X: Any, y: Any = None) -> Self:
        """Learn from protected rows, for the price of epsilon and delta.

        Args:
            X: an array, a data frame, or a `cloister.Table`.
            y: the target, one per row; for a table, the name of its column.

        Raises:
            MissingBoundsError: if a public fact is missing. Nothing is paid.
            BudgetExceededError: if the ledger has less left.
        """
        training = self._prepare(X, y)
        source = random_source(self.random_state)
        if not isinstance(X, Table):
            # Whoever passes an array holds it, and is told what is wrong with it for free.
            rows = training.rows()
            training = replace(training, rows=lambda: rows)
        warn_if_hopeless(training.preview.outlook, training.known_rows, stacklevel=2, target=self.target)
        warn_of_exact_steps(self, stacklevel=2)
        self._pay_and_look(training, source)
        for note in self._notes:
            warnings.warn(note, PrivacyParameterWarning, stacklevel=2)
        return self

    def preview(self, X: Any, y: Any = None) -> FitPreview:
        """Return what a fit would promise and do; nothing is learned or paid, and a table is not looked at.

        Args:
            X: as for `fit`.
            y: as for `fit`.
        """
        return self._prepare(X, y).preview

    def _prepare(self, X: Any, y: Any) -> _PricedTraining:
        calibration = self._calibration()
        reading = read(self, X, y)
        plan = self._plan(reading.facts, calibration)
        known_rows = self._known_rows(reading)
        assumed = (PUBLIC_FACTS, *reading.facts.assumptions, *self._assumptions())
        guarantee = calibration.guarantee(assumptions=assumed, free=not plan.steps)
        event = calibration.event(plan.steps)
        problem = problem_of(plan.outlook, known_rows, target=self.target)
        preview = FitPreview(guarantee=guarantee, steps=plan.steps, event=event, outlook=plan.outlook, problem=problem)

        def learn(rows: Any, source: RandomSource) -> None:
            self._notes: list[str] = []
            self._set_facts(reading, plan.steps)
            with np.errstate(all="ignore"):  # a warning of an overflow would be about the rows
                self._learn(reading.facts, rows, plan, source)

        return _PricedTraining(
            guarantee=guarantee,
            # A fit that does not look at the rows has no steps, and is free.
            event=event if plan.steps else None,
            rows=lambda: reading.fetch(self),
            nobody=lambda: reading.nothing(self),
            learn=learn,
            preview=preview,
            known_rows=known_rows,
        )

    def _note(self, text: str) -> None:
        """Say something about the fit that follows from released numbers alone, once the work is over."""
        self._notes.append(text)

    def _known_rows(self, reading: Reading) -> int | None:
        """Return how many rows were declared, or whoever holds them has."""
        declared = getattr(self, "expected_rows", None)
        return reading.held if declared is None else int(declared)

    def _set_facts(self, reading: Reading, steps: tuple[FitStep, ...]) -> None:
        """Set the attributes that are public: what is known of the columns, and what is paid for."""
        columns = reading.facts.encoding.columns
        self.finds_by_name_ = reading.in_engine
        if reading.in_engine:
            self.n_features_in_ = len(columns)
            self.feature_names_in_ = np.array(columns, dtype=object)
        self.encoding_, self.steps_ = reading.facts.encoding, steps
        self._set_public(reading.facts)

    @classmethod
    def base_parameters(cls) -> tuple[str, ...]:
        """Return the parameters that every estimator has: prices, public facts and whom it protects.

        What else an estimator takes are settings of its method.
        """
        shared = set(PrivateEstimator._get_param_names())
        return (*sorted(shared), "classes", "target_bounds")

    def _check_fitted(self) -> None:
        check_is_fitted(self, "guarantee_")

    def _files(self) -> SavedFits[Any]:
        from cloister.learn.persistence import SAVED_MODELS

        return SAVED_MODELS

    def _caveats(self) -> tuple[Caveat, ...]:
        return caveats_of_steps(self)

    def _learned_state(self) -> dict[str, Any]:
        """Return what a saved model keeps: numbers, texts, arrays, and lists and dictionaries of them."""
        return {name: getattr(self, name) for name in self.learned}

    def _restore(self, state: dict[str, Any]) -> None:
        """Set what `_learned_state` returned, as it was read from a file."""
        for name in self.learned:
            setattr(self, name, state[name])

    def __sklearn_clone__(self) -> Any:  # one like itself, not fitted
        """Return an estimator with the same parameters that pays to the same ledger.

        A copy of a ledger would be a second budget, and a copy of a source would repeat its noise: both are shared.
        """
        given = self.get_params(deep=False)
        made = type(self)(
            **{name: item if name in _SHARED else clone(item, safe=False) for name, item in given.items()}
        )
        for name in ("_metadata_request", "_sklearn_output_config"):
            if hasattr(self, name):
                setattr(made, name, deepcopy(getattr(self, name)))
        return made

    def _assumptions(self) -> tuple[str, ...]:
        return ()

    def _set_public(self, facts: PublicFacts) -> None:
        """Set the learned attributes that are public facts."""

    def _encoded(self, X: Any) -> Floats:
        """Return the features of rows to predict; the estimator must be fitted."""
        check_is_fitted(self, "guarantee_")
        return encode(self, X)

    @abstractmethod
    def _plan(self, facts: PublicFacts, calibration: NoiseCalibration) -> TrainingPlan:
        """Return what the fit will do, from public facts; refuse what cannot be done before anything is paid."""

    @abstractmethod
    def _learn(self, facts: PublicFacts, rows: Any, plan: TrainingPlan, source: RandomSource) -> None:
        """Set the learned attributes, from the rows (see `needs`) through the noise of the plan only."""


@dataclass(kw_only=True, eq=False, repr=False)
class PrivateClassifier(ClassifierMixin, PrivateEstimator):  # type: ignore[misc]  # scikit-learn is not typed
    """The base of classifiers: ``classes`` are public.

    Args:
        classes: every class that may occur.
    """

    target: ClassVar[str] = "classes"
    classes: Any = None
    classes_: NDArray[Any] = field(init=False)

    def _set_public(self, facts: PublicFacts) -> None:
        self.classes_ = np.array(facts.target.classes)

    def predict(self, X: Any) -> NDArray[Any]:
        """Return the most probable class of each row; costs nothing."""
        scores = self._scores(self._encoded(X))
        return np.asarray(self.classes_[scores.argmax(axis=1)])

    @abstractmethod
    def _scores(self, features: Floats) -> Floats:
        """Return for each row a number per class, larger for more probable ones."""


@dataclass(kw_only=True, eq=False, repr=False)
class PrivateRegressor(RegressorMixin, PrivateEstimator):  # type: ignore[misc]  # scikit-learn is not typed
    """The base of regressors: the bounds of the target are public.

    Args:
        target_bounds: the smallest and largest value of y.
    """

    target: ClassVar[str] = "number"
    target_bounds: Any = None


@dataclass(kw_only=True, eq=False, repr=False)
class PrivateTransformer(TransformerMixin, PrivateEstimator):  # type: ignore[misc]  # scikit-learn is not typed
    """The base of transformers."""


@dataclass(kw_only=True, eq=False, repr=False)
class PrivateClusterer(ClusterMixin, PrivateEstimator):  # type: ignore[misc]  # scikit-learn is not typed
    """The base of clusterings: the labels of the rows learned from are not kept, since nothing protects them."""

    def fit_predict(self, X: Any, y: Any = None, **_: Any) -> NDArray[Any]:  # noqa: ARG002  # scikit-learn's signature
        """Refuse: labels of the rows that were learned from are about these rows.

        Raises:
            UnsafeMechanismError: always.
        """
        raise UnsafeMechanismError(
            "The labels of the rows that are learned from are not private.",
            fix="call fit, and predict for rows that are yours to label.",
        )
