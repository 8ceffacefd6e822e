"""The mean of a rating: from the same reports as its shares, with the error that the reports show.

Each report has an unbiased reading of its sender's rating, a linear function of what it supports. Their mean estimates
the mean rating, and their spread its error, for everybody whom the respondents stand for; the spread is never taken to
be less than the noise alone has.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from cloister.data.columns import Category
from cloister.local.estimates import MeanEstimate
from cloister.local.frequency.pram import Pram
from cloister.local.frequency.randomized_response import DirectEncoding
from cloister.local.frequency.unary import UnaryEncoding
from cloister.local.reports import Reports

__all__ = ["mean_rating"]

Floats: TypeAlias = NDArray[np.float64]


def mean_rating(reports: Reports, options: Sequence[Category]) -> MeanEstimate | None:
    """Return the mean of ratings that are numbers.

    Returns:
        The estimate; None if the ratings are words, there are fewer than two reports, or the protocol's reports have no
        simple reading.
    """
    if len(reports) < 2 or not all(isinstance(option, int | float) for option in options):
        return None
    found = _readings(reports, np.array(options, dtype=np.float64))
    if found is None:
        return None
    readings, least = found
    variance = max(float(readings.var(ddof=1)), least) / len(readings)
    return MeanEstimate(
        value=float(readings.mean()),
        standard_error=math.sqrt(variance),
        reports=len(reports),
        bounds=(float(min(options)), float(max(options))),
        protocol=reports.protocol.name,
        guarantee=reports.protocol.guarantee_of(reports),
    )


def _readings(reports: Reports, scores: Floats) -> tuple[Floats, float] | None:
    """Return the reading of each report, and the least variance that a reading has, whatever the rating."""
    match reports.protocol:
        case Pram() as protocol:
            matrix = np.array([[float(entry) for entry in row] for row in protocol.matrix])
            return _by_matrix(reports.payload["y"], matrix, scores)
        case DirectEncoding() as protocol:
            p, q = map(float, protocol.probabilities)
            return _by_matrix(reports.payload["y"], q + (p - q) * np.eye(len(scores)), scores)
        case UnaryEncoding() as protocol:
            return _by_bits(reports.payload["bits"], protocol, scores)
    return None


def _by_matrix(reported: NDArray[np.int64], matrix: Floats, scores: Floats) -> tuple[Floats, float]:
    # The reading of each report is solved for, so that its expectation is the rating, whatever the true one is.
    reading = np.linalg.solve(matrix, scores)
    return np.asarray(reading[reported]), float((matrix @ reading**2 - scores**2).min())


def _by_bits(packed: NDArray[np.uint8], protocol: UnaryEncoding, scores: Floats) -> tuple[Floats, float]:
    p, q = map(float, protocol.probabilities)
    bits = np.unpackbits(packed, axis=1, count=len(scores), bitorder="little")
    # The own bit has a variance of its own and all others share one, so that only the own score makes a difference.
    spread = q * (1 - q) * (scores**2).sum() + (p * (1 - p) - q * (1 - q)) * scores**2
    return np.asarray((bits @ scores - q * scores.sum()) / (p - q)), float(spread.min()) / (p - q) ** 2
