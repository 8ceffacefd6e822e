"""Which models a table satisfies, and with what numbers, whoever protected it.

Every figure is that of the worst class. A model that cannot be attained (recursive diversity in a table with a class of
one value) has an infinite number, or None where the attribute has no order or no hierarchy.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from cloister.anonymize.models import EquivalenceClasses, Histogram, ModelCheck, check_of, model_from
from cloister.core.guarantees import BetaLikeness, Guarantee, LDiversity, Syntactic, TCloseness
from cloister.errors import ParameterError, UnknownColumnError

__all__ = ["AskedModel", "AttainedModels", "AttainedValues", "measure_models", "measure_values"]

_RECURSIVE = (2, 3)


@dataclass(frozen=True, slots=True, kw_only=True)
class AttainedValues:
    """The models of one sensitive attribute, each with the number that the worst class attains.

    Attributes:
        attribute: the column.
        distinct: distinct l-diversity, and the p of p-sensitivity.
        frequency: frequency l-diversity: one over the largest share of a value in a class.
        entropy: entropy l-diversity, the exponential of the entropy in nats.
        recursive: for an l, the number that c must exceed in (c, l)-diversity; infinite when no c will do.
        equal: t-closeness with equal distances (variational).
        kl: t-closeness with the Kullback-Leibler divergence, in nats.
        ordered: t-closeness with the order of the values, or None without an order.
        hierarchical: t-closeness with the hierarchy of the values, or None without one.
        alpha: the largest share of a value in a class.
        beta: basic beta-likeness: the largest relative gain of a value in a class.
        distinct_beside_others: distinct l-diversity when the other sensitive attributes are known too.
    """

    attribute: str
    distinct: int
    frequency: float
    entropy: float
    recursive: dict[int, float]
    equal: float
    kl: float
    ordered: float | None
    hierarchical: float | None
    alpha: float
    beta: float
    distinct_beside_others: int | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return JSON-ready values; an infinite number is written as None."""
        recursive = {str(size): (c if math.isfinite(c) else None) for size, c in self.recursive.items()}
        return {**asdict(self), "recursive": recursive}


@dataclass(frozen=True, slots=True, kw_only=True)
class AttainedModels:
    """The models that a table attains.

    Attributes:
        k: k-anonymity over the quasi-identifiers, counted in rows.
        k_persons: the same counted in persons, or None where persons are not told apart.
        k_all_columns: k-anonymity if every column that is neither sensitive nor an identifier were known from outside;
            None where it was not asked for.
        k_map: the smallest number of people of the population table who fit a class, or None without one.
        sensitive: the models of each sensitive attribute.
    """

    k: int
    k_persons: int | None = None
    k_all_columns: int | None = None
    k_map: int | None = None
    sensitive: tuple[AttainedValues, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Return JSON-ready values."""
        return {**asdict(self), "sensitive": [item.to_dict() for item in self.sensitive]}


@dataclass(frozen=True, slots=True, kw_only=True)
class AskedModel:
    """A model that somebody asked about.

    Attributes:
        model: what was asked.
        attained: the number that the worst class attains, in the model's own terms.
        is_satisfied: whether all classes satisfy it.
    """

    model: Guarantee
    attained: float
    is_satisfied: bool

    def __str__(self) -> str:
        return f"{'' if self.is_satisfied else 'not '}satisfied; the worst class attains {self.attained:.4g}"

    def to_dict(self) -> dict[str, Any]:
        """Return JSON-ready values; an infinite number is written as None."""
        attained = self.attained if math.isfinite(self.attained) else None
        return {"model": self.model.to_dict(), "attained": attained, "satisfied": self.is_satisfied}


class OneHistogram(EquivalenceClasses):
    """Classes of which one histogram was counted already."""

    def __init__(self, classes: EquivalenceClasses, counted: Histogram) -> None:
        super().__init__(
            cells=classes.cells,
            records=classes.records,
            groups=classes.groups,
            counts=classes.counts,
            size=classes.size,
        )
        object.__setattr__(self, "_counted", counted)

    def histogram(self, name: str) -> Histogram:
        """Return the histogram that was counted."""
        del name
        counted: Histogram = self.__dict__["_counted"]
        return counted


def measure_values(classes: EquivalenceClasses, name: str, histogram: Histogram) -> AttainedValues:
    """Return the models of one sensitive attribute."""
    known = OneHistogram(classes, histogram)
    attribute = classes.cells.sensitive[classes.cells.place_of(name)].attribute
    shares = histogram.largest / histogram.sizes
    return AttainedValues(
        attribute=name,
        distinct=int(histogram.distinct.min()),
        frequency=_worst(check_of(LDiversity(name, l=1, kind="frequency")), known),
        entropy=_worst(check_of(LDiversity(name, l=1, kind="entropy")), known),
        recursive={
            size: _most(check_of(LDiversity(name, l=size, kind="recursive", c=1)), known) for size in _RECURSIVE
        },
        equal=_most(check_of(TCloseness(name, t=0, kind="equal")), known),
        kl=_most(check_of(TCloseness(name, t=0, kind="kl")), known),
        ordered=_most(check_of(TCloseness(name, t=0, kind="ordered")), known) if attribute.is_ordered else None,
        hierarchical=(
            _most(check_of(TCloseness(name, t=0, kind="hierarchical")), known) if attribute.has_hierarchy else None
        ),
        alpha=float(shares.max()),
        beta=_most(check_of(BetaLikeness(name, beta=1, kind="basic")), known),
        distinct_beside_others=_beside_others(classes, name),
    )


def measure_models(
    classes: EquivalenceClasses, models: Iterable[object], *, subject: str | None
) -> tuple[AskedModel, ...]:
    """Return how well classes satisfy models, k counting persons where a column tells them apart."""
    return tuple(_measure_model(classes, model_from(model), subject) for model in models)


def _measure_model(classes: EquivalenceClasses, model: Guarantee, subject: str | None) -> AskedModel:
    if isinstance(model, Syntactic) and subject is not None and hasattr(model, "k"):
        model = model.with_unit(subject)
    check, names = check_of(model), [item.name for item in classes.cells.sensitive]
    if check.needs_population:
        raise ParameterError(
            f"{model.kind} compares with a population.", fix="give population=..., which k-map is measured with."
        )
    if check.attribute is not None and check.attribute not in names:
        raise UnknownColumnError(check.attribute, names)
    worst = _worst if check.more_is_safer else _most
    return AskedModel(model=model, attained=worst(check, classes), is_satisfied=bool(check.holds(classes).all()))


def _worst(check: ModelCheck, classes: EquivalenceClasses) -> float:
    return float(check.measure(classes).min())


def _most(check: ModelCheck, classes: EquivalenceClasses) -> float:
    return float(check.measure(classes).max())


def _beside_others(classes: EquivalenceClasses, name: str) -> int | None:
    """Return distinct l-diversity with the other sensitive attributes among the quasi-identifiers."""
    cells = classes.cells
    if len(cells.sensitive) < 2:
        return None
    place = cells.place_of(name)
    values = cells.record_values[classes.records]
    # What an attacker knows in this case: the class, and every other sensitive value.
    known = np.column_stack([classes.groups, np.delete(values, place, axis=1)]).astype(np.int64)
    _, groups = np.unique(known, axis=0, return_inverse=True)
    width = len(cells.sensitive[place].values)
    pairs = np.unique(groups.ravel() * width + values[:, place])
    return int(np.bincount(pairs // width).min())
