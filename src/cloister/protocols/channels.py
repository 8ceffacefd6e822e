"""Channels: how messages get from one party to another.

A message is bytes, so that what a transcript counts is what would travel. `InProcessChannel` keeps messages in memory
and is for parties in one process: simulations, tests, and learning what a protocol costs. A channel between machines
has the same two methods; it must be encrypted and must know who sent what, which protocols rely on.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from typing import Protocol, runtime_checkable

__all__ = ["Channel", "InProcessChannel", "Message"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """What one party tells another."""

    sender: str
    receiver: str
    kind: str
    payload: bytes = field(repr=False)


@runtime_checkable
class Channel(Protocol):
    """Carries messages, each once, to the party that it is for."""

    def send(self, message: Message) -> None:
        """Hand over a message."""
        ...

    def receive(self, receiver: str) -> tuple[Message, ...]:
        """Return the messages for a party that have arrived since it last asked, in the order of their arrival."""
        ...


class InProcessChannel:
    """Messages in memory.

    >>> channel = InProcessChannel()
    >>> channel.send(Message(sender="user", receiver="proxy", kind="greeting", payload=b"hello"))
    >>> [message.payload for message in channel.receive("proxy")], channel.receive("proxy")
    ([b'hello'], ())
    """

    def __init__(self) -> None:
        self._waiting: defaultdict[str, list[Message]] = defaultdict(list)

    def send(self, message: Message) -> None:
        """Keep a message for its receiver."""
        self._waiting[message.receiver].append(message)

    def receive(self, receiver: str) -> tuple[Message, ...]:
        """Return the messages for a party since it last asked."""
        return tuple(self._waiting.pop(receiver, ()))
