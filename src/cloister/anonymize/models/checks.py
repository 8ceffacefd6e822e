"""Checks of privacy models (k-anonymity, l-diversity, t-closeness and others), for all equivalence classes at once.

Nearly every check is monotone (merging two classes that satisfy it satisfies it): sizes, counts of values and entropies
cannot fall below the smaller of the two, and the distances are convex. Checks on shares compare whole numbers; those
with logarithms, and those that add up shares of several classes, allow an error of 1e-12.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from cloister.anonymize.models import distances
from cloister.anonymize.models.equivalence_classes import EquivalenceClasses, Histogram
from cloister.core.guarantees import (
    AlphaKAnonymity,
    BetaLikeness,
    DeltaPresence,
    Guarantee,
    KAnonymity,
    KMap,
    LDiversity,
    PSensitivity,
    TCloseness,
)
from cloister.errors import ParameterTypeError

Truths = NDArray[np.bool_]
_SLACK = 1e-12


@dataclass(frozen=True)
class ModelCheck(ABC):
    """The test behind one model."""

    model: Any

    needs_overall: ClassVar[bool] = False
    """Whether it compares with the whole released table, which suppression changes."""
    needs_population: ClassVar[bool] = False
    more_is_safer: ClassVar[bool] = True
    """Whether a class is the safer the more it attains."""
    symbol: ClassVar[str] = "k"
    """The number of the model that says how strict it is."""
    is_hereditary: ClassVar[bool] = False
    """Whether every part of a failing class fails too, so that its rows are suppressed in all finer classes."""

    @property
    def is_monotone(self) -> bool:
        """Return whether a class merged from two that satisfy the model always satisfies it."""
        return True

    @property
    def attribute(self) -> str | None:
        """Return the sensitive attribute that the model is about, if it is about one."""
        return getattr(self.model, "attribute", None)

    @abstractmethod
    def holds(self, classes: EquivalenceClasses) -> Truths:
        """Return which classes satisfy the model."""

    def holds_together(self, classes: EquivalenceClasses) -> Truths:
        """Return which classes satisfy the model when they are all that is released, each beside the others."""
        return self.holds(classes)

    @abstractmethod
    def measure(self, classes: EquivalenceClasses) -> NDArray[np.float64]:
        """Return the number that each class attains, in the model's own terms (k, l, t, ...)."""

    def advice(self, classes: EquivalenceClasses) -> str:
        """Return what to change so that these classes would satisfy the model."""
        return f"use {self.symbol} <= {_round_down(self.measure(classes).min())}"

    def _histogram(self, classes: EquivalenceClasses) -> Histogram:
        return classes.histogram(self.model.attribute)


class _Sizes(ModelCheck):
    is_hereditary = True

    def holds(self, classes: EquivalenceClasses) -> Truths:
        return np.asarray(self._units(classes) >= self.model.k)

    def measure(self, classes: EquivalenceClasses) -> NDArray[np.float64]:
        return self._units(classes).astype(np.float64)

    def advice(self, classes: EquivalenceClasses) -> str:
        """Return what to do, without saying how many there are."""
        del classes
        return _smaller_k(self.model)

    def _units(self, classes: EquivalenceClasses) -> NDArray[np.int64]:
        return _units(self.model, classes)


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
        enough = _reaches(self.model.delta_min, classes.rows, population)
        return np.asarray(enough & _is_within(self.model.delta_max, classes.rows, population))

    def holds_together(self, classes: EquivalenceClasses) -> Truths:
        """Return where nobody who fits a class is too likely in the table, also by other classes.

        Everybody in the population counts (Nergiz, Atzori and Clifton 2007): whoever fits no class is not in the table.
        """
        largest, smallest = classes.presence()
        # Somebody is too unlikely to be in the table, whichever class is looked at.
        if smallest < float(self.model.delta_min) * (1 - _SLACK):
            return np.zeros(classes.size, dtype=bool)
        return self.holds(classes) & (largest <= float(self.model.delta_max) * (1 + _SLACK))

    def measure(self, classes: EquivalenceClasses) -> NDArray[np.float64]:
        with np.errstate(divide="ignore"):
            return classes.rows / classes.population()

    def advice(self, classes: EquivalenceClasses) -> str:
        """Return the smallest number that would do, rounded up."""
        share = self.measure(classes).max()
        if share > 1:
            return "give the whole population that the table is a sample of"
        return f"use {self.symbol} >= {_round_up(share)}"


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
        return _is_within(1 / self.model.l, histogram.largest, histogram.sizes)

    def measure(self, classes: EquivalenceClasses) -> NDArray[np.float64]:
        histogram = self._histogram(classes)
        return np.asarray(histogram.sizes / histogram.largest)


