"""Model inversion: make up the record of which a model is surest that it belongs to a class.

With the parameters of a linear model the attacker climbs along the gradient of the confidence; with answers only, along
differences between answers (Fredrikson, Jha and Ristenpart 2015). A penalty keeps the made-up record near a public
start. What comes out resembles the average of the class: no person, unless a class is a person, as with faces.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from cloister.attacks.details import HELD, AttackDetails, Row
from cloister.attacks.models._victim import Integers, Labeled, Victim, as_matrix, linear_layer, read_labeled
from cloister.attacks.result import AttackResult
from cloister.core import validation
from cloister.core.confidence import Floats, binomial_interval
from cloister.core.exact import Number
from cloister.errors import ParameterError

if TYPE_CHECKING:
    from cloister.plotting import Figure

__all__ = ["InversionDetails", "model_inversion"]

_DIFFERENCE = 0.05
"""How far answers-only attackers change a feature, as a share of its bounds."""
_STEP = 0.05
_TINY = 1e-300
_ADVICE = (
    "do not train models in which a class is one person, or few people, on records that must stay secret",
    "answer with labels instead of confidences, and limit how many questions one caller may ask",
    "train with differential privacy at the level of the class, which a model of single persons cannot survive",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class InversionDetails(AttackDetails):
    """Success is the share of classes whose made-up record looks more like its own class than like any other.

    Attributes:
        access: "gradient" or "queries".
        correlations: for each class, how the made-up record goes together with the average of the class, both as
            deviations: from the start, and from the average of all records.
        nearest: for each class, how it goes together with the single record of the class that it resembles most; above
            the correlation with the average only where the model remembers a person rather than a class.
        inverted: the made-up records, class by class; custodian only.
    """

    schema: ClassVar[str] = "cloister.inversion/1"
    further: ClassVar[tuple[str, ...]] = ("mean_correlation",)

    access: str
    correlations: tuple[float, ...]
    nearest: tuple[float, ...]
    inverted: Any = field(repr=False, metadata=HELD)

    @property
    def mean_correlation(self) -> float:
        """Return the mean of the correlations with the averages of the classes."""
        return float(np.mean(self.correlations))

    def remark(self, _: AttackResult, /) -> str:
        return (
            f" The made-up records correlate with the averages of their classes by {self.mean_correlation:.2f} in the "
            f"mean, and by {min(self.correlations):.2f} at least. Where a class is one person, that is this person's "
            "record."
        )

    def tell(self, _: AttackResult, /) -> Iterator[Row]:
        """Return how alike the made-up records are to their classes and to single records."""
        yield "correlation with the class average", f"{self.mean_correlation:.3f} in the mean"
        yield "least of all classes", f"{min(self.correlations):.3f}"
        yield "correlation with the nearest record", f"{float(np.mean(self.nearest)):.3f} in the mean"

    def draw(self, _: AttackResult, /) -> Figure:
        """Return a chart of the correlation of each made-up record with its class."""
        from cloister.plotting import bars_with_errors

        return bars_with_errors(
            [f"class {number}" for number in range(1, len(self.correlations) + 1)],
            list(self.correlations),
            [None] * len(self.correlations),
            title="How made-up records resemble their classes",
            x="class",
            y="correlation with the average",
            subtitle=f"attacker with {self.access}",
        )


def model_inversion(
    model: Any,
    reference: Any,
    *,
    bounds: object,
    target: str | None = None,
    access: str = "gradient",
    start: Any = None,
    strength: object = 1.0,
    steps: int = 200,
    confidence: Number = 0.95,
) -> AttackResult[InversionDetails]:
    """Make up a record for each class, and see how much it resembles the class.

    Args:
        model: a fitted classifier with ``predict_proba`` that takes numbers.
        reference: records of the training data with labels, for scoring only: a pair (features, labels), or a table
            with ``target``.
        bounds: public bounds (low, high) of all features.
        target: the column of labels, where a table is given.
        access: "gradient" for attackers who hold a linear or logistic model, "queries" for those who may only ask.
        start: a public record to start from, such as a published average; by default the middle of the bounds.
        strength: how strongly the record is drawn back to the start.
        steps: how far the attacker climbs.
        confidence: of the interval.

    Raises:
        ParameterError: if the model has no gradient, or records, labels and settings do not belong together.
    """
    validation.check_choice(access, name="access", allowed=("gradient", "queries"))
    low, high = (float(end) for end in validation.check_bounds(bounds))
    pull = float(validation.check_non_negative(strength, name="strength"))
    count = validation.check_count(steps, name="steps", at_least=1)
    level = float(validation.check_confidence(confidence))
    rows = read_labeled(reference, target=target, what="reference")
    records = as_matrix(rows.features, what="reference")
    victim = Victim(model)
    origin = _start(start, records.shape[1], low, high)
    classes = victim.classes(victim.confidences(origin[None, :]).shape[1])
    climb = _climbing(victim, access, np.linspace(np.full_like(origin, low), origin, 4), width=high - low)
    points = np.tile(origin, (len(classes), 1))
    for _ in range(count):
        slope = climb(points, np.arange(len(classes))) * (high - low) - pull * (points - origin) / (high - low)
        points = np.clip(points + _STEP * (high - low) * slope, low, high)
    return _result(victim, points - origin, points, Labeled(records, rows.labels), access=access, confidence=level)


def _start(start: Any, width: int, low: float, high: float) -> Floats:
    if start is None:
        return np.full(width, (low + high) / 2)
    found = as_matrix([start] if np.ndim(start) == 1 else start, what="start")
    if found.shape != (1, width):
        raise ParameterError("The start has other features than the records.", fix="give one number per feature.")
    return np.asarray(np.clip(found[0], low, high))


def _climbing(victim: Victim, access: str, points: Floats, *, width: float) -> Callable[[Floats, Integers], Floats]:
    """Return how the log confidence in a class changes with each feature, for several points at once."""
    if access == "gradient":
        layer = linear_layer(victim.model, points)
        if layer is None:
            raise ParameterError(
                "The model is no linear or logistic classifier whose gradient is known.", fix='use access="queries".'
            )
        return layer.gradients
    reach, features = _DIFFERENCE * width, points.shape[1]

    def differences(points: Floats, places: Integers) -> Floats:
        slopes = np.empty_like(points)
        for line, (point, place) in enumerate(zip(points, places, strict=True)):
            asked = np.concatenate([point + reach * np.eye(features), point - reach * np.eye(features)])
            told = np.log(np.maximum(victim.confidences(asked)[:, place], _TINY))
            slopes[line] = (told[:features] - told[features:]) / (2 * reach)
        return slopes

    return differences


def _result(
    victim: Victim, moved: Floats, points: Floats, rows: Labeled, *, access: str, confidence: float
) -> AttackResult[InversionDetails]:
    classes = victim.classes(len(points))
    known = [place for place, name in enumerate(classes) if (rows.labels == name).any()]
    if len(known) < 2:
        raise ParameterError("The reference has fewer than two classes.", fix="give records of every class.")
    deviations = rows.features - rows.features.mean(axis=0)
    means = np.stack([deviations[rows.labels == classes[place]].mean(axis=0) for place in known])
    alike = _correlations(moved[known], means)
    right = int((alike.argmax(axis=1) == np.arange(len(known))).sum())
    nearest = [
        float(_correlations(moved[place][None, :], deviations[rows.labels == classes[place]]).max()) for place in known
    ]
    return AttackResult(
        attack="model inversion",
        assumption="holds the model and climbs along its gradient"
        if access == "gradient"
        else "asks the model about made-up records and sees its confidences",
        success=right / len(known),
        baseline=1 / len(known),
        interval=binomial_interval(right, len(known), confidence=confidence),
        confidence=confidence,
        trials=len(known),
        queries=victim.queries,
        mitigation=_ADVICE,
        details=InversionDetails(
            access=access,
            correlations=tuple(np.diag(alike).tolist()),
            nearest=tuple(nearest),
            inverted=points,
        ),
    )


def _correlations(first: Floats, second: Floats) -> Floats:
    """Return the correlation of each row with each other one; 0 where a row does not vary."""
    parts = []
    for rows in (first, second):
        centered = rows - rows.mean(axis=1, keepdims=True)
        length = np.sqrt((centered**2).sum(axis=1, keepdims=True))
        parts.append(centered / np.where(length > 0, length, 1.0))
    return np.asarray(parts[0] @ parts[1].T)
