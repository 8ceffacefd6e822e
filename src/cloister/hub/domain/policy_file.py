"""A policy as JSON (``cloister.policy/1``): read strictly, written so that reading gives the same value back.

First its parts (members, rules, columns and terms), then the whole.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import datetime, time
from fractions import Fraction
from typing import Any
from zoneinfo import ZoneInfo

from cloister.accounting.budget import Budget
from cloister.core import exact
from cloister.core.digests import chain_digest
from cloister.errors import CloisterError, PolicyError
from cloister.hub.domain._row_predicates import RowPredicate
from cloister.hub.domain.json_places import JsonPlace
from cloister.hub.domain.operations import PolicyOperation, expand
from cloister.hub.domain.policy import (
    DAYS,
    EVERY_COLUMN,
    FORBIDDEN,
    Acknowledgement,
    AlgorithmReference,
    AttributeCondition,
    BudgetLimits,
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
from cloister.hub.domain.terms import NEUTRAL, DataSensitivity, PolicyMark, PurposeSet, UsageTerms

__all__ = [
    "SCHEMA",
    "Members",
    "digest_of",
    "mark_of",
    "policy_from_dict",
    "policy_from_json",
    "policy_to_dict",
    "read_algorithm",
    "read_columns",
    "read_members",
    "read_rule",
    "read_terms",
    "sticky_terms",
    "write_columns",
    "write_members",
    "write_rule",
    "write_terms",
]


_ALGORITHM = re.compile(r"(?P<name>[\w.-]+)(@(?P<version>[\w.+-]+)(#(?P<digest>[0-9a-f]{64}))?)?")
_CLOCK = re.compile(r"([01][0-9]|2[0-3]):[0-5][0-9]")
_FORBIDDEN = "forbidden"
_TERMS = (
    "purposes",
    "sensitivity",
    "legal_bases",
    "regions",
    "retention_days",
    "not_with",
    "only_with",
    "internal_only",
    "policies",
)


# Members -------------------------------------------------------------------------------------------------------------


def read_members(place: JsonPlace) -> Members:
    """Return who belongs to a role."""
    fields = place.fields("users", "organisations", "attributes", "everyone")
    users, organisations, attributes, everyone = (
        fields.get(name) for name in ("users", "organisations", "attributes", "everyone")
    )
    members = () if users is None else tuple(map(_read_member, users.items()))
    names = [member.user_id for member in members]
    repeated = next((name for name in names if names.count(name) > 1), None)
    if users is not None and repeated is not None:
        raise users.wrong(f'"{repeated}" is there twice.', fix="name each person once in a role.")
    return Members(
        users=members,
        organisations=frozenset() if organisations is None else organisations.texts(),
        attributes=() if attributes is None else tuple(map(_read_condition, attributes.items())),
        everyone=everyone is not None and everyone.truth(),
    )


def write_members(members: Members) -> dict[str, Any]:
    """Return who belongs to a role as plain values."""
    values: dict[str, Any] = {
        "users": [_write_member(member) for member in members.users],
        "organisations": sorted(members.organisations),
        "attributes": [
            {name: sorted(allowed) for name, allowed in condition.allowed} for condition in members.attributes
        ],
        "everyone": members.everyone,
    }
    return {name: value for name, value in values.items() if value}


def _read_member(place: JsonPlace) -> Member:
    if isinstance(place.value, str):
        return Member(user_id=place.text())
    fields = place.fields("user", "until", "budget", required=("user",))
    until, budget = fields.get("until"), fields.get("budget")
    return Member(
        user_id=fields["user"].text(),
        until=None if until is None else until.moment(),
        budget=None if budget is None else _read_budget(budget),
    )


def _write_member(member: Member) -> str | dict[str, Any]:
    values = {
        "user": member.user_id,
        "until": _moment(member.until),
        "budget": None if member.budget is None else _write_budget(member.budget),
    }
    kept = {name: value for name, value in values.items() if value is not None}
    return member.user_id if len(kept) == 1 else kept


def _read_condition(place: JsonPlace) -> AttributeCondition:
    allowed = tuple((name, values.texts()) for name, values in place.entries())
    if not allowed or not all(values for _, values in allowed):
        raise place.wrong(
            "a condition without an attribute and its values would mean nobody or everybody.",
            fix='write for example {"department": ["cardiology"]}, or "everyone": true.',
        )
    return AttributeCondition(tuple(sorted(allowed)))


# Rules ---------------------------------------------------------------------------------------------------------------


def read_rule(place: JsonPlace) -> PolicyRule:
    """Return one rule of a role."""
    fields = place.fields(
        "effect",
        "operations",
        "algorithms",
        "purposes",
        "not_before",
        "expires",
        "environment",
        "limits",
        required=("effect", "operations"),
    )
    effect = RuleEffect(fields["effect"].choice([str(item) for item in RuleEffect]))
    algorithms, purposes, start, end, environment, limits = (
        fields.get(name) for name in ("algorithms", "purposes", "not_before", "expires", "environment", "limits")
    )
    if effect is RuleEffect.DENY and limits is not None:
        raise limits.wrong("a rule that denies has no limits.", fix="leave out the limits.")
    return PolicyRule(
        effect=effect,
        operations=_read_operations(fields["operations"], effect),
        algorithms=None if algorithms is None else tuple(read_algorithm(item) for item in algorithms.items()),
        purposes=None if purposes is None else _read_purposes(purposes),
        not_before=None if start is None else start.moment(),
        expires=None if end is None else end.moment(),
        environment=Environment() if environment is None else _read_environment(environment),
        limits=BudgetLimits() if limits is None else _read_limits(limits),
    )


def write_rule(rule: PolicyRule) -> dict[str, Any]:
    """Return a rule as plain values; wildcards are written out."""
    values: dict[str, Any] = {
        "effect": str(rule.effect),
        "operations": [str(operation) for operation in PolicyOperation if operation in rule.operations],
        "algorithms": None if rule.algorithms is None else [str(item) for item in rule.algorithms],
        "purposes": None if rule.purposes is None else list(rule.purposes.names),
        "not_before": _moment(rule.not_before),
        "expires": _moment(rule.expires),
        "environment": None if rule.environment == Environment() else _write_environment(rule.environment),
        "limits": {name: _write_budget(budget) for name, budget in rule.limits} or None,
    }
    return {name: value for name, value in values.items() if value is not None}


def _read_operations(place: JsonPlace, effect: RuleEffect) -> frozenset[PolicyOperation]:
    operations: set[PolicyOperation] = set()
    for item in place.items():
        found = expand(item.text(), named_only=effect is RuleEffect.ALLOW)
        if not found:
            item.choice([str(operation) for operation in PolicyOperation])
        operations |= found
    if not operations:
        raise place.wrong("a rule without operations does nothing.", fix='name some, such as ["query.*"].')
    return frozenset(operations)


def read_algorithm(place: JsonPlace) -> AlgorithmReference:
    """Return an algorithm from its text."""
    match = _ALGORITHM.fullmatch(place.text())
    if match is None:
        raise place.wrong(
            "this is not an algorithm.", fix='write "name@version", or "name@version#" and its SHA-256 in hexadecimal.'
        )
    return AlgorithmReference(match["name"], match["version"], match["digest"])


def _read_environment(place: JsonPlace) -> Environment:
    fields = place.fields("hours", "days", "timezone", "networks", "highest_risk")
    hours, days, zone, networks, risk = (
        fields.get(name) for name in ("hours", "days", "timezone", "networks", "highest_risk")
    )
    return Environment(
        hours=() if hours is None else tuple(map(_read_span, hours.items())),
        days=frozenset() if days is None else frozenset(day.choice(DAYS) for day in days.items()),
        timezone="UTC" if zone is None else _read_zone(zone),
        networks=frozenset() if networks is None else networks.texts(),
        highest_risk=None if risk is None else _read_risk(risk),
    )


def _write_environment(environment: Environment) -> dict[str, Any]:
    values: dict[str, Any] = {
        "hours": [f"{start:%H:%M}-{end:%H:%M}" for start, end in environment.hours] or None,
        "days": [day for day in DAYS if day in environment.days] or None,
        "timezone": environment.timezone,
        "networks": sorted(environment.networks) or None,
        "highest_risk": environment.highest_risk,
    }
    return {name: value for name, value in values.items() if value is not None}


def _read_span(place: JsonPlace) -> tuple[time, time]:
    start, dash, end = place.text().partition("-")
    if not dash or not _CLOCK.fullmatch(start) or not _CLOCK.fullmatch(end) or start == end:
        raise place.wrong("this is not a span of hours.", fix='write for example "08:00-18:00".')
    return time.fromisoformat(start), time.fromisoformat(end)


def _read_zone(place: JsonPlace) -> str:
    name = place.text()
    try:
        ZoneInfo(name)
    except (ValueError, OSError, KeyError):
        raise place.wrong("this is not a time zone.", fix='write for example "Europe/Berlin", or "UTC".') from None
    return name


def _read_risk(place: JsonPlace) -> float:
    if isinstance(place.value, bool) or not isinstance(place.value, int | float) or place.value < 0:
        raise place.wrong("this is not a risk score.", fix="write a number from 0 on.")
    return float(place.value)


def _read_limits(place: JsonPlace) -> BudgetLimits:
    names = ("job", "user", "organisation", "purpose")
    fields = place.fields(*names)
    given = {name: fields.get(name) for name in names}
    return BudgetLimits(**{name: None if item is None else _read_budget(item) for name, item in given.items()})


def _read_budget(place: JsonPlace) -> Budget:
    fields = place.fields("epsilon", "delta", required=("epsilon",))
    delta = fields.get("delta")
    try:
        return Budget(epsilon=fields["epsilon"].value, delta=Fraction(0) if delta is None else delta.value)
    except CloisterError as error:
        raise place.again(error) from None


def _write_budget(budget: Budget) -> dict[str, str]:
    return {"epsilon": exact.text(budget.amount), **({"delta": exact.text(budget.delta)} if budget.delta else {})}


# Columns and terms ---------------------------------------------------------------------------------------------------


def read_columns(columns: JsonPlace | None, others: JsonPlace | None) -> ColumnRules | None:
    """Return the rules on columns; None where nothing is stated."""
    if columns is None and others is None:
        return None
    named = () if columns is None else tuple((name, _read_column(item)) for name, item in columns.entries())
    return ColumnRules(named=named, others=FORBIDDEN if others is None else _read_column(others))


def write_columns(rules: ColumnRules) -> dict[str, Any]:
    """Return the rules on columns as plain values."""
    return {
        "columns": {name: _write_column(rule) for name, rule in rules.named},
        "other_columns": _write_column(rules.others),
    }


def _read_column(place: JsonPlace) -> ColumnRule:
    if place.value == _FORBIDDEN:
        return FORBIDDEN
    if isinstance(place.value, list):
        return ColumnRule(uses=_read_uses(place))
    if not isinstance(place.value, dict):
        raise place.wrong(
            "this does not say what the column may be used for.",
            fix=f'write "{_FORBIDDEN}", or a list of {", ".join(Use)}.',
        )
    fields = place.fields("uses", "terms", required=("uses",))
    terms = fields.get("terms")
    return ColumnRule(
        uses=frozenset() if fields["uses"].value == _FORBIDDEN else _read_uses(fields["uses"]),
        terms=NEUTRAL if terms is None else read_terms(terms, NEUTRAL),
    )


def _read_uses(place: JsonPlace) -> frozenset[Use]:
    uses = frozenset(Use(item.choice([str(use) for use in Use])) for item in place.items())
    if not uses:
        raise place.wrong("the column has no use.", fix=f'write "{_FORBIDDEN}" to hide it.')
    return uses


def _write_column(rule: ColumnRule) -> Any:
    uses = [str(use) for use in Use if use in rule.uses] or _FORBIDDEN
    return uses if rule.terms == NEUTRAL else {"uses": uses, "terms": write_terms(rule.terms, NEUTRAL)}


def read_terms(place: JsonPlace, default: UsageTerms) -> UsageTerms:
    """Return the terms of an object or a column; what is not stated is as in a default."""
    fields = place.fields(*_TERMS)
    given = {name: fields.get(name) for name in _TERMS}
    readers: dict[str, Callable[[JsonPlace], Any]] = {
        "purposes": _read_purposes,
        "sensitivity": lambda item: DataSensitivity[item.choice([level.label for level in DataSensitivity]).upper()],
        "legal_bases": JsonPlace.texts,
        "regions": JsonPlace.texts,
        "retention_days": lambda item: item.whole(at_least=0),
        "not_with": JsonPlace.texts,
        "only_with": JsonPlace.texts,
        "internal_only": JsonPlace.truth,
        "policies": lambda item: tuple(sorted(map(_read_mark, item.items()))),
    }
    read = {name: readers[name](item) for name, item in given.items() if item is not None}
    return UsageTerms(**{**{name: getattr(default, name) for name in _TERMS}, **read})


def write_terms(terms: UsageTerms, default: UsageTerms) -> dict[str, Any]:
    """Return terms as plain values, without those that are as in a default."""
    values: dict[str, Any] = {
        "purposes": list(terms.purposes.names),
        "sensitivity": terms.sensitivity.label,
        "legal_bases": sorted(terms.legal_bases),
        "regions": None if terms.regions is None else sorted(terms.regions),
        "retention_days": terms.retention_days,
        "not_with": sorted(terms.not_with),
        "only_with": None if terms.only_with is None else sorted(terms.only_with),
        "internal_only": terms.internal_only,
        "policies": [
            {"object": mark.object_id, "version": mark.version, "digest": mark.digest} for mark in terms.policies
        ],
    }
    return {name: value for name, value in values.items() if getattr(terms, name) != getattr(default, name)}


def _read_purposes(place: JsonPlace) -> PurposeSet:
    try:
        return PurposeSet(tuple(place.texts()))
    except CloisterError as error:
        raise place.again(error) from None


def _read_mark(place: JsonPlace) -> PolicyMark:
    names = ("object", "version", "digest")
    fields = place.fields(*names, required=names)
    return PolicyMark(
        object_id=fields["object"].text(),
        version=fields["version"].whole(at_least=1),
        digest=fields["digest"].text(),
    )


def _moment(value: datetime | None) -> str | None:
    return None if value is None else value.isoformat()


SCHEMA = "cloister.policy/1"
_FIELDS = (
    "schema",
    "object",
    "version",
    "discoverable",
    "mode",
    "acknowledgement",
    "two_person",
    "terms",
    "columns",
    "other_columns",
    "rows",
    "roles",
)
_ROLE_FIELDS = ("name", "members", "rules", "columns", "other_columns", "rows")


def policy_from_json(text: str) -> Policy:
    """Return the policy that a JSON text holds.

    Raises:
        PolicyError: if it is not a policy; the message names the place.
    """
    try:
        values = json.loads(text, object_pairs_hook=_once, parse_constant=_refuse_constant)
    except (ValueError, RecursionError):
        raise PolicyError("The policy is not JSON.", fix="write it as JSON, each field once.") from None
    return policy_from_dict(values)


def policy_from_dict(values: object) -> Policy:
    """Return the policy that plain values describe.

    Raises:
        PolicyError: if they are not a policy; the message names the place.
    """
    top = JsonPlace(dict(values) if isinstance(values, Mapping) else values)
    fields = top.fields(*_FIELDS, required=("schema", "object"))
    fields["schema"].choice((SCHEMA,))
    version, discoverable, two_person = (fields.get(name) for name in ("version", "discoverable", "two_person"))
    mode, stated, terms, roles = (fields.get(name) for name in ("mode", "acknowledgement", "terms", "roles"))
    return Policy(
        object_id=fields["object"].text(),
        version=1 if version is None else version.whole(at_least=1),
        roles=() if roles is None else tuple(map(_read_role, roles.items())),
        columns=read_columns(fields.get("columns"), fields.get("other_columns")) or ColumnRules(),
        rows=_read_rows(fields.get("rows")),
        terms=UsageTerms() if terms is None else read_terms(terms, UsageTerms()),
        discoverable=discoverable is not None and discoverable.truth(),
        mode=Mode.DP if mode is None else Mode(mode.choice([str(item) for item in Mode])),
        acknowledgement=None if stated is None else _read_acknowledgement(stated),
        two_person=two_person is not None and two_person.truth(),
    )


def policy_to_dict(policy: Policy) -> dict[str, Any]:
    """Return a policy as JSON-ready values that `policy_from_dict` gives back equal."""
    stated = policy.acknowledgement
    return {
        "schema": SCHEMA,
        "object": policy.object_id,
        "version": policy.version,
        "discoverable": policy.discoverable,
        "mode": str(policy.mode),
        "acknowledgement": None
        if stated is None
        else {"by": stated.by, "at": stated.at.isoformat(), "statement": stated.statement},
        "two_person": policy.two_person,
        "terms": write_terms(policy.terms, UsageTerms()),
        **write_columns(policy.columns),
        "rows": None if policy.rows is None else policy.rows.text,
        "roles": [_write_role(role) for role in policy.roles],
    }


def digest_of(policy: Policy) -> str:
    """Return the SHA-256 of a policy's JSON form, which names this content wherever it is remembered."""
    return chain_digest(policy_to_dict(policy))


