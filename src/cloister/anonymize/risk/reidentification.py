"""How likely a row is matched to the right person (El Emam and Dankar 2008).

The *prosecutor* knows that a person is in the table: the risk of a row is one over the size of its class. The
*journalist* only knows the population: one over the number of people in it who fit the class. The *marketer* matches
everybody and counts the hits: the share of rows that are matched rightly on average.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["Reidentification", "measure_reidentification"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Reidentification:
    """The risk that rows are matched to persons.

    Attributes:
        rows: how many rows the classes have.
        classes: how many classes there are.
        smallest: the size of the smallest class, in rows.
        prosecutor_max: the risk of the row that is most at risk.
        prosecutor_average: the mean risk over rows.
        threshold: the risk above which a row counts as at risk.
        at_risk: the share of rows above the threshold.
        unique: the number of rows that are alone in their class.
        k: the class size that was asked about.
        below_k: the share of rows in classes smaller than that.
        marketer: the share of rows that are matched rightly when everybody is matched.
        journalist_max: the largest risk against the population table, or None without one.
        journalist_average: the mean risk against the population, or None where nothing is known of it.
        journalist_basis: where the journalist's figures come from.
    """

    rows: int
    classes: int
    smallest: int
    prosecutor_max: float
    prosecutor_average: float
    threshold: float
    at_risk: float
    unique: int
    k: int
    below_k: float
    marketer: float
    journalist_max: float | None = None
    journalist_average: float | None = None
    journalist_basis: str = "nothing is known of the population"

    @property
    def unique_share(self) -> float:
        """Return the share of rows that are alone in their class."""
        return self.unique / self.rows if self.rows else 0.0

    def to_dict(self) -> dict[str, Any]:
        """Return JSON-ready values."""
        return {**asdict(self), "unique_share": self.unique_share}


def measure_reidentification(
    sizes: NDArray[np.int64],
    *,
    threshold: float = 0.2,
    k: int = 5,
    fitting: NDArray[np.int64] | None = None,
    estimated: float | None = None,
) -> Reidentification:
    """Measure the risk of classes.

    Args:
        sizes: how many units (rows or persons) each class has.
        threshold: the risk above which a row counts as at risk.
        k: the class size to ask about.
        fitting: how many people of the population fit each class, where a population table is there.
        estimated: the journalist's mean risk, where it was estimated from the population's size.
    """
    rows, classes = int(sizes.sum()), len(sizes)
    average = classes / rows if rows else 0.0
    journalist = _journalist(sizes, fitting, estimated)
    return Reidentification(
        rows=rows,
        classes=classes,
        smallest=int(sizes.min()) if classes else 0,
        prosecutor_max=1 / int(sizes.min()) if classes else 0.0,
        prosecutor_average=average,
        threshold=threshold,
        at_risk=_share(sizes, 1 / sizes > threshold),
        unique=int((sizes == 1).sum()),
        k=k,
        below_k=_share(sizes, sizes < k),
        marketer=average,
        journalist_max=journalist[0],
        journalist_average=journalist[1],
        journalist_basis=journalist[2],
    )


def _share(sizes: NDArray[np.int64], chosen: NDArray[np.bool_]) -> float:
    return float(sizes[chosen].sum() / sizes.sum()) if len(sizes) else 0.0


def _journalist(
    sizes: NDArray[np.int64], fitting: NDArray[np.int64] | None, estimated: float | None
) -> tuple[float | None, float | None, str]:
    if fitting is not None and len(sizes):
        people = np.where(fitting > 0, fitting, sizes)
        return float(1 / people.min()), float((sizes / people).sum() / sizes.sum()), "the population table"
    if estimated is not None:
        return None, estimated, "estimated from the size of the population"
    return None, None, "nothing is known of the population"
