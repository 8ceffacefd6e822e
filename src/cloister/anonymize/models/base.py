"""What every privacy model of a released table has: a promise, a check of all equivalence classes at once, and a name.

Nearly every check is monotone (merging two classes that satisfy it satisfies it): sizes, counts of values and entropies
cannot fall below the smaller of the two, and the distances are convex. Checks on shares compare whole numbers; those
with logarithms, and those that add up shares of several classes, allow an error of 1e-12.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from cloister.anonymize.models.distances import Wholes
from cloister.anonymize.models.equivalence_classes import EquivalenceClasses, Histogram
from cloister.core.guarantees import Guarantee, Syntactic
from cloister.core.registry import Registry
from cloister.errors import ParameterTypeError

__all__ = ["ModelCheck", "PrivacyModel", "all_hold", "all_hold_together", "check_of", "privacy_models", "register"]

Truths = NDArray[np.bool_]
SLACK = 1e-12


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
        return f"use {self.symbol} <= {round_down(self.measure(classes).min())}"

    def _histogram(self, classes: EquivalenceClasses) -> Histogram:
        return classes.histogram(self.model.attribute)


@dataclass(frozen=True, slots=True, kw_only=True)
class PrivacyModel:
    """One model of the family.

    Attributes:
        promise: what a release that satisfies the model promises, with its numbers.
        check: makes the check of a promise.
        title: what the literature calls it.
        meaning: what it says, in a sentence or two for readers of a report.
        example: makes some promise of this kind about a sensitive column, for tests.
        number: the setting that tells this model from others; None: it has to be named.
    """

    promise: type[Syntactic]
    check: Callable[[Any], ModelCheck]
    title: str
    meaning: str
    example: Callable[[str], Syntactic]
    number: str | None = None


privacy_models: Registry[PrivacyModel] = Registry("privacy model")


def register(model: PrivacyModel) -> None:
    """Make a model known to `anonymize`, recipes, reports, the command line and the hub, by the kind of its promise."""
    privacy_models.register(model.promise.kind)(model)


def check_of(model: object) -> ModelCheck:
    """Return the check behind a model.

    Raises:
        ParameterTypeError: if it is not a model of a released table.
    """
    kind = model.kind if isinstance(model, Guarantee) else None
    found = next((known for name, known in privacy_models.items() if name == kind), None)
    if found is None or not isinstance(model, found.promise):
        raise ParameterTypeError(
            f"{type(model).__name__} is not a model that a released table can satisfy.",
            fix='use for example cl.KAnonymity(k=5) or cl.LDiversity("disease", l=3).',
        )
    return found.check(model)


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


def count_units(model: Any, classes: EquivalenceClasses) -> NDArray[np.int64]:
    """Return how many rows, or persons, each class has."""
    return classes.rows if model.unit == "row" else classes.persons


def advise_smaller_k(model: Any) -> str:
    return f"use a k that is at most the number of {'rows' if model.unit == 'row' else 'persons'}"


def is_within(share: Fraction, part: Wholes, whole: Wholes) -> Truths:
    """Return where a part is at most a share of the whole, exactly."""
    # Multiplied across, since a quotient would be rounded at the very border.
    return np.asarray(multiply(part, share.denominator) <= multiply(whole, share.numerator), dtype=bool)


def reaches(share: Fraction, part: NDArray[np.int64], whole: NDArray[np.int64]) -> Truths:
    """Return where a part is at least a share of the whole, exactly."""
    return np.asarray(multiply(part, share.denominator) >= multiply(whole, share.numerator), dtype=bool)


def multiply(counts: Wholes, factor: int) -> Wholes:
    """Return whole numbers times a factor, as Python integers where 64 bits would not hold them."""
    if int(counts.max(initial=0)) * factor < 2**63:
        return counts * factor
    return counts.astype(object) * factor


def round_down(number: float) -> str:
    # A number that is whole but for rounding must not fall to the one below.
    return f"{np.floor(number * 1000 * (1 + SLACK)) / 1000:g}"


def round_up(number: float) -> str:
    return f"{np.ceil(number * 1000 * (1 - SLACK)) / 1000:g}"
