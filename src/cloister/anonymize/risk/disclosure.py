"""What a match tells about a sensitive attribute, and how much of it was known before.

Whoever finds a person's class believes each sensitive value with its share in the class. A class with one value gives
it away without any match to a row; a class whose numbers are all near each other gives it away nearly.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from cloister.anonymize.cells import Sensitive
from cloister.anonymize.models import Histogram

__all__ = ["Disclosure", "measure_disclosure"]

NEAR = 0.1


@dataclass(frozen=True, slots=True, kw_only=True)
class Disclosure:
    """What classes give away about one sensitive attribute.

    Attributes:
        attribute: the column.
        values: how many different values it has.
        homogeneous: the share of rows in classes that have only one value.
        posterior_max: the largest share that a value has in a class.
        posterior_average: how often guessing the most frequent value of the class is right.
        prior: how often guessing the most frequent value of the table is right.
        largest_factor: the largest factor by which a class makes a value more likely than it is in the table.
        near: the share of rows in classes whose numbers lie within a tenth of the column's range; None if no numbers.
    """

    attribute: str
    values: int
    homogeneous: float
    posterior_max: float
    posterior_average: float
    prior: float
    largest_factor: float
    near: float | None = None

    @property
    def gain(self) -> float:
        """Return how much more often a guess is right with the classes than without."""
        return self.posterior_average - self.prior

    def to_dict(self) -> dict[str, Any]:
        """Return JSON-ready values."""
        return {**asdict(self), "gain": self.gain}


def measure_disclosure(histogram: Histogram, sensitive: Sensitive) -> Disclosure:
    """Measure what the classes of a histogram give away."""
    sizes, total = histogram.sizes, int(histogram.sizes.sum())
    overall = histogram.overall / histogram.overall.sum()
    share = histogram.counts / sizes[histogram.classes]
    return Disclosure(
        attribute=sensitive.name,
        values=int((histogram.overall > 0).sum()),
        homogeneous=float(sizes[histogram.distinct == 1].sum() / total),
        posterior_max=float(share.max()),
        posterior_average=float(histogram.largest.sum() / total),
        prior=float(overall.max()),
        largest_factor=float((share / overall[histogram.values]).max()),
        near=_near(histogram, sensitive),
    )


def _near(histogram: Histogram, sensitive: Sensitive) -> float | None:
    positions = sensitive.attribute.positions
    if positions is None or not sensitive.attribute.is_numeric or not np.isfinite(positions).any():
        return None
    numbers = positions[histogram.values]
    occurring = positions[histogram.overall > 0]
    span = float(np.nanmax(occurring) - np.nanmin(occurring))
    low, high = np.minimum.reduceat(numbers, histogram.starts), np.maximum.reduceat(numbers, histogram.starts)
    with np.errstate(invalid="ignore"):
        near = high - low <= NEAR * span
    return float(histogram.sizes[near].sum() / histogram.sizes.sum())
