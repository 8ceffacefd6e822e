"""Laplace noise under (epsilon, delta): three calibrations, of which the tight one is exact for a single number.

- ``torra``: scale = sensitivity / (epsilon - ln(1 - delta)) (Torra, proposition 5.1), valid, not tight;
- ``generic``: scale = sensitivity / ln((exp(epsilon) + delta) / (1 - delta)), valid for any pure mechanism;
- ``tight``: scale = sensitivity / (epsilon - 2 ln(1 - delta)), from the privacy profile of one Laplace number.

Privacy: the first two are pure at a larger epsilon0 with exp(epsilon0) <= (exp(epsilon) + delta) / (1 - delta), which
implies (epsilon, delta)-DP for any mechanism. For the tight one, the delta of the lattice noise is evaluated with
certified bounds, and the scale is widened until it is not above the delta promised.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

from cloister.core import exact, validation
from cloister.core.guarantees import ApproxDP
from cloister.errors import ParameterError
from cloister.mechanisms.base import mechanisms
from cloister.mechanisms.laplace import RealLaplaceNoise

MODES = ("tight", "generic", "torra")
_WIDEN = Fraction(2**24 + 1, 2**24)


def approximate_laplace_scale(*, sensitivity: object, epsilon: object, delta: object, mode: str = "tight") -> Fraction:
    """Return the scale of continuous Laplace noise for (epsilon, delta), rounded up.

    >>> round(float(approximate_laplace_scale(sensitivity=1, epsilon=0.5, delta=0.1, mode="torra")), 6)
    1.651908
    """
    loss, slack = validation.check_epsilon(epsilon), validation.check_delta(delta)
    kept = exact.log_bounds(1 / (1 - slack))[0]
    match validation.check_choice(mode, name="mode", allowed=MODES):
        case "torra":
            total = loss + kept
        case "generic":
            total = exact.log_bounds((exact.exp_bounds(loss)[0] + slack) / (1 - slack))[0]
        case _:
            total = loss + 2 * kept
    return validation.check_positive(sensitivity, name="sensitivity") / total


def discrete_laplace_delta(*, scale: Fraction, steps_apart: int, epsilon: Fraction) -> Fraction:
    """Return an upper bound of the delta at epsilon of discrete Laplace noise on one number.

    With K the last step whose loss exceeds epsilon, delta = 1 - (a**(K+1) + exp(epsilon) a**(n-K)) / (1 + a).
    """
    if steps_apart / scale <= epsilon:
        return Fraction(0)
    last = min(math.ceil((steps_apart - epsilon * scale) / 2) - 1, steps_apart - 1)
    near = exact.exp_bounds(-(last + 1) / scale)[0]
    far = exact.exp_bounds(epsilon - (steps_apart - last) / scale)[0]
    return 1 - (near + far) / (1 + exact.exp_bounds(-1 / scale)[1])


@mechanisms.register("approximate_laplace")
@dataclass(frozen=True, slots=True, kw_only=True)
class ApproximateLaplace(RealLaplaceNoise):
    """Laplace noise for real numbers under (epsilon, delta); the tight mode is for a single number only."""

    epsilon: Fraction
    delta: Fraction
    mode: str = "tight"

    def __post_init__(self) -> None:
        RealLaplaceNoise.__post_init__(self)
        object.__setattr__(self, "epsilon", validation.check_epsilon(self.epsilon))
        object.__setattr__(self, "delta", validation.check_delta(self.delta, allow_zero=False))
        if self.mode == "tight" and self.dimensions > 1:
            raise ParameterError(
                "The tight calibration is proven for a single number only.", fix='use mode="generic" for vectors.'
            )
        scale = approximate_laplace_scale(
            sensitivity=self.sensitivity, epsilon=self.epsilon, delta=self.delta, mode=self.mode
        )
        self._choose_granularity(scale)
        object.__setattr__(self, "steps_scale", self._widened(scale / self.sensitivity * self.steps_apart))

    @property
    def guarantee(self) -> ApproxDP:
        """Return what a release promises."""
        return ApproxDP(epsilon=self.epsilon, delta=self.delta, adjacency=self.adjacency, unit=self.unit)

    def _widened(self, scale: Fraction) -> Fraction:
        """Return the scale, wider by as little as makes the lattice's own delta small enough."""
        scale = Fraction(math.ceil(scale * 2**20), 2**20)
        while self.mode == "tight" and self._delta_at(scale) > self.delta:
            scale = Fraction(math.ceil(scale * _WIDEN * 2**20), 2**20)
        return scale

    def _delta_at(self, scale: Fraction) -> Fraction:
        return discrete_laplace_delta(scale=scale, steps_apart=self.steps_apart, epsilon=self.epsilon)
