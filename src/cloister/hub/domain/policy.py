"""A policy: who may do what with one object, for what, with which columns and rows. It is a value, and versioned.

A policy belongs to one object. Nothing is allowed that no rule allows, and a rule that denies beats all that allow.
Changing a policy gives a new value with the next version; the JSON form is in `cloister.hub.domain.policy_file`.

Its parts: the members of a role (people by name, organisations, people with certain attributes, or everybody); rules on
columns (which are shown, and what each may be used for); and the rules of a role (which operations, with which
algorithms, for what, when, from where and for how much).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, time
from enum import StrEnum
from typing import Any
from zoneinfo import ZoneInfo

from cloister.accounting.budget import Budget
from cloister.errors import PolicyError, did_you_mean
from cloister.hub.domain._row_predicates import RowPredicate
from cloister.hub.domain.operations import PolicyOperation
from cloister.hub.domain.roles import AccessSubject
from cloister.hub.domain.terms import NEUTRAL, PurposeSet, UsageTerms, inherit

__all__ = [
    "ALL_USES",
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Member:
    """A person in a role, for a time and with a budget of their own where the owner said so.

    The budget binds the person as long as the entry stands, also when its time is over and they belong to the role in
    another way: the end of something given never gives more.
    """

    user_id: str
    until: datetime | None = None
    budget: Budget | None = None


@dataclass(frozen=True, slots=True)
class AttributeCondition:
    """Attributes that a person must all have, each with one of some values."""

    allowed: tuple[tuple[str, frozenset[str]], ...]

    def holds(self, subject: AccessSubject) -> bool:
        """Return whether a person has all of the attributes."""
        return bool(self.allowed) and all(subject.attributes.get(name) in values for name, values in self.allowed)


@dataclass(frozen=True, slots=True, kw_only=True)
class Members:
    """Who belongs to a role: anybody whom one of its parts names."""

    users: tuple[Member, ...] = ()
    organisations: frozenset[str] = frozenset()
    attributes: tuple[AttributeCondition, ...] = ()
    everyone: bool = False

    def include(self, subject: AccessSubject, *, now: datetime) -> bool:
        """Return whether a person belongs to the role at some time."""
        return (
            self.everyone
            or self.named(subject, now=now) is not None
            or (subject.organisation_id is not None and subject.organisation_id in self.organisations)
            or any(condition.holds(subject) for condition in self.attributes)
        )

    def named(self, subject: AccessSubject, *, now: datetime) -> Member | None:
        """Return the entry that names a person, unless it has run out."""
        entry = self.entry(subject.user_id)
        return None if entry is None or (entry.until is not None and now >= entry.until) else entry

    def entry(self, user_id: str) -> Member | None:
        """Return the entry that names a person, run out or not."""
        return next((member for member in self.users if member.user_id == user_id), None)

    def has_run_out(self, subject: AccessSubject, *, now: datetime) -> bool:
        """Return whether a person was named for a time that is over."""
        return self.entry(subject.user_id) is not None and self.named(subject, now=now) is None


class Use(StrEnum):
    """What a column may be used for."""

    VISIBLE = "visible"
    FILTER = "filter"
    GROUP_BY = "group_by"
    MEASURE = "measure"


ALL_USES = frozenset(Use)


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnRule:
    """Uses of one column; no use at all means that the column is forbidden and, for its user, does not exist."""

    uses: frozenset[Use] = frozenset()
    terms: UsageTerms = NEUTRAL

    def __post_init__(self) -> None:
        if self.uses:
            object.__setattr__(self, "uses", self.uses | {Use.VISIBLE})

    @property
    def is_visible(self) -> bool:
        """Return whether the column exists for its user."""
        return Use.VISIBLE in self.uses

    def __and__(self, other: ColumnRule) -> ColumnRule:
        return ColumnRule(uses=self.uses & other.uses, terms=inherit([self.terms, other.terms]))


FORBIDDEN = ColumnRule()


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnRules:
    """A rule for each column, and one for all the others, which are forbidden unless stated."""

    named: tuple[tuple[str, ColumnRule], ...] = ()
    others: ColumnRule = FORBIDDEN

    def of(self, column: str) -> ColumnRule:
        """Return the rule of a column."""
        return dict(self.named).get(column, self.others)

    def visible(self, columns: Iterable[str], *, purpose: str | None = None) -> tuple[str, ...]:
        """Return those of some columns that exist for a user who acts for a purpose."""
        return tuple(name for name in columns if self._exists(self.of(name), purpose))

    def __and__(self, other: ColumnRules) -> ColumnRules:
        names = dict.fromkeys([*dict(self.named), *dict(other.named)])
        named = tuple((name, self.of(name) & other.of(name)) for name in names)
        return ColumnRules(named=named, others=self.others & other.others)

    @staticmethod
    def _exists(rule: ColumnRule, purpose: str | None) -> bool:
        return rule.is_visible and (purpose is None or rule.terms.purposes.allows(purpose))


EVERY_COLUMN = ColumnRules(others=ColumnRule(uses=ALL_USES))
"""Shows and allows everything: for owners, and for a role that keeps its policy's own rules."""

