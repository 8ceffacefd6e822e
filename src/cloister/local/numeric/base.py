"""What protocols for one number share: public bounds, steps, unbiased reports, and the mean of many.

Every report has an unbiased reading of its sender's (rounded) number; `debias` gives them. Their mean estimates
people's mean without bias, and their sample variance gives its error (Nguyên et al. 2016, Wang et al. 2019). That
variance holds both the devices' noise and the differences between people, so the interval is one for everybody whom
the reporting people stand for; for the reporting people alone it is a little wide.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cloister.core.guarantees import LocalDP
from cloister.core.validation import check_positive
from cloister.errors import ParameterError
from cloister.local.domain import Codes
from cloister.local.estimates import MeanEstimate, enough, z_of
from cloister.local.numeric.grid import STEPS, Floats, Grid, bounds_hash
from cloister.local.output_space import Payload
from cloister.local.protocol import Protocol

__all__ = ["MeanProtocol", "NumericProtocol", "mean_of", "respondents_needed"]


class NumericProtocol(Protocol):
    """A protocol for one number within public bounds.

    Attributes:
        grid: the bounds, and the steps between them.
    """

    grid: Grid

    def __init__(self, *, bounds: object = None, epsilon: object, steps: object = STEPS) -> None:
        super().__init__(epsilon=epsilon)
        self.grid = Grid.of(bounds, steps)

    @property
    def bounds(self) -> tuple[Fraction, Fraction]:
        """Return the public bounds."""
        return self.grid.low, self.grid.high

    def encode(self, values: Any) -> tuple[Codes, bool]:  # one number or many
        """Return the steps of numbers, and whether it was a single number."""
        places = self.grid.places(values)
        if places.ndim > 1:
            raise ParameterError("There are several numbers for each person.", fix="use a protocol for vectors.")
        return places.reshape(-1), places.ndim == 0

    def debias(self, reports: Any) -> Floats:  # whatever holds reports
        """Return a reading of each report whose expectation is its sender's number; many are far outside the bounds."""
        return self.grid.values(self._places(self.read(reports).payload))

    def mean(self, reports: Any) -> MeanEstimate:  # whatever holds reports
        """Return the mean of people's numbers.

        Raises:
            ForeignReportError: if reports were made with another protocol.
            MalformedReportError: if a report is not one that this protocol can make.
            TooFewReportsError: if there are fewer than two.
        """
        found = self.read(reports)
        places = self._places(found.payload)
        least = min(variance for _, variance in self._extremes)
        return mean_of(places, self.grid, least=least, protocol=self.name, guarantee=self.guarantee_of(found))

    def variance(self, value: object = None) -> float:
        """Return the variance of one report's reading for a true number, or for the worst one."""
        if value is None:
            return self.grid.unit**2 * max(variance for _, variance in self._extremes)
        return self.grid.unit**2 * float(self._step_variance(int(self.grid.places([value])[0])))

    def spread(self) -> float:
        """Return the largest variance that readings can have, when people's numbers differ as much as they can."""
        middle = self.grid.steps / 2
        return self.grid.unit**2 * max(variance + (step - middle) ** 2 for step, variance in self._extremes)

    def respondents(self, margin: object, *, confidence: object = 0.95) -> int:
        """Return how many reports bring the margin of a mean down to a half-width, whatever people's numbers are."""
        return respondents_needed(self.spread(), margin, confidence)

    @cached_property
    def _extremes(self) -> list[tuple[int, float]]:
        """Return the steps at which the variance, quadratic and symmetric, may be largest or smallest."""
        steps = self.grid.steps
        return [(step, float(self._step_variance(step))) for step in (0, steps // 2, steps)]

    @abstractmethod
    def _places(self, payload: Payload) -> Floats:
        """Return the unbiased reading of each report, in steps."""

    @abstractmethod
    def _step_variance(self, step: int) -> Fraction | float:
        """Return the variance of a reading for a true step, in squared steps."""

    def _domain_record(self) -> dict[str, Any]:
        return {"bounds": self.grid.texts, "domain_hash": bounds_hash(self.grid.texts)}

    def _domain_words(self) -> str:
        low, high = self.grid.ends
        return f"bounds=({low:g}, {high:g})"

    def _options(self) -> dict[str, Any]:
        return {"steps": self.grid.steps}


class MeanProtocol(NumericProtocol):
    """A protocol for one number whose estimate is the mean."""

    def estimate(self, reports: Any) -> MeanEstimate:  # whatever holds reports
        """Return the mean of people's numbers; see `NumericProtocol.mean`."""
        return self.mean(reports)


def mean_of(places: NDArray[Any], grid: Grid, *, least: float, protocol: str, guarantee: LocalDP) -> MeanEstimate:
    """Return the mean of unbiased readings in steps.

    The variance is that of the sample, but never below the least that the noise alone has: a few equal reports are
    no sign of certainty.
    """
    count = enough(len(places), at_least=2)
    variance = max(float(np.var(places, ddof=1)), least) / count
    return MeanEstimate(
        value=float(grid.values(places.mean())),
        standard_error=grid.unit * math.sqrt(variance),
        reports=count,
        bounds=grid.ends,
        protocol=protocol,
        guarantee=guarantee,
    )


def respondents_needed(variance: float, margin: object, confidence: object) -> int:
    """Return how many reports of a variance bring the margin of their mean down to a half-width."""
    wanted = float(check_positive(margin, name="margin"))
    return max(2, math.ceil((z_of(confidence) / wanted) ** 2 * variance))
