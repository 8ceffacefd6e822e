"""Model extraction: make a copy of a model by asking it, and see how often the copy agrees.

A linear or logistic model with d features has d + 1 unknowns per class, and every answer with a confidence is an
equation in them: d + 1 questions are enough (Tramer et al. 2016). Rounded confidences are equations with small errors,
which more questions average away; the attacker asks where rounding hurts least, near confidences of one half. Other
models are copied by training another one on their answers, which is called distillation.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy import special

from cloister.anonymize.operations.noise import standard_normals, uniforms
from cloister.attacks.details import HELD, AttackDetails, Row, fact, keyed
from cloister.attacks.models._victim import LinearLayer, Victim, as_matrix, linear_layer, seed_of
from cloister.attacks.result import AttackResult
from cloister.core import validation
from cloister.core.confidence import Floats, binomial_interval
from cloister.core.exact import Number
from cloister.core.lazy_imports import need_learning
from cloister.core.random import RandomSource, RandomState, random_source
from cloister.core.wordings import percent
from cloister.errors import ParameterError

if TYPE_CHECKING:
    from cloister.plotting import Figure

__all__ = ["ExtractionDetails", "model_extraction"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ExtractionDetails(AttackDetails):
    """Success is how often the copy says the same as the model; for numbers, within 1 % of their range.

    Attributes:
        method: "equations" or "distillation".
        decimals: to how many digits confidences were rounded.
        fidelity: (questions asked, share of equal answers), for more and more questions.
        coefficient_error: the largest error of a coefficient, where the model is linear and shows them.
        copy: the last copy, a function from rows to answers; custodian only.
    """

    schema: ClassVar[str] = "cloister.extraction/1"

    method: str
    decimals: int | None
    fidelity: tuple[tuple[int, float], ...] = field(metadata=fact(write=keyed("queries", "agreement")))
    coefficient_error: float | None
    copy: Any = field(repr=False, metadata=HELD)

    def conclude(self, result: AttackResult, /) -> str:
        """Return how well the model is copied."""
        asked, share = self.fidelity[-1]
        rates = f"after {asked:,} questions a copy gives the same answer in {percent(share)} of cases"
        constant = f"a constant answer in {percent(result.baseline)}"
        if not result.succeeded:
            return f"The model was not copied: {rates}, {constant}. Others may do better."
        exact = self.coefficient_error is not None and self.coefficient_error < 1e-6
        return f"The model can be copied: {rates}, {constant}." + (" Its coefficients are known exactly." * exact)

    def tell(self, _: AttackResult, /) -> Iterator[Row]:
        """Return the agreement after more and more questions, and the error of coefficients."""
        for asked, share in self.fidelity:
            yield f"after {asked:,} questions", percent(share)
        if self.coefficient_error is not None:
            yield "coefficient error", f"{self.coefficient_error:.2g}"

    def draw(self, result: AttackResult, /) -> Figure:
        """Return a chart of the agreement against the number of questions."""
        from cloister.plotting import lines

        counts = [count for count, _ in self.fidelity]
        ends = (min(counts), max(counts)) if len(set(counts)) > 1 else (counts[0], counts[0] + 1)
        return lines(
            {
                "copy": [(count, 100 * share) for count, share in self.fidelity],
                "constant answer": [(end, 100 * result.baseline) for end in ends],
            },
            title="How well a model is copied",
            x="questions asked",
            y="same answers, %",
            log_x=True,
            subtitle=self.method if self.decimals is None else f"{self.method}, rounded to {self.decimals} digits",
        )


METHODS = ("equations", "distillation")
_TEST_ROWS = 1000
_WIDEST = 1.5
"""How many units of the logit the attacker's further questions are apart."""
_CLOSE = 0.01
_RIDGE = 1e-4
_ADVICE = (
    "count and limit the questions of each caller, and watch for questions that no customer would ask",
    "rounding confidences does not help against a linear model: more questions average it away",
    "answer with labels only, which makes copies dearer; a copied private model is as private as the model",
)

Copy = Callable[[Floats], NDArray[Any]]


