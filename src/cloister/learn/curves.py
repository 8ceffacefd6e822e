"""Learning curves over epsilon: what a model would be worth at each price, for whoever holds the rows.

Every point trains models on the protected rows and compares them with other rows, exactly. Nothing of that is paid for,
so nothing of it may be passed on: the curve helps a custodian to choose an epsilon, and choosing by it reveals a
little of the rows besides. Where that matters, draw it from public or made-up rows of the same kind.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any, ClassVar

from sklearn.base import clone

from cloister.core import exact, validation
from cloister.core.guarantees import Guarantee, NoGuarantee
from cloister.core.result import Result
from cloister.errors import ParameterError, ParameterTypeError, PrivacyParameterWarning
from cloister.learn.evaluation import evaluate
from cloister.plotting import Figure, lines

__all__ = ["LearningCurve", "learning_curve"]

_REASON = "it shows exact figures of models that were not paid for"


@dataclass(frozen=True, kw_only=True)
class LearningCurve(Result):
    """How well models do at each epsilon.

    Attributes:
        measure: "accuracy" or "r2".
        epsilons: the prices, small to large.
        values: at each price, the figure of each model.
        baseline: that of the simplest guess.
    """

    schema: ClassVar[str] = "cloister.learning_curve/1"

    measure: str
    epsilons: tuple[float, ...]
    values: tuple[tuple[float, ...], ...]
    baseline: float
    guarantee: Guarantee

    def __str__(self) -> str:
        shown = ", ".join(f"{value:.3f} at {epsilon:g}" for epsilon, value in self.medians)
        return f"{self.measure} {shown} (the simplest guess: {self.baseline:.3f}); not for release"

    @property
    def medians(self) -> tuple[tuple[float, float], ...]:
        """Return the median at each price."""
        return tuple((epsilon, median(found)) for epsilon, found in zip(self.epsilons, self.values, strict=True))

    def plot(self) -> Figure:
        """Return the curve, with the smallest and largest figure behind it, and the simplest guess below."""
        band = [(epsilon, min(found), max(found)) for epsilon, found in zip(self.epsilons, self.values, strict=True)]
        guess = [(epsilon, self.baseline) for epsilon in self.epsilons]
        return lines(
            {"private model": list(self.medians), "simplest guess": guess},
            title=f"What each epsilon is worth: {self.measure}",
            x="epsilon",
            y=self.measure,
            subtitle="Exact figures, for whoever holds the rows; not private, not for release.",
            bands={"private model": band},
            log_x=len(self.epsilons) > 1,
            from_zero=False,
        )

    def _fields(self) -> dict[str, Any]:
        values = [list(found) for found in self.values]
        return {"measure": self.measure, "epsilons": list(self.epsilons), "values": values, "baseline": self.baseline}


def learning_curve(
    estimator: Any, X: Any, y: Any, *, test: tuple[Any, Any], epsilons: Sequence[Any], repeats: int = 5
) -> LearningCurve:
    """Return how well an estimator does at several epsilons: exact, not private, for whoever holds the rows.

    Args:
        estimator: a private classifier or regressor with its public facts; its ledger is not charged.
        X: the rows to learn from.
        y: their target.
        test: other rows and their target.
        epsilons: the prices to try.
        repeats: how many models are trained at each price.

    >>> from cloister.learn import PrivateGaussianNB
    >>> X, y = [[1.0], [9.0]] * 90, [0, 1] * 90
    >>> model = PrivateGaussianNB(bounds=(0, 10), classes=[0, 1])
    >>> learning_curve(model, X, y, test=(X, y), epsilons=[1, 100]).values[1]
    (1.0, 1.0, 1.0, 1.0, 1.0)
    """
    if isinstance(epsilons, str) or not hasattr(epsilons, "__len__") or not len(epsilons):
        raise ParameterTypeError("epsilons is not a list.", fix="write epsilons=[0.1, 1, 10].")
    prices = sorted({validation.check_epsilon(item) for item in epsilons})
    times = validation.check_count(repeats, name="repeats", at_least=1)
    values, baseline, measure = [], None, ""
    for price in prices:
        found = []
        for _ in range(times):
            model = clone(estimator).set_params(epsilon=price, ledger=None, dataset=None)
            with warnings.catch_warnings():  # that little is learned at a small price is what a curve shows
                warnings.simplefilter("ignore", PrivacyParameterWarning)
                model.fit(X, y)
            figure = evaluate(model, *test)
            if figure.value is None or figure.baseline is None:
                raise ParameterError("The test has too few rows for a figure.", fix="give more rows.")
            found.append(figure.value)
            baseline, measure = figure.baseline, figure.measure
        values.append(tuple(found))
    return LearningCurve(
        measure=measure,
        epsilons=tuple(float(exact.number(price)) for price in prices),
        values=tuple(values),
        baseline=float(baseline or 0.0),
        guarantee=NoGuarantee(reason=_REASON),
    )
