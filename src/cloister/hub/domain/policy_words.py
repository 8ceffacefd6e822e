"""Policies in plain words, for somebody who is no programmer.

What operations, uses, rules and members mean, and what is different between two versions of a policy, in sentences for
the owner.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import datetime

from cloister.accounting.budget import Budget
from cloister.core.wordings import join_words
from cloister.hub.domain._row_predicates import RowPredicate
from cloister.hub.domain.operations import DATA_OPERATIONS, PolicyOperation
from cloister.hub.domain.policy import (
    ColumnRule,
    ColumnRules,
    Environment,
    Member,
    Members,
    Mode,
    Policy,
    PolicyRole,
    PolicyRule,
    RuleEffect,
    Use,
)
from cloister.hub.domain.terms import UsageTerms

__all__ = [
    "ASKABLE",
    "OPERATIONS",
    "USES",
    "budget_words",
    "describe_changes",
    "member_words",
    "members_words",
    "moment_words",
    "rule_words",
    "use_words",
]


Namer = Callable[[str], str]

OPERATIONS: dict[PolicyOperation, str] = {
    PolicyOperation.DISCOVER: "know that the data exists",
    PolicyOperation.DESCRIBE: "see what the columns are",
    PolicyOperation.QUERY_COUNT: "count rows",
    PolicyOperation.QUERY_AGGREGATE: "ask for sums, means and groups",
    PolicyOperation.RISK_ASSESS: "assess the risk of a release",
    PolicyOperation.RELEASE_ANONYMIZE: "prepare an anonymized release, for the owner to approve",
    PolicyOperation.RELEASE_READ: "download approved releases",
    PolicyOperation.ML_TRAIN: "train models",
    PolicyOperation.ML_PREDICT: "use trained models",
    PolicyOperation.SYNTH_GENERATE: "make synthetic data",
    PolicyOperation.SYNTH_READ: "download synthetic data",
    PolicyOperation.SURVEY_PUBLISH: "publish surveys",
    PolicyOperation.ALGO_RUN: "run algorithms of other providers",
    PolicyOperation.EXPORT_RESULT: "download results",
    PolicyOperation.EXPORT_RAW: "download the raw rows",
    PolicyOperation.AUDIT_READ: "read the audit log of the data",
    PolicyOperation.REQUEST_DECIDE: "decide on requests",
    PolicyOperation.BUDGET_EDIT: "change the budget",
    PolicyOperation.POLICY_EDIT: "change who may do what",
    PolicyOperation.UPDATE: "change the data",
    PolicyOperation.DELETE: "delete the data",
}
"""What each operation lets somebody do."""

USES: dict[Use, str] = {
    Use.VISIBLE: "see that it exists",
    Use.FILTER: "select rows by it",
    Use.GROUP_BY: "group by it",
    Use.MEASURE: "measure it",
}
"""What each use of a column lets somebody do."""

ASKABLE = tuple(item for item in PolicyOperation if item in DATA_OPERATIONS and item is not PolicyOperation.EXPORT_RAW)
"""Operations that pages offer: those on data, without the download of raw rows, which is for experts."""


def rule_words(rule: PolicyRule) -> str:
    """Return what a rule lets people do, or keeps them from, with its conditions."""
    doing = join_words(OPERATIONS[operation] for operation in PolicyOperation if operation in rule.operations)
    parts = [f"{'may' if rule.effect is RuleEffect.ALLOW else 'may never'} {doing}"]
    if rule.algorithms is not None:
        parts.append(f"with {join_words(map(str, rule.algorithms)) or 'no algorithm'} only")
    if rule.purposes is not None:
        parts.append(f"for {rule.purposes}")
    if rule.not_before is not None:
        parts.append(f"from {moment_words(rule.not_before)} on")
    if rule.expires is not None:
        parts.append(f"until {moment_words(rule.expires)}")
    if rule.environment != Environment():
        parts.append(_environment_words(rule.environment))
    whose = {"job": "run", "user": "person", "organisation": "organisation", "purpose": "purpose"}
    parts += [f"with at most {budget_words(budget)} per {whose[name]}" for name, budget in rule.limits]
    return ", ".join(parts)


def members_words(members: Members, *, user: Namer, organisation: Namer) -> list[str]:
    """Return who belongs to a role, one line for each entry."""
    lines = ["everybody"] if members.everyone else []
    lines += [member_words(member, user=user) for member in members.users]
    lines += [f"everybody of {organisation(item)}" for item in sorted(members.organisations)]
    for condition in members.attributes:
        wanted = join_words(f"{name} {' or '.join(sorted(values))}" for name, values in condition.allowed)
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
    return join_words(USES[use] for use in Use if use in rule.uses) or "hidden"


def budget_words(budget: Budget) -> str:
    """Return a budget as people write it."""
    return budget.words


def moment_words(moment: datetime) -> str:
    """Return a moment to the minute, in UTC."""
    return f"{moment:%Y-%m-%d %H:%M} UTC"


def _environment_words(environment: Environment) -> str:
    parts = []
    if environment.days:
        parts.append(f"on {join_words(sorted(environment.days))}")
    if environment.hours:
        spans = join_words(f"{start:%H:%M} to {end:%H:%M}" for start, end in environment.hours)
        parts.append(f"from {spans} ({environment.timezone})")
    if environment.networks:
        parts.append(f"from the network {' or '.join(sorted(environment.networks))}")
    if environment.highest_risk is not None:
        parts.append(f"with a session risk up to {environment.highest_risk:g}")
    return ", ".join(parts)


_MODES = {
    Mode.DP: "with noise (differential privacy)",
    Mode.SDC: "exactly, behind statistical disclosure control",
    Mode.EXACT: "exactly, with nothing that protects the people in the data",
}
_TERMS = {
    "sensitivity": "sensitivity",
    "legal_bases": "legal bases",
    "regions": "regions",
    "retention_days": "retention in days",
    "not_with": "bans on combination",
    "only_with": "what it may be combined with",
    "policies": "policies of the objects it comes from",
}


def _same(identifier: str) -> str:
    return identifier


def describe_changes(
    before: Policy, after: Policy, *, user: Namer = _same, organisation: Namer = _same
) -> tuple[str, ...]:
    """Return one sentence for each difference between two versions of a policy.

    Args:
        before: the earlier version.
        after: the later version.
        user: how an account is called.
        organisation: how an organisation is called.
    """
    return tuple(_iterate_changes(before, after, user, organisation))


def _iterate_changes(before: Policy, after: Policy, user: Namer, organisation: Namer) -> Iterator[str]:
    if before.discoverable != after.discoverable:
        yield "Everybody can find the data now." if after.discoverable else "Only members can find the data now."
    if before.two_person != after.two_person:
        yield f"Requests need {'two owners' if after.two_person else 'one owner'} to approve them."
    if (before.mode, before.acknowledgement) != (after.mode, after.acknowledgement):
        yield f"Answers are given {_MODES[after.mode]}."
    yield from _terms(before.terms, after.terms)
    yield from _rows("", before.rows, after.rows)
    yield from _columns("", before.columns, after.columns)
    old, new = {role.name: role for role in before.roles}, {role.name: role for role in after.roles}
    for name in old:
        if name not in new:
            yield f"The role {name} is gone."
    for name, role in new.items():
        yield from _role(old.get(name), role, user, organisation)
    if [name for name in old if name in new] != [name for name in new if name in old]:
        yield f"The roles are tried in another order: {', '.join(new)}."


def _terms(before: UsageTerms, after: UsageTerms) -> Iterator[str]:
    if before.purposes != after.purposes:
        yield f"The data may be used for {after.purposes} (before: {before.purposes})."
    if before.internal_only != after.internal_only:
        yield f"The data is {'' if after.internal_only else 'no longer '}internal to the owner's organisation."
    for name, words in _TERMS.items():
        if getattr(before, name) != getattr(after, name):
            yield f"The terms have another entry: {words}."


def _role(before: PolicyRole | None, after: PolicyRole, user: Namer, organisation: Namer) -> Iterator[str]:
    where = f"In the role {after.name}: "
    if before is None:
        yield f"The role {after.name} is new."
        before = PolicyRole(name=after.name)
    yield from _members(where, before, after, user, organisation)
    old, new = [rule_words(rule) for rule in before.rules], [rule_words(rule) for rule in after.rules]
    for words in old:
        if words not in new:
            yield f"{where}no longer “{words}”."
    for words in new:
        if words not in old:
            yield f"{where}now “{words}”."
    if before.rules != after.rules and sorted(old) == sorted(new):
        yield f"{where}the rules have another order."
    yield from _rows(where, before.rows, after.rows)
    yield from _columns(where, before.columns, after.columns)


def _members(where: str, before: PolicyRole, after: PolicyRole, user: Namer, organisation: Namer) -> Iterator[str]:
    old = {member.user_id: member for member in before.members.users}
    new = {member.user_id: member for member in after.members.users}
    for identifier, member in new.items():
        if identifier not in old:
            yield f"{where}{member_words(member, user=user)} is in."
        elif old[identifier] != member:
            was = member_words(old[identifier], user=user)
            yield f"{where}{member_words(member, user=user)} (before: {was})."
    for identifier in old:
        if identifier not in new:
            yield f"{where}{user(identifier)} is out."
    earlier, later = (
        members_words(replace(role.members, users=()), user=user, organisation=organisation) for role in (before, after)
    )
    for line in later:
        if line not in earlier:
            yield f"{where}{line} is in."
    for line in earlier:
        if line not in later:
            yield f"{where}{line} is out."


def _rows(where: str, before: RowPredicate | None, after: RowPredicate | None) -> Iterator[str]:
    if before != after:
        yield f"{where}{'all rows count' if after is None else f'only rows with {after.text} count'}."


def _columns(where: str, before: ColumnRules, after: ColumnRules) -> Iterator[str]:
    for name in dict.fromkeys([*dict(before.named), *dict(after.named)]):
        yield from _column(f"{where}column {name}", before.of(name), after.of(name))
    yield from _column(f"{where}columns that are not named", before.others, after.others)


def _column(what: str, before: ColumnRule, after: ColumnRule) -> Iterator[str]:
    if before.uses != after.uses:
        yield f"{what}: {use_words(after)} (before: {use_words(before)})."
    if before.terms != after.terms:
        yield f"{what}: its own terms are different."
