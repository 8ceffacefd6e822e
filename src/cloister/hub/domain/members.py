"""Who belongs to a role: people by name, organisations, people with certain attributes, or everybody."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, Any, ClassVar, TypeAlias

from pydantic import (
    AfterValidator,
    SerializerFunctionWrapHandler,
    ValidatorFunctionWrapHandler,
    WrapSerializer,
    WrapValidator,
)

from cloister.hub.domain.documents import Document, Entries, Moment, Several, Text, Texts, Truth, WrittenAs, mistake
from cloister.hub.domain.policy_fields import Loss
from cloister.hub.domain.roles import AccessSubject

__all__ = ["AttributeCondition", "Member", "Members"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Member(Document):
    """A person in a role, for a time and with a budget of their own where the owner said so.

    The budget binds the person as long as the entry stands, also when its time is over and they belong to the role in
    another way: the end of something given never gives more.
    """

    aliases: ClassVar = {"user_id": "user"}
    left_out: ClassVar = ("until", "budget")

    user_id: Text
    until: Moment | None = None
    budget: Loss | None = None


def _read_member(value: Any, read: ValidatorFunctionWrapHandler) -> Any:
    return read({"user": value} if isinstance(value, str) else value)


def _write_member(member: Member, write: SerializerFunctionWrapHandler) -> Any:
    """Return a member of whom nothing but the name is stated as that name."""
    return member.user_id if member == Member(user_id=member.user_id) else write(member)


def _check_members(members: tuple[Member, ...]) -> tuple[Member, ...]:
    names = [member.user_id for member in members]
    repeated = next((name for name in names if names.count(name) > 1), None)
    if repeated is not None:
        raise mistake(f'"{repeated}" is there twice.', fix="name each person once in a role.")
    return members


_People: TypeAlias = Annotated[
    Several[Annotated[Member, WrapValidator(_read_member), WrapSerializer(_write_member)]],
    AfterValidator(_check_members),
]


@dataclass(frozen=True, slots=True)
class AttributeCondition:
    """Attributes that a person must all have, each with one of some values."""

    allowed: tuple[tuple[str, frozenset[str]], ...]

    def holds(self, subject: AccessSubject) -> bool:
        """Return whether a person has all of the attributes."""
        return bool(self.allowed) and all(subject.attributes.get(name) in values for name, values in self.allowed)


def _read_condition(allowed: dict[str, frozenset[str]]) -> AttributeCondition:
    if not allowed or not all(allowed.values()):
        raise mistake(
            "a condition without an attribute and its values would mean nobody or everybody.",
            fix='write for example {"department": ["cardiology"]}, or "everyone": true.',
        )
    return AttributeCondition(tuple(sorted(allowed.items())))


_Condition: TypeAlias = Annotated[
    AttributeCondition, WrittenAs(Entries[Texts], _read_condition, lambda condition: dict(condition.allowed))
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Members(Document):
    """Who belongs to a role: anybody whom one of its parts names."""

    left_out: ClassVar = ("users", "organisations", "attributes", "everyone")

    users: _People = ()
    organisations: Texts = frozenset()
    attributes: Several[_Condition] = ()
    everyone: Truth = False

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
