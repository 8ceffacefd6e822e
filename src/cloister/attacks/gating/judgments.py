"""Judgments: what follows from the result of an attack by the limits of a policy.

A judgment is one sentence that names the figure and its limit.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from cloister.attacks.gating.policy import GatePolicy
from cloister.attacks.result import AttackResult
from cloister.core.confidence import binomial_interval
from cloister.core.wordings import format_points, percent

if TYPE_CHECKING:
    from cloister.attacks.models.membership import MembershipDetails
    from cloister.attacks.synthetic.base import SyntheticDetails
    from cloister.attacks.synthetic.closest_records import DistanceDetails
    from cloister.attacks.tables.disclosure import DisclosureDetails
    from cloister.attacks.tables.linkage import LinkageDetails

__all__ = [
    "GateJudgment",
    "judge_advantage",
    "judge_belief",
    "judge_certain",
    "judge_excess",
    "judge_groups",
    "judge_match",
    "judge_membership",
    "judge_nearest",
    "judge_nearness",
    "judge_residual",
    "judge_stored",
]


_UNTOLD = 0.25
"""How far above guessing an attack may be for all that is known, and still count as held."""


@dataclass(frozen=True, slots=True)
class GateJudgment:
    """Whether a limit holds, and the sentence that says so; without ``decides`` the attack could not tell."""

    sentence: str
    holds: bool
    decides: bool = True


def judge_certain(result: AttackResult[DisclosureDetails], *, policy: GatePolicy) -> GateJudgment:
    """Judge how many values follow with certainty."""
    details = result.details
    share = result.success - result.baseline
    classes = f"{details.disclosed_classes:,} of {details.classes:,} classes have one value only"
    return GateJudgment(
        f"The {details.column} of {percent(result.success)} of the people ({_between(result)}) follows with certainty "
        f"from their class, {percent(policy.max_certain)} allowed: {classes}.",
        holds=share <= policy.max_certain,
    )


def judge_belief(result: AttackResult[DisclosureDetails], *, policy: GatePolicy) -> GateJudgment:
    """Judge how sure attackers become."""
    details = result.details
    return GateJudgment(
        f"For {percent(result.success)} of the people ({_between(result)}) an attacker is at least "
        f"{percent(policy.max_belief)} sure of their {details.column}, for {percent(result.baseline)} by the whole "
        f"table alone; at most {percent(details.largest_posterior)} sure of anybody's.",
        holds=result.success - result.baseline <= policy.max_certain,
    )


def judge_match(
    result: AttackResult[LinkageDetails], *, policy: GatePolicy, left_out: int, hidden: int = 0
) -> GateJudgment:
    """Judge the largest chance of a match; people who fit no row at all were not tried.

    Whoever fits no other row is in one of those that hide everything, and these are a class like others.
    """
    details = result.details
    if details.unlinked > left_out + hidden:
        return GateJudgment(
            f"{details.unlinked:,} of {result.trials:,} people fit no released row, though {left_out:,} rows were left "
            f"out and {hidden:,} show nothing: the labels could not be read, or the release is about other people.",
            holds=False,
            decides=False,
        )
    if details.unlinked and hidden and 1 / hidden > policy.max_match * (1 + 1e-9):
        return GateJudgment(
            f"{details.unlinked:,} people fit no row but the {hidden:,} that show nothing of what is known: the chance "
            f"to match them is {percent(1 / hidden)}, {percent(policy.max_match)} allowed.",
            holds=False,
        )
    return GateJudgment(
        f"The largest chance to match somebody with one released row is {percent(details.largest_risk)}, "
        f"{percent(policy.max_match)} allowed; on average it is {percent(result.success)} ({_between(result)}).",
        holds=details.largest_risk <= policy.max_match * (1 + 1e-9),
    )


def judge_nearest(result: AttackResult, *, policy: GatePolicy) -> GateJudgment:
    """Judge how often the nearest released row is somebody's own."""
    return GateJudgment(
        f"The nearest released row is the person's own in {percent(result.success)} of cases ({_between(result)}), "
        f"{percent(policy.max_match)} allowed, {percent(result.baseline)} by guessing.",
        holds=result.interval[0] <= policy.max_match,
    )