NO_COLUMN = ColumnRules()
"""Shows nothing."""


DAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")


class RuleEffect(StrEnum):
    """What a rule does when it applies."""

    ALLOW = "allow"
    DENY = "deny"


@dataclass(frozen=True, slots=True)
class AlgorithmReference:
    """An algorithm in one version, pinned to its contents where a digest is given; without a version, a built-in one.

    >>> str(AlgorithmReference("kmeans", "1.0.0"))
    'kmeans@1.0.0'
    """

    name: str
    version: str | None = None
    digest: str | None = None

    def __str__(self) -> str:
        version = "" if self.version is None else f"@{self.version}"
        return f"{self.name}{version}" + ("" if self.digest is None else f"#{self.digest}")

    def permits(self, used: AlgorithmReference) -> bool:
        """Return whether an entry of an allow rule covers an algorithm: exactly this version, and these contents."""
        same = self.name == used.name and self.version == used.version
        return same and self.digest in (None, used.digest)

    def forbids(self, used: AlgorithmReference) -> bool:
        """Return whether an entry of a deny rule covers an algorithm: also whenever the entry or it is vague."""
        pairs = ((self.version, used.version), (self.digest, used.digest))
        return self.name == used.name and all(mine == its or None in (mine, its) for mine, its in pairs)


@dataclass(frozen=True, slots=True, kw_only=True)
class Environment:
    """Conditions on the moment and the place of a request.

    Attributes:
        hours: from when until when, by the clock of ``timezone``; the end may lie after midnight. Empty: at any time.
        days: names of the days of the week. Empty: on any day.
        timezone: a name such as ``Europe/Berlin``.
        networks: labels that the hub gives to networks. Empty: from anywhere.
        highest_risk: the highest risk score of a session; None: any.
    """

    hours: tuple[tuple[time, time], ...] = ()
    days: frozenset[str] = frozenset()
    timezone: str = "UTC"
    networks: frozenset[str] = frozenset()
    highest_risk: float | None = None

    def admits_time(self, now: datetime) -> bool:
        """Return whether a moment lies within the days and hours."""
        zone = UTC if self.timezone == "UTC" else ZoneInfo(self.timezone)
        local = now.astimezone(zone)
        on_day = not self.days or DAYS[local.weekday()] in self.days
        return on_day and (not self.hours or any(_between(local.time(), *span) for span in self.hours))


def _between(moment: time, start: time, end: time) -> bool:
    # A span that ends before it starts goes over midnight.
    return start <= moment < end if start < end else moment >= start or moment < end


@dataclass(frozen=True, slots=True, kw_only=True)
class BudgetLimits:
    """How much privacy loss is allowed: for one run, one person, one organisation, and everybody with one purpose.

    None is as much as the dataset's own budget. A purpose counts with all that are below it, such as ``research``.
    """

    job: Budget | None = None
    user: Budget | None = None
    organisation: Budget | None = None
    purpose: Budget | None = None

    def __iter__(self) -> Iterator[tuple[str, Budget]]:
        for name in ("job", "user", "organisation", "purpose"):
            budget = getattr(self, name)
            if budget is not None:
                yield name, budget


def stricter_budget(left: Budget | None, right: Budget | None) -> Budget | None:
    """Return the stricter of two budgets in epsilon and delta, None being no limit."""
    if left is None or right is None:
        return right if left is None else left
    return Budget(epsilon=min(left.amount, right.amount), delta=min(left.delta, right.delta))


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyRule:
    """Allows or denies operations under conditions that must all hold.

    Attributes:
        effect: whether it allows or denies.
        operations: which operations.
        algorithms: which algorithms; None: any, or none at all.
        purposes: which purposes; None: those of the data.
        not_before: from when on.
        expires: until when, not included.
        environment: when and from where.
        limits: how much; a rule that denies has none.
    """

    effect: RuleEffect
    operations: frozenset[PolicyOperation]
    algorithms: tuple[AlgorithmReference, ...] | None = None
    purposes: PurposeSet | None = None
    not_before: datetime | None = None
    expires: datetime | None = None
    environment: Environment = field(default_factory=Environment)
    limits: BudgetLimits = field(default_factory=BudgetLimits)

    def is_current(self, now: datetime) -> bool:
        """Return whether a moment lies within the rule's dates."""
        started = self.not_before is None or now >= self.not_before
        return started and (self.expires is None or now < self.expires)


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
    rules: tuple[PolicyRule, ...] = ()
    columns: ColumnRules = EVERY_COLUMN
    rows: RowPredicate | None = None

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
    terms: UsageTerms = field(default_factory=UsageTerms)
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
