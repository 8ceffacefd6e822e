"""Laplace noise on the steps of one number or of several.

The oldest way (Dwork, McSherry, Nissim and Smith 2006, on each device): add noise as wide as the bounds allow. In
[-1, 1] its variance is about ``8 / epsilon**2``, for d numbers ``8 d**2 / epsilon**2`` each. One bit is better up to
epsilon 2.32, and the hybrid always; noise is here for its simplicity and for comparison.

Noise is added to whole steps and drawn exactly (`mechanisms.sampling.discrete_noise`), never in floating point.
Reports outside of a wide public range, 40 scales beyond the bounds, are folded into its ends; that moves a mean by less
than 1e-17 scales.

Privacy: claim epsilon-LDP. The steps of two numbers are at most N apart, those of two vectors d N in L1. The noise
has ``Pr[k]`` proportional to ``exp(-abs(k) / scale)`` with scale d N / epsilon, independently for each number, so that
the ratio of the probabilities of any report is at most ``exp(d N / scale) = exp(epsilon)``, reached at the bounds.
Folding is post-processing. The law is that of the sampler, not of `Draws`; order and number of random words are not
part of the protocol.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cloister.core import exact
from cloister.core.exact import Number
from cloister.errors import ParameterError
from cloister.local import _plausibility as plausibility
from cloister.local._output_space import Integer, Integers, OutputSpace, Payload
from cloister.local._plausibility import Test
from cloister.local.domain import Codes
from cloister.local.draws import Draws, source_of
from cloister.local.numeric._bounds import Floats
from cloister.local.numeric.base import MeanProtocol, VectorProtocol
from cloister.local.protocol import protocols
from cloister.mechanisms.sampling.discrete_noise import discrete_laplace
from cloister.mechanisms.step_noise import laplace_standard_deviation

__all__ = ["NOISE_STEPS", "LaplaceVector", "LocalLaplace"]

NOISE_STEPS = 2**16
"""How many steps there are between the bounds: noise hides finer ones anyway."""

_SCALES = 40
_FARTHEST = 2**61


class _Noise:
    """Discrete Laplace noise on steps, folded into a public range."""

    def __init__(self, scale: Fraction, steps: int) -> None:
        self.scale = scale
        beyond = math.ceil(_SCALES * scale)
        if beyond > _FARTHEST:
            raise ParameterError("The noise does not fit into 64 bits.", fix="leave steps out, or use fewer.")
        self.low, self.high = -beyond, steps + beyond

    def add(self, codes: Codes, draws: Draws) -> Codes:
        noise = discrete_laplace(self.scale).draw(source_of(draws), codes.size).reshape(codes.shape)
        return np.asarray(np.clip(codes + noise, self.low, self.high), dtype=np.int64)

    @property
    def likeliest(self) -> float:
        """Return the logarithm of the probability of no noise, beside which a folded end is nothing."""
        # The mode has probability (1 - r) / (1 + r) with r = exp(-1 / scale), which is a hyperbolic tangent.
        return math.log(math.tanh(1 / (2 * float(self.scale))))

    @property
    def variance(self) -> float:
        return laplace_standard_deviation(self.scale) ** 2

    def params(self) -> dict[str, Any]:
        return {"scale": exact.text(self.scale)}


@protocols.register("local_laplace")
class LocalLaplace(MeanProtocol):
    """A number with Laplace noise.

    >>> protocol = LocalLaplace(bounds=(0, 100), epsilon=2)
    >>> reports = protocol.randomize([20, 35, 50] * 1000)
    >>> protocol.estimate(reports).reports
    3000
    """

    name = "local_laplace"

    def __init__(self, *, bounds: object = None, epsilon: Number, steps: object = NOISE_STEPS) -> None:
        super().__init__(bounds=bounds, epsilon=epsilon, steps=steps)
        self.scale = self.grid.steps / self.epsilon
        self._noise = _Noise(self.scale, self.grid.steps)
        self.output_space = OutputSpace((Integer("y", self._noise.low, self._noise.high),))
        self._check_epsilon()

    @property
    def likelihood_ratio(self) -> Fraction:
        """Return exp(epsilon), which has no exact form: rounded up beyond the thirtieth digit."""
        return exact.exp_bounds(self.grid.steps / self.scale)[1]

    def perturb(self, codes: Codes, draws: Draws) -> Payload:
        """Return reports: the step plus noise."""
        return self.output_space.rows(y=self._noise.add(codes, draws))

    def _places(self, payload: Payload) -> Floats:
        return payload["y"].astype(np.float64)

    def _step_variance(self, step: int) -> float:  # noqa: ARG002  # the same for every number
        return self._noise.variance

    @property
    def likeliest_report(self) -> float:
        """Return the logarithm of the largest probability of any report under any value."""
        return self._noise.likeliest

    def plausibility_tests(self) -> Iterator[Test]:
        """Yield what honest reports are compared with; see `_plausibility`."""
        ends = (0, self.grid.steps)
        yield partial(plausibility.noise, scale=float(self.scale), ends=ends)

    def _params(self) -> dict[str, Any]:
        return {"steps": self.grid.steps, **self._noise.params()}


@protocols.register("laplace_vector")
class LaplaceVector(VectorProtocol):
    """Several numbers of one person, each with Laplace noise for all of them together.

    >>> protocol = LaplaceVector(bounds=[(0, 100), (0, 1)], epsilon=2)
    >>> reports = protocol.randomize([[20, 0.5], [35, 0.25]])
    >>> len(protocol.estimate(reports))
    2
    """

    name = "laplace_vector"

    def __init__(self, *, bounds: object = None, epsilon: Number, steps: object = NOISE_STEPS) -> None:
        super().__init__(bounds=bounds, epsilon=epsilon, steps=steps)
        self.scale = self.dimensions * self.steps / self.epsilon
        self._noise = _Noise(self.scale, self.steps)
        self.output_space = OutputSpace((Integers("y", self.dimensions, self._noise.low, self._noise.high),))
        self._check_epsilon()

    @property
    def likelihood_ratio(self) -> Fraction:
        """Return exp(epsilon), which has no exact form: rounded up beyond the thirtieth digit."""
        return exact.exp_bounds(self.dimensions * self.steps / self.scale)[1]

    def perturb(self, codes: NDArray[Any], draws: Draws) -> Payload:
        """Return reports: every step plus noise of its own."""
        return self.output_space.rows(y=self._noise.add(codes, draws))

    def _places(self, payload: Payload) -> Floats:
        return payload["y"].astype(np.float64)

    def _step_variance(self, step: int) -> float:  # noqa: ARG002  # the same for every number
        return self._noise.variance

    @property
    def likeliest_report(self) -> float:
        """Return the logarithm of the largest probability of any report under any value."""
        return self.dimensions * self._noise.likeliest

    def plausibility_tests(self) -> Iterator[Test]:
        """Yield what honest reports are compared with; see `_plausibility`."""
        yield partial(plausibility.noise, scale=float(self.scale), ends=(0, self.steps))

    def _params(self) -> dict[str, Any]:
        return {"steps": self.steps, **self._noise.params()}
