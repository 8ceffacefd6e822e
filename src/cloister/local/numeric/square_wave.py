"""The square wave: reports about one number from which its distribution can be fitted.

Li, Wang, Wang, Li and Škorić (2020). A device reports a point near its number, in a window whose width is chosen to
let reports tell as much as possible: 2 b of the bounds' width, ``b = (eps e - e + 1) / (2 e (e - 1 - eps))`` with
e = exp(eps). The collector counts the reports in bins and fits the shares of the numbers to them: the probabilities
of each output bin under each input bin are exact, all steps of a bin taken as equally likely.

Shares are fitted on a fine grid, smooth ones (``"smooth"``, the default) on at least 512 bins and the likeliest ones on
at least 64, then added up to the bins that were asked for: fitting few bins at once would bias them much more.

Privacy: claim epsilon-LDP; see `Window`.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cloister.core import exact
from cloister.core.validation import check_choice, check_count
from cloister.errors import ParameterError
from cloister.local.numeric.deconvolution import fit_shares
from cloister.local.numeric.distribution import DistributionEstimate
from cloister.local.numeric.grid import Floats
from cloister.local.numeric.resampling import MARGINS_ARE, TRIES, bins_for, distinct_bins, refitted
from cloister.local.numeric.sliding import SlidingProtocol
from cloister.local.numeric.window import Window
from cloister.local.output_space import Payload
from cloister.local.protocol import protocols

__all__ = ["SquareWave", "bin_law", "edges_of", "square_wave_window"]

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
    before = np.maximum(edges[:, None] - starts, 0)
    full = np.minimum(before, window.width)
    total = full * (full + 1) // 2 + (before - full) * window.width
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
                apart at this epsilon, see `cloister.local.numeric.resampling`.
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
        others = refitted(fit, law, reports=len(found), smooth=smooth, tries=tries) if tries else None
        return DistributionEstimate(
            edges=self.grid.values(np.linspace(0, self.grid.steps, size + 1)),
            shares=_added_up(fit.shares, size),
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


def _added_up(shares: Floats, bins: int) -> Floats:
    return np.asarray(shares.reshape(bins, -1).sum(axis=1))
