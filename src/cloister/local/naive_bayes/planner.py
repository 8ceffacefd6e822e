"""How many people the normal design needs, said before anybody is asked."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from cloister.core.validation import check_positive, check_probability
from cloister.errors import ParameterError
from cloister.local.estimates import z_of

__all__ = ["GaussianPlan", "plan_gaussian"]


@dataclass(frozen=True, slots=True, kw_only=True)
class GaussianPlan:
    """How many people class means within a wanted error take.

    Attributes:
        people: how many in all.
        least: with so many the standard error of a class mean is still half its range; fewer are hopeless.
        per_question: how many of them are asked about one moment of one feature.
        features: how many features there are.
        epsilon: what one person pays.
        way: how a class and a number are told together.
        half_width: of the 95% interval of a class mean, with the bounds at -1 and 1.
        smallest_class: the share of the smallest class.
    """

    people: int
    least: int
    per_question: int
    features: int
    epsilon: float
    way: str
    half_width: float
    smallest_class: float

    def __str__(self) -> str:
        return (
            f"To know the mean of each of {self.features} features in a class of {100 * self.smallest_class:.0f}% "
            f"to ± {self.half_width:g} of half its range (95%) takes about {self.people:,} people at epsilon "
            f"{self.epsilon:g}: {self.per_question:,} for each of two moments of each feature. "
            f"With {self.least:,} people the standard error is still half the range."
        )

    def to_dict(self) -> dict[str, Any]:
        """Return JSON-ready values."""
        return {
            "schema": "cloister.local_gaussian_plan/1",
            **{name: getattr(self, name) for name in self.__slots__},
        }


def plan_gaussian(
    *, features: int, epsilon: Fraction, way: str, variance: float, half_width: object, smallest_class: object
) -> GaussianPlan:
    """Return the plan for a number of features.

    The mean of a class of share P has variance ``variance / (m P**2)`` from m reports, and a moment of a feature gets
    one in ``2 features + 1`` people.

    Args:
        features: how many there are.
        epsilon: what one person pays.
        way: how a class and a number are told together.
        variance: of a product P(c) E[v | c], times the number of reports.
        half_width: of the 95% interval of a class mean, with the bounds at -1 and 1.
        smallest_class: the share of the smallest class.
    """
    wanted, share = float(check_positive(half_width, name="half_width")), _share(smallest_class)
    each = math.ceil(z_of(0.95) ** 2 * variance / (share * wanted) ** 2)
    sides = 2 * features + 1
    return GaussianPlan(
        people=sides * each,
        least=math.ceil(sides * variance / share**2),
        per_question=each,
        features=features,
        epsilon=float(epsilon),
        way=way,
        half_width=wanted,
        smallest_class=share,
    )


def _share(value: object) -> float:
    share = float(check_probability(value, name="smallest_class"))
    if share == 0:
        raise ParameterError("An empty class has no mean.", fix="give the share of the smallest class, such as 0.1.")
    return share
