"""Binary randomized response: one private bit, told through one or two coins (Warner 1965).

With probability ``truth`` the bit is told; otherwise a second coin, heads with probability ``second``, is told instead.
``Pr[1|1] = p + (1-p)p'``, ``Pr[1|0] = (1-p)p'``, and epsilon is the logarithm of the larger ratio. A second coin that
always falls the same way ("heads: say yes") makes one answer certain proof, so its epsilon is infinite: it is refused.

Privacy: claim epsilon-DP for one bit under the replace relation; the four probabilities are exact rationals and epsilon
is an upper bound of the logarithm of their largest ratio. (The tree-based "binary mechanism" is something else.)
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any, overload

import numpy as np
from numpy.typing import NDArray

from cloister.accounting.events import Event, PureEvent
from cloister.core import exact, validation
from cloister.core.construction import construct
from cloister.core.exact import Number
from cloister.core.guarantees import Adjacency, PureDP
from cloister.core.random import RandomState
from cloister.errors import ParameterTypeError, UnsafeMechanismError
from cloister.mechanisms.base import NoisyAnswer, Numbers, mechanisms, open_source
from cloister.mechanisms.sampling.inversion import FixedPointInterval, bernoulli

_LARGEST_EPSILON = 50


def randomized_response_epsilon(truth: Number, second: Number) -> Fraction | None:
    """Return the epsilon of two coins, rounded up, or None when it is infinite.

    >>> epsilon = randomized_response_epsilon(0.5, 0.5)
    >>> print(epsilon and round(float(epsilon), 6))
    1.098612
    >>> randomized_response_epsilon(0.5, 1) is None
    True
    """
    told = validation.check_probability(truth, name="truth")
    heads = validation.check_probability(second, name="second")
    # The rarer lie has the largest ratio: the same report as the truth is that lie plus the honest share.
    rarest = (1 - told) * min(heads, 1 - heads)
    if rarest == 0:
        return None if told else Fraction(0)
    return exact.log_bounds(1 + told / rarest)[1]


@mechanisms.register("randomized_response")
@dataclass(frozen=True, slots=True, kw_only=True)
class BinaryRandomizedResponse:
    """One private bit, told through two coins.

    >>> response = BinaryRandomizedResponse.for_epsilon(1)
    >>> response.release(True).value in (0, 1)
    True
    """

    truth: Fraction
    second: Fraction = Fraction(1, 2)
    unit: str = "answer"

    def __init__(
        self,
        *,
        truth: Number,
        second: Number = Fraction(1, 2),
        unit: str = "answer",
    ) -> None:
        construct(self, truth=truth, second=second, unit=unit)

    def __post_init__(self) -> None:
        object.__setattr__(self, "truth", validation.check_probability(self.truth, name="truth"))
        object.__setattr__(self, "second", validation.check_probability(self.second, name="second"))
        if randomized_response_epsilon(self.truth, self.second) is None:
            raise UnsafeMechanismError(
                "One of the answers would prove the truth: epsilon is infinite.",
                fix="use truth below 1 and second strictly between 0 and 1, such as truth=0.5, second=0.5.",
            )

    @classmethod
    def for_epsilon(cls, epsilon: Number, *, unit: str = "answer") -> BinaryRandomizedResponse:
        """Return the symmetric response true as often as epsilon allows, exp(epsilon) / (1 + exp(epsilon))."""
        loss = validation.check_epsilon(epsilon)
        if loss > _LARGEST_EPSILON:
            raise UnsafeMechanismError(
                "An epsilon this large tells the truth practically always.", fix=f"use epsilon <= {_LARGEST_EPSILON}."
            )
        # The epsilon of the coins is rounded up afterwards: a hair less makes sure that it is not above what was
        # asked.
        odds = exact.exp_bounds(loss * (1 - Fraction(1, 10**30)), digits=80)[0]
        precision = 10**120
        return cls(truth=Fraction(int((odds - 1) / (odds + 1) * precision), precision), unit=unit)

    @property
    def epsilon(self) -> Fraction:
        """Return the epsilon of the two coins, rounded up."""
        return randomized_response_epsilon(self.truth, self.second) or Fraction(0)

    @property
    def guarantee(self) -> PureDP:
        """Return what one answer promises."""
        return PureDP(epsilon=self.epsilon, adjacency=Adjacency.REPLACE, unit=self.unit)

    @property
    def event(self) -> Event:
        """Return what one answer is for the accountants."""
        return PureEvent(epsilon=self.epsilon)

    @property
    def standard_deviation(self) -> float:
        """Return an upper bound of the standard deviation of one told bit."""
        return 0.5

    def transition(self) -> dict[tuple[int, int], Fraction]:
        """Return ``Pr[told | true]`` under the keys (told, true)."""
        lie_one, lie_zero = (1 - self.truth) * self.second, (1 - self.truth) * (1 - self.second)
        return {
            (1, 1): self.truth + lie_one,
            (1, 0): lie_one,
            (0, 0): self.truth + lie_zero,
            (0, 1): lie_zero,
        }

    def margin(self, confidence: Number = 0.95) -> float:
        """Return the half-width for a single told bit: 0 when it is true often enough, else 1."""
        likely = min(self.transition()[1, 1], self.transition()[0, 0])
        return 0.0 if likely >= validation.check_confidence(confidence) else 1.0

    @overload
    def release(self, value: int, *, random_state: RandomState = None) -> NoisyAnswer[int]: ...
    @overload
    def release(self, value: Numbers, *, random_state: RandomState = None) -> NoisyAnswer[NDArray[np.int64]]: ...
    def release(self, value: object, *, random_state: RandomState = None) -> NoisyAnswer[Any]:
        """Return the told bit for a private bit, or told bits for an array of them."""
        source, guarantee = open_source(random_state, self.guarantee)
        private = _bits(value)
        told = (
            bernoulli(lambda bits: FixedPointInterval.of(self.truth, bits))
            .draw(source, private.size)
            .reshape(private.shape)
        )
        coins = (
            bernoulli(lambda bits: FixedPointInterval.of(self.second, bits))
            .draw(source, private.size)
            .reshape(private.shape)
        )
        answers = np.where(told.astype(np.bool_), private, coins).astype(np.int64)
        answer = int(answers) if answers.ndim == 0 else answers
        return NoisyAnswer(value=answer, guarantee=guarantee, mechanism=self, event=self.event)

    def estimate_share(self, told_share: float) -> float:
        """Return the unbiased estimate of the true share of ones from the told share."""
        return (told_share - float((1 - self.truth) * self.second)) / float(self.truth)


def _bits(value: object) -> NDArray[np.int64]:
    array = np.asarray(value)
    is_integer = np.issubdtype(array.dtype, np.integer) and bool(((array == 0) | (array == 1)).all())
    if array.dtype != np.bool_ and not is_integer:
        raise ParameterTypeError("The value is not a bit.", fix="pass True or False, or an array of them.")
    return array.astype(np.int64)
