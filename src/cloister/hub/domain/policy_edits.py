"""How an owner comes to a policy: templates to begin with, and small changes as a form makes them.

A change does not touch what the form does not show.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

from cloister.accounting.budget import Budget
from cloister.errors import ParameterError, PolicyError
from cloister.hub.domain._row_predicates import RowPredicate
from cloister.hub.domain.operations import NAMED_ONLY, PolicyOperation, expand
from cloister.hub.domain.policy import (
    ALL_USES,
    FORBIDDEN,
    BudgetLimits,
    ColumnRule,
    ColumnRules,
    Members,
    Policy,
    PolicyRole,
    PolicyRule,
    RuleEffect,
    Use,
)
from cloister.hub.domain.terms import PurposeSet, UsageTerms

__all__ = [
    "TEMPLATES",
    "RoleEdit",
    "edit_policy",
    "from_template",
    "is_simple",
    "open_to_organisation",
    "private_by_default",
    "research_by_request",
]


RESEARCHERS = "researchers"


def private_by_default(object_id: str, *, hidden: Iterable[str] = ()) -> Policy:
    """Return a policy under which nobody but the owner sees anything; the start of every object."""
    return Policy(object_id=object_id, columns=_all_but(hidden))


def research_by_request(object_id: str, *, hidden: Iterable[str] = ()) -> Policy:
    """Return a policy of a listed object, that people may query for research once the owner has let them in."""
    rule = PolicyRule(
        effect=RuleEffect.ALLOW,
        operations=expand("query.*", named_only=True),
        limits=BudgetLimits(user=Budget(epsilon=Fraction(1)), organisation=Budget(epsilon=Fraction(2))),
    )
    return Policy(
        object_id=object_id,
        discoverable=True,
        columns=_all_but(hidden),
        terms=UsageTerms(purposes=PurposeSet.of("research")),
        roles=(PolicyRole(name=RESEARCHERS, rules=(rule,)),),
    )


def open_to_organisation(object_id: str, *, organisation: str, hidden: Iterable[str] = ()) -> Policy:
    """Return a policy under which an organisation may query, and nobody else sees the object."""
    rule = PolicyRule(
        effect=RuleEffect.ALLOW,
        operations=expand("query.*", named_only=True),
        limits=BudgetLimits(user=Budget(epsilon=Fraction(1))),
    )
    return Policy(
        object_id=object_id,
        columns=_all_but(hidden),
        terms=UsageTerms(purposes=PurposeSet.of("research", "teaching", "quality"), internal_only=True),
        roles=(PolicyRole(name="colleagues", members=Members(organisations=frozenset({organisation})), rules=(rule,)),),
    )


TEMPLATES = {"private by default": private_by_default, "research by request": research_by_request}
"""Templates that need nothing but the object, by what an owner calls them."""


def from_template(name: str, object_id: str, *, hidden: Iterable[str] = ()) -> Policy:
    """Return a new policy from a template.

    Args:
        name: one of `TEMPLATES`.
        object_id: the object.
        hidden: columns that nobody sees, such as identifiers.
    """
    if name not in TEMPLATES:
        raise ParameterError("There is no such template.", fix=f"use one of {', '.join(TEMPLATES)}.")
    return TEMPLATES[name](object_id, hidden=hidden)


def _all_but(hidden: Iterable[str]) -> ColumnRules:
    return ColumnRules(
        named=tuple((name, FORBIDDEN) for name in dict.fromkeys(hidden)), others=ColumnRule(uses=ALL_USES)
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class RoleEdit:
    """What a form says about one role; None leaves a part as it is.

    Attributes:
        name: the role; a new one if there is none of this name.
        operations: what its members may do.
        limits: how much they may spend.
        rows: the condition on rows; an empty text is none.
        remove: whether the role is to go.
    """

    name: str
    operations: Collection[PolicyOperation] | None = None
    limits: BudgetLimits | None = None
    rows: str | None = None
    remove: bool = False


def is_simple(role: PolicyRole) -> bool:
    """Return whether a form can show all rules of a role: at most one, that allows."""
    return not role.rules or (len(role.rules) == 1 and role.rules[0].effect is RuleEffect.ALLOW)


def edit_policy(
    policy: Policy,
    *,
    discoverable: bool | None = None,
    two_person: bool | None = None,
    purposes: Collection[str] | None = None,
    rows: str | None = None,
    columns: Mapping[str, Collection[Use]] | None = None,
    other_columns: Collection[Use] | None = None,
    roles: Collection[RoleEdit] = (),
) -> Policy:
    """Return the next version of a policy with some parts changed; what is None stays as it is.

    Raises:
        PolicyError: if a part is malformed, or a role has rules that a form cannot show.
    """
    changed: dict[str, Any] = {}
    if discoverable is not None:
        changed["discoverable"] = discoverable
    if two_person is not None:
        changed["two_person"] = two_person
    if purposes is not None:
        changed["terms"] = replace(policy.terms, purposes=PurposeSet(tuple(purposes)))
    if rows is not None:
        changed["rows"] = _rows(rows)
    if columns is not None or other_columns is not None:
        changed["columns"] = _columns(policy.columns, columns or {}, other_columns)
    if roles:
        changed["roles"] = _roles(policy.roles, roles)
    return policy.next_version(**changed)


def _rows(text: str) -> RowPredicate | None:
    return RowPredicate(text.strip()) if text.strip() else None


def _columns(rules: ColumnRules, uses: Mapping[str, Collection[Use]], others: Collection[Use] | None) -> ColumnRules:
    named = dict(rules.named)
    for name, wanted in uses.items():
        named[name] = replace(rules.of(name), uses=frozenset(wanted))
    return ColumnRules(
        named=tuple(named.items()),
        others=rules.others if others is None else ColumnRule(uses=frozenset(others), terms=rules.others.terms),
    )


def _roles(roles: tuple[PolicyRole, ...], edits: Collection[RoleEdit]) -> tuple[PolicyRole, ...]:
    found = {role.name: role for role in roles}
    for edit in edits:
        if edit.remove:
            found.pop(edit.name, None)
        else:
            found[edit.name] = _role(found.get(edit.name, PolicyRole(name=edit.name)), edit)
    return tuple(found.values())


def _role(role: PolicyRole, edit: RoleEdit) -> PolicyRole:
    changed = role
    if edit.rows is not None:
        changed = replace(changed, rows=_rows(edit.rows))
    if edit.operations is None and edit.limits is None:
        return changed
    if not is_simple(role):
        raise PolicyError(
            f'The role "{role.name}" has several rules, or rules that deny.',
            fix="change them in the JSON of the policy.",
        )
    rule = role.rules[0] if role.rules else PolicyRule(effect=RuleEffect.ALLOW, operations=frozenset())
    if edit.operations is not None:
        rule = replace(rule, operations=_operations(rule, edit))
    if edit.limits is not None:
        # Forms do not show the limit of a purpose, and must not drop it.
        rule = replace(rule, limits=replace(edit.limits, purpose=edit.limits.purpose or rule.limits.purpose))
    return replace(changed, rules=(rule,) if rule.operations else ())


def _operations(rule: PolicyRule, edit: RoleEdit) -> frozenset[PolicyOperation]:
    """Return the operations of a form, with those that it does not show as they were."""
    wanted = frozenset(edit.operations or ())
    governing = wanted & NAMED_ONLY - rule.operations
    if governing:
        raise PolicyError(
            f"{min(governing)} is not given by a form.", fix="name it in the JSON of the policy if it is meant."
        )
    return wanted | (rule.operations & NAMED_ONLY)