class _Entropy(ModelCheck):
    symbol = "l"

    def holds(self, classes: EquivalenceClasses) -> Truths:
        return np.asarray(self.measure(classes) >= float(self.model.l) * (1 - _SLACK))

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
        return np.asarray(_multiply(largest, c.denominator) < _multiply(tail, c.numerator), dtype=bool)

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
        return f"use {self.symbol} > {_round_up(needed)}" if np.isfinite(needed) else "use a smaller l"


class _Closeness(ModelCheck):
    symbol = "t"
    more_is_safer = False
    needs_overall = True

    def holds(self, classes: EquivalenceClasses) -> Truths:
        return _is_within(self.model.t, *self._ratios(classes))

    def measure(self, classes: EquivalenceClasses) -> NDArray[np.float64]:
        part, whole = self._ratios(classes)
        return np.asarray(part / whole, dtype=np.float64)

    def _ratios(self, classes: EquivalenceClasses) -> distances.Ratios:
        sensitive = classes.cells.sensitive[classes.cells.place_of(self.model.attribute)]
        return _DISTANCES[self.model.variant](self._histogram(classes), sensitive)

    def advice(self, classes: EquivalenceClasses) -> str:
        """Return the smallest number that would do, rounded up."""
        return f"use {self.symbol} >= {_round_up(self.measure(classes).max())}"


class _Divergence(_Closeness):
    def holds(self, classes: EquivalenceClasses) -> Truths:
        return np.asarray(self.measure(classes) <= float(self.model.t) + _SLACK)

    def measure(self, classes: EquivalenceClasses) -> NDArray[np.float64]:
        return distances.kullback_leibler(self._histogram(classes))


_DISTANCES = {
    "equal": distances.equal,
    "variational": distances.equal,
    "ordered": distances.ordered,
    "hierarchical": distances.hierarchical,
}


class _AlphaK(ModelCheck):
    symbol = "alpha"
    more_is_safer = False

    def holds(self, classes: EquivalenceClasses) -> Truths:
        histogram = self._histogram(classes)
        return np.asarray(
            (_units(self.model, classes) >= self.model.k)
            & _is_within(self.model.alpha, histogram.largest, histogram.sizes)
        )

    def measure(self, classes: EquivalenceClasses) -> NDArray[np.float64]:
        histogram = self._histogram(classes)
        return np.asarray(histogram.largest / histogram.sizes)

    def advice(self, classes: EquivalenceClasses) -> str:
        """Return the smallest number that would do, rounded up."""
        if (_units(self.model, classes) < self.model.k).any():
            return _smaller_k(self.model)
        return f"use {self.symbol} >= {_round_up(self.measure(classes).max())}"


class _Sensitivity(ModelCheck):
    symbol = "p"
    is_hereditary = True

    def holds(self, classes: EquivalenceClasses) -> Truths:
        return np.asarray(
            (_units(self.model, classes) >= self.model.k) & (self._histogram(classes).distinct >= self.model.p)
        )

    def measure(self, classes: EquivalenceClasses) -> NDArray[np.float64]:
        return self._histogram(classes).distinct.astype(np.float64)

    def advice(self, classes: EquivalenceClasses) -> str:
        """Return what to change: k where there are too few rows or persons, else p."""
        if (_units(self.model, classes) < self.model.k).any():
            return _smaller_k(self.model)
        return super().advice(classes)


