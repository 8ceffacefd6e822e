"""A policy as JSON (``cloister.policy/1``): read strictly, written so that reading gives the same value back."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from cloister.core.chain import digest
from cloister.errors import PolicyError
from cloister.hub.domain import policy_parts as parts
from cloister.hub.domain.column_rules import EVERY_COLUMN, ColumnRules
from cloister.hub.domain.places import Place
from cloister.hub.domain.policy import Acknowledgement, Mode, Policy, PolicyRole
from cloister.hub.domain.row_predicates import RowPredicate
from cloister.hub.domain.sticky import PolicyMark, Terms

__all__ = ["SCHEMA", "digest_of", "mark_of", "policy_from_dict", "policy_from_json", "policy_to_dict", "sticky_terms"]

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
        values = json.loads(text, object_pairs_hook=_once, parse_constant=_refused)
    except (ValueError, RecursionError):
        raise PolicyError("The policy is not JSON.", fix="write it as JSON, each field once.") from None
    return policy_from_dict(values)


def policy_from_dict(values: object) -> Policy:
    """Return the policy that plain values describe.

    Raises:
        PolicyError: if they are not a policy; the message names the place.
    """
    top = Place(dict(values) if isinstance(values, Mapping) else values)
    fields = top.fields(*_FIELDS, required=("schema", "object"))
    fields["schema"].choice((SCHEMA,))
    version, discoverable, two_person = (fields.get(name) for name in ("version", "discoverable", "two_person"))
    mode, stated, terms, roles = (fields.get(name) for name in ("mode", "acknowledgement", "terms", "roles"))
    return Policy(
        object_id=fields["object"].text(),
        version=1 if version is None else version.whole(at_least=1),
        roles=() if roles is None else tuple(map(_read_role, roles.items())),
        columns=parts.read_columns(fields.get("columns"), fields.get("other_columns")) or ColumnRules(),
        rows=_read_rows(fields.get("rows")),
        terms=Terms() if terms is None else parts.read_terms(terms, Terms()),
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
        "terms": parts.write_terms(policy.terms, Terms()),
        **parts.write_columns(policy.columns),
        "rows": None if policy.rows is None else policy.rows.text,
        "roles": [_write_role(role) for role in policy.roles],
    }


def digest_of(policy: Policy) -> str:
    """Return the SHA-256 of a policy's JSON form, which names this content wherever it is remembered."""
    return digest(policy_to_dict(policy))


def mark_of(policy: Policy) -> PolicyMark:
    """Return the version and digest that derived objects remember."""
    return PolicyMark(object_id=policy.object_id, version=policy.version, digest=digest_of(policy))


def sticky_terms(policy: Policy) -> Terms:
    """Return the terms that what is made from an object inherits, with the mark of the policy that applied."""
    return replace(policy.terms, policies=tuple(sorted({*policy.terms.policies, mark_of(policy)})))


def _read_role(place: Place) -> PolicyRole:
    fields = place.fields(*_ROLE_FIELDS, required=("name",))
    members, rules = fields.get("members"), fields.get("rules")
    return PolicyRole(
        name=fields["name"].text(),
        members=parts.Members() if members is None else parts.read_members(members),
        rules=() if rules is None else tuple(map(parts.read_rule, rules.items())),
        columns=parts.read_columns(fields.get("columns"), fields.get("other_columns")) or EVERY_COLUMN,
        rows=_read_rows(fields.get("rows")),
    )


def _write_role(role: PolicyRole) -> dict[str, Any]:
    columns = {} if role.columns == EVERY_COLUMN else parts.write_columns(role.columns)
    return {
        "name": role.name,
        "members": parts.write_members(role.members),
        "rules": [parts.write_rule(rule) for rule in role.rules],
        **columns,
        **({} if role.rows is None else {"rows": role.rows.text}),
    }


def _read_rows(place: Place | None) -> RowPredicate | None:
    if place is None:
        return None
    try:
        return RowPredicate(place.text())
    except PolicyError as error:
        raise error if error.problem.startswith(place.path) else place.again(error) from None


def _read_acknowledgement(place: Place) -> Acknowledgement:
    names = ("by", "at", "statement")
    fields = place.fields(*names, required=names)
    return Acknowledgement(by=fields["by"].text(), at=fields["at"].moment(), statement=fields["statement"].text())


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    values = dict(pairs)
    if len(values) != len(pairs):
        raise ValueError
    return values


def _refused(_constant: str) -> None:
    raise ValueError