def judge_advantage(result: AttackResult, *, policy: GatePolicy) -> GateJudgment:
    """Judge by how much an attack beats guessing; few cases decide nothing."""
    holds = result.interval[0] <= result.baseline + policy.max_excess
    return GateJudgment(
        f"Right in {percent(result.success)} of cases ({_between(result)}), guessing in {percent(result.baseline)}; "
        f"{format_points(policy.max_excess)} points more are allowed.",
        holds=holds,
        decides=not holds or result.interval[1] <= result.baseline + _UNTOLD,
    )


def judge_excess(result: AttackResult, *, policy: GatePolicy) -> GateJudgment:
    """Judge by how much an attack beats both guessing and the same attack on people outside the data."""
    others = result.control if result.control_interval is None else result.control_interval[1]
    compared = max(result.baseline, others or 0.0)
    holds = result.interval[0] <= compared + policy.max_excess
    return GateJudgment(
        f"Right in {percent(result.success)} of cases ({_between(result)}), guessing in {percent(result.baseline)}, on "
        f"people outside the data in {percent(result.control or 0.0)}; {format_points(policy.max_excess)} points more "
        "are allowed.",
        holds=holds,
        decides=not holds or result.interval[1] <= compared + _UNTOLD,
    )


def judge_groups(result: AttackResult, *, policy: GatePolicy) -> GateJudgment:
    """Judge learning over groups: to be wrong much more often than by guessing takes one hint to be right."""
    found = judge_advantage(result, policy=policy)
    if result.interval[1] >= result.baseline - policy.max_excess:
        return found
    swapped = " So few right answers mean that values were swapped: who knows one person's turns them around."
    return GateJudgment(found.sentence + swapped, holds=False)


def judge_residual(result: AttackResult[SyntheticDetails], *, policy: GatePolicy) -> GateJudgment:
    """Judge what an attack finds about the people in the data beyond others."""
    details = result.details
    low, high = details.residual_interval or (0.0, 1.0)
    return GateJudgment(
        f"Right in {percent(result.success)} of cases ({_between(result)}), on people outside the data in "
        f"{percent(result.control or 0.0)}: a residual risk between {percent(low)} and {percent(high)}, "
        f"{percent(policy.max_residual)} allowed.",
        holds=low <= policy.max_residual,
        decides=low > policy.max_residual or details.is_telling or _is_tight(result),
    )


def judge_nearness(result: AttackResult[DistanceDetails], *, policy: GatePolicy) -> GateJudgment:
    """Judge whether synthetic rows come nearer to the data than to others."""
    details = result.details
    limit = result.baseline + policy.max_residual
    is_near = result.interval[0] > limit or (details.copies_interval is not None and details.copies_interval[0] > 0.5)
    return GateJudgment(
        f"{percent(result.success)} of the synthetic rows ({_between(result)}) are nearer to the data than to people "
        f"outside it, where {percent(result.baseline)} is chance; {percent(details.to_original.identical)} equal a row "
        f"of the data, {percent(details.to_control.identical if details.to_control else 0.0)} a row outside it.",
        holds=not is_near,
        decides=is_near or details.is_telling,
    )


def judge_stored(result: AttackResult, *, policy: GatePolicy) -> GateJudgment:
    """Judge whether a model carries records along."""
    return GateJudgment(
        f"The model carries {percent(result.success)} of the records along as they are, {percent(policy.max_certain)} "
        "allowed.",
        holds=result.excess <= policy.max_certain,
    )


def judge_membership(result: AttackResult[MembershipDetails], *, policy: GatePolicy) -> GateJudgment:
    """Judge membership by how often it is right, by whom it finds with few false alarms, and by the promise.

    A promise is no excuse for an attack that works.
    """
    details = result.details
    found = judge_advantage(result, policy=policy)
    surely = binomial_interval(
        round(details.rate_at_1_percent * details.members), details.members, confidence=policy.confidence
    )[0]
    told = f" With 1% false alarms it finds {percent(details.rate_at_1_percent)} of the members."
    broken = surely > 0.01 + policy.max_excess
    if details.claim is not None and not details.keeps_promise:
        told += f" Epsilon is at least {details.epsilon_lower:.2g}, but {details.claim[0]:g} is promised."
        broken = True
    return GateJudgment(found.sentence + told, holds=found.holds and not broken, decides=broken or found.decides)


def _is_tight(result: AttackResult) -> bool:
    """Return whether the attack is at most a little more often right about people in the data than about others."""
    return result.control_interval is not None and result.interval[1] - result.control_interval[0] <= _UNTOLD


def _between(result: AttackResult) -> str:
    low, high = result.interval
    return f"between {percent(low)} and {percent(high)}"
