"""Rules of a role: which operations, with which algorithms, for what, when, from where and for how much."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, time
from enum import StrEnum
from zoneinfo import ZoneInfo

from cloister.accounting.budget import Budget
from cloister.hub.domain.operations import Operation
from cloister.hub.domain.purposes import PurposeSet

__all__ = ["Algorithm", "Effect", "Environment", "Limits", "Rule", "smaller"]

DAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")


class Effect(StrEnum):
    """What a rule does when it applies."""

    ALLOW = "allow"
    DENY = "deny"


@dataclass(frozen=True, slots=True)
class Algorithm:
    """An algorithm in one version, pinned to its contents where a digest is given; without a version, a built-in one.

    >>> str(Algorithm("kmeans", "1.0.0"))
    'kmeans@1.0.0'
    """

    name: str
    version: str | None = None
    digest: str | None = None

    def __str__(self) -> str:
        version = "" if self.version is None else f"@{self.version}"
        return f"{self.name}{version}" + ("" if self.digest is None else f"#{self.digest}")

    def permits(self, used: Algorithm) -> bool:
        """Return whether an entry of an allow rule covers an algorithm: exactly this version, and these contents."""
        same = self.name == used.name and self.version == used.version
        return same and self.digest in (None, used.digest)

    def forbids(self, used: Algorithm) -> bool:
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
    return start <= moment < end if start < end else moment >= start or moment < end


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
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


def smaller(left: Budget | None, right: Budget | None) -> Budget | None:
    """Return the stricter of two budgets in epsilon and delta, None being no limit."""
    if left is None or right is None:
        return right if left is None else left
    return Budget(epsilon=min(left.amount, right.amount), delta=min(left.delta, right.delta))


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
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

    effect: Effect
    operations: frozenset[Operation]
    algorithms: tuple[Algorithm, ...] | None = None
    purposes: PurposeSet | None = None
    not_before: datetime | None = None
    expires: datetime | None = None
    environment: Environment = field(default_factory=Environment)
    limits: Limits = field(default_factory=Limits)

    def is_current(self, now: datetime) -> bool:
        """Return whether a moment lies within the rule's dates."""
        started = self.not_before is None or now >= self.not_before
        return started and (self.expires is None or now < self.expires)
