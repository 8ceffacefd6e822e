"""How far fitted shares can be off, and how many bins they can tell apart.

Margins come from a parametric bootstrap (Efron and Tibshirani 1993): counts that the fitted shares lead to are drawn
again and again, each time with the noise of devices and of who took part, and shares are fitted to each. How far these
lie from the fitted shares, squared and averaged, holds both the noise and the bias of the fit for people who look like
the fitted ones. Draws are the same for the same reports, so that an estimate is.

The number of bins is a public rule: the 95% margin of a share then is about a third of what equal shares would be. On
a bell, a long tail and two peaks the published window has such margins with about ``eps sqrt(n) / 16`` bins.
"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from cloister.core._late import late_module
from cloister.core.random import SeededRandomSource, integers_below
from cloister.local.numeric.deconvolution import Fit, fit_many
from cloister.local.numeric.grid import Floats

special = late_module("scipy.special")

__all__ = ["MARGINS_ARE", "MOST_SHOWN", "TRIES", "bins_for", "distinct_bins", "drawn_anew", "refitted"]

TRIES = 40
"""How often shares are fitted anew unless told otherwise: deviations are then known to about a ninth."""

MOST_SHOWN = 32
"""The largest number of bins that the public rule gives."""

MARGINS_ARE = (
    "margins come from fitting simulated reports anew: in trials they held for about nine shares in ten, for fewer "
    "where the truth has peaks or ends that the fit smooths away"
)
"""What an estimate says about its margins."""

_REPORTS_PER_BIN = 16
_STEPS = tuple(map(Fraction, ("1", "2", "2.5", "3", "4", "5")))
_SEED = 1979


def distinct_bins(reports: int, epsilon: Fraction) -> float:
    """Return how many bins so many reports can tell apart; below 1.5 they tell nothing of a distribution."""
    return float(epsilon) * math.sqrt(reports) / _REPORTS_PER_BIN


def bins_for(reports: int, epsilon: Fraction, width: Fraction) -> int:
    """Return the number of bins to show: what can be told apart, with round ends where that is near.

    >>> bins_for(20_000, Fraction(1), Fraction(100)), bins_for(500, Fraction(1), Fraction(100))
    (10, 2)
    """
    wanted = distinct_bins(reports, epsilon)
    most = min(max(math.floor(1.2 * wanted), 2), MOST_SHOWN)
    power = Fraction(10) ** math.floor(math.log10(width / most))
    counts = (width / (power * scale * step) for scale in (1, 10) for step in _STEPS)
    whole = max((int(count) for count in counts if count.denominator == 1 and count <= most), default=0)
    return whole if whole >= max(2, 0.6 * min(wanted, MOST_SHOWN)) else min(max(round(wanted), 2), MOST_SHOWN)


def drawn_anew(expected: Floats, tries: int) -> NDArray[np.float64]:
    """Return Poisson counts with expected values (rows), in columns; the same ones every time."""
    words = integers_below(SeededRandomSource(_SEED), 2**53, expected.size * tries).reshape(expected.size, tries)
    means = np.broadcast_to(np.maximum(expected, 1e-9)[:, None], words.shape)
    return np.asarray(np.maximum(np.ceil(np.nan_to_num(special.pdtrik((words + 0.5) / 2**53, means))), 0))


def refitted(fit: Fit, law: Floats, *, reports: int, smooth: bool, tries: int) -> Floats:
    """Return shares fitted to counts that are drawn from the fitted shares: one row for each try."""
    counts = drawn_anew(reports * (law @ fit.shares), tries)
    counts[0] += counts.sum(axis=0) == 0  # a try without any report
    return fit_many(counts, law, fit.shares, smooth=smooth).T
