"""The frequent values that a search found, with their counts and errors."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar

from cloister.core.result import Result
from cloister.data.columns import Category
from cloister.local.estimates import ByValue, Floats, z_of

if TYPE_CHECKING:
    from cloister.plotting import Figure

__all__ = ["FrequentValues"]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class FrequentValues(Result):
    """Values that stand out from the noise, the most frequent first.

    Attributes:
        values: what was found; a value that is not listed may still be there, below the threshold.
        raw_counts: an estimate for each.
        raw_errors: its standard error.
        reports: the number of reports.
        protocol: the name of the protocol.
        threshold: the estimated count from which a value is listed.
        false_alarm: the probability that a value which nobody has is listed at all.
    """

    schema: ClassVar[str] = "cloister.frequent_values/1"

    values: tuple[Category, ...]
    raw_counts: Floats = field(repr=False)
    raw_errors: Floats = field(repr=False)
    reports: int
    protocol: str
    threshold: float
    false_alarm: float
    notes: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(self.values)

    @property
    def counts(self) -> ByValue:
        """Return the estimated number of people with each value."""
        return self._by_value(self.raw_counts)

    @property
    def frequencies(self) -> ByValue:
        """Return the estimated share of each value."""
        return self._by_value(self.raw_counts / self.reports)

    @property
    def standard_errors(self) -> ByValue:
        """Return the standard error of each count."""
        return self._by_value(self.raw_errors)

    def intervals(self, confidence: object = 0.95) -> dict[Category, tuple[float, float]]:
        """Return (low, high) for each count; a little too high for values near the threshold."""
        half = z_of(confidence) * self.raw_errors
        low, high = (self.raw_counts - half).tolist(), (self.raw_counts + half).tolist()
        return dict(zip(self.values, zip(low, high, strict=True), strict=True))

    def __str__(self) -> str:
        share = 100 * self.threshold / self.reports
        return (
            f"{len(self)} values above {share:.2g}% of {self.reports:,} reports "
            f"(chance of any false one {self.false_alarm:g}), {self.guarantee.brief()}"
        )

    def summary(self) -> tuple[tuple[str, str], ...]:
        """Return a small table of (name, text) rows for a person."""
        half = z_of(0.95) * self.raw_errors
        lines = tuple(
            (str(value), f"{count:,.0f} ± {margin:,.0f} (95%)")
            for value, count, margin in zip(self.values, self.raw_counts, half, strict=True)
        )
        kept = f"counts from {self.threshold:,.0f}; a false value is listed with probability {self.false_alarm:g}"
        rest = (("listed", kept), ("promise", self.guarantee.explain()))
        return (*lines, *rest, *(("note", note) for note in self.notes))

    def plot(self, *, title: str = "Frequent values") -> Figure:
        """Return bars of the shares with their 95% margins."""
        from cloister.plotting import bars_with_errors

        shares = 100 * self.raw_counts / self.reports
        margins = 100 * z_of(0.95) * self.raw_errors / self.reports
        subtitle = f"{self.reports:,} reports; bars show 95% margins; {self.guarantee.brief()}"
        return bars_with_errors(
            list(self.values), shares.tolist(), margins.tolist(), title=title, x="", y="percent", subtitle=subtitle
        )

    def _by_value(self, numbers: Iterable[Any]) -> ByValue:
        return ByValue(zip(self.values, map(float, numbers), strict=True))

    def _fields(self) -> dict[str, Any]:
        rows = zip(self.values, self.raw_counts.tolist(), self.raw_errors.tolist(), strict=True)
        return {
            "protocol": self.protocol,
            "reports": self.reports,
            "threshold": self.threshold,
            "false_alarm": self.false_alarm,
            "values": [
                {"value": value, "count": count, "share": count / self.reports, "standard_error": error}
                for value, count, error in rows
            ],
            "notes": list(self.notes),
        }
