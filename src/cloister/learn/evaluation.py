"""How well a model does on rows that it has not seen, beside the simplest guess.

`evaluate` is exact and for whoever holds the rows: a figure computed from protected rows is itself a release, and this
one promises nothing. `evaluate_privately` pays for a figure that may be passed on, and `count_predictions_privately`
for the number of rows that a model puts into each class.

Privacy of `evaluate_privately`: claim epsilon-DP for one row added or removed. A row adds one to one of 2C counts, of
rows of each of C public classes that the model predicts rightly or wrongly: 1 in L1. Everything else follows from the
noisy counts. Persons with several rows and replaced rows are groups of rows, as in `NoiseCalibration`. Predictions are
counted in C cells, in the same way. All of that holds whatever the model is: a row is predicted by itself, and a model
that fails on a row, or says anything but one class of it, predicts it wrongly, or in none of the cells.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from cloister.accounting.payment import finish, pay
from cloister.core.exact import Number
from cloister.core.guarantees import Adjacency, DifferentialPrivacy, Guarantee, NoGuarantee
from cloister.core.random import RandomState, caveats_of, random_source
from cloister.core.result import Result
from cloister.core.whole_rows import Floats, exact_product
from cloister.errors import ParameterError
from cloister.learn._inputs import no_rows, prepare_labeled
from cloister.learn._rows import WeightedRows
from cloister.mechanisms.calibration import FitStep, NoiseCalibration
from cloister.mechanisms.step_noise import LaplaceSteps

__all__ = [
    "ModelEvaluation",
    "PredictedCounts",
    "_CountTerms",
    "count_predictions_privately",
    "evaluate",
    "evaluate_privately",
    "predict_alone",
]

_EXACT = "it is computed from the rows as they are"


@dataclass(frozen=True, kw_only=True)
class ModelEvaluation(Result):
    """A figure about a model, beside that of the simplest guess.

    Attributes:
        measure: "accuracy", the share of rows predicted rightly; or "r2", the share of the variance that is explained.
        value: the figure; None where there are too few rows for one.
        baseline: that of always guessing the most frequent class, or the mean.
        rows: on how many rows, exactly or as far as noise shows it.
    """

    schema: ClassVar[str] = "cloister.evaluation/1"

    measure: str
    value: float | None
    baseline: float | None
    rows: int
    guarantee: Guarantee

    def __str__(self) -> str:
        if self.value is None or self.baseline is None:
            return f"{self.measure}: not known, too few rows"
        return f"{self.measure} {self.value:.4f} (the simplest guess: {self.baseline:.4f}) on {self.rows} rows"

    def _fields(self) -> dict[str, Any]:
        return {"measure": self.measure, "value": self.value, "baseline": self.baseline, "rows": self.rows}


@dataclass(frozen=True, kw_only=True)
class PredictedCounts(Result):
    """How many rows a model puts into each class, with noise.

    Attributes:
        classes: the classes.
        counts: the noisy number of rows of each; may be below zero.
        deviation: the standard deviation of the noise on each.
    """

    schema: ClassVar[str] = "cloister.predicted_counts/1"

    classes: tuple[Any, ...]
    counts: tuple[int, ...]
    deviation: float
    guarantee: Guarantee

    def __str__(self) -> str:
        return ", ".join(f"{label}: {count}" for label, count in zip(self.classes, self.counts, strict=True))

    def _fields(self) -> dict[str, Any]:
        return {"classes": list(self.classes), "counts": list(self.counts), "deviation": self.deviation}


def evaluate(model: Any, X: Any, y: Any) -> ModelEvaluation:
    """Return how well a fitted model does, exactly: for whoever holds the rows, not for release.

    Args:
        model: a fitted classifier or regressor.
        X: an array, a data frame or a `cloister.Table`.
        y: the true target, one per row; for a table, the name of its column.
    """
    guarantee = NoGuarantee(reason=_EXACT)
    if model.target == "classes":
        return _accuracy(_hits(model, prepare_labeled(model, X, _truth(y))()).astype(np.float64), guarantee)
    _check_target(model)
    rows = prepare_labeled(model, X, _truth(y))()
    truth, weights = np.asarray(rows.target, dtype=np.float64), rows.weights
    total = int(weights.sum())
    spread = float((weights * (truth - np.average(truth, weights=weights)) ** 2).sum()) if total else 0.0
    if not spread:
        return ModelEvaluation(measure="r2", value=None, baseline=None, rows=total, guarantee=guarantee)
    missed = float((weights * (truth - model.predict(rows)) ** 2).sum())
    return ModelEvaluation(measure="r2", value=1 - missed / spread, baseline=0.0, rows=total, guarantee=guarantee)


def evaluate_privately(
    model: Any,
    X: Any,
    y: Any,
    *,
    epsilon: Number,
    ledger: Any = None,
    dataset: str | None = None,
    analyst: str | None = None,
    unit: str = "row",
    max_rows_per_unit: int = 1,
    adjacency: Adjacency | str = "add_remove",
    random_state: RandomState = None,
) -> ModelEvaluation:
    """Return how well a fitted classifier does on protected rows, for the price of epsilon.

    Args:
        model: a fitted classifier.
        X: an array, a data frame or a `cloister.Table`.
        y: the true target, one per row; for a table, the name of its column.
        epsilon: what it may cost.
        ledger: a ledger that has an account for the dataset; without one, nobody keeps count.
        dataset: the account in the ledger.
        analyst: who pays, where the ledger limits analysts.
        unit: what is protected: "row", or the column of a table that names a person.
        max_rows_per_unit: how many rows of a person are used.
        adjacency: "add_remove" or "replace".
        random_state: None; an integer is for tests, and breaks the promise.
    """
    terms = _CountTerms(
        epsilon=epsilon,
        ledger=ledger,
        dataset=dataset,
        analyst=analyst,
        unit=unit,
        max_rows_per_unit=max_rows_per_unit,
        adjacency=adjacency,
        random_state=random_state,
    )
    noisy, guarantee = terms.counted(model, X, _truth(y), count=_hits, purpose=f"evaluate {_classifier(model)}")
    return _accuracy(np.maximum(noisy.astype(np.float64), 0.0), guarantee)


def count_predictions_privately(
    model: Any,
    X: Any,
    *,
    epsilon: Number,
    ledger: Any = None,
    dataset: str | None = None,
    analyst: str | None = None,
    unit: str = "row",
    max_rows_per_unit: int = 1,
    adjacency: Adjacency | str = "add_remove",
    random_state: RandomState = None,
) -> PredictedCounts:
    """Return how many protected rows a fitted classifier puts into each class, for the price of epsilon.

    Args:
        model: a fitted classifier.
        X: an array, a data frame or a `cloister.Table`.
        epsilon: what it may cost.
        ledger: a ledger that has an account for the dataset; without one, nobody keeps count.
        dataset: the account in the ledger.
        analyst: who pays, where the ledger limits analysts.
        unit: what is protected: "row", or the column of a table that names a person.
        max_rows_per_unit: how many rows of a person are used.
        adjacency: "add_remove" or "replace".
        random_state: None; an integer is for tests, and breaks the promise.
    """
    terms = _CountTerms(
        epsilon=epsilon,
        ledger=ledger,
        dataset=dataset,
        analyst=analyst,
        unit=unit,
        max_rows_per_unit=max_rows_per_unit,
        adjacency=adjacency,
        random_state=random_state,
    )
    noisy, guarantee = terms.counted(model, X, None, count=_predictions, purpose=f"predict with {_classifier(model)}")
    return PredictedCounts(
        classes=tuple(item.item() for item in model.classes_),
        counts=tuple(int(item) for item in noisy.ravel()),
        deviation=terms.noise.deviation,
        guarantee=guarantee,
    )


@dataclass(frozen=True, kw_only=True)
class _CountTerms:
    """The terms of a count of protected rows: its price, who pays it, and who is protected.

    Attributes are those of `evaluate_privately`.
    """

    epsilon: Number
    ledger: Any
    dataset: str | None
    analyst: str | None
    unit: str
    max_rows_per_unit: int
    adjacency: Adjacency | str
    random_state: RandomState

    @cached_property
    def calibration(self) -> NoiseCalibration:
        """Return what may be spent, and for whom."""
        return NoiseCalibration.of(
            epsilon=self.epsilon,
            adjacency=self.adjacency,
            unit=self.unit,
            max_rows_per_unit=self.max_rows_per_unit,
        )

    @property
    def noise(self) -> LaplaceSteps:
        """Return the noise of counts of which a row adds one to one."""
        return self.calibration.laplace(Fraction(1), sensitivity=1)

    def counted(
        self, model: Any, X: Any, y: Any, *, count: Callable[[Any, WeightedRows], Any], purpose: str
    ) -> tuple[Any, DifferentialPrivacy]:
        """Return noisy counts, of which a row adds one to one, and what they promise; refuse, pay, then look."""
        whom: dict[str, Any] = {"unit": self.calibration.unit, "max_rows_per_unit": self.calibration.max_rows_per_unit}
        fetch = prepare_labeled(model, X, y, **whom)
        source, guarantee = random_source(self.random_state), self.calibration.guarantee()
        pay(
            guarantee,
            self.calibration.event((FitStep("rows in each cell", self.noise.event),)),
            ledger=self.ledger,
            dataset=self.dataset,
            analyst=self.analyst,
            purpose=purpose,
        )
        noisy = finish(
            lambda: self.noise.add(count(model, fetch()), source),
            nothing=lambda: self.noise.add(count(model, no_rows(model, X, y, **whom)), source),
        )
        return noisy, guarantee.with_caveat(*caveats_of(source))


def _truth(y: Any) -> Any:
    if y is None:
        raise ParameterError("There is no truth to compare with.", fix="give y, or the name of its column.")
    return y


def _classifier(model: Any) -> str:
    if model.target != "classes":
        raise ParameterError(
            "Only classifiers are evaluated privately.", fix="use evaluate on rows that are yours, and keep the figure."
        )
    return type(model).__name__


def predict_alone(model: Any, rows: WeightedRows) -> Any:
    """Return the prediction of each distinct row, made from that row alone.

    Matrix products of many rows may round a row differently when others come or go, and a tie could then fall to
    another side: so that one row changes one count only, each is predicted by itself.
    """
    single = np.ones(1, dtype=np.int64)
    found = [
        model.predict(WeightedRows(rows.features[place : place + 1], None, single))
        for place in range(len(rows.weights))
    ]
    return np.concatenate(found) if found else np.zeros(0)


def _places(model: Any, rows: WeightedRows) -> NDArray[np.int64]:
    """Return the position of the class of each distinct row, predicted from that row alone; -1 if it is not one.

    Anybody may bring a model. Neither what it says nor an error may let a row count twice, or be seen to be there.
    """
    with np.errstate(all="ignore"):
        return np.array([_place(model, rows.features[at : at + 1]) for at in range(len(rows.weights))], dtype=np.int64)


def _place(model: Any, features: Floats) -> int:
    try:
        found = np.asarray(model.predict(WeightedRows(features, None, np.ones(1, dtype=np.int64))))
        same = np.flatnonzero(model.classes_ == found[0]) if found.shape == (1,) else found[:0]
        return int(same[0]) if len(same) else -1
    except Exception:  # noqa: BLE001  # a failure would tell that there is such a row
        return -1


def _hits(model: Any, rows: WeightedRows) -> Any:
    """Return the number of rows of each class that are predicted wrongly and rightly."""
    count = len(model.classes_)
    truth = np.asarray(rows.target, dtype=np.int64)
    right = _places(model, rows) == truth
    cells = (truth[:, None] == np.arange(count)).astype(np.float64)
    sides = np.stack([~right, right], axis=1).astype(np.float64)
    return exact_product(cells, sides, rows.weights, most=1)


def _predictions(model: Any, rows: WeightedRows) -> Any:
    """Return the number of rows that are put into each class."""
    cells = (_places(model, rows)[:, None] == np.arange(len(model.classes_))).astype(np.float64)
    return exact_product(cells, np.ones((len(cells), 1)), rows.weights, most=1)


def _accuracy(counts: Any, guarantee: Guarantee) -> ModelEvaluation:
    total = float(counts.sum())
    value, baseline = None, None
    if total > 0:
        value, baseline = float(counts[:, 1].sum()) / total, float(counts.sum(axis=1).max()) / total
    return ModelEvaluation(measure="accuracy", value=value, baseline=baseline, rows=round(total), guarantee=guarantee)


def _check_target(model: Any) -> None:
    if model.target != "number":
        raise ParameterError(f"{type(model).__name__} predicts no target.", fix="evaluate a classifier or a regressor.")
