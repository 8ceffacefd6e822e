"""The price and the error of an answer before it is paid: from public numbers alone, at no cost.

Errors of counts and sums follow from the noise. Errors of means and deviations also depend on how many rows there are
in a group, of which a guess can be given; nothing is read.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from cloister.accounting.budget import Budget
from cloister.core import exact, validation
from cloister.core.guarantees import DifferentialPrivacy
from cloister.errors import ParameterError
from cloister.queries.answers import plain, show_number
from cloister.queries.contribution import Contribution
from cloister.queries.planning import Plan, plan
from cloister.queries.price import Price
from cloister.queries.question import (
    Aggregate,
    CountDistinct,
    CountPresent,
    CountRows,
    CountUnits,
    Extreme,
    Mean,
    Quantile,
    Question,
    StandardDeviation,
    Total,
    Variance,
)
from cloister.queries.release import Noisy, estimate

__all__ = ["Forecast", "Preview", "preview"]

_SIZES = (100, 1_000, 10_000)
_BISECTIONS = 40


@dataclass(frozen=True, slots=True, kw_only=True)
class Forecast:
    """The expected error of one number: its half-width, for a number of rows in each group where it matters."""

    name: str
    margin: float
    rows: int | None = None
    note: str = ""

    def __str__(self) -> str:
        size = "" if self.rows is None else f" if {self.rows:,} rows are counted"
        width = self.note if np.isnan(self.margin) else f"± {show_number(self.margin, self.margin)}{size}"
        return f"{self.name}: {width}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Preview:
    """What an answer would cost, promise and miss."""

    guarantee: DifferentialPrivacy
    cost: Budget
    remaining: Budget
    groups: int | None
    confidence: float
    forecasts: tuple[Forecast, ...]

    @property
    def epsilon(self) -> float:
        """Return the price, in the measure in which it is stated."""
        return float(self.cost.amount)

    @property
    def is_affordable(self) -> bool:
        """Return whether the budget covers the price."""
        return self.remaining.covers(self.cost)

    def margin(self, name: str | None = None) -> float:
        """Return the expected half-width of a number, by default of the first."""
        found = [item for item in self.forecasts if name is None or item.name == name]
        if not found:
            names = ", ".join(dict.fromkeys(item.name for item in self.forecasts))
            raise ParameterError(f'There is no number "{name}".', fix=f"use one of {names}.")
        return found[0].margin

    def __str__(self) -> str:
        left = "enough is left" if self.is_affordable else "that is more than is left"
        places = {None: ", in each group that is chosen", 1: ""}
        where = places.get(self.groups, f", in each of {self.groups or 0:,} groups")
        lines = [
            f"Price: {_words(self.cost)}, of which {_words(self.remaining)} remains ({left}). Nothing has been spent.",
            f"Expected error, {self.confidence:.0%} of the time{where}:",
            *(f"  {item}" for item in self.forecasts),
        ]
        return "\n".join(lines)

    def to_dict(self) -> dict[str, Any]:
        """Return JSON-ready values."""
        return {
            "schema": "cloister.query_preview/1",
            "cost": self.cost.to_dict(),
            "remaining": self.remaining.to_dict(),
            "affordable": self.is_affordable,
            "groups": self.groups,
            "confidence": self.confidence,
            "forecasts": [
                {"name": item.name, "half_width": plain(item.margin), "rows": item.rows, "note": item.note}
                for item in self.forecasts
            ],
            "guarantee": self.guarantee.to_dict(),
        }


def preview(
    question: Question,
    contribution: Contribution,
    *,
    remaining: Budget,
    epsilon: object = None,
    delta: object = None,
    rho: object = None,
    error: object = None,
    rows: int | None = None,
    confidence: object = 0.95,
    noise: str = "auto",
) -> Preview:
    """Return the error at a price, or the price of an error."""
    inside = float(validation.check_confidence(confidence))
    slack = 0 if delta is None else delta
    sizes = _SIZES if rows is None else (validation.check_count(rows, name="rows", at_least=1),)
    if error is None:
        price = Price.of(epsilon=epsilon, rho=rho, delta=slack)
    else:
        if epsilon is not None or rho is not None:
            raise ParameterError("Give a price or a wanted error, not both.", fix="leave epsilon out.")
        wanted = float(validation.check_positive(error, name="error"))
        price = _price_of(question, contribution, wanted=wanted, delta=slack, sizes=sizes, inside=inside, noise=noise)
    made = plan(question, contribution, price, noise=noise)
    groups = None if made.design.selects_keys else int(np.prod([len(key.values or ()) for key in question.keys]))
    return Preview(
        guarantee=made.guarantee,
        cost=_cost(remaining, made.guarantee),
        remaining=remaining,
        groups=groups,
        confidence=inside,
        forecasts=tuple(_forecasts(made, sizes, inside)),
    )


def _words(budget: Budget) -> str:
    slack = f" and delta {float(budget.delta):g}" if budget.delta else ""
    return f"{budget.measure} {float(budget.amount):g}{slack}"


def _cost(remaining: Budget, guarantee: DifferentialPrivacy) -> Budget:
    return remaining.cost_of(guarantee)


def _price_of(
    question: Question,
    contribution: Contribution,
    *,
    wanted: float,
    delta: object,
    sizes: Sequence[int],
    inside: float,
    noise: str,
) -> Price:
    """Return the smallest epsilon, to three digits, at which every number is expected to be close enough."""

    def errs(epsilon: Fraction) -> float:
        made = plan(question, contribution, Price.of(epsilon=epsilon, delta=delta), noise=noise)
        margins = [item.margin for item in _forecasts(made, sizes[-1:], inside)]
        known = [margin for margin in margins if not np.isnan(margin)]
        if not known:
            raise ParameterError(
                "The error of this answer has no half-width that depends on epsilon alone.",
                fix="preview it at a price, such as epsilon=0.1.",
            )
        return max(known)

    low, high = Fraction(1, 10**6), Fraction(1000)
    if errs(high) > wanted:
        raise ParameterError(
            "No epsilon below 1000 makes the error that small.", fix="ask for a larger error, or more rows."
        )
    for _ in range(_BISECTIONS):
        middle = exact.number(float(low * high) ** 0.5)
        low, high = (low, middle) if errs(middle) <= wanted else (middle, high)
        if high / low < Fraction(1001, 1000):
            break
    return Price.of(epsilon=_three_digits(high), delta=delta)


def _three_digits(value: Fraction) -> Fraction:
    """Return a price rounded up to three digits."""
    step = Fraction(10) ** (math.floor(math.log10(value)) - 2)
    return math.ceil(value / step) * step


def _forecasts(made: Plan, sizes: Sequence[int], inside: float) -> list[Forecast]:
    found: list[Forecast] = []
    for number, aggregate in enumerate(made.question.aggregates):
        name = label_of(aggregate)
        if isinstance(aggregate, Quantile | Extreme):
            found.append(Forecast(name=name, margin=float("nan"), note=_rank_note(made, aggregate, inside)))
        elif isinstance(aggregate, Mean | Variance | StandardDeviation):
            found += [Forecast(name=name, margin=_margin(made, number, size, inside), rows=size) for size in sizes]
        else:
            found.append(Forecast(name=name, margin=_margin(made, number, 1, inside)))
    return found


def _margin(made: Plan, number: int, rows: int, inside: float) -> float:
    """Return the half-width in one group that would come out as expected, its values spread around the middle."""
    vectors = {}
    steps = rows * made.design.reach.scale
    for name, item in made.design.measurements.items():
        kind = item.component.kind
        first = {"total": 0, "square": steps * (item.component.largest // 4 - item.offset)}.get(kind, steps)
        parts = [[first], [0]] if item.rest_of is not None else [[first]]
        vectors[name] = np.array(parts, dtype=object)
    ranks = tuple(np.array([chooser.low]) for chooser in made.rankings)
    shown = tuple([None] for _ in made.question.keys)
    _, columns = estimate(made, Noisy(vectors, ranks, shown))
    return float(columns[number].margins(inside)[0])


def _rank_note(made: Plan, aggregate: Quantile | Extreme, inside: float) -> str:
    position = [item.aggregate for item in made.design.rankings].index(aggregate)
    rows = made.rankings[position].rank_margin(inside) / made.design.reach.scale
    return f"within {rows:,.0f} rows of the wanted rank"


def label_of(aggregate: Aggregate) -> str:
    """Return what an aggregate is called."""
    match aggregate:
        case CountPresent(label=label) | CountDistinct(label=label):
            of = label
        case CountRows() | CountUnits():
            of = ""
        case other:
            of = other.of.label
    kinds: dict[type[Aggregate], str] = {
        CountRows: "count",
        CountUnits: "units",
        CountPresent: "rows with",
        CountDistinct: "different values of",
        Total: "sum of",
        Mean: "mean of",
        Variance: "variance of",
        StandardDeviation: "standard deviation of",
        Quantile: f"{float(getattr(aggregate, 'q', 0)):g} quantile of",
        Extreme: "maximum of" if getattr(aggregate, "largest", False) else "minimum of",
    }
    return f"{kinds[type(aggregate)]} {of}".strip()
