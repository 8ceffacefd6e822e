"""Whether many estimates scatter as their standard error says, and not as one that is 10% off."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike
from scipy import special

from cloister.testing import FALSE_ALARM


def is_plausible(deviations: ArrayLike, error: float) -> bool:
    """Return whether the sum of squared deviations fits a standard error, at the false-alarm rate."""
    scaled = np.asarray(deviations, dtype=float) / error
    total, degrees = float((scaled**2).sum()), len(scaled)
    return min(special.chdtr(degrees, total), special.chdtrc(degrees, total)) > FALSE_ALARM / 2


def assert_scatters(deviations: ArrayLike, error: float) -> None:
    """The deviations fit the error, and refute one that is 10% too small or too large; nor have they a bias."""
    values = np.asarray(deviations, dtype=float)
    assert is_plausible(values, error)
    assert not is_plausible(values, 0.9 * error)
    assert not is_plausible(values, 1.1 * error)
    assert abs(values.mean()) < 6.2 * error / np.sqrt(len(values))
