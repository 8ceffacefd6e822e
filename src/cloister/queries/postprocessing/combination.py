"""Several noisy answers to one question, combined into the best one.

With independent noise of known variances, the weights that make the variance smallest are proportional to one over
each variance (Gauss; for unbiased noise of any law). Answers of variances 200 and 50 combine to one of 40, where their
plain average has 62.5: worse than the better of the two.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from cloister.core import validation
from cloister.errors import ParameterError, ParameterTypeError
from cloister.queries.postprocessing import _released

__all__ = ["Combined", "combine"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Combined:
    """A combined answer, with the variance of its noise and the weight that each answer got."""

    value: float
    variance: float
    weights: tuple[float, ...]

    @property
    def standard_deviation(self) -> float:
        """Return the standard deviation of the noise."""
        return math.sqrt(self.variance)

    def margin(self, confidence: object = 0.95) -> float:
        """Return a half-width that covers the noise with a probability, whatever its law (Chebyshev): a wide one."""
        outside = 1 - float(validation.check_confidence(confidence))
        return self.standard_deviation / math.sqrt(outside)

    def __str__(self) -> str:
        return f"{self.value:,.6g}, standard deviation {self.standard_deviation:,.3g}"


def combine(answers: Iterable[object], variances: Iterable[object] | None = None) -> Combined:
    """Return the combination of independent answers to one question that has the smallest variance.

    Args:
        answers: numbers, or answers with a value and the standard deviation of their noise.
        variances: those of the noise; those that the answers state, if left out. Where one is 0, that answer is exact
            and is taken alone.

    >>> combine([1010, 1000], [200, 50])
    Combined(value=1002.0, variance=40.0, weights=(0.2, 0.8))
    """
    given = _listed(answers, name="answers")
    stated = [_released.variance_of(item) for item in given] if variances is None else _listed(variances, name="")
    if any(item is None for item in stated) or len(stated) != len(given):
        raise ParameterError(
            "There is not a variance for each of the answers.", fix="give variances=[...], one for each answer."
        )
    values = _released.row([getattr(item, "value", item) for item in given], name="answers")
    spread = _released.variances(stated, None, name="variances", shape=values.shape)
    smallest = spread.min()
    inverse = smallest / spread if smallest else (spread == 0).astype(np.float64)
    weights = inverse / inverse.sum()
    return Combined(
        value=float(weights @ values),
        variance=float(smallest / inverse.sum()),
        weights=tuple(weights.tolist()),
    )


def _listed(values: object, *, name: str) -> list[object]:
    if isinstance(values, str) or not isinstance(values, Iterable):
        raise ParameterTypeError(
            f"{name or 'variances'} are not a list.", fix="pass two or more answers in a list, and their variances."
        )
    return list(values)