def model_extraction(
    model: Any,
    *,
    bounds: object,
    features: int | None = None,
    queries: Sequence[int] = (),
    method: str = "equations",
    decimals: int | None = None,
    test: Any = None,
    surrogate: Any = None,
    confidence: Number = 0.95,
    random_state: RandomState = None,
) -> AttackResult[ExtractionDetails]:
    """Copy a model by asking it, and see how often the copy says the same.

    Args:
        model: a fitted model of numbers: a classifier with ``predict_proba``, or a regression.
        bounds: public bounds (low, high) of all features, within which the attacker asks.
        features: how many there are; by default as the model says.
        queries: after how many questions the copy is tried; by default after d + 1, 2 (d + 1) and 20 (d + 1) for
            equations, after 100, 1,000 and 5,000 for distillation.
        method: "equations" for linear and logistic models, "distillation" for all others.
        decimals: to how many digits confidences are rounded before the attacker sees them.
        test: rows on which copy and model are compared; by default drawn within the bounds.
        surrogate: the estimator that distillation trains; by default a forest.
        confidence: of the interval.
        random_state: None; an integer is for tests.

    Raises:
        ParameterError: if the model cannot be attacked like this, or the settings do not fit.
    """
    validation.check_choice(method, name="method", allowed=METHODS)
    low, high = (float(end) for end in validation.check_bounds(bounds))
    level = float(validation.check_confidence(confidence))
    digits = None if decimals is None else validation.check_count(decimals, name="decimals")
    source, victim = random_source(random_state), Victim(model)
    width = validation.check_count(
        getattr(model, "n_features_in_", None) if features is None else features, name="features", at_least=1
    )
    rows = as_matrix(test, what="test") if test is not None else _draw_points(source, _TEST_ROWS, width, low, high)
    if rows.shape[1] != width:
        raise ParameterError("The test rows have other features than the model.", fix=f"give {width} columns.")
    numbers = _check_queries(queries, width, method)
    truth = _predict(Victim(model), rows)
    asked = _RoundingInterface(victim, digits)
    copies: list[tuple[int, Copy]]
    layer = None
    if method == "equations":
        copies, layer = _solve_equations(asked, numbers, width=width, low=low, high=high, source=source)
    else:
        copies = _distill(asked, numbers, width=width, low=low, high=high, surrogate=surrogate, source=source)
    fidelity = tuple((count, _agreement(copy(rows), truth)) for count, copy in copies)
    hits = round(fidelity[-1][1] * len(rows))
    return AttackResult(
        attack=f"model extraction ({method})",
        assumption="asks the model about records of choice and sees its confidences"
        if victim.is_confident
        else "asks the model about records of choice and sees its answers",
        success=fidelity[-1][1],
        baseline=_constant(truth),
        interval=binomial_interval(hits, len(rows), confidence=level),
        confidence=level,
        trials=len(rows),
        queries=victim.queries,
        mitigation=_ADVICE,
        details=ExtractionDetails(
            method=method,
            decimals=digits,
            fidelity=fidelity,
            coefficient_error=None if layer is None else _error(layer, model, rows),
            copy=copies[-1][1],
        ),
    )


class _RoundingInterface:
    """The victim behind an interface that rounds."""

    def __init__(self, victim: Victim, decimals: int | None) -> None:
        self.victim, self.decimals = victim, decimals

    def __call__(self, rows: Floats) -> Floats:
        """Return the confidence in each class as it is shown, or a number."""
        if self.victim.is_confident:
            return self._round(self.victim.confidences(rows))
        return self._round(np.asarray(self.victim.predictions(rows), dtype=np.float64))[:, None]

    def _round(self, told: Floats) -> Floats:
        return told if self.decimals is None else np.round(told, self.decimals)


def _solve_equations(
    ask: _RoundingInterface, numbers: list[int], *, width: int, low: float, high: float, source: RandomSource
) -> tuple[list[tuple[int, Copy]], LinearLayer]:
    """Return the copies after so many questions, and the parameters of the last one."""
    middle, reach = (low + high) / 2, (high - low) / 2
    # As many points in general position as there are unknowns for each class.
    points = np.concatenate([np.zeros((1, width)), np.eye(width)])
    told = ask(middle + reach * points)
    copies: list[tuple[int, Copy]] = []
    for number in numbers:
        layer = _fit_layer(points, told, middle, reach)
        if number > len(points):
            further = _useful(layer, number - len(points), middle=middle, reach=reach, source=source)
            points, told = np.concatenate([points, further]), np.concatenate([told, ask(middle + reach * further)])
            layer = _fit_layer(points, told, middle, reach)
        copies.append((len(points), _copy(layer, ask.victim)))
    return copies, layer


def _fit_layer(points: Floats, told: Floats, middle: float, reach: float) -> LinearLayer:
    """Solve for weights and biases against the first class, or of a regression."""
    design = np.column_stack([points, np.ones(len(points))])
    if told.shape[1] == 1:
        solution = np.linalg.lstsq(design, told, rcond=None)[0].T
    elif told.shape[1] > 2 and (told <= 0).any():
        solution = _most_likely(design, told)
    else:
        solution = _from_odds(design, told)
    # Points were counted from the middle, in units of the reach, which is undone here.
    weights = np.asarray(solution[:, :-1] / reach, dtype=np.float64)
    return LinearLayer(weights, solution[:, -1] - weights.sum(axis=1) * middle)


def _from_odds(design: Floats, told: Floats) -> Floats:
    """Solve for the log odds; those near even ones count more, since rounding moves them less."""
    with np.errstate(divide="ignore"):
        odds = np.log(told[:, 1:]) - np.log(told[:, :1])
    found = []
    for column in odds.T:
        finite = np.isfinite(column)
        sure = 1 / (2 + np.exp(np.minimum(np.abs(column[finite]), 500.0)))
        weight = np.ones(len(sure)) if len(sure) <= design.shape[1] else sure
        found.append(np.linalg.lstsq(design[finite] * weight[:, None], column[finite] * weight, rcond=None)[0])
    return np.array(found)


