"""Who belongs to a role of a policy: people by name, organisations, people with certain attributes, or everybody."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from cloister.accounting.budget import Budget
from cloister.hub.domain.roles import Subject

__all__ = ["AttributeCondition", "Member", "Members"]


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

    def holds(self, subject: Subject) -> bool:
        """Return whether a person has all of the attributes."""
        return bool(self.allowed) and all(subject.attributes.get(name) in values for name, values in self.allowed)


@dataclass(frozen=True, slots=True, kw_only=True)
class Members:
    """Who belongs to a role: anybody whom one of its parts names."""

    users: tuple[Member, ...] = ()
    organisations: frozenset[str] = frozenset()
    attributes: tuple[AttributeCondition, ...] = ()
    everyone: bool = False

    def include(self, subject: Subject, *, now: datetime) -> bool:
        """Return whether a person belongs to the role at some time."""
        return (
            self.everyone
            or self.named(subject, now=now) is not None
            or (subject.organisation_id is not None and subject.organisation_id in self.organisations)
            or any(condition.holds(subject) for condition in self.attributes)
        )

    def named(self, subject: Subject, *, now: datetime) -> Member | None:
        """Return the entry that names a person, unless it has run out."""
        entry = self.entry(subject.user_id)
        return None if entry is None or (entry.until is not None and now >= entry.until) else entry

    def entry(self, user_id: str) -> Member | None:
        """Return the entry that names a person, run out or not."""
        return next((member for member in self.users if member.user_id == user_id), None)

    def has_run_out(self, subject: Subject, *, now: datetime) -> bool:
        """Return whether a person was named for a time that is over."""
        return self.entry(subject.user_id) is not None and self.named(subject, now=now) is None
