"""A policy: who may do what with one object, for what, with which columns and rows. It is a value, and versioned.

A policy belongs to one object. Nothing is allowed that no rule allows, and a rule that denies beats all that allow.
Changing a policy gives a new value with the next version; the JSON form is in `cloister.hub.domain.policy_file`.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from enum import StrEnum
from typing import Any

from cloister.accounting.budget import Budget
from cloister.errors import PolicyError, did_you_mean
from cloister.hub.domain.column_rules import EVERY_COLUMN, ColumnRule, ColumnRules, Use
from cloister.hub.domain.members import AttributeCondition, Member, Members
from cloister.hub.domain.operations import Operation
from cloister.hub.domain.row_predicates import RowPredicate
from cloister.hub.domain.rules import Algorithm, Effect, Environment, Limits, Rule
from cloister.hub.domain.sticky import Terms

__all__ = [
    "Acknowledgement",
    "Algorithm",
    "AttributeCondition",
    "ColumnRule",
    "ColumnRules",
    "Effect",
    "Environment",
    "Limits",
    "Member",
    "Members",
    "Mode",
    "Operation",
    "Policy",
    "PolicyRole",
    "RowPredicate",
    "Rule",
    "Use",
]


class Mode(StrEnum):
    """How answers about the data are protected."""

    DP = "dp"
    SDC = "sdc"
    EXACT = "exact"


@dataclass(frozen=True, slots=True, kw_only=True)
class Acknowledgement:
    """An owner's statement that answers will be exact, with nothing that protects the people in the data."""

    by: str
    at: datetime
    statement: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyRole:
    """A role of one policy: who belongs to it, its rules, and the columns and rows that it shows.

    Attributes:
        name: what the owner calls it.
        members: who belongs to it.
        rules: what its members may and may not do.
        columns: narrows the policy's own rules on columns.
        rows: narrows the policy's own rows.
    """

    name: str
    members: Members = field(default_factory=Members)
    rules: tuple[Rule, ...] = ()
    columns: ColumnRules = EVERY_COLUMN
    rows: RowPredicate | None = None

    def most_for_one(self, operations: Collection[Operation]) -> Budget | None:
        """Return the most that one member may spend on some operations, by the rules; None where no rule limits it."""
        allowing = [rule for rule in self.rules if rule.effect is Effect.ALLOW and rule.operations & set(operations)]
        limits = [rule.limits.user for rule in allowing]
        stated = [limit for limit in limits if limit is not None]
        return max(stated, key=lambda limit: limit.amount) if stated and len(stated) == len(limits) else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """Everything that decides about the use of one object.

    Attributes:
        object_id: the object.
        version: counts the changes, from 1.
        roles: in the order in which they are tried.
        columns: what each column may be used for, in any role.
        rows: which rows may be used, in any role.
        terms: purposes, retention and the like, which what is made from the object inherits.
        discoverable: whether everybody may see that the object exists, with its public description.
        mode: how answers are protected.
        acknowledgement: needed for exact answers.
        two_person: whether two owners have to approve a request for access.
    """

    object_id: str
    version: int = 1
    roles: tuple[PolicyRole, ...] = ()
    columns: ColumnRules = field(default_factory=ColumnRules)
    rows: RowPredicate | None = None
    terms: Terms = field(default_factory=Terms)
    discoverable: bool = False
    mode: Mode = Mode.DP
    acknowledgement: Acknowledgement | None = None
    two_person: bool = False

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

    def changed(self, **changes: Any) -> Policy:  # fields of this class
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
        return self.changed(roles=roles)
