"""From a question and a price to a plan: the noise of each measurement, the ranks of extremes, and what is promised.

Under epsilon the price is shared equally between measurements with Laplace noise. Under rho, or under (epsilon,
delta) where that is more exact, all measurements together are one Gaussian release. Quantiles and extremes are chosen
by rank, at their share. Groups that are not public are chosen by their noisy count, which has to pass a threshold
that a group with a single unit passes with probability below delta (Korolova et al. 2009; Balcer and Vadhan 2018).

Privacy of the threshold: let a unit join. It counts as one unit in at most g groups. Groups that it shares with
others are ordinary coordinates of a noisy vector. Groups that it alone is in can be told apart only if they are
released, and the chance that any of them passes is at most g * Pr[1 + noise >= threshold] <= delta.

Notes on an answer say in words what its margin of error does not cover.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import TypeAlias

from cloister.accounting.budget import Budget
from cloister.accounting.conversions import gaussian_multiplier
from cloister.accounting.events import ApproxEvent, Event, PureEvent, SequenceEvent, ZeroConcentratedEvent
from cloister.core import exact, validation
from cloister.core.guarantees import DifferentialPrivacy
from cloister.data.columns import MOST_CATEGORIES
from cloister.errors import ParameterError
from cloister.queries._contribution import Contribution
from cloister.queries._measurements import MeasurementDesign, Ranking, design
from cloister.queries._question import FixedPointNumber, Question
from cloister.queries._sized_mean import SizedMean
from cloister.queries._uncertainty import GaussianNoise, LaplaceNoise
from cloister.queries.ranks import RankSelection

__all__ = ["NOISES", "QueryPlan", "notes_on_plan", "notes_on_sized_mean", "plan"]


NOISES = ("auto", "laplace", "gaussian")
_SLACK = Fraction(1, 10**15)
_SMALLEST_EPSILON = Fraction(1, 10**9)
_OUTSIDE = Fraction(1, 100)
"""How likely, at most, an extreme falls where no rows are."""

AddedNoise: TypeAlias = LaplaceNoise | GaussianNoise


@dataclass(frozen=True, slots=True, kw_only=True)
class QueryPlan:
    """How a question is answered at a price: public, and the same whenever it is made again."""

    design: MeasurementDesign
    price: Budget
    noises: dict[str, AddedNoise]
    rankings: tuple[RankSelection, ...]
    threshold: int | None
    guarantee: DifferentialPrivacy
    event: Event
    noise: str

    @property
    def question(self) -> Question:
        return self.design.question


def plan(question: Question, contribution: Contribution, price: Budget, *, noise: str = "auto") -> QueryPlan:
    """Return how a question is answered at a price."""
    validation.check_choice(noise, name="noise", allowed=NOISES)
    found = design(question, contribution)
    if found.selects_keys and not price.delta:
        names = ", ".join(f'"{key.name}"' for key in question.keys if key.values is None)
        raise ParameterError(
            f"The groups of {names} are not public, and choosing them privately needs delta.",
            fix=f"state the values, at most {MOST_CATEGORIES:,}: categories in the schema, bins, or an expression such "
            "as CASE or FLOOR(x / 10); or add delta, such as delta=1e-6, to the price, which shows large groups only.",
        )
    chosen = _choose(found, price, noise)
    # Laplace noise promises more than was offered, and delta that nothing needs is not charged.
    if chosen == "laplace" and not found.selects_keys:
        price = price.without_delta()
    noises = _laplace(found, price) if chosen == "laplace" else _gaussian(found, price)
    rankings = tuple(_ranking(item, found, price) for item in found.rankings)
    guarantee = price.guarantee(
        adjacency=contribution.adjacency,
        unit=contribution.unit,
        assumptions=(*contribution.describe(), *_assumptions(question)),
    )
    return QueryPlan(
        design=found,
        price=price,
        noises=noises,
        rankings=rankings,
        threshold=_threshold(found, noises, price, contribution) if found.selects_keys else None,
        guarantee=guarantee,
        event=_event(found, price, noises, rankings),
        noise=chosen,
    )


def _choose(found: MeasurementDesign, price: Budget, noise: str) -> str:
    """Return the kind of noise: the one with the smaller standard deviation where both are possible."""
    if price.rho is not None:
        if noise == "laplace":
            raise ParameterError(
                "A price in rho is paid by Gaussian noise.", fix='use noise="gaussian", or a price in epsilon.'
            )
        return "gaussian"
    if noise == "gaussian" and not price.delta:
        raise ParameterError("Gaussian noise needs delta.", fix="add delta, such as delta=1e-6, or use rho.")
    is_small = price.amount / max(found.parts, 1) < _SMALLEST_EPSILON
    if noise == "gaussian" and is_small:
        raise ParameterError("Gaussian noise needs an epsilon of at least 1e-9.", fix='use noise="laplace", or rho.')
    if noise != "auto" or not price.delta or not found.measurements or is_small:
        return "laplace" if noise == "auto" else noise
    # Both candidates follow from public numbers, so that choosing the better one costs nothing.
    laplace, gaussian = _laplace(found, price), _gaussian(found, price)
    one = Fraction(1)
    better = sum(laplace[name].law(one).deviation > gaussian[name].law(one).deviation for name in laplace)
    return "gaussian" if 2 * better > len(laplace) else "laplace"


def _laplace(found: MeasurementDesign, price: Budget) -> dict[str, AddedNoise]:
    share = price.amount / max(found.parts, 1)
    return {name: LaplaceNoise(item.l1, share) for name, item in found.measurements.items()}


def _gaussian(found: MeasurementDesign, price: Budget) -> dict[str, AddedNoise]:
    number = len(found.measurements)
    if price.rho is not None:
        share = price.rho / max(found.parts, 1)
        return {name: GaussianNoise.for_rho(item.squared_l2, share) for name, item in found.measurements.items()}
    if not number:
        return {}
    # All Gaussian measurements are one release of one long vector and are paid with their shares together.
    epsilon = price.amount * number / found.parts
    # The threshold that chooses groups needs the other half of delta; see `_threshold`.
    delta = price.delta / 2 if found.selects_keys else price.delta
    # Each measurement is scaled to sensitivity 1, so the vector of all of them has the squared sensitivity
    # `number`.
    squared = gaussian_multiplier(epsilon - _SLACK, delta) ** 2 * number
    return {name: GaussianNoise.dominating(item.squared_l2, squared) for name, item in found.measurements.items()}


def _ranking(ranking: Ranking, found: MeasurementDesign, price: Budget) -> RankSelection:
    epsilon = _rank_epsilon(found, price)
    number, sensitivity = ranking.number, ranking.sensitivity
    offset = Fraction(0)
    if ranking.target.is_extreme:
        points = Fraction(number.high - number.low + 1)
        # Points beyond all rows score -inside or less; at this distance even all points of the grid
        # together are drawn instead of the target with a probability below `_OUTSIDE`.
        inside = math.ceil(2 * sensitivity / epsilon * exact.log_bounds(points / _OUTSIDE)[1])
        inside = max(inside, (ranking.target.beyond or 0) * found.reach.scale)
        offset = Fraction(-inside if ranking.target.fraction else inside)
    return RankSelection(
        low=number.low,
        high=number.high,
        fraction=ranking.target.fraction,
        offset=offset,
        score_sensitivity=sensitivity,
        epsilon=epsilon,
    )


def _rank_epsilon(found: MeasurementDesign, price: Budget) -> Fraction:
    share = price.amount / found.parts
    # Pure epsilon implies rho = epsilon**2 / 2, and the root is rounded down, so no more than the share is
    # spent.
    return share if price.rho is None else exact.sqrt_bounds(2 * share)[0]


def _threshold(
    found: MeasurementDesign, noises: dict[str, AddedNoise], price: Budget, contribution: Contribution
) -> int:
    """Return the noisy count, in steps, that a group has to reach."""
    name = "units" if contribution.is_person else "rows"
    groups = found.reach.groups if contribution.is_person else 1
    shared = any(isinstance(item, GaussianNoise) for item in noises.values()) and price.rho is None
    # Every step rounds up: a threshold that is too high hides a group, one that is too low breaks delta.
    logarithm = exact.log_bounds(groups / (price.delta / 2 if shared else price.delta))[1]
    match noises[name]:
        case LaplaceNoise() as laplace:
            above = math.ceil(laplace.scale * logarithm)
        case gaussian:
            above = math.ceil(exact.sqrt_bounds(2 * gaussian.squared_sigma * logarithm)[1]) + 1
    # A group with a single unit has a full `scale` of steps before noise.
    return found.reach.scale + above


def _event(
    found: MeasurementDesign, price: Budget, noises: dict[str, AddedNoise], rankings: tuple[RankSelection, ...]
) -> Event:
    # The threshold is no event of its own to the accountants: the promise as a whole stands for noise and
    # choice together.
    if found.selects_keys or (price.rho is not None and price.delta):
        if price.rho is not None:
            return ZeroConcentratedEvent(rho=price.rho, delta=price.delta)
        return ApproxEvent(epsilon=price.amount, delta=price.delta)
    events = [noise.event for noise in noises.values()]
    events += [PureEvent(epsilon=ranking.epsilon) for ranking in rankings]
    return events[0] if len(events) == 1 else SequenceEvent(events=tuple(events))


def _assumptions(question: Question) -> tuple[str, ...]:
    bounds = {
        f"{number.label} lies in {float(number.bounds[0]):g} to {float(number.bounds[1]):g} (clamped)": None
        for number in _numbers(question)
    }
    keys = [f"the groups of {key.name} are public" for key in question.keys if key.values is not None]
    return (*bounds, *keys)


def notes_on_plan(plan: QueryPlan, contribution: Contribution) -> tuple[str, ...]:
    """Return the notes on an answer."""
    found = [_note_clamping(number) for number in _numbers(plan.question)]
    found += [_rank(plan, position) for position in range(len(plan.rankings))]
    if plan.design.reach.is_weighted or (contribution.is_person and contribution.bounding != "weight"):
        found.append(
            f"Each {contribution.unit} counts for at most {plan.design.reach.rows} rows; the margin covers the noise, "
            "not what this limit leaves out."
        )
    for key in plan.question.keys:
        if key.values is None:
            found.append(f"Groups of {key.name} with few {contribution.unit}s are not shown; which ones is random.")
        else:
            found.append(f"Rows whose {key.name} is missing, or none of the public values, are not shown.")
    return tuple(dict.fromkeys(found))


def notes_on_sized_mean(mean: SizedMean) -> tuple[str, ...]:
    """Return the notes on a mean of a table of known size."""
    return (_note_clamping(mean.number), f"Missing values of {mean.number.label} count as the middle of its bounds.")


def _numbers(question: Question) -> list[FixedPointNumber]:
    return [item.number for item in question.aggregates if item.number is not None]


def _note_clamping(number: FixedPointNumber) -> str:
    low, high = (f"{float(bound):g}" for bound in number.bounds)
    return f"{number.label} is clamped to {low} .. {high}; the margin covers the noise, not what clamping changed."


def _rank(plan: QueryPlan, position: int) -> str:
    ranking, chooser = plan.design.rankings[position], plan.rankings[position]
    rows = f"{chooser.rank_margin() / plan.design.reach.scale:,.0f} rows"
    label = ranking.number.label
    fraction = ranking.target.fraction
    if not ranking.target.is_extreme:
        return f"The {float(fraction):g} quantile of {label} is off by at most {rows} in rank, 95% of the time."
    beyond = f"{abs(float(chooser.offset)) / plan.design.reach.scale:,.0f} rows"
    name, side = ("maximum", "above") if fraction else ("minimum", "below")
    return (
        f"The {name} of {label} is not the true one but a value that about {beyond} lie {side}; "
        f"it is off by at most {rows} in rank, 95% of the time."
    )
