"""Policies in plain words: what operations, uses, rules and members mean to somebody who is no programmer."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import datetime

from cloister.accounting.budget import Budget
from cloister.hub.domain.column_rules import ColumnRule, Use
from cloister.hub.domain.members import Member, Members
from cloister.hub.domain.operations import DATA_OPERATIONS, Operation
from cloister.hub.domain.rules import Effect, Environment, Rule

__all__ = [
    "ASKABLE",
    "OPERATIONS",
    "USES",
    "budget_words",
    "member_words",
    "members_words",
    "moment_words",
    "rule_words",
    "use_words",
]

Namer = Callable[[str], str]

OPERATIONS: dict[Operation, str] = {
    Operation.DISCOVER: "know that the data exists",
    Operation.DESCRIBE: "see what the columns are",
    Operation.QUERY_COUNT: "count rows",
    Operation.QUERY_AGGREGATE: "ask for sums, means and groups",
    Operation.RISK_ASSESS: "assess the risk of a release",
    Operation.RELEASE_ANONYMIZE: "prepare an anonymized release, for the owner to approve",
    Operation.RELEASE_READ: "download approved releases",
    Operation.ML_TRAIN: "train models",
    Operation.ML_PREDICT: "use trained models",
    Operation.SYNTH_GENERATE: "make synthetic data",
    Operation.SYNTH_READ: "download synthetic data",
    Operation.SURVEY_PUBLISH: "publish surveys",
    Operation.ALGO_RUN: "run algorithms of other providers",
    Operation.EXPORT_RESULT: "download results",
    Operation.EXPORT_RAW: "download the raw rows",
    Operation.AUDIT_READ: "read the audit log of the data",
    Operation.REQUEST_DECIDE: "decide on requests",
    Operation.BUDGET_EDIT: "change the budget",
    Operation.POLICY_EDIT: "change who may do what",
    Operation.UPDATE: "change the data",
    Operation.DELETE: "delete the data",
}
"""What each operation lets somebody do."""

USES: dict[Use, str] = {
    Use.VISIBLE: "see that it exists",
    Use.FILTER: "select rows by it",
    Use.GROUP_BY: "group by it",
    Use.MEASURE: "measure it",
}
"""What each use of a column lets somebody do."""

ASKABLE = tuple(item for item in Operation if item in DATA_OPERATIONS and item is not Operation.EXPORT_RAW)
"""Operations that pages offer: those on data, without the download of raw rows, which is for experts."""


def rule_words(rule: Rule) -> str:
    """Return what a rule lets people do, or keeps them from, with its conditions."""
    doing = _listed(OPERATIONS[operation] for operation in Operation if operation in rule.operations)
    parts = [f"{'may' if rule.effect is Effect.ALLOW else 'may never'} {doing}"]
    if rule.algorithms is not None:
        parts.append(f"with {_listed(map(str, rule.algorithms)) or 'no algorithm'} only")
    if rule.purposes is not None:
        parts.append(f"for {rule.purposes}")
    if rule.not_before is not None:
        parts.append(f"from {moment_words(rule.not_before)} on")
    if rule.expires is not None:
        parts.append(f"until {moment_words(rule.expires)}")
    if rule.environment != Environment():
        parts.append(_environment_words(rule.environment))
    whose = {"job": "run", "user": "person", "organisation": "organisation"}
    parts += [f"with at most {budget_words(budget)} per {whose[name]}" for name, budget in rule.limits]
    return ", ".join(parts)


def members_words(members: Members, *, user: Namer, organisation: Namer) -> list[str]:
    """Return who belongs to a role, one line for each entry."""
    lines = ["everybody"] if members.everyone else []
    lines += [member_words(member, user=user) for member in members.users]
    lines += [f"everybody of {organisation(item)}" for item in sorted(members.organisations)]
    for condition in members.attributes:
        wanted = _listed(f"{name} {' or '.join(sorted(values))}" for name, values in condition.allowed)
        lines.append(f"everybody with {wanted}")
    return lines


def member_words(member: Member, *, user: Namer) -> str:
    """Return a person in a role, with the end and the budget that the owner set."""
    parts = [user(member.user_id)]
    if member.until is not None:
        parts.append(f"until {moment_words(member.until)}")
    if member.budget is not None:
        parts.append(f"with {budget_words(member.budget)} in all")
    return ", ".join(parts)


def use_words(rule: ColumnRule) -> str:
    """Return what a column may be used for."""
    return _listed(USES[use] for use in Use if use in rule.uses) or "hidden"


def budget_words(budget: Budget) -> str:
    """Return a budget as people write it."""
    slack = f", delta {float(budget.delta):.3g}" if budget.delta else ""
    return f"{budget.measure} {float(budget.amount):.6g}{slack}"


def moment_words(moment: datetime) -> str:
    """Return a moment to the minute, in UTC."""
    return f"{moment:%Y-%m-%d %H:%M} UTC"


def _environment_words(environment: Environment) -> str:
    parts = []
    if environment.days:
        parts.append(f"on {_listed(sorted(environment.days))}")
    if environment.hours:
        spans = _listed(f"{start:%H:%M} to {end:%H:%M}" for start, end in environment.hours)
        parts.append(f"from {spans} ({environment.timezone})")
    if environment.networks:
        parts.append(f"from the network {' or '.join(sorted(environment.networks))}")
    if environment.highest_risk is not None:
        parts.append(f"with a session risk up to {environment.highest_risk:g}")
    return ", ".join(parts)


def _listed(items: Iterable[str]) -> str:
    *first, last = [*items] or [""]
    return f"{', '.join(first)} and {last}" if first else last
