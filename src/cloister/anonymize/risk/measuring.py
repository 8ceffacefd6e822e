"""Everything that is measured about the risk of one table, from one count of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cloister.anonymize.models import Classes
from cloister.anonymize.risk.attained import AttainedModels, attained_values
from cloister.anonymize.risk.disclosure import Disclosure, measure_disclosure
from cloister.anonymize.risk.population import PopulationRisk, estimate_population
from cloister.anonymize.risk.reidentification import Reidentification, measure_reidentification

__all__ = ["Risk", "measure_risk"]


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
    classes: Classes,
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
            sensitive=tuple(attained_values(classes, name, counted) for name, counted in histograms.items()),
        ),
        population=population,
    )