class _Likeness(ModelCheck):
    symbol = "beta"
    more_is_safer = False
    needs_overall = True

    def holds(self, classes: EquivalenceClasses) -> Truths:
        histogram = self._histogram(classes)
        expected = histogram.overall[histogram.values] * histogram.sizes[histogram.classes]
        excess = ~_is_within(1 + self.model.beta, histogram.counts * histogram.overall.sum(), expected)
        if self.model.variant == "enhanced":
            gain, base = self._gains(histogram)
            with np.errstate(divide="ignore"):
                # A share of the whole table near 1 has hardly any room, and a missing one all of it.
                excess |= gain > -np.log(base) * (1 + _SLACK)
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
        return f"use {self.symbol} >= {_round_up(self.measure(classes).max())}"


_DIVERSITIES: dict[str, type[ModelCheck]] = {
    "distinct": _Distinct,
    "frequency": _Frequency,
    "entropy": _Entropy,
    "recursive": _Recursive,
}
_CHECKS: dict[type[Guarantee], type[ModelCheck]] = {
    KAnonymity: _Sizes,
    KMap: _PopulationSizes,
    DeltaPresence: _Presence,
    TCloseness: _Closeness,
    AlphaKAnonymity: _AlphaK,
    PSensitivity: _Sensitivity,
    BetaLikeness: _Likeness,
}


def check_of(model: object) -> ModelCheck:
    """Return the check behind a model.

    Raises:
        ParameterTypeError: if it is not a model of a released table.
    """
    if isinstance(model, LDiversity):
        return _DIVERSITIES[model.variant](model)
    if isinstance(model, TCloseness) and model.variant == "kl":
        return _Divergence(model)
    found = _CHECKS.get(type(model)) if isinstance(model, Guarantee) else None
    if found is None:
        raise ParameterTypeError(
            f"{type(model).__name__} is not a model that a released table can satisfy.",
            fix='use for example cl.KAnonymity(k=5) or cl.LDiversity("disease", l=3).',
        )
    return found(model)


def all_hold(checks: Sequence[ModelCheck], classes: EquivalenceClasses) -> Truths:
    """Return which classes satisfy every check."""
    truths = np.ones(classes.size, dtype=bool)
    for check in checks:
        truths &= check.holds(classes)
    return truths


def all_hold_together(checks: Sequence[ModelCheck], classes: EquivalenceClasses) -> Truths:
    """Return which classes satisfy every check when they are all that is released."""
    truths = np.ones(classes.size, dtype=bool)
    for check in checks:
        truths &= check.holds_together(classes)
    return truths


def _units(model: Any, classes: EquivalenceClasses) -> NDArray[np.int64]:
    """Return how many rows, or persons, each class has."""
    return classes.rows if model.unit == "row" else classes.persons


def _smaller_k(model: Any) -> str:
    return f"use a k that is at most the number of {'rows' if model.unit == 'row' else 'persons'}"


def _is_within(share: Fraction, part: distances.Wholes, whole: distances.Wholes) -> Truths:
    """Return where a part is at most a share of the whole, exactly."""
    # Multiplied across, since a quotient would be rounded at the very border.
    return np.asarray(_multiply(part, share.denominator) <= _multiply(whole, share.numerator), dtype=bool)


def _reaches(share: Fraction, part: NDArray[np.int64], whole: NDArray[np.int64]) -> Truths:
    """Return where a part is at least a share of the whole, exactly."""
    return np.asarray(_multiply(part, share.denominator) >= _multiply(whole, share.numerator), dtype=bool)


def _multiply(counts: distances.Wholes, factor: int) -> distances.Wholes:
    """Return whole numbers times a factor, as Python integers where 64 bits would not hold them."""
    if int(counts.max(initial=0)) * factor < 2**63:
        return counts * factor
    return counts.astype(object) * factor


def _round_down(number: float) -> str:
    # A number that is whole but for rounding must not fall to the one below.
    return f"{np.floor(number * 1000 * (1 + _SLACK)) / 1000:g}"


def _round_up(number: float) -> str:
    return f"{np.ceil(number * 1000 * (1 - _SLACK)) / 1000:g}"
