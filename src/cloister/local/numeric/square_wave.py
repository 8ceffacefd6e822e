"""The square wave: reports about one number from which its distribution can be fitted.

Li, Wang, Wang, Li and Škorić (2020). A device reports a point near its number, in a window whose width is chosen to
let reports tell as much as possible: 2 b of the bounds' width, ``b = (eps e - e + 1) / (2 e (e - 1 - eps))`` with
e = exp(eps). The collector counts the reports in bins and fits the shares of the numbers to them: the probabilities
of each output bin under each input bin are exact, all steps of a bin taken as equally likely.

Shares are fitted on a fine grid, smooth ones (``"smooth"``, the default) on at least 512 bins and the likeliest ones on
at least 64, then added up to the bins that were asked for: fitting few bins at once would bias them much more.

`DistributionEstimate` is what comes of it: the shares of bins, quantiles, and the mean with its interval.

Privacy: claim epsilon-LDP; see `Window`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import pairwise
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from cloister.core import exact
from cloister.core.exact import Number
from cloister.core.result import Result
from cloister.core.validation import check_choice, check_count, check_probability
from cloister.core.wordings import format_number, format_with_margin
from cloister.errors import ParameterError
from cloister.local._output_space import Payload
from cloister.local.estimates import MeanEstimate, z_of
from cloister.local.numeric._bounds import Floats
from cloister.local.numeric._deconvolution import MARGINS_ARE, TRIES, bins_for, distinct_bins, fit_shares, refit_shares
from cloister.local.numeric._window import SlidingProtocol, Window
from cloister.local.protocol import protocols

if TYPE_CHECKING:
    from cloister.plotting import Figure

__all__ = ["DistributionEstimate", "SquareWave", "bin_law", "edges_of", "square_wave_window"]


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

    def margins(self, confidence: Number = 0.95) -> Floats:
        """Return the half-width of each share's interval.

        Raises:
            ParameterError: if the estimate was made with ``resamples=0``.
        """
        return z_of(confidence) * self._deviations(self._refits)

    def intervals(self, confidence: Number = 0.95) -> Floats:
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

    def quantile_margin(self, share: object, confidence: Number = 0.95) -> float:
        """Return the half-width of the interval of a quantile.

        Raises:
            ParameterError: if the estimate was made with ``resamples=0``.
        """
        wanted = float(check_probability(share, name="share"))
        others = np.array([self._quantile(shares, wanted) for shares in self._refits])
        return z_of(confidence) * float(_apart(others, self._quantile(self.fine, wanted)))

    def quantile_interval(self, share: object, confidence: Number = 0.95) -> tuple[float, float]:
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
            mean = format_with_margin(self.mean.value, self.mean.margin())
            return f"too few reports for a distribution; mean {mean} (95%) {source}"
        low, median, high = (self._format_quantile(share) for share in (0.25, 0.5, 0.75))
        sure = "" if self.refits is None else " (95%)"
        return f"median {median}, middle half {low} to {high}{sure} {source}"

    def summary(self) -> tuple[tuple[str, str], ...]:
        """Return a small table of (name, text) rows for a person."""
        quantiles = tuple((f"{100 * share:.0f}% are below", self._format_quantile(share)) for share in _SHOWN)
        mean = f"{format_with_margin(self.mean.value, self.mean.margin())} (95%)"
        fit = f"{self.method}, {'converged' if self.converged else 'NOT converged'} after {self.steps:,} steps"
        notes = tuple(("note", note) for note in self.notes)
        return (*quantiles, ("mean", mean), ("fit", fit), ("promise", self.guarantee.explain()), *notes)

    def plot(self, *, title: str = "Estimated distribution") -> Figure:
        """Return bars of the shares with their 95% margins, if there are any; labels are the ends of the bins."""
        from cloister.plotting import bars_with_errors

        ends = [format_number(float(edge), digits=6) for edge in self.edges]
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
        # Bins are whole groups of fine ones, so that refits are added up in the way the shares were.
        added_up = refits.reshape(len(refits), len(self.shares), -1).sum(axis=2)
        return _apart(added_up, self.shares)

    def _quantile(self, shares: Floats, wanted: float) -> float:
        below = _below(shares)
        place = int(np.clip(np.searchsorted(below, wanted, side="left"), 1, len(shares)))
        part = float(shares[place - 1])
        within = min(max((wanted - float(below[place - 1])) / part, 0.0), 1.0) if part else 0.0
        low, high = float(self.edges[0]), float(self.edges[-1])
        return low + (high - low) * (place - 1 + within) / len(shares)

    def _format_quantile(self, share: float) -> str:
        value = self.quantile(share)
        return format_number(value) if self.refits is None else format_with_margin(value, self.quantile_margin(share))

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


_FINE = {"smooth": 512, "likeliest": 64}
_OUTPUT_BINS = 512
_MOST_BINS = 1024
_LEAST_BINS = 1.5


def square_wave_window(epsilon: Fraction, steps: int) -> Window:
    """Return the window of the square wave."""
    e = exact.exp_bounds(epsilon)[0]
    return Window.of(epsilon, steps, (epsilon * e - e + 1) / (e * (e - 1 - epsilon)))


def edges_of(size: int, bins: int) -> NDArray[np.int64]:
    """Return where each of some bins of whole numbers below a size begins, and the size."""
    return np.array([-(-place * size // bins) for place in range(bins + 1)], dtype=np.int64)


def bin_law(window: Window, bins: int, output_bins: int) -> Floats:
    """Return the probability of each output bin (row) under each input bin (column).

    How many cells of the window lie before an edge, summed up over all steps of a bin, is a sum of whole numbers that
    is found exactly.
    """
    starts = edges_of(window.steps, bins)
    starts[-1] += 1  # the last step belongs to the last bin
    edges = edges_of(window.cells, output_bins)
    # A step t has min(e - t, L) window cells before an edge e; over all steps from a start on they are a triangle and a
    # rectangle.
    before = np.maximum(edges[:, None] - starts, 0)
    full = np.minimum(before, window.width)
    total = full * (full + 1) // 2 + (before - full) * window.width
    # Differences of two starts leave the steps of a bin, those of two edges the cells of an output bin.
    inside = np.diff(total[:, :-1] - total[:, 1:], axis=0) / np.diff(starts)
    share = float(window.inside)
    outside = np.diff(edges)[:, None] - inside
    return np.asarray(share / window.width * inside + (1 - share) / window.steps * outside)


@protocols.register("square_wave")
class SquareWave(SlidingProtocol):
    """A point near a number, for the distribution of people's numbers.

    >>> protocol = SquareWave(bounds=(0, 100), epsilon=2)
    >>> reports = protocol.randomize([20, 35, 50] * 1000)
    >>> estimate = protocol.estimate(reports, bins=10)
    >>> estimate.shares.size, len(estimate.margins())
    (10, 10)
    """

    name = "square_wave"
    in_browsers = True

    def _window(self) -> Window:
        return square_wave_window(self.epsilon, self.grid.steps)

    def estimate(
        self,
        reports: Any,  # whatever holds reports
        *,
        bins: object = None,
        method: str = "smooth",
        resamples: object = TRIES,
    ) -> DistributionEstimate:
        """Return the distribution of people's numbers.

        Args:
            reports: what the devices sent.
            bins: into how many equal parts the bounds are divided; by default as many as so many reports can tell
                apart at this epsilon, see `cloister.local.numeric._deconvolution`.
            method: ``"smooth"`` (EMS) or ``"likeliest"`` (EM, for distributions with peaks or gaps).
            resamples: how often to fit again to simulated reports, for margins; 0 for none.

        Raises:
            ForeignReportError: if reports were made with another protocol.
            MalformedReportError: if a report is not one that this protocol can make.
            TooFewReportsError: if there are fewer than two.
        """
        found = self.read(reports)
        mean, size = self.mean(found), self._bins(bins, len(found))
        smooth = check_choice(method, name="method", allowed=_FINE) == "smooth"
        tries = check_count(resamples, name="resamples")
        law = bin_law(self.window, self._fine(size, _FINE[method]), self._output_bins)
        fit = fit_shares(self._counts(found.payload), law, smooth=smooth)
        others = refit_shares(fit, law, reports=len(found), smooth=smooth, tries=tries) if tries else None
        return DistributionEstimate(
            edges=self.grid.values(np.linspace(0, self.grid.steps, size + 1)),
            shares=_sum_bins(fit.shares, size),
            fine=fit.shares,
            refits=others,
            mean=mean,
            reports=len(found),
            method=method,
            converged=fit.converged,
            steps=fit.steps,
            gap=fit.gap,
            protocol=self.name,
            telling=distinct_bins(len(found), self.epsilon) >= _LEAST_BINS,
            notes=self._notes(len(found), size, margins=bool(tries)),
            guarantee=self.guarantee_of(found),
        )

    def _notes(self, reports: int, bins: int, *, margins: bool) -> tuple[str, ...]:
        apart = distinct_bins(reports, self.epsilon)
        found = [MARGINS_ARE] if margins else []
        if apart < _LEAST_BINS:
            needed = math.ceil((_LEAST_BINS * reports**0.5 / apart) ** 2)
            found.append(
                f"too few reports to tell how numbers are distributed: shares and quantiles are guesses below "
                f"about {needed:,} reports at this epsilon; the mean has an honest margin"
            )
        elif bins > 2 * apart:
            found.append(
                f"so many reports tell about {round(apart)} bins apart; humps among {bins} bins may be made by noise"
            )
        return tuple(found)

    @property
    def _output_bins(self) -> int:
        return min(_OUTPUT_BINS, self.window.cells)

    def _counts(self, payload: Payload) -> NDArray[np.int64]:
        """Return the number of reports in each output bin."""
        edges = edges_of(self.window.cells, self._output_bins)
        return np.bincount(np.searchsorted(edges, payload["y"], side="right") - 1, minlength=self._output_bins)

    def _bins(self, bins: object, reports: int) -> int:
        most = min(_MOST_BINS, self.grid.steps)
        if bins is None:
            return min(bins_for(reports, self.epsilon, self.grid.width), most)
        size = check_count(bins, name="bins", at_least=2)
        if size > most:
            raise ParameterError(f"There are at most {most} bins.", fix=f"use for example bins={min(32, most)}.")
        return size

    def _fine(self, bins: int, least: int) -> int:
        """Return a multiple of the bins that is fine enough, but not finer than the steps."""
        return bins * max(1, min(-(-least // bins), self.grid.steps // bins))


def _sum_bins(shares: Floats, bins: int) -> Floats:
    return np.asarray(shares.reshape(bins, -1).sum(axis=1))
