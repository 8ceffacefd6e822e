"""Is an attacker right as often as they claim? Brier scores, their parts, reliability and coverage.

A claim is a probability p together with whether it came true. The Brier score is the mean of ``(I - p)**2``. With p
replaced by the center of its bin it is exactly CAL + REF: the miscalibration ``sum n_i (r_i - p_i)**2 / n`` and the
refinement ``sum n_i r_i (1 - r_i) / n``, where r_i is how often claims of bin i came true (Murphy 1973; DeGroot and
Fienberg 1983). Both scores, with and without bins, are kept apart here, since they are not the same number.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from cloister.attacks.confidence import Floats, binomial_bounds
from cloister.core import validation
from cloister.errors import ParameterError

__all__ = ["Calibration", "ReliabilityBin", "calibration_of", "checked_claims", "coverage_of"]

THRESHOLDS = (0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.99)


@dataclass(frozen=True, slots=True, kw_only=True)
class ReliabilityBin:
    """Claims of about the same probability.

    Attributes:
        center: what claims of this bin count as.
        claimed: their mean.
        count: how many there are.
        observed: the share that came true.
        interval: an exact 95% interval of that share, if claims are independent.
    """

    center: float
    claimed: float
    count: int
    observed: float
    interval: tuple[float, float]


@dataclass(frozen=True, slots=True, kw_only=True)
class Calibration:
    """How well claimed probabilities fit what happened.

    Attributes:
        brier: the Brier score of the claims as they are; 0 is perfect.
        brier_quantized: that of claims moved to the centers of their bins: ``calibration + refinement``.
        calibration: CAL, the squared distance of the bins' centers from what happened; 0 is perfectly honest.
        refinement: REF, what is left for claims that say as little.
        expected_error: the mean distance of a bin's mean claim from what happened (ECE).
        bins: the reliability diagram as numbers; only bins that have claims.
    """

    brier: float
    brier_quantized: float
    calibration: float
    refinement: float
    expected_error: float
    bins: tuple[ReliabilityBin, ...]

    def to_dict(self) -> dict[str, Any]:
        """Return JSON-ready values."""
        return {
            "brier": self.brier,
            "brier_quantized": self.brier_quantized,
            "calibration": self.calibration,
            "refinement": self.refinement,
            "expected_error": self.expected_error,
            "bins": [[found.center, found.claimed, found.count, found.observed] for found in self.bins],
        }


def calibration_of(claimed: Any, came_true: Any, *, bins: int = 10) -> Calibration:
    """Return how well claimed probabilities fit what happened, in bins of equal width.

    Args:
        claimed: the probabilities.
        came_true: whether each came true.
        bins: how many bins of equal width there are.

    >>> found = calibration_of([0.9, 0.9, 0.9, 0.2], [1, 1, 0, 0])
    >>> round(found.brier, 4)
    0.2175
    """
    number = validation.check_count(bins, name="bins", at_least=1)
    stated, happened = checked_claims(claimed, came_true)
    bin_of = np.minimum((stated * number).astype(np.int64), number - 1)
    counts = np.bincount(bin_of, minlength=number)
    used = np.flatnonzero(counts)
    counts = counts[used]
    centers = (used + 0.5) / number
    means, observed = (np.bincount(bin_of, item, minlength=number)[used] / counts for item in (stated, happened))
    calibration = float(counts @ (observed - centers) ** 2) / len(stated)
    refinement = float(counts @ (observed * (1 - observed))) / len(stated)
    found = []
    for center, mean, count, share in zip(centers, means, counts.tolist(), observed, strict=True):
        low, high = binomial_bounds(share * count, count, alpha=0.05)
        found.append(
            ReliabilityBin(
                center=float(center),
                claimed=float(mean),
                count=count,
                observed=float(share),
                interval=(float(low), float(high)),
            )
        )
    return Calibration(
        brier=float(((happened - stated) ** 2).mean()),
        brier_quantized=float(((happened - (bin_of + 0.5) / number) ** 2).mean()),
        calibration=calibration,
        refinement=refinement,
        expected_error=float(counts @ np.abs(observed - means)) / len(stated),
        bins=tuple(found),
    )


def coverage_of(
    claimed: Any, came_true: Any, *, thresholds: Sequence[float] = THRESHOLDS
) -> tuple[tuple[float, float, float | None], ...]:
    """Return, for each threshold, the share of claims of at least that much and the share of those that came true.

    >>> coverage_of([0.9, 0.8, 0.2, 0.2], [1, 0, 0, 0], thresholds=[0.5, 0.85, 1])
    ((0.5, 0.5, 0.5), (0.85, 0.25, 1.0), (1.0, 0.0, None))
    """
    stated, happened = checked_claims(claimed, came_true)
    found = []
    for threshold in thresholds:
        sure = stated >= threshold
        right = float(happened[sure].mean()) if sure.any() else None
        found.append((float(threshold), float(sure.mean()), right))
    return tuple(found)


def checked_claims(claimed: Any, came_true: Any) -> tuple[Floats, Floats]:
    """Return probabilities and what came of them as arrays; what makes no sense is refused."""
    try:
        stated, happened = (np.asarray(item, dtype=np.float64).ravel() for item in (claimed, came_true))
    except (TypeError, ValueError):
        raise ParameterError(
            "Claims are probabilities, and whether each came true.", fix="give two lists of numbers from 0 to 1."
        ) from None
    if not len(stated) or len(stated) != len(happened):
        raise ParameterError(
            f"There are {len(stated)} claims and {len(happened)} outcomes.",
            fix="give one outcome for every claim, at least one.",
        )
    if not ((stated >= 0) & (stated <= 1)).all() or not np.isin(happened, (0, 1)).all():
        raise ParameterError(
            "A claim is no probability, or an outcome is neither true nor false.",
            fix="give probabilities from 0 to 1, and True or False for each.",
        )
    return stated, happened
