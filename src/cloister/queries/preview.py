"""An answer before it is paid: the error that a price buys, and the price of a wanted error. Costs nothing.

All of it comes from public numbers: nothing is read. Errors of counts and sums follow from the noise. Errors of means
and deviations also depend on how many rows there are in a group, of which a guess can be given.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, TypeAlias

import numpy as np

from cloister.accounting.budget import Budget
from cloister.core import exact, validation
from cloister.core.exact import Number
from cloister.core.guarantees import DifferentialPrivacy
from cloister.core.wordings import percent
from cloister.errors import ParameterError
from cloister.queries._contribution import Contribution
from cloister.queries._measurements import design
from cloister.queries._query_plan import QueryPlan, plan
from cloister.queries._question import GroupKey, Question
from cloister.queries._release import Noisy, estimate
from cloister.queries.answers import Estimate, plain, show_number
from cloister.queries.payment import check_price

__all__ = ["Forecast", "Preview", "preview"]

Present: TypeAlias = Callable[[Sequence[Estimate], Sequence[Estimate]], Sequence[Estimate]]

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
    price: Budget
    cost: Budget
    remaining: Budget
    groups: int | None
    confidence: float
    forecasts: tuple[Forecast, ...]

    @property
    def epsilon(self) -> float | None:
        """Return the price in epsilon; None where it is stated in rho."""
        return None if self.price.epsilon is None else float(self.price.epsilon)

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
        enough = "enough" if self.is_affordable else "not enough"
        places = {None: ", in each group that is chosen", 1: ""}
        where = places.get(self.groups, f", in each of {self.groups or 0:,} groups")
        lines = [
            f"Price: {self.cost.words}; {self.remaining.words} is left, which is {enough}. Nothing has been spent.",
            f"Expected error, {percent(self.confidence)} of the time{where}:",
            *(f"  {item}" for item in self.forecasts),
        ]
        return "\n".join(lines)

    def to_dict(self) -> dict[str, Any]:
        """Return JSON-ready values."""
        return {
            "schema": "cloister.query_preview/1",
            "price": self.price.amounts(),
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
    present: Present | None = None,
    epsilon: Number | None = None,
    delta: Number | None = None,
    rho: Number | None = None,
    error: Number | None = None,
    rows: int | None = None,
    confidence: Number = 0.95,
    noise: str = "auto",
) -> Preview:
    """Return the error at a price, or the price of an error."""
    inside = float(validation.check_confidence(confidence))
    slack = 0 if delta is None else delta
    sizes = _SIZES if rows is None else (validation.check_count(rows, name="rows", at_least=1),)
    if error is None:
        price = check_price(epsilon=epsilon, rho=rho, delta=slack)
    else:
        if epsilon is not None or rho is not None:
            raise ParameterError("Give a price or a wanted error, not both.", fix="leave epsilon out.")
        if rows is None and design(question, contribution).depends_on_size:
            raise ParameterError(
                "The error of a mean or deviation depends on how many rows are counted.",
                fix="add a guess of the rows in each group, such as rows=1000.",
            )
        wanted = float(validation.check_positive(error, name="error"))
        price = _price_of(
            question,
            contribution,
            wanted=wanted,
            delta=slack,
            rows=sizes[-1],
            inside=inside,
            noise=noise,
            present=present,
        )
    made = plan(question, contribution, price, noise=noise)
    groups = None if made.design.selects_keys else int(np.prod([len(key.values or ()) for key in question.keys]))
    return Preview(
        guarantee=made.guarantee,
        price=made.price,
        cost=_cost(remaining, made.guarantee),
        remaining=remaining,
        groups=groups,
        confidence=inside,
        forecasts=tuple(_forecasts(made, sizes, inside, present)),
    )


def _cost(remaining: Budget, guarantee: DifferentialPrivacy) -> Budget:
    return remaining.cost_of(guarantee)


def _price_of(
    question: Question,
    contribution: Contribution,
    *,
    wanted: float,
    delta: Number,
    rows: int,
    inside: float,
    noise: str,
    present: Present | None,
) -> Budget:
    """Return the smallest epsilon, to three digits, at which every number is expected to be close enough."""

    def errs(epsilon: Fraction) -> float:
        made = plan(question, contribution, check_price(epsilon=epsilon, delta=delta), noise=noise)
        margins = [item.margin for item in _forecasts(made, (rows,), inside, present)]
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
    # Prices span orders of magnitude, so the search halves their ratio rather than their distance.
    for _ in range(_BISECTIONS):
        middle = exact.number(float(low * high) ** 0.5)
        low, high = (low, middle) if errs(middle) <= wanted else (middle, high)
        if high / low < Fraction(1001, 1000):
            break
    return check_price(epsilon=_three_digits(high), delta=delta)


def _three_digits(value: Fraction) -> Fraction:
    """Return a price rounded up to three digits."""
    step = Fraction(10) ** (math.floor(math.log10(value)) - 2)
    return math.ceil(value / step) * step


def _forecasts(made: QueryPlan, sizes: Sequence[int], inside: float, present: Present | None) -> list[Forecast]:
    """Return one forecast for each number, or one for each size of a group where the size matters."""
    # One size beyond those shown tells whether the size matters at all.
    by_size = {size: _numbers(made, size, inside, present) for size in (*sizes, 10 * sizes[-1])}
    found: list[Forecast] = []
    for place, (name, _, words) in enumerate(by_size[sizes[0]]):
        margins = {size: numbers[place][1] for size, numbers in by_size.items()}
        if any(np.isnan(margin) for margin in margins.values()):
            found.append(Forecast(name=name, margin=float("nan"), note=words or "the error cannot be said in advance"))
        elif len(set(margins.values())) > 1:
            found += [Forecast(name=name, margin=margins[size], rows=size) for size in sizes]
        else:
            found.append(Forecast(name=name, margin=margins[sizes[0]]))
    return found


def _numbers(made: QueryPlan, rows: int, inside: float, present: Present | None) -> list[tuple[str, float, str]]:
    """Return name, half-width and words for each number shown, at the worse of two places of the values."""
    # The margin of a mean depends on where its values lie, which is private: the worse of the middle and the
    # end is forecast.
    scenes = [_scene(made, rows, at_the_end=at_the_end, present=present) for at_the_end in (False, True)]
    return [
        (first.name, float(max(first.margins(inside)[0], second.margins(inside)[0])), getattr(first.error, "words", ""))
        for first, second in zip(*scenes, strict=True)
    ]


def _scene(made: QueryPlan, rows: int, *, at_the_end: bool, present: Present | None) -> list[Estimate]:
    """Return the numbers of one group that would come out as expected, its values in the middle or at the end."""
    vectors = {}
    steps = rows * made.design.reach.scale
    for name, item in made.design.measurements.items():
        largest = item.component.largest
        total = largest if at_the_end else 0
        square = (largest if at_the_end else largest // 4) - item.offset
        first = steps * {"total": total, "square": square}.get(item.component.kind, 1)
        vectors[name] = np.array([[first], [0]] if item.rest_of is not None else [[first]], dtype=object)
    ranks = tuple(np.array([chooser.low]) for chooser in made.rankings)
    shown = tuple([_some(key)] for key in made.question.keys)
    keys, aggregates = estimate(made, Noisy(vectors, ranks, shown))
    if present is not None:
        return [column for column in present(keys, aggregates) if not column.is_key]
    return [column.named(item.title) for column, item in zip(aggregates, made.question.aggregates, strict=True)]


def _some(key: GroupKey) -> Any:
    """Return any public value of a key."""
    return key.shown[0] if key.shown else None
