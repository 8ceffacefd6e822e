"""What follows from the result of an attack: a judgment in one sentence that names the figure and its limit."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from cloister.attacks.confidence import binomial_interval
from cloister.attacks.gating.policy import GatePolicy
from cloister.attacks.result import AttackResult, percent

__all__ = [
    "Judgment",
    "judge_advantage",
    "judge_belief",
    "judge_certain",
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
class Judgment:
    """Whether a limit holds, and the sentence that says so; without ``decides`` the attack could not tell."""

    sentence: str
    holds: bool
    decides: bool = True


def judge_certain(result: Any, *, policy: GatePolicy) -> Judgment:
    """Judge how many values follow with certainty."""
    share = result.success - result.baseline
    classes = f"{result.disclosed_classes:,} of {result.classes:,} classes have one value only"
    return Judgment(
        f"The {result.column} of {percent(result.success)} of the people ({_between(result)}) follows with certainty "
        f"from their class, {percent(policy.max_certain)} allowed: {classes}.",
        holds=share <= policy.max_certain,
    )


def judge_belief(result: Any, *, policy: GatePolicy) -> Judgment:
    """Judge how sure attackers become."""
    return Judgment(
        f"For {percent(result.success)} of the people ({_between(result)}) an attacker is at least "
        f"{percent(policy.max_belief)} sure of their {result.column}, for {percent(result.baseline)} by the whole "
        f"table alone; at most {percent(result.largest_posterior)} sure of anybody's.",
        holds=result.success - result.baseline <= policy.max_certain,
    )


def judge_match(result: Any, *, policy: GatePolicy, left_out: int, hidden: int = 0) -> Judgment:
    """Judge the largest chance of a match; people who fit no row at all were not tried.

    Whoever fits no other row is in one of those that hide everything, and these are a class like others.
    """
    if result.unlinked > left_out + hidden:
        return Judgment(
            f"{result.unlinked:,} of {result.trials:,} people fit no released row, though {left_out:,} rows were left "
            f"out and {hidden:,} show nothing: the labels could not be read, or the release is about other people.",
            holds=False,
            decides=False,
        )
    if result.unlinked and hidden and 1 / hidden > policy.max_match * (1 + 1e-9):
        return Judgment(
            f"{result.unlinked:,} people fit no row but the {hidden:,} that show nothing of what is known: the chance "
            f"to match them is {percent(1 / hidden)}, {percent(policy.max_match)} allowed.",
            holds=False,
        )
    return Judgment(
        f"The largest chance to match somebody with one released row is {percent(result.largest_risk)}, "
        f"{percent(policy.max_match)} allowed; on average it is {percent(result.success)} ({_between(result)}).",
        holds=result.largest_risk <= policy.max_match * (1 + 1e-9),
    )


def judge_nearest(result: Any, *, policy: GatePolicy) -> Judgment:
    """Judge how often the nearest released row is somebody's own."""
    return Judgment(
        f"The nearest released row is the person's own in {percent(result.success)} of cases ({_between(result)}), "
        f"{percent(policy.max_match)} allowed, {percent(result.baseline)} by guessing.",
        holds=result.interval[0] <= policy.max_match,
    )


def judge_advantage(result: AttackResult, *, policy: GatePolicy) -> Judgment:
    """Judge by how much an attack beats guessing; few cases decide nothing."""
    holds = result.interval[0] <= result.baseline + policy.max_excess
    return Judgment(
        f"Right in {percent(result.success)} of cases ({_between(result)}), guessing in {percent(result.baseline)}; "
        f"{100 * policy.max_excess:g} points more are allowed.",
        holds=holds,
        decides=not holds or result.interval[1] <= result.baseline + _UNTOLD,
    )


def judge_groups(result: AttackResult, *, policy: GatePolicy) -> Judgment:
    """Judge learning over groups: to be wrong much more often than by guessing takes one hint to be right."""
    found = judge_advantage(result, policy=policy)
    if result.interval[1] >= result.baseline - policy.max_excess:
        return found
    swapped = " So few right answers mean that values were swapped: who knows one person's turns them around."
    return Judgment(found.sentence + swapped, holds=False)


def judge_residual(result: Any, *, policy: GatePolicy) -> Judgment:
    """Judge what an attack finds about the people in the data beyond others."""
    low, high = result.residual_interval or (0.0, 1.0)
    return Judgment(
        f"Right in {percent(result.success)} of cases ({_between(result)}), on people outside the data in "
        f"{percent(result.control or 0.0)}: a residual risk between {percent(low)} and {percent(high)}, "
        f"{percent(policy.max_residual)} allowed.",
        holds=low <= policy.max_residual,
        decides=low > policy.max_residual or result.is_telling or _is_tight(result),
    )


def judge_nearness(result: Any, *, policy: GatePolicy) -> Judgment:
    """Judge whether synthetic rows come nearer to the data than to others."""
    limit = result.baseline + policy.max_residual
    is_near = result.interval[0] > limit or (result.copies_interval is not None and result.copies_interval[0] > 0.5)
    return Judgment(
        f"{percent(result.success)} of the synthetic rows ({_between(result)}) are nearer to the data than to people "
        f"outside it, where {percent(result.baseline)} is chance; {percent(result.to_original.identical)} equal a row "
        f"of the data, {percent(result.to_control.identical if result.to_control else 0.0)} a row outside it.",
        holds=not is_near,
        decides=is_near or result.is_telling,
    )


def judge_stored(result: AttackResult, *, policy: GatePolicy) -> Judgment:
    """Judge whether a model carries records along."""
    return Judgment(
        f"The model carries {percent(result.success)} of the records along as they are, {percent(policy.max_certain)} "
        "allowed.",
        holds=result.excess <= policy.max_certain,
    )


def judge_membership(result: Any, *, policy: GatePolicy) -> Judgment:
    """Judge membership by how often it is right, by whom it finds with few false alarms, and by the promise.

    A promise is no excuse for an attack that works.
    """
    found = judge_advantage(result, policy=policy)
    surely = binomial_interval(
        round(result.rate_at_1_percent * result.members), result.members, confidence=policy.confidence
    )[0]
    told = f" With 1% false alarms it finds {percent(result.rate_at_1_percent)} of the members."
    broken = surely > 0.01 + policy.max_excess
    if result.keeps_promise is False:
        told += f" Epsilon is at least {result.epsilon_lower:.2g}, but {result.claim[0]:g} is promised."
        broken = True
    return Judgment(found.sentence + told, holds=found.holds and not broken, decides=broken or found.decides)


def _is_tight(result: Any) -> bool:
    """Return whether the attack is at most a little more often right about people in the data than about others."""
    return result.control_interval is not None and result.interval[1] - result.control_interval[0] <= _UNTOLD


def _between(result: AttackResult) -> str:
    low, high = result.interval
    return f"between {percent(low)} and {percent(high)}"
