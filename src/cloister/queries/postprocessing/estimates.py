"""Better estimates from noisy numbers: several answers to one question combined, and many numbers shrunk at once.

**Combination.** With independent noise of known variances, the weights that make the variance smallest are
proportional to one over each variance (Gauss; for unbiased noise of any law). Answers of variances 200 and 50 combine
to one of 40, where their plain average has 62.5: worse than the better of the two.

**Shrinkage** towards zero beats taking each of many noisy numbers for itself. The noisy numbers are ``x = theta +
noise`` with p components and independent noise of a public size.

- `james_stein` (James and Stein 1961; positive part, Baranchik 1964): one factor for all, ``1 - s2 (p - 2) / |x|^2``,
  where s2 is the *variance* of the noise, 2 b^2 for Laplace noise of scale b. A factor for all never changes an order.
- `posterior_mean`: the mean of theta given x, for Laplace noise of scale b and a Laplace prior of a public rate.
- `empirical_bayes`: the same with the rate read off the noisy numbers, ``p / |x|_1``, to first order in it: each
  component moves by ``2 p b^2 / |x|_1`` towards zero, and stops there.
- `shrink_counts`: for counts: clip at 0, `empirical_bayes`, clip at 0.

The smaller epsilon is, the larger is the gain. All of them are biased towards zero, and one component alone may get
worse while the sum of squared errors gets better.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from cloister.core import postprocessing, validation
from cloister.core.exact import Number
from cloister.errors import ParameterError, ParameterTypeError
from cloister.queries.postprocessing import _released_numbers as released_numbers

__all__ = ["CombinedAnswer", "combine", "empirical_bayes", "james_stein", "posterior_mean", "shrink_counts"]


@dataclass(frozen=True, slots=True, kw_only=True)
class CombinedAnswer:
    """A combined answer, with the variance of its noise and the weight that each answer got."""

    value: float
    variance: float
    weights: tuple[float, ...]

    @property
    def standard_deviation(self) -> float:
        """Return the standard deviation of the noise."""
        return math.sqrt(self.variance)

    def margin(self, confidence: Number = 0.95) -> float:
        """Return a half-width that covers the noise with a probability, whatever its law (Chebyshev): a wide one."""
        outside = 1 - float(validation.check_confidence(confidence))
        return self.standard_deviation / math.sqrt(outside)

    def __str__(self) -> str:
        return f"{self.value:,.6g}, standard deviation {self.standard_deviation:,.3g}"


def combine(answers: Iterable[object], variances: Iterable[object] | None = None) -> CombinedAnswer:
    """Return the combination of independent answers to one question that has the smallest variance.

    Args:
        answers: numbers, or answers with a value and the standard deviation of their noise.
        variances: those of the noise; those that the answers state, if left out. Where one is 0, that answer is exact
            and is taken alone.

    >>> combine([1010, 1000], [200, 50])
    CombinedAnswer(value=1002.0, variance=40.0, weights=(0.2, 0.8))
    """
    given = _check_list(answers, name="answers")
    stated = (
        [released_numbers.variance_of(item) for item in given] if variances is None else _check_list(variances, name="")
    )
    if any(item is None for item in stated) or len(stated) != len(given):
        raise ParameterError(
            "There is not a variance for each of the answers.", fix="give variances=[...], one for each answer."
        )
    values = released_numbers.row([getattr(item, "value", item) for item in given], name="answers")
    spread = released_numbers.variances(stated, None, name="variances", shape=values.shape)
    smallest = spread.min()
    # Relative to the smallest no inverse can overflow; where some answers are exact, they share all of the
    # weight.
    inverse = smallest / spread if smallest else (spread == 0).astype(np.float64)
    weights = inverse / inverse.sum()
    return CombinedAnswer(
        value=float(weights @ values),
        variance=float(smallest / inverse.sum()),
        weights=tuple(weights.tolist()),
    )


def _check_list(values: object, *, name: str) -> list[object]:
    if isinstance(values, str) or not isinstance(values, Iterable):
        raise ParameterTypeError(
            f"{name or 'variances'} are not a list.", fix="pass two or more answers in a list, and their variances."
        )
    return list(values)


Floats: TypeAlias = NDArray[np.float64]


def james_stein(values: object, *, variance: object) -> Floats:
    """Return the positive-part James-Stein estimate of at least three numbers with noise of a variance.

    >>> james_stein([30.0, 40.0, 0.0], variance=250)
    array([27., 36.,  0.])
    """
    noisy, spread = released_numbers.row(values), released_numbers.positive(variance, name="variance")
    if noisy.size < 3:
        raise ParameterError(
            "Shrinking all by one factor helps from three numbers on only.", fix="pass three or more, or leave them."
        )
    return postprocessing.james_stein(noisy, variance=spread)


def empirical_bayes(values: object, *, scale: object, positive_part: bool = True) -> Floats:
    """Return each number moved by ``2 p scale^2 / sum(abs(values))`` towards zero, at most to zero.

    Args:
        values: numbers with Laplace noise.
        scale: the scale b of that noise; its standard deviation over sqrt(2).
        positive_part: stop at zero; the bare first-order formula turns the sign of numbers below that step.

    >>> empirical_bayes([60.0, -30.0, 1.0, 9.0], scale=5)
    array([ 58., -28.,   0.,   7.])
    """
    noisy, width = released_numbers.row(values), released_numbers.positive(scale, name="scale")
    return postprocessing.empirical_bayes(noisy, variance=2 * width**2, positive_part=positive_part)


def shrink_counts(values: object, *, scale: object) -> Floats:
    """Return estimates of counts: clipped at 0, shrunk by `empirical_bayes`, clipped at 0.

    >>> shrink_counts([60.0, -3.0, 0.5, 39.5], scale=5)
    array([58. ,  0. ,  0. , 37.5])
    """
    return empirical_bayes(np.maximum(released_numbers.row(values), 0), scale=scale)


def posterior_mean(values: object, *, scale: object, prior_rate: object) -> Floats:
    """Return the exact posterior mean for Laplace noise of a scale b and a Laplace prior of a rate.

    >>> posterior_mean([0.0, 0.5, 3.0, -3.0], scale=1, prior_rate=0.2).round(6)
    array([ 0.      ,  0.418776,  2.669568, -2.669568])
    """
    noisy = released_numbers.row(values)
    width, prior = (
        released_numbers.positive(scale, name="scale"),
        released_numbers.positive(prior_rate, name="prior_rate"),
    )
    return postprocessing.laplace_posterior_mean(noisy, scale=width, prior=prior)