def _most_likely(design: Floats, told: Floats) -> Floats:
    """Return the parameters under which the shown confidences are most likely, where rounding made some of them 0."""
    from scipy import optimize

    shares = told / told.sum(axis=1, keepdims=True)
    shape = (told.shape[1] - 1, design.shape[1])

    def loss(flat: Floats) -> tuple[float, Floats]:
        scores = np.column_stack([np.zeros(len(design)), design @ flat.reshape(shape).T])
        log = special.log_softmax(scores, axis=1)
        slope = (np.exp(log) - shares)[:, 1:].T @ design
        return float(-(shares * log).sum() + _RIDGE * flat @ flat), (slope + 2 * _RIDGE * flat.reshape(shape)).ravel()

    found = optimize.minimize(loss, np.zeros(shape[0] * shape[1]), jac=True, method="L-BFGS-B")
    return np.asarray(found.x, dtype=np.float64).reshape(shape)


def _useful(layer: LinearLayer, count: int, *, middle: float, reach: float, source: RandomSource) -> Floats:
    """Return points within the bounds whose odds, as far as known, are spread around even ones."""
    width, weights = layer.weights.shape[1], layer.weights * reach
    offsets = layer.biases + layer.weights.sum(axis=1) * middle
    nearest = -np.linalg.lstsq(weights, offsets, rcond=None)[0]
    steps = standard_normals(source, count * width).reshape(count, width)
    spread = np.sqrt((weights**2).sum(axis=1).max())
    # Where even odds are not known yet, or lie outside of the bounds, points are spread everywhere.
    if not np.isfinite(nearest).all() or np.abs(nearest).max() > 1:
        nearest = np.asarray(2 * uniforms(source, count * width).reshape(count, width) - 1)
    return np.asarray(np.clip(nearest + steps * min(1.0, _WIDEST / max(float(spread), 1e-12)), -1, 1))


def _copy(layer: LinearLayer, victim: Victim) -> Copy:
    if not victim.is_confident:
        return lambda rows: layer.scores(rows)[:, 0]
    classes = victim.classes(len(layer.biases) + 1)
    return lambda rows: np.asarray(classes[np.column_stack([np.zeros(len(rows)), layer.scores(rows)]).argmax(axis=1)])


def _distill(
    ask: _RoundingInterface,
    numbers: list[int],
    *,
    width: int,
    low: float,
    high: float,
    surrogate: Any,
    source: RandomSource,
) -> list[tuple[int, Copy]]:
    need_learning("Distillation")
    from sklearn.base import clone
    from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor

    points = _draw_points(source, numbers[-1], width, low, high)
    told = _predict(ask.victim, points)
    kind = RandomForestRegressor if told.dtype.kind == "f" else RandomForestClassifier
    copies: list[tuple[int, Copy]] = []
    for number in numbers:
        student = kind(random_state=seed_of(source)) if surrogate is None else clone(surrogate)
        copies.append((number, student.fit(points[:number], told[:number]).predict))
    return copies


def _check_queries(queries: Sequence[int], width: int, method: str) -> list[int]:
    unknowns = width + 1
    usual = (unknowns, 2 * unknowns, 20 * unknowns) if method == "equations" else (100, 1000, 5000)
    numbers = sorted(validation.check_count(number, name="each of queries", at_least=1) for number in queries or usual)
    if method == "equations" and numbers[0] < unknowns:
        raise ParameterError(
            f"There are {unknowns} unknowns, more than questions.", fix=f"ask at least {unknowns} questions."
        )
    return numbers


def _draw_points(source: RandomSource, rows: int, width: int, low: float, high: float) -> Floats:
    return np.asarray(low + (high - low) * uniforms(source, rows * width).reshape(rows, width))


def _predict(victim: Victim, rows: Floats) -> NDArray[Any]:
    return victim.predictions(rows)


def _agreement(copied: NDArray[Any], truth: NDArray[Any]) -> float:
    if truth.dtype.kind != "f":
        return float((copied == truth).mean())
    return float((np.abs(copied - truth) <= _CLOSE * _spread(truth)).mean())


def _constant(truth: NDArray[Any]) -> float:
    """Return how often the best constant answer is right."""
    if truth.dtype.kind != "f":
        return float(np.unique(truth, return_counts=True)[1].max() / len(truth))
    return float((np.abs(truth - np.median(truth)) <= _CLOSE * _spread(truth)).mean())


def _spread(truth: NDArray[Any]) -> float:
    return float(truth.max() - truth.min()) or 1.0


def _error(layer: LinearLayer, model: Any, rows: Floats) -> float | None:
    """Return the largest error of a coefficient, where the model is a linear one that shows them."""
    if hasattr(model, "predict_proba"):
        true = linear_layer(model, rows[:8])
        if true is None:
            return None
        weights, biases = true.weights[1:] - true.weights[0], true.biases[1:] - true.biases[0]
    elif hasattr(model, "coef_"):
        weights, biases = np.atleast_2d(model.coef_), np.atleast_1d(model.intercept_)
    else:
        return None
    return float(max(np.abs(layer.weights - weights).max(), np.abs(layer.biases - biases).max()))
