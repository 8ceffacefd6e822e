"""Models of how many people fit a class: k-anonymity, k-map and delta-presence."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from cloister.anonymize.models.base import (
    SLACK,
    ModelCheck,
    PrivacyModel,
    Truths,
    advise_smaller_k,
    count_units,
    is_within,
    reaches,
    register,
    round_up,
)
from cloister.anonymize.models.equivalence_classes import EquivalenceClasses
from cloister.core.guarantees import DeltaPresence, KAnonymity, KMap


class _Sizes(ModelCheck):
    is_hereditary = True

    def holds(self, classes: EquivalenceClasses) -> Truths:
        return np.asarray(self._units(classes) >= self.model.k)

    def measure(self, classes: EquivalenceClasses) -> NDArray[np.float64]:
        return self._units(classes).astype(np.float64)

    def advice(self, classes: EquivalenceClasses) -> str:
        """Return what to do, without saying how many there are."""
        del classes
        return advise_smaller_k(self.model)

    def _units(self, classes: EquivalenceClasses) -> NDArray[np.int64]:
        return count_units(self.model, classes)


class _PopulationSizes(_Sizes):
    needs_population = True

    def _units(self, classes: EquivalenceClasses) -> NDArray[np.int64]:
        return classes.population()

    def advice(self, classes: EquivalenceClasses) -> str:
        """Return what to do, without saying how many there are."""
        del classes
        return "use a k that is at most the number of rows of the population"


class _Presence(ModelCheck):
    symbol = "delta_max"
    more_is_safer = False
    needs_population = True

    @property
    def is_monotone(self) -> bool:
        """Return False with a smallest share: what fits a merged class may be more than what fits its parts."""
        return bool(self.model.delta_min == 0)

    def holds(self, classes: EquivalenceClasses) -> Truths:
        population = classes.population()
        enough = reaches(self.model.delta_min, classes.rows, population)
        return np.asarray(enough & is_within(self.model.delta_max, classes.rows, population))

    def holds_together(self, classes: EquivalenceClasses) -> Truths:
        """Return where nobody who fits a class is too likely in the table, also by other classes.

        Everybody in the population counts (Nergiz, Atzori and Clifton 2007): whoever fits no class is not in the table.
        """
        largest, smallest = classes.presence()
        # Somebody is too unlikely to be in the table, whichever class is looked at.
        if smallest < float(self.model.delta_min) * (1 - SLACK):
            return np.zeros(classes.size, dtype=bool)
        return self.holds(classes) & (largest <= float(self.model.delta_max) * (1 + SLACK))

    def measure(self, classes: EquivalenceClasses) -> NDArray[np.float64]:
        with np.errstate(divide="ignore"):
            return classes.rows / classes.population()

    def advice(self, classes: EquivalenceClasses) -> str:
        """Return the smallest number that would do, rounded up."""
        share = self.measure(classes).max()
        if share > 1:
            return "give the whole population that the table is a sample of"
        return f"use {self.symbol} >= {round_up(share)}"


register(
    PrivacyModel(
        promise=KAnonymity,
        check=_Sizes,
        title="k-anonymity",
        meaning="Every class has at least k rows, or persons where persons are told apart.",
        example=lambda _: KAnonymity(k=2),
        number="k",
    )
)
register(
    PrivacyModel(
        promise=KMap,
        check=_PopulationSizes,
        title="k-map",
        meaning="Every class fits at least k members of a known population. It protects against an attacker who does "
        "not know whether the person is in the table.",
        example=lambda _: KMap(k=2),
    )
)
register(
    PrivacyModel(
        promise=DeltaPresence,
        check=_Presence,
        title="delta-presence",
        meaning="Bounds how sure somebody who knows a population can be that one of its members is in the table.",
        example=lambda _: DeltaPresence(delta_max="0.5"),
        number="delta_max",
    )
)
