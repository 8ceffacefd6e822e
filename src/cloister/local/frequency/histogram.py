"""Histogram encoding: a one for the own value and zeros elsewhere, with Laplace noise on every cell.

Two people's histograms differ by at most 2 in L1 distance, so that noise of scale ``2 / epsilon`` gives epsilon-LDP.
Summation (SHE) adds the cells up; thresholding (THE) counts the cells above a threshold, which discards most of the
noise (Wang, Blocki, Li and Jha 2017). Both need a finite public domain; numbers are to be put into public bins first.

Privacy: claim epsilon-LDP. Cells are multiples of 1/4096 and the noise is discrete Laplace on that grid, drawn exactly
with scale ``8192 / epsilon`` steps: the ratio of two values is ``exp(epsilon)`` and attained. Cells far outside
are cut at a public bound, and the collector does the thresholding: both work on what is protected already.
"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from functools import cached_property, partial
from math import ceil, exp, inf, log, tanh
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cloister.core import exact
from cloister.core.exact import Number
from cloister.core.validation import check_probability
from cloister.errors import ParameterError
from cloister.local import _plausibility as plausibility
from cloister.local._output_space import Integers, OutputSpace, Payload
from cloister.local._plausibility import Test
from cloister.local.domain import Answers, Codes
from cloister.local.draws import Draws, source_of
from cloister.local.estimates import Floats, FrequencyEstimate, enough
from cloister.local.frequency.support import FrequencyProtocol, SupportProtocol
from cloister.local.protocol import protocols
from cloister.mechanisms.sampling.discrete_noise import discrete_laplace

__all__ = ["STEPS", "SummationHistogramEncoding", "ThresholdHistogramEncoding"]

STEPS = 4096
"""Steps of the grid in one person."""

_WIDTHS = 60
"""The public bound, in scales of the noise: reached once in 10**26 cells."""

_CHUNK = 2**22


class _HistogramEncoding(FrequencyProtocol):
    """What both share: the device."""

    def __init__(self, *, domain: Answers | None = None, epsilon: Number | None = None) -> None:
        super().__init__(domain=domain, epsilon=epsilon)
        self.scale = 2 * STEPS / self.epsilon
        reach = ceil(_WIDTHS * self.scale) + STEPS
        self.output_space = OutputSpace((Integers("cells", len(self.domain), -reach, reach),))

    @property
    def likelihood_ratio(self) -> Fraction:
        """Return exp(epsilon), rounded up: the ratio of the densities at both ones."""
        return exact.exp_bounds(self.epsilon)[1]

    def epsilon_of(self) -> Fraction:
        """Return ``2 STEPS / scale``: the law is exact."""
        return 2 * STEPS / self.scale

    def perturb(self, codes: Codes, draws: Draws) -> Payload:
        """Return reports: exact noise on every cell, in domain order."""
        size, reach = len(self.domain), self.output_space.fields[0].high  # type: ignore[union-attr]  # always Integers
        payload = np.empty(len(codes), dtype=self.output_space.dtype)
        people = max(1, _CHUNK // size)
        for start in range(0, len(codes), people):
            part = codes[start : start + people]
            cells = discrete_laplace(self.scale).draw(source_of(draws), len(part) * size).reshape(len(part), size)
            cells[np.arange(len(part)), part] += STEPS
            payload["cells"][start : start + people] = np.clip(cells, -reach, reach)
        return payload

    def log_likelihoods(self, payload: Payload) -> Floats:
        """Return for each report and value the logarithm of the probability, up to a number for each report."""
        cells = payload["cells"].astype(np.float64)
        return np.asarray((np.abs(cells) - np.abs(cells - STEPS)) / float(self.scale), dtype=np.float64)

    @property
    def likeliest_report(self) -> float:
        """Return the logarithm of the largest probability of any report under any value."""
        return len(self.domain) * log(tanh(1 / (2 * float(self.scale))))

    def _params(self) -> dict[str, Any]:
        return {"steps": STEPS, "scale": exact.text(self.scale)}


@protocols.register("summation_histogram_encoding")
class SummationHistogramEncoding(_HistogramEncoding):
    """A noisy histogram of one person, to be added up (SHE): simple, and the least accurate.

    >>> protocol = SummationHistogramEncoding(domain=["red", "green", "blue"], epsilon=1)
    >>> round(protocol.variance(), 3)
    8.0
    """

    name = "summation_histogram_encoding"

    def plausibility_tests(self) -> Iterator[Test]:
        """Yield what honest reports are compared with; see `_plausibility`."""
        yield partial(plausibility.noise_reach, scale=float(self.scale), most=STEPS)

    def poisoning_gains(self) -> tuple[float, float]:
        """Return by how much one report can raise, and lower, an estimated count."""
        field = self.output_space.fields[0]
        reach = field.high / STEPS if isinstance(field, Integers) else inf
        return reach, reach

    def estimate(self, reports: Any) -> FrequencyEstimate:  # whatever holds reports
        """Return how many people have each value; see `FrequencyProtocol.estimate`."""
        found = self.read(reports)
        n = enough(len(found))
        # Cells are whole steps, so that the sum is exact before it becomes a number of people.
        counts = found.payload["cells"].sum(axis=0, dtype=np.int64) / STEPS
        return self._estimated(counts, np.full(len(counts), n * self.variance()), n, self.guarantee_of(found))

    def variance(self, frequency: object = 0) -> float:
        """Return the variance of an estimated share times the number of reports: the same for every true share."""
        check_probability(frequency, name="frequency")
        decay = exp(-1 / self.scale)
        return 2 * decay / (1 - decay) ** 2 / STEPS**2


@protocols.register("threshold_histogram_encoding")
class ThresholdHistogramEncoding(_HistogramEncoding, SupportProtocol):
    """A noisy histogram of one person, of which the collector counts the cells above a threshold (THE).

    Attributes:
        threshold: above 0, at most 1; by default the one of smallest variance.

    >>> round(ThresholdHistogramEncoding(domain=["a", "b"], epsilon=1).threshold, 2)
    0.62
    """

    name = "threshold_histogram_encoding"

    def __init__(
        self, *, domain: Answers | None = None, epsilon: Number | None = None, threshold: object = None
    ) -> None:
        super().__init__(domain=domain, epsilon=epsilon)
        self._chosen = None if threshold is None else _check_threshold(threshold)
        self.step = self._best_step() if self._chosen is None else round(self._chosen * STEPS)

    @property
    def threshold(self) -> float:
        """Return the threshold, a multiple of the grid's step."""
        return self.step / STEPS

    @cached_property
    def probabilities(self) -> tuple[Fraction, Fraction]:
        """Return (p, q): how often the own cell is above the threshold, and any other; as floats give them."""
        p, q = _above(np.array([self.step]), float(self.scale))
        return Fraction(float(p[0])), Fraction(float(q[0]))

    def supporters(self, payload: Payload, code: int) -> NDArray[np.bool_]:
        """Return which reports have a cell above the threshold for the value."""
        return np.asarray(payload["cells"][:, code] > self.step)

    def support_counts(self, payload: Payload) -> NDArray[np.int64]:
        """Return for each value the number of reports whose cell is above the threshold."""
        return np.asarray((payload["cells"] > self.step).sum(axis=0, dtype=np.int64))

    def _best_step(self) -> int:
        steps = np.arange(1, STEPS + 1)
        p, q = _above(steps, float(self.scale))
        return int(steps[np.argmin(q * (1 - q) / (p - q) ** 2)])

    def plausibility_tests(self) -> Iterator[Test]:
        """Yield what honest reports are compared with; see `_plausibility`."""
        yield partial(plausibility.supports, self)
        yield partial(plausibility.noise_reach, scale=float(self.scale), most=STEPS)

    def _options(self) -> dict[str, Any]:
        return {} if self._chosen is None else {"threshold": exact.text(self._chosen)}


def _above(steps: NDArray[np.int64], scale: float) -> tuple[Floats, Floats]:
    """Return how often a one, and a zero, plus discrete Laplace noise is above each of some steps."""
    tail = 1 / (1 + exp(-1 / scale))
    return 1 - tail * np.exp((steps - STEPS) / scale), tail * np.exp(-(steps + 1) / scale)


def _check_threshold(threshold: object) -> Fraction:
    value = check_probability(threshold, name="threshold")
    if round(value * STEPS) == 0:
        raise ParameterError("The threshold is not above 0.", fix="use a threshold such as 0.6, or leave it out.")
    return value
