"""Rules of a role: which operations, with which algorithms, for what, when, from where and for how much."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, time
from enum import StrEnum
from typing import Annotated, Any, ClassVar, TypeAlias
from zoneinfo import ZoneInfo

from pydantic import AfterValidator, BeforeValidator, ValidationInfo

from cloister.accounting.budget import Budget
from cloister.errors import PolicyError
from cloister.hub.domain.documents import (
    Document,
    Listed,
    Moment,
    Several,
    Text,
    Texts,
    WrittenAs,
    choice,
    mistake,
    one_of,
)
from cloister.hub.domain.operations import PolicyOperation, expand
from cloister.hub.domain.policy_fields import Hours, Loss, RiskScore, Zone
from cloister.hub.domain.terms import Purposes

__all__ = [
    "DAYS",
    "Algorithm",
    "AlgorithmReference",
    "BudgetLimits",
    "Environment",
    "PolicyRule",
    "RuleEffect",
    "stricter_budget",
    "write_operations",
]


_ALGORITHM = re.compile(r"(?P<name>[\w.-]+)(@(?P<version>[\w.+-]+)(#(?P<digest>[0-9a-f]{64}))?)?")
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

    @classmethod
    def parse(cls, text: str) -> AlgorithmReference:
        """Return an algorithm from its text.

        Raises:
            PolicyError: if it is not ``name``, ``name@version`` or ``name@version#digest``.
        """
        match = _ALGORITHM.fullmatch(text)
        if match is None:
            raise PolicyError(
                "This is not an algorithm.",
                fix='write "name@version", or "name@version#" and its SHA-256 in hexadecimal.',
            )
        return cls(match["name"], match["version"], match["digest"])

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


Algorithm: TypeAlias = Annotated[AlgorithmReference, WrittenAs(Text, AlgorithmReference.parse, str)]
_Days: TypeAlias = Annotated[
    frozenset[str],
    WrittenAs(
        Listed[Annotated[Any, AfterValidator(one_of(DAYS))]],
        frozenset,
        lambda days: [day for day in DAYS if day in days],
    ),
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Environment(Document):
    """Conditions on the moment and the place of a request.

    Attributes:
        hours: from when until when, by the clock of ``timezone``; the end may lie after midnight. Empty: at any time.
        days: names of the days of the week. Empty: on any day.
        timezone: a name such as ``Europe/Berlin``.
        networks: labels that the hub gives to networks. Empty: from anywhere.
        highest_risk: the highest risk score of a session; None: any.
    """

    left_out: ClassVar = ("hours", "days", "networks", "highest_risk")

    hours: Several[Hours] = ()
    days: _Days = frozenset()
    timezone: Zone = "UTC"
    networks: Texts = frozenset()
    highest_risk: RiskScore | None = None

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
class BudgetLimits(Document):
    """How much privacy loss is allowed: for one run, one person, one organisation, and everybody with one purpose.

    None is as much as the dataset's own budget. A purpose counts with all that are below it, such as ``research``.
    """

    left_out: ClassVar = ("job", "user", "organisation", "purpose")

    job: Loss | None = None
    user: Loss | None = None
    organisation: Loss | None = None
    purpose: Loss | None = None

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


def _expand(pattern: str, info: ValidationInfo) -> frozenset[PolicyOperation]:
    """Return the operations that a name or a wildcard stands for; a wildcard allows nothing that governs an object."""
    found = expand(pattern, named_only=info.data.get("effect") is RuleEffect.ALLOW)
    if not found:
        one_of([str(operation) for operation in PolicyOperation])(pattern)
    return found


def _unite(found: list[frozenset[PolicyOperation]]) -> frozenset[PolicyOperation]:
    if not found:
        raise mistake("a rule without operations does nothing.", fix='name some, such as ["query.*"].')
    return frozenset[PolicyOperation]().union(*found)


def write_operations(operations: Collection[PolicyOperation]) -> list[str]:
    """Return the names of operations, in one order."""
    return [str(operation) for operation in PolicyOperation if operation in operations]


_Operations: TypeAlias = Annotated[
    frozenset[PolicyOperation], WrittenAs(Listed[Annotated[Text, AfterValidator(_expand)]], _unite, write_operations)
]


def _refuse_with_deny(limits: Any, info: ValidationInfo) -> Any:
    if info.data.get("effect") is RuleEffect.DENY:
        raise mistake("a rule that denies has no limits.", fix="leave out the limits.")
    return limits


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyRule(Document):
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

    left_out: ClassVar = ("algorithms", "purposes", "not_before", "expires", "environment", "limits")

    effect: Annotated[RuleEffect, choice(RuleEffect)]
    operations: _Operations
    algorithms: Several[Algorithm] | None = None
    purposes: Purposes | None = None
    not_before: Moment | None = None
    expires: Moment | None = None
    environment: Environment = field(default_factory=Environment)
    limits: Annotated[BudgetLimits, BeforeValidator(_refuse_with_deny)] = field(default_factory=BudgetLimits)

    def is_current(self, now: datetime) -> bool:
        """Return whether a moment lies within the rule's dates."""
        started = self.not_before is None or now >= self.not_before
        return started and (self.expires is None or now < self.expires)
