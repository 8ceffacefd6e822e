"""Disclosure risk of one table, from one count of it: who is who, and what a match tells.

*Identity*: how likely a row is matched to the right person (El Emam and Dankar 2008). The *prosecutor* knows that a
person is in the table: the risk of a row is one over the size of its class. The *journalist* only knows the population:
one over the number of people in it who fit the class. The *marketer* matches everybody and counts the hits: the share
of rows that are matched rightly on average.

*Attributes*: what a match tells about a sensitive attribute, and how much of it was known before. Whoever finds a
person's class believes each sensitive value with its share in the class. A class with one value gives it away without
any match to a row; a class whose numbers are all near each other gives it away nearly.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cloister.anonymize.cells import Sensitive
from cloister.anonymize.models import EquivalenceClasses, Histogram
from cloister.anonymize.risk.attained_models import AttainedModels, measure_values
from cloister.anonymize.risk.population import PopulationRisk, estimate_population

__all__ = ["Disclosure", "Reidentification", "Risk", "measure_disclosure", "measure_reidentification", "measure_risk"]


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
        # A class that nobody in the population fits still has its own rows.
        people = np.where(fitting > 0, fitting, sizes)
        return float(1 / people.min()), float((sizes / people).sum() / sizes.sum()), "the population table"
    if estimated is not None:
        return None, estimated, "estimated from the size of the population"
    return None, None, "nothing is known of the population"


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
    # A missing number makes the width NaN, which is not near.
    with np.errstate(invalid="ignore"):
        near = high - low <= NEAR * span
    return float(histogram.sizes[near].sum() / histogram.sizes.sum())


@dataclass(frozen=True, slots=True, kw_only=True)
class Risk:
    """The risk of a table.

    Attributes:
        quasi_identifiers: what an attacker is assumed to know.
        unit: what is counted: rows, or the column that tells persons apart.
        suppressed: how many rows say nothing but ``*``; they are in no class.
        reidentification: how likely rows are matched to persons.
        disclosure: what a match tells about each sensitive attribute.
        models: which models the table attains.
        population: what is estimated about the population, if its size is known.
    """

    quasi_identifiers: tuple[str, ...]
    unit: str
    suppressed: int
    reidentification: Reidentification
    disclosure: tuple[Disclosure, ...]
    models: AttainedModels
    population: PopulationRisk | None = None

    @property
    def units(self) -> str:
        """Return what is counted, in the plural; a person is counted once in each class."""
        return "rows" if self.unit == "row" else "persons"

    def to_dict(self) -> dict[str, Any]:
        """Return JSON-ready values."""
        return {
            "quasi_identifiers": list(self.quasi_identifiers),
            "unit": self.unit,
            "suppressed": self.suppressed,
            "reidentification": self.reidentification.to_dict(),
            "disclosure": [item.to_dict() for item in self.disclosure],
            "models": self.models.to_dict(),
            "population": None if self.population is None else self.population.to_dict(),
        }


def measure_risk(
    classes: EquivalenceClasses,
    *,
    codes: NDArray[np.integer] | None = None,
    unit: str = "row",
    suppressed: int = 0,
    population_size: int | None = None,
    fitting: NDArray[np.int64] | None = None,
    k_all_columns: int | None = None,
    threshold: float = 0.2,
    k: int = 5,
    confidence: float = 0.95,
) -> Risk:
    """Measure the risk of classes.

    Args:
        classes: the classes of the released rows.
        codes: the value codes that each class releases, which make the estimate for the population much better.
        unit: what is counted.
        suppressed: how many rows are in no class.
        population_size: how many people the table was drawn from.
        fitting: how many rows of a population table fit each class.
        k_all_columns: k-anonymity over all columns that are not sensitive, where it was counted.
        threshold: the risk above which a row counts as at risk.
        k: the class size to ask about.
        confidence: the confidence of the interval of the estimate for the population.
    """
    sizes = classes.rows if unit == "row" else classes.persons
    population = None
    if population_size is not None:
        population = estimate_population(sizes, population=population_size, codes=codes, confidence=confidence)
    estimated = None if population is None or fitting is not None else population.journalist
    histograms = {item.name: classes.histogram(item.name) for item in classes.cells.sensitive}
    return Risk(
        quasi_identifiers=classes.cells.names,
        unit=unit,
        suppressed=suppressed,
        reidentification=measure_reidentification(
            sizes, threshold=threshold, k=k, fitting=fitting, estimated=estimated
        ),
        disclosure=tuple(measure_disclosure(histograms[item.name], item) for item in classes.cells.sensitive),
        models=AttainedModels(
            k=int(classes.rows.min()),
            k_persons=int(classes.persons.min()) if classes.cells.record_subjects is not None else None,
            k_all_columns=k_all_columns,
            k_map=None if fitting is None else int(fitting.min()),
            sensitive=tuple(measure_values(classes, name, counted) for name, counted in histograms.items()),
        ),
        population=population,
    )
