"""A registry of algorithms: families of named classes, so that laws, commands and services can list them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Generic, TypeVar, cast

from cloister.errors import InternalError, ParameterError, did_you_mean

T = TypeVar("T")
Member = TypeVar("Member")


class Registry(Generic[T]):
    """The members of one family by name, in the order in which they were registered."""

    def __init__(self, family: str) -> None:
        self.family = family
        self._members: dict[str, T] = {}

    def register(self, name: str) -> Callable[[Member], Member]:
        """Return a decorator that registers a member under a name; the member keeps its own type."""

        def add(member: Member) -> Member:
            if name in self._members:
                raise InternalError(f'two members of "{self.family}" are called "{name}"')
            self._members[name] = cast("T", member)
            return member

        return add

    def get(self, name: str) -> T:
        """Return a member by name, or raise an error that lists the known ones."""
        try:
            return self._members[name]
        except KeyError:
            raise ParameterError(
                f'There is no {self.family} called "{name}".{did_you_mean(name, self._members)}',
                fix=f"use one of {', '.join(self._members)}.",
            ) from None

    def __iter__(self) -> Iterator[str]:
        return iter(self._members)

    def __len__(self) -> int:
        return len(self._members)

    def items(self) -> Iterator[tuple[str, T]]:
        """Iterate over (name, member)."""
        return iter(self._members.items())
