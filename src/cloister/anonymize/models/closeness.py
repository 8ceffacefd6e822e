"""Models of how close a sensitive column is, in a class, to the whole table: t-closeness and beta-likeness."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from cloister.anonymize.models import distances
from cloister.anonymize.models.base import SLACK, ModelCheck, PrivacyModel, Truths, is_within, register, round_up
from cloister.anonymize.models.equivalence_classes import EquivalenceClasses, Histogram
from cloister.core.guarantees import BetaLikeness, TCloseness


class _Closeness(ModelCheck):
    symbol = "t"
    more_is_safer = False
    needs_overall = True

    def holds(self, classes: EquivalenceClasses) -> Truths:
        return is_within(self.model.t, *self._ratios(classes))

    def measure(self, classes: EquivalenceClasses) -> NDArray[np.float64]:
        part, whole = self._ratios(classes)
        return np.asarray(part / whole, dtype=np.float64)

    def _ratios(self, classes: EquivalenceClasses) -> distances.Ratios:
        sensitive = classes.cells.sensitive[classes.cells.place_of(self.model.attribute)]
        return _DISTANCES[self.model.variant](self._histogram(classes), sensitive)

    def advice(self, classes: EquivalenceClasses) -> str:
        """Return the smallest number that would do, rounded up."""
        return f"use {self.symbol} >= {round_up(self.measure(classes).max())}"


class _Divergence(_Closeness):
    def holds(self, classes: EquivalenceClasses) -> Truths:
        return np.asarray(self.measure(classes) <= float(self.model.t) + SLACK)

    def measure(self, classes: EquivalenceClasses) -> NDArray[np.float64]:
        return distances.kullback_leibler(self._histogram(classes))


_DISTANCES = {
    "equal": distances.equal,
    "variational": distances.equal,
    "ordered": distances.ordered,
    "hierarchical": distances.hierarchical,
}


class _Likeness(ModelCheck):
    symbol = "beta"
    more_is_safer = False
    needs_overall = True

    def holds(self, classes: EquivalenceClasses) -> Truths:
        histogram = self._histogram(classes)
        expected = histogram.overall[histogram.values] * histogram.sizes[histogram.classes]
        excess = ~is_within(1 + self.model.beta, histogram.counts * histogram.overall.sum(), expected)
        if self.model.variant == "enhanced":
            gain, base = self._gains(histogram)
            with np.errstate(divide="ignore"):
                # A share of the whole table near 1 has hardly any room, and a missing one all of it.
                excess |= gain > -np.log(base) * (1 + SLACK)
        return np.asarray(histogram.add(excess.astype(np.float64)) == 0)

    def measure(self, classes: EquivalenceClasses) -> NDArray[np.float64]:
        histogram = self._histogram(classes)
        gain, _ = self._gains(histogram)
        return np.maximum(np.maximum.reduceat(gain, histogram.starts), 0.0) if len(histogram.sizes) else gain

    def _gains(self, histogram: Histogram) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        base = histogram.overall[histogram.values] / histogram.overall.sum()
        share = histogram.counts / histogram.sizes[histogram.classes]
        with np.errstate(divide="ignore"):
            return (share - base) / base, base

    def advice(self, classes: EquivalenceClasses) -> str:
        """Return the smallest number that would do, rounded up."""
        return f"use {self.symbol} >= {round_up(self.measure(classes).max())}"


def _check_closeness(model: TCloseness) -> ModelCheck:
    return _Divergence(model) if model.variant == "kl" else _Closeness(model)


register(
    PrivacyModel(
        promise=TCloseness,
        check=_check_closeness,
        title="t-closeness",
        meaning="In every class a sensitive column is distributed as in the whole table, up to a distance t: 0 is the "
        "same, 1 as different as can be. Ordered: values lie on a scale, and near ones are near; hierarchical: "
        "values are near that meet early in their hierarchy; equal, variational: all values are equally far "
        "apart; kl: Kullback-Leibler divergence, which may exceed 1.",
        example=lambda name: TCloseness(name, t="0.3"),
        number="t",
    )
)
register(
    PrivacyModel(
        promise=BetaLikeness,
        check=_Likeness,
        title="beta-likeness",
        meaning="No sensitive value is more frequent in a class than in the whole table by more than beta times.",
        example=lambda name: BetaLikeness(name, beta=1),
        number="beta",
    )
)
