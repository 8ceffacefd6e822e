"""The estimated distribution of a number: shares of bins, quantiles, and the mean with its interval."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import pairwise
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from cloister.core.result import Result
from cloister.core.validation import check_probability
from cloister.errors import ParameterError
from cloister.local.estimates import MeanEstimate, z_of
from cloister.local.numeric.grid import Floats
from cloister.local.words import number_text, with_margin

if TYPE_CHECKING:
    from cloister.plotting import Figure

__all__ = ["DistributionEstimate"]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class DistributionEstimate(Result):
    """How people's numbers are distributed, as far as their reports tell.

    Shares are fitted: they are never negative, add up to 1, and are biased towards smooth (or, for the likeliest ones,
    towards ragged) shapes. Margins hold the noise and as much of the bias as simulated reports show; `notes` say how
    good they are. The mean is unbiased.

    Attributes:
        edges: the ends of the bins, one more than there are bins.
        shares: the estimated share of each bin.
        fine: the shares as they were fitted, in more bins of equal width; quantiles come from these.
        refits: fine shares that were fitted to simulated reports, one row for each try; None if there were none.
        mean: the unbiased estimate of the mean, from the reports and not from the shares.
        reports: the number of reports.
        method: ``"smooth"`` or ``"likeliest"``.
        converged: whether the fit came to its end.
        steps: how many steps it took.
        gap: how much more log-likelihood other shares can have, at most; smooth shares have less on purpose.
        protocol: the name of the protocol.
        telling: whether there are enough reports to say anything about the distribution.
        notes: how good the margins are, and what the reports cannot tell.
    """

    schema: ClassVar[str] = "cloister.local_distribution/1"

    edges: Floats = field(repr=False)
    shares: Floats = field(repr=False)
    fine: Floats = field(repr=False)
    refits: Floats | None = field(default=None, repr=False)
    mean: MeanEstimate
    reports: int
    method: str
    converged: bool
    steps: int
    gap: float
    protocol: str
    telling: bool = True
    notes: tuple[str, ...] = ()

    @property
    def deviations(self) -> Floats | None:
        """Return how far each share lies from those of simulated reports, as a root of mean squares; None without."""
        return None if self.refits is None else self._deviations(self.refits)

    def margins(self, confidence: object = 0.95) -> Floats:
        """Return the half-width of each share's interval.

        Raises:
            ParameterError: if the estimate was made with ``resamples=0``.
        """
        return z_of(confidence) * self._deviations(self._refits)

    def intervals(self, confidence: object = 0.95) -> Floats:
        """Return (low, high) of each share within 0 and 1, one row for each bin."""
        half = self.margins(confidence)
        return np.stack([self.shares - half, self.shares + half], axis=1).clip(0, 1)

    @property
    def cumulative(self) -> Floats:
        """Return the share of people below each edge."""
        return _below(self.shares)

    def quantile(self, share: object) -> float:
        """Return the number below which a share of the people lies, even within a bin; see `quantile_margin`."""
        return self._quantile(self.fine, float(check_probability(share, name="share")))

    def quantile_margin(self, share: object, confidence: object = 0.95) -> float:
        """Return the half-width of the interval of a quantile.

        Raises:
            ParameterError: if the estimate was made with ``resamples=0``.
        """
        wanted = float(check_probability(share, name="share"))
        others = np.array([self._quantile(shares, wanted) for shares in self._refits])
        return z_of(confidence) * float(_apart(others, self._quantile(self.fine, wanted)))

    def quantile_interval(self, share: object, confidence: object = 0.95) -> tuple[float, float]:
        """Return (low, high) of a quantile, within the bounds."""
        value, half = self.quantile(share), self.quantile_margin(share, confidence)
        return max(value - half, float(self.edges[0])), min(value + half, float(self.edges[-1]))

    def share_below(self, value: object) -> float:
        """Return the share of people below a number."""
        edges = np.linspace(self.edges[0], self.edges[-1], len(self.fine) + 1)
        return float(np.interp(float(value), edges, _below(self.fine)))  # type: ignore[arg-type]  # any number

    def __str__(self) -> str:
        end = "" if self.converged else ", fit not converged"
        source = f"from {self.reports:,} reports{end}, {self.guarantee.brief()}"
        if not self.telling:
            mean = with_margin(self.mean.value, self.mean.margin())
            return f"too few reports for a distribution; mean {mean} (95%) {source}"
        low, median, high = (self._shown(share) for share in (0.25, 0.5, 0.75))
        sure = "" if self.refits is None else " (95%)"
        return f"median {median}, middle half {low} to {high}{sure} {source}"

    def summary(self) -> tuple[tuple[str, str], ...]:
        """Return a small table of (name, text) rows for a person."""
        quantiles = tuple((f"{100 * share:.0f}% are below", self._shown(share)) for share in _SHOWN)
        mean = f"{with_margin(self.mean.value, self.mean.margin())} (95%)"
        fit = f"{self.method}, {'converged' if self.converged else 'NOT converged'} after {self.steps:,} steps"
        notes = tuple(("note", note) for note in self.notes)
        return (*quantiles, ("mean", mean), ("fit", fit), ("promise", self.guarantee.explain()), *notes)

    def plot(self, *, title: str = "Estimated distribution") -> Figure:
        """Return bars of the shares with their 95% margins, if there are any; labels are the ends of the bins."""
        from cloister.plotting import bars_with_errors

        ends = [number_text(float(edge), 6) for edge in self.edges]
        labels = [f"{low} to {high}" for low, high in pairwise(ends)]
        bars = None if self.refits is None else (100 * self.margins()).tolist()
        shown = "no margins" if bars is None else "bars show 95% margins"
        few = "" if self.telling else "TOO FEW reports to tell; "
        subtitle = f"{few}{self.reports:,} reports; {shown}; {self.method} fit; {self.guarantee.brief()}"
        return bars_with_errors(
            labels, (100 * self.shares).tolist(), bars, title=title, x="", y="percent", subtitle=subtitle
        )

    @property
    def _refits(self) -> Floats:
        if self.refits is None:
            raise ParameterError(
                "This estimate has no margins: it was made with resamples=0.", fix="leave resamples out."
            )
        return self.refits

    def _deviations(self, refits: Floats) -> Floats:
        added_up = refits.reshape(len(refits), len(self.shares), -1).sum(axis=2)
        return _apart(added_up, self.shares)

    def _quantile(self, shares: Floats, wanted: float) -> float:
        below = _below(shares)
        place = int(np.clip(np.searchsorted(below, wanted, side="left"), 1, len(shares)))
        part = float(shares[place - 1])
        within = min(max((wanted - float(below[place - 1])) / part, 0.0), 1.0) if part else 0.0
        low, high = float(self.edges[0]), float(self.edges[-1])
        return low + (high - low) * (place - 1 + within) / len(shares)

    def _shown(self, share: float) -> str:
        value = self.quantile(share)
        return number_text(value) if self.refits is None else with_margin(value, self.quantile_margin(share))

    def _fields(self) -> dict[str, Any]:
        return {
            "protocol": self.protocol,
            "reports": self.reports,
            "method": self.method,
            "converged": self.converged,
            "steps": self.steps,
            "gap": self.gap,
            "edges": self.edges.tolist(),
            "shares": self.shares.tolist(),
            "deviations": None if (apart := self.deviations) is None else apart.tolist(),
            "mean": {"value": self.mean.value, "standard_error": self.mean.standard_error},
            "telling": self.telling,
            "notes": list(self.notes),
        }


_SHOWN = (0.05, 0.25, 0.5, 0.75, 0.95)


def _apart(others: Floats, found: object) -> Floats:
    """Return how far tries (rows) lie from what was found: the root of the mean square."""
    return np.asarray(np.sqrt(np.mean((others - np.asarray(found)) ** 2, axis=0)))


def _below(shares: Floats) -> Floats:
    return np.concatenate([[0.0], np.cumsum(shares)]).clip(0, 1)