def mark_of(policy: Policy) -> PolicyMark:
    """Return the version and digest that derived objects remember."""
    return PolicyMark(object_id=policy.object_id, version=policy.version, digest=digest_of(policy))


def sticky_terms(policy: Policy) -> UsageTerms:
    """Return the terms that what is made from an object inherits, with the mark of the policy that applied."""
    return replace(policy.terms, policies=tuple(sorted({*policy.terms.policies, mark_of(policy)})))


def _read_role(place: JsonPlace) -> PolicyRole:
    fields = place.fields(*_ROLE_FIELDS, required=("name",))
    members, rules = fields.get("members"), fields.get("rules")
    return PolicyRole(
        name=fields["name"].text(),
        members=Members() if members is None else read_members(members),
        rules=() if rules is None else tuple(map(read_rule, rules.items())),
        columns=read_columns(fields.get("columns"), fields.get("other_columns")) or EVERY_COLUMN,
        rows=_read_rows(fields.get("rows")),
    )


def _write_role(role: PolicyRole) -> dict[str, Any]:
    columns = {} if role.columns == EVERY_COLUMN else write_columns(role.columns)
    return {
        "name": role.name,
        "members": write_members(role.members),
        "rules": [write_rule(rule) for rule in role.rules],
        **columns,
        **({} if role.rows is None else {"rows": role.rows.text}),
    }


def _read_rows(place: JsonPlace | None) -> RowPredicate | None:
    if place is None:
        return None
    try:
        return RowPredicate(place.text())
    except PolicyError as error:
        raise error if error.problem.startswith(place.path) else place.again(error) from None


def _read_acknowledgement(place: JsonPlace) -> Acknowledgement:
    names = ("by", "at", "statement")
    fields = place.fields(*names, required=names)
    return Acknowledgement(by=fields["by"].text(), at=fields["at"].moment(), statement=fields["statement"].text())


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    values = dict(pairs)
    if len(values) != len(pairs):
        raise ValueError
    return values


def _refuse_constant(_constant: str) -> None:
    raise ValueError
