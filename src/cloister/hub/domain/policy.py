"""A policy: who may do what with one object, for what, with which columns and rows. It is a value, and versioned.

A policy belongs to one object. Nothing is allowed that no rule allows, and a rule that denies beats all that allow.
Changing a policy gives a new value with the next version. Its JSON form (``cloister.policy/1``) has the fields of these
classes; `cloister.hub.domain.policy_file` reads and writes whole files.

Its parts can be had from here too: the members of a role (`members`), rules on columns (`column_rules`), and the rules
of a role (`policy_rules`).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Annotated, Any, ClassVar

from cloister.accounting.budget import Budget
from cloister.errors import PolicyError, did_you_mean
from cloister.hub.domain._row_predicates import RowPredicate
from cloister.hub.domain.column_rules import (
    ALL_USES,
    EVERY_COLUMN,
    FORBIDDEN,
    NO_COLUMN,
    ColumnRule,
    ColumnRules,
    Use,
)
from cloister.hub.domain.documents import Document, Moment, Several, Text, Truth, choice, whole
from cloister.hub.domain.members import AttributeCondition, Member, Members
from cloister.hub.domain.operations import PolicyOperation
from cloister.hub.domain.policy_fields import Rows
from cloister.hub.domain.policy_rules import (
    AlgorithmReference,
    BudgetLimits,
    Environment,
    PolicyRule,
    RuleEffect,
    stricter_budget,
)
from cloister.hub.domain.terms import ObjectTerms, UsageTerms

__all__ = [
    "ALL_USES",
    "EVERY_COLUMN",
    "FORBIDDEN",
    "NO_COLUMN",
    "Acknowledgement",
    "AlgorithmReference",
    "AttributeCondition",
    "BudgetLimits",
    "ColumnRule",
    "ColumnRules",
    "Environment",
    "Member",
    "Members",
    "Mode",
    "Policy",
    "PolicyOperation",
    "PolicyRole",
    "PolicyRule",
    "RowPredicate",
    "RuleEffect",
    "Use",
    "stricter_budget",
]


class Mode(StrEnum):
    """How answers about the data are protected."""

    DP = "dp"
    SDC = "sdc"
    EXACT = "exact"


@dataclass(frozen=True, slots=True, kw_only=True)
class Acknowledgement(Document):
    """An owner's statement that answers will be exact, with nothing that protects the people in the data."""

    by: Text
    at: Moment
    statement: Text


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyRole(Document):
    """A role of one policy: who belongs to it, its rules, and the columns and rows that it shows.

    Attributes:
        name: what the owner calls it.
        members: who belongs to it.
        rules: what its members may and may not do.
        columns: narrows the policy's own rules on columns.
        rows: narrows the policy's own rows.
    """

    left_out: ClassVar = ("columns", "rows")
    inlined: ClassVar = {"columns": ColumnRules}

    name: Text
    members: Members = field(default_factory=Members)
    rules: Several[PolicyRule] = ()
    columns: ColumnRules = EVERY_COLUMN
    rows: Rows | None = None

    def most_for_one(self, operations: Collection[PolicyOperation]) -> Budget | None:
        """Return the most that one member may spend on some operations, by the rules; None where no rule limits it."""
        allowing = [
            rule for rule in self.rules if rule.effect is RuleEffect.ALLOW and rule.operations & set(operations)
        ]
        limits = [rule.limits.user for rule in allowing]
        stated = [limit for limit in limits if limit is not None]
        # A single rule without a limit leaves no limit at all.
        return max(stated, key=lambda limit: limit.amount) if stated and len(stated) == len(limits) else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy(Document):
    """Everything that decides about the use of one object.

    Attributes:
        object_id: the object.
        version: counts the changes, from 1.
        discoverable: whether everybody may see that the object exists, with its public description.
        mode: how answers are protected.
        acknowledgement: needed for exact answers.
        two_person: whether two owners have to approve a request for access.
        terms: purposes, retention and the like, which what is made from the object inherits.
        columns: what each column may be used for, in any role.
        rows: which rows may be used, in any role.
        roles: in the order in which they are tried.
    """

    schema_marker: ClassVar = "cloister.policy/1"
    free_names: ClassVar = ("columns", "attributes")
    aliases: ClassVar = {"object_id": "object"}
    inlined: ClassVar = {"columns": ColumnRules}

    object_id: Text
    version: Annotated[int, whole(1)] = 1
    discoverable: Truth = False
    mode: Annotated[Mode, choice(Mode)] = Mode.DP
    acknowledgement: Acknowledgement | None = None
    two_person: Truth = False
    terms: ObjectTerms = field(default_factory=UsageTerms)
    columns: ColumnRules = field(default_factory=ColumnRules)
    rows: Rows | None = None
    roles: Several[PolicyRole] = ()

    def __post_init__(self) -> None:
        names = [role.name for role in self.roles]
        repeated = next((name for name in names if names.count(name) > 1), None)
        if repeated is not None:
            raise PolicyError(f'The role "{repeated}" is there twice.', fix="give every role its own name.")
        if self.version < 1:
            raise PolicyError("The version is below 1.", fix="count versions from 1.")
        if (self.mode is Mode.EXACT) != (self.acknowledgement is not None):
            raise PolicyError(
                "Exact answers and the owner's acknowledgement of them go together.",
                fix='write mode "dp", or mode "exact" with an acknowledgement (by, at, statement).',
            )

    def role(self, name: str) -> PolicyRole:
        """Return a role by its name.

        Raises:
            PolicyError: if there is none.
        """
        for role in self.roles:
            if role.name == name:
                return role
        names = [role.name for role in self.roles]
        raise PolicyError(
            f'The policy has no role "{name}".{did_you_mean(name, names)}',
            fix=f"use one of its roles: {', '.join(names)}." if names else "add a role to the policy first.",
        )

    def next_version(self, **changes: Any) -> Policy:  # fields of this class
        """Return the next version, with some fields changed."""
        return replace(self, **{**changes, "version": self.version + 1})

    def with_member(self, role: str, member: Member) -> Policy:
        """Return the next version, with a person in a role; an entry for the same person is replaced."""
        found = self.role(role)
        others = tuple(user for user in found.members.users if user.user_id != member.user_id)
        return self._with_users({role: (*others, member)})

    def without_member(self, role: str, user_id: str) -> Policy:
        """Return the next version, with a person no longer named in a role."""
        found = self.role(role)
        return self._with_users({role: tuple(user for user in found.members.users if user.user_id != user_id)})

    def _with_users(self, users: Mapping[str, tuple[Member, ...]]) -> Policy:
        roles = tuple(
            replace(role, members=replace(role.members, users=users[role.name])) if role.name in users else role
            for role in self.roles
        )
        return self.next_version(roles=roles)
