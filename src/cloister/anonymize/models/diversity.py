"""Models of how varied a sensitive column is in a class: l-diversity, (alpha, k)-anonymity and p-sensitivity."""

from __future__ import annotations

from fractions import Fraction

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
    multiply,
    register,
    round_up,
)
from cloister.anonymize.models.equivalence_classes import EquivalenceClasses
from cloister.core.guarantees import AlphaKAnonymity, LDiversity, PSensitivity


class _Distinct(ModelCheck):
    symbol = "l"
    is_hereditary = True

    def holds(self, classes: EquivalenceClasses) -> Truths:
        return np.asarray(self._histogram(classes).distinct >= int(self.model.l))

    def measure(self, classes: EquivalenceClasses) -> NDArray[np.float64]:
        return self._histogram(classes).distinct.astype(np.float64)


class _Frequency(ModelCheck):
    symbol = "l"

    def holds(self, classes: EquivalenceClasses) -> Truths:
        histogram = self._histogram(classes)
        return is_within(1 / self.model.l, histogram.largest, histogram.sizes)

    def measure(self, classes: EquivalenceClasses) -> NDArray[np.float64]:
        histogram = self._histogram(classes)
        return np.asarray(histogram.sizes / histogram.largest)


class _Entropy(ModelCheck):
    symbol = "l"

    def holds(self, classes: EquivalenceClasses) -> Truths:
        return np.asarray(self.measure(classes) >= float(self.model.l) * (1 - SLACK))

    def measure(self, classes: EquivalenceClasses) -> NDArray[np.float64]:
        histogram = self._histogram(classes)
        share = histogram.counts / histogram.sizes[histogram.classes]
        return np.asarray(np.exp(histogram.add(-share * np.log(share))))


class _Recursive(ModelCheck):
    symbol = "c"
    more_is_safer = False

    def holds(self, classes: EquivalenceClasses) -> Truths:
        largest, tail = self._parts(classes)
        c: Fraction = self.model.c
        # Multiplied across: a quotient would be rounded, and that at the very border.
        return np.asarray(multiply(largest, c.denominator) < multiply(tail, c.numerator), dtype=bool)

    def measure(self, classes: EquivalenceClasses) -> NDArray[np.float64]:
        """Return the number that c must exceed; infinite for too few values."""
        largest, tail = self._parts(classes)
        with np.errstate(divide="ignore"):
            return largest / tail

    def _parts(self, classes: EquivalenceClasses) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        histogram = self._histogram(classes)
        # Lines of a class stay together, so that the class of each place does not change by sorting.
        order = np.lexsort((-histogram.counts, histogram.classes))
        rank = np.arange(len(order)) - histogram.starts[histogram.classes]
        in_tail = rank >= int(self.model.l) - 1
        tail = np.bincount(histogram.classes, weights=histogram.counts[order] * in_tail, minlength=len(histogram.sizes))
        return histogram.largest, tail.astype(np.int64)

    def advice(self, classes: EquivalenceClasses) -> str:
        """Return the smallest number that would do, rounded up; none does where there are fewer than l values."""
        needed = self.measure(classes).max()
        return f"use {self.symbol} > {round_up(needed)}" if np.isfinite(needed) else "use a smaller l"


class _AlphaK(ModelCheck):
    symbol = "alpha"
    more_is_safer = False

    def holds(self, classes: EquivalenceClasses) -> Truths:
        histogram = self._histogram(classes)
        return np.asarray(
            (count_units(self.model, classes) >= self.model.k)
            & is_within(self.model.alpha, histogram.largest, histogram.sizes)
        )

    def measure(self, classes: EquivalenceClasses) -> NDArray[np.float64]:
        histogram = self._histogram(classes)
        return np.asarray(histogram.largest / histogram.sizes)

    def advice(self, classes: EquivalenceClasses) -> str:
        """Return the smallest number that would do, rounded up."""
        if (count_units(self.model, classes) < self.model.k).any():
            return advise_smaller_k(self.model)
        return f"use {self.symbol} >= {round_up(self.measure(classes).max())}"


class _Sensitivity(ModelCheck):
    symbol = "p"
    is_hereditary = True

    def holds(self, classes: EquivalenceClasses) -> Truths:
        return np.asarray(
            (count_units(self.model, classes) >= self.model.k) & (self._histogram(classes).distinct >= self.model.p)
        )

    def measure(self, classes: EquivalenceClasses) -> NDArray[np.float64]:
        return self._histogram(classes).distinct.astype(np.float64)

    def advice(self, classes: EquivalenceClasses) -> str:
        """Return what to change: k where there are too few rows or persons, else p."""
        if (count_units(self.model, classes) < self.model.k).any():
            return advise_smaller_k(self.model)
        return super().advice(classes)


_DIVERSITIES: dict[str, type[ModelCheck]] = {
    "distinct": _Distinct,
    "frequency": _Frequency,
    "entropy": _Entropy,
    "recursive": _Recursive,
}


def _check_diversity(model: LDiversity) -> ModelCheck:
    return _DIVERSITIES[model.variant](model)


register(
    PrivacyModel(
        promise=LDiversity,
        check=_check_diversity,
        title="l-diversity",
        meaning="Every class has at least l values of a sensitive column. Distinct counts different values; "
        "frequency: no value has a larger share than 1/l; entropy: values are as varied as l equally frequent "
        "ones; recursive: the most frequent value is less than c times as frequent as the values from the "
        "l-th on together.",
        example=lambda name: LDiversity(name, l=2),
        number="l",
    )
)
register(
    PrivacyModel(
        promise=AlphaKAnonymity,
        check=_AlphaK,
        title="(alpha, k)-anonymity",
        meaning="Every class has at least k rows, and no sensitive value has a larger share of it than alpha.",
        example=lambda name: AlphaKAnonymity(name, alpha="0.5", k=2),
        number="alpha",
    )
)
register(
    PrivacyModel(
        promise=PSensitivity,
        check=_Sensitivity,
        title="p-sensitive k-anonymity",
        meaning="Every class has at least k rows and at least p different sensitive values.",
        example=lambda name: PSensitivity(name, p=2, k=2),
        number="p",
    )
)
