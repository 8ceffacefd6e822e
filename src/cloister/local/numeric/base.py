"""What protocols for numbers share, for one or for several: public bounds, steps, unbiased reports, and means of many.

Every report has an unbiased reading of its sender's (rounded) number; `debias` gives them. Their mean estimates
people's mean without bias, and their sample variance gives its error (Nguyên et al. 2016, Wang et al. 2019). That
variance holds both the devices' noise and the differences between people, so the interval is one for everybody whom
the reporting people stand for; for the reporting people alone it is a little wide.

Several numbers of a person are one row: ``[[20, 0.5], [35, 0.25]]`` are two people with two numbers. The epsilon is
that of the whole row: it protects all numbers of the person together.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from cloister.core.exact import Number
from cloister.core.guarantees import LocalDP
from cloister.core.result import Result
from cloister.core.validation import check_positive
from cloister.core.wordings import format_with_margin
from cloister.errors import OutsideDomainError, ParameterError, ParameterTypeError
from cloister.local._output_space import Payload
from cloister.local.domain import Codes
from cloister.local.draws import SourceDraws
from cloister.local.estimates import MeanEstimate, enough, z_of
from cloister.local.numeric._bounds import STEPS, Floats, NumericGrid, bounds_hash, missing_bounds, numbers_of
from cloister.local.protocol import Protocol

if TYPE_CHECKING:
    from cloister.plotting import Figure

__all__ = ["MeanProtocol", "NumericProtocol", "VectorEstimate", "VectorProtocol", "mean_of", "respondents_needed"]


class NumericProtocol(Protocol):
    """A protocol for one number within public bounds.

    Attributes:
        grid: the bounds, and the steps between them.
    """

    grid: NumericGrid

    def __init__(self, *, bounds: object = None, epsilon: Number, steps: object = STEPS) -> None:
        super().__init__(epsilon=epsilon)
        self.grid = NumericGrid.of(bounds, steps)

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

    def respondents(self, margin: object, *, confidence: Number = 0.95) -> int:
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


def mean_of(
    places: NDArray[Any], grid: NumericGrid, *, least: float, protocol: str, guarantee: LocalDP
) -> MeanEstimate:
    """Return the mean of unbiased readings in steps.

    The variance is that of the sample, but never below the least that the noise alone has: a few equal reports are
    no sign of certainty.
    """
    count = enough(len(places), at_least=2)
    # Two equal reports have no spread at all; the noise of their devices still has.
    variance = max(float(np.var(places, ddof=1)), least) / count
    return MeanEstimate(
        value=float(grid.values(places.mean())),
        standard_error=grid.unit * math.sqrt(variance),
        reports=count,
        bounds=grid.ends,
        protocol=protocol,
        guarantee=guarantee,
    )


def respondents_needed(variance: float, margin: object, confidence: Number) -> int:
    """Return how many reports of a variance bring the margin of their mean down to a half-width."""
    wanted = float(check_positive(margin, name="margin"))
    return max(2, math.ceil((z_of(confidence) / wanted) ** 2 * variance))


_CHUNK = 2**22


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class VectorEstimate(Result):
    """The means of several numbers over the people who reported.

    Attributes:
        means: one estimate for each number, in order.
        reports: the number of reports.
        protocol: the name of the protocol.
    """

    schema: ClassVar[str] = "cloister.local_means/1"

    means: tuple[MeanEstimate, ...]
    reports: int
    protocol: str

    def __len__(self) -> int:
        return len(self.means)

    def __getitem__(self, place: int) -> MeanEstimate:
        return self.means[place]

    def __iter__(self) -> Iterator[MeanEstimate]:
        return iter(self.means)

    @property
    def values(self) -> Floats:
        """Return the estimated means."""
        return np.array([mean.value for mean in self.means])

    @property
    def standard_errors(self) -> Floats:
        """Return their standard errors."""
        return np.array([mean.standard_error for mean in self.means])

    def margins(self, confidence: Number = 0.95) -> Floats:
        """Return the half-width of each interval; each covers on its own, not all of them at once."""
        return z_of(confidence) * self.standard_errors

    def __str__(self) -> str:
        means = ", ".join(format_with_margin(mean.value, mean.margin()) for mean in self.means[:4])
        more = ", ..." if len(self.means) > 4 else ""
        return f"means {means}{more} (95%) from {self.reports:,} reports, {self.guarantee.brief()}"

    def summary(self) -> tuple[tuple[str, str], ...]:
        """Return a small table of (name, text) rows for a person."""
        lines = tuple(
            (f"number {place}", f"{format_with_margin(mean.value, mean.margin())} (95%), {mean.reports:,} reports")
            for place, mean in enumerate(self.means, start=1)
        )
        return (*lines, ("promise", self.guarantee.explain()))

    def plot(self, *, title: str = "Estimated means") -> Figure:
        """Return bars of the means, as places between their bounds in percent, with 95% margins."""
        from cloister.plotting import bars_with_errors

        low, high = np.array([mean.bounds for mean in self.means]).T
        shares, margins = 100 * (self.values - low) / (high - low), 100 * self.margins() / (high - low)
        subtitle = f"{self.reports:,} reports; bars show 95% margins; {self.guarantee.brief()}"
        places = list(range(1, len(self) + 1))
        return bars_with_errors(
            places, shares.tolist(), margins.tolist(), title=title, x="number", y="percent of bounds", subtitle=subtitle
        )

    def _fields(self) -> dict[str, Any]:
        return {
            "protocol": self.protocol,
            "reports": self.reports,
            "means": [
                {
                    "value": mean.value,
                    "standard_error": mean.standard_error,
                    "reports": mean.reports,
                    "bounds": list(mean.bounds),
                }
                for mean in self.means
            ],
        }


class VectorProtocol(Protocol):
    """A protocol for several numbers of one person.

    Attributes:
        grids: the bounds of each number, and the steps between them.
    """

    grids: tuple[NumericGrid, ...]

    def __init__(self, *, bounds: object = None, epsilon: Number, steps: object = STEPS) -> None:
        super().__init__(epsilon=epsilon)
        if bounds is None:
            raise missing_bounds()
        if isinstance(bounds, str) or not isinstance(bounds, Sequence | np.ndarray) or not len(bounds):
            raise ParameterTypeError(
                "bounds must be a list of pairs.", fix="write a pair for each number: bounds=[(0, 110), (0, 1)]."
            )
        self.grids = tuple(NumericGrid.of(pair, steps) for pair in bounds)

    @property
    def bounds(self) -> tuple[tuple[Fraction, Fraction], ...]:
        """Return the public bounds of each number."""
        return tuple((grid.low, grid.high) for grid in self.grids)

    @property
    def dimensions(self) -> int:
        """Return how many numbers a person has."""
        return len(self.grids)

    @property
    def steps(self) -> int:
        """Return the number of steps between the bounds."""
        return self.grids[0].steps

    @property
    def share(self) -> Fraction:
        """Return the share of the reports that speak about any one of the numbers."""
        return Fraction(1)

    def encode(self, values: Any) -> tuple[NDArray[np.int64], bool]:  # one row of numbers or many
        """Return the steps of the numbers, one row for each person, and whether it was a single person."""
        found = numbers_of(values)
        if found.ndim not in (1, 2) or found.shape[-1] != self.dimensions:
            raise OutsideDomainError(
                f"A person's numbers are not {self.dimensions}.",
                fix=f"give rows of {self.dimensions} numbers, one row for each person.",
            )
        rows = np.atleast_2d(found)
        return np.stack([grid.places(rows[:, j]) for j, grid in enumerate(self.grids)], axis=1), found.ndim == 1

    def perturb_many(self, codes: NDArray[Any], draws: SourceDraws) -> Payload:
        """Return reports of many people, some people at a time, so that memory does not grow with their numbers."""
        people = max(1, _CHUNK // self.dimensions)
        # Nobody at all is one empty part, as a concatenation of nothing has no type.
        starts = range(0, max(len(codes), 1), people)
        return np.concatenate([self.perturb(codes[start : start + people], draws) for start in starts])

    def debias(self, reports: Any) -> Floats:  # whatever holds reports
        """Return a row for each report whose expectation is its sender's numbers."""
        return self._values(self._places(self.read(reports).payload))

    def estimate(self, reports: Any) -> VectorEstimate:  # whatever holds reports
        """Return the mean of each number.

        Raises:
            ForeignReportError: if reports were made with another protocol.
            MalformedReportError: if a report is not one that this protocol can make.
            TooFewReportsError: if there are fewer than two about one of the numbers.
        """
        found = self.read(reports)
        count, guarantee = enough(len(found), at_least=2), self.guarantee_of(found)
        least = min(variance for _, variance in self._extremes)
        means = tuple(
            mean_of(column, grid, least=least, protocol=self.name, guarantee=guarantee)
            for column, grid in zip(self._columns(found.payload), self.grids, strict=True)
        )
        return VectorEstimate(means=means, reports=count, protocol=self.name, guarantee=guarantee)

    def variance(self, values: Any = None) -> Floats:  # one row of numbers
        """Return for each number its mean's variance times the number of reports, for true numbers or the worst ones.

        This is what the noise alone causes when all people have the same numbers.
        """
        if values is None:
            worst = max(variance for _, variance in self._extremes)
            return self._units**2 * worst / float(self.share)
        steps = self.encode(values)[0][0].tolist()
        variances = np.array([float(self._step_variance(step)) for step in steps])
        return np.asarray(self._units**2 * variances / float(self.share))

    def spread(self) -> Floats:
        """Return the largest such variances when people's numbers differ as much as they can."""
        middle = self.steps / 2
        # People differ most at the two bounds, half of them at each: their spread adds to that of the noise.
        worst = max(variance + (step - middle) ** 2 for step, variance in self._extremes)
        return self._units**2 * worst / float(self.share)

    def respondents(self, margin: object, *, confidence: Number = 0.95) -> int:
        """Return how many reports bring the margin of every mean down to a half-width, whatever the numbers are."""
        return respondents_needed(float(self.spread().max()), margin, confidence)

    @property
    def _units(self) -> Floats:
        return np.array([grid.unit for grid in self.grids])

    def _values(self, places: Floats) -> Floats:
        return np.array([grid.ends[0] for grid in self.grids]) + self._units * places

    @cached_property
    def _extremes(self) -> list[tuple[int, float]]:
        return [(step, float(self._step_variance(step))) for step in (0, self.steps // 2, self.steps)]

    def _columns(self, payload: Payload) -> Iterable[Floats]:
        """Return for each number the readings that speak about it, in steps."""
        return self._places(payload).T

    @abstractmethod
    def _places(self, payload: Payload) -> Floats:
        """Return the unbiased readings of each report, in steps."""

    @abstractmethod
    def _step_variance(self, step: int) -> Fraction | float:
        """Return the variance of a reading for a true step, in squared steps."""

    def _domain_record(self) -> dict[str, Any]:
        texts = [grid.texts for grid in self.grids]
        return {"bounds": texts, "domain_hash": bounds_hash(text for pair in texts for text in pair)}

    def _domain_words(self) -> str:
        return f"{self.dimensions} numbers"

    def _options(self) -> dict[str, Any]:
        return {"steps": self.steps}
