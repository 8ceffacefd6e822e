"""Notes on answers: what a margin of error does not cover, in words."""

from __future__ import annotations

from cloister.queries.contribution import Contribution
from cloister.queries.means import SizedMean
from cloister.queries.planning import Plan
from cloister.queries.question import CountRows, CountUnits, Extreme, Number, Quantile

__all__ = ["of_plan", "of_sized_mean"]


def of_plan(plan: Plan, contribution: Contribution) -> tuple[str, ...]:
    """Return the notes on an answer."""
    found = [_clamped(number) for number in _numbers(plan)]
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


def of_sized_mean(mean: SizedMean) -> tuple[str, ...]:
    """Return the notes on a mean of a table of known size."""
    return (_clamped(mean.number), f"Missing values of {mean.number.label} count as the middle of its bounds.")


def _numbers(plan: Plan) -> list[Number]:
    aggregates = [item for item in plan.question.aggregates if not isinstance(item, CountRows | CountUnits)]
    return [item.of for item in aggregates if isinstance(item.of, Number)]


def _clamped(number: Number) -> str:
    low, high = (f"{float(bound):g}" for bound in number.bounds)
    return f"{number.label} is clamped to {low} .. {high}; the margin covers the noise, not what clamping changed."


def _rank(plan: Plan, position: int) -> str:
    ranking, chooser = plan.design.rankings[position], plan.rankings[position]
    rows = f"{chooser.rank_margin() / plan.design.reach.scale:,.0f} rows"
    label = ranking.number.label
    match ranking.aggregate:
        case Quantile(q=q):
            return f"The {float(q):g} quantile of {label} is off by at most {rows} in rank, 95% of the time."
        case Extreme(largest=largest):
            beyond = f"{abs(float(chooser.offset)) / plan.design.reach.scale:,.0f} rows"
            name, side = ("maximum", "above") if largest else ("minimum", "below")
            return (
                f"The {name} of {label} is not the true one but a value that about {beyond} lie {side}; "
                f"it is off by at most {rows} in rank, 95% of the time."
            )
