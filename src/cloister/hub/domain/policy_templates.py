"""Policies to begin with."""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction

from cloister.accounting.budget import Budget
from cloister.errors import ParameterError
from cloister.hub.domain.column_rules import ALL_USES, FORBIDDEN, ColumnRule, ColumnRules
from cloister.hub.domain.members import Members
from cloister.hub.domain.operations import expand
from cloister.hub.domain.policy import Policy, PolicyRole
from cloister.hub.domain.purposes import PurposeSet
from cloister.hub.domain.rules import Effect, Limits, Rule
from cloister.hub.domain.sticky import Terms

__all__ = ["TEMPLATES", "from_template", "open_to_organisation", "private_by_default", "research_by_request"]

RESEARCHERS = "researchers"


def private_by_default(object_id: str, *, hidden: Iterable[str] = ()) -> Policy:
    """Return a policy under which nobody but the owner sees anything; the start of every object."""
    return Policy(object_id=object_id, columns=_all_but(hidden))


def research_by_request(object_id: str, *, hidden: Iterable[str] = ()) -> Policy:
    """Return a policy of a listed object, that people may query for research once the owner has let them in."""
    rule = Rule(
        effect=Effect.ALLOW,
        operations=expand("query.*", named_only=True),
        limits=Limits(user=Budget(epsilon=Fraction(1)), organisation=Budget(epsilon=Fraction(2))),
    )
    return Policy(
        object_id=object_id,
        discoverable=True,
        columns=_all_but(hidden),
        terms=Terms(purposes=PurposeSet.of("research")),
        roles=(PolicyRole(name=RESEARCHERS, rules=(rule,)),),
    )


def open_to_organisation(object_id: str, *, organisation: str, hidden: Iterable[str] = ()) -> Policy:
    """Return a policy under which an organisation may query, and nobody else sees the object."""
    rule = Rule(
        effect=Effect.ALLOW,
        operations=expand("query.*", named_only=True),
        limits=Limits(user=Budget(epsilon=Fraction(1))),
    )
    return Policy(
        object_id=object_id,
        columns=_all_but(hidden),
        terms=Terms(purposes=PurposeSet.of("research", "teaching", "quality"), internal_only=True),
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
