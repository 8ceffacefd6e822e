"""Estimates from local reports: numbers about everybody, with the error that the reports' noise leaves.

Raw estimates are unbiased and may be negative or above the number of reports. `FrequencyEstimate.consistent` mends
that at the price of a small bias for rare values.

Every estimate carries the guarantee of its reports. `attach_guarantee` writes the one of a whole collection on it and
on the estimates within it. Numbers are told to people without powers of ten, and with no more digits than the margin
allows.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, fields, replace
from statistics import NormalDist
from typing import TYPE_CHECKING, Any, ClassVar, Self, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from cloister.core.exact import Number
from cloister.core.guarantees import Guarantee
from cloister.core.postprocessing import clip, norm_sub, project_to_simplex
from cloister.core.result import Result
from cloister.core.validation import check_choice, check_confidence
from cloister.core.wordings import format_count, format_points, format_with_margin
from cloister.data.columns import Category
from cloister.errors import TooFewReportsError

if TYPE_CHECKING:
    from cloister.plotting import Figure

__all__ = [
    "ByValue",
    "FrequencyEstimate",
    "MeanEstimate",
    "attach_guarantee",
    "enough",
    "z_of",
]


_R = TypeVar("_R", bound=Result)


def attach_guarantee(estimate: _R, guarantee: Guarantee, *notes: str) -> _R:
    """Return an estimate that carries a guarantee, as do the estimates within it: those of a vector's numbers, a mean.

    Args:
        estimate: of any protocol.
        guarantee: what its people are promised in all.
        notes: further sentences, for estimates that have notes.
    """
    changes: dict[str, Any] = {"guarantee": guarantee}
    # Estimates within the estimate rest on the same reports: none of them may keep a smaller promise of its own.
    for part in fields(estimate):
        value = getattr(estimate, part.name)
        if isinstance(value, Result):
            changes[part.name] = attach_guarantee(value, guarantee)
        elif isinstance(value, tuple) and value and all(isinstance(item, Result) for item in value):
            changes[part.name] = tuple(attach_guarantee(item, guarantee) for item in value)
    if hasattr(estimate, "notes"):
        changes["notes"] = (*estimate.notes, *notes)
    return replace(estimate, **changes)


Floats: TypeAlias = NDArray[np.float64]

_COLUMNS = ("value", "count", "share", "raw_count", "standard_error")
_TELLING = 0.5
"""A margin of half of all there is: beyond, an estimate says nothing."""


class ByValue(dict[Any, float]):  # keys are values of a domain, or pairs of them
    """A number for each value of the domain, in its order; `numpy.asarray` gives the numbers alone."""

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:  # noqa: FBT001  # numpy's own signature
        return np.array(list(self.values()), dtype=dtype or np.float64)


def z_of(confidence: Number) -> float:
    """Return how many standard errors cover a normal estimate with a confidence."""
    return NormalDist().inv_cdf(0.5 + float(check_confidence(confidence)) / 2)


def enough(count: int, *, at_least: int = 1) -> int:
    """Return the number of reports, or raise.

    Raises:
        TooFewReportsError: if there are fewer than are needed.
    """
    if count < at_least:
        raise TooFewReportsError(
            f"An estimate needs at least {format_count(at_least, 'report')}, there are {count}.",
            fix="collect more reports first; the planner says how many a wanted error takes.",
        )
    return count


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class FrequencyEstimate(Result):
    """How many people have each value, as far as their reports tell.

    Attributes:
        domain: the public values, in order.
        raw_counts: an unbiased estimate for each.
        raw_errors: its standard error.
        reports: the number of reports.
        protocol: the name of the protocol, or of several.
        method: ``"raw"`` for the unbiased estimate, else how it was mended.
        mended_counts: what `counts` and `frequencies` show instead of the raw counts, if they were mended. Errors,
            margins and intervals stay those of the raw counts.
    """

    schema: ClassVar[str] = "cloister.local_frequencies/1"

    domain: tuple[Category, ...]
    raw_counts: Floats = field(repr=False)
    raw_errors: Floats = field(repr=False)
    reports: int
    protocol: str
    method: str = "raw"
    mended_counts: Floats | None = field(default=None, repr=False)
    notes: tuple[str, ...] = ()

    @property
    def counts(self) -> ByValue:
        """Return the estimated number of people with each value."""
        return self._by_value(self._shown)

    @property
    def frequencies(self) -> ByValue:
        """Return the estimated share of each value."""
        return self._by_value(self._shown / self.reports)

    @property
    def standard_errors(self) -> ByValue:
        """Return the standard error of each count."""
        return self._by_value(self.raw_errors)

    @property
    def frequency_errors(self) -> ByValue:
        """Return the standard error of each share."""
        return self._by_value(self.raw_errors / self.reports)

    def margins(self, confidence: Number = 0.95) -> ByValue:
        """Return the half-width of each count's interval."""
        return self._by_value(z_of(confidence) * self.raw_errors)

    def intervals(self, confidence: Number = 0.95) -> dict[Category, tuple[float, float]]:
        """Return (low, high) around each raw count: these cover the truth as often as the confidence says."""
        half = z_of(confidence) * self.raw_errors
        low, high = (self.raw_counts - half).tolist(), (self.raw_counts + half).tolist()
        return dict(zip(self.domain, zip(low, high, strict=True), strict=True))

    def consistent(self, method: str = "norm_sub") -> FrequencyEstimate:
        """Return counts that are not negative and add up to the number of reports.

        Args:
            method: ``"norm_sub"`` (negative counts become 0, the others give way equally), ``"simplex"`` (the nearest
                counts) or ``"clip"`` (negative counts become 0, nothing else; they then add up to too much).

        Errors, margins and intervals stay those of the raw counts. Rare values are biased afterwards.
        """
        ways = {
            "norm_sub": lambda: norm_sub(self.raw_counts, total=self.reports),
            "simplex": lambda: project_to_simplex(self.raw_counts, total=self.reports),
            "clip": lambda: clip(self.raw_counts),
        }
        counts = ways[check_choice(method, name="method", allowed=ways)]()
        return self.mended(counts, method)

    def mended(self, counts: Floats, method: str, *notes: str) -> Self:
        """Return the same estimate, showing other counts than the raw ones."""
        return replace(self, mended_counts=counts, method=method, notes=(*self.notes, *notes))

    @property
    def is_telling(self) -> bool:
        """Return whether a typical margin is below 50 points: otherwise nothing can be said about single values."""
        return float(np.median(self._half_widths)) < _TELLING * self.reports

    def __str__(self) -> str:
        margin = float(np.median(self._half_widths)) / self.reports
        reports = format_count(self.reports, "report")
        return (
            f"shares of {len(self.domain)} values from {reports}{self._mending}, "
            f"typically ± {format_points(margin, digits=2)} points (95%), {self.guarantee.brief()}"
            if self.is_telling
            else f"{reports} of {len(self.domain)} values: too few to say anything about single values "
            f"(± {format_points(margin, digits=2)} points), {self.guarantee.brief()}"
        )

    def summary(self) -> tuple[tuple[str, str], ...]:
        """Return a small table of (name, text) rows for a person."""
        rows = zip(self.domain, self._shown, self.raw_counts, self._half_widths, strict=True)
        return (
            *((str(value), self._line(*numbers)) for value, *numbers in rows),
            ("promise", self.guarantee.explain()),
            *(("note", note) for note in self._all_notes),
        )

    def plot(self, *, title: str = "Estimated shares") -> Figure:
        """Return bars of the shares, raw ones with their 95% margins."""
        from cloister.plotting import bars_with_errors

        # Margins belong to the raw counts; at mended bars they would claim a precision that nobody worked out.
        margins = None if self._mending else (100 * self._half_widths / self.reports).tolist()
        lines = f"mended ({self.method}), without margins" if self._mending else "lines show 95% margins"
        return bars_with_errors(
            list(self.domain),
            (100 * self._shown / self.reports).tolist(),
            margins,
            title=title,
            x="",
            y="percent",
            subtitle=f"{format_count(self.reports, 'report')}; {lines}; {self.guarantee.brief()}",
        )

    @property
    def _shown(self) -> Floats:
        return self.raw_counts if self.mended_counts is None else self.mended_counts

    @property
    def _half_widths(self) -> Floats:
        return z_of(0.95) * self.raw_errors

    @property
    def _mending(self) -> str:
        return "" if self.mended_counts is None else f" (mended: {self.method})"

    @property
    def _all_notes(self) -> tuple[str, ...]:
        few = () if self.is_telling else ("There are too few reports to say anything about single values.",)
        return (*self.notes, *few)

    def _line(self, shown: float, raw: float, half: float) -> str:
        raw_words = "" if self.mended_counts is None else f"{shown:,.0f}, before mending "
        return f"{raw_words}{raw:,.0f} ± {half:,.0f} (95%)"

    def _by_value(self, numbers: Iterable[Any]) -> ByValue:
        return ByValue(zip(self.domain, map(float, numbers), strict=True))

    def _fields(self) -> dict[str, Any]:
        columns = (self._shown.tolist(), self.raw_counts.tolist(), self.raw_errors.tolist())
        return {
            "protocol": self.protocol,
            "reports": self.reports,
            "method": self.method,
            "values": [
                dict(zip(_COLUMNS, (value, shown, shown / self.reports, raw, error), strict=True))
                for value, shown, raw, error in zip(self.domain, *columns, strict=True)
            ],
            "notes": list(self._all_notes),
        }


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class MeanEstimate(Result):
    """The mean of a number over the people who reported.

    Attributes:
        value: the unbiased estimate.
        standard_error: from the spread of the reports.
        reports: the number of reports.
        bounds: the public bounds; values outside were clamped on the device.
        protocol: the name of the protocol.
    """

    schema: ClassVar[str] = "cloister.local_mean/1"

    value: float
    standard_error: float
    reports: int
    bounds: tuple[float, float]
    protocol: str
    notes: tuple[str, ...] = ()

    def margin(self, confidence: Number = 0.95) -> float:
        """Return the half-width of the interval."""
        return z_of(confidence) * self.standard_error

    def interval(self, confidence: Number = 0.95) -> tuple[float, float]:
        """Return (low, high)."""
        half = self.margin(confidence)
        return self.value - half, self.value + half

    @property
    def is_telling(self) -> bool:
        """Return whether the margin is below half the distance of the bounds: otherwise the mean says nothing."""
        return self.margin() < _TELLING * (self.bounds[1] - self.bounds[0])

    def __str__(self) -> str:
        words = "" if self.is_telling else " (too few reports to say anything)"
        mean = format_with_margin(self.value, self.margin())
        return f"mean {mean} (95%) from {format_count(self.reports, 'report')}{words}, {self.guarantee.brief()}"

    def plot(self, *, title: str = "Estimated mean") -> Figure:
        """Return the mean as a point with its 95% margin."""
        from cloister.plotting import points_with_errors

        subtitle = f"{format_count(self.reports, 'report')}; the line shows the 95% margin; {self.guarantee.brief()}"
        return points_with_errors(["mean"], [self.value], [self.margin()], title=title, x="", subtitle=subtitle)

    def _fields(self) -> dict[str, Any]:
        return {
            "protocol": self.protocol,
            "reports": self.reports,
            "value": self.value,
            "standard_error": self.standard_error,
            "bounds": list(self.bounds),
            "notes": list(self.notes),
        }
